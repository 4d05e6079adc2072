"""Projections along rays: integrals, the largest value, the first crossing of a level, and emission with absorption."""

import dataclasses
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float, as_number
from .._engine.api import FLOAT, Fold
from .._jax.shapes import broadcast_shapes
from .._jax.versions import stack
from .._reads.complex_parts import by_parts
from .._tables.storage_formats import is_complex
from ..sampler import Sampler
from ..texture import Texture
from .segments import DEFAULT_SAMPLER, Segments, norm, of_rank

# The steps from two samples to the crossing between them. Each multiplies the number of digits by 1.4.
ROOT_STEPS = 10


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
            its center at i + 0.5. Their shapes S broadcast.
        num_samples: N, the number of samples of each segment, from its start to its end; static.
        step: the largest distance between samples in texels, in place of `num_samples`; static. Each segment is first
            cut to the box outside which all samples are zero, so a source far outside costs no samples. N is the
            diagonal of the box divided by `step`, rounded up.
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
        only the arguments. Forward mode of any order, a gradient, and a gradient of forward mode store no array of the
        samples, except with deterministic sums. Derivatives of a gradient with respect to `start` and `end` may store
        numbers for each sample.

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
    if step is not None and num_samples is None and weights is not None:
        raise ValueError(
            "line_integral: weights are given with step; pass num_samples, the number of weights of a segment."
        )
    factors = None if weights is None else as_float(weights)
    others = () if factors is None else (factors,)
    segments = Segments.of("line_integral", volume, start, end, spacing, num_samples, step, sampler, others)
    if factors is not None:
        check_weights(factors, (*segments.shape, segments.count))
        segments = segments.over("line_integral", "weights", factors.shape[:-1])
    if 0 in segments.shape:
        return segments.nothing
    sums = sum_along(segments, factors)
    return segments.result(sums * segments.sample_length.astype(sums.dtype))


def sum_along(segments: Segments, weights: jax.Array | None) -> jax.Array:
    """The sum of the samples of each segment, S + (C,)."""
    if is_complex(segments.texture.dtype):

        def of_parts(texture: Texture, weights: jax.Array | None) -> jax.Array:
            return sum_along(dataclasses.replace(segments, texture=texture), weights)

        return by_parts(of_parts, segments.texture, weights)
    read = segments.along()
    if weights is None:
        read = read.replace(summed_axes=(-1,))
    else:
        read = read.weighted_sum(of_rank(weights.astype(read.spec.dtype), len(segments.shape) + 1), (-1,))
    return jnp.squeeze(FLOAT.read(segments.texture, read), -2)


def check_weights(weights: jax.Array, shape: tuple[int, ...]) -> None:
    """Weights that broadcast to the shape of the samples."""
    try:
        fits = weights.ndim == 0 or broadcast_shapes(weights.shape, shape)[-1] == shape[-1]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"line_integral: weights has shape {weights.shape}, which does not broadcast to {shape}, the samples of "
            f"each segment; pass equal sizes, or 1."
        )


@public(compiled=True)
def maximum_intensity(
    volume: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    *,
    num_samples: int | None = None,
    step: float | None = None,
    outside: float | None = None,
    sampler: Sampler = DEFAULT_SAMPLER,
) -> jax.Array:
    """The largest sample of a volume or an image along segments: maximum intensity projection (MIP).

    Samples are not stored: on a GPU, one kernel reads them and finds the largest. A minimum is
    ``-maximum_intensity(-volume, ...)``.

    Args:
        volume, start, end, sampler: as in `line_integral`.
        num_samples, step: as in `line_integral`, but with `outside` left out they count on the part of a segment that
            lies in the volume.
        outside: what the volume is outside, a finite number; static. By default nothing is there that could be the
            largest: segments are first cut to the volume, from 0 to its size along each axis, and within half a texel
            of a face the outermost texels continue. With a number, samples outside count, and near a face they blend
            with it; with `step`, only those that blend. An axis whose address mode is not border has no outside.

    Returns:
        S + (C,), the largest sample of each channel, in the dtype of `volume`, or float32 for integers. NaN never
        counts as the largest. A segment that misses the volume has the largest sample of none, -infinity; with
        `outside`, that number.

    Gradients: of any order, in forward and reverse mode, with respect to a floating volume, `start` and `end`: those of
        the largest sample, at a fixed fraction of the way; of several equal ones, those of the first. They are zero for
        a segment that misses the volume.

    Raises:
        ValueError: if shapes, `num_samples`, `step`, `outside` or the sampler do not fit each other.
        TypeError: if a static argument is traced.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.zeros((4, 4, 1)).at[2, 3].set(5.0)
        >>> start, end = jnp.array([[-2.0, 2.5], [-2.0, -0.5]]), jnp.array([[6.0, 2.5], [6.0, -0.5]])
        >>> jt.rays.maximum_intensity(image, start, end, num_samples=4)[:, 0]  # the second misses the image
        Array([  5., -inf], dtype=float32)
    """
    name = "maximum_intensity"
    segments = Segments.of(name, volume, start, end, 1.0, num_samples, step, sampler, sums=False, outside=outside)
    if 0 in segments.shape:
        return segments.nothing
    number = segments.without_derivatives().folded(name, Highest())
    highest = segments.at(segments.fraction_of(number))
    return segments.result(highest if segments.inside is None else jnp.where(segments.inside, highest, -jnp.inf))


