"""Checks of surface functions: the values of a write, and errors under checkify."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental import checkify

from .._engine.compute.texel_write import numbers
from .._jax.indexing import explicit_sharding
from .._tables.storage_formats import is_complex, real_dtype
from ..texture import Texture
from .arguments import ReadArguments, converted
from .integers import as_rounded, known_integers, narrowed, on_device, saturated

SAMPLE_LIMIT = 2**31
OUTSIDE = "is outside the surface"


def check_values(name: str, texture: Texture, values: Any, arguments: ReadArguments) -> Any:
    """Checks the dtype of values, and that their shape broadcasts to S + (C,)."""
    values, shape = as_values(name, values, texture.dtype), (*arguments.shape, texture.num_channels)
    try:
        fits = jnp.broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: values has shape {values.shape}, expected {shape} or one that broadcasts to it: the shape of the "
            f"coordinates, and {texture.num_channels} channels."
        )
    if math.prod(shape[:-1]) >= SAMPLE_LIMIT:
        raise ValueError(f"{name}: coords has shape {shape[:-1]}, 2^31 samples or more; write in parts.")
    return values


def as_values(name: str, values: Any, stored: np.dtype[Any]) -> Any:
    """Values as an array; known integers in the dtype of the texels, which must hold them."""
    known = known_integers(values)
    if known is not None and jnp.issubdtype(stored, jnp.inexact):
        return as_rounded(known, real_dtype(stored))
    if known is not None and jnp.issubdtype(stored, jnp.integer) and is_default_integer(known, stored):
        return narrowed(name, "values", known, stored)
    array = on_device(converted(name, "values", values))
    integer = jnp.issubdtype(array.dtype, jnp.integer)
    fits = integer or jnp.issubdtype(array.dtype, jnp.inexact if is_complex(stored) else jnp.floating)
    if jnp.issubdtype(stored, jnp.integer):
        fits = integer and (is_default_integer(array, stored) or jax.typeof(array).weak_type)
    elif not jnp.issubdtype(stored, jnp.inexact):
        fits = array.dtype == stored
    if not fits:
        raise TypeError(
            f"{name}: values has dtype {array.dtype}, which {stored} texels do not hold; convert it with "
            f"values.astype(texture.dtype)."
        )
    return array


def is_default_integer(array: Any, stored: np.dtype[Any]) -> bool:
    """Whether integers have the dtype of the texels, 64 bits (NumPy's default), or are Python's."""
    return array.dtype == stored or array.dtype == object or array.dtype.itemsize == 8


def spread(texture: Texture, values: jax.Array, arguments: ReadArguments) -> jax.Array:
    """One value for each addressed texel, in the dtype of the texels. Integers saturate."""
    integers = jnp.issubdtype(texture.dtype, jnp.integer)
    values = saturated(values, texture.dtype) if integers else values.astype(texture.dtype)
    return jnp.broadcast_to(values, (*arguments.shape, texture.num_channels))


# Traps


def report(name: str, fine: jax.Array, fault: str, named: dict[str, jax.Array]) -> None:
    """Reports an error under checkify that names the first place that is not `fine`.

    Under `jax.vmap` that is the first such place of the first example that has one.
    """
    if explicit_sharding(fine) is not None:  # where checks cannot be batched
        return
    fine, *indices = jnp.broadcast_arrays(fine, *named.values())
    is_fine, number, *first = first_fault(fine, numbers(fine.shape), *indices)
    at_first = dict(zip(named, first))
    listed = ", ".join(f"{key}={{{key}}}" for key in at_first)
    checkify.debug_check(is_fine, f"{name}: sample {{number}} {fault}: {listed}.", number=number, **at_first)


@custom_vmap
def first_fault(fine: jax.Array, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Whether all is `fine`, and the numbers of `arrays`, of the same shape, at the first place that is not."""
    place = numbers(fine.shape)
    first = jnp.min(jnp.where(fine, place.size, place), initial=place.size)
    return first == place.size, *(jnp.sum(jnp.where(place == first, a, 0), dtype=jnp.int32) for a in arrays)


@first_fault.def_vmap
def first_fault_of_batch(
    axis_size: int, in_batched: Sequence[bool], fine: jax.Array, *arrays: jax.Array
) -> tuple[Any, Any]:
    """The first fault of the first example, for the whole batch. JAX's own rule for checks names the last one."""
    whole = (
        a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in zip((fine, *arrays), in_batched)
    )
    fault = first_fault(*whole)
    return fault, tuple(False for _ in fault)
