"""Filters: the taps around a position on one axis, and their weights."""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import FilterMode

# The weight of a tap: an array, or a Python number if it does not depend on the position.
Weight = jax.Array | float


class Polynomials(NamedTuple):
    """Weights that are polynomials in the fraction: one row of coefficients for each tap, constant term first."""

    rows: tuple[tuple[float, ...], ...]

    @property
    def num_taps(self) -> int:
        return len(self.rows)

    def at(self, fraction: jax.Array, order: int) -> list[Weight]:
        """The derivatives of all weights with respect to the fraction; order 0 is the weights themselves."""
        return [evaluate(derivative(row, order), fraction) for row in self.rows]

    def vanish(self, order: int) -> bool:
        """Whether the weights' derivatives of an order are zero everywhere."""
        return order >= max(map(len, self.rows))

    def bound(self, order: int) -> float:
        """The largest magnitude of the derivatives of that order."""
        return max(largest_magnitude(derivative(row, order)) for row in self.rows)


class WeightFunction(NamedTuple):
    """Weights that are any differentiable function of the fraction.

    Attributes:
        function: ``function(fraction)`` is a sequence of `num_taps` arrays. JAX differentiates it.
        num_taps: the number of weights.
        bounds: upper bounds of the magnitude of the weights, of their first derivatives, and so on. Reproducible sums
            need the bound of the order that they add, and raise an error without it.
        profile: the weight as a function of the distance between tap and position, before the weights are divided by
            their sum; `None` if they are not divided.
    """

    function: Callable[[jax.Array], Sequence[jax.Array]]
    num_taps: int
    bounds: tuple[float, ...] = ()
    profile: Callable[[jax.Array], jax.Array] | None = None

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
                f"filter has {len(self.bounds)} bounds; add it to its row, or pass deterministic=False."
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
        on_knots: whether it reads axes with knots.
    """

    origin: float
    first: int
    weights: Polynomials | WeightFunction
    signed: bool = True
    on_hardware: bool = False
    on_knots: bool = False

    @property
    def num_taps(self) -> int:
        return self.weights.num_taps

    @property
    def blends(self) -> bool:
        """Whether a read combines several texels."""
        return self.num_taps > 1

    @property
    def is_tent(self) -> bool:
        """Whether the filter is the linear one: the weight of a tap is 1 minus its distance from the position."""
        return self.first == 0 and self.weights == LINEAR.weights

    @property
    def extent(self) -> float:
        """The largest distance of a tap of a stretched filter from the position, in steps, with room for rounding."""
        return 0.5 * self.num_taps * (1 + ROUNDING)

    def profile(self, distance: np.ndarray) -> np.ndarray:
        """The weight as a function of position minus tap center, float64; zero beyond the taps.

        Weights that a filter divides by their sum are not divided here. A profile that jumps to zero includes both of
        its ends, so that the filter is symmetric.
        """
        behind = np.asarray(distance, np.float64) - (self.origin - self.first - self.num_taps + 0.5)
        steps = np.floor(behind)
        # The further right of a tap the position lies, the lower is the tap's number.
        tap = self.num_taps - 1 - steps
        among = (tap >= 0) & (tap < self.num_taps)
        if isinstance(self.weights, Polynomials):
            weights = [np.broadcast_to(np.asarray(w), steps.shape) for w in self.weights.at(behind - steps, 0)]  # pyright: ignore
        else:
            with jax.ensure_compile_time_eval(), jax.enable_x64(True):
                if self.weights.profile is not None:
                    return np.where(abs(distance) <= self.extent, evaluated(self.weights.profile, distance), 0.0)
                weights = evaluated(lambda fraction: self.weights.at(fraction, 0), behind - steps)
        return np.where(among, np.choose(np.where(among, tap, 0).astype(int), weights), 0.0)

    def only(self, tap: int) -> "FilterKernel":
        """The filter that has a single tap of this one, with its weight; weights must be polynomials."""
        assert isinstance(self.weights, Polynomials)
        weights = Polynomials(self.weights.rows[tap : tap + 1])
        return self._replace(first=self.first + tap, weights=weights)

    @property
    def reach(self) -> int:
        """The largest distance of a tap from ``low``, in texels."""
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


def b_spline(order: int) -> FilterKernel:
    """The B-spline of an order from 0 to `MAX_SPLINE_ORDER`; it interpolates prefiltered texels.

    Its weights are ``sum_k (-1)^k C(n + 1, k) (a + n - t - k)^n / n!`` at tap t, k from 0 to n - t.

    Source: M. Unser, "Splines: A Perfect Fit for Signal and Image Processing", 1999.
    """
    rows = tuple(b_spline_weight(order, tap) for tap in range(order + 1))
    return FilterKernel(0.5 * (order % 2), -(order // 2), Polynomials(rows), signed=False)


def b_spline_weight(order: int, tap: int) -> tuple[float, ...]:
    """The coefficients of the weight of one tap of a B-spline."""
    coefficients = [Fraction(0)] * (order + 1)
    for k in range(order - tap + 1):
        share = Fraction((-1) ** k * math.comb(order + 1, k), math.factorial(order))
        for power in range(order + 1):
            # (a + m)^n, where m = n - t - k; 0^0 is 1.
            coefficients[power] += share * math.comb(order, power) * (order - tap - k) ** (order - power)
    return tuple(map(float, coefficients))


# More than the relative rounding error of the distance between a sample and a tap; exact distances are multiples of
# 1 / (4 size).
ROUNDING = 2.0**-30
# Below so many numbers, calling a program takes longer than its arithmetic.
LEAST_NUMBERS = 2**11


def evaluated(function: Callable[[jax.Array], Any], numbers: np.ndarray) -> Any:
    """An elementwise function of `numbers`, computed at once, as NumPy arrays.

    The numbers are padded to a power of two, at least LEAST_NUMBERS, so that arrays of many sizes share the compiled
    programs of JAX's operations.
    """
    line = np.pad(np.ravel(numbers), (0, (1 << (max(numbers.size, LEAST_NUMBERS) - 1).bit_length()) - numbers.size))

    def without_padding(values: jax.Array) -> np.ndarray:
        return np.asarray(values)[: numbers.size].reshape(numbers.shape)

    return jax.tree.map(without_padding, function(jnp.asarray(line)))


def lanczos(lobes: int) -> WeightFunction:
    """The weights of a sinc, windowed by the middle lobe of a sinc that is `lobes` times as wide, divided by their sum.

    Source: C. Duchon, "Lanczos filtering in one and two dimensions", 1979.
    """
    bounds = {2: (1.01, 1.4, 4.7, 10.7), 3: (1.01, 1.4, 3.6, 9.5)}
    return divided(functools.partial(windowed_sinc, lobes), lobes, bounds[lobes])


def divided(profile: Callable[[jax.Array], jax.Array], reach: int, bounds: tuple[float, ...]) -> WeightFunction:
    """The weights of a profile at the taps within a distance of `reach`, divided by their sum."""
    return WeightFunction(functools.partial(shares, profile, reach), 2 * reach, bounds, profile)


def shares(profile: Callable[[jax.Array], jax.Array], reach: int, fraction: jax.Array) -> list[jax.Array]:
    weights = [profile(fraction - k) for k in range(1 - reach, reach + 1)]
    total = functools.reduce(jnp.add, weights)
    return [w / total for w in weights]


def windowed_sinc(lobes: int, x: jax.Array) -> jax.Array:
    return sinc(x) * sinc(x / lobes)


def gaussian(x: jax.Array) -> jax.Array:
    """A Gaussian whose standard deviation is half a texel, up to a factor."""
    return jnp.exp(-2 * x**2)


def sinc(x: jax.Array) -> jax.Array:
    """sin(pi x) / (pi x); near 0 a series, so that its derivatives are exact there too."""
    near = jnp.abs(x) < 0.25
    angle = jnp.where(near, 1, jnp.pi * x)
    square = jnp.where(near, (jnp.pi * x) ** 2, 0)
    series = evaluate(tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(SINC_TERMS)), square)
    return jnp.where(near, series, jnp.sin(angle) / angle)


# For |x| < 1 / 4 the last term is below 2^-50 of the first, and its third derivative is below 2^-30.
SINC_TERMS = 8
MAX_SPLINE_ORDER = 5
_UNSIGNED = {"signed": False, "on_hardware": True, "on_knots": True}
POINT = FilterKernel(0.0, 0, Polynomials(((1.0,),)), **_UNSIGNED)
LINEAR = FilterKernel(0.5, 0, Polynomials(((1.0, -1.0), (0.0, 1.0))), **_UNSIGNED)
# The linear filter of the fraction t as 3 t^2 - 2 t^3, whose slope is zero at texels. No sampler has it.
SMOOTHSTEP = FilterKernel(0.5, 0, Polynomials(((1.0, 0.0, -3.0, 2.0), (0.0, 0.0, 3.0, -2.0))), signed=False)
# The polynomial of degree 3 through the four taps.
LAGRANGE = FilterKernel(
    0.5,
    -1,
    Polynomials(
        (
            (0.0, -1 / 3, 1 / 2, -1 / 6),
            (1.0, -1 / 2, -1.0, 1 / 2),
            (0.0, 1.0, 1 / 2, -1 / 2),
            (0.0, -1 / 6, 0.0, 1 / 6),
        )
    ),
    on_knots=True,
)
# Source: D. Mitchell and A. Netravali, "Reconstruction Filters in Computer Graphics", 1988, with B = C = 1/3.
MITCHELL = FilterKernel(
    0.5,
    -1,
    Polynomials(
        (
            (1 / 18, -1 / 2, 5 / 6, -7 / 18),
            (8 / 9, 0.0, -2.0, 7 / 6),
            (1 / 18, 1 / 2, 3 / 2, -7 / 6),
            (0.0, 0.0, -1 / 3, 7 / 18),
        )
    ),
)
LANCZOS2 = FilterKernel(0.5, -1, lanczos(2))
LANCZOS3 = FilterKernel(0.5, -2, lanczos(3))
GAUSSIAN = FilterKernel(0.5, -1, divided(gaussian, 2, (0.8, 1.0, 2.8, 9.7)), signed=False)
# The mean over a span of two texels: the convolution of a box of one texel and a box of two. No sampler has it.
SPAN = FilterKernel(0.0, -1, Polynomials(((0.5, -0.5), (0.5,), (0.0, 0.5))), signed=False)
# The taps of `gather`: each tap of the linear kernel as a filter of its own, with weight 1.
LINEAR_TAPS = tuple(FilterKernel(0.5, k, Polynomials(((1.0,),)), **_UNSIGNED) for k in (0, 1))
# The center of a mip level is at its number: the nearest level, or the two around a level of detail.
NEAREST_LEVEL = POINT._replace(origin=-0.5)
LEVEL_BLEND = LINEAR._replace(origin=0.0)


class FilterOptions(NamedTuple):
    """The options of a sampler that a filter may depend on."""

    cubic_coefficient: float = -0.5
    spline_order: int = 3


DEFAULT_OPTIONS = FilterOptions()
FILTER_KERNELS: dict[FilterMode, Callable[[FilterOptions], FilterKernel]] = {
    FilterMode.POINT: lambda _: POINT,
    FilterMode.LINEAR: lambda _: LINEAR,
    FilterMode.CUBIC: lambda options: keys_cubic(options.cubic_coefficient),
    FilterMode.BSPLINE: lambda options: b_spline(options.spline_order),
    FilterMode.LAGRANGE: lambda _: LAGRANGE,
    FilterMode.MITCHELL: lambda _: MITCHELL,
    FilterMode.LANCZOS2: lambda _: LANCZOS2,
    FilterMode.LANCZOS3: lambda _: LANCZOS3,
    FilterMode.GAUSSIAN: lambda _: GAUSSIAN,
}


def filter_kernel(mode: FilterMode, options: FilterOptions = DEFAULT_OPTIONS) -> FilterKernel:
    """The kernel of a filter mode."""
    return FILTER_KERNELS[FilterMode(mode)](options)


def derivative(polynomial: tuple[float, ...], order: int) -> tuple[float, ...]:
    """The coefficients of a polynomial's derivative of an order."""
    for _ in range(order):
        polynomial = tuple(k * c for k, c in enumerate(polynomial))[1:]
    return polynomial or (0.0,)


