"""The rays of scanners and cameras: the start and the end of each ray, in texels. Angles are in radians."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float
from .._jax.versions import stack
from .._tables.storage_formats import sum_dtype
from ..warp.options import ShapeLike, as_shape

PIXELS = {1: "(width,)", 2: "(height, width)"}


class Rays(NamedTuple):
    """Segments in texels, x before y before z.

    Attributes:
        start: where rays begin; its shape broadcasts with that of `end`.
        end: where rays end, S + (3,), or S + (2,) for an image.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> rays = jt.rays.Rays(np.array([2.0, 0.5]), np.array([2.0, 3.5]))
        >>> jt.rays.line_integral(np.ones((4, 6, 1)), *rays, num_samples=3)
        Array([3.], dtype=float32)
    """

    start: jax.Array
    end: jax.Array


@public(compiled=True)
def parallel_beam(
    volume_shape: ShapeLike,
    angles: ArrayLike,
    detector_shape: ShapeLike,
    *,
    pixel_size: ArrayLike = 1.0,
) -> Rays:
    """The rays of a parallel beam that turns about the center of a volume, or of an image.

    At angle t, rays go along (-sin t, cos t) in x and y, and the columns of the detector lie along (cos t, sin t). At
    angle 0, rays go along y, from row 0 of an image to its last row. The rows of the detector lie along z, the axis of
    rotation. The central ray passes through the center.

    Angles are those of ODL for an array indexed [x, y, z], whose axes are in the opposite order here. ASTRA counts y
    upwards, from the last row: its angle t is -t here.

    Args:
        volume_shape: ``(D, H, W)``, or ``(H, W)`` of an image; static.
        angles: (A,), in radians; of degrees, ``jnp.deg2rad(degrees)``.
        detector_shape: ``(height, width)`` in pixels, or ``(width,)`` for an image; static.
        pixel_size: the distance of neighboring pixels of the detector in texels, a number.

    Returns:
        `Rays` of shape (A, height, width, 3), or (A, width, 2). Each is as long as the diagonal of the volume, and its
        middle is the point nearest to the axis of rotation.

    Gradients: of any order, in forward and reverse mode, with respect to `angles` and `pixel_size`.

    Raises:
        ValueError: if shapes do not fit each other.
        TypeError: if a shape is traced.

    Source: J. Adler et al., Operator Discretization Library, `odl.tomo`; W. van Aarle et al., "Fast and flexible X-ray
        tomography using the ASTRA toolbox", 2016.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> rays = jt.rays.parallel_beam((3, 3), jnp.array([0.0]), (1,))
        >>> jnp.round((rays.start + rays.end) / 2, 1)
        Array([[[1.5, 1.5]]], dtype=float32)
    """
    frame = Frame.of("parallel_beam", volume_shape, angles, detector_shape, pixel_size)
    half = 0.5 * math.hypot(*frame.sizes) * frame.along
    return Rays(frame.pixels - half, frame.pixels + half)


@public(compiled=True)
def cone_beam(
    volume_shape: ShapeLike,
    angles: ArrayLike,
    detector_shape: ShapeLike,
    *,
    source_distance: ArrayLike,
    detector_distance: ArrayLike,
    pixel_size: ArrayLike = 1.0,
) -> Rays:
    """The rays of a cone beam, or of a fan beam for an image: from a point to a flat detector.

    At angle t, the source is at ``source_distance * (sin t, -cos t)`` from the center, in x and y, and the middle of
    the detector at ``detector_distance * (-sin t, cos t)``. The columns of the detector lie along (cos t, sin t), and
    its rows along z, the axis of rotation. So the central ray is that of `parallel_beam`. The distances are the
    ``src_radius`` and ``det_radius`` of ODL, and the distances from the origin to the source and to the detector of
    ASTRA, both divided by the size of a texel; see `parallel_beam` for their angles.

    Args:
        volume_shape: ``(D, H, W)``, or ``(H, W)`` of an image; static.
        angles: (A,), in radians; of degrees, ``jnp.deg2rad(degrees)``.
        detector_shape: ``(height, width)`` in pixels, or ``(width,)`` for an image; static.
        source_distance, detector_distance: from the center to the source and to the detector, in texels; numbers.
        pixel_size: the distance of neighboring pixels of the detector in texels, a number.

    Returns:
        `Rays` from the source, (A, 1, 1, 3), to each pixel, (A, height, width, 3); or (A, 1, 2) and (A, width, 2).

    Gradients: of any order, in forward and reverse mode, with respect to `angles`, the distances and `pixel_size`.

    Raises:
        ValueError: if shapes do not fit each other.
        TypeError: if a shape is traced.

    Source: as in `parallel_beam`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> fan = jt.rays.cone_beam((3, 3), np.array([0.0]), (2,), source_distance=10.0, detector_distance=5.0)
        >>> fan.start[0, 0], fan.end[0]
        (Array([ 1.5, -8.5], dtype=float32), Array([[1. , 6.5],
               [2. , 6.5]], dtype=float32))
    """
    frame = Frame.of("cone_beam", volume_shape, angles, detector_shape, pixel_size)
    source, detector = (
        number_of("cone_beam", argument, value, frame.center.dtype)
        for argument, value in (("source_distance", source_distance), ("detector_distance", detector_distance))
    )
    return Rays(frame.center - source * frame.along, frame.pixels + detector * frame.along)


@public(compiled=True)
def camera_rays(
    camera_matrix: ArrayLike,
    pose: ArrayLike,
    image_shape: ShapeLike,
    *,
    near: ArrayLike = 0.0,
    far: ArrayLike,
) -> Rays:
    """The rays of a pinhole camera through the centers of its pixels.

    The camera looks along its z axis, with x to the right and y down, as in OpenCV.

    Args:
        camera_matrix: (3, 3), ``[[fx, s, cx], [0, fy, cy], [0, 0, 1]]`` in pixels, whose origin is the corner of the
            first pixel: add 0.5 to OpenCV's cx and cy.
        pose: (3, 4) or (4, 4), from the camera to the volume, in texels: its last column is the place of the camera.
        image_shape: ``(height, width)`` in pixels; static.
        near, far: the depths along the camera's z axis at which rays begin and end, in texels; numbers.

    Returns:
        `Rays` of shape (height, width, 3).

    Gradients: of any order, in forward and reverse mode, with respect to all arrays.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if the shape is traced.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> camera = np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 0.5], [0.0, 0.0, 1.0]])
        >>> jt.rays.camera_rays(camera, np.eye(3, 4), (1, 2), far=4.0).end
        Array([[[-1.,  0.,  4.],
                [ 1.,  0.,  4.]]], dtype=float32)
    """
    name = "camera_rays"
    matrix, to_volume = as_float(camera_matrix), as_float(pose)
    height, width = as_shape(name, "image_shape", image_shape, (2,), PIXELS)
    if matrix.shape != (3, 3):
        raise ValueError(f"{name}: camera_matrix has shape {matrix.shape}, expected (3, 3).")
    if to_volume.shape not in ((3, 4), (4, 4)):
        raise ValueError(f"{name}: pose has shape {to_volume.shape}, expected (3, 4) or (4, 4).")
    first, last = number_of(name, "near", near), number_of(name, "far", far)
    dtype = sum_dtype(*(a.dtype for a in (matrix, to_volume, first, last)))
    matrix, to_volume, first, last = (a.astype(dtype) for a in (matrix, to_volume, first, last))
    y = (centers(height, dtype) - matrix[1, 2]) / matrix[1, 1]
    x = (centers(width, dtype)[None] - matrix[0, 2] - matrix[0, 1] * y[:, None]) / matrix[0, 0]
    right, down, ahead, place = (column[None, None] for column in jnp.unstack(to_volume[:3], axis=1))
    # From the camera to the points at depth 1. A product of matrices may be less precise.
    along = x[..., None] * right + y[:, None, None] * down + ahead
    return Rays(place + first * along, place + last * along)


class Frame(NamedTuple):
    """A detector that turns about the center of a volume; points have the axes of angles and pixels in front.

    Attributes:
        sizes: the sizes of the volume, x first.
        center: (A, ..., n), with axes of size 1 for pixels.
        along: the direction of the central ray, of the shape of `center`.
        pixels: the pixels of the detector, placed at the center, (A, ..., n).
    """

    sizes: tuple[int, ...]
    center: jax.Array
    along: jax.Array
    pixels: jax.Array

    @classmethod
    def of(cls, name: str, volume_shape: Any, angles: Any, detector_shape: Any, pixel_size: Any) -> "Frame":
        sizes = as_shape(name, "volume_shape", volume_shape)[::-1]
        ndim = len(sizes)
        detector = as_shape(name, "detector_shape", detector_shape, (ndim - 1,), PIXELS)[::-1]
        angle, pitch = angles_of(name, angles), number_of(name, "pixel_size", pixel_size)
        dtype = sum_dtype(angle.dtype, pitch.dtype)
        angle = jnp.expand_dims(angle.astype(dtype), range(1, ndim))
        zero = jnp.zeros_like(angle)
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        along = stack([-sine, cosine, *[zero] * (ndim - 2)], -1)
        axes = [
            stack([cosine, sine, *[zero] * (ndim - 2)], -1),
            np.asarray((0, 0, 1), dtype).reshape(*[1] * ndim, -1),
        ]
        center = jnp.broadcast_to(np.asarray(sizes, dtype).reshape(*[1] * ndim, -1) / 2, along.shape)
        pixels = center
        for k, (count, axis) in enumerate(zip(detector, axes)):
            places = (centers(count, dtype) - count / 2) * pitch.astype(dtype)
            pixels = pixels + places.reshape(1, *(-1 if k == n else 1 for n in reversed(range(ndim - 1))), 1) * axis
        return cls(sizes, center, along, pixels)


def centers(count: int, dtype: Any) -> jax.Array:
    """The centers of pixels along a line."""
    return jnp.arange(count, dtype=jnp.int32).astype(dtype) + 0.5


def angles_of(name: str, angles: Any) -> jax.Array:
    """Angles, (A,)."""
    angle = as_float(angles)
    if angle.ndim != 1:
        raise ValueError(f"{name}: angles has shape {angle.shape}, expected (A,), in radians; one is angles[None].")
    return angle


def number_of(name: str, argument: str, value: Any, dtype: Any = None) -> jax.Array:
    """One floating number."""
    number = as_float(value)
    if number.ndim:
        raise ValueError(f"{name}: {argument} has shape {number.shape}, expected one number.")
    return number if dtype is None else number.astype(dtype)
