"""Functions of device code that make numbers: vectors, and conversions between numbers and their bits.

CUDA's names of the conversions start with two underscores. Python changes such names within a class, so each has a name
without them, too. A vector is an array with the components along its last axis.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.numbers import as_array, is_integral, known_integers, saturated
from .._jax.versions import is_x64, stack
from .._reads.arguments import check_integer
from .declarations import DECLARATIONS, INTRINSICS, VECTOR_TYPES
from .enums import Error
from .errors import CudaError
from .functions import Text, made
from .memory.channel_formats import BASE_TYPES
from .memory.numbers import misfit

# Types with vectors but without textures.
WIDE_DTYPES = {"long": "int64", "ulong": "uint64", "longlong": "int64", "ulonglong": "uint64", "double": "float64"}
DTYPES = {name: np.dtype(BASE_TYPES[name].dtype if name in BASE_TYPES else WIDE_DTYPES[name]) for name in VECTOR_TYPES}
NEEDS_X64 = "cudaErrorNotSupported, if 64-bit types are disabled in JAX"
OF_JAX = "cudaErrorNotSupported, if `x` is a JAX array, and 64-bit types are disabled in JAX."


def vector_maker(base: str, length: int) -> Callable[..., jax.Array]:
    """The function ``make_<base><length>``."""
    name, dtype = f"make_{base}{length}", DTYPES[base]
    floating = dtype.kind == "f"
    conversion = (
        "They are rounded to the type."
        if floating
        else "Floats are truncated toward zero, and saturate. Known integers that do not fit are an error, and others "
        "saturate."
    )
    text = Text(
        f"Joins {length} components to vectors of {dtype} along the last axis: CUDA's type `{base}{length}`."
        if length > 1
        else f"Makes vectors of one component of {dtype} along the last axis: CUDA's type `{base}1`.",
        f"An array of {dtype}, of shape S + ({length},).",
        "To the components." if floating else "None.",
        {"CudaError": f"cudaErrorInvalidValue, if a known integer does not fit; {NEEDS_X64}, for a type of 64 bits."},
    )
    texts = dict.fromkeys("xyzw", f"numbers of any shapes that broadcast to a shape S. {conversion}")
    return made(name, functools.partial(vector_of, name, dtype), text, {base: ArrayLike}, texts)


def vector_of(function: str, dtype: np.dtype, given: dict[str, Any]) -> jax.Array:
    """A vector with these components."""
    components = [component_of(function, argument, value, dtype) for argument, value in given.items()]
    return stack(jnp.broadcast_arrays(*components), axis=-1)


def component_of(function: str, argument: str, value: Any, dtype: np.dtype) -> jax.Array:
    """A component of a vector, converted to the type of the vector."""
    if dtype.itemsize == 8:
        check_x64(function, "the result has them")
    known = known_integers(value)
    array = as_array(value) if known is None else known
    if dtype.kind == "f":
        return jnp.asarray(array, dtype)
    if is_integral(array):
        narrow = saturated(array, dtype)
        if known is not None and (narrow != known).any():
            raise misfit(function, argument, known[narrow != known][0], dtype, "clip it")
        return jnp.asarray(narrow)
    limits, floats = jnp.iinfo(dtype), jnp.trunc(jnp.asarray(array))
    inside = jnp.where(floats == floats, floats, 0).astype(dtype)
    low, high = floats <= limits.min, floats >= limits.max
    return jnp.where(low, jnp.asarray(limits.min, dtype), jnp.where(high, jnp.asarray(limits.max, dtype), inside))


def float2half_rn(x: ArrayLike) -> jax.Array:
    return jax.lax.bitcast_convert_type(_floats("float2half_rn", x).astype(jnp.float16), jnp.uint16)


def half2float(x: ArrayLike) -> jax.Array:
    halves = as_array(x)
    if halves.dtype == np.uint16:
        halves = jax.lax.bitcast_convert_type(jnp.asarray(halves), jnp.float16)
    if halves.dtype != np.float16:
        raise TypeError(f"half2float: x holds {halves.dtype}, expected uint16, the bits of halves, or float16.")
    return jnp.asarray(halves).astype(jnp.float32)


def hiloint2double(hi: ArrayLike, lo: ArrayLike) -> jax.Array:
    check_x64("hiloint2double", "the result is a double")
    words = [jnp.asarray(_words("hiloint2double", name, value)) for name, value in (("lo", lo), ("hi", hi))]
    return jax.lax.bitcast_convert_type(stack(jnp.broadcast_arrays(*words), axis=-1), jnp.float64)


def word_of_double(function: str, index: int, x: ArrayLike) -> jax.Array:
    """The lower (0) or the upper (1) 32 bits of doubles."""
    if not isinstance(x, jax.Array):
        return jnp.asarray(np.asarray(x, np.float64)[..., None].view(np.int32))[..., index]
    check_x64(function, "x is an array of JAX")
    return jax.lax.bitcast_convert_type(x.astype(jnp.float64), jnp.int32)[..., index]


def bits_of_float(function: str, dtype: str, x: ArrayLike) -> jax.Array:
    return jax.lax.bitcast_convert_type(_floats(function, x), jnp.dtype(dtype))


def float_of_bits(function: str, x: ArrayLike) -> jax.Array:
    return jax.lax.bitcast_convert_type(jnp.asarray(_words(function, "x", x)), jnp.float32)


def check_x64(function: str, reason: str) -> None:
    """Refuses numbers of 64 bits that JAX does not hold (801)."""
    if not is_x64():
        raise CudaError(
            Error.NotSupported,
            f"{function}: 64-bit numbers are disabled, and {reason}; enable them with jax_enable_x64.",
        )


def _floats(function: str, value: ArrayLike) -> jax.Array:
    numbers = as_array(value)
    if not jnp.issubdtype(numbers.dtype, jnp.floating):
        raise TypeError(f"{function}: x holds {numbers.dtype}, expected floats; use .astype(jnp.float32).")
    return jnp.asarray(numbers, jnp.float32)


def _words(function: str, argument: str, value: ArrayLike) -> jax.Array:
    """32-bit words as int32. Python's integers up to 2^32 - 1 are words too."""
    if isinstance(value, int) and 2**31 <= value < 2**32:
        value -= 2**32
    return check_integer(function, argument, value, wrap_unsigned=True).astype(np.int32)


