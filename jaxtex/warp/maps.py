"""Warps by a function, a matrix or an angle."""

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.words import described
from .._tables.storage_formats import sum_dtype
from ..mipmaps import along_axes
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import (
    CoordinateFunction,
    GridFunction,
    OfCaller,
    affine,
    as_parameters,
    check_is_elementwise,
    evaluated_at,
    pixel_centers,
    projective,
    stored_points,
)
from .fields import as_points
from .images import warp_image
from .matrices import Rows, about, elements, from_theta, inverted, of_unit_size, rotation
from .options import (
    AddressLike,
    Points2D,
    ReadOptions,
    ShapeLike,
    as_floats,
    as_matrix,
    dtype_of,
    read_options,
    spatial_shape,
)

# What to call with matrices that have a row more, or a row less.
OF_HOMOGRAPHIES, OF_AFFINE_MATRICES = {1: "for homographies call warp_perspective"}, {-1: "call warp_affine"}


@public
def resample(
    image: ArrayLike,
    function: CoordinateFunction,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
    parameters: Sequence[ArrayLike] | None = None,
) -> jax.Array:
    """Warps images by a coordinate function: each output pixel shows the point that the function returns.

    Points are in pixels: (0, 0) is the top left corner and (0.5, 0.5) the center of the first pixel. Without
    `parameters`, the function runs once in each call, and its points are stored; put the call under `jax.jit`. With
    `parameters`, the read computes the points itself.

    Args:
        image: ``(..., H, W, C)``, or with an `output_shape` of three sizes ``(..., D, H, W, C)``, of any floating,
            complex or integer dtype or bool. Leading axes are batches.
        function: ``function(x, y)``, or ``function(x, y, z)``, maps the centers of the output's pixels, arrays that
            broadcast to `output_shape`, to a tuple of the same number of coordinates in the image, elementwise. The
            results may have leading batch axes, which broadcast with those of `image`.
        output_shape: the spatial shape of the output, ``(H, W)`` or ``(D, H, W)``; by default that of the image.
        sampler: a `Sampler`, for options that have no argument here. Its `normalized_coords` is ignored, and with
            `antialias` levels are blended whatever its `mipmap_filter_mode`.
        filter_mode: ``"linear"``, ``"point"`` or ``"cubic"``, a `FilterMode`. The default is that of `sampler`, or
            linear.
        address_mode: how the image continues outside: an `AddressMode`, or a tuple with one for each axis, x first.
            The default is that of `sampler`, or ``"border"``.
        border_color: the color outside under ``"border"``, in units of the image: a scalar or ``(C,)``; by default 0.
        antialias: whether to smooth the image as much as the output shrinks it. The read then uses a mip chain, at the
            level of detail that the derivative of `function` gives. With ``sampler.max_anisotropy`` above 1, several
            reads lie along the direction that shrinks most, and the other direction is smoothed less.
        dtype: the dtype of the result; by default that of the image. With a floating dtype, the result of blending
            integers keeps its fractions.
        parameters: what `function` takes after the coordinates: numbers, or arrays with the leading batch axes. Pass
            the elements of a matrix one by one. With them, or an empty tuple, GPU kernels compute the points, also for
            the gradient, and store none. `function` must then be elementwise and hashable, and close over constants
            alone: define it once, at the top level of a module.

    Returns:
        ``(..., *output_shape, C)``. Integers are blended as numbers and rounded, half to even. A filter that blends
        reads a bool mask as 0 and 1, and returns float32.

    Gradients: of any order, in forward and reverse mode, with respect to a floating or complex image, the border color,
        the parameters, and, without them, the values that `function` closes over. Derivatives vanish as in
        `jaxtex.sample`. All gradients are zero if the result is of integers, such as that of a uint8 image; pass a
        floating `dtype`.

    Raises:
        ValueError: if shapes do not fit, or `filter_mode` or `address_mode` contradicts `sampler`.
        TypeError: if the image holds no numbers, an argument has the wrong type, or `function` closes over traced
            arrays beside `parameters`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> jt.warp.resample(image, lambda x, y: (4 - x, y))[0, :, 0]
        Array([3., 2., 1., 0.], dtype=float32)
    """
    shape = spatial_shape("resample", image, output_shape)
    options = read_options("resample", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    if parameters is not None:
        arrays = as_floats(*as_tuple("resample", parameters), like=image)
        check_is_elementwise("resample", function, len(shape), arrays)
        return warp_image(
            "resample", image, OfCaller(function), as_parameters([list(arrays)], len(shape)), shape, options
        )
    pixels = pixel_centers(shape, sum_dtype(dtype_of(image)))
    coords = evaluated_at("resample", function, pixels)
    footprint = along_axes(function, pixels) if antialias else None
    return warp_image("resample", image, stored_points, coords, shape, options, footprint)


def as_tuple(name: str, parameters: Any) -> tuple[ArrayLike, ...]:
    """The parameters of a coordinate function."""
    if isinstance(parameters, tuple | list):
        return tuple(cast(Sequence[ArrayLike], parameters))
    raise TypeError(
        f"{name}: parameters is {described(parameters)}, expected a tuple of numbers or arrays; put one into a tuple."
    )


@public(compiled=True)
def warp_affine(
    image: ArrayLike,
    matrix: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    inverse_map: bool = False,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by affine matrices: ``x' = a x + b y + c``, ``y' = d x + e y + f``.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        matrix: ``(..., 2, 3)``, or ``(..., 3, 4)`` for volumes: maps points of the image to points of the output, in
            pixels from the top left corner. Leading axes broadcast with those of `image`. A singular matrix has no
            inverse; the coordinates are then not finite.
        inverse_map: whether `matrix` maps points of the output to points of the image.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, matrix and border color.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.warp_affine(image, jnp.array([[1.0, 0, 1], [0, 1, 0]]))[0, :, 0]
        Array([0., 0., 1., 2.], dtype=float32)
    """
    rows = elements(*as_floats(as_matrix("warp_affine", matrix, ((2, 3), (3, 4)), instead=OF_HOMOGRAPHIES), like=image))
    to_input = rows if inverse_map else inverted(rows)
    options = read_options("warp_affine", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return by_matrix("warp_affine", image, affine, to_input, output_shape, options)


@public(compiled=True)
def warp_perspective(
    image: ArrayLike,
    matrix: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    inverse_map: bool = False,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by homographies: the matrix times a point, divided by the last component.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        matrix: ``(..., 3, 3)``, or ``(..., 4, 4)`` for volumes: maps points of the image to points of the output, in
            pixels from the top left corner, up to a factor. Leading axes broadcast with those of `image`.
        inverse_map: whether `matrix` maps points of the output to points of the image.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``. A pixel on the horizon, where the divisor is 0, shows the point (0, 0). A pixel
        beyond the horizon shows the point that the division returns.

    Gradients: of any order, as in `resample`, with respect to image, matrix and border color.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> jt.warp.warp_perspective(image, np.diag(np.array([0.5, 1.0, 1.0])))[0, :, 0]
        Array([0.5, 2.5, 0. , 0. ], dtype=float32)
    """
    given = as_matrix("warp_perspective", matrix, ((3, 3), (4, 4)), instead=OF_AFFINE_MATRICES)
    rows = of_unit_size(elements(*as_floats(given, like=image)))
    to_input = rows if inverse_map else inverted(rows)
    options = read_options("warp_perspective", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return by_matrix("warp_perspective", image, projective, to_input, output_shape, options)


def by_matrix(
    name: str,
    image: ArrayLike,
    function: GridFunction,
    to_input: Rows,
    output_shape: ShapeLike | None,
    options: ReadOptions,
) -> jax.Array:
    """Reads an image at the points that `function` computes from pixels and a matrix from output to input."""
    ndim = len(to_input[0]) - 1
    shape = spatial_shape(name, image, output_shape, ndim, source="matrix")
    return warp_image(name, image, function, as_parameters(to_input, ndim), shape, options)


@public(
    compiled=True,
    deprecated={"degrees": "is deprecated, also by its position; pass angle=jnp.deg2rad(degrees), in radians"},
)
def rotate(
    image: ArrayLike,
    degrees: ArrayLike | None = None,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    angle: ArrayLike | None = None,
    scale: ArrayLike = 1.0,
    center: ArrayLike | Points2D | None = None,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Rotates images counterclockwise, as displayed, and scales them.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        angle: in radians: a number, or an array with the leading batch axes; of degrees, ``jnp.deg2rad(degrees)``. It
            is a keyword only, since the second position means degrees.
        degrees: the angle in degrees, deprecated: a call with it, or with an angle by position, keeps its meaning and
            warns.
        scale: the factor by which the content grows: a number, or an array with the leading batch axes.
        center: ``(x, y)`` in pixels, the point of the image that goes to the center of the output: one array
            ``(..., 2)``, or a tuple of numbers or arrays. The default is the center of the image.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, angle, scale, center and border color.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if `angle` is missing, or both `angle` and `degrees` are given.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0).reshape(2, 2, 1)
        >>> jnp.round(jt.warp.rotate(image, angle=jnp.pi / 2), 4)[..., 0]
        Array([[1., 3.],
               [0., 2.]], dtype=float32)
    """
    turn = angle if degrees is None else degrees
    if turn is None:
        raise TypeError("rotate: angle is missing; pass angle=..., in radians.")
    if angle is not None and degrees is not None:
        raise TypeError("rotate: angle is given, and degrees too; pass angle alone, in radians.")
    shape = spatial_shape("rotate", image, output_shape, 2)
    at = middle(np.shape(image)[-3:-1]) if center is None else as_points("rotate", "center", center, image)
    turn, scale, source, target = as_floats(turn, scale, at, middle(shape), like=image)
    turn = turn if degrees is None else jnp.deg2rad(turn)
    points = ([point[..., k] for k in range(2)] for point in (target, source))
    parameters = as_parameters(about(rotation(-turn, 1 / scale), *points), 2)
    options = read_options("rotate", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image("rotate", image, affine, parameters, shape, options)


def middle(sizes: Sequence[int]) -> np.ndarray:
    """The center of an image of height and width `sizes`, x first."""
    return 0.5 * np.array(sizes[::-1], np.float32)


@public(compiled=True)
def spatial_transform(
    image: ArrayLike,
    theta: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by the affine matrices of a spatial transformer, in coordinates from -1 to 1.

    The result is that of `grid_sample` with the grid of `affine_grid`, both with ``align_corners=False``. But no grid
    is stored.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        theta: ``(..., 2, 3)``, or ``(..., 3, 4)`` for volumes: maps points of the output to points of the image, x
            first. -1 and 1 are the outer edges of the first and the last pixel. ``[[1, 0, 0], [0, 1, 0]]`` is the
            identity. Leading axes broadcast with those of `image`.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, theta and border color.

    Raises:
        ValueError: if shapes do not fit.

    Source: M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, "Spatial Transformer Networks", 2015.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0).reshape(1, 4, 1)
        >>> mirrored = np.array([[-1.0, 0, 0], [0, 1, 0]])
        >>> jt.warp.spatial_transform(image, mirrored)[0, :, 0]
        Array([3., 2., 1., 0.], dtype=float32)
    """
    (matrix,) = as_floats(as_matrix("spatial_transform", theta, ((2, 3), (3, 4)), "theta"), like=image)
    ndim = matrix.shape[-2]
    name = "spatial_transform"
    shape = spatial_shape(name, image, output_shape, ndim, source="theta")
    to_input = from_theta(elements(matrix), np.shape(image)[-1 - ndim : -1], shape)
    options = read_options(name, sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image(name, image, affine, as_parameters(to_input, ndim), shape, options)
