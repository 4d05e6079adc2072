"""Windows: the part of an image that samples read, found before its texels are loaded, for images larger than memory.

A program finds the range of positions of samples. The host finds the texels of their taps, from the filter and the rule
of each axis: a run of neighbors, which may wrap from the last texel of an axis to the first.
"""

# pyright: reportIncompatibleMethodOverride=false

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.api import Axis, to_position
from .._jax.calls import rounded_up, typed_jit
from .._tables.address_rules import AddressRule
from .._tables.filter_kernels import FilterKernel
from .coordinate_functions import Arrays

# Two programs may round a position to different sides of a texel's edge.
MARGIN = 1
# Positions beyond this are as good as it, so that they fit in int32.
FARTHEST = 2.0**30
# The sides of windows have at most so many significant bits.
WINDOW_DIGITS = 2
# How much larger than needed a window may be if a program for its shape exists.
MOST_SPARE = 4


class ImageLike(Protocol):
    """An array that may be too large for memory: of NumPy, mapped from a file, of zarr, of h5py."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, part: Any, /) -> Any: ...


class Span(NamedTuple):
    """Neighboring texels of an axis: the first one, and how many."""

    first: int
    count: int

    def pieces(self, size: int) -> Iterator[tuple[slice, slice]]:
        """Slices of the axis and of the window: one, or two around the end of the axis."""
        before = min(self.count, size - self.first)
        yield slice(self.first, self.first + before), slice(0, before)
        if before < self.count:
            yield slice(0, self.count - before), slice(before, self.count)


def position_spans(
    coords: Arrays, axes: Sequence[Axis], needed: jax.Array, reach: Sequence[jax.Array | float] | None = None
) -> jax.Array:
    """The range of whole positions of the samples on each axis: (axes, 2), int32; reversed if no sample counts.

    Samples that read only the border are left out.

    Args:
        coords: of each axis, in stored order.
        axes: with their sizes, which may be arrays.
        needed: which samples count.
        reach: the reach of a sample beyond its position on each axis, in texels, without that of its filter.
    """
    reach = reach or [0.0] * len(axes)
    positions = [to_position(coord, axis) for coord, axis in zip(coords, axes)]
    ends = [(p - r, p + r) for p, r in zip(positions, reach)]
    for axis, (low, high) in zip(axes, ends):
        if axis.address.drops_outside:
            beyond = axis.kernel.num_taps + MARGIN
            size = jnp.asarray(axis.given_size, low.dtype)
            needed = needed & (high > -beyond) & (low < size + beyond)
    found: list[jax.Array] = []
    for low, high in ends:
        low, high = (jnp.clip(jnp.floor(end), -FARTHEST, FARTHEST).astype(jnp.int32) for end in (low, high))
        found += [jnp.min(jnp.where(needed, low, 2**30)), jnp.max(jnp.where(needed, high, -(2**30)))]
    return jnp.stack(found).reshape(-1, 2)


def texel_spans(
    positions: np.ndarray, axes: tuple[Axis, ...], sizes: Sequence[int], kernels: Sequence[FilterKernel]
) -> tuple[Span, ...] | None:
    """The texels that samples read; `None` if they read none.

    Args:
        positions: of `position_spans`.
        axes: with the rules.
        sizes: of the axes.
        kernels: the filters that samples are read by.
    """
    if any(low > high for low, high in positions):
        return None
    taps = [between(int(low), int(high), kernels) for low, high in positions]
    found: list[Span | None] = []
    while (k := len(found)) < len(axes):
        rule = axes[k].address
        if rule.apply_together is None:
            found.append(addressed_span(rule, *taps[k], sizes[k]))
        else:
            found += on_a_sphere(rule, taps[k : k + rule.num_axes], sizes[k : k + rule.num_axes])
    return None if None in found else tuple(span for span in found if span is not None)


def between(low: int, high: int, kernels: Sequence[FilterKernel]) -> tuple[int, int]:
    """The first and the last tap of positions from `low` to `high`, both rounded down."""
    firsts = [low + kernel.first + int(np.floor(-kernel.origin)) for kernel in kernels]
    lasts = [high + kernel.first + kernel.num_taps - 1 for kernel in kernels]
    return min(firsts) - MARGIN, max(lasts) + MARGIN


def addressed_span(rule: AddressRule, first: int, last: int, size: int) -> Span | None:
    """The texels that neighboring taps read by the rule of one axis."""
    if rule.drops_outside and (last < 0 or first >= size):
        return None
    if rule.saturates:
        first, last = (min(max(tap, 0), size - 1) for tap in (first, last))
        return Span(first, last - first + 1)
    if rule.cyclic:
        return Span(first % size, min(last - first + 1, size))
    if last - first + 1 >= 2 * size:
        return Span(0, size)
    assert rule.apply is not None
    index = np.asarray(rule.apply(run_of(first, last), size)[0])
    return Span(int(index.min()), int(index.max() - index.min()) + 1)


def on_a_sphere(rule: AddressRule, taps: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[Span | None]:
    """The texels that neighboring rows and columns of taps read by the rule of a sphere."""
    (first, last), (left, right) = taps
    height, width = sizes
    if first >= 0 and last < height:
        return [Span(first, last - first + 1), Span(left % width, min(right - left + 1, width))]
    if last - first + 1 >= 2 * height:
        return [Span(0, height), Span(0, width)]
    row = np.asarray(rows_on_a_sphere(run_of(first, last), rule=rule, sizes=(height, width)))
    return [Span(int(row.min()), int(row.max() - row.min()) + 1), Span(0, width)]


@typed_jit("rule", "sizes")
def rows_on_a_sphere(taps: Any, *, rule: AddressRule, sizes: tuple[int, int]) -> jax.Array:
    """The rows that rows of taps read in the first column."""
    assert rule.apply_together is not None
    return rule.apply_together([[taps], [jnp.int32(0)]], sizes)[0].texel[0]


def run_of(first: int, last: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The numbers from `first` to `last`, padded with the last so that there are few lengths."""
    length = 1 << (last - first).bit_length()
    return np.minimum(np.arange(first, first + length), last).astype(np.int32)


