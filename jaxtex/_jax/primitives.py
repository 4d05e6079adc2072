"""Definitions of primitives: by their meaning, a function, and by faster forms for some programs.

The meaning is a function of other primitives, and gives the rules of differentiation, transposition and batching. A
form computes the same with fewer copies, or in a way without derivatives, such as through the bits of numbers.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .calls import typed_jit
from .indexing import as_varying
from .versions import NO_MESH, lower_on_one_device, with_room

# The forms of each primitive for some platforms.
FORMS: dict[Primitive, Sequence["Form"]] = {}
# The meaning of each primitive.
MEANINGS: dict[Primitive, Callable[..., Any]] = {}
# The batched axis of each argument, `None` where there is none.
Dims = Sequence[int | None]


class Form(Protocol):
    """A form of a primitive for one platform.

    Attributes:
        platform: ``"cpu"`` or ``"cuda"``.
    """

    @property
    def platform(self) -> str: ...

    def rule(self, general: Callable[..., Any]) -> Callable[..., Any]:
        """The lowering rule, which uses `general` in programs that this form does not suit."""
        ...


def define(
    name: str | Primitive,
    meaning: Callable[..., Any],
    *,
    static: Sequence[str] = (),
    linear_in: Callable[..., Sequence[int]] | None = None,
    jvp: Callable[..., Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    form: Callable[..., Any] | None = None,
    types: Callable[..., Any] | None = None,
    abstract: Callable[..., Any] | None = None,
    lowerings: Sequence[Form] = (),
    multiple_results: bool = False,
) -> Primitive:
    """A primitive that equals `meaning`.

    Args:
        name: its name, or a primitive without rules, so that the meaning can refer to it.
        static: the names of its parameters.
        linear_in: from its parameters, the positions of the arguments in which it is jointly linear. With this, a rule
            that is not given is that of `meaning`.
        jvp, transpose, batch: its rules of differentiation, transposition and batching, as JAX calls them.
        form: the form on every platform; `None` is `meaning`. It returns an array, or several.
        types: the shapes and dtypes of its results, from those of its arguments; `None` to trace the form.
        abstract: the abstract values of its results, under meshes too; `None` to find them by `types` or a trace.
        lowerings: forms for some platforms.
    """
    p = Primitive(name) if isinstance(name, str) else name
    p.multiple_results = multiple_results
    form = form or meaning
    define_evaluation(p, form, static, types, abstract)
    mlir.register_lowering(p, with_room(lowered(form)))
    FORMS[p], MEANINGS[p] = lowerings, meaning
    for row in lowerings:
        mlir.register_lowering(p, with_room(row.rule(form)), platform=row.platform)
    if linear_in is not None:
        jvp = jvp or jvp_of_meaning(p, meaning)
        transpose = transpose or transpose_of_meaning(meaning, linear_in)
        batch = batch or batching_of_meaning(meaning, multiple_results)
    rules = (ad.primitive_jvps, jvp), (ad.primitive_transposes, transpose), (batching.primitive_batchers, batch)
    for rules_of_jax, rule in rules:
        if rule is not None:
            rules_of_jax[p] = rule
    return p


def define_linear(
    name: str,
    form: Callable[..., Any],
    transposed: Callable[..., dict[str, Any]],
    batched: Callable[..., dict[str, Any]],
    *,
    static: Sequence[str],
    lowerings: Sequence[Form] = (),
) -> Primitive:
    """A linear primitive of one array.

    Args:
        transposed: the parameters of its transpose, from the abstract value of the array and its own parameters.
        batched: its parameters where the array has one more axis in front, from its own.
        static: the names of its parameters.
    """

    def transpose(cotangent: Any, x: Any, **params: Any) -> list[Any]:
        return [p.bind(cotangent, **transposed(x.aval, **params))]

    def batch(args: Sequence[jax.Array], dims: Dims, **params: Any) -> tuple[jax.Array, int]:
        return p.bind(at_front(args[0], dims[0]), **batched(**params)), 0

    p = define(name, form, static=static, batch=batch, lowerings=lowerings)
    ad.deflinear2(p, transpose)
    return p


def define_evaluation(
    p: Primitive,
    form: Callable[..., Any],
    static: Sequence[str],
    types: Callable[..., Any] | None,
    abstract: Callable[..., Any] | None,
) -> None:
    """Defines how a primitive is evaluated by shapes alone, and outside `jax.jit`."""

    def by_types(*avals: Any, **params: Any) -> Any:
        # Under a mesh, a trace of the form inherits sharding and varying axes, which `types` does not know.
        known = types(*avals, **params) if types and all(a.sharding.mesh.empty for a in avals) else None
        if known is not None:
            return [as_aval(struct) for struct in as_tuple(known)] if p.multiple_results else as_aval(known)
        # A lowering runs under an empty mesh where there is none. Set here too, so that JAX's cache sees one context.
        with jax.sharding.use_abstract_mesh(jax.sharding.get_abstract_mesh()):
            out = jax.make_jaxpr(functools.partial(form, **params))(*avals).out_avals
        return list(out) if p.multiple_results else out[0]

    compiled = typed_jit(*static)(lambda *args, **params: p.bind(*args, **params))

    @functools.wraps(form)  # for tools that walk programs
    def evaluate(*args: jax.Array, **params: Any) -> Any:
        with jax.disable_jit(False):  # which would lead here again
            return compiled(*args, **params)

    p.def_impl(evaluate)
    p.def_abstract_eval(abstract or by_types)


def as_aval(struct: jax.ShapeDtypeStruct) -> ShapedArray:
    return ShapedArray(struct.shape, struct.dtype)


def as_tuple(results: Any) -> tuple[Any, ...]:
    """The results of a function, as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def lowered(form: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering rule of a form, which returns an array, or several."""
    rule = mlir.lower_fun(lambda *args, **params: as_tuple(form(*args, **params)), multiple_results=True)
    return functools.partial(lower_on_one_device, rule) if getattr(form, "knows_no_mesh", False) else rule


def on_one_device(form: Callable[..., Any]) -> Callable[..., Any]:
    """A form whose arrays have the types of arrays on one device."""

    @functools.wraps(form)
    def run(*args: jax.Array, **params: Any) -> Any:
        with jax.sharding.use_abstract_mesh(NO_MESH):
            return form(*args, **params)

    run.__dict__["knows_no_mesh"] = True
    return run


# Binding


def bind(p: Primitive, *args: jax.Array, **params: Any) -> Any:
    """Binds with every operand cast to the union of their varying axes: so `jax.shard_map` transposes correctly.

    Without samples, channels or examples there is nothing to compute, and all results are zeros.
    """
    if any(0 in a.shape for a in args):
        return jax.tree.map(lambda zeros: as_varying(zeros, *args), zeros_of(p, args, params))
    return p.bind(*(as_varying(a, *args) for a in args), **params)


def zeros_of(p: Primitive, args: Sequence[jax.Array], params: dict[str, Any]) -> Any:
    """Zeros of the shapes that `p` has for arguments with empty axes.

    The axes of a result that depend on an empty axis are empty: their sizes differ for one element and two.
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


# Rules that follow from the meaning


def is_nonzero(tangent: Any) -> bool:
    """Whether a tangent is floating and not known to be zero."""
    return not isinstance(tangent, ad.Zero) and tangent.dtype != jax.dtypes.float0


def jvp_of_nonzero(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of ``function(*primals)`` along those of `tangents` that are not zero."""
    nonzero = [k for k, t in enumerate(tangents) if is_nonzero(t)]

    def of_nonzero(*moving: Any) -> Any:
        args = list(primals)
        for k, arg in zip(nonzero, moving):
            args[k] = arg
        return function(*args)

    moving, d_moving = (tuple(x[k] for k in nonzero) for x in (primals, tangents))
    return jax.jvp(of_nonzero, moving, d_moving)[1]


def jvp_of_meaning(p: Primitive, meaning: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of a primitive that equals `meaning`."""

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any):
        out = bind(p, *primals, **params)
        return out, jvp_of_nonzero(functools.partial(meaning, **params), primals, tangents)

    return rule


def transpose_of_meaning(meaning: Callable[..., Any], linear_in: Callable[..., Sequence[int]]) -> Callable[..., Any]:
    """The transpose of a primitive that equals `meaning`."""

    def rule(cotangent: Any, *args: Any, **params: Any) -> tuple[Any, ...]:
        linear = [k for k, a in enumerate(args) if ad.is_undefined_primal(a)]
        zero = set(linear_in(**params)) - set(linear)

        def of_linear(*moving: Any) -> Any:
            given = dict(zip(linear, moving))
            known = (jnp.zeros_like(a) if k in zero else given.get(k, a) for k, a in enumerate(args))
            return meaning(*known, **params)

        if isinstance(cotangent, list):  # of several results
            cotangent = [*map(ad.instantiate_zeros, cotangent)]
        avals = (args[k].aval for k in linear)  # with their shardings and varying axes
        cotangents = dict(zip(linear, jax.linear_transpose(of_linear, *avals)(cotangent)))
        return tuple(cotangents.get(k) for k in range(len(args)))

    return rule


def batching_of_meaning(meaning: Callable[..., Any], multiple_results: bool) -> Callable[..., Any]:
    """The batching of a primitive that equals `meaning`."""

    def rule(args: Sequence[jax.Array], dims: Dims, **params: Any) -> Any:
        out = jax.vmap(functools.partial(meaning, **params), dims)(*args)
        return (out, [0] * len(out)) if multiple_results else (out, 0)

    return rule


# A value with the derivatives of another function

Function = Callable[..., jax.Array]


def straight_through(value: Function, meaning: Function, *args: Any, linear_in: tuple[int, ...] = ()) -> jax.Array:
    """``value(*args)``, with the derivatives of `meaning`, to any order.

    Args:
        linear_in: the positions of the arrays in which `meaning` is linear together, and is transposed, which takes a
            primitive. Then neither function may close over traced arrays.
    """
    if linear_in:
        leaves, tree = jax.tree.flatten(args)
        flat = lambda function: lambda *leaves: function(*jax.tree.unflatten(tree, leaves))
        return bind(straight_through_p, *leaves, meaning=flat(meaning), value=flat(value), linear_in=linear_in)
    function = jax.custom_jvp(value)

    @function.defjvp
    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
        return function(*primals), jax.jvp(meaning, primals, tangents)[1]

    return function(*args)


def meaning_of(*args: Any, meaning: Function, value: Function, linear_in: tuple[int, ...]) -> jax.Array:
    del value, linear_in
    return meaning(*args)


def value_of(*args: Any, meaning: Function, value: Function, linear_in: tuple[int, ...]) -> jax.Array:
    del meaning, linear_in
    return value(*args)


def batching_of_both(
    args: Sequence[jax.Array], dims: Dims, *, linear_in: tuple[int, ...], **functions: Function
) -> tuple[jax.Array, int]:
    mapped = {name: jax.vmap(function, dims) for name, function in functions.items()}
    return straight_through_p.bind(*args, **mapped, linear_in=linear_in), 0


straight_through_p = define(
    "straight_through",
    meaning_of,
    static=("meaning", "value", "linear_in"),
    linear_in=lambda *, linear_in, **_: linear_in,
    batch=batching_of_both,
    form=value_of,
)


# Means that are finite where their numbers are


def mean_of_pair(a: jax.Array, b: jax.Array) -> jax.Array:
    """The mean of two numbers, which is finite where their sum is not."""
    return a * 0.5 - b * -0.5  # of two products with equal factors, XLA would add before it multiplies


def clamped_double(half: jax.Array) -> jax.Array:
    """Twice a mean with halved weights, finite where that is: roundings may take a mean past the largest number."""
    largest = half.dtype.type(jnp.finfo(half.dtype).max)
    return jnp.where(jnp.isinf(half), half, jnp.clip(2 * half, -largest, largest))


doubled_p = define_linear("doubled", clamped_double, lambda _: {}, lambda: {}, static=())
doubled: Callable[[jax.Array], jax.Array] = doubled_p.bind
