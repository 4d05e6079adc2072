"""Mip chains: how they are built, which level a footprint asks for, and the reads along a long one."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._arguments import check_texture
from ._engine.axis import Axis, Role
from ._engine.coordinates import Arrays, limited
from ._engine.formats import sum_dtype
from ._engine.taps import LEVEL_BLEND, NEAREST_LEVEL
from .modes import AddressMode, FilterMode
from .sampler import Sampler
from .texture import Texture, chain_shapes, packed


def build_mipmaps(texture: Texture, num_levels: int | None = None) -> Texture:
    """The texture with a mip chain: each level is the box-filtered half of the one before.

    A texel of a level is the mean of the texels below it. Where a size n is odd, the next is ``m = n >> 1`` and a
    texel covers n / m of them, the outer ones in part. Layers and faces are not mixed.

    Args:
        texture: of any kind with floating texels. Of a chain the finest level is taken.
        num_levels: how many levels, the finest included; the default is all, down to one texel.

    Returns:
        A `Texture` of the same kind, dtype and border colour. Means are taken in float32, or float64 for float64
        texels, and rounded level by level.

    Gradients: to the texels, any order, both modes.

    Raises:
        ValueError: if texels are integers, or there cannot be that many levels.

    Source: the sizes are those of `cudaMallocMipmappedArray`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> texture = jt.build_mipmaps(jt.texture1d(jnp.arange(5.0)[:, None]))
        >>> [level[:, 0].tolist() for level in texture.levels]
        [[0.0, 1.0, 2.0, 3.0, 4.0], [0.800000011920929, 3.200000047683716], [2.0]]
    """
    check_texture("build_mipmaps", texture)
    if not jnp.issubdtype(texture.dtype, jnp.floating):
        raise ValueError(
            f"build_mipmaps: texture holds {texture.dtype}, expected floating texels, which have means; convert them "
            f"with astype, or pass your own levels to the constructor."
        )
    if num_levels is not None and not isinstance(num_levels, int):
        raise ValueError(f"build_mipmaps: num_levels is {num_levels!r}, expected an int, or None for all levels.")
    shapes = chain_shapes(texture.kind, texture.shape, num_levels, "build_mipmaps", "num_levels")
    levels = [texture.levels[0]]
    for _ in shapes[1:]:
        # Without the barrier, XLA computes each level again from the finest for every texel of the packed chain.
        levels.append(jax.lax.optimization_barrier(halved(levels[-1], texture.kind.texel_ndim)))
    return packed(texture.kind, levels, texture.border_color)


def halved(texels: jax.Array, ndim: int) -> jax.Array:
    """One level from the one before: the box filter along each of the last `ndim` axes before the channels."""
    result = texels.astype(sum_dtype(texels.dtype))
    for axis in range(-1 - ndim, -1):
        result = halved_along(result, result.ndim + axis)
    return result.astype(texels.dtype)


def halved_along(texels: jax.Array, axis: int) -> jax.Array:
    n = texels.shape[axis]
    m = n >> 1
    if m == 0:
        return texels
    every = lambda first: jax.lax.slice_in_dim(texels, first, first + 2 * m - 1, 2, axis)
    if n == 2 * m:
        return (every(0) + every(1)) * 0.5
    # Texel i covers [i n / m, (i + 1) n / m): of 2i all but i / m, 2i + 1 whole, of 2i + 2 the first (i + 1) / m.
    along = np.arange(m).reshape(-1, *[1] * (texels.ndim - 1 - axis)) / m
    first, third = (jnp.asarray(w * (m / n), texels.dtype) for w in (1 - along, along + 1 / m))
    shape = [1] * axis + list(first.shape)
    return every(0) * first.reshape(shape) + every(1) * (m / n) + every(2) * third.reshape(shape)


def footprint(f: Callable[..., Any], coords: tuple[Any, ...]) -> tuple[Arrays, Arrays]:
    """The footprint of a coordinate function: its derivatives along x and along y, for ``ddx`` and ``ddy``.

    Args:
        f: maps arrays ``x, y`` to a tuple of texture coordinates, elementwise, as in ``sample(texture, f(x, y))``.
        coords: ``(x, y)``, arrays that broadcast: pixels of the output. A step of 1 in them is one pixel.

    Returns:
        ``(ddx, ddy)``, two tuples of arrays like the coordinates that `f` returns.

    Gradients: those of `jax.jvp`.

    Raises:
        TypeError: if `coords` is not a tuple of two arrays.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> half_size = lambda x, y: (x / 32, y / 16)
        >>> jt.footprint(half_size, (jnp.arange(2.0), 0.0))[0][0]
        Array([0.03125, 0.03125], dtype=float32)
    """
    if not isinstance(coords, tuple | list) or len(coords) != 2:
        raise TypeError(f"footprint: coords is a {type(coords).__name__}, expected a tuple (x, y) of two arrays.")
    x, y = (jnp.asarray(c) if jnp.issubdtype(jnp.asarray(c).dtype, jnp.floating) else jnp.float32(c) for c in coords)
    ddx, ddy = along_axes(f, (x, y))
    return ddx, ddy


def along_axes(f: Callable[..., Any], coords: Sequence[jax.Array]) -> tuple[Arrays, ...]:
    """The derivatives of a coordinate function along each of its coordinates."""
    steps = (
        tuple(jnp.ones_like(c) if j == k else jnp.zeros_like(c) for j, c in enumerate(coords))
        for k in range(len(coords))
    )
    return tuple(jax.jvp(lambda *c: tuple(f(*c)), tuple(coords), step)[1] for step in steps)


def level_axis(num_levels: int, sampler: Sampler) -> Axis:
    """The axis that stands in front of all others where a read chooses its level."""
    taps = LEVEL_BLEND if sampler.mipmap_filter_mode is FilterMode.LINEAR else NEAREST_LEVEL
    return Axis(num_levels, taps, AddressMode.CLAMP, role=Role.LEVEL)


def biased(lod: jax.Array, sampler: Sampler) -> jax.Array:
    """A level of detail that was asked for, with the bias; NaN acts as 0."""
    return jnp.where(lod == lod, lod, 0) + sampler.mipmap_level_bias


def clamped(lod: jax.Array, sampler: Sampler, num_levels: int) -> jax.Array:
    """A level of detail within the bounds of the sampler, of which the lower wins, and of the chain."""
    for low, high in (
        (sampler.min_mipmap_level_clamp, sampler.max_mipmap_level_clamp),
        (0, num_levels - 1),
    ):
        lod = jnp.where(lod < high, lod, lod.dtype.type(high))  # at the bound the slope to the right: 0
        lod = jnp.where(lod < low, lod.dtype.type(low), lod)
    return lod


def level_of_detail(ddx: Arrays, ddy: Arrays, max_anisotropy: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What a footprint asks for: its level of detail, how many reads, and whether they lie along `ddx`.

    With rho the length of a side, ``eta = min(rho_max / rho_min, max_anisotropy)``: ceil(eta) reads of level
    ``log2(rho_max / eta)``. All in squares, so that no root stands at zero.

    Args:
        ddx, ddy: the sides of the footprint, in texels of the finest level, with squares that are finite.

    Source: Vulkan specification, "Scale Factor Operation, LOD Operation and Image Level(s) Selection".
    """
    square = lambda sides: functools.reduce(jnp.add, map(jnp.square, sides))
    along_x, along_y = square(ddx), square(ddy)
    x_longer = along_x > along_y
    longer, shorter = jnp.where(x_longer, along_x, along_y), jnp.where(x_longer, along_y, along_x)
    meant = longer > 0
    half_log2 = lambda x: jnp.log2(jnp.where(meant, x, 1)) * 0.5
    lod = half_log2(longer)
    reads = jnp.ones_like(lod)
    if max_anisotropy > 1:
        bounded = longer < shorter * max_anisotropy**2
        ratio = jnp.where(meant & bounded, longer, 1) / jnp.where(meant & bounded, shorter, 1)
        eta = jnp.where(bounded, jnp.sqrt(ratio), max_anisotropy)
        lod, reads = lod - jnp.log2(eta), jnp.where(meant, jnp.ceil(eta), 1)
    return jnp.where(meant, lod, lod.dtype.type(-np.inf)), reads, x_longer


def along_footprint(coords: Arrays, side: Arrays, reads: jax.Array, number: jax.Array) -> tuple[Arrays, jax.Array]:
    """The coordinates of one of the reads along the longer side of a footprint, counted from 1, and its weight."""
    taken = number <= reads
    offset = jnp.where(taken, number / (reads + 1) - 0.5, 0)
    return tuple(c + offset * limited(d) for c, d in zip(coords, side)), jnp.where(taken, 1 / reads, 0)