@functools.cache
def largest_magnitude(polynomial: tuple[float, ...]) -> float:
    """The largest magnitude of a polynomial from 0 to 1: at an end, or where its slope is zero."""
    turns = np.roots(derivative(polynomial, 1)[::-1]).real
    return float(np.abs(np.polyval(polynomial[::-1], [0.0, 1.0, *np.clip(turns, 0.0, 1.0)])).max())


def evaluate(polynomial: tuple[float, ...], x: jax.Array) -> Weight:
    """The polynomial at `x`; a Python number if it is constant."""
    value: Weight = polynomial[-1]
    for coefficient in polynomial[-2::-1]:
        value = x * value
        if coefficient:
            value = value + coefficient
    return value


# Mip levels


def halving_weights(size: int) -> np.ndarray:
    """The weights of the three texels that each texel of the next level covers, (3, max(size >> 1, 1)), float64.

    Texel i of m covers [i n / m, (i + 1) n / m) of n: of 2i all but i / m, 2i + 1 whole, of 2i + 2 the first
    (i + 1) / m.
    """
    m = size >> 1
    if m == 0 or size == 2 * m:
        weights = (1.0, 0.0, 0.0) if m == 0 else (0.5, 0.5, 0.0)
        return np.tile(np.array(weights)[:, None], max(m, 1))
    along = np.arange(m) / m
    return np.stack([(1 - along) * (m / size), np.full(m, m / size), (along + 1 / m) * (m / size)])
