"""What the layers make of their arguments before they use them."""

from typing import Any

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
