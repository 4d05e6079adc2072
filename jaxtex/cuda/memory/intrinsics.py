"""Conversions of numbers that device code uses with textures: halves as integers, and doubles as pairs of integers.

CUDA's names start with two underscores. Within a class Python changes such names, and so each function has a name
without them too.
"""

# pyright: strict, reportUnknownMemberType=false

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..._checks.arguments import as_array, check_integer
from ..._jax.versions import is_x64
from ..errors import NOT_SUPPORTED, CudaError
from ..signatures import cuda_function


@cuda_function
def float2half_rn(x: ArrayLike) -> jax.Array:
    """Converts floats to halves, kept as unsigned shorts: `__float2half_rn`. Halves round to nearest even.

    ``cuda.__float2half_rn`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: floats of any shape.

    Returns:
        uint16, of the shape of `x`: the bits of the halves, which copies into arrays of halves accept.

    Gradients:
        None; the results are integers. ``x.astype(jnp.float16)`` has gradients.

    Source:
        CUDA Math API, `__float2half_rn`, as before CUDA 9.

    Example:
        >>> from jaxtex import cuda
        >>> hex(cuda.float2half_rn(1.0))
        '0x3c00'
    """
    return jax.lax.bitcast_convert_type(_floats("float2half_rn", "x", x).astype(jnp.float16), jnp.uint16)


@cuda_function
def half2float(x: ArrayLike) -> jax.Array:
    """Converts halves, kept as unsigned shorts, to floats: `__half2float`.

    ``cuda.__half2float`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: uint16 of any shape, the bits of halves, or float16.

    Returns:
        float32, of the shape of `x`.

    Gradients:
        To float16.

    Raises:
        TypeError: if `x` has another dtype.

    Source:
        CUDA Math API, `__half2float`, as before CUDA 9.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> cuda.half2float(jnp.uint16(0x3C00))
        Array(1., dtype=float32)
    """
    halves = as_array(x)
    if halves.dtype == np.uint16:
        halves = jax.lax.bitcast_convert_type(jnp.asarray(halves), jnp.float16)
    if halves.dtype != np.float16:
        raise TypeError(f"half2float: x holds {halves.dtype}, expected uint16, the bits of halves, or float16.")
    return jnp.asarray(halves).astype(jnp.float32)


@cuda_function
def hiloint2double(hi: ArrayLike, lo: ArrayLike) -> jax.Array:
    """Makes doubles from their upper and lower 32 bits: `__hiloint2double`. It needs 64-bit types enabled in JAX.

    ``cuda.__hiloint2double`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        hi, lo: integers that broadcast to a common shape.

    Returns:
        float64, of that shape.

    Gradients:
        None.

    Raises:
        CudaError: cudaErrorNotSupported, if 64-bit types are disabled in JAX.

    Source:
        CUDA Math API, `__hiloint2double`.

    Example:
        >>> import jax
        >>> from jaxtex import cuda
        >>> with jax.enable_x64(True):
        ...     print(cuda.hiloint2double(0x3FF80000, 0))
        1.5
    """
    if not is_x64():
        raise CudaError(
            NOT_SUPPORTED,
            "hiloint2double: 64-bit numbers are disabled, and the result is a double; enable them with jax_enable_x64.",
        )
    words = [jnp.asarray(_words("hiloint2double", name, value)) for name, value in (("lo", lo), ("hi", hi))]
    return jax.lax.bitcast_convert_type(jnp.stack(jnp.broadcast_arrays(*words), axis=-1), jnp.float64)


@cuda_function
def double2hiint(x: ArrayLike) -> jax.Array:
    """Returns the upper 32 bits of doubles: `__double2hiint`.

    ``cuda.__double2hiint`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: float64 of any shape. If 64-bit types are disabled in JAX, Python or NumPy numbers.

    Returns:
        int32, of the shape of `x`.

    Gradients:
        None.

    Raises:
        CudaError: cudaErrorNotSupported, if `x` is a JAX array, and 64-bit types are disabled in JAX.

    Source:
        CUDA Math API, `__double2hiint`.

    Example:
        >>> from jaxtex import cuda
        >>> hex(cuda.double2hiint(1.5))
        '0x3ff80000'
    """
    return _pair("double2hiint", x)[..., 1]


