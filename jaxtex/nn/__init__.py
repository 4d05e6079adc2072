"""Reads inside models: attention, convolutions, pooling, lookups and feature grids, at points that a model computes.

They are plain functions of arrays with channels last, ``(..., H, W, C)``, as in JAX's layers. Reads are linear by
default: their second derivative along one coordinate is zero.
"""

from .._checks.words import listing
from .attention import deformable_attention
from .convolution import deformable_conv
from .correlation import correlation_lookup, correlation_pyramid
from .multiresolution import MultiresolutionGrid, multiresolution_grid, multiresolution_grid_init
from .planes import k_planes, triplane
from .pools import roi_align
from .weighted import sample_weighted

__all__ = [
    "MultiresolutionGrid",
    "correlation_lookup",
    "correlation_pyramid",
    "deformable_attention",
    "deformable_conv",
    "k_planes",
    "multiresolution_grid",
    "multiresolution_grid_init",
    "roi_align",
    "sample_weighted",
    "triplane",
]
__dir__ = listing(__all__)
