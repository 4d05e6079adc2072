"""The two primitives and their rules: the only place where derivatives are defined.

A read is linear in the texels, ``read(T, c) = sum_k w_k(c) T[i_k(c)]``, and its adjoint `splat` is linear in the
values. Give the weights a derivative order on every axis (`Axis.order`), and the two close under differentiation,
transposition and batching:

    d read(T, c; m)       = read(dT, c; m) + sum_axis read(T, c; m + e_axis) dc_axis
    d splat(v, c; m)      = splat(dv, c; m) + sum_axis splat(v dc_axis, c; m + e_axis)
    transpose of read  in T = splat          transpose of splat in v = read

Hence forward and reverse mode, every order, `vmap`, `jit` and `linear_transpose`. The weights are piecewise
polynomials whose pieces are half-open, [i, i + 1): at a kink the right-hand slope is taken.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import resample
from .axis import Axis, raised
from .modes import ReadMode
from .places import Coords


def read(texels: jax.Array, coords: Coords, axes: tuple[Axis, ...], read_mode: ReadMode, dtype: np.dtype) -> jax.Array:
    """`resample.read` with derivatives of any order."""
    return bind(read_p, texels, *coords, axes=axes, read_mode=read_mode, dtype=np.dtype(dtype), batch=0)


def splat(values: jax.Array, coords: Coords, axes: tuple[Axis, ...], dtype: np.dtype) -> jax.Array:
    """`resample.splat` with derivatives of any order."""
    return bind(splat_p, values, *coords, axes=axes, dtype=np.dtype(dtype), batch=0)


def batched(function, batch: int):
    """`function` over `batch` leading axes, which its first argument has; a coordinate may have size 1 there.

    Batch axes stay axes of their own: the partitioner keeps them apart, and nothing is reshaped or repeated.
    """
    if batch == 0:
        return function

    def run(first, *coords):
        own = [c.shape[0] == first.shape[0] for c in coords]
        coords = [c if mine else c.squeeze(0) for c, mine in zip(coords, own)]
        in_axes = (0, *(0 if mine else None for mine in own))
        return jax.vmap(batched(function, batch - 1), in_axes)(first, *coords)

    return run


def primitive(name: str, implementation, *static_names: str) -> Primitive:
    """A primitive that does what `implementation` does, with `batch` leading batch axes."""
    p = Primitive(name)

    def run(*args, batch, **static):
        return batched(functools.partial(implementation, **static), batch)(*args)

    # Tracing the implementation inherits dtype, sharding and varying axes; a shape by hand would lose the last two.
    def abstract(*avals, **static):
        return jax.make_jaxpr(functools.partial(run, **static))(*avals).out_avals[0]

    p.def_impl(jax.jit(run, static_argnames=(*static_names, "batch")))
    p.def_abstract_eval(abstract)
    mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=False))
    return p


read_p = primitive("texture_read", resample.read, "axes", "read_mode", "dtype")
splat_p = primitive("texture_splat", resample.splat, "axes", "dtype")


def varying(x) -> frozenset:
    """The mesh axes along which `x` varies inside `jax.shard_map`."""
    aval = jax.typeof(x)
    for name in ("mat", "manual_axis_type"):  # the name changed between JAX versions
        if getattr(aval, name, None) is not None:
            return frozenset(getattr(aval, name).varying)
    return frozenset(getattr(aval, "vma", ()))


def bind(p: Primitive, *args, **static):
    """Binds with every operand cast to the union of their varying axes: so `jax.shard_map` transposes correctly."""
    union = frozenset().union(*map(varying, args))
    missing = [tuple(sorted(union - varying(a))) for a in args]
    args = [jax.lax.pcast(a, m, to="varying") if m else a for a, m in zip(args, missing)]
    return p.bind(*args, **static)


def jvp_rule(p: Primitive):
    """The first two lines of the derivation above."""

    def rule(primals, tangents, *, axes, **static):
        (first, *coords), (d_first, *d_coords) = primals, tangents
        out, terms = bind(p, first, *coords, axes=axes, **static), []
        if not isinstance(d_first, ad.Zero):
            terms.append(bind(p, d_first, *coords, axes=axes, **static))
        for k, d_coord in enumerate(d_coords):
            slope_axes = raised(axes, k)
            if isinstance(d_coord, ad.Zero) or slope_axes[k].vanishes:
                continue

            # In a checkpoint, so that reverse mode keeps texels and coordinates, not the slopes.
            @jax.checkpoint
            def term(first, d_coord, *coords, slope_axes=slope_axes):
                if p is read_p:
                    slope = bind(p, first, *coords, axes=slope_axes, **static)
                    return slope * d_coord[..., None].astype(slope.dtype)
                return bind(p, first * d_coord[..., None].astype(first.dtype), *coords, axes=slope_axes, **static)

            terms.append(term(first, d_coord, *coords))
        return out, functools.reduce(jnp.add, terms) if terms else jnp.zeros_like(out)

    return rule


def read_transpose(cotangent, texels, *coords, axes, read_mode, dtype, batch):
    del read_mode, dtype
    stored = texels.aval.dtype
    return bind(splat_p, cotangent, *coords, axes=axes, dtype=stored, batch=batch), *(None for _ in coords)


def splat_transpose(cotangent, values, *coords, axes, dtype, batch):
    del dtype
    static = {"read_mode": ReadMode.ELEMENT, "dtype": values.aval.dtype}
    return bind(read_p, cotangent, *coords, axes=axes, batch=batch, **static), *(None for _ in coords)


def at_front(x: jax.Array, dim: int | None, position: int = 0) -> jax.Array:
    """`x` with its batched axis at `position`; an unbatched operand gets an axis of size 1 there."""
    return jnp.expand_dims(x, position) if dim is None else jnp.moveaxis(x, dim, position)


def read_batching(args, dims, *, batch, **static):
    (texels, *coords), (dim, *dims) = args, dims
    if dim is None:  # only coordinates: their new axis joins the shape of the read, and the texture is shared
        coords = [at_front(c, d, batch) for c, d in zip(coords, dims)]
        return bind(read_p, texels, *coords, batch=batch, **static), batch
    coords = [at_front(c, d) for c, d in zip(coords, dims)]
    return bind(read_p, at_front(texels, dim), *coords, batch=batch + 1, **static), 0


def splat_batching(args, dims, *, batch, **static):
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    values, *coords = (at_front(a, d) for a, d in zip(args, dims))
    values = jnp.broadcast_to(values, (size, *values.shape[1:]))
    return bind(splat_p, values, *coords, batch=batch + 1, **static), 0


for p, transpose, batch_rule in (
    (read_p, read_transpose, read_batching),
    (splat_p, splat_transpose, splat_batching),
):
    ad.primitive_jvps[p] = jvp_rule(p)
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch_rule


def straight_through(value, smooth):
    """A function that is `value`, with the derivatives of `smooth`, to any order."""
    function = jax.custom_jvp(value)

    @function.defjvp
    def rule(primals, tangents):
        return function(*primals), jax.jvp(smooth, primals, tangents)[1]

    return function
