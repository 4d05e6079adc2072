"""One axis: from a position to taps and their weights, by filter and derivative order."""

import math

import jax
import jax.numpy as jnp

from ..modes import FilterMode
from .axis import Axis, Footprint
from .coordinates import texels_per_unit, to_position, usable

POINT = Footprint(origin=0.0, first=0, weights=((1.0,),))
LINEAR = Footprint(origin=0.5, first=0, weights=((1.0, -1.0), (0.0, 1.0)))
# The two taps of the linear footprint one at a time, unweighted: what a gather returns.
LINEAR_TAPS = tuple(Footprint(origin=0.5, first=k, weights=((1.0,),)) for k in (0, 1))
# A level of a mip chain has its centre at its number: the nearest one, or the two around it.
NEAREST_LEVEL = POINT._replace(origin=-0.5)
LEVEL_BLEND = LINEAR._replace(origin=0.0)


def cubic(a: float) -> Footprint:
    """Keys' cubic convolution kernel with free parameter `a`."""
    return Footprint(
        origin=0.5,
        first=-1,
        weights=(
            (0.0, a, -2 * a, a),
            (1.0, 0.0, -(a + 3), a + 2),
            (0.0, -a, 2 * a + 3, -(a + 2)),
            (0.0, 0.0, a, -a),
        ),
    )


FOOTPRINTS = {
    FilterMode.POINT: lambda coefficient: POINT,
    FilterMode.LINEAR: lambda coefficient: LINEAR,
    FilterMode.CUBIC: cubic,
}


def derivative(polynomial: tuple[float, ...], order: int) -> tuple[float, ...]:
    """The coefficients of the derivative of that order."""
    for _ in range(order):
        polynomial = tuple(k * c for k, c in enumerate(polynomial))[1:]
    return polynomial or (0.0,)


def evaluate(polynomial: tuple[float, ...], x: jax.Array) -> jax.Array | float:
    """The polynomial at `x`; a plain number if it is constant."""
    value = polynomial[-1]
    for coefficient in polynomial[-2::-1]:
        value = x * value
        if coefficient:
            value = value + coefficient
    return value


def taps(coord: jax.Array, axis: Axis) -> list[tuple[jax.Array, jax.Array | float]]:
    """The taps of `coord` on `axis`, unbounded integers, each with its weight.

    On an integer axis the coordinate is its own tap: so layers and fetches pass through here as well.
    """
    if axis.integer:
        return [(coord, 1.0)]
    origin, first, polynomials = axis.footprint
    shifted = to_position(coord, axis) - origin
    low = jnp.floor(shifted)
    tap, fraction = low.astype(jnp.int32), shifted - low
    if axis.saturating:
        # Infinities: the conversion saturates, and the taps beside it must not overflow, so the footprint is stopped
        # just outside; inf - inf is no fraction.
        if first + len(polynomials) > 1:
            tap = jnp.minimum(tap, axis.size - first)
        if first < 0:
            tap = jnp.maximum(tap, -len(polynomials) - first)
        fraction = jnp.where(fraction >= 0, fraction, 0)
    weights = [evaluate(derivative(p, axis.order), fraction) for p in polynomials]
    if axis.order:
        scale = math.prod([texels_per_unit(axis, coord.dtype)] * axis.order)
        scale = jnp.where(usable(coord, axis), jnp.asarray(scale, coord.dtype), 0)
        weights = [scale * w for w in weights]
    return [(tap + (first + k), weight) for k, weight in enumerate(weights)]