@public(compiled=True)
def first_crossing(
    volume: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    level: ArrayLike,
    *,
    num_samples: int | None = None,
    step: float | None = None,
    outside: float | None = None,
    spacing: ArrayLike = 1.0,
    sampler: Sampler = DEFAULT_SAMPLER,
) -> jax.Array:
    """The distance from the start of segments to the first point where a volume or an image crosses a level.

    It is the depth of an isosurface. The point lies between the first two adjacent samples on different sides of the
    level, so parts thinner than the distance between samples may be missed. Samples are not stored: on a GPU, one
    kernel reads them up to the crossing.

    Args:
        volume, start, end, spacing, sampler: as in `line_integral`.
        level: the level, numbers that broadcast to S.
        num_samples, step, outside: as in `maximum_intensity`. By default nothing is outside, so a segment crosses no
            level where it enters or leaves the volume; with a number, it does if the level lies between.

    Returns:
        S + (C,), the distance for each channel, in the unit of `spacing`: float32, or float64 if an argument is
        float64. It is infinite where nothing crosses the level.

    Gradients: of any order, in forward and reverse mode, with respect to a floating volume, `start`, `end`, `level` and
        `spacing`, by the implicit function theorem. They are 0 where nothing crosses the level, or where the volume
        does not change along the segment, as with the point filter; and large where a segment grazes the surface.

    Raises:
        ValueError: if shapes, `num_samples`, `step`, `outside` or the sampler do not fit each other.
        TypeError: if a static argument is traced.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> ramp = jnp.broadcast_to(jnp.arange(6.0)[:, None], (4, 6, 1))
        >>> start, end = jnp.array([[1.0, 2.0], [1.0, 2.0]]), jnp.array([[5.0, 2.0], [2.0, 2.0]])
        >>> jt.rays.first_crossing(ramp, start, end, 2.25, num_samples=16)[:, 0]
        Array([1.75,  inf], dtype=float32)
    """
    name = "first_crossing"
    height = as_float(level)
    given = name, volume, start, end, spacing, num_samples, step, sampler, (height,)
    segments = Segments.of(*given, sums=False, outside=outside)
    segments = segments.over(name, "level", height.shape)
    dtype = segments.start.dtype
    if 0 in segments.shape:
        return segments.nothing.astype(dtype)
    fraction = crossing(segments, of_rank(height.astype(dtype), len(segments.shape)))
    found = jnp.isfinite(fraction)
    place = jnp.where(found, fraction, 0)[..., None]
    ends = (segments.start, segments.end, segments.origin, segments.spacing)
    first, last, origin, size = (a[..., None, :] for a in ends)
    depth = norm((first + (last - first) * place - origin) * size)[..., 0]
    return segments.result(jnp.where(found, depth, jnp.inf), dtype)


