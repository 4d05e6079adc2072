"""Spatial transformers as layers: `jaxtex.layers.nnx` for Flax NNX, `jaxtex.layers.equinox` for Equinox.

Each is imported by its full name, and needs its library; nothing else in the package does. What they share, from a
few numbers to the matrix that `jaxtex.warp.spatial_transform` takes, is here.
"""

from .thetas import theta_of

__all__ = ["theta_of"]
