"""Matrices of other libraries, in our pixels: corners at whole numbers, centres at +0.5, x before y before z."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_float
from .calls import compiled
from .matrices import elements, from_theta, stacked, with_centres_moved
from .shapes import as_matrix, as_shape


@compiled()
def matrix_from_opencv(matrix: Any) -> jax.Array:
    """A matrix of OpenCV's, whose pixel centres are at whole numbers, in our pixels.

    It maps what it mapped: give one for `cv2.warpAffine` or `cv2.warpPerspective` to `warp_affine` or
    `warp_perspective`, and say ``inverse_map=True`` where the flag was `WARP_INVERSE_MAP`.

    Args:
        matrix: ``(..., 2, 3)`` affine or ``(..., 3, 3)`` projective, in x, y order.

    Returns:
        A matrix of the same shape.

    Gradients: to the matrix, any order, both modes.

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


@compiled()
def matrix_from_skimage(matrix: Any) -> jax.Array:
    """The matrix of a geometric transform of scikit-image's, its `params`, in our pixels.

    `skimage.transform.warp` takes the inverse map: for ``warp(image, t.inverse)`` give this matrix of ``t.params`` to
    `warp_affine` or `warp_perspective`; for ``warp(image, t)`` say ``inverse_map=True``.

    Args:
        matrix: ``(..., 3, 3)``, in x, y order, pixel centres at whole numbers.

    Returns:
        A matrix of the same shape.

    Gradients: to the matrix, any order, both modes.

    Raises:
        ValueError: if the matrix has another shape.

    Source: scikit-image, "skimage.transform".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.matrix_from_skimage(jnp.diag(jnp.array([2.0, 1.0, 1.0])))[0]
        Array([ 2. ,  0. , -0.5], dtype=float32)
    """
    return converted("matrix_from_skimage", matrix)


@compiled()
def matrix_from_scipy(matrix: Any, offset: Any = 0.0) -> jax.Array:
    """Matrix and offset of `scipy.ndimage.affine_transform` in our pixels, for ``warp_affine(..., inverse_map=True)``.

    SciPy's matrix maps indices of the output to indices of the input, in the order of the array's axes.

    Args:
        matrix: ``(n, n)``, or ``(n,)`` for a diagonal one, or ``(n, n + 1)`` with the offset in its last column; n is 2
            or 3. Of a homogeneous one leave out the last row. The axes are y, x or z, y, x.
        offset: a number or ``(n,)``, added; not used where the matrix holds one.

    Returns:
        ``(n, n + 1)``, in x, y (, z) order: from points of the output to points of the input.

    Gradients: to matrix and offset, any order, both modes.

    Raises:
        ValueError: if the matrix has another shape.

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
    if not shift.shape[1]:
        shift = jnp.broadcast_to(as_float(offset), (n,))[:, None]
    return converted("matrix_from_scipy", jnp.concatenate([linear[::-1, ::-1], shift[::-1]], -1))


@compiled("input_shape", "output_shape", "align_corners")
def matrix_from_torch(
    theta: Any, input_shape: Sequence[int], output_shape: Sequence[int], align_corners: bool = False
) -> jax.Array:
    """A `theta` of `torch.nn.functional.affine_grid` in our pixels, for ``warp_affine(..., inverse_map=True)``.

    Args:
        theta: ``(..., 2, 3)`` or ``(..., 3, 4)``: from output to input, in x, y (, z) order, both from -1 to 1.
        input_shape, output_shape: the spatial shapes of input and output, slowest first.
        align_corners: whether -1 and 1 are the centres of the outer pixels, not their outer edges.

    Returns:
        A matrix of the same shape.

    Gradients: to theta, any order, both modes.

    Raises:
        ValueError: if the matrix has another shape.

    Source: PyTorch, "torch.nn.functional.affine_grid".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.matrix_from_torch(jnp.eye(2, 3), (4, 8), (2, 2))
        Array([[4., 0., 0.],
               [0., 2., 0.]], dtype=float32)
    """
    theta = as_matrix("matrix_from_torch", theta, ((2, 3), (3, 4)), "theta")
    shapes = (("input_shape", input_shape), ("output_shape", output_shape))
    before, after = (as_shape("matrix_from_torch", name, shape, theta.shape[-2:-1]) for name, shape in shapes)
    return stacked(from_theta(elements(theta), before, after, align_corners))


def converted(name: str, matrix: Any) -> jax.Array:
    array = as_matrix(name, matrix, ((2, 3), (3, 3), (3, 4), (4, 4)))
    return stacked(with_centres_moved(elements(array)))
