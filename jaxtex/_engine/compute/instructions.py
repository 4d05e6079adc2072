"""Functions of numbers that are one or two instructions of a GPU, and many operations of JAX.

Each is a function of arrays like any other. In a kernel the emitter writes the expression of C in its place.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..._jax.float_bits import SIGN, SMALLEST_NORMAL, bits_of, float_of

# Expressions of C, in which {0} is the first argument, by the name of the function that they stand for.
INSTRUCTIONS: dict[str, str] = {}


def instruction(expression: str) -> Callable[[Callable[..., jax.Array]], Callable[..., jax.Array]]:
    """A decorator for a function, element by element, for which kernels have an expression of C."""

    def compiled(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        # The emitter knows the function by its name, which no other function has by chance.
        function.__name__ = f"jaxtex_{function.__name__}"
        INSTRUCTIONS[function.__name__] = expression
        return jax.jit(function)

    return compiled


@instruction("saturated({0})")
def saturated(x: jax.Array) -> jax.Array:
    """`x`, float32, clipped to 0 and 1; NaN becomes 0."""
    return jnp.clip(jnp.where(x == x, x, 0), 0, 1)


@instruction("flushed_product({0}, {1})")
def flushed_product(x: jax.Array, factor: jax.Array) -> jax.Array:
    """A product of float32, in which a subnormal `x` counts as zero.

    A subnormal product may become zero, and a zero may have either sign.
    """
    return jnp.where(jnp.abs(x) < SMALLEST_NORMAL, 0, x) * factor


@instruction("flushed_product({0}, bits_as<float>({1}))")
def normal_product(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """`x` times the power of two that has the bits `exponent`; a subnormal product becomes a zero of its sign.

    Args:
        x: float32; zero, or at least 2^-98 in magnitude.
    """
    # Compared before the product, which some processors flush to zero and others do not.
    subnormal = jnp.abs(x) < float_of((128 << 23) - jnp.minimum(exponent, 100 << 23))
    zero = float_of(bits_of(x) & SIGN)
    return jnp.where(subnormal, zero, x * float_of(exponent))


@instruction("scaled_product({0}, {1}, {2}, {3})")
def scaled_product(a: jax.Array, b: jax.Array | int, more: jax.Array | int, shift: jax.Array | int) -> jax.Array:
    """(a b + more) 2^-shift, rounded down, of int32 that are not negative; the product may have 40 bits.

    Args:
        a: below 2^24.
        b: below 2^18.
        shift: at least 11, and so many that the result is an int32.
    """
    high, low = a >> 11, a & 2047
    return (high * b + ((low * b + more) >> 11)) >> (shift - 11)


@instruction("shifted_pair({0}, {1}, {2})")
def shifted_pair(high: jax.Array, low: jax.Array, count: jax.Array) -> jax.Array:
    """The lower half of a number of 64 bits, given as two int32, shifted to the right by `count`, below 64."""
    joined = jax.lax.shift_right_logical(low, count) | jnp.left_shift(high, 32 - count)
    return jnp.where(count < 32, joined, high >> jnp.clip(count - 32, 0, 31))
