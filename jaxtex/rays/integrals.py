"""Line integrals: a sum of reads along each segment, inside the read."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.arguments import as_float
from .._checks.calls import public
from .._engine.arithmetic import FLOAT
from .._reads.complex_parts import by_parts
from .._tables.storage_formats import is_complex
from ..sampler import Sampler
from ..texture import Texture
from .segments import DEFAULT_SAMPLER, Segments, of_rank

NAME = "line_integral"


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
        raise ValueError(f"{NAME}: weights are given with step; pass num_samples, the number of weights of a segment.")
    factors = None if weights is None else as_float(weights)
    others = () if factors is None else (factors,)
    segments = Segments.of(NAME, volume, start, end, spacing, num_samples, step, sampler, others)
    if factors is not None:
        check_weights(factors, (*segments.shape, segments.count))
        segments = segments.over(NAME, "weights", factors.shape[:-1])
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
        fits = weights.ndim == 0 or np.broadcast_shapes(weights.shape, shape)[-1] == shape[-1]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{NAME}: weights has shape {weights.shape}, which does not broadcast to {shape}, the samples of each "
            f"segment; pass equal sizes, or 1."
        )
