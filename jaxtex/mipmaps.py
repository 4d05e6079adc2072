"""Mip chains, and the footprint of a sample, which selects the mip level."""

from collections.abc import Callable, Sequence
from typing import cast

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jax.typing import ArrayLike

from ._checks.calls import check_function, public
from ._checks.numbers import as_float, as_integer
from ._checks.words import listing
from ._engine.compute.filters import halved, next_of
from ._engine.describe.levels import Cut
from ._engine.describe.operands import Arrays
from ._engine.rules.filters import mip_chain
from ._jax.calls import typed_jit
from ._jax.indexing import everywhere, explicit_sharding, is_sharded, names_of, parts_of
from ._reads.arguments import check_texture
from ._reads.complex_parts import by_parts
from ._tables.storage_formats import is_complex, sum_dtype
from .texture import Texture, chain_shapes, packed

__all__ = ["build_mipmaps", "footprint"]
__dir__ = listing(__all__)


@public
def build_mipmaps(texture: Texture, num_levels: int | None = None) -> Texture:
    """Returns the texture with a mip chain: each level is the box-filtered half of the one before.

    A texel of a level is the mean of the texels that it covers in the level before. Where a size n is odd, the next
    size is ``m = n >> 1`` and a texel covers n / m texels, the outer ones in part. Layers and faces are not mixed.

    Args:
        texture: a `Texture` of any kind with floating or complex texels. If it has a chain, its finest level is used.
        num_levels: the number of levels, including the finest; by default all, down to one texel.

    Returns:
        A `Texture` of the same kind, dtype and border color. Means are taken in float32, or float64 for float64 texels,
        and rounded level by level. If the texels carry an explicit sharding along one axis, each device stores its part
        of each large level, and a copy of each small level; see `jaxtex.sharded`. In the gradient with respect to the
        texels of such a chain, each copy of a small level has a gradient of its own, from the samples of its device.

    Gradients: with respect to the texels, of any order, in forward and reverse mode.

    Raises:
        ValueError: if texels are neither floating nor complex, or there cannot be that many levels.
        TypeError: if `texture` is not a `Texture`.

    Source: the level sizes are those of `cudaMallocMipmappedArray`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> texture = jt.build_mipmaps(jt.texture1d(np.arange(5.0)[:, None]))
        >>> [level[:, 0].tolist() for level in texture.levels]
        [[0.0, 1.0, 2.0, 3.0, 4.0], [0.800000011920929, 3.200000047683716], [2.0]]
    """
    check_texture("build_mipmaps", texture)
    if not jnp.issubdtype(texture.dtype, jnp.inexact):
        raise ValueError(
            f"build_mipmaps: texture holds {texture.dtype}, expected floating texels, which have means; convert them "
            "with astype, or pass your own levels to the constructor."
        )
    num_levels = None if num_levels is None else as_integer("build_mipmaps", "num_levels", num_levels, 1)
    shapes = chain_shapes(texture.kind, texture.shape, num_levels, "build_mipmaps", "num_levels")
    return with_levels(texture, num_levels=len(shapes))


@typed_jit("num_levels")
def with_levels(texture: Texture, *, num_levels: int) -> Texture:
    """The texture with a chain of that many levels. If the finest is sharded, so are the other large ones."""
    if is_complex(texture.dtype):
        return by_parts(with_levels, texture, num_levels=num_levels)
    finest, ndim = texture.levels[0], texture.kind.texel_ndim
    shapes = chain_shapes(texture.kind, texture.shape, num_levels, "build_mipmaps", "num_levels")
    found = cut_chain_of(finest, shapes, ndim) if num_levels > 1 else None
    if found is not None:
        chain, names = found
        texels = in_parts(finest, shapes, chain, names, ndim)
        return Texture(texels, texture.border_color, texture.kind, tuple(shapes), chain)
    placed = explicit_sharding(finest)
    if placed is not None and is_sharded(finest):
        from ._engine.sharded.access import report_whole, struct_of

        report_whole(struct_of(finest))
    if num_levels == 1:
        return packed(texture.kind, [everywhere(finest)], texture.border_color)
    texels = mip_chain(everywhere(finest), ndim, num_levels)
    return Texture(texels, texture.border_color, texture.kind, tuple(shapes))


