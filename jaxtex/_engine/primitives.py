"""The primitives of a read and their rules: the only place where derivatives are defined.

A read is linear in the texels, ``read(T, c) = sum_k w_k(c) T[i_k(c)]``, and its adjoint `splat` is linear in the
values. Give the weights a derivative order on every axis (`Axis.order`), and the two close under differentiation,
transposition and batching:

    d read(T, c; m)       = read(dT, c; m) + sum_axis read(T, c; m + e_axis) dc_axis  = pushforward(dT, dc; T, c)
    d splat(v, c; m)      = splat(dv, c; m) + sum_axis splat(v dc_axis, c; m + e_axis)
    transpose of read  in T = splat          transpose of splat in v = read

Hence forward and reverse mode, every order, `vmap`, `jit` and `linear_transpose`. The first line, as a whole, is a
primitive too, and so is its transpose, `pullback`: then the gradients in texels and coordinates are computed together,
from one look at taps, texels and cotangent, and nothing but texels and coordinates is kept between the passes. Their
own derivatives are those of the two lines above.

The weights are piecewise polynomials whose pieces are half-open, [i, i + 1): at a kink the right-hand slope is taken.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..modes import ReadMode
from . import operators
from .axis import Axis, raised
from .indexing import as_varying
from .lowering import cpu_adjoint, gpu_kernels, partitioned_adjoint
from .operators import TEXELS
from .texel_walk import Grid, as_given

Wanted = tuple[int, ...]


def read(
    texels: jax.Array,
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    deterministic: bool = False,
    grid: Grid = as_given,
) -> jax.Array:
    """`resample.read` with derivatives of any order."""
    static = {"read_mode": read_mode, "dtype": np.dtype(dtype), "deterministic": deterministic, "grid": grid}
    return bind(read_p, texels, *operands, axes=axes, batch=0, **static)


def splat(
    values: jax.Array,
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    dtype: np.dtype,
    deterministic: bool = False,
    grid: Grid = as_given,
) -> jax.Array:
    """`resample.splat` with derivatives of any order."""
    static = {"dtype": np.dtype(dtype), "deterministic": deterministic, "grid": grid}
    return bind(splat_p, values, *operands, axes=axes, batch=0, **static)


def batched(implementation: Callable[..., Any], *args, batch: int, **static) -> Any:
    """`implementation` over `batch` leading axes."""
    return operators.over_batch(functools.partial(implementation, **static), batch)(*args)


class Way(NamedTuple):
    """Another way to the same result on a platform, when it suits, and the way there for one texture otherwise."""

    platform: str
    run: Callable[..., Any]
    suits: Callable[..., bool]
    otherwise: Callable[..., Any] | None = None


def primitive(
    name: str, implementation: Callable[..., Any], *static_names: str, ways: Sequence[Way] = (), several: bool = False
) -> Primitive:
    """A primitive that does what `implementation` does, with `batch` leading batch axes; faster in some ways."""
    p = Primitive(name)
    p.multiple_results = several
    run = functools.partial(batched, implementation)

    # Tracing the implementation inherits dtype, sharding and varying axes; a shape by hand would lose the last two.
    def abstract(*avals, **static):
        out = jax.make_jaxpr(functools.partial(run, **static))(*avals).out_avals
        return list(out) if several else out[0]

    compiled = jax.jit(lambda *args, **static: p.bind(*args, **static), static_argnames=(*static_names, "batch"))

    def evaluate(*args, **static):
        with jax.disable_jit(False):  # under which it would end up here again
            return compiled(*args, **static)

    p.def_impl(evaluate)
    p.def_abstract_eval(abstract)
    mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=several))
    for way in ways:
        otherwise = functools.partial(batched, way.otherwise or implementation)
        rule = gpu_kernels.lowering(way.run, otherwise, way.suits, several=several, scatters=way.otherwise is not None)
        mlir.register_lowering(p, rule, platform=way.platform)
    return p


READING = ("axes", "read_mode", "dtype", "deterministic", "grid")
WAYS_TO_READ = [Way("cuda", gpu_kernels.read, gpu_kernels.suits_read)]
WAYS_TO_SPLAT = [
    Way("cuda", gpu_kernels.splat, gpu_kernels.suits_splat, partitioned_adjoint.splat),
    Way("cpu", cpu_adjoint.splat, cpu_adjoint.suits),
]
WAYS_BACK = [
    Way("cuda", gpu_kernels.pullback, gpu_kernels.suits_pullback, partitioned_adjoint.pullback),
    Way("cpu", cpu_adjoint.pullback, cpu_adjoint.suits),
]
read_p = primitive("texture_read", operators.read, *READING, ways=WAYS_TO_READ)
splat_p = primitive("texture_splat", operators.splat, "axes", "dtype", "deterministic", "grid", ways=WAYS_TO_SPLAT)
pushforward_p = primitive("texture_pushforward", operators.pushforward, *READING, "wanted")
pullback_p = primitive("texture_pullback", operators.pullback, *READING, "wanted", ways=WAYS_BACK, several=True)


def bind(p: Primitive, *args, **static):
    """Binds with every operand cast to the union of their varying axes: so `jax.shard_map` transposes correctly."""
    return p.bind(*(as_varying(a, *args) for a in args), **static)


def moving(axes: tuple[Axis, ...], tangents) -> tuple[int, ...]:
    """Which of texels and coordinates have a tangent that moves a read."""
    found = (k for k, t in enumerate(tangents, TEXELS) if t is not None and not isinstance(t, ad.Zero))
    return tuple(k for k in found if k == TEXELS or not raised(axes, k)[k].vanishes)


def moved_along(function: Callable[..., Any], primals, tangents) -> Any:
    """The tangent of ``function(*primals)`` along those of `tangents` that are not zero."""
    moved = [k for k, t in enumerate(tangents) if not isinstance(t, ad.Zero)]

    def of_moved(*some):
        args = list(primals)
        for k, arg in zip(moved, some):
            args[k] = arg
        return function(*args)

    some, d_some = (tuple(x[k] for k in moved) for x in (primals, tangents))
    return jax.jvp(of_moved, some, d_some)[1]


def in_coordinates(grid: Grid, operands, tangents) -> list[Any]:
    """The tangents of the coordinates that `grid` makes of operands with `tangents`; `None` of integers."""
    some = [t for t in tangents if not isinstance(t, ad.Zero)]
    if grid is as_given or not some:
        return list(tangents)

    def along(operands, *some):
        found = iter(some)
        moves = moved_along(grid, operands, [t if isinstance(t, ad.Zero) else next(found) for t in tangents])
        return [None if move.dtype == jax.dtypes.float0 else move for move in moves]

    return kept_small(along, operands, *some)


def read_jvp(primals, tangents, *, axes, **static):
    out = bind(read_p, *primals, axes=axes, **static)
    tangents = [tangents[0], *in_coordinates(static["grid"], primals[1:], tangents[1:])]
    wanted = moving(axes, tangents)
    if not wanted:
        return out, jnp.zeros_like(out)
    if wanted == (TEXELS,):
        return out, bind(read_p, tangents[0], *primals[1:], axes=axes, **static)
    moves = [tangents[k - TEXELS] for k in wanted]
    return out, bind(pushforward_p, *moves, *primals, axes=axes, wanted=wanted, **static)


def kept_small(term: Callable[..., Any], *args, **static) -> Any:
    """A term in a checkpoint, so that reverse mode keeps texels, values and coordinates, not the slopes."""
    return jax.checkpoint(functools.partial(term, **static))(*args)


def moved_read(texels, move, *operands, **static):
    slope = bind(read_p, texels, *operands, **static)
    return slope * move[..., None].astype(slope.dtype)


def moved_splat(values, move, *operands, **static):
    return bind(splat_p, values * move[..., None].astype(values.dtype), *operands, **static)


def slope_along(texels, cotangent, *operands, **static):
    return jnp.sum(bind(read_p, texels, *operands, **static) * cotangent, -1)


def splat_jvp(primals, tangents, *, axes, **static):
    (values, *operands), (d_values, *d_operands) = primals, tangents
    tangents = [d_values, *in_coordinates(static["grid"], operands, d_operands)]
    out, terms = bind(splat_p, *primals, axes=axes, **static), []
    for k in moving(axes, tangents):
        if k == TEXELS:
            terms.append(bind(splat_p, d_values, *operands, axes=axes, **static))
        else:
            steep = {"axes": raised(axes, k), **static}
            terms.append(kept_small(moved_splat, values, tangents[k - TEXELS], *operands, **steep))
    return out, functools.reduce(jnp.add, terms) if terms else jnp.zeros_like(out)


def pushforward_terms(*args, axes, wanted, **static):
    """What `pushforward` means, in terms of reads."""
    moves, (texels, *operands) = args[: len(wanted)], args[len(wanted) :]
    terms = []
    for k, move in zip(wanted, moves):
        if k == TEXELS:
            terms.append(bind(read_p, move, *operands, axes=axes, **static))
        else:
            terms.append(kept_small(moved_read, texels, move, *operands, axes=raised(axes, k), **static))
    return functools.reduce(jnp.add, terms)


def pullback_terms(cotangent, texels, *operands, axes, wanted, dtype, **static):
    """What `pullback` means, in terms of reads and a splat."""
    terms = []
    for k in wanted:
        if k == TEXELS:
            keywords = {name: static[name] for name in ("batch", "deterministic", "grid")}
            terms.append(bind(splat_p, cotangent, *operands, axes=axes, dtype=texels.dtype, **keywords))
        else:
            steep = {"axes": raised(axes, k), "dtype": dtype, **static}
            terms.append(kept_small(slope_along, texels, cotangent, *operands, **steep))
    return terms


def by_terms(p: Primitive, terms: Callable[..., Any]):
    """The derivative of `p`, which means `terms`."""

    def rule(primals, tangents, **static):
        out = bind(p, *primals, **static)
        return out, moved_along(functools.partial(terms, **static), primals, tangents)

    return rule


def read_transpose(cotangent, texels, *operands, read_mode, dtype, **static):
    del read_mode, dtype
    return bind(splat_p, cotangent, *operands, dtype=texels.aval.dtype, **static), *(None for _ in operands)


def splat_transpose(cotangent, values, *operands, dtype, **static):
    del dtype
    static |= {"read_mode": ReadMode.ELEMENT, "dtype": values.aval.dtype}
    return bind(read_p, cotangent, *operands, **static), *(None for _ in operands)


def pushforward_transpose(cotangent, *args, wanted, read_mode, dtype, **static):
    moves, (texels, *operands) = args[: len(wanted)], args[len(wanted) :]
    linear = {k: move.aval for k, move in zip(wanted, moves) if ad.is_undefined_primal(move)}
    if tuple(linear) == (TEXELS,):
        found = [bind(splat_p, cotangent, *operands, dtype=linear[TEXELS].dtype, **static)]
    else:
        asked = {"wanted": tuple(linear), "read_mode": read_mode, "dtype": dtype, **static}
        found = bind(pullback_p, cotangent, texels, *operands, **asked)
    sums = {k: summed_to(x, aval) if k != TEXELS else x for (k, aval), x in zip(linear.items(), found)}
    return *(sums.get(k) for k in wanted), *(None for _ in (texels, *operands))


def pullback_transpose(cotangents, cotangent, texels, *operands, wanted, dtype, **static):
    del dtype
    moves = {k: move for k, move in zip(wanted, cotangents) if not isinstance(move, ad.Zero)}
    static |= {"dtype": cotangent.aval.dtype}
    nothing = [None for _ in (texels, *operands)]
    if not moves:
        return None, *nothing
    if tuple(moves) == (TEXELS,):
        return bind(read_p, moves[TEXELS], *operands, **static), *nothing
    return bind(pushforward_p, *moves.values(), texels, *operands, wanted=tuple(moves), **static), *nothing


def summed_to(x: jax.Array, aval) -> jax.Array:
    """The cotangent of a coordinate of that shape and dtype, which was broadcast to the shape of `x`."""
    repeated = tuple(k for k, n in enumerate(aval.shape) if n != x.shape[k])
    return (jnp.sum(x, repeated, keepdims=True) if repeated else x).astype(aval.dtype)


def at_front(x: jax.Array, dim: int | None, position: int = 0) -> jax.Array:
    """`x` with its batched axis at `position`; an unbatched operand gets an axis of size 1 there."""
    return jnp.expand_dims(x, position) if dim is None else jnp.moveaxis(x, dim, position)


def batching_rule(p: Primitive, textures: Callable[[Wanted], tuple[int, ...]], makes: Callable[[Wanted], bool]):
    """How `p` is batched: `textures` are the positions of its texture operands, and `makes` whether it makes one.

    Where all textures are shared, a new axis of the coordinates joins the shape of the samples. Otherwise it is one
    more batch axis.
    """

    def rule(args, dims, *, batch, **static):
        wanted = static.get("wanted", ())
        places = textures(wanted)
        shared = not makes(wanted) and all(dims[k] is None for k in places)
        if shared:
            args = [a if k in places else at_front(a, d, batch) for k, (a, d) in enumerate(zip(args, dims))]
        else:
            args = [at_front(a, d) for a, d in zip(args, dims)]
        out = bind(p, *args, batch=batch if shared else batch + 1, **static)
        dim = batch if shared else 0
        return (out, [dim] * len(out)) if p.multiple_results else (out, dim)

    return rule


ad.primitive_jvps[read_p] = read_jvp
ad.primitive_jvps[splat_p] = splat_jvp
ad.primitive_jvps[pushforward_p] = by_terms(pushforward_p, pushforward_terms)
ad.primitive_jvps[pullback_p] = by_terms(pullback_p, pullback_terms)
ad.primitive_transposes[read_p] = read_transpose
ad.primitive_transposes[splat_p] = splat_transpose
ad.primitive_transposes[pushforward_p] = pushforward_transpose
ad.primitive_transposes[pullback_p] = pullback_transpose
batching.primitive_batchers[read_p] = batching_rule(read_p, lambda _: (0,), lambda _: False)
batching.primitive_batchers[splat_p] = batching_rule(splat_p, lambda _: (), lambda _: True)
batching.primitive_batchers[pushforward_p] = batching_rule(
    pushforward_p, lambda wanted: (len(wanted), *(k for k, w in enumerate(wanted) if w == TEXELS)), lambda _: False
)
batching.primitive_batchers[pullback_p] = batching_rule(pullback_p, lambda _: (1,), lambda wanted: TEXELS in wanted)


def straight_through(value, smooth):
    """A function that is `value`, with the derivatives of `smooth`, to any order."""
    function = jax.custom_jvp(value)

    @function.defjvp
    def rule(primals, tangents):
        return function(*primals), jax.jvp(smooth, primals, tangents)[1]

    return function
