"""Panoramas, which show all directions around a point: six faces of a cube, and equirectangular images.

Directions are ``(x, y, z)``: x to the right, y up and z ahead, as in `cubemap`. The point (u, v) of an equirectangular
image of H by W pixels has the longitude ``atan2(x, z) = 2 pi (u / W - 1/2)`` and the latitude ``atan2(y, sqrt(x^2 +
z^2)) = pi (1/2 - v / H)``, both in radians.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_array, as_integer
from .._jax.primitives import mean_of_pair
from .._tables.storage_formats import Decoding, sum_dtype
from ..mipmaps import build_mipmaps
from ..modes import AddressMode, Arithmetic, TextureKind
from ..sampler import FilterModeLike, Sampler, check_sampler
from ..sampling import sample
from ..texture import cubemap
from .coordinate_functions import Arrays, aligned, coordinates
from .images import as_blended, as_numbers, check_image, converted, warp_image
from .options import ShapeLike, read_options, spatial_shape

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
# The least number of rows added beyond a pole: the reach of a cubic filter.
CUBIC_REACH = 2


@public(compiled=True)
def equirectangular_to_cubemap(
    image: ArrayLike,
    size: int,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Converts equirectangular images to the six faces of a cube.

    Args:
        image: ``(..., H, W, C)``, of any floating or integer dtype or bool; leading axes are batches. The columns are
            longitudes, once around the horizon; the rows are latitudes, from straight up to straight down. As seen from
            inside, the direction ahead, +z, is in the middle, +x to the right of it, and -z at both edges.
        size: N, the width and height of a face.
        sampler: a `Sampler`. Its address modes and `normalized_coords` are ignored: the image wraps around at its left
            and right edges, and continues beyond a pole half a turn away.
        filter_mode: a `FilterMode`. The default is that of `sampler`, or linear.
        antialias: whether to smooth the image as much as the faces shrink it, see `resample`. Towards the poles the
            image is stretched along the longitude. Reads with one level of detail blur the regions straight up and
            down; ``Sampler(max_anisotropy=16)`` prevents this.
        dtype: the dtype of the result; by default that of the image.

    Returns:
        ``(..., 6, N, N, C)``, the faces in the order and orientation of `cubemap`.

    Gradients: of any order, as in `resample`, with respect to the image.

    Raises:
        ValueError: if the shape of the image or `size` does not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> sky_and_ground = np.array([[1.0], [0.0]])[:, None] * np.ones((2, 4, 1))
        >>> jt.warp.equirectangular_to_cubemap(sky_and_ground, 1, filter_mode="point").ravel()
        Array([0., 0., 1., 0., 0., 0.], dtype=float32)
    """
    name = "equirectangular_to_cubemap"
    size = as_integer(name, "size", size, 1)
    height, width = spatial_shape(name, image, None, 2)
    pixels = jnp.asarray(image)
    check_image(name, pixels, 2)
    options, rows = read_options(name, sampler, filter_mode, None, None, antialias, dtype), 0
    if width % 2 == 0 and options.sampler.arithmetic is Arithmetic.FLOAT:
        options = options.with_sampler(address_mode="sphere")
    else:  # an odd width, or hardware arithmetic
        options = options.with_sampler(address_mode=("wrap", "clamp"))
        rows = height // 2 if antialias else min(max(options.kernel.reach, CUBIC_REACH), height)
    pixels, options = as_numbers(pixels, options)
    sizes = constants(pixels, size, width, height, rows)
    # The faces, one below the other, form an image of 6 N rows.
    shape, footprint = (6 * size, size), None
    if antialias:

        def to_points(x: jax.Array, y: jax.Array) -> Arrays:
            return to_equirectangular(*aligned(x, y, *sizes))

        _, sides = coordinates(to_points, shape, True, pixels.dtype)
        assert sides is not None
        # Near a pole both sides of a footprint point along the longitude, and the footprint is much thinner than
        # either. The extents in longitude and latitude are sides of a rectangle that contains it.
        along_u, along_v = (jnp.sqrt(a * a + b * b) for a, b in zip(*sides))
        footprint = (along_u, jnp.zeros_like(along_u)), (jnp.zeros_like(along_v), along_v)
    pixels = beyond_poles(pixels, rows) if rows else pixels
    tall = warp_image(name, pixels, to_equirectangular, sizes, shape, options, footprint)
    return tall.reshape(*tall.shape[:-3], 6, size, size, tall.shape[-1])


