"""The samples of segments through a volume: checked, cut to the volume, and read or folded."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.numbers import as_float, as_integer, as_number
from .._checks.texels import check_sizes
from .._checks.words import shown
from .._engine.api import FLOAT, Fold, Layout, Read, Stacked, plan_of_grid, read_folded
from .._jax.indexing import as_sum_of
from .._jax.shapes import broadcast_shapes
from .._reads.calls import in_heads, numbers_of
from .._tables.storage_formats import Decoding, is_complex, sum_dtype
from ..modes import AddressMode, Arithmetic, TextureKind
from ..sampler import Sampler, check_modes, check_sampler
from ..texture import Texture, check_stored, texture2d, texture3d

DEFAULT_SAMPLER = Sampler()
TEXTURES = {2: texture2d, 3: texture3d}
KINDS = {2: TextureKind.TEXTURE2D, 3: TextureKind.TEXTURE3D}
AXES = {2: "(H, W, C)", 3: "(D, H, W, C)"}
# A fold counts samples in float32.
MOST_COUNTED = 2**24
STATIC = {"static": True}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Segments:
    """Segments through a volume, each with `count` samples at the middles of equal parts.

    Attributes:
        texture: the volume.
        start, end: the ends in texels after the cut to the volume, x first, with the axes of S and one more.
        origin: the start before the cut.
        spacing: the size of a texel, which broadcasts to the ends.
        count: the number of samples of a segment.
        inside: whether a segment meets the volume, of the rank of the ends, if it is cut to the volume; else `None`.
        sampler: how to read.
        shape: S, the shape of the segments.
        dtype: the dtype of values: of the volume, or float32 for integers.
    """

    texture: Texture
    start: jax.Array
    end: jax.Array
    origin: jax.Array
    spacing: jax.Array
    inside: jax.Array | None
    count: int = dataclasses.field(metadata=STATIC)
    sampler: Sampler = dataclasses.field(metadata=STATIC)
    shape: tuple[int, ...] = dataclasses.field(metadata=STATIC)
    dtype: np.dtype[Any] = dataclasses.field(metadata=STATIC)

    @classmethod
    def of(
        cls,
        name: str,
        volume: Any,
        start: Any,
        end: Any,
        spacing: Any,
        num_samples: Any,
        step: Any,
        sampler: Sampler,
        others: Sequence[jax.Array] = (),
        *,
        sums: bool = True,
        outside: float | None = None,
    ) -> "Segments":
        """The segments of a call.

        Args:
            others: further floating arrays that determine the dtype of sums.
            sums: whether samples are summed, so that zero outside adds nothing.
            outside: if not, what taps outside read under a border; with `None`, segments are cut to the volume.
        """
        first, last = as_float(start), as_float(end)
        ndim = check_points(name, first, last)
        texels = check_volume(name, jnp.asarray(volume), ndim)
        given, size = check_how(name, sampler, texels, ndim), check_spacing(name, as_float(spacing), ndim)
        if (num_samples is None) == (step is None):
            given = f"num_samples is {shown(num_samples)} and step is {shown(step)}"
            raise ValueError(f"{name}: {given}; pass one of them.")
        distance = None if step is None else check_step(name, step, given, ndim)
        sizes, borders = texels.shape[-2::-1], [rule.drops_outside for rule in given.address_rules(ndim)]
        color, box, how = check_outside(name, outside, given, any(borders)), None, given
        if color is None and any(borders) and not sums:
            box, how = Box.inside(sizes, borders), with_edges(given, ndim)
        elif distance is not None:
            box = Box.of(sizes, how)
        if distance is None or box is None:
            count = as_integer(name, "num_samples", num_samples, 1)
        else:
            count = math.ceil(box.diagonal / distance)
        shape = broadcast_shapes(first.shape[:-1], last.shape[:-1])
        dtype = sum_dtype(*(a.dtype for a in (texels, first, last, size, *others)))
        first, last, size = (of_rank(a.astype(dtype), len(shape) + 1) for a in (first, last, size))
        (begins, ends, meets), inside = (first, last, None) if box is None else box.cut(first, last), None
        if meets is not None and how is not given:
            # Kernels read a point well inside faster than one outside.
            middle = jnp.asarray(sizes, dtype).reshape(*[1] * len(shape), -1) / 2
            begins, ends, inside = jnp.where(meets, begins, middle), jnp.where(meets, ends, middle), meets
        texture = TEXTURES[ndim](texels, border_color=color or None)
        result = texels.dtype if jnp.issubdtype(texels.dtype, jnp.inexact) else np.dtype(np.float32)
        return cls(texture, begins, ends, first, size, inside, count, how, shape, result)

    def over(self, name: str, argument: str, shape: Sequence[int]) -> "Segments":
        """The segments with S extended by the shape of an argument."""
        try:
            together = broadcast_shapes(self.shape, shape)
        except ValueError:
            raise ValueError(
                f"{name}: {argument} has shape {tuple(shape)}, which does not broadcast with {self.shape}, the shape "
                f"of the segments; pass equal sizes, or 1."
            ) from None
        arrays = {key: getattr(self, key) for key in ("start", "end", "origin", "spacing", "inside")}
        ends = {key: of_rank(a, len(together) + 1) for key, a in arrays.items() if a is not None}
        return dataclasses.replace(self, shape=together, **ends)

    @property
    def channels(self) -> int:
        return self.texture.num_channels

    @property
    def fractions(self) -> jax.Array:
        """The fraction of the way from start to end of each sample, (count,)."""
        return self.fraction_of(jnp.arange(self.count, dtype=jnp.int32).astype(self.start.dtype))

    def fraction_of(self, number: jax.Array) -> jax.Array:
        """The fraction of the way of samples by their numbers, which are floats."""
        return (number + 0.5) / self.count

    @property
    def sample_length(self) -> jax.Array:
        """The length of a segment divided by the number of its samples, with size 1 on the last axis."""
        return norm((self.end - self.start) * self.spacing) / self.count

    def read(self, points: Sequence[jax.Array], *operands: jax.Array) -> Read:
        """The read at fractions of the way between two arrays of points; see `on_segment`."""
        sums, _ = numbers_of(self.texture, self.sampler.decoding, (self.start,), blends=True)
        stacked = map(Stacked.last, points)
        return plan_of_grid(Layout.of(self.texture), on_segment, (*stacked, *operands), self.sampler, sums)

    def folded(self, name: str, fold: Fold, *given: jax.Array) -> jax.Array:
        """The fold of each segment's samples, S + (C,); it takes `given`, of the rank of S."""
        if is_complex(self.texture.dtype):
            raise TypeError(
                f"{name}: volume is {self.texture.dtype}, expected real numbers; pass volume.real, volume.imag or "
                f"abs(volume)."
            )
        if self.count > MOST_COUNTED:
            raise ValueError(f"{name}: a segment has {self.count} samples, expected at most {MOST_COUNTED}.")
        read = self.along().replace(summed_axes=(-1,))
        return read_folded(self.texture.texels, self.texture.border_color, read, fold, [a[..., None] for a in given])[
            ..., 0, :
        ]

    def along(self) -> Read:
        """The read of all samples, whose last axis is that of the samples of a segment."""
        fractions = of_rank(self.fractions, len(self.shape) + 1)
        return self.read([a[..., None, :] for a in (self.start, self.end)], fractions)

    def at(self, fraction: jax.Array) -> jax.Array:
        """The value of each channel at a fraction of the way of its own, S + (C,)."""
        if self.channels == 1:
            return FLOAT.read(self.texture, self.read((self.start, self.end), fraction[..., 0]))
        head = jnp.arange(self.channels, dtype=jnp.int32).reshape(*[1] * len(self.shape), -1)
        read = self.read((self.start[..., None, :], self.end[..., None, :]), fraction).in_head(head, self.channels)
        return FLOAT.read(in_heads(self.texture, self.channels), read)[..., 0]

    @property
    def nothing(self) -> jax.Array:
        """The result where there are no segments."""
        return jnp.zeros((*self.shape, self.channels), self.dtype)

    def without_derivatives(self) -> "Segments":
        """The segments without derivatives."""
        return jax.tree.map(jax.lax.stop_gradient, self)

    def result(self, values: jax.Array, dtype: Any = None) -> jax.Array:
        """Values that broadcast to S + (C,), in the dtype of the result."""
        return jnp.broadcast_to(values, (*self.shape, values.shape[-1])).astype(dtype or self.dtype)


