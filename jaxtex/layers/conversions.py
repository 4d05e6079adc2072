"""What the layers make of their arguments before they use them."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def constant_color(color: Any) -> float | tuple[float, ...] | None:
    """A border color as Python numbers, which are hashable and are not among the parameters of a layer."""
    if color is None:
        return None
    values = np.asarray(color, np.float64)
    if values.ndim > 1:
        raise ValueError(
            f"SpatialTransformer: border_color has shape {values.shape}, expected a number, or one number for each "
            f"channel."
        )
    return float(values) if values.ndim == 0 else tuple(values.tolist())


def widened(values: jax.Array, parameters: Iterable[jax.Array]) -> jax.Array:
    """Floating values in the dtype of the parameters that they meet, if all of those are wider.

    Not every layer of every library mixes dtypes, and under strict promotion none does.
    """
    dtypes = [a.dtype for a in parameters if jnp.issubdtype(a.dtype, jnp.floating)]
    narrowest = min(dtypes, key=lambda dtype: dtype.itemsize, default=values.dtype)
    return values.astype(narrowest) if values.dtype.itemsize < narrowest.itemsize else values
