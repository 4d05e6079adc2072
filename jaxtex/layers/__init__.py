"""Spatial transformers as layers: `jaxtex.layers.nnx` for Flax NNX, `jaxtex.layers.equinox` for Equinox.

Import each module by its full name; it needs its library, which is not installed with jaxtex. For layers of other
libraries, `theta_of` converts a few numbers to the matrix that `jaxtex.warp.spatial_transform` takes.
"""

from .._checks.words import listing
from .transforms import theta_of

__all__ = ["theta_of"]
__dir__ = listing(__all__)
