"""Image warps and spatial transformers, in pixels or in the conventions of other libraries.

Points are in pixels: the origin is the top left corner, x points right and y down, and the centre of the first pixel
is at (0.5, 0.5). Images are ``(..., H, W, C)``, volumes ``(..., D, H, W, C)``; leading axes are batches.
"""

from .conversions import matrix_from_opencv, matrix_from_scipy, matrix_from_skimage, matrix_from_torch
from .fields import remap, warp_flow
from .geometric import resize, rotate, spatial_transform, warp, warp_affine, warp_perspective

__all__ = [
    "matrix_from_opencv",
    "matrix_from_scipy",
    "matrix_from_skimage",
    "matrix_from_torch",
    "remap",
    "resize",
    "rotate",
    "spatial_transform",
    "warp",
    "warp_affine",
    "warp_flow",
    "warp_perspective",
]
