"""Filters: the taps around a position on one axis, and their weights."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..modes import FilterMode

# The weight of a tap: an array, or a plain number where it is the same for all positions.
Weight = jax.Array | float


class Polynomials(NamedTuple):
    """Weights that are polynomials in the fraction: one row of coefficients for each tap, constant term first."""

    rows: tuple[tuple[float, ...], ...]

    @property
    def num_taps(self) -> int:
        return len(self.rows)

    def at(self, fraction: jax.Array, order: int) -> list[Weight]:
        """The derivatives of that order of all weights."""
        return [evaluate(derivative(row, order), fraction) for row in self.rows]

    def vanish(self, order: int) -> bool:
        """Whether the derivatives of that order are zero everywhere."""
        return order >= max(map(len, self.rows))

    def bound(self, order: int) -> float:
        """An upper bound of the magnitude of the derivatives of that order."""
        return max(sum(map(abs, derivative(row, order))) for row in self.rows)


class WeightFunction(NamedTuple):
    """Weights that are any differentiable function of the fraction.

    Attributes:
        function: ``function(fraction)`` is a sequence of `num_taps` arrays. JAX differentiates it.
        num_taps: how many weights it returns.
        bounds: an upper bound of the magnitude of the weights, then of their first derivatives, and so on. Reproducible
            sums need the bound of the order that they add, and raise an error without it.
    """

    function: Callable[[jax.Array], Sequence[jax.Array]]
    num_taps: int
    bounds: tuple[float, ...] = ()

    def at(self, fraction: jax.Array, order: int) -> list[Weight]:
        function = self.function
        for _ in range(order):
            function = _differentiated(function)
        return list(function(fraction))

    def vanish(self, order: int) -> bool:
        return False

    def bound(self, order: int) -> float:
        if order >= len(self.bounds):
            raise ValueError(
                f"Sampler: deterministic=True needs a bound of the weights' derivatives of order {order}, and the "
                f"filter has {len(self.bounds)} bounds; add it to its row, or leave deterministic out."
            )
        return self.bounds[order]


def _differentiated(function: Callable[[jax.Array], Sequence[jax.Array]]) -> Callable[[jax.Array], Sequence[jax.Array]]:
    def weights(x: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(function(x))

    def derivatives(x: jax.Array) -> tuple[jax.Array, ...]:
        return jax.jvp(weights, (x,), (jnp.ones_like(x),))[1]

    return derivatives


class FilterKernel(NamedTuple):
    """One filter, on one axis.

    With ``low = floor(position - origin)`` the taps are ``low + first``, ``low + first + 1``, ..., one for each weight,
    and the weights are functions of the fraction ``position - origin - low``.

    Attributes:
        signed: whether a weight can be negative.
        on_hardware: whether texture units have it.
    """

    origin: float
    first: int
    weights: Polynomials | WeightFunction
    signed: bool = True
    on_hardware: bool = False

    @property
    def num_taps(self) -> int:
        return self.weights.num_taps

    @property
    def blends(self) -> bool:
        """Whether a read combines several texels."""
        return self.num_taps > 1

    @property
    def is_tent(self) -> bool:
        """Whether the weight of a tap is 1 less its distance from the position, as in the linear filter."""
        return self.first == 0 and self.weights == LINEAR.weights

    @property
    def reach(self) -> int:
        """How many texels away from the one at ``low`` the farthest tap lies."""
        return max(-self.first, self.first + self.num_taps - 1)


def keys_cubic(a: float) -> FilterKernel:
    """Keys' cubic convolution kernel with the free parameter `a`.

    Source: R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
    """
    rows = (
        (0.0, a, -2 * a, a),
        (1.0, 0.0, -(a + 3), a + 2),
        (0.0, -a, 2 * a + 3, -(a + 2)),
        (0.0, 0.0, a, -a),
    )
    return FilterKernel(0.5, -1, Polynomials(rows))


_UNSIGNED = {"signed": False, "on_hardware": True}
POINT = FilterKernel(0.0, 0, Polynomials(((1.0,),)), **_UNSIGNED)
LINEAR = FilterKernel(0.5, 0, Polynomials(((1.0, -1.0), (0.0, 1.0))), **_UNSIGNED)
# The two taps of the linear kernel one at a time, unweighted: the taps of a gather.
LINEAR_TAPS = tuple(FilterKernel(0.5, k, Polynomials(((1.0,),)), **_UNSIGNED) for k in (0, 1))
# The center of a mip level is at its number: the nearest level, or the two around a level of detail.
NEAREST_LEVEL = POINT._replace(origin=-0.5)
LEVEL_BLEND = LINEAR._replace(origin=0.0)

# Each row makes a kernel of the sampler's `cubic_coefficient`.
FILTER_KERNELS: dict[FilterMode, Callable[[float], FilterKernel]] = {
    FilterMode.POINT: lambda _: POINT,
    FilterMode.LINEAR: lambda _: LINEAR,
    FilterMode.CUBIC: keys_cubic,
}


def filter_kernel(mode: FilterMode, cubic_coefficient: float = -0.5) -> FilterKernel:
    """The kernel of a filter mode."""
    return FILTER_KERNELS[FilterMode(mode)](cubic_coefficient)


def derivative(polynomial: tuple[float, ...], order: int) -> tuple[float, ...]:
    """The coefficients of the derivative of that order."""
    for _ in range(order):
        polynomial = tuple(k * c for k, c in enumerate(polynomial))[1:]
    return polynomial or (0.0,)


def evaluate(polynomial: tuple[float, ...], x: jax.Array) -> Weight:
    """The polynomial at `x`; a plain number if it is constant."""
    value: Weight = polynomial[-1]
    for coefficient in polynomial[-2::-1]:
        value = x * value
        if coefficient:
            value = value + coefficient
    return value
