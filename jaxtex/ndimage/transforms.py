"""Reads of arrays at given indices, at indices from a function, and at indices from a matrix."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import check_function, public
from .._checks.numbers import as_array
from .._checks.texels import check_sizes
from .._engine.api import Operand, Stacked
from .._jax.calls import typed_jit
from .._jax.shapes import broadcast_shapes, is_symbolic
from .._reads.arguments import check_number, converted
from .arguments import (
    PerAxis,
    Reading,
    ShapeLike,
    as_cval,
    as_floats,
    check_input,
    check_shape,
    is_sequence,
    per_axis,
    reading_of,
)
from .extensions import Mode
from .reads import Arrays, as_given, index_grid, index_lines, read, read_lines


@public
def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> jax.Array:
    """Reads an array at fractional indices by splines.

    Args:
        input: an array of numbers or bool of one axis or more. Real and imaginary parts are read separately.
        coordinates: indices, an array for each axis of `input`, slowest axis first: stacked along a first axis, or a
            sequence of arrays whose shapes broadcast to S. Element i is at index i.
        output: the dtype of the result; by default that of `input`. A complex input gives a complex result.
        order: the order of the spline, from 0 to 5; 0 takes the nearest element, and 1 is linear.
        mode: how the array continues outside, for n elements a b c d along an axis:

            - ``"reflect"``, ``"grid-mirror"``: (d c b a | a b c d | d c b a), with the period 2 n.
            - ``"constant"``: (k k k k | a b c d | k k k k), where k is `cval`: a sample before the first or after the
              last element is `cval`. Between them the spline is that of ``"mirror"``.
            - ``"grid-constant"``: the same elements, but blended with k on both sides of the outer elements.
            - ``"nearest"``: (a a a a | a b c d | d d d d).
            - ``"mirror"``: (d c b | a b c d | c b a), with the period 2 (n - 1).
            - ``"grid-wrap"``: (a b c d | a b c d | a b c d), with the period n.
            - ``"wrap"``: (d b c | a b c d | b c a), with the period n - 1.
        cval: the number outside in ``"constant"`` and ``"grid-constant"``.
        prefilter: whether to filter the array first, so that the spline passes through its elements. Pass false if the
            array holds the result of `spline_filter` with this order and mode; for another array, the result is then
            smoothed. Orders 0 and 1 need no filter.

    Returns:
        S. Integers are rounded, halves away from zero, and saturate. With a bool `output`, magnitudes of at least 1 are
        true.

    Gradients: of any order, in forward and reverse mode, with respect to a floating or complex `input`, to coordinates
        and to `cval`. Derivatives along one coordinate vanish beyond the order of the spline. At a whole index the
        slope of order 1 is the one on the right.

    Precision: weights and sums are computed in float64 if the input, the result or the coordinates are float64, or if
        JAX has 64-bit types enabled and the input holds integers; else in float32. See `docs/ndimage.md`.

    Raises:
        ValueError: if shapes do not fit, or order or mode are unknown.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.map_coordinates`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.ndimage.map_coordinates(jnp.array([10.0, 20.0, 40.0]), [jnp.array([0.5, 1.5, 2.5])], order=1, cval=-1)
        Array([15., 30., -1.], dtype=float32)
    """
    name = "map_coordinates"
    array = check_input(name, input)
    indices = check_indices(name, "coordinates", coordinates, array.ndim)
    reading = reading_of(name, array, output, order, mode, prefilter, indices)
    if is_sequence(coordinates):
        return read_at(name, array, indices, cval, reading)
    whole = as_floats(name, "coordinates", strong(as_array(coordinates)), reading.sums)
    return read_all(array, (Stacked.first(whole),), as_cval(name, cval, array, reading), reading)


@public
def geometric_transform(
    input: ArrayLike,
    mapping: Callable[..., Sequence[ArrayLike]],
    output_shape: ShapeLike | None = None,
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: Mapping[str, Any] | None = None,
) -> jax.Array:
    """Reads an array at the indices that a function computes from the indices of the result.

    The function runs once in each call, not once for each element; put the call under `jax.jit`.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`.
        mapping: ``mapping(indices, *extra_arguments, **extra_keywords)`` takes a tuple of integer arrays, one for each
            axis of the result, slowest first, which broadcast to `output_shape`. It returns one index for each axis of
            `input`, computed element by element by operations of JAX.
        output_shape: by default that of `input`; it may have more or fewer axes.
        extra_arguments, extra_keywords: further arguments of `mapping`.

    Returns:
        An array of shape `output_shape`.

    Gradients: as in `map_coordinates`, and with respect to values that `mapping` closes over and to its further
        arguments.

    Raises:
        ValueError: if shapes do not fit, or order or mode are unknown.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.geometric_transform`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.ndimage.geometric_transform(np.array([1, 2, 3, 4, 5]), lambda i: (i[0] - 3,), mode="reflect")
        Array([3, 2, 1, 1, 2], dtype=int32)
    """
    name = "geometric_transform"
    array = check_input(name, input)
    shape = check_shape(name, output_shape, array.shape)
    check_function(name, "mapping", mapping)
    found = mapping(index_grid(shape, np.dtype(np.int32)), *extra_arguments, **(extra_keywords or {}))
    indices = check_indices(name, "mapping", found, array.ndim, shape)
    reading = reading_of(name, array, output, order, mode, prefilter, indices)
    return read_at(name, array, indices, cval, reading, shape)


@public
def affine_transform(
    input: ArrayLike,
    matrix: ArrayLike | Sequence[ArrayLike],
    offset: PerAxis = 0.0,
    output_shape: ShapeLike | None = None,
    output: DTypeLike | None = None,
    order: int = 3,
    mode: Mode = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> jax.Array:
    """Transforms an array by a matrix: the result at index o is the array at index ``matrix @ o + offset``.

    Args:
        input, output, order, mode, cval, prefilter: as in `map_coordinates`; `input` has n axes.
        matrix: one of these:

            - ``(n, m)`` for a result of m axes, where m is not n + 1.
            - ``(n,)``: the diagonal of a diagonal matrix, which is faster.
            - ``(n, n + 1)``, or ``(n + 1, n + 1)`` with a last row of zeros and a one: with the offset as the last
              column; `offset` is ignored.
        offset: a number, or n numbers.
        output_shape: m sizes, by default those of `input`.

    Returns:
        An array of shape `output_shape`.

    Gradients: as in `map_coordinates`, with respect to `input`, `matrix`, `offset` and `cval`.

    Precision: as in `map_coordinates`. Float32 indices have an error of a few units in the last place of their largest
        term: up to 2^-13 at 1,000.

    Raises:
        ValueError: if shapes do not fit, the last row of a homogeneous matrix is not zeros and a one, or order or mode
            are unknown.
        TypeError: if `output` is an array, or arguments have the wrong type.

    Source: `scipy.ndimage.affine_transform`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.ndimage.affine_transform(np.arange(6).reshape(2, 3), [[0, 1], [1, 0]], output_shape=(3, 2))
        Array([[0, 3],
               [1, 4],
               [2, 5]], dtype=int32)
    """
    name = "affine_transform"
    array = check_input(name, input)
    shape = check_shape(name, output_shape, array.shape)
    reading = reading_of(name, array, output, order, mode, prefilter, (matrix, offset))
    linear = as_floats(name, "matrix", matrix, reading.sums)
    linear, offset = without_last_column(name, linear, offset, array.ndim)
    check_matrix(name, linear, array.ndim, len(shape))
    steps = per_axis(name, "offset", offset, array.ndim, reading.sums)
    outside = as_cval(name, cval, array, reading)
    if linear.ndim == 1:
        lines = tuple(k * m + o for k, m, o in zip(index_lines(shape, reading.sums), linear, steps))
        return read_lines(array, lines, outside, reading=reading)
    return read_affine(array, linear, steps, shape, tuple(range(array.ndim)), outside, reading)


class Affine(NamedTuple):
    """A matrix times indices, plus an offset: an index function.

    Its operands are `columns` indices of the result, then the elements of the matrix by rows, each row followed by its
    offset.
    """

    rows: int
    columns: int

    def __call__(self, *operands: jax.Array) -> Arrays:
        indices, elements = operands[: self.columns], operands[self.columns :]
        step = self.columns + 1
        return tuple(row_times(elements[k * step : (k + 1) * step], indices) for k in range(self.rows))


def row_times(row: Sequence[jax.Array], indices: Sequence[jax.Array]) -> jax.Array:
    """A row of a matrix times indices, plus the last element of the row."""
    total = row[-1]
    for element, index in zip(row, indices):
        total = total + element * index
    return total


@typed_jit("rank")
def affine_elements(matrix: jax.Array, offset: jax.Array, rank: int) -> Arrays:
    """The elements of a matrix and an offset as `Affine` takes them, of `rank` axes."""
    rows = jnp.concatenate([matrix, offset[:, None]], 1)
    return tuple(rows[i, j].reshape([1] * rank) for i in range(rows.shape[0]) for j in range(rows.shape[1]))


def read_affine(
    array: Any,
    matrix: jax.Array,
    offset: jax.Array,
    shape: tuple[int, ...],
    moved: tuple[int, ...],
    cval: jax.Array | None,
    reading: Reading,
) -> jax.Array:
    """Reads an array along the axes in `moved` at a matrix times indices of the result, plus an offset.

    Args:
        shape: of the result.
        moved: all axes, or those that the matrix mixes; the others stay as they are.
    """
    places = moved if len(moved) < array.ndim else range(len(shape))
    grid = index_grid(shape, reading.sums)
    operands = (*(grid[k] for k in places), *affine_elements(matrix, offset, len(shape)))
    function = Affine(len(moved), len(tuple(places)))
    return read(array, operands, cval, function=function, moved=moved, reading=reading)


def without_last_column(name: str, matrix: jax.Array, offset: Any, ndim: int) -> tuple[jax.Array, Any]:
    """The linear part and the offset of a homogeneous matrix; any other matrix unchanged."""
    if matrix.ndim != 2 or matrix.shape not in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        return matrix, offset
    last = [0.0] * ndim + [1.0]
    if matrix.shape[0] > ndim and not isinstance(matrix, Tracer) and not np.array_equal(np.asarray(matrix[-1]), last):
        raise ValueError(
            f"{name}: matrix has the last row {np.asarray(matrix[-1]).tolist()}, expected {last}, that of a "
            f"homogeneous matrix without perspective."
        )
    return matrix[:ndim, :ndim], matrix[:ndim, ndim]


def check_matrix(name: str, matrix: jax.Array, rows: int, columns: int) -> None:
    """A matrix that maps indices of `columns` axes to indices of `rows` axes."""
    if (matrix.shape == (rows,) and rows == columns) or matrix.shape == (rows, columns):
        return
    raise ValueError(
        f"{name}: matrix has shape {matrix.shape}, expected ({rows},), ({rows}, {columns}), ({rows}, {rows + 1}) or "
        f"({rows + 1}, {rows + 1}) for an input of {rows} axes and a result of {columns}."
    )


def check_indices(
    name: str, argument: str, values: Any, count: int, shape: tuple[int, ...] | None = None
) -> tuple[Any, ...]:
    """An array of indices for each of `count` axes, of shapes that broadcast, to `shape` if it is given."""
    if is_sequence(values):
        parts: Any = [np.asarray(part) if is_sequence(part) else part for part in values]
    else:
        parts = converted(name, argument, values)
        check_sizes(f"{name}: {argument} has shape {parts.shape}", parts.shape[:1])
    given = f"{len(parts)} arrays" if is_sequence(parts) else f"shape {parts.shape}"
    if not (is_sequence(parts) or parts.ndim) or len(parts) != count:
        expected = f"{count} arrays of indices, one for each axis of input"
        raise ValueError(f"{name}: {argument} has {given}, expected {expected}.")
    arrays = [check_number(name, argument, strong(part)) for part in parts]
    try:
        found = broadcast_shapes(*(a.shape for a in arrays), shape or ())
    except ValueError:
        found = None
    if found is None or (shape is not None and found != shape):
        listed = ", ".join(str(a.shape) for a in arrays)
        expected = "that broadcast to each other" if shape is None else f"that broadcast to output_shape, {shape}"
        raise ValueError(f"{name}: {argument} has arrays of shape {listed}, expected shapes {expected}.")
    return tuple(arrays)


def strong(value: Any) -> Any:
    """A floating array, no longer weakly typed."""
    weak = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating) and jax.typeof(value).weak_type
    return jax.lax.convert_element_type(value, value.dtype) if weak else value


def read_at(
    name: str, array: Any, indices: Arrays, cval: Any, reading: Reading, shape: tuple[int, ...] = ()
) -> jax.Array:
    """Reads an array at given indices, which broadcast to each other and to `shape`."""
    shape = broadcast_shapes(*(a.shape for a in indices), shape)
    floats = [as_floats(name, "coordinates", a, reading.sums) for a in indices]
    floats = [jnp.expand_dims(a, range(len(shape) - a.ndim)) for a in floats]
    outside = as_cval(name, cval, array, reading)
    lines = [a.size == n == a.shape[k] for k, (a, n) in enumerate(zip(floats, shape))]
    if len(shape) == array.ndim and all(lines) and not is_symbolic(shape):
        return read_lines(array, tuple(a.reshape(-1) for a in floats), outside, reading=reading)
    if broadcast_shapes(*(a.shape for a in floats)) != shape:
        floats[0] = jnp.broadcast_to(floats[0], broadcast_shapes(floats[0].shape, shape))
    return read_all(array, floats, outside, reading)


def read_all(array: Any, indices: Sequence[Operand], cval: jax.Array | None, reading: Reading) -> jax.Array:
    """Reads an array along all axes."""
    moved = tuple(range(array.ndim))
    return read(array, tuple(indices), cval, function=as_given, moved=moved, reading=reading)
