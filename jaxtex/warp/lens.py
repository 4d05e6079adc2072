"""Lens distortion: conversions of points and images between a real camera and an ideal camera."""

import warnings
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_array, as_float
from .._jax.shapes import broadcast_shapes
from .._jax.versions import stack
from .._reads.arguments import check_number
from ..modes import choose
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Arrays, GridFunction, aligned, coordinates, matrix_parameters, stored_points
from .fields import as_points
from .images import warp_image
from .lens_models import LENS_MODELS, LensFunctions, LensModel, LensModelLike
from .options import AddressLike, Points2D, ShapeLike, as_matrix, dtype_of, read_options, spatial_shape


@public(compiled=True)
def undistort(
    image: ArrayLike,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: ArrayLike | None = None,
    model: LensModelLike = "brown_conrady",
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Removes the distortion of a lens from images: straight lines become straight.

    Args:
        image: ``(..., H, W, C)``, the image that the lens shows, as in `resample`.
        camera_matrix: ``(..., 3, 3)``, ``[[fx, 0, cx], [0, fy, cy], [0, 0, 1]]`` in pixels, with the center of the
            first pixel at (0.5, 0.5). OpenCV has it at (0, 0): add 0.5 to cx and cy of its matrices. The other five
            elements are ignored. Leading axes broadcast with those of `image`.
        distortion: ``(..., n)``, in OpenCV's order: k1, k2, p1, p2, then k3, then k4, k5, k6; n is 4, 5 or 8. For a
            fisheye lens, k1, k2, k3, k4. `camera_from_opencv` converts OpenCV's calibration to both arguments.
        new_camera_matrix: ``(..., 3, 3)``, the matrix of the ideal camera, whose image is the result; by default
            `camera_matrix`.
        model: the lens model: ``"brown_conrady"``, or ``"fisheye"``, Kannala and Brandt's model, for angles of 100
            degrees and more. The ideal image of a fisheye lens shows nothing at 90 degrees from its axis and beyond.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, both matrices, coefficients and border color.

    Raises:
        ValueError: if shapes do not fit, or there is no such model.

    Source: D. C. Brown, "Decentering Distortion of Lenses", 1966, with the coefficients of `cv2.undistort`; J. Kannala
        and S. S. Brandt, "A generic camera model and calibration method for conventional, wide-angle, and fish-eye
        lenses", 2006, with those of `cv2.fisheye`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.undistort(row, camera, jnp.array([-0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.10546875, 1.0039062 , 1.9960938 , 2.8945312 ], dtype=float32)
    """
    check_is_no_row("undistort", image, camera_matrix, distortion)
    functions, lens = lens_values("undistort", camera_matrix, distortion, new_camera_matrix, model, 2)
    shape = spatial_shape("undistort", image, output_shape, 2)
    options = read_options("undistort", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image("undistort", image, functions.to_distorted, lens, shape, options)


@public(compiled=True)
def distort(
    image: ArrayLike,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    new_camera_matrix: ArrayLike | None = None,
    model: LensModelLike = "brown_conrady",
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Distorts images as a lens does: the inverse of `undistort` with the same arguments.

    Args:
        image: ``(..., H, W, C)``, the image of an ideal camera, as `undistort` returns it.
        camera_matrix, distortion, model: as in `undistort`; the result is the image of this camera.
        new_camera_matrix: ``(..., 3, 3)``, the matrix of the ideal camera that took `image`; by default
            `camera_matrix`.
        output_shape, sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``. Pixels without a ray (see `undistort_points`) show a point far outside the image.

    Gradients: of any order, as in `resample`, with respect to image, both matrices, coefficients and border color.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> camera = np.array([[4.0, 0.0, 2.0], [0.0, 4.0, 0.5], [0.0, 0.0, 1.0]])
        >>> row = np.arange(4.0)[None, :, None]
        >>> jt.warp.distort(row, camera, np.array([0.5, 0.0, 0.0, 0.0]))[0, :, 0]
        Array([0.08797801, 1.0038174 , 1.9961824 , 2.912022  ], dtype=float32)
    """
    check_is_no_row("distort", image, camera_matrix, distortion)
    functions, lens = lens_values("distort", camera_matrix, distortion, new_camera_matrix, model, 2)
    shape = spatial_shape("distort", image, output_shape, 2)

    def to_points(x: jax.Array, y: jax.Array) -> Arrays:
        return functions.to_ideal(*aligned(x, y, *lens))

    # So the iteration runs once for each pixel; inside the read it would run for every use of a coordinate.
    coords, footprint = coordinates(to_points, shape, antialias, dtype_of(image))
    options = read_options("distort", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image("distort", image, stored_points, coords, shape, options, footprint)


@public(compiled=True)
def distort_points(
    coords: ArrayLike | Points2D,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    *,
    new_camera_matrix: ArrayLike | None = None,
    model: LensModelLike = "brown_conrady",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Maps points of an ideal image to the points at which a lens shows them.

    Args:
        coords: ``(x, y)``, in pixels of the ideal image, numbers that broadcast with each other and with the leading
            axes of the cameras to a shape S; or one array S + (2,).
        camera_matrix, distortion, model: as in `undistort`.
        new_camera_matrix: ``(..., 3, 3)``, the matrix of the ideal camera; by default `camera_matrix`.

    Returns:
        Points in the form of `coords`: ``(x, y)``, two arrays of shape S, or one array S + (2,), in pixels of the
        camera with the lens; float64 if an argument is, else float32.

    Gradients: of any order, in forward and reverse mode, with respect to all arguments.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers.

    Source: `cv2.projectPoints` and `cv2.fisheye.distortPoints`, of points at depth 1.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.distort_points((100.0, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(97.5, dtype=float32), Array(50., dtype=float32))
    """
    lens = lens_values("distort_points", camera_matrix, distortion, new_camera_matrix, model, 0)
    return at_points("distort_points", lens[0].to_distorted, coords, lens[1])


@public(compiled=True)
def undistort_points(
    coords: ArrayLike | Points2D,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    *,
    new_camera_matrix: ArrayLike | None = None,
    model: LensModelLike = "brown_conrady",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Maps points of a distorted image to points of an ideal image: the inverse of `distort_points`.

    Args:
        coords: ``(x, y)``, in pixels of the camera with the lens, numbers that broadcast with each other and with the
            leading axes of the cameras to a shape S; or one array S + (2,).
        camera_matrix, distortion, new_camera_matrix, model: as in `distort_points`.

    Returns:
        Points in the form of `coords`: ``(x, y)``, two arrays of shape S, or one array S + (2,), in pixels of the ideal
        camera; float64 if an argument is, else float32. With strong negative coefficients no ray leads to points far
        from the center. There the result is infinite, with the signs of the direction from the center.

    Gradients: of any order, in forward and reverse mode, with respect to all arguments; zero where the result is
        infinite. They are the derivatives of the solution, by the implicit function theorem, not those of the
        iteration.

    Precision: that of the dtype; lower close to points without a ray, where the solution is steep.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if an argument holds no numbers.

    Source: `cv2.undistortImagePoints`, which uses a fixed-point iteration, and `cv2.fisheye.undistortPoints`; this
        function uses Newton's method.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> camera = jnp.array([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
        >>> jt.warp.undistort_points((97.5, 50.0), camera, jnp.array([-0.2, 0.0, 0.0, 0.0]))
        (Array(100., dtype=float32), Array(50., dtype=float32))
    """
    lens = lens_values("undistort_points", camera_matrix, distortion, new_camera_matrix, model, 0)
    return at_points("undistort_points", lens[0].to_ideal, coords, lens[1])


def lens_values(
    name: str,
    camera_matrix: ArrayLike,
    distortion: ArrayLike,
    new_camera_matrix: ArrayLike | None,
    model: LensModelLike,
    ndim: int,
) -> tuple[LensFunctions, Arrays]:
    """The functions of a lens model, and its parameters, with `ndim` axes of size 1 after the batch axes."""
    functions = LENS_MODELS[choose(name, "model", model, LensModel)]
    camera = as_matrix(name, camera_matrix, ((3, 3),), "camera_matrix")
    ideal = camera
    if new_camera_matrix is not None:
        ideal = as_matrix(name, new_camera_matrix, ((3, 3),), "new_camera_matrix")
    coefficients = as_coefficients(name, distortion, functions)
    values: list[jax.Array] = []
    for matrix in (camera, ideal):
        fx, _, cx, _, fy, cy, *_ = matrix_parameters(matrix, ndim)
        values += fx, cx, fy, cy
    return functions, (*values, *matrix_parameters(coefficients[..., None, :], ndim))


def as_coefficients(name: str, distortion: ArrayLike, functions: LensFunctions) -> jax.Array:
    """The coefficients of lenses, (..., n)."""
    coefficients = as_float(distortion)
    if coefficients.ndim >= 1 and coefficients.shape[-1] in functions.counts:
        return coefficients
    counts = [str(n) for n in functions.counts]
    expected = " or ".join(filter(None, (", ".join(counts[:-1]), counts[-1])))
    remedy = "pad it with zeros"
    if coefficients.ndim == 2 and coefficients.shape[-1] == 1:
        remedy = "pass distortion.ravel() in place of a column"
    elif coefficients.ndim >= 1 and coefficients.shape[-1] > max(functions.counts):
        remedy = f"jaxtex has no more: pass distortion[..., :{max(functions.counts)}] if the rest is zero"
    raise ValueError(
        f"{name}: distortion has shape {coefficients.shape}, expected (..., n) with n = {expected}: {functions.names}; "
        f"{remedy}."
    )


def check_is_no_row(name: str, image: ArrayLike, camera_matrix: ArrayLike, distortion: ArrayLike) -> None:
    """Warns of coefficients of shape (1, n), as OpenCV returns them: a batch of one lens."""
    shape = as_array(distortion).shape
    if (as_array(image).ndim, as_array(camera_matrix).ndim, shape[:-1]) == (3, 2, (1,)):
        warnings.warn(
            f"{name}: distortion has shape {shape}, which is a batch of one lens, so the "
            f"result has an extra leading axis. For one lens pass distortion[0], or what camera_from_opencv returns.",
            stacklevel=2,
        )


def at_points(
    name: str, function: GridFunction, coords: Any, values: Arrays
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """A function of a lens model at the caller's points, in their form."""
    is_tuple = isinstance(coords, tuple | list)
    if is_tuple:
        points = cast(list[Any], coords)
        if len(points) != 2:
            raise ValueError(f"{name}: coords has {len(points)} arrays, expected (x, y).")
    else:
        points = jnp.moveaxis(as_points(name, "coords", check_number(name, "coords", coords)), -1, 0)
    operands = (*(as_float(check_number(name, "coords", c)) for c in points), *values)
    try:
        shape = broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        shapes = " and ".join(str(c.shape) for c in operands[:2])
        raise ValueError(
            f"{name}: the arrays of coords have shapes {shapes}, which do not broadcast with the leading axes of the "
            f"cameras, {broadcast_shapes(*(a.shape for a in values))}; pass camera_matrix[:, None] for several "
            f"points of each camera."
        ) from None
    x, y = (jnp.broadcast_to(c, shape) for c in function(*aligned(*operands)))
    return (x, y) if is_tuple else stack((x, y), -1)