@public(compiled=True)
def composite(
    volume: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    *,
    num_samples: int | None = None,
    step: float | None = None,
    min_transmittance: float = 0.0,
    spacing: ArrayLike = 1.0,
    sampler: Sampler = DEFAULT_SAMPLER,
) -> jax.Array:
    """Composites the emission and absorption of a volume or an image along segments, front to back.

    Sample k has the opacity ``a_k = 1 - exp(-extinction_k length / N)``. Its light ``a_k color_k`` is absorbed by the
    samples before it: the result is ``sum_k T_k a_k color_k`` with the transmittance ``T_k = prod_i<k (1 - a_i)``.
    Samples are those of `line_integral`, and are not stored: on a GPU, one kernel reads and composites them until the
    transmittance is low.

    Args:
        volume: as in `line_integral`, with any number of color channels, and the extinction (the absorbed share of
            light per unit of length) as the last channel. A negative extinction counts as 0. Outside,
            extinction is 0, which adds nothing.
        start, end, num_samples, step, spacing, sampler: as in `line_integral`.
        min_transmittance: from 0 to 1, static: samples behind this transmittance are left out. 0 leaves out only
            invisible samples; 1e-3 hardly changes an image of bytes.

    Returns:
        S + (C,), in the dtype of `volume`, or float32 for integers: the color, and the opacity ``1 - T_N`` as the last
        channel. Add ``(1 - opacity) * background`` for a background.

    Gradients: of any order, in forward and reverse mode, with respect to a floating volume, `start`, `end` and
        `spacing`; at an extinction of 0, that for a larger one. On a GPU, first gradients recompute the samples in
        kernels; for those in the volume, they store the cotangents of a few samples of each segment at a time, about
        64 MiB. Other derivatives recompute samples block by block. They store a block at a time, of at most as many
        numbers as the volume or 2^18, and reverse mode stores a result for each block.

    Raises:
        ValueError: if shapes, `num_samples`, `step`, `min_transmittance` or the sampler do not fit each other.
        TypeError: if a static argument is traced.

    Source: N. Max, "Optical models for direct volume rendering", 1995.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> fog = jnp.broadcast_to(jnp.array([2.0, 0.5]), (4, 6, 2))
        >>> start, end = jnp.array([0.5, 2.0]), jnp.array([[4.5, 2.0], [0.5, 2.0]])
        >>> (100 * jt.rays.composite(fog, start, end, num_samples=4)).round()
        Array([[173.,  86.],
               [  0.,   0.]], dtype=float32)
    """
    name = "composite"
    segments = Segments.of(name, volume, start, end, spacing, num_samples, step, sampler)
    if 0 in segments.shape:
        return segments.nothing
    least = as_number(name, "min_transmittance", min_transmittance, lambda n: 0 <= n <= 1, "a number from 0 to 1")
    fold = Composited(least)
    return segments.result(segments.folded(name, fold, segments.sample_length[..., 0]))


# The point where a level is crossed


