"""Storage dtypes: the number that a stored texel stands for, and the curve of sRGB."""

import functools
from enum import StrEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike


class Decoding(StrEnum):
    """How a stored texel becomes a number."""

    ELEMENT = "element"
    FRACTION = "fraction"
    SRGB = "srgb"


class StorageFormat(NamedTuple):
    """One storage dtype.

    Attributes:
        floating: whether texels are real or complex numbers, which filters blend and gradients flow to.
        fraction_bits: the n in ``k / (2^n - 1)``, the value of a code k under ``read_mode="normalized_float"``; `None`
            if texels are not codes.
        srgb: whether codes may be sRGB codes.
        blended_as: the name of the dtype that a read returns if a filter blends texels that are not floating; `None` if
            filters do not blend them.
        on_hardware: whether texture units have the dtype.
        parts: of complex texels, the name of the dtype of their real and imaginary parts; otherwise `None`.
    """

    name: str
    floating: bool
    fraction_bits: int | None = None
    srgb: bool = False
    blended_as: str | None = None
    on_hardware: bool = False
    parts: str | None = None

    @property
    def blends(self) -> bool:
        """Whether filters blend texels as they are stored."""
        return self.floating or self.blended_as is not None


STORAGE_FORMATS = {
    row.name: row
    for row in (
        StorageFormat("float16", floating=True, on_hardware=True),
        StorageFormat("bfloat16", floating=True),
        StorageFormat("float32", floating=True, on_hardware=True),
        StorageFormat("float64", floating=True),
        StorageFormat("complex64", floating=True, parts="float32"),
        StorageFormat("complex128", floating=True, parts="float64"),
        StorageFormat("int8", floating=False, fraction_bits=7, on_hardware=True),
        StorageFormat("uint8", floating=False, fraction_bits=8, srgb=True, on_hardware=True),
        StorageFormat("int16", floating=False, fraction_bits=15, on_hardware=True),
        StorageFormat("uint16", floating=False, fraction_bits=16, on_hardware=True),
        StorageFormat("int32", floating=False, on_hardware=True),
        StorageFormat("uint32", floating=False, on_hardware=True),
        StorageFormat("bool", floating=False, blended_as="float32"),
    )
}


def storage_format(dtype: DTypeLike) -> StorageFormat:
    """The row of a dtype; a ValueError if the table has none."""
    row = known_format(np.dtype(dtype))
    if row is None:
        raise ValueError(f"texels have dtype {np.dtype(dtype)}; expected one of {', '.join(STORAGE_FORMATS)}.")
    return row


def known_format(dtype: np.dtype[Any]) -> StorageFormat | None:
    """The row of a dtype, or `None`."""
    # NumPy computes the name of a dtype at every access, which takes a microsecond.
    return STORAGE_FORMATS.get(name_of(dtype))


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name


def is_blended(dtype: DTypeLike) -> bool:
    """Whether filters blend texels of a dtype as they are stored."""
    return storage_format(dtype).blends


def rounded_dtype(dtype: DTypeLike, sums: DTypeLike) -> np.dtype[Any]:
    """The dtype of a read with sums of dtype `sums`, for a caller who asks for `dtype`.

    It is `dtype` if that is floating and numbers of it are summed in `sums`; otherwise `sums`, and the caller converts.
    """
    at_once = jnp.issubdtype(dtype, jnp.floating) and sum_dtype(dtype) == sums
    return np.dtype(dtype if at_once else sums)


def is_narrow(dtype: DTypeLike) -> bool:
    """Whether numbers of a dtype are floats of 16 bits."""
    return jnp.issubdtype(dtype, jnp.floating) and np.dtype(dtype).itemsize == 2


def sum_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """The dtype of sums of numbers of these dtypes, or their parts: float64 if one is that, else float32."""
    return np.dtype(jnp.float64 if np.dtype(jnp.float64) in [*map(real_dtype, dtypes)] else jnp.float32)


def is_complex(dtype: DTypeLike) -> bool:
    """Whether a dtype is one of complex numbers."""
    return np.dtype(dtype).kind == "c"


def real_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype of the parts of complex numbers, or the dtype itself."""
    dtype = np.dtype(dtype)
    return np.dtype(storage_format(dtype).parts) if is_complex(dtype) else dtype


def complex_dtype(real: DTypeLike) -> np.dtype[Any]:
    """The dtype of complex numbers with parts of a dtype."""
    return np.dtype(np.complex128 if np.dtype(real) == np.float64 else np.complex64)


# sRGB, by IEC 61966-2-1: codes and linear light from 0 to 1. The curve is a line up to these.
LAST_LINEAR_CODE, LAST_LINEAR_LIGHT = 0.04045, 0.0031308
SLOPE, OFFSET, EXPONENT = 12.92, 0.055, 2.4


def light_of(codes: Any) -> Any:
    """The linear light of codes. A NumPy array stays one."""
    xp: Any = np if isinstance(codes, np.ndarray) else jnp
    curve = ((xp.maximum(codes, LAST_LINEAR_CODE) + OFFSET) / (1 + OFFSET)) ** EXPONENT
    return xp.where(codes <= LAST_LINEAR_CODE, codes / SLOPE, curve)


def codes_of(light: jax.Array) -> jax.Array:
    """The codes of linear light."""
    curve = (1 + OFFSET) * jnp.maximum(light, LAST_LINEAR_LIGHT) ** (1 / EXPONENT) - OFFSET
    return jnp.where(light <= LAST_LINEAR_LIGHT, light * SLOPE, curve)


# Words of four bytes that hold uint8 texels, the first channel lowest

WORD = np.dtype(np.uint32)


def bytes_in(words: jax.Array, channels: int) -> jax.Array:
    """The byte of each channel, uint8, (..., channels), from words, (..., 1) or (..., channels)."""
    axis = words.ndim - 1
    shift = jax.lax.broadcasted_iota(WORD, [1] * axis + [channels], axis) * 8
    return (words >> shift).astype(np.uint8)
