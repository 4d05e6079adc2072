"""Warps by a function, a matrix, an angle or a size."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import as_array
from ..mipmaps import along_axes
from ..modes import AddressMode, FilterMode
from ..sampler import MAX_ANISOTROPY, Sampler
from .calls import OPTIONS, compiled
from .grids import affine, given, per_image, pixel_centres, projective, scaled
from .images import check_image, warp_image
from .matrices import Rows, about, elements, from_theta, inverted, turned
from .options import ReadOptions, read_options
from .shapes import as_floats, as_matrix, spatial_shape

STATIC = ("output_shape", *OPTIONS)


def resample(
    image: Any,
    function: Callable[..., Any],
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images by a coordinate function of your own: which point of the input each pixel of the output shows.

    Points are in pixels, (0, 0) is the top left corner and (0.5, 0.5) the centre of the first pixel.

    Args:
        image: ``(..., H, W, C)``, or with an `output_shape` of three sizes ``(..., D, H, W, C)``; of any floating or
            integer dtype. Leading axes are batches.
        function: ``function(x, y)``, or ``function(x, y, z)``, maps the centres of the output's pixels, arrays that
            broadcast to `output_shape`, element by element to a tuple of as many coordinates in the input. They may
            have leading batch axes, which broadcast with those of `image`.
        output_shape: the spatial shape of the output, ``(H, W)``; by default the image's.
        sampler: a whole `Sampler`, for all that has no argument of its own here. Its `normalized_coords` is not used.
        filter: ``"linear"`` unless `sampler` has another, ``"point"`` or ``"cubic"``, as in `Sampler`.
        address: what lies outside: ``"border"`` (the default), ``"clamp"``, ``"wrap"``, ``"mirror"`` or ``"reflect"``,
            as in `Sampler`; or a tuple with one for each axis, x first.
        border_color: what lies outside under ``"border"``, in units of the image: a scalar or ``(C,)``; by default 0.
        antialias: whether to smooth the image as far as the output shrinks it: through a mip chain, at the level that
            the derivative of `function` asks for. With ``sampler.max_anisotropy`` above 1 it is smoothed less across
            than along the direction in which it shrinks most.
        dtype: of the result; the default is that of the image. A floating dtype keeps the fractions of an integer
            image.

    Returns:
        ``(..., *output_shape, C)``. Integer images are read as numbers and rounded, half to even.

    Gradients: to any order in both modes, to a floating image, the border colour, and what `function` depends on.
    Where the result is rounded they are zero; pass a floating `dtype`.

    Raises:
        ValueError: if shapes do not fit, or `filter` or `address` contradict `sampler`.
        TypeError: if the image holds no numbers.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.resample(image, lambda x, y: (4 - x, y))[0, :, 0]
        Array([3., 2., 1., 0.], dtype=float32)
    """
    shape = spatial_shape("resample", image, output_shape)
    pixels = pixel_centres(shape)
    coords = tuple(jnp.asarray(c) for c in function(*pixels))
    if len(coords) != len(shape):
        raise ValueError(f"resample: function returned {len(coords)} coordinates, expected {len(shape)}, one an axis.")
    sides = along_axes(function, pixels) if antialias else None
    options = read_options(
        "resample", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("resample", image, given, coords, shape, options, sides)


@compiled(*STATIC, "inverse_map")
def warp_affine(
    image: Any,
    matrix: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    inverse_map: bool = False,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images by affine matrices: ``x' = a x + b y + c``, ``y' = d x + e y + f``.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        matrix: ``(..., 2, 3)``, or ``(..., 3, 4)`` for volumes: maps points of the input to points of the output, in
            pixels from the top left corner; leading axes broadcast with those of `image`. One that flattens the plane
            has no inverse, and makes coordinates that are not finite.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        inverse_map: whether `matrix` maps points of the output to points of the input, as a read needs it.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to image, matrix and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.warp_affine(image, jnp.array([[1.0, 0, 1], [0, 1, 0]]))[0, :, 0]
        Array([0., 0., 1., 2.], dtype=float32)
    """
    rows = elements(as_matrix("warp_affine", matrix, ((2, 3), (3, 4))))
    back = rows if inverse_map else inverted(rows)
    options = read_options(
        "warp_affine", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return by_matrix("warp_affine", image, affine, back, output_shape, options)


@compiled(*STATIC, "inverse_map")
def warp_perspective(
    image: Any,
    matrix: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    inverse_map: bool = False,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images by homographies: a point times a matrix, divided by the last component.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        matrix: ``(..., 3, 3)``, or ``(..., 4, 4)`` for volumes: maps points of the input to points of the output, in
            pixels from the top left corner, up to a factor; leading axes broadcast with those of `image`.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        inverse_map: whether `matrix` maps points of the output to points of the input, as a read needs it.

    Returns:
        ``(..., *output_shape, C)``. A pixel that lies on the horizon, where the divisor is 0, reads the point (0, 0);
        one beyond it is a point like any other.

    Gradients: to image, matrix and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.warp_perspective(image, jnp.diag(jnp.array([0.5, 1.0, 1.0])))[0, :, 0]
        Array([0.5, 2.5, 0. , 0. ], dtype=float32)
    """
    rows = elements(as_matrix("warp_perspective", matrix, ((3, 3), (4, 4))))
    back = rows if inverse_map else inverted(rows)
    options = read_options(
        "warp_perspective", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return by_matrix("warp_perspective", image, projective, back, output_shape, options)


def by_matrix(
    name: str,
    image: Any,
    function: Callable[..., Any],
    back: Rows,
    output_shape: Sequence[int] | None,
    options: ReadOptions,
) -> jax.Array:
    """Reads an image at the points that a matrix, from output to input, makes of the pixels by `function`."""
    ndim = len(back[0]) - 1
    shape = spatial_shape(name, image, output_shape, ndim)
    return warp_image(name, image, function, per_image(back, ndim), shape, options)


@compiled(*STATIC)
def rotate(
    image: Any,
    degrees: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    scale: Any = 1.0,
    center: Any = None,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Rotates images, counter-clockwise as seen, and scales them.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        degrees: the angle, a number or an array of leading batch axes.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.
        scale: the factor of size, likewise.
        center: ``(x, y)`` in pixels, which goes to the centre of the output; an array ``(..., 2)`` for a batch. By
            default the image's centre.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to image, angle, scale, centre and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0).reshape(2, 2, 1)
        >>> jnp.round(jt.warp.rotate(image, 90.0), 4)[..., 0]
        Array([[1., 3.],
               [0., 2.]], dtype=float32)
    """
    shape = spatial_shape("rotate", image, output_shape, 2)
    middle = lambda sizes: 0.5 * np.array(sizes[::-1], np.float32)
    center = middle(jnp.shape(image)[-3:-1]) if center is None else center
    degrees, scale, source, target = as_floats(degrees, scale, center, middle(shape))
    points = ([point[..., k] for k in range(2)] for point in (target, source))
    parameters = per_image(about(turned(-degrees, 1 / scale), *points), 2)
    options = read_options(
        "rotate", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("rotate", image, affine, parameters, shape, options)


@compiled(*STATIC)
def resize(
    image: Any,
    output_shape: Sequence[int],
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = True,
    dtype: Any = None,
) -> jax.Array:
    """Resizes images: the corners of the input go to the corners of the output.

    Args:
        image: ``(..., H, W, C)``, or with an `output_shape` of three sizes ``(..., D, H, W, C)``, as in `resample`.
        output_shape: the spatial shape of the output.
        address: as in `resample`, but by default ``"clamp"``: the edge's texels outside.
        antialias: whether to smooth the image as far as it shrinks, as in `resample`. An image that shrinks along no
            axis is read as it is, and so is every image with the point filter, which returns stored texels. Where one
            axis shrinks more than the other, up to 16 reads follow it, unless ``sampler.max_anisotropy`` says how many;
            volumes are smoothed alike along all axes.
        sampler, filter, border_color, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to the image, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.resize(jnp.array([[[0.0], [1.0]]]), (1, 4))[0, :, 0]
        Array([0.  , 0.25, 0.75, 1.  ], dtype=float32)
        >>> jt.warp.resize(jnp.arange(16.0).reshape(4, 4, 1), (2, 2))[..., 0]
        Array([[ 2.5,  4.5],
               [10.5, 12.5]], dtype=float32)
    """
    shape = spatial_shape("resize", image, output_shape)
    image = as_array(image)
    check_image("resize", image, len(shape))
    factors = [n / m for n, m in zip(image.shape[-2 : -2 - len(shape) : -1], shape[::-1])]
    options = read_options("resize", sampler, filter, address, border_color, antialias, dtype, AddressMode.CLAMP)
    options = smoothed_where_it_shrinks(options, factors)
    steps = [jnp.full([1] * len(shape), factor, jnp.float32) for factor in factors]
    return warp_image("resize", image, scaled, steps, shape, options)


def smoothed_where_it_shrinks(options: ReadOptions, factors: Sequence[float]) -> ReadOptions:
    """The options of a read whose neighbouring pixels are apart by `factors` in the image, one for each axis."""
    sampler, longest, shortest = options.sampler, max(factors), max(min(factors), 1)
    antialias = options.antialias and longest > 1 and sampler.filter_mode is not FilterMode.POINT
    reads = min(round(longest / shortest), MAX_ANISOTROPY)
    if antialias and len(factors) == 2 and sampler.max_anisotropy == 1 and reads > 1:
        # One level for both axes would blur the one that shrinks less as far as the other.
        sampler = dataclasses.replace(sampler, max_anisotropy=reads)
    return dataclasses.replace(options, sampler=sampler, antialias=antialias)


@compiled(*STATIC)
def spatial_transform(
    images: Any,
    theta: Any,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """The read of a spatial transformer: affine, in coordinates that run from -1 to 1 across input and output.

    What `grid_sample` does with the grid of `affine_grid`, both with ``align_corners=False``, but the grid is computed
    where it is used and never stored.

    Args:
        images: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        theta: ``(..., 2, 3)``, or ``(..., 3, 4)`` for volumes: maps points of the output to points of the input. -1
            and 1 are the outer edges of the first and the last pixel, x stands before y. The identity is
            ``[[1, 0, 0], [0, 1, 0]]``.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to images, theta and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Source: M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, "Spatial Transformer Networks", 2015.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> images = jnp.arange(4.0).reshape(1, 1, 4, 1)
        >>> mirrored = jnp.array([[[-1.0, 0, 0], [0, 1, 0]]])
        >>> jt.warp.spatial_transform(images, mirrored)[0, 0, :, 0]
        Array([3., 2., 1., 0.], dtype=float32)
    """
    theta = as_matrix("spatial_transform", theta, ((2, 3), (3, 4)), "theta")
    ndim = theta.shape[-2]
    shape = spatial_shape("spatial_transform", images, output_shape, ndim)
    back = from_theta(elements(theta), jnp.shape(images)[-1 - ndim : -1], shape)
    options = read_options(
        "spatial_transform", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return by_matrix("spatial_transform", images, affine, back, shape, options)