@jax.custom_jvp
def crossing(segments: Segments, level: jax.Array) -> jax.Array:
    """The fraction of the way of the first crossing of a level, S + (C,); infinite where there is none.

    Source: M. Dowell and P. Jarratt, "A modified regula falsi method for computing the root of an equation", 1971.
    """
    number = segments.folded("first_crossing", FirstCrossing(), level)

    def excess(fraction: jax.Array) -> jax.Array:
        return segments.at(fraction) - level[..., None]

    before, behind = (segments.fraction_of(number - k) for k in (1, 0))

    def nearer(_: jax.Array, ends: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        """One more step, from two points on both sides of the level, the newer one last."""
        a, above_a, b, above_b = ends
        c = b - divided(above_b * (b - a), above_b - above_a)
        above_c = excess(c)
        between = (above_c >= 0) != (above_b >= 0)
        return jnp.where(between, b, a), jnp.where(between, above_b, above_a / 2), c, above_c

    ends = (before, excess(before), behind, excess(behind))
    ends = cast(tuple[jax.Array, ...], jax.lax.fori_loop(0, ROOT_STEPS, nearer, ends))
    return jnp.where(number < 0, jnp.inf, ends[2])


@cast(Any, crossing).defjvp
def crossing_jvp(
    primals: tuple[Segments, jax.Array], tangents: tuple[Segments, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """From ``value(t) = level`` follows ``value' dt = dlevel - dvalue``, with the derivative along the segment.

    Source: the implicit function theorem. The rule calls the function itself, so that it holds for every order.
    """
    fraction = crossing(*primals)
    found = jnp.isfinite(fraction)
    place = jnp.where(found, fraction, 0)

    def excess(segments: Segments, level: jax.Array) -> jax.Array:
        return level[..., None] - segments.at(place)

    _, change = jax.jvp(excess, primals, tangents)
    _, slope = jax.jvp(primals[0].at, (place,), (jnp.ones_like(place),))
    return fraction, jnp.where(found, divided(change, slope), 0)


def divided(a: jax.Array, b: jax.Array) -> jax.Array:
    """A quotient; 0 where the divisor is 0."""
    nonzero = b != 0
    return jnp.where(nonzero, a / jnp.where(nonzero, b, 1), 0)


# Folds of the samples of a segment


@dataclasses.dataclass(frozen=True)
class Highest(Fold):
    """The number of the first largest sample, for each channel. The state is that sample and its number.

    NaN is never the largest.
    """

    def start(self, channels: int) -> list[float]:
        return [-float("inf")] * channels + [0.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        highest, at = jnp.split(state, 2, -1)
        above = value > highest
        return jnp.concatenate([jnp.where(above, value, highest), jnp.where(above, number[..., None], at)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.split(state, 2, -1)[1]


@dataclasses.dataclass(frozen=True)
class FirstCrossing(Fold):
    """The number of the first sample across a level from the sample before, for each channel; -1 if none.

    The level is an operand. A sample at the level counts as above, and NaN as below. The state is the sample before and
    the number.
    """

    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * channels + [-1.0] * channels

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        before, crossing = jnp.split(state, 2, -1)
        number, level = number[..., None], given[0][..., None]
        crosses = ((value >= level) != (before >= level)) & (number > 0) & (crossing < 0)
        return jnp.concatenate([jnp.broadcast_to(value, crossing.shape), jnp.where(crosses, number, crossing)], -1)

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.split(state, 2, -1)[1]

    def is_final(self, state: jax.Array) -> jax.Array:
        return jnp.all(jnp.split(state, 2, -1)[1] >= 0, -1)


@dataclasses.dataclass(frozen=True)
class Composited(Fold):
    """Emission and absorption, front to back. The state is the color and the transmittance so far.

    The last channel is the extinction per unit of length, and the others are the color. The length of a sample is an
    operand. The last channel of the result is the opacity.

    Attributes:
        least: the transmittance below which further samples are left out.
    """

    least: float = 0.0
    joint = True
    num_given = 1

    def start(self, channels: int) -> list[float]:
        return [0.0] * (channels - 1) + [1.0]

    def step(self, state: jax.Array, value: jax.Array, number: jax.Array, *given: jax.Array) -> jax.Array:
        color, light = state[..., :-1], state[..., -1:]
        _, opacity = self.absorbed(light, value[..., -1:], given[0][..., None])
        return jnp.concatenate([color + light * opacity * value[..., :-1], light * (1 - opacity)], -1)

    def absorbed(self, light: jax.Array, extinction: jax.Array, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Whether a sample contributes, and its opacity."""
        # At 0, the derivative is that of a positive extinction, so that training can raise it.
        counts = (extinction >= 0) & (light > self.least)
        return counts, -jnp.expm1(jnp.where(counts, -extinction * length, 0))

    def result(self, state: jax.Array) -> jax.Array:
        return jnp.concatenate([state[..., :-1], 1 - state[..., -1:]], -1)

    def is_final(self, state: jax.Array) -> jax.Array:
        return ~(state[..., -1] > self.least)

    def pull_start(self, result: jax.Array, cotangent: jax.Array) -> jax.Array:
        """The transmittance, and the derivative of the result with respect to a factor of all light from behind."""
        behind = jnp.sum(result[..., :-1] * cotangent[..., :-1], -1) - (1 - result[..., -1]) * cotangent[..., -1]
        return stack([jnp.ones_like(behind), behind], -1)

    def pull(
        self, state: jax.Array, value: jax.Array, cotangent: jax.Array, *given: jax.Array
    ) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
        light, behind = state[..., :1], state[..., 1:]
        color, extinction, length = value[..., :-1], value[..., -1:], given[0][..., None]
        counts, opacity = self.absorbed(light, extinction, length)
        emitted = jnp.sum(color * cotangent[..., :-1], -1, keepdims=True)
        share, after = light * opacity, light * (1 - opacity)
        behind = behind - share * emitted
        of_depth = jnp.where(counts, after * emitted - behind, 0)
        of_value = jnp.concatenate([share * cotangent[..., :-1], of_depth * length], -1)
        return jnp.concatenate([after, behind], -1), of_value, [jnp.squeeze(of_depth * extinction, -1)]
