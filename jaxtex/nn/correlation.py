"""Correlations of all pairs of pixels of two feature maps: the pyramid, and lookups in it."""

import functools
import math
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float, as_integer, is_integer
from .._checks.words import shown
from .._engine.api import Layout, Read, concatenated, plan_of_grid
from .._jax.indexing import explicit_sharding, reshaped
from .._tables.storage_formats import rounded_dtype, sum_dtype
from ..modes import TextureKind
from ..sampler import Sampler
from ..warp.coordinate_functions import displaced
from .shapes import as_features, check_shape, check_texels

ZEROS = Sampler(address_mode="border", normalized_coords=False)


@public(compiled=True)
def correlation_pyramid(first: ArrayLike, second: ArrayLike, levels: int = 4) -> tuple[jax.Array, ...]:
    """Returns the dot products of all pairs of pixels of two feature maps, as a pyramid over the second map.

    Args:
        first, second: ``(B, H, W, C)``, of the same floating dtype; only height and width may differ.
        levels: the number of levels, static. Each level halves the height and width of the one before, rounded down.

    Returns:
        For each level ``(B, H, W, H_l, W_l)``: the dot products divided by ``sqrt(C)``; from the second level on, means
        over blocks of 2 x 2 of the level before. A last odd row or column is dropped, as PyTorch's `avg_pool2d` drops
        it.

    Gradients: of any order, in forward and reverse mode, with respect to both maps.

    Precision: that of a matrix product in JAX, see `jax.default_matmul_precision`; sums are in float32 at least.

    Raises:
        ValueError: if shapes do not fit, or a level would be empty.

    Source: Z. Teed and J. Deng, "RAFT", 2020; `CorrBlock` of its reference code.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> pyramid = jt.nn.correlation_pyramid(np.ones((1, 4, 6, 16)), np.ones((1, 4, 6, 16)), levels=2)
        >>> [level.shape for level in pyramid], float(pyramid[1][0, 0, 0, 0, 0])
        ([(1, 4, 6, 4, 6), (1, 4, 6, 2, 3)], 4.0)
    """
    name = "correlation_pyramid"
    maps = [as_features(name, key, a, "(B, H, W, C)") for key, a in (("first", first), ("second", second))]
    one, other = maps
    check_shape(name, "second", other, (one.shape[0], *other.shape[1:3], one.shape[3]), "batch and channels of first")
    if other.dtype != one.dtype:
        raise ValueError(f"{name}: second has dtype {other.dtype}, expected {one.dtype}, that of first.")
    most = min(other.shape[1:3]).bit_length()
    if not is_integer(levels, 1, most):
        raise ValueError(
            f"{name}: levels is {shown(levels)}, expected an integer from 1 to {most} for a second map of shape "
            f"{other.shape}."
        )
    sums = sum_dtype(one.dtype, other.dtype)
    product = jnp.einsum("bhwc,bijc->bhwij", one, other, preferred_element_type=sums)
    volumes = [product / jnp.sqrt(jnp.asarray(max(one.shape[3], 1), sums))]
    for _ in range(levels - 1):
        volumes.append(halved(volumes[-1]))
    return tuple(volume.astype(one.dtype) for volume in volumes)


