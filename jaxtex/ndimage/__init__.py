"""SciPy's ndimage in JAX: interpolation of arrays by splines, with SciPy's names, arguments and defaults.

Indices are those of elements: element i is at i, slowest axis first. Arrays have no axis of channels.
"""

from .._checks.words import listing
from .filters import spline_filter, spline_filter1d
from .resampling import rotate, shift, zoom
from .transforms import affine_transform, geometric_transform, map_coordinates

__all__ = [
    "affine_transform",
    "geometric_transform",
    "map_coordinates",
    "rotate",
    "shift",
    "spline_filter",
    "spline_filter1d",
    "zoom",
]
__dir__ = listing(__all__)