# Each conversion, and its texts: summary, parameters, result, gradients and errors.
CONVERSIONS: dict[str, tuple[Callable[..., jax.Array], str, str, str, str, dict[str, str]]] = {
    "float2half_rn": (
        float2half_rn,
        "Converts floats to halves, kept as unsigned shorts. Halves round to nearest even",
        "floats of any shape.",
        "uint16: the bits of the halves, which copies into arrays of halves accept",
        "None; the results are integers. ``x.astype(jnp.float16)`` has gradients.",
        {},
    ),
    "half2float": (
        half2float,
        "Converts halves, kept as unsigned shorts, to floats",
        "uint16 of any shape, the bits of halves, or float16.",
        "float32",
        "To float16.",
        {"TypeError": "if `x` has another dtype."},
    ),
    "hiloint2double": (
        hiloint2double,
        "Makes doubles from their upper and lower 32 bits",
        "integers that broadcast to a common shape.",
        "float64",
        "None.",
        {"CudaError": f"{NEEDS_X64}."},
    ),
    "double2hiint": (
        functools.partial(word_of_double, "double2hiint", 1),
        "Returns the upper 32 bits of doubles",
        "float64 of any shape. If 64-bit types are disabled in JAX, Python or NumPy numbers.",
        "int32",
        "None.",
        {"CudaError": OF_JAX},
    ),
    "double2loint": (
        functools.partial(word_of_double, "double2loint", 0),
        "Returns the lower 32 bits of doubles",
        "as in `double2hiint`.",
        "int32",
        "None.",
        {"CudaError": OF_JAX},
    ),
    **{
        f"float_as_{base}": (
            functools.partial(bits_of_float, f"float_as_{base}", f"{base}32"),
            f"Returns the bits of floats as {base}s",
            "floats of any shape.",
            f"{base}32",
            "None.",
            {},
        )
        for base in ("int", "uint")
    },
    **{
        f"{base}_as_float": (
            functools.partial(float_of_bits, f"{base}_as_float"),
            f"Returns {base}s as the bits of floats",
            "integers of any shape.",
            "float32",
            "None.",
            {},
        )
        for base in ("int", "uint")
    },
}


def conversion(name: str) -> Callable[..., jax.Array]:
    """The function of a row of `CONVERSIONS`."""
    body, summary, parameter, result, gradients, raises = CONVERSIONS[name]
    text = Text(
        f"{summary}: `__{name}`.\n\n``cuda.__{name}`` is the same function. Within a class Python changes that name; "
        f"use this one there.",
        f"{result}, of the shape of the arguments.",
        gradients,
        raises,
    )
    declared = DECLARATIONS[name].parameters
    types = {p.type: ArrayLike for p in declared}
    return made(name, lambda given: body(**given), text, types, {p.name: parameter for p in declared})


VECTORS = {f"make_{base}{n}": vector_maker(base, n) for base in VECTOR_TYPES for n in (1, 2, 3, 4)}
BITS = {name: conversion(name) for name in INTRINSICS}
