"""The read that all functions share: arrays of any rank, at indices that the read itself computes."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import READ_WITH_HALO, border_of, read_where_placed
from .._engine.describe.axis import Axis, Role
from .._engine.describe.operands import Coords, Operand, as_given, covering, split
from .._engine.describe.spec import Read, ReadSpec
from .._jax.calls import typed_jit
from .._jax.indexing import reshaped
from .._tables.address_rules import BORDER, CLAMP
from .._tables.filter_kernels import POINT, b_spline
from .._tables.storage_formats import Decoding, complex_dtype, is_complex, rounded_dtype
from ..splines import filtered_along
from .arguments import Reading, as_channels, as_result
from .extensions import Fold

Arrays = tuple[jax.Array, ...]
# Maps operands to an index for each moved axis, slowest first; elementwise and static.
IndexFunction = Callable[..., Coords]


class IndexGrid(NamedTuple):
    """The grid of a read of an array.

    Attributes:
        function: computes the indices of the moved axes from the first operands. The last operands are the indices of
            the other axes.
        sizes: of all axes.
        moved: the moved axes.
        fold: maps each index before it is read.
        stops: whether a first index marks samples: 0 inside, -1 outside.
    """

    function: IndexFunction
    sizes: tuple[int, ...]
    moved: tuple[int, ...]
    fold: Fold | None
    stops: bool

    def __call__(self, *operands: jax.Array) -> Coords:
        own = len(operands) - (len(self.sizes) - len(self.moved))
        found = dict(zip(self.moved, self.function(*operands[:own])))
        others = iter(operands[own:])
        front: list[jax.Array] = []
        if self.stops:
            inside = (is_within(found[k], self.sizes[k]) for k in self.moved)
            front.append(jnp.where(functools.reduce(jnp.logical_and, inside), jnp.int32(0), jnp.int32(-1)))
        if self.fold is not None:
            found = {k: self.fold(index, self.sizes[k]) for k, index in found.items()}
        coords = [found[k] if k in found else next(others) for k in range(len(self.sizes))]
        return covering((*front, *coords), operands)


def is_within(index: jax.Array, size: int) -> jax.Array:
    """Whether an index lies between the first and the last element; NaN does not."""
    return (index >= 0) & (index <= size - 1)


# Whole reads


@typed_jit("function", "moved", "reading")
def read(
    array: jax.Array,
    operands: tuple[Operand, ...],
    cval: jax.Array | None,
    *,
    function: IndexFunction,
    moved: tuple[int, ...],
    reading: Reading,
) -> jax.Array:
    """The values of an array at the indices that `function` computes.

    Args:
        operands: of `function`, of one rank, which is the rank of the array if axes do not move. An operand of several
            arguments has one more axis.
        cval: the value outside, of `Reading.sums` or complex; `None` is zero.
        moved: the axes along which the array is interpolated; along the others it is copied.
    """
    texels, color = prepared(array, cval, moved, reading)
    values = read_axes(texels, color, operands, function, moved, reading, last_dtype(array, reading))
    return as_result(values, reading.dtype)


@typed_jit("reading")
def read_lines(
    array: jax.Array, lines: Sequence[jax.Array | None], cval: jax.Array | None, *, reading: Reading
) -> jax.Array:
    """The values of an array at the points of a grid, from the indices along each axis.

    The weights of a grid are products of the weights of its lines, so the array is read along one axis after the other.

    Args:
        lines: at least one. Along an axis without a line, the array is copied.
    """
    moved = {k: line for k, line in enumerate(lines) if line is not None}
    texels, color = prepared(array, cval, tuple(moved), reading)
    counts = {k: len(line) for k, line in moved.items()}
    last = last_dtype(array, reading)
    if not passes_pay(array.shape, counts, reading.order + 1):
        grid = tuple(at_axis(line, k, array.ndim) for k, line in moved.items())
        values = read_axes(texels, color, grid, as_given, tuple(moved), reading, last)
        return as_result(values, reading.dtype)
    passes = by_growth(array.shape, counts)
    for axis in passes:
        dtype = last if axis == passes[-1] or reading.moves_elements(array.dtype) else reading.sums
        texels = read_along(texels, color, moved[axis], axis, reading, dtype)
    if color is not None and reading.extension.stops:
        # A later pass blends the color of an earlier one, with weights whose sum is one but for a rounding.
        within = (at_axis(is_within(line, array.shape[k]), k, array.ndim) for k, line in moved.items())
        texels = jnp.where(functools.reduce(jnp.logical_and, within)[..., None], texels, color.astype(texels.dtype))
    return as_result(texels, reading.dtype)


def passes_pay(sizes: Sequence[int], counts: Mapping[int, int], taps: int) -> bool:
    """Whether reads along one axis after the other load fewer elements than one read of all axes.

    Args:
        counts: by the number of an axis that is read, the number of its samples.
    """
    passes, shape = 0, list(sizes)
    for axis in by_growth(sizes, counts):
        shape[axis] = counts[axis]
        passes += math.prod(shape) * (taps + 1)  # reads and one write
    return passes < math.prod(shape) * (taps ** len(counts) + 1)


def by_growth(sizes: Sequence[int], counts: Mapping[int, int]) -> list[int]:
    """The axes of `counts`, the one that shrinks most first."""
    return sorted(counts, key=lambda k: counts[k] / max(sizes[k], 1))


def read_along(
    texels: jax.Array, color: jax.Array | None, line: jax.Array, axis: int, reading: Reading, dtype: np.dtype[Any]
) -> jax.Array:
    """Texels at the indices of a line along one axis."""
    *sizes, channels = texels.shape
    shape, (moved,) = merged(sizes, (axis,))
    operand = at_axis(line, moved, len(shape))
    values = read_axes(reshaped(texels, (*shape, channels)), color, (operand,), as_given, (moved,), reading, dtype)
    return reshaped(values, (*sizes[:axis], len(line), *sizes[axis + 1 :], channels))


def merged(sizes: Sequence[int], moved: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
    """Sizes with neighboring unmoved axes as one axis, or none if it has one element; and the moved axes."""
    shape: list[int] = []
    places: list[int] = []
    between = 1
    for axis, size in enumerate(sizes):
        if axis not in moved:
            between *= size
            continue
        shape.extend([between] if between != 1 else [])
        places.append(len(shape))
        shape.append(size)
        between = 1
    return [*shape, *([between] if between != 1 else [])], tuple(places)


def index_line(size: int, dtype: np.dtype[Any]) -> jax.Array:
    """The indices along an axis."""
    return jnp.arange(size, dtype=jnp.int32).astype(dtype)


@typed_jit("shape", "dtype")
def index_lines(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Arrays:
    """The indices along each axis of a result."""
    return tuple(index_line(n, dtype) for n in shape)


@typed_jit("shape", "dtype")
def index_grid(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Arrays:
    """The indices along each axis of a result, as arrays that broadcast to `shape`."""
    return tuple(at_axis(index_line(n, dtype), k, len(shape)) for k, n in enumerate(shape))


def at_axis(line: jax.Array, axis: int, rank: int) -> jax.Array:
    """A line along one of `rank` axes."""
    return line.reshape([len(line) if k == axis else 1 for k in range(rank)])


# Parts of a read


def prepared(
    array: jax.Array, cval: jax.Array | None, moved: Sequence[int], reading: Reading
) -> tuple[jax.Array, jax.Array | None]:
    """The texels of an array, (*sizes, C), prefiltered along the axes that move, and the value outside, (C,)."""
    if reading.filters:
        texels = as_channels(padded(array, cval, moved, reading)).astype(reading.sums)
        kernel = b_spline(reading.order)
        for axis in moved:
            texels = filtered_along(texels, axis, kernel, reading.extension.coefficients)
    else:
        texels = as_channels(array)
    if cval is None:
        return texels, None
    color = as_channels(cval)
    if is_complex(array.dtype) and not is_complex(cval.dtype):
        color = jnp.concatenate([color, jnp.zeros_like(color)])
    return texels, as_result(color[:, None], np.dtype(array.dtype)) if reading.moves_elements(array.dtype) else color


def padded(array: jax.Array, cval: jax.Array | None, moved: Sequence[int], reading: Reading) -> jax.Array:
    """The array with elements beyond its ends, where the prefilter has no boundary rule for the mode."""
    if not reading.padding:
        return array
    dtype = complex_dtype(reading.sums) if is_complex(array.dtype) else reading.sums
    array = array.astype(dtype)
    pads = [reading.padding if axis in moved else 0 for axis in range(array.ndim)]
    if not reading.extension.taps.has_outside:
        return jnp.pad(array, [(n, n) for n in pads], mode="edge")
    outside = jnp.zeros((), dtype) if cval is None else cval.astype(dtype)
    return jax.lax.pad(array, outside, [(n, n, 0) for n in pads])


def last_dtype(array: jax.Array, reading: Reading) -> np.dtype[Any]:
    """The dtype of the read that makes the result."""
    if reading.moves_elements(array.dtype):
        return np.dtype(array.dtype)
    real = reading.dtype if jnp.issubdtype(reading.dtype, jnp.floating) else reading.sums
    return rounded_dtype(real, reading.sums)


def read_axes(
    texels: jax.Array,
    color: jax.Array | None,
    operands: tuple[Operand, ...],
    function: IndexFunction,
    moved: tuple[int, ...],
    reading: Reading,
    dtype: np.dtype[Any],
) -> jax.Array:
    """One read of the engine, S + (C,) of `dtype`: of texels, (*sizes, C), prefiltered if they need it."""
    *sizes, channels = texels.shape
    extension, rank = reading.extension, len(sizes)
    if not jnp.issubdtype(dtype, jnp.floating):
        operands, texels = jax.lax.stop_gradient((operands, texels))
    spline = functools.partial(Axis, kernel=reading.kernel, address=extension.taps)
    copied = functools.partial(Axis, kernel=POINT, address=CLAMP, integer=True)
    axes = [(spline if k in moved else copied)(n) for k, n in enumerate(sizes)]
    others = tuple(at_axis(index_line(n, np.dtype(np.int32)), k, rank) for k, n in enumerate(sizes) if k not in moved)
    if extension.stops:
        # One more axis, of one element, which samples outside miss.
        axes.insert(0, Axis(1, POINT, BORDER, integer=True, role=Role.LAYER))
        texels = texels.reshape(1, *sizes, channels)
    grid = IndexGrid(function, tuple(sizes), moved, extension.fold_of(reading.order), extension.stops)
    arrays, stacks = split((*operands, *others))
    spec = ReadSpec(tuple(axes), Decoding.ELEMENT, dtype, grid=grid, stacks=stacks)
    # A border color that no tap reaches is left out.
    outside = border_of(color, channels, spec)
    return read_where_placed(READ_WITH_HALO, texels, outside, Read(spec.made_deterministic(None), arrays))
