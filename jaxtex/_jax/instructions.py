"""Elementwise functions that are one or two instructions of a GPU, but many operations of JAX.

In array operations they run as they are written here; in a kernel, the emitter writes a C expression in their place.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from .float_bits import SIGN, SMALLEST_NORMAL, bits_of, float_of

# For the name of a function, the C expression that takes its place; {0} is the first argument.
INSTRUCTIONS: dict[str, str] = {}


def instruction(expression: str) -> Callable[[Callable[..., jax.Array]], Callable[..., jax.Array]]:
    """A decorator for an elementwise function that kernels compute by a C expression."""

    def compiled(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        # The emitter recognizes the function by this name, so it must be unique.
        function.__name__ = f"jaxtex_{function.__name__}"
        INSTRUCTIONS[function.__name__] = expression
        return jax.jit(function)

    return compiled


@instruction("flushed_product({0}, {1})")
def flushed_product(x: jax.Array, factor: jax.Array) -> jax.Array:
    """``x * factor`` in float32, where a subnormal `x` counts as zero.

    A subnormal product may become zero, and a zero may have either sign.
    """
    return jnp.where(jnp.abs(x) < SMALLEST_NORMAL, 0, x) * factor


@instruction("flushed_product({0}, bits_as<float>({1}))")
def normal_product(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """`x` times the power of two that has the bits `exponent`; a subnormal product becomes a zero of its sign.

    Args:
        x: float32; zero, or at least 2^-98 in magnitude.
    """
    # The comparison precedes the product because only some processors flush subnormal products.
    subnormal = jnp.abs(x) < float_of((128 << 23) - jnp.minimum(exponent, 100 << 23))
    zero = float_of(bits_of(x) & SIGN)
    return jnp.where(subnormal, zero, x * float_of(exponent))


@instruction("scaled_product({0}, {1}, {2}, {3})")
def scaled_product(a: jax.Array, b: jax.Array | int, more: jax.Array | int, shift: jax.Array | int) -> jax.Array:
    """(a b + more) 2^-shift, rounded down, for int32 that are not negative; the product may have 40 bits.

    Args:
        a: below 2^24.
        b: below 2^18.
        shift: at least 11, and large enough that the result fits in int32.
    """
    high, low = a >> 11, a & 2047
    return (high * b + ((low * b + more) >> 11)) >> (shift - 11)


@instruction("shifted_pair({0}, {1}, {2})")
def shifted_pair(high: jax.Array, low: jax.Array, count: jax.Array) -> jax.Array:
    """The lower 32 bits of a 64-bit number, given as two int32, after a right shift by `count`, below 64."""
    joined = jax.lax.shift_right_logical(low, count) | jnp.left_shift(high, 32 - count)
    return jnp.where(count < 32, joined, high >> jnp.clip(count - 32, 0, 31))
