"""Spatial transformers as layers: `jaxtex.layers.nnx` for Flax NNX, `jaxtex.layers.equinox` for Equinox.

Each module is imported by its full name and needs its library, which nothing else in the package does. `theta_of`, from
a few numbers to the matrix that `jaxtex.warp.spatial_transform` takes, is for layers of other libraries.
"""

# pyright: strict, reportUnknownMemberType=false

from .thetas import theta_of

__all__ = ["theta_of"]
