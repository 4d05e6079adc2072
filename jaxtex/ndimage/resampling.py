"""Shifts, zooms and rotations of arrays."""

import warnings
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import is_integer
from .._checks.words import shown
from .._jax.calls import typed_jit
from .._jax.indexing import reshaped
from .arguments import (
    PerAxis,
    as_channels,
    as_cval,
    as_floats,
    as_result,
    check_input,
    check_known,
    known_floats,
    per_axis,
    placed,
    reading_of,
)
from .extensions import Mode
from .reads import index_lines, merged, read_lines
from .transforms import read_affine

# The modes that SciPy recommends with grid_mode.
GRID_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}


@public
def shift(
    input: ArrayLike,
    shift: PerAxis,
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> jax.Array:
    """Shifts an array: the result at index o is the array at index ``o - shift``.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        shift: the shift in elements, a number for all axes, or one for each.

    Returns:
        An array in the shape of `input`.

    Gradients: as in `map_coordinates`, with respect to `input`, `shift` and `cval`.

    Raises:
        ValueError: if shapes do not fit, or order or mode are unknown.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.shift`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.ndimage.shift(jnp.array([1.0, 2.0, 3.0]), 1, cval=-1).round(5)
        Array([-1.,  1.,  2.], dtype=float32)
    """
    name = "shift"
    array = check_input(name, input)
    reading = reading_of(name, array, output, order, mode, prefilter, shift)
    steps = per_axis(name, "shift", shift, array.ndim, reading.sums)
    lines = shifted_lines(array.shape, steps, reading.sums)
    return read_lines(array, lines, as_cval(name, cval, array, reading), reading=reading)


@typed_jit("shape", "dtype")
def shifted_lines(shape: tuple[int, ...], steps: jax.Array, dtype: np.dtype[Any]) -> tuple[jax.Array, ...]:
    """The indices along each axis of a result, less a step for each axis."""
    return tuple(k - step for k, step in zip(index_lines(shape, dtype), steps))


@public
def zoom(
    input: ArrayLike,
    zoom: float | Sequence[float] | np.ndarray[Any, Any],
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> jax.Array:
    """Zooms an array to new sizes, ``round(size * zoom)``, with halves rounded to even.

    An array that shrinks is not smoothed; `jaxtex.warp.resize` smooths it.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        zoom: the factor for all axes, or one for each, finite, at least 0 and known during tracing.
        grid_mode: whether the outer edges of the outer elements stay in place; otherwise their centers do.

    Returns:
        An array of the new sizes. Along an axis that keeps its size, the elements stay as they are, unless `prefilter`
        is false and `order` above 1.

    Gradients: as in `map_coordinates`, with respect to `input` and `cval`.

    Raises:
        ValueError: if shapes do not fit, order or mode are unknown, or a size would be negative or infinite.
        TypeError: if `zoom` is traced, `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.zoom`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.ndimage.zoom(jnp.array([1.0, 2.0, 4.0]), 1.7, order=1)
        Array([1. , 1.5, 2. , 3. , 4. ], dtype=float32)
    """
    name = "zoom"
    array = check_input(name, input)
    factors = known_floats(name, "zoom", zoom)
    if factors.shape not in ((), (array.ndim,)):
        raise ValueError(
            f"{name}: zoom has shape {factors.shape}, expected a number for all axes of input, or {array.ndim} numbers."
        )
    # As in SciPy, a size may round to 0, but not below.
    if not (np.isfinite(factors) & (np.rint(factors * array.shape) >= 0)).all():
        raise ValueError(
            f"{name}: zoom is {shown(zoom)}, expected finite factors of at least 0; to flip an axis, use "
            f"jax.numpy.flip."
        )
    factors = np.broadcast_to(factors, (array.ndim,)).tolist()
    reading = reading_of(name, array, output, order, mode, prefilter)
    counts = [round(n * factor) for n, factor in zip(array.shape, factors)]
    # Along an axis that keeps its size, a spline through the elements is read at the elements.
    keeps = reading.prefilter or reading.order < 2
    if keeps and counts == list(array.shape):
        return as_result(as_channels(jnp.asarray(array)), reading.dtype)
    if grid_mode and reading.mode in GRID_MODES:
        warnings.warn(
            f"{name}: It is recommended to use mode = {GRID_MODES[reading.mode]} instead of {reading.mode} when "
            f"grid_mode is True.",
            stacklevel=3,
        )
    lines = tuple(
        None if keeps and n == count else placed(zoomed_indices(n, count, grid_mode).astype(reading.sums))
        for n, count in zip(array.shape, counts)
    )
    return read_lines(array, lines, as_cval(name, cval, array, reading), reading=reading)


def zoomed_indices(size: int, count: int, whole: bool) -> np.ndarray[Any, Any]:
    """The indices of `count` elements that fill an axis, from the first to the last center, or over `whole` elements.

    They are rounded to float32 or float64 once, when they are complete.
    """
    index = np.arange(count, dtype=np.float64)
    if whole:
        return (index + 0.5) * (size / count) - 0.5 if count else index
    return index * ((size - 1) / (count - 1) if count > 1 else 1.0)


@public
def rotate(
    input: ArrayLike,
    angle: ArrayLike,
    axes: tuple[int, int] = (1, 0),
    reshape: bool = True,
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> jax.Array:
    """Rotates an array about its center, in the plane of two axes.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`; `input` has two axes or more.
        angle: the angle in degrees. It may be traced if `reshape` is false.
        axes: the two axes, in any order.
        reshape: whether the result is made large enough to hold the whole array.

    Returns:
        The rotated array, in the shape of `input` if `reshape` is false.

    Gradients: as in `map_coordinates`, with respect to `input` and `cval`, and, if `reshape` is false, to `angle`.

    Raises:
        ValueError: if there are no such axes, or order or mode are unknown.
        TypeError: if `angle` is traced and `reshape` true, `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.rotate`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.ndimage.rotate(jnp.array([[1, 2, 3], [4, 5, 6]]), 90, order=1)
        Array([[3, 6],
               [2, 5],
               [1, 4]], dtype=int32)
    """
    name = "rotate"
    array = check_input(name, input, 2)
    plane = rotation_plane(name, axes, array.ndim)
    reading = reading_of(name, array, output, order, mode, prefilter, angle)
    if reshape:
        check_known(name, "angle", angle, "and the shape of the result depends on it; pass a number, or reshape=False")
    sizes = [array.shape[k] for k in plane]
    matrix = rotation(name, angle, reading.sums)
    counts = rotated_sizes(np.asarray(matrix, np.float64), sizes) if reshape else sizes
    offset = (np.asarray(sizes) - 1) / 2 - matrix @ ((np.asarray(counts) - 1) / 2).astype(matrix.dtype)
    # Neighboring axes that do not rotate become one.
    shape, moved = merged(array.shape, plane)
    results = [counts[moved.index(k)] if k in moved else n for k, n in enumerate(shape)]
    rotated = read_affine(
        reshaped(array, shape),
        placed(matrix.astype(reading.sums)),
        placed(offset.astype(reading.sums)),
        tuple(results),
        moved,
        as_cval(name, cval, array, reading),
        reading,
    )
    whole = list(array.shape)
    for k, n in zip(plane, counts):
        whole[k] = n
    return reshaped(rotated, whole)


def rotation_plane(name: str, axes: Any, ndim: int) -> tuple[int, int]:
    """Two axes, in order."""
    given = tuple(cast(Sequence[Any], axes)) if isinstance(axes, tuple | list | np.ndarray) else ()
    if len(given) == 2 and all(is_integer(k, -ndim, ndim - 1) for k in given):
        first, second = sorted(int(k) % ndim for k in given)
        if first != second:
            return first, second
    raise ValueError(f"{name}: axes is {shown(axes)}, expected two different axes from {-ndim} to {ndim - 1}.")


def rotation(name: str, angle: Any, dtype: np.dtype[Any]) -> Any:
    """The matrix of a rotation by degrees: NumPy's in float64 if the angle is known, else traced.

    Sines and cosines of multiples of 90 degrees are exact.
    """
    traced = isinstance(angle, Tracer)
    xp: Any = jnp if traced else np
    degrees = as_floats(name, "angle", angle, dtype) if traced else known_floats(name, "angle", angle)
    if degrees.shape:
        raise ValueError(f"{name}: angle has shape {degrees.shape}, expected a number.")
    turns = xp.round(degrees / 90)
    rest = xp.deg2rad(degrees - 90 * turns)
    cosine, sine, quarter = xp.cos(rest), xp.sin(rest), turns % 4
    cosines = [cosine, -sine, -cosine, sine]

    def choose(values: Sequence[Any]) -> Any:
        return sum(xp.where(quarter == k, value, 0) for k, value in enumerate(values))

    c, s = choose(cosines), choose([sine, *cosines[:3]])
    return xp.stack([xp.stack([c, s]), xp.stack([-s, c])])


def rotated_sizes(matrix: np.ndarray[Any, Any], sizes: Sequence[int]) -> list[int]:
    """The sizes that hold a rotated array."""
    rows, columns = sizes
    corners = matrix @ np.array([[0, 0, rows, rows], [0, columns, 0, columns]])
    return [int(extent) for extent in np.ptp(corners, axis=1) + 0.5]