@public(compiled=True)
def cubemap_to_equirectangular(
    faces: ArrayLike,
    output_shape: ShapeLike,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Converts the six faces of a cube to equirectangular images: the inverse of `equirectangular_to_cubemap`.

    Args:
        faces: ``(..., 6, N, N, C)``, of any floating or integer dtype or bool, in the order and orientation of
            `cubemap`; leading axes are batches.
        output_shape: ``(H, W)``, with directions as in `equirectangular_to_cubemap`. With W = 2 H, pixels at the
            horizon are square.
        sampler: a `Sampler`. Its address modes apply with ``seamless_cubemap=False`` only.
        filter_mode: ``"linear"`` or ``"point"``, a `FilterMode`; ``"cubic"`` with ``seamless_cubemap=False`` only. The
            default is that of `sampler`, or linear.
        antialias: whether to smooth the faces as much as the result shrinks them, see `resample`.
        dtype: the dtype of the result; by default that of the faces.

    Returns:
        ``(..., H, W, C)``.

    Gradients: of any order, as in `resample`, with respect to the faces.

    Raises:
        ValueError: if a shape does not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> faces = np.broadcast_to(np.arange(6.0)[:, None, None, None], (6, 4, 4, 1))
        >>> jt.warp.cubemap_to_equirectangular(faces, (3, 4), filter_mode="point")[..., 0]
        Array([[2., 2., 2., 2.],
               [5., 4., 4., 5.],
               [3., 3., 3., 3.]], dtype=float32)
    """
    name = "cubemap_to_equirectangular"
    texels = jnp.asarray(as_array(faces))
    if texels.ndim < 4 or texels.shape[-4] != 6 or texels.shape[-3] != texels.shape[-2]:
        raise ValueError(f"{name}: faces has shape {texels.shape}, expected (..., 6, N, N, C), six square faces.")
    check_image(name, texels, 3, "faces")
    shape = spatial_shape(name, texels, output_shape, 2, "faces")
    options = read_options(name, sampler, filter_mode, None, None, antialias, dtype, AddressMode.CLAMP)
    texels, options = as_numbers(texels, options)
    if options.sampler.decoding is not Decoding.ELEMENT:
        check_sampler(name, TextureKind.CUBEMAP, texels.dtype, 1, texels.shape[-2], options.sampler)
    texels, how, scale = as_blended(texels, options.sampler, antialias)
    check_sampler(name, TextureKind.CUBEMAP, texels.dtype, 1, texels.shape[-2], how)
    sizes = constants(texels, *shape[::-1])

    def to_points(u: jax.Array, v: jax.Array) -> Arrays:
        return to_direction(*aligned(u, v, *sizes))

    (x, y, z), sides = coordinates(to_points, shape, antialias, texels.dtype)

    def read(texels: jax.Array) -> jax.Array:
        if sides is None:
            return sample(cubemap(texels), (x, y, z), how)
        trilinear = dataclasses.replace(how, mipmap_filter_mode="linear")
        return sample(build_mipmaps(cubemap(texels)), (x, y, z), trilinear, ddx=sides[0], ddy=sides[1])

    for _ in range(texels.ndim - 4):
        read = jax.vmap(read)
    return converted(read(texels) * scale, options.result)


def constants(image: jax.Array, *sizes: int) -> list[jax.Array]:
    """Sizes as parameters of coordinate functions, in float64 for a float64 image."""
    return [jnp.full((1, 1), n, sum_dtype(image.dtype)) for n in sizes]


def beyond_poles(image: jax.Array, rows: int) -> jax.Array:
    """An equirectangular image with the rows beyond both poles, half a turn away.

    With an odd number of columns, a mean of two lies half a turn away.
    """
    half, odd = divmod(image.shape[-2], 2)
    opposite = jnp.roll(image, half, -2)
    if odd:
        wide = jnp.float32 if jnp.issubdtype(image.dtype, jnp.integer) else image.dtype
        mean = mean_of_pair(opposite.astype(wide), jnp.roll(image, half + 1, -2).astype(wide))
        opposite = converted(mean, image.dtype)
    height = image.shape[-3]
    above = jax.lax.slice_in_dim(opposite, 0, rows, axis=-3)
    below = jax.lax.slice_in_dim(opposite, height - rows, height, axis=-3)
    return jnp.concatenate([jnp.flip(above, -3), image, jnp.flip(below, -3)], -3)


# Coordinate functions


def to_equirectangular(
    x: jax.Array, y: jax.Array, size: jax.Array, width: jax.Array, height: jax.Array, rows: jax.Array
) -> Arrays:
    """From six faces, one below the other, to an equirectangular image with `rows` more rows beyond the poles."""
    face = jnp.floor(y / size)
    s, t = 2 * x / size - 1, 2 * (y / size - face) - 1
    x, y, z = on_cube(face, s, t)
    level = x * x + z * z
    pole = level == 0
    # At a pole every longitude is right, and its derivative is infinite; that at half a pixel's distance replaces it.
    longitude = jnp.arctan2(x, jnp.where(pole, 1 / size, z))
    from_zenith = jnp.arctan2(jnp.where(pole, 0, jnp.sqrt(jnp.where(pole, 1, level))), y)
    return width * (0.5 + longitude * (0.5 / np.pi)), height * (from_zenith * (1 / np.pi)) + rows


def on_cube(face: jax.Array, s: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The direction of a point of a face."""

    def component(axis: int) -> jax.Array:
        first, *others = (a * s + b * t + c for a, b, c in FACE_AXES[..., axis].tolist())
        return functools.reduce(lambda found, k: jnp.where(face == k, others[k - 1], found), range(1, 6), first)

    return component(0), component(1), component(2)


def to_direction(x: jax.Array, y: jax.Array, width: jax.Array, height: jax.Array) -> Arrays:
    """The direction of a pixel of an equirectangular image."""
    longitude, latitude = (x / width - 0.5) * (2 * np.pi), (0.5 - y / height) * np.pi
    level = jnp.cos(latitude)
    return level * jnp.sin(longitude), jnp.sin(latitude), level * jnp.cos(longitude)
