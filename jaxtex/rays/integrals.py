"""Line integrals: a sum of reads along each segment, inside the read."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.arguments import as_float, as_integer
from .._checks.calls import public
from .._checks.samplers import check_modes, check_sampler
from .._checks.texels import check_stored
from .._checks.words import shown
from .._engine.arithmetic import FLOAT
from .._engine.describe.operands import Arrays, Stacked
from .._engine.describe.plan import layout_of, plan_of_grid
from .._reads.calls import numbers_of
from .._reads.complex_parts import by_parts
from .._tables.storage_formats import Decoding, is_complex, sum_dtype
from ..modes import AddressMode, Arithmetic, TextureKind
from ..sampler import Sampler
from ..texture import Texture, texture2d, texture3d

NAME = "line_integral"
DEFAULT_SAMPLER = Sampler()
TEXTURES = {2: texture2d, 3: texture3d}
KINDS = {2: TextureKind.TEXTURE2D, 3: TextureKind.TEXTURE3D}
AXES = {2: "(H, W, C)", 3: "(D, H, W, C)"}


@public(compiled=True)
def line_integral(
    volume: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    *,
    num_samples: int | None = None,
    step: float | None = None,
    weights: ArrayLike | None = None,
    spacing: ArrayLike = 1.0,
    sampler: Sampler = DEFAULT_SAMPLER,
) -> jax.Array:
    """Integrates a volume or an image along segments: ``length / N sum_k volume(start + (k + 0.5) / N (end - start))``.

    This is the midpoint rule for N equal parts of each segment. Samples are not stored: on a GPU, one kernel computes
    their positions, reads and sums, and one computes all gradients, the backprojection among them.

    Args:
        volume: ``(D, H, W, C)``, or an image ``(H, W, C)``; floating numbers, or integers of 8 or 16 bits.
        start, end: S + (3,), x before y before z, or S + (2,) for an image, in texels: texel i spans [i, i + 1), with
            its center at i + 0.5. Their shapes S broadcast, so one start may serve many ends.
        num_samples: N, the number of samples of each segment, from its start to its end; static.
        step: the largest distance between samples in texels, in place of `num_samples`; static. Each segment is first
            cut to the box outside which all samples are zero, and N is the diagonal of the box divided by `step`,
            rounded up. So a source far outside costs no samples.
        weights: numbers that broadcast to S + (N,), the weight of each sample, only with `num_samples`.
        spacing: the size of a texel along x, y (and z), ``(3,)`` or ``(2,)``, or one number for all; the unit of length
            in the result.
        sampler: how to read. If it sets no address mode, border is used: outside, the volume is zero. Coordinates are
            in texels whatever it says.

    Returns:
        S + (C,), in the dtype of `volume`, a complex one too, or float32 for integers. Sums are computed in float32, or
        in float64 if an argument is float64. It is 0 for a segment of length 0.

    Gradients: of any order, in forward and reverse mode, with respect to a floating volume, `start`, `end`, `weights`
        and `spacing`; those of the quadrature rule. A segment of length 0 has none in its length. Reverse mode stores
        only the arguments, and makes no array of the samples for gradients of first order, except for sums that are
        asked to be deterministic. Forward mode, and derivatives of higher order with respect to `start` and `end`, may
        store numbers for each sample.

    Raises:
        ValueError: if shapes, `num_samples`, `step` or the sampler do not fit each other.
        TypeError: if a static argument is traced.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> ramp = jnp.broadcast_to(jnp.arange(6.0)[:, None], (4, 6, 1))
        >>> start, end = jnp.array([[1.5, 2.0], [3.5, 0.5]]), jnp.array([[4.5, 2.0], [3.5, 3.5]])
        >>> jt.rays.line_integral(ramp, start, end, num_samples=8)[:, 0]
        Array([7.5, 9. ], dtype=float32)
    """
    first, last = as_float(start), as_float(end)
    ndim = check_points(first, last)
    texels = check_volume(jnp.asarray(volume), ndim)
    how, size = check_how(sampler, texels, ndim), check_spacing(as_float(spacing), ndim)
    if (num_samples is None) == (step is None):
        raise ValueError(f"{NAME}: num_samples is {shown(num_samples)} and step is {shown(step)}; pass one of them.")
    if step is not None and weights is not None:
        raise ValueError(f"{NAME}: weights are given with step; pass num_samples, the number of weights of a segment.")
    factors = None if weights is None else as_float(weights)
    shape = np.broadcast_shapes(first.shape[:-1], last.shape[:-1])
    if step is None:
        count = as_integer(NAME, "num_samples", num_samples, 1)
        box = None
    else:
        distance, box = check_step(step, how, ndim), Box.of(texels.shape[-2::-1], how)
        count = math.ceil(box.diagonal / distance)
    if factors is not None:
        check_weights(factors, (*shape, count))
        shape = np.broadcast_shapes(shape, factors.shape[:-1])
    result = texels.dtype if jnp.issubdtype(texels.dtype, jnp.inexact) else np.dtype(np.float32)
    if 0 in shape:
        return jnp.zeros((*shape, texels.shape[-1]), result)
    dtype = sum_dtype(*(a.dtype for a in (texels, first, last, size, *(() if factors is None else (factors,)))))
    first, last, size = (jnp.expand_dims(a.astype(dtype), range(len(shape) + 1 - a.ndim)) for a in (first, last, size))
    if box is not None:
        first, last = box.cut(first, last)
    sums = sum_along(TEXTURES[ndim](texels), first, last, factors, count, how)
    lengths = (norm((last - first) * size) / count).astype(sums.dtype)
    return jnp.broadcast_to(sums * lengths, (*shape, texels.shape[-1])).astype(result)


def on_segment(*numbers: jax.Array) -> Arrays:
    """The point at a fraction of the way from a start to an end: the coordinates of both, and the fraction."""
    *points, fraction = numbers
    half = len(points) // 2
    return tuple(a + (b - a) * fraction for a, b in zip(points[:half], points[half:]))


def sum_along(
    texture: Texture,
    start: jax.Array,
    end: jax.Array,
    weights: jax.Array | None,
    count: int,
    sampler: Sampler,
) -> jax.Array:
    """The sum of the samples of each segment, S + (C,), from ends that have as many axes as S and one more."""
    if is_complex(texture.dtype):
        return by_parts(sum_along, texture, start, end, weights, count=count, sampler=sampler)
    rank = start.ndim - 1

    def of_samples(a: jax.Array, more: int = 0) -> jax.Array:
        """An array whose axes are those of the samples, which are the axes of S and one behind, and `more`."""
        return jnp.expand_dims(a, range(rank + 1 + more - a.ndim))

    fraction = (jnp.arange(count, dtype=jnp.int32).astype(start.dtype) + 0.5) / count
    points = (Stacked.last(of_samples(a[..., None, :], 1)) for a in (start, end))
    sums, _ = numbers_of(texture, sampler.decoding, (start,), blends=True)
    read = plan_of_grid(layout_of(texture), on_segment, (*points, of_samples(fraction)), sampler, sums)
    if weights is None:
        read = read.replace(summed_axes=(-1,))
    else:
        read = read.weighted_sum(of_samples(weights.astype(sums)), (-1,))
    return jnp.squeeze(FLOAT.read(texture, read), -2)


class Box(NamedTuple):
    """The box of points whose taps are not all outside, x first.

    Attributes:
        low, high: its corners, along each axis.
    """

    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]

    @classmethod
    def of(cls, sizes: Sequence[int], sampler: Sampler) -> "Box":
        reach = sampler.kernel.num_taps / 2
        return cls(np.full(len(sizes), 0.5 - reach), np.asarray(sizes) - 0.5 + reach)

    @property
    def diagonal(self) -> float:
        return math.hypot(*(self.high - self.low))

    def cut(self, start: jax.Array, end: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The part of each segment in the box; one point of the segment if there is none."""
        step = end - start
        low, high = (corner.astype(start.dtype).reshape(*[1] * (start.ndim - 1), -1) for corner in self)
        moves, within = step != 0, (start >= low) & (start <= high)
        inverse = 1 / jnp.where(moves, step, 1)
        at_low, at_high = (low - start) * inverse, (high - start) * inverse
        # Along an axis on which it does not move, all of a segment is in the box, or nothing.
        enter = jnp.where(moves, jnp.minimum(at_low, at_high), jnp.where(within, 0, 1)).max(-1, keepdims=True)
        leave = jnp.where(moves, jnp.maximum(at_low, at_high), jnp.where(within, 1, 0)).min(-1, keepdims=True)
        enter = jnp.clip(enter, 0, 1)
        leave = jnp.clip(leave, enter, 1)
        return start + enter * step, start + leave * step


