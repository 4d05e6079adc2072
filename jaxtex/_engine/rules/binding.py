"""How a primitive is made, bound, and batched."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ..._jax.barriers import with_materialized
from ..._jax.indexing import as_varying
from ..._jax.typed_jit import typed_jit
from ..compute import operators
from ..describe.spec import Wrt
from ..forms.choice import Lowering

# The batched axis of each argument, `None` where there is none.
Dims = Sequence[int | None]


def batched(implementation: Callable[..., Any], *args: jax.Array, batch: int, **params: Any) -> Any:
    """`implementation` over `batch` leading axes."""
    return operators.over_batch(functools.partial(implementation, **params), batch)(*args)


def make_primitive(
    name: str,
    implementation: Callable[..., Any],
    lowerings: Sequence[Lowering] = (),
    *,
    types: Callable[..., Any],
    materialized: Callable[[Wrt], Sequence[int]],
    multiple_results: bool = False,
) -> Primitive:
    """A primitive that computes `implementation` over `batch` leading batch axes, with alternative lowerings.

    Its parameters are a `ReadSpec` called `spec`, `batch`, and, for derivatives, `wrt`.

    Args:
        types: of the results, from those of the arguments; see `result_types`.
        materialized: the numbers of the arguments that are computed before the taps of samples look at them.
    """
    p = Primitive(name)
    p.multiple_results = multiple_results

    # Under `jax.jit`, whose cache lets equal reads of a program share a jaxpr.
    @typed_jit("spec", "wrt", "batch")
    def general(*args: jax.Array, wrt: Wrt = (), **params: Any) -> Any:
        static = params | {"wrt": wrt} if wrt else params
        run = functools.partial(batched, implementation, **static)
        return with_materialized(run, materialized(wrt))(*args) if params["spec"].materialized else run(*args)

    define_evaluation(p, general, "spec", "wrt", "batch", types=types)
    mlir.register_lowering(p, mlir.lower_fun(general, multiple_results=multiple_results))
    for lowering in lowerings:
        otherwise = functools.partial(batched, lowering.fallback) if lowering.fallback else general
        rule = lowering.rule(otherwise, multiple_results=multiple_results)
        mlir.register_lowering(p, rule, platform=lowering.platform)
    return p


def define_evaluation(
    p: Primitive, function: Callable[..., Any], *static: str, types: Callable[..., Any] | None = None
) -> None:
    """Defines how a primitive that equals `function` is evaluated, by shapes alone and outside `jax.jit`.

    Args:
        static: the names of its parameters.
        types: of the results; `None` traces the function.
    """

    def abstract(*avals: Any, **params: Any) -> Any:
        # Under a mesh, a trace of the function inherits sharding and varying axes, which `types` does not know.
        if types is not None and all(a.sharding.mesh.empty for a in avals):
            found = types(*avals, **params)
            return [as_aval(t) for t in found] if p.multiple_results else as_aval(found)
        # A lowering runs under an empty mesh where there is none. Set here too, so that JAX's cache sees one context.
        with jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()):
            out = jax.make_jaxpr(functools.partial(function, **params))(*avals).out_avals
        return list(out) if p.multiple_results else out[0]

    compiled = typed_jit(*static)(lambda *args, **params: p.bind(*args, **params))

    @functools.wraps(function)  # so that tools that walk programs find the function that a primitive equals
    def evaluate(*args: jax.Array, **params: Any) -> Any:
        with jax.disable_jit(False):  # under which it would end up here again
            return compiled(*args, **params)

    p.def_impl(evaluate)
    p.def_abstract_eval(abstract)


def as_aval(struct: jax.ShapeDtypeStruct) -> ShapedArray:
    return ShapedArray(struct.shape, struct.dtype)


def bind(p: Primitive, *args: jax.Array, **params: Any) -> Any:
    """Binds with every operand cast to the union of their varying axes: so `jax.shard_map` transposes correctly.

    Without samples, channels or examples there is nothing to compute, and all results are zeros.
    """
    if any(0 in a.shape for a in args):
        return jax.tree.map(lambda zeros: as_varying(zeros, *args), zeros_of(p, args, params))
    return p.bind(*(as_varying(a, *args) for a in args), **params)


def zeros_of(p: Primitive, args: Sequence[jax.Array], params: dict[str, Any]) -> Any:
    """Zeros of the shapes that `p` has for arguments some of whose axes are empty.

    Those axes of a result are empty that follow the size of an empty axis: they change if empty axes had one element,
    or two.
    """

    def results(size: int) -> Any:
        sized = (jax.ShapeDtypeStruct(tuple(n or size for n in a.shape), a.dtype) for a in args)
        return jax.eval_shape(functools.partial(p.bind, **params), *sized)

    def zeros(one: Any, two: Any) -> jax.Array:
        return jnp.zeros(tuple(n if n == m else 0 for n, m in zip(one.shape, two.shape)), one.dtype)

    return jax.tree.map(zeros, results(1), results(2))


def at_front(x: jax.Array, dim: int | None, position: int = 0) -> jax.Array:
    """`x` with its batched axis at `position`; an unbatched operand gets an axis of size 1 there."""
    return jnp.expand_dims(x, position) if dim is None else jnp.moveaxis(x, dim, position)


def batching_rule(p: Primitive, textures: Callable[[Wrt], tuple[int, ...]], joins: Callable[[Wrt, Dims], bool]):
    """How `p` is batched.

    Where all textures are shared, a new axis of the operands joins the shape of the samples, if it may. Otherwise it
    is one more batch axis.

    Args:
        textures: the positions of the arguments that are textures.
        joins: whether no result is summed over an axis that joins the samples.
    """

    def rule(args, dims: Dims, *, batch: int, **params: Any):
        wrt = params.get("wrt", ())
        positions = textures(wrt)
        shared = all(dims[k] is None for k in positions) and joins(wrt, dims)
        if shared:
            args = [a if k in positions else at_front(a, d, batch) for k, (a, d) in enumerate(zip(args, dims))]
        else:
            args = [at_front(a, d) for a, d in zip(args, dims)]
        out = bind(p, *args, batch=batch if shared else batch + 1, **params)
        dim = batch if shared else 0
        return (out, [dim] * len(out)) if p.multiple_results else (out, dim)

    return rule