def cut_chain_of(finest: jax.Array, shapes: Sequence[tuple[int, ...]], ndim: int) -> tuple[Cut, tuple[str, ...]] | None:
    """How a chain is sharded if its finest level is sharded along one axis, and over which axes of the mesh."""
    placed = explicit_sharding(finest)
    if placed is None or not is_sharded(finest):
        return None
    names = names_of(placed)
    cut = [d for d, along in enumerate(names) if along]
    if len(cut) != 1 or cut[0] == finest.ndim - 1:
        return None
    (dimension,) = cut
    shrinks = dimension >= finest.ndim - 1 - ndim
    chain = Cut.of(shapes, dimension, parts_of(placed, names[dimension]), shrinks)
    return None if chain is None else (chain, names[dimension])


def in_parts(
    finest: jax.Array, shapes: Sequence[tuple[int, ...]], chain: Cut, names: tuple[str, ...], ndim: int
) -> jax.Array:
    """The texels of a chain as devices store them. Only a small level is gathered."""

    def gathered(part: jax.Array) -> jax.Array:
        return cast(jax.Array, jax.lax.all_gather(part, names, axis=chain.dimension, tiled=True))  # pyright: ignore

    def on_device(part: jax.Array) -> jax.Array:
        levels = [part]
        for level in range(1, len(shapes)):
            before, expected = levels[-1], chain.part_shape(level, shapes[level])
            if level == chain.num_cut:
                halves = before.shape[chain.dimension] % 2 == 0 or chain.dimension < before.ndim - 1 - ndim
                levels.append(gathered(next_of(before, ndim)) if halves else next_of(gathered(before), ndim))
            else:
                levels.append(next_of(before, ndim))
            assert levels[-1].shape == expected
        return jnp.concatenate([level.reshape(-1, level.shape[-1]) for level in levels])

    mesh = jax.typeof(finest).sharding.mesh
    spec = PartitionSpec(*(names if d == chain.dimension else None for d in range(finest.ndim)))
    return jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=PartitionSpec(names))(finest)


def next_level(texture: Texture) -> Texture:
    """The second level of a texture's chain as a texture of its own."""
    finest, ndim = texture.levels[0], texture.kind.texel_ndim
    shapes = chain_shapes(texture.kind, texture.shape, 2, "build_mipmaps")
    finest = finest if cut_chain_of(finest, shapes, ndim) is not None else everywhere(finest)
    return packed(texture.kind, [halved(finest, ndim)], texture.border_color)


@public
def footprint(f: Callable[..., Sequence[ArrayLike]], coords: Sequence[ArrayLike]) -> tuple[Arrays, ...]:
    """Returns the footprint of a coordinate function: its derivatives along each axis of the output.

    Args:
        f: maps arrays ``x, y`` (or ``x, y, z``) to a tuple of texture coordinates, elementwise, as in
            ``sample(texture, f(x, y))``.
        coords: ``(x, y)`` or ``(x, y, z)``, arrays that broadcast: pixels of the output. A step of 1 is one pixel.
            `f` receives them in float32, or in float64 if one of them is float64.

    Returns:
        ``(ddx, ddy)``, or ``(ddx, ddy, ddz)`` for three coordinates, as `sample` takes them: tuples of arrays like the
        coordinates that `f` returns.

    Gradients: those of `jax.jvp`.

    Raises:
        TypeError: if `coords` is not a tuple of two or three arrays.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> half_size = lambda x, y: (x / 32, y / 16)
        >>> jt.footprint(half_size, (np.arange(2.0), 0.0))[0][0]
        Array([0.03125, 0.03125], dtype=float32)
    """
    check_function("footprint", "f", f)
    if not isinstance(coords, tuple | list) or len(coords) not in (2, 3):
        came = f"{len(coords)} arrays" if isinstance(coords, tuple | list) else f"a {type(coords).__name__}"
        raise TypeError(f"footprint: coords is {came}, expected a tuple (x, y) or (x, y, z) of arrays.")
    arrays = [as_float(c) for c in coords]
    dtype = sum_dtype(*(c.dtype for c in arrays))
    return along_axes(f, [c.astype(dtype) for c in arrays])


def along_axes(f: Callable[..., Sequence[ArrayLike]], coords: Sequence[jax.Array]) -> tuple[Arrays, ...]:
    """The derivatives of a coordinate function along each of its coordinates."""

    def function(*arrays: jax.Array) -> Arrays:
        return tuple(jnp.asarray(c) for c in f(*arrays))

    return tuple(jax.jvp(function, tuple(coords), step)[1] for step in unit_steps(*coords))


@typed_jit()
def unit_steps(*coords: jax.Array) -> list[Arrays]:
    """For each coordinate, the tangents of all for a step of 1 along it."""
    return [
        tuple(jnp.ones_like(c) if j == k else jnp.zeros_like(c) for j, c in enumerate(coords))
        for k in range(len(coords))
    ]