def norm(vectors: jax.Array) -> jax.Array:
    """The length of vectors along the last axis, which keeps size 1. The derivative of length 0 is 0."""
    squares = jnp.sum(vectors * vectors, -1, keepdims=True)
    positive = squares > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squares, 1)), 0)


# Checks


def check_points(start: jax.Array, end: jax.Array) -> int:
    """The number of coordinates of both ends."""
    for argument, points in (("start", start), ("end", end)):
        if points.ndim < 1 or points.shape[-1] not in TEXTURES:
            raise ValueError(f"{NAME}: {argument} has shape {points.shape}, expected (..., 2) or (..., 3): x before y.")
    try:
        np.broadcast_shapes(start.shape, end.shape)
    except ValueError:
        pass
    else:
        if start.shape[-1] == end.shape[-1]:
            return start.shape[-1]
    raise ValueError(
        f"{NAME}: start has shape {start.shape} and end has shape {end.shape}, expected shapes that broadcast, with as "
        f"many coordinates."
    )


def check_volume(volume: jax.Array, ndim: int) -> jax.Array:
    """A volume, or an image, with as many axes as points have coordinates, and channels."""
    if volume.ndim != ndim + 1 or 0 in volume.shape:
        raise ValueError(
            f"{NAME}: volume has shape {volume.shape}, expected {AXES[ndim]} of one texel or more, as points have "
            f"{ndim} coordinates; add an axis for one channel, volume[..., None], and map over a batch by jax.vmap."
        )
    check_stored(f"{NAME}: volume", volume.dtype)
    return volume


