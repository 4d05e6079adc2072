"""The prefilter of splines, for arrays of any number of axes."""

from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_integer
from .._checks.texels import check_sizes
from .._jax.calls import typed_jit
from .._tables.filter_kernels import b_spline
from ..splines import filtered_along
from .arguments import as_channels, as_result, check_input, check_order, result_dtype, sums_of
from .extensions import EXTENSIONS, Mode, check_mode


@public
def spline_filter(input: ArrayLike, order: int = 3, output: DTypeLike = np.float64, mode: Mode = "mirror") -> jax.Array:
    """Returns the coefficients of the spline that passes through the elements of an array, along all axes.

    The functions of this package filter their input themselves. To read one array many times, filter it once, and pass
    ``prefilter=False`` with the same order and mode.

    Args:
        input: an array of numbers or bool, of any shape; real and imaginary parts are filtered separately.
        order: the order of the spline, from 2 to 5.
        output: the dtype of the result; float64 becomes float32 unless JAX has 64-bit types enabled. A complex input
            gives a complex result.
        mode: how the array continues outside, see `map_coordinates`. ``"constant"``, ``"grid-constant"`` and ``"wrap"``
            are filtered as ``"mirror"``, and ``"nearest"`` as ``"reflect"``.

    Returns:
        The coefficients, in the shape of `input`.

    Gradients: with respect to a floating or complex `input`, in which the coefficients are linear, in forward and
        reverse mode.

    Precision: sums are computed in float64 if the input or the result is float64, else in float32. See
        `docs/ndimage.md`.

    Raises:
        ValueError: if order or mode are unknown, or an axis is empty.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.spline_filter`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> coefficients = jt.ndimage.spline_filter(np.array([1.0, 4.0, 2.0]))
        >>> jt.ndimage.map_coordinates(coefficients, [np.arange(3)], mode="mirror", prefilter=False).round(5)
        Array([1., 4., 2.], dtype=float32)
    """
    name = "spline_filter"
    array = check_input(name, input, 0)
    order = check_order(name, order, 2)
    return _filtered(
        array,
        axes=tuple(range(array.ndim)),
        order=order,
        mode=check_mode(name, mode),
        dtype=result_dtype(name, output, array.dtype),
    )


@public
def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, output: DTypeLike = np.float64, mode: Mode = "mirror"
) -> jax.Array:
    """Returns the coefficients of the splines that pass through the elements of an array along one axis.

    Args:
        input: an array of numbers or bool of one axis or more.
        order: the order of the spline, from 0 to 5. Orders 0 and 1 return the input.
        axis: along which to filter; -1 is the last one.
        output, mode: as in `spline_filter`.

    Returns:
        The coefficients, in the shape of `input`.

    Gradients: as in `spline_filter`.

    Raises:
        ValueError: if order or mode are unknown, or the array has no such axis.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.spline_filter1d`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.ndimage.spline_filter1d(np.array([[0, 6, 0], [0, 0, 0]]), output="int32")
        Array([[-6, 12, -6],
               [ 0,  0,  0]], dtype=int32)
    """
    name = "spline_filter1d"
    array = check_input(name, input, may_be_symbolic=True)
    axis = as_integer(name, "axis", axis, -array.ndim, array.ndim - 1)
    check_sizes(f"{name}: input has shape {array.shape}", [array.shape[axis]])
    return _filtered(
        array,
        axes=(axis % array.ndim,),
        order=check_order(name, order),
        mode=check_mode(name, mode),
        dtype=result_dtype(name, output, array.dtype),
    )


@typed_jit("axes", "order", "mode", "dtype")
def _filtered(array: jax.Array, *, axes: tuple[int, ...], order: int, mode: str, dtype: np.dtype[Any]) -> jax.Array:
    if order < 2:
        return as_result(as_channels(array), dtype)
    values = as_channels(array).astype(sums_of(array.dtype, dtype))
    for axis in axes:
        values = filtered_along(values, axis, b_spline(order), EXTENSIONS[mode].coefficients)
    return as_result(values, dtype)
