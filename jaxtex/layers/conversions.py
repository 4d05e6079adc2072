"""Conversions of layer arguments."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Iterable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .._checks.integers import in_native_order
from .._checks.remedies import leaves_of


def constant_color(color: ArrayLike | None) -> float | tuple[float, ...] | None:
    """A border color as Python numbers, which are hashable and are not parameters of a layer."""
    if color is None:
        return None
    if any(isinstance(leaf, Tracer) for leaf in leaves_of(color)):
        raise TypeError(
            "SpatialTransformer: border_color is traced, expected numbers, which are constants of the layer."
        )
    values = np.asarray(color, np.float64)
    if values.ndim > 1:
        raise ValueError(
            f"SpatialTransformer: border_color has shape {values.shape}, expected a number, or (C,), one number for "
            f"each channel."
        )
    return float(values) if values.ndim == 0 else tuple(float(value) for value in values)


def widened(values: jax.Array, parameters: Iterable[jax.Array]) -> jax.Array:
    """Floating values in the dtype of the parameters that they are combined with, if all of these are wider.

    Some layers of the libraries do not combine different dtypes, and under strict promotion no layer does.
    """
    values = cast(jax.Array, in_native_order(values))
    dtypes: list[np.dtype[Any]] = [a.dtype for a in parameters if jnp.issubdtype(a.dtype, jnp.floating)]
    narrowest = min(dtypes, key=lambda dtype: dtype.itemsize, default=values.dtype)
    return values.astype(narrowest) if values.dtype.itemsize < narrowest.itemsize else values