def of_rank(a: jax.Array, rank: int) -> jax.Array:
    """An array with more axes of size 1 in front."""
    return jnp.expand_dims(a, range(rank - a.ndim))


def on_segment(*numbers: jax.Array) -> tuple[jax.Array, ...]:
    """The point at a fraction of the way from a start to an end: the coordinates of both, and the fraction."""
    *points, fraction = numbers
    half = len(points) // 2
    return tuple(a + (b - a) * fraction for a, b in zip(points[:half], points[half:]))


class Box(NamedTuple):
    """A box of points, x first.

    Attributes:
        low, high: its corners, along each axis; infinite where it has no end.
    """

    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]

    @classmethod
    def of(cls, sizes: Sequence[int], sampler: Sampler) -> "Box":
        """The box of points whose taps are not all outside."""
        reach = sampler.kernel.num_taps / 2
        return cls(np.full(len(sizes), 0.5 - reach), np.asarray(sizes) - 0.5 + reach)

    @classmethod
    def inside(cls, sizes: Sequence[int], ends: Sequence[bool]) -> "Box":
        """The box of points inside, along the axes with ends."""
        return cls(np.where(ends, 0.0, -np.inf), np.where(ends, np.asarray(sizes, float), np.inf))

    @property
    def diagonal(self) -> float:
        return math.hypot(*(self.high - self.low))

    def cut(self, start: jax.Array, end: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The part of each segment in the box, or one point of the segment; and whether there is a part."""
        step = end - start
        low, high = (corner.astype(start.dtype).reshape(*[1] * (start.ndim - 1), -1) for corner in self)
        moves, within = step != 0, as_sum_of((start >= low) & (start <= high), start, end)
        if not math.isfinite(self.diagonal):
            moves &= np.isfinite(high)
        inverse = 1 / jnp.where(moves, step, 1)
        at_low, at_high = (low - start) * inverse, (high - start) * inverse
        # Along an axis of constant coordinate, the box holds all of a segment or nothing.
        enter = jnp.where(moves, jnp.minimum(at_low, at_high), jnp.where(within, 0, 1)).max(-1, keepdims=True)
        leave = jnp.where(moves, jnp.maximum(at_low, at_high), jnp.where(within, 1, 0)).min(-1, keepdims=True)
        meets = jnp.maximum(enter, 0) <= jnp.minimum(leave, 1)
        enter = jnp.clip(enter, 0, 1)
        leave = jnp.clip(leave, enter, 1)
        return start + enter * step, start + leave * step, meets


def norm(vectors: jax.Array) -> jax.Array:
    """The length of vectors along the last axis, which keeps size 1. The derivative of length 0 is 0."""
    squares = jnp.sum(vectors * vectors, -1, keepdims=True)
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)


# Checks


def check_points(name: str, start: jax.Array, end: jax.Array) -> int:
    """The number of coordinates of both ends."""
    for argument, points in (("start", start), ("end", end)):
        if points.ndim < 1 or points.shape[-1] not in TEXTURES:
            raise ValueError(f"{name}: {argument} has shape {points.shape}, expected (..., 2) or (..., 3): x before y.")
    try:
        broadcast_shapes(start.shape, end.shape)
    except ValueError:
        pass
    else:
        if start.shape[-1] == end.shape[-1]:
            return start.shape[-1]
    raise ValueError(
        f"{name}: start has shape {start.shape} and end has shape {end.shape}, expected shapes that broadcast, with as "
        f"many coordinates."
    )


def check_volume(name: str, volume: jax.Array, ndim: int) -> jax.Array:
    """A volume, or an image, with as many axes as points have coordinates, and channels."""
    if volume.ndim != ndim + 1 or 0 in volume.shape:
        raise ValueError(
            f"{name}: volume has shape {volume.shape}, expected {AXES[ndim]} of one texel or more, as points have "
            f"{ndim} coordinates; add an axis for one channel, volume[..., None], and map over a batch by jax.vmap."
        )
    check_sizes(f"{name}: volume has shape {volume.shape}", volume.shape)
    check_stored(f"{name}: volume", volume.dtype)
    return volume


def check_how(name: str, sampler: Sampler, volume: jax.Array, ndim: int) -> Sampler:
    """The sampler of the read: in texels, and with zero outside by default."""
    if sampler.arithmetic is Arithmetic.HARDWARE:
        raise ValueError(f"{name}: sampler has arithmetic='hardware', which adds up no reads; use arithmetic='float'.")
    mode = AddressMode.BORDER if sampler.address_mode is None else sampler.address_mode
    sampler = dataclasses.replace(sampler, normalized_coords=False, address_mode=mode)
    if jnp.issubdtype(volume.dtype, jnp.inexact) or sampler.decoding is not Decoding.ELEMENT:
        check_sampler(name, KINDS[ndim], volume.dtype, 1, volume.shape[-2], sampler)
    check_modes(name, sampler, ndim, volume.shape[-2])
    return sampler


def check_outside(name: str, outside: Any, sampler: Sampler, has_outside: bool) -> float | None:
    """What the volume is outside: a number, or `None`."""
    if outside is None:
        return None
    number = as_number(name, "outside", outside, math.isfinite, "a finite number, or None")
    if not has_outside:
        raise ValueError(
            f"{name}: outside is given with address_mode={sampler.address_mode!r}, which has no outside; leave outside "
            f"out, or use address_mode='border'."
        )
    return number


def with_edges(sampler: Sampler, ndim: int) -> Sampler:
    """A sampler that continues the texels at an edge instead of a border."""
    modes = sampler.address_mode if isinstance(sampler.address_mode, tuple) else (sampler.address_mode,) * ndim
    edges = tuple(AddressMode.CLAMP if mode == AddressMode.BORDER else mode for mode in modes)
    return dataclasses.replace(sampler, address_mode=edges)


def check_spacing(name: str, spacing: jax.Array, ndim: int) -> jax.Array:
    """The size of a texel, one number for all axes or one for each."""
    if spacing.shape not in ((), (ndim,)):
        raise ValueError(
            f"{name}: spacing has shape {spacing.shape}, expected () or {(ndim,)}: one size for each axis."
        )
    return spacing


def check_step(name: str, step: Any, sampler: Sampler, ndim: int) -> float:
    """A distance of samples; reads must be zero outside, so that segments have ends."""
    distance = as_number(name, "step", step, lambda n: 0 < n < math.inf, "a finite number above 0, in texels")
    if not all(rule.drops_outside for rule in sampler.address_rules(ndim)):
        raise ValueError(
            f"{name}: step is given with address_mode={sampler.address_mode!r}, which has no end outside the volume; "
            f"pass num_samples, or address_mode='border'."
        )
    return distance
