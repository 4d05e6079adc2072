"""Pictures of everything around a point: on the six faces of a cube, or by longitude and latitude.

Directions are ``(x, y, z)``: x to the right, y up and z ahead, as in `cubemap`. In the equirectangular picture, of H by
W pixels, a point (u, v) has the longitude ``atan2(x, z) = 2 pi (u / W - 1/2)`` and the latitude ``atan2(y, sqrt(x^2 +
z^2)) = pi (1/2 - v / H)``.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._tables.storage_formats import sum_dtype
from ..mipmaps import build_mipmaps
from ..modes import AddressMode
from ..sampler import Sampler
from ..sampling import sample
from ..texture import cubemap
from .calls import compiled
from .grids import Arrays, alike, field
from .images import as_blended, as_numbers, check_image, stored, warp_image
from .options import ReadOptions, resolve_sampler
from .shapes import spatial_shape

# The vectors along s, along t, and outward, of each face.
FACE_AXES = np.array(
    [
        [(0, 0, -1), (0, -1, 0), (1, 0, 0)],
        [(0, 0, 1), (0, -1, 0), (-1, 0, 0)],
        [(1, 0, 0), (0, 0, 1), (0, 1, 0)],
        [(1, 0, 0), (0, 0, -1), (0, -1, 0)],
        [(1, 0, 0), (0, -1, 0), (0, 0, 1)],
        [(-1, 0, 0), (0, -1, 0), (0, 0, -1)],
    ]
)
# How many rows beyond a pole the widest filter reads.
CUBIC_REACH = 2


@compiled("size", "sampler", "filter", "antialias", "dtype")
def equirectangular_to_cubemap(
    image: Any,
    size: int,
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """The six faces of a cube from a picture by longitude and latitude.

    Args:
        image: ``(..., H, W, C)``, of any floating or integer dtype; leading axes are batches. Its columns go once round
            the horizon, its rows from straight up to straight down. In the middle is the direction ahead, +z, as seen
            from inside: to the right of it +x, and at the left and right edge what lies behind, -z.
        size: N, the width and height of a face.
        filter: ``"linear"`` unless `sampler` has another, ``"point"`` or ``"cubic"``.
        sampler: a whole `Sampler`. Its address modes and `normalized_coords` are not used: the picture closes at its
            left and right edge, and goes on beyond a pole half a turn away.
        antialias: whether to smooth the image as far as the faces shrink it, see `resample`. Towards the poles the
            picture is stretched in longitude, and one level for both directions blurs what is straight up and down;
            ``Sampler(max_anisotropy=16)`` does not.
        dtype: of the result; the default is that of the image.

    Returns:
        ``(..., 6, N, N, C)``, faces in the order and orientation of `cubemap`.

    Gradients: to the image, to any order in both modes; see `resample`.

    Raises:
        ValueError: if the shape of the image or `size` does not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> sky_and_ground = jnp.array([[1.0], [0.0]])[:, None] * jnp.ones((2, 4, 1))
        >>> jt.warp.equirectangular_to_cubemap(sky_and_ground, 1, filter="point").ravel()
        Array([0., 0., 1., 0., 0., 0.], dtype=float32)
    """
    name = "equirectangular_to_cubemap"
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"{name}: size is {size!r}, expected an int of at least 1.")
    height, width = spatial_shape(name, image, None, 2)
    rows = height // 2 if antialias else min(CUBIC_REACH, height)
    image = jnp.asarray(image)
    check_image(name, image, 2)
    closed = dataclasses.replace(resolve_sampler(name, sampler, filter, None), address_mode=("wrap", "clamp"))
    image, options, result = as_numbers(image, ReadOptions(closed, None, antialias, dtype))
    sizes = constants(image, size, width, height, rows)
    # The faces one below the other are an image of 6 N rows.
    shape = (6 * size, size)
    sides = None
    if antialias:
        # Around a pole the two sides of a pixel point the same way, along the longitude, and the pixel is shorter than
        # both. Its extents in longitude and latitude are sides that show it.
        _, (ddx, ddy) = field(lambda x, y: to_equirectangular(*alike(x, y, *sizes)), shape, True)
        along_u, along_v = (jnp.sqrt(a * a + b * b) for a, b in zip(ddx, ddy))
        sides = (along_u, jnp.zeros_like(along_u)), (jnp.zeros_like(along_v), along_v)
    options = dataclasses.replace(options, dtype=result)
    tall = warp_image(name, beyond_poles(image, rows), to_equirectangular, sizes, shape, options, sides)
    return tall.reshape(*tall.shape[:-3], 6, size, size, tall.shape[-1])


@compiled("output_shape", "sampler", "filter", "antialias", "dtype")
def cubemap_to_equirectangular(
    faces: Any,
    output_shape: Sequence[int],
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """A picture by longitude and latitude from the six faces of a cube: the inverse of `equirectangular_to_cubemap`.

    Args:
        faces: ``(..., 6, N, N, C)``, of any floating or integer dtype, in the order and orientation of `cubemap`;
            leading axes are batches.
        output_shape: ``(H, W)``, in which directions lie as in `equirectangular_to_cubemap`. W = 2 H makes pixels
            square at the horizon.
        filter: ``"linear"`` unless `sampler` has another, or ``"point"``; ``"cubic"`` needs a sampler with
            ``seamless_cubemap=False``.
        sampler: a whole `Sampler`. Its address modes hold with ``seamless_cubemap=False`` only.
        antialias: whether to smooth the faces as far as the picture shrinks them, see `resample`.
        dtype: of the result; the default is that of the faces.

    Returns:
        ``(..., H, W, C)``.

    Gradients: to the faces, to any order in both modes; see `resample`.

    Raises:
        ValueError: if a shape does not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> faces = jnp.broadcast_to(jnp.arange(6.0)[:, None, None, None], (6, 4, 4, 1))
        >>> jt.warp.cubemap_to_equirectangular(faces, (3, 4), filter="point")[..., 0]
        Array([[2., 2., 2., 2.],
               [5., 4., 4., 5.],
               [3., 3., 3., 3.]], dtype=float32)
    """
    name = "cubemap_to_equirectangular"
    faces = jnp.asarray(faces)
    if faces.ndim < 4 or faces.shape[-4] != 6 or faces.shape[-3] != faces.shape[-2]:
        raise ValueError(f"{name}: faces has shape {faces.shape}, expected (..., 6, N, N, C), six square faces.")
    check_image(name, faces, 3)
    shape = spatial_shape(name, faces, output_shape, 2)
    sampler = resolve_sampler(name, sampler, filter, None, AddressMode.CLAMP)
    faces, options, result = as_numbers(faces, ReadOptions(sampler, None, antialias, dtype))
    faces, sampler, scale = as_blended(faces, options.sampler, antialias)
    sizes = constants(faces, *shape[::-1])
    direction, sides = field(lambda u, v: to_direction(*alike(u, v, *sizes)), shape, antialias)

    def read(faces: jax.Array) -> jax.Array:
        if sides is None:
            return sample(cubemap(faces), direction, sampler)
        trilinear = dataclasses.replace(sampler, mipmap_filter_mode="linear")
        return sample(build_mipmaps(cubemap(faces)), direction, trilinear, ddx=sides[0], ddy=sides[1])

    for _ in range(faces.ndim - 4):
        read = jax.vmap(read)
    return stored(read(faces) * scale, result)


def constants(image: jax.Array, *sizes: int) -> list[jax.Array]:
    """Sizes as parameters of coordinate functions, which compute in float64 for an image in float64."""
    return [jnp.full((1, 1), n, sum_dtype(image.dtype)) for n in sizes]


def beyond_poles(image: jax.Array, rows: int) -> jax.Array:
    """A picture by longitude and latitude with more rows on both sides: what lies beyond a pole, half a turn away."""
    half, odd = divmod(image.shape[-2], 2)
    turned = jnp.roll(image, half, -2)
    if odd:
        wide = jnp.float32 if jnp.issubdtype(image.dtype, jnp.integer) else image.dtype
        turned = stored((turned.astype(wide) + jnp.roll(image, half + 1, -2).astype(wide)) * 0.5, image.dtype)
    height = image.shape[-3]
    above = jax.lax.slice_in_dim(turned, 0, rows, axis=-3)
    below = jax.lax.slice_in_dim(turned, height - rows, height, axis=-3)
    return jnp.concatenate([jnp.flip(above, -3), image, jnp.flip(below, -3)], -3)


# Coordinate functions, element by element


def to_equirectangular(
    x: jax.Array, y: jax.Array, size: jax.Array, width: jax.Array, height: jax.Array, rows: jax.Array
) -> Arrays:
    """From six faces, one below the other, to the picture by longitude and latitude with `rows` beyond the poles."""
    face = jnp.floor(y / size)
    s, t = 2 * x / size - 1, 2 * (y / size - face) - 1
    x, y, z = on_cube(face, s, t)
    level = x * x + z * z
    pole = level == 0
    # At a pole every longitude will do. For its derivative, which is infinite, stands that half a pixel away.
    longitude = jnp.arctan2(x, jnp.where(pole, 1 / size, z))
    from_zenith = jnp.arctan2(jnp.where(pole, 0, jnp.sqrt(jnp.where(pole, 1, level))), y)
    return width * (0.5 + longitude * (0.5 / np.pi)), height * (from_zenith * (1 / np.pi)) + rows


def on_cube(face: jax.Array, s: jax.Array, t: jax.Array) -> Arrays:
    """The direction of a point of a face."""

    def component(axis: int) -> jax.Array:
        first, *others = (a * s + b * t + c for a, b, c in FACE_AXES[..., axis].tolist())
        return functools.reduce(lambda found, k: jnp.where(face == k, others[k - 1], found), range(1, 6), first)

    return component(0), component(1), component(2)


def to_direction(x: jax.Array, y: jax.Array, width: jax.Array, height: jax.Array) -> Arrays:
    """The direction of a pixel of the picture by longitude and latitude."""
    longitude, latitude = (x / width - 0.5) * (2 * np.pi), (0.5 - y / height) * np.pi
    level = jnp.cos(latitude)
    return level * jnp.sin(longitude), jnp.sin(latitude), level * jnp.cos(longitude)