def halved(volume: jax.Array) -> jax.Array:
    """The means over blocks of 2 x 2 of the last two axes."""
    *front, height, width = volume.shape
    blocks = volume[..., : height // 2 * 2, : width // 2 * 2]
    blocks = reshaped(blocks, (*front, height // 2, 2, width // 2, 2))
    return (blocks * 0.25).sum((-3, -1))  # the sum of four large numbers would be infinite


@public(compiled=True)
def correlation_lookup(pyramid: Sequence[ArrayLike], coords: ArrayLike, radius: int = 4) -> jax.Array:
    """Reads, for each pixel and level, a window of the pixel's correlations around a point.

    Args:
        pyramid: for each level k an array ``(B, H, W, H_k, W_k)``, floating, as `correlation_pyramid` returns them.
        coords: ``(B, H, W, 2)``, x first: the point for each pixel, in pixels of level 0. The center of the first pixel
            is at 0, not at 0.5 as elsewhere in jaxtex. In level k the point is at ``coords / 2**k``.
        radius: the radius of the window, static: reads are at offsets from -radius to radius, in pixels of their level.

    Returns:
        ``(B, H, W, L * (2 radius + 1)^2)`` in the dtype of `pyramid`, in RAFT's order of channels: level by level, and
        within a level the offset along x varies slowest. Channel ``i (2 radius + 1) + j`` is at
        ``(x + i - radius, y + j - radius)``. (The weights of RAFT's code and of torchvision fit this order.) Pixels
        outside are zero.

    Gradients: of any order, in forward and reverse mode, with respect to `pyramid` and `coords`. At the center of a
        pixel the slope is the one on the right.

    Raises:
        ValueError: if shapes do not fit each other.

    Source: Z. Teed and J. Deng, "RAFT", 2020; `CorrBlock` of its reference code, and torchvision's. Both divide by zero
        at a level that is one pixel wide or high; this function reads it like any other.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> volume = np.arange(9.0).reshape(1, 1, 1, 3, 3)
        >>> jt.nn.correlation_lookup([volume], np.array([[[[1.0, 1.0]]]]), radius=1)[0, 0, 0]
        Array([0., 3., 6., 1., 4., 7., 2., 5., 8.], dtype=float32)
    """
    name = "correlation_lookup"
    radius = as_integer(name, "radius", radius, 0)
    levels = cast(Sequence[Any], pyramid) if isinstance(pyramid, tuple | list) else ()
    if not levels:
        raise ValueError(f"{name}: pyramid is {type(pyramid).__name__}, expected a sequence of at least one level.")
    axes = "(B, H, W, H_k, W_k)"
    volumes = [as_features(name, f"pyramid[{k}]", volume, axes) for k, volume in enumerate(levels)]
    front, dtype = volumes[0].shape[:3], volumes[0].dtype
    for k, volume in enumerate(volumes):
        check_shape(name, f"pyramid[{k}]", volume, (*front, *volume.shape[3:]), f"{axes}, B, H and W of all levels")
        check_texels(name, f"pyramid[{k}]", volume, volume.shape[3:])
    points = as_float(coords)
    check_shape(name, "coords", points, (*front, 2), "(B, H, W, 2), x first")
    points = points.astype(sum_dtype(dtype, points.dtype))
    arrays, read = (points, *volumes), functools.partial(windows, radius=radius)
    placed = pixel_sharding(arrays)
    if placed is not None:
        arrays = [jax.reshard(a, placed) for a in arrays]
        read = jax.shard_map(read, mesh=placed.mesh, in_specs=placed.spec, out_specs=placed.spec)
    return read(*arrays).astype(dtype)


def pixel_sharding(arrays: Sequence[jax.Array]) -> NamedSharding | None:
    """How B, H and W are divided over devices under explicit mesh axes, if any is."""
    for array in arrays:
        placed = explicit_sharding(array, lambda spec: tuple(spec)[:3])
        if placed is not None and any(placed.spec):
            return placed
    return None


def windows(points: jax.Array, *volumes: jax.Array, radius: int) -> jax.Array:
    """The windows of all levels around points (B, H, W, 2), side by side: (B, H, W, L * (2 radius + 1)^2)."""
    front, count = points.shape[:3], math.prod(points.shape[:3])
    offsets = jnp.arange(-radius, radius + 1, dtype=jnp.int32).astype(points.dtype)
    # Offsets of x stand along rows.
    across, down = offsets[None, :, None], offsets[None, None, :]
    reads = list[tuple[jax.Array, Read, int]]()
    for k, volume in enumerate(volumes):
        x, y = (reshaped(points[..., axis], (count, 1, 1)) / 2**k + 0.5 for axis in range(2))
        images = reshaped(volume, (count, *volume.shape[3:], 1))
        layout, dtype = Layout(TextureKind.TEXTURE2D, images.shape[1:]), rounded_dtype(volume.dtype, points.dtype)
        read = plan_of_grid(layout, displaced, (x, y, across, down), ZEROS, dtype)
        reads.append((images, read, 1))
    return reshaped(concatenated(reads, 1), (*front, len(reads) * len(offsets) ** 2))
