"""Conversions of other libraries' matrices to jaxtex's pixels: edges at whole numbers, centers at +0.5, x first."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..._checks.calls import public
from ..._checks.numbers import as_float
from ..matrices import elements, from_theta, stacked, with_centers_moved
from ..options import ShapeLike, as_matrix, as_shape


@public(compiled=True)
def matrix_from_opencv(matrix: ArrayLike) -> jax.Array:
    """Converts a matrix of OpenCV, whose pixel centers are at whole numbers, to jaxtex's pixels.

    The direction of the map stays the same. A matrix for `cv2.warpAffine` or `cv2.warpPerspective` goes to
    `warp_affine` or `warp_perspective`, with ``inverse_map=True`` if the flags contain `WARP_INVERSE_MAP`.

    Args:
        matrix: ``(..., 2, 3)`` affine or ``(..., 3, 3)`` projective, in x, y order.

    Returns:
        A matrix of the same shape.

    Gradients: of any order, in forward and reverse mode, with respect to the matrix.

    Raises:
        ValueError: if the matrix has another shape.

    Source: OpenCV, "Geometric Image Transformations".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.matrix_from_opencv(jnp.array([[2.0, 0, 0], [0, 2, 0]]))
        Array([[ 2. ,  0. , -0.5],
               [ 0. ,  2. , -0.5]], dtype=float32)
    """
    return converted("matrix_from_opencv", matrix)


@public(compiled=True)
def camera_from_opencv(camera_matrix: ArrayLike, distortion: ArrayLike | None = None) -> tuple[jax.Array, jax.Array]:
    """Converts a calibration of OpenCV, whose pixel centers are at whole numbers, to the arguments of `undistort`.

    Args:
        camera_matrix: ``(..., 3, 3)``, as `cv2.calibrateCamera`, `cv2.getOptimalNewCameraMatrix` or
            `cv2.fisheye.calibrate` returns it.
        distortion: the coefficients. For one lens, in any of OpenCV's shapes, ``(n,)``, ``(1, n)`` or ``(n, 1)``, where
            `camera_matrix` has no batch axes. For several lenses, ``(..., n)`` with the batch axes of `camera_matrix`.
            The default is four zeros.

    Returns:
        A pair: the camera matrix, of the same shape, with 0.5 added to cx and cy; and the coefficients, ``(..., n)``.

    Gradients: of any order, in forward and reverse mode, with respect to both arguments.

    Raises:
        ValueError: if an argument has another shape.

    Source: OpenCV, "Camera Calibration and 3D Reconstruction".

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> theirs = np.array([[500.0, 0, 319.5], [0, 500, 239.5], [0, 0, 1]])
        >>> camera, lens = jt.warp.camera_from_opencv(theirs, np.array([[-0.2, 0.05, 0, 0, 0]]))
        >>> camera[:2, 2], lens.shape
        (Array([320., 240.], dtype=float32), (5,))
    """
    camera = as_matrix("camera_from_opencv", camera_matrix, ((3, 3),), "camera_matrix")
    coefficients = jnp.zeros(4, camera.dtype) if distortion is None else as_float(distortion)
    if coefficients.ndim == 2 and camera.ndim == 2 and 1 in coefficients.shape:
        coefficients = coefficients.reshape(-1)
    if coefficients.ndim < 1 or coefficients.ndim > max(camera.ndim - 1, 1):
        raise ValueError(
            f"camera_from_opencv: distortion has shape {coefficients.shape} and camera_matrix {camera.shape}, expected "
            f"the coefficients of one lens, or (..., n) with the batch axes of camera_matrix."
        )
    center = jnp.array([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]], camera.dtype)
    return camera + jnp.broadcast_to(center, camera.shape), coefficients


@public(compiled=True)
def matrix_from_skimage(matrix: ArrayLike) -> jax.Array:
    """Converts the matrix of a scikit-image transform, its `params`, to jaxtex's pixels.

    `skimage.transform.warp` takes the inverse map. For ``warp(image, t.inverse)``, pass the converted ``t.params`` to
    `warp_affine` or `warp_perspective`; for ``warp(image, t)``, add ``inverse_map=True``.

    Args:
        matrix: ``(..., 3, 3)``, in x, y order, with pixel centers at whole numbers.

    Returns:
        A matrix of the same shape.

    Gradients: of any order, in forward and reverse mode, with respect to the matrix.

    Raises:
        ValueError: if the matrix has another shape.

    Source: scikit-image, "skimage.transform".

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.warp.matrix_from_skimage(np.diag(np.array([2.0, 1.0, 1.0])))[0]
        Array([ 2. ,  0. , -0.5], dtype=float32)
    """
    return converted("matrix_from_skimage", matrix)


@public(compiled=True)
def matrix_from_scipy(matrix: ArrayLike, offset: ArrayLike | None = None) -> jax.Array:
    """Converts the arguments of `scipy.ndimage.affine_transform` to a matrix in jaxtex's pixels.

    SciPy's matrix maps indices of the output to indices of the input, in the order of the array's axes. Pass the result
    to `warp_affine` with ``inverse_map=True``.

    Args:
        matrix: ``(n, n)``, or ``(n,)`` for a diagonal matrix, or ``(n, n + 1)`` with the offset in its last column; n
            is 2 or 3, and the axes are y, x or z, y, x. Leave out the last row of a homogeneous matrix.
        offset: the offset that is added, a number or ``(n,)``, unless the matrix has an offset; by default 0.

    Returns:
        ``(n, n + 1)``, in x, y (, z) order: maps points of the output to points of the input.

    Gradients: of any order, in forward and reverse mode, with respect to matrix and offset.

    Raises:
        ValueError: if the matrix has another shape, or an offset beside `offset`.

    Source: SciPy, "scipy.ndimage.affine_transform".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.matrix_from_scipy(jnp.array([2.0, 1.0]), jnp.array([3.0, 0.0]))
        Array([[1. , 0. , 0. ],
               [0. , 2. , 2.5]], dtype=float32)
    """
    array = as_float(matrix)
    if array.ndim == 1 and array.shape[0] in (2, 3):
        array = jnp.diag(array)
    if array.shape not in ((2, 2), (2, 3), (3, 3), (3, 4)):
        raise ValueError(
            f"matrix_from_scipy: matrix has shape {array.shape}, expected (n,), (n, n) or (n, n + 1) for 2 or 3 axes."
        )
    n = array.shape[0]
    linear, shift = array[:, :n], array[:, n:]
    if shift.shape[1] and offset is not None:
        raise ValueError(
            f"matrix_from_scipy: offset is given, but matrix has shape {array.shape}, with an offset in its last "
            f"column; leave offset out, or pass matrix[:, :-1]."
        )
    if not shift.shape[1]:
        added = as_float(0.0 if offset is None else offset)
        if added.shape not in ((), (n,)):
            raise ValueError(f"matrix_from_scipy: offset has shape {added.shape}, expected a number or ({n},).")
        shift = jnp.broadcast_to(added, (n,))[:, None]
    return converted("matrix_from_scipy", jnp.concatenate([linear[::-1, ::-1], shift[::-1]], -1))


@public(compiled=True)
def matrix_from_torch(
    theta: ArrayLike, input_shape: ShapeLike, output_shape: ShapeLike, align_corners: bool | None = False
) -> jax.Array:
    """Converts a `theta` of `torch.nn.functional.affine_grid` to jaxtex's pixels.

    Pass the result to `warp_affine` with ``inverse_map=True``.

    Args:
        theta: ``(..., 2, 3)`` or ``(..., 3, 4)``: maps points of the output to points of the input. Coordinates are in
            x, y (, z) order and from -1 to 1.
        input_shape, output_shape: the spatial shapes of input and output, slowest axis first.
        align_corners: whether -1 and 1 are the centers of the outer pixels; otherwise they are the outer edges of these
            pixels. ``None`` is false.

    Returns:
        A matrix of the same shape.

    Gradients: of any order, in forward and reverse mode, with respect to theta.

    Raises:
        ValueError: if theta or a shape has the wrong length.

    Source: PyTorch, "torch.nn.functional.affine_grid".

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.warp.matrix_from_torch(np.eye(2, 3), (4, 8), (2, 2))
        Array([[4., 0., 0.],
               [0., 2., 0.]], dtype=float32)
    """
    name = "matrix_from_torch"
    matrix = as_matrix(name, theta, ((2, 3), (3, 4)), "theta")
    ndims = matrix.shape[-2:-1]
    before = as_shape(name, "input_shape", input_shape, ndims)
    after = as_shape(name, "output_shape", output_shape, ndims)
    return stacked(from_theta(elements(matrix), before, after, align_corners))


def converted(name: str, matrix: ArrayLike) -> jax.Array:
    array = as_matrix(name, matrix, ((2, 3), (3, 3), (3, 4), (4, 4)))
    return stacked(with_centers_moved(elements(array)))
