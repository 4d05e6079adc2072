"""The values of a write: of a dtype that the texture holds, one for each texel that is named."""

# pyright: strict, reportUnknownMemberType=false

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..texture import Texture
from .arguments import ReadArguments, check_fits, common_shape, converted
from .integers import as_rounded, known_integers, saturated

SAMPLE_LIMIT = 2**31


def check_values(name: str, texture: Texture, values: Any, arguments: ReadArguments) -> Any:
    """Values of a dtype that the texture holds or `spread` converts, and of a shape that broadcasts to S + (C,)."""
    values, shape = as_values(name, values, texture.dtype), (*common_shape(arguments), texture.num_channels)
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
    """Values as an array; integers that are known in the dtype of the texels, which must hold them."""
    known = known_integers(values)
    if known is not None and jnp.issubdtype(stored, jnp.floating):
        return as_rounded(known, stored)
    if known is not None and jnp.issubdtype(stored, jnp.integer) and is_default_integer(known, stored):
        return check_fits(name, "values", known, stored)
    array = jnp.asarray(converted(name, "values", values))
    integer = jnp.issubdtype(array.dtype, jnp.integer)
    fits = integer or jnp.issubdtype(array.dtype, jnp.floating)
    if jnp.issubdtype(stored, jnp.integer):
        fits = integer and (is_default_integer(array, stored) or jax.typeof(array).weak_type)
    elif not jnp.issubdtype(stored, jnp.floating):
        fits = array.dtype == stored
    if not fits:
        raise TypeError(
            f"{name}: values has dtype {array.dtype}, which {stored} texels do not hold; convert it with "
            f"values.astype(texture.dtype)."
        )
    return array


def is_default_integer(array: Any, stored: np.dtype[Any]) -> bool:
    """Whether integers are of the dtype of the texels, of 64 bits, as NumPy makes them by default, or Python's."""
    return array.dtype == stored or array.dtype == object or array.dtype.itemsize == 8


def spread(texture: Texture, values: jax.Array, arguments: ReadArguments) -> jax.Array:
    """One value for each texel that is named, in the dtype of the texels. Integers that do not fit saturate."""
    integers = jnp.issubdtype(texture.dtype, jnp.integer)
    values = saturated(values, texture.dtype) if integers else values.astype(texture.dtype)
    return jnp.broadcast_to(values, (*common_shape(arguments), texture.num_channels))
