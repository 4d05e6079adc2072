"""CUDA's vector types: functions that make arrays with the components along the last axis."""

# pyright: strict, reportUnknownMemberType=false

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ..._checks.arguments import as_array
from ..._checks.integers import is_integral, known_integers, saturated
from ..._jax.versions import is_x64
from ..errors import NOT_SUPPORTED, CudaError
from ..signatures import with_signature
from .channel_formats import BASE_TYPES
from .numbers import misfit

# Types that have vectors, and no textures.
WIDE_DTYPES = {"long": "int64", "ulong": "uint64", "longlong": "int64", "ulonglong": "uint64", "double": "float64"}
DTYPES = {name: row.dtype for name, row in BASE_TYPES.items() if name != "half"} | WIDE_DTYPES

FLOATING_TEXT = ("They are rounded to the type.", "To the components.")
INTEGER_TEXT = (
    "Floats are truncated\n            toward zero, and saturate. Known integers that do not fit are an error, and "
    "others saturate.",
    "None.",
)
DOCSTRING = """Makes vectors of {length} along the last axis: `{name}`.

    Args:
        {names}: numbers of any shapes that broadcast to a shape S. {conversion}

    Returns:
        An array of {dtype}, of shape S + ({length},).

    Gradients:
        {gradients}

    Raises:
        CudaError: cudaErrorInvalidValue, if a known integer does not fit; cudaErrorNotSupported, for a type of 64 bits
            where 64-bit numbers are disabled.

    Source:
        CUDA C++ Programming Guide, "Built-in Vector Types".
    """


def maker_of(base: str, length: int) -> Callable[..., jax.Array]:
    """The function ``make_<base><length>``."""
    name, names, dtype = f"make_{base}{length}", "xyzw"[:length], np.dtype(DTYPES[base])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(component, kind, annotation=ArrayLike) for component in names]
    signature = inspect.Signature(parameters, return_annotation=jax.Array)

    def make(*args: ArrayLike, **kwargs: ArrayLike) -> jax.Array:
        given = signature.bind(*args, **kwargs).arguments
        components = [component_of(name, argument, value, dtype) for argument, value in given.items()]
        return jnp.stack(jnp.broadcast_arrays(*components), axis=-1)

    conversion, gradients = FLOATING_TEXT if dtype.kind == "f" else INTEGER_TEXT
    make.__name__ = make.__qualname__ = name
    make.__annotations__ = {**dict.fromkeys(names, ArrayLike), "return": jax.Array}
    make.__doc__ = DOCSTRING.format(
        name=name, length=length, names=", ".join(names), dtype=dtype, conversion=conversion, gradients=gradients
    )
    vars(make)["__signature__"] = signature
    declared = ", ".join(f"{base} {component}" for component in names)
    return with_signature(f"{base}{length} {name}({declared})")(make)


def component_of(function: str, argument: str, value: Any, dtype: np.dtype) -> jax.Array:
    """A component of a vector, converted to the type of the vector."""
    if dtype.itemsize == 8 and not is_x64():
        raise CudaError(
            NOT_SUPPORTED,
            f"{function}: 64-bit numbers are disabled, and the result has them; enable them with jax_enable_x64.",
        )
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


MAKERS = {f"make_{base}{length}": maker_of(base, length) for base in DTYPES for length in (1, 2, 3, 4)}
