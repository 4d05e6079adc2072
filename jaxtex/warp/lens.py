"""Lens distortion: points and images between a real camera and an ideal camera, by the Brown-Conrady model."""

# pyright: strict, reportUnknownMemberType=false

from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from .._arguments import as_float, check_number, stacked_coords
from ..sampler import FilterModeLike, Sampler
from .brown_conrady import to_distorted, to_ideal
from .calls import STATIC_OPTIONS, compiled
from .grids import aligned, coordinates, matrix_parameters, stored_points
from .images import warp_image
from .options import read_options
from .shapes import as_matrix, spatial_shape
from .types import AddressLike, Arrays, GridFunction, Points2D, ShapeLike

# k1, k2, p1, p2; and k3; and k4, k5, k6.
COEFFICIENT_COUNTS = (4, 5, 8)


@compiled("output_shape", *STATIC_OPTIONS)
def undistort(
    image: ArrayLike,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: ArrayLike | None = None,
    filter: FilterModeLike | None = None,
    address: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Removes the distortion of a lens from images: straight lines become straight.

    Args:
        image: ``(..., H, W, C)``, as the lens shows it; as in `resample`.
        camera_matrix: ``(..., 3, 3)``, ``[[fx, 0, cx], [0, fy, cy], [0, 0, 1]]`` in pixels, with the center of the
            first pixel at (0.5, 0.5). OpenCV has it at (0, 0): add 0.5 to cx and cy of its matrices. The other five
            elements are ignored. Leading axes broadcast with those of `image`.
        distortion: ``(..., n)``, in OpenCV's order: k1, k2, p1, p2, then k3, then k4, k5, k6; n is 4, 5 or 8.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera whose image is the result; by default `camera_matrix`.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, in forward and reverse mode, with respect to image, both matrices, coefficients and border
        color; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Source: D. C. Brown, "Decentering Distortion of Lenses", 1966. The model and the order of its coefficients are those
        of `cv2.undistort`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.undistort(row, camera, jnp.array([-0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.10546875, 1.0039062 , 1.9960938 , 2.8945312 ], dtype=float32)
    """
    lens = lens_values("undistort", camera_matrix, distortion, new_camera_matrix, 2)
    shape = spatial_shape("undistort", image, output_shape, 2)
    options = read_options("undistort", sampler, filter, address, border_color, antialias, dtype)
    return warp_image("undistort", image, to_distorted, lens, shape, options)


@compiled("output_shape", *STATIC_OPTIONS)
def distort(
    image: ArrayLike,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: ArrayLike | None = None,
    filter: FilterModeLike | None = None,
    address: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Distorts images as a lens does: the inverse of `undistort` with the same arguments.

    Args:
        image: ``(..., H, W, C)``, of an ideal camera, as `undistort` returns it.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, whose image is the result; as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera that took `image`; by default `camera_matrix`.
        output_shape, sampler, filter, address, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``. A pixel at which the lens shows nothing, see `undistort_points`, shows a point far
        outside the image.

    Gradients: of any order, in forward and reverse mode, with respect to image, both matrices, coefficients and border
        color; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.distort(row, camera, jnp.array([0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.08797801, 1.0038174 , 1.9961824 , 2.912022  ], dtype=float32)
    """
    lens = lens_values("distort", camera_matrix, distortion, new_camera_matrix, 2)
    shape = spatial_shape("distort", image, output_shape, 2)

    def to_points(x: jax.Array, y: jax.Array) -> Arrays:
        return to_ideal(*aligned(x, y, *lens))

    # The iteration runs once for each pixel; inside the read it would run again for every use of a coordinate.
    coords, footprint = coordinates(to_points, shape, antialias)
    options = read_options("distort", sampler, filter, address, border_color, antialias, dtype)
    return warp_image("distort", image, stored_points, coords, shape, options, footprint)


@compiled()
def distort_points(
    coords: Points2D,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    *,
    new_camera_matrix: ArrayLike | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Maps points of an ideal image to the points at which a lens shows them.

    Args:
        coords: ``(x, y)``, in pixels of the ideal image, numbers that broadcast with each other and with the leading
            axes of the cameras to a shape S.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera; by default `camera_matrix`.

    Returns:
        ``(x, y)``, two arrays of shape S, in pixels of the camera with the lens; float64 if an argument is, else
        float32.

    Gradients: of any order, in forward and reverse mode, with respect to all arguments.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers, or `coords` is one stacked array.

    Source: `cv2.projectPoints`, of points at depth 1.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.distort_points((100.0, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(97.5, dtype=float32), Array(50., dtype=float32))
    """
    return at_points("distort_points", to_distorted, coords, camera_matrix, distortion, new_camera_matrix)


@compiled()
def undistort_points(
    coords: Points2D,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    *,
    new_camera_matrix: ArrayLike | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Maps points at which a lens shows something to points of an ideal image: the inverse of `distort_points`.

    Args:
        coords: ``(x, y)``, in pixels of the camera with the lens, numbers that broadcast with each other and with the
            leading axes of the cameras to a shape S.
        camera_matrix: ``(..., 3, 3)``, of the camera with the lens, as in `undistort`.
        distortion: ``(..., n)``, as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, of the ideal camera; by default `camera_matrix`.

    Returns:
        ``(x, y)``, two arrays of shape S, in pixels of the ideal camera; float64 if an argument is, else float32. With
        strong negative coefficients the lens shows nothing at points far from the center. There the result is
        infinite, with the signs of the direction from the center.

    Gradients: of any order, in forward and reverse mode, with respect to all arguments; zero where the result is
        infinite. They are the derivatives of the solution, by the implicit function theorem, not those of the
        iteration.

    Precision: that of the dtype; less near the fold of a lens, where the solution is steep.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers, or `coords` is one stacked array.

    Source: `cv2.undistortImagePoints`, which uses a fixed-point iteration; this function uses Newton's method.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.undistort_points((97.5, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(100., dtype=float32), Array(50., dtype=float32))
    """
    return at_points("undistort_points", to_ideal, coords, camera_matrix, distortion, new_camera_matrix)


def lens_values(
    name: str, camera_matrix: ArrayLike, distortion: ArrayLike, new_camera_matrix: ArrayLike | None, ndim: int
) -> Arrays:
    """The parameters of the functions in `brown_conrady`, with `ndim` axes of size 1 behind the batch axes."""
    camera = as_matrix(name, camera_matrix, ((3, 3),), "camera_matrix")
    ideal = camera
    if new_camera_matrix is not None:
        ideal = as_matrix(name, new_camera_matrix, ((3, 3),), "new_camera_matrix")
    coefficients = as_float(distortion)
    if coefficients.ndim < 1 or coefficients.shape[-1] not in COEFFICIENT_COUNTS:
        raise ValueError(
            f"{name}: distortion has shape {coefficients.shape}, expected (..., n) with n = 4, 5 or 8: k1, k2, p1, p2, "
            f"then k3, then k4, k5, k6; pad it with zeros."
        )
    values: list[jax.Array] = []
    for matrix in (camera, ideal):
        fx, _, cx, _, fy, cy, *_ = matrix_parameters(matrix, ndim)
        values += fx, cx, fy, cy
    return *values, *matrix_parameters(coefficients[..., None, :], ndim)


def at_points(
    name: str,
    function: GridFunction,
    coords: Any,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    new_camera_matrix: ArrayLike | None,
) -> tuple[jax.Array, jax.Array]:
    """A function of `brown_conrady` at the caller's points."""
    if not isinstance(coords, tuple | list):
        raise TypeError(stacked_coords(name, "coords", coords))
    points = cast(list[Any], coords)
    if len(points) != 2:
        raise ValueError(f"{name}: coords has {len(points)} arrays, expected (x, y).")
    values = lens_values(name, camera_matrix, distortion, new_camera_matrix, ndim=0)
    operands = (*(as_float(check_number(name, "coords", c)) for c in points), *values)
    try:
        shape = jnp.broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        shapes = " and ".join(str(c.shape) for c in operands[:2])
        raise ValueError(
            f"{name}: the arrays of coords have shapes {shapes}, which do not broadcast with the leading axes of the "
            f"cameras, {jnp.broadcast_shapes(*(a.shape for a in values))}; pass camera_matrix[:, None] for several "
            f"points of each camera."
        ) from None
    x, y = (jnp.broadcast_to(c, shape) for c in function(*aligned(*operands)))
    return x, y