class TexelWindow(NamedTuple):
    """The texels that a tile reads.

    Attributes:
        spans: the texels along each axis; `None` if the tile shows only the border.
        shape: of the array that holds them, from its first texel on.
    """

    spans: tuple[Span, ...] | None
    shape: tuple[int, ...]

    @property
    def starts(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The first texel along each axis."""
        return np.array([span.first for span in self.spans or ()] or [0] * len(self.shape), np.int32)

    def load(self, image: ImageLike, into: np.ndarray) -> None:
        """Fills an array with the texels of an image, any array with an axis of channels behind those of the spans."""
        if self.spans is None:
            return
        for pieces in itertools.product(*(span.pieces(size) for span, size in zip(self.spans, image.shape))):
            source, target = zip(*pieces)
            into[target] = image[source]


class WindowShapes:
    """The shapes of windows: few, since each is compiled.

    Args:
        least: the shortest side.
        most: how many texels a window may have.
    """

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.used: list[tuple[int, ...]] = []

    def holding(self, counts: Sequence[int]) -> tuple[int, ...] | None:
        """A shape with room for so many texels along each axis; `None` if there is none."""
        exact = tuple(rounded_up(max(n, self.least), WINDOW_DIGITS) for n in counts)
        texels = int(np.prod(exact, dtype=np.int64))
        if texels > self.most:
            return None
        for shape in sorted(self.used, key=np.prod):
            enough = all(a >= n for a, n in zip(shape, counts))
            if enough and np.prod(shape, dtype=np.int64) <= MOST_SPARE * texels:
                return shape
        self.used.append(exact)
        return exact
