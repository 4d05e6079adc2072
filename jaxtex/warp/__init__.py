"""Image warps and spatial transformers, in pixels or in the conventions of other libraries.

Points are in pixels: the origin is the top left corner, x points right and y down, and the centre of the first pixel
is at (0.5, 0.5). Images are ``(..., H, W, C)``, volumes ``(..., D, H, W, C)``; leading axes are batches.
"""

from .fields import remap, warp_flow
from .forward import forward_warp
from .geometric import resize, rotate, spatial_transform, warp, warp_affine, warp_perspective
from .lens import distort, distort_points, undistort, undistort_points
from .panorama import cubemap_to_equirectangular, equirectangular_to_cubemap
from .thin_plate_spline import thin_plate_spline

__all__ = [
    "cubemap_to_equirectangular",
    "distort",
    "distort_points",
    "equirectangular_to_cubemap",
    "forward_warp",
    "remap",
    "resize",
    "rotate",
    "spatial_transform",
    "thin_plate_spline",
    "undistort",
    "undistort_points",
    "warp",
    "warp_affine",
    "warp_flow",
    "warp_perspective",
]