def check_how(sampler: Sampler, volume: jax.Array, ndim: int) -> Sampler:
    """The sampler of the read: in texels, and with zero outside by default."""
    if sampler.arithmetic is Arithmetic.HARDWARE:
        raise ValueError(f"{NAME}: sampler has arithmetic='hardware', which adds up no reads; use arithmetic='float'.")
    mode = AddressMode.BORDER if sampler.address_mode is None else sampler.address_mode
    sampler = dataclasses.replace(sampler, normalized_coords=False, address_mode=mode)
    if jnp.issubdtype(volume.dtype, jnp.inexact) or sampler.decoding is not Decoding.ELEMENT:
        check_sampler(NAME, KINDS[ndim], volume.dtype, 1, volume.shape[-2], sampler)
    check_modes(NAME, sampler, ndim, volume.shape[-2])
    return sampler


def check_spacing(spacing: jax.Array, ndim: int) -> jax.Array:
    """The size of a texel, one number for all axes or one for each."""
    if spacing.shape not in ((), (ndim,)):
        raise ValueError(
            f"{NAME}: spacing has shape {spacing.shape}, expected () or {(ndim,)}: one size for each axis."
        )
    return spacing


def check_weights(weights: jax.Array, shape: tuple[int, ...]) -> None:
    """Weights that broadcast to the shape of the samples."""
    try:
        fits = weights.ndim == 0 or np.broadcast_shapes(weights.shape, shape)[-1] == shape[-1]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{NAME}: weights has shape {weights.shape}, which does not broadcast to {shape}, the samples of each "
            f"segment; pass equal sizes, or 1."
        )


def check_step(step: Any, sampler: Sampler, ndim: int) -> float:
    """A distance of samples, for reads of zero outside, which say which part of a segment to sample."""
    if not isinstance(step, int | float) or not 0 < step < math.inf:
        raise ValueError(f"{NAME}: step is {shown(step)}, expected a finite number above 0, in texels.")
    if not all(rule.drops_outside for rule in sampler.address_rules(ndim)):
        raise ValueError(
            f"{NAME}: step is given with address_mode={sampler.address_mode!r}, which has no end outside the volume; "
            f"pass num_samples, or address_mode='border'."
        )
    return float(step)