@cuda_function
def double2loint(x: ArrayLike) -> jax.Array:
    """Returns the lower 32 bits of doubles: `__double2loint`.

    ``cuda.__double2loint`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: as in `double2hiint`.

    Returns:
        int32, of the shape of `x`.

    Gradients:
        None.

    Raises:
        CudaError: as in `double2hiint`.

    Source:
        CUDA Math API, `__double2loint`.

    Example:
        >>> from jaxtex import cuda
        >>> int(cuda.double2loint(1.5))
        0
    """
    return _pair("double2loint", x)[..., 0]


@cuda_function
def float_as_int(x: ArrayLike) -> jax.Array:
    """Returns the bits of floats as ints: `__float_as_int`.

    ``cuda.__float_as_int`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: floats of any shape.

    Returns:
        int32, of the shape of `x`.

    Gradients:
        None.

    Source:
        CUDA Math API, `__float_as_int`.

    Example:
        >>> from jaxtex import cuda
        >>> hex(cuda.float_as_int(1.0))
        '0x3f800000'
    """
    return jax.lax.bitcast_convert_type(_floats("float_as_int", "x", x), jnp.int32)


@cuda_function
def float_as_uint(x: ArrayLike) -> jax.Array:
    """Returns the bits of floats as unsigned ints: `__float_as_uint`.

    ``cuda.__float_as_uint`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: floats of any shape.

    Returns:
        uint32, of the shape of `x`.

    Gradients:
        None.

    Source:
        CUDA Math API, `__float_as_uint`.

    Example:
        >>> from jaxtex import cuda
        >>> hex(cuda.float_as_uint(-0.0))
        '0x80000000'
    """
    return jax.lax.bitcast_convert_type(_floats("float_as_uint", "x", x), jnp.uint32)


@cuda_function
def int_as_float(x: ArrayLike) -> jax.Array:
    """Returns ints as the bits of floats: `__int_as_float`.

    ``cuda.__int_as_float`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: integers of any shape.

    Returns:
        float32, of the shape of `x`.

    Gradients:
        None.

    Source:
        CUDA Math API, `__int_as_float`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.int_as_float(0x3F800000)
        Array(1., dtype=float32)
    """
    return jax.lax.bitcast_convert_type(jnp.asarray(_words("int_as_float", "x", x)), jnp.float32)


@cuda_function
def uint_as_float(x: ArrayLike) -> jax.Array:
    """Returns unsigned ints as the bits of floats: `__uint_as_float`.

    ``cuda.__uint_as_float`` is the same function. Within a class Python changes that name; use this one there.

    Args:
        x: integers of any shape.

    Returns:
        float32, of the shape of `x`.

    Gradients:
        None.

    Source:
        CUDA Math API, `__uint_as_float`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.uint_as_float(0x80000000)
        Array(-0., dtype=float32)
    """
    return jax.lax.bitcast_convert_type(jnp.asarray(_words("uint_as_float", "x", x)), jnp.float32)


def _floats(function: str, argument: str, value: ArrayLike) -> jax.Array:
    numbers = as_array(value)
    if not jnp.issubdtype(numbers.dtype, jnp.floating):
        raise TypeError(f"{function}: {argument} holds {numbers.dtype}, expected floats; use .astype(jnp.float32).")
    return jnp.asarray(numbers, jnp.float32)


def _words(function: str, argument: str, value: ArrayLike) -> jax.Array:
    """32-bit words as int32. Python's integers up to 2^32 - 1 are words too."""
    if isinstance(value, int) and 2**31 <= value < 2**32:
        value -= 2**32
    return check_integer(function, argument, value, wrap_unsigned=True).astype(np.int32)


def _pair(function: str, x: ArrayLike) -> jax.Array:
    """The lower and the upper words of doubles, along a last axis."""
    if isinstance(x, jax.Array):
        if not is_x64():
            raise CudaError(
                NOT_SUPPORTED,
                f"{function}: x is an array of JAX, and 64-bit numbers are disabled; enable them with jax_enable_x64.",
            )
        return jax.lax.bitcast_convert_type(x.astype(jnp.float64), jnp.int32)
    return jnp.asarray(np.asarray(x, np.float64)[..., None].view(np.int32))
