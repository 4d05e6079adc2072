"""Image warps and spatial transformers, in pixels or in the conventions of other libraries.

Points are in pixels: the origin is the top left corner, x points right and y down, and the center of the first pixel
is at (0.5, 0.5). Images are ``(..., H, W, C)``, volumes ``(..., D, H, W, C)``; leading axes are batches.
"""

from .._checks.words import listing
from .boxes import warp_boxes
from .composed import warp_chain
from .conventions.conversions import (
    camera_from_opencv,
    matrix_from_opencv,
    matrix_from_scipy,
    matrix_from_skimage,
    matrix_from_torch,
)
from .conventions.physical_space import flow_from_itk, matrix_from_itk, matrix_from_nibabel
from .conventions.torch_grids import affine_grid, grid_sample
from .fields import remap, warp_flow
from .flows import compose_flows, integrate_velocity, invert_flow, jacobian_determinant
from .forward import forward_warp
from .keypoints import warp_points
from .labels import warp_labels
from .lens import distort, distort_points, undistort, undistort_points
from .maps import resample, rotate, spatial_transform, warp_affine, warp_perspective
from .panorama import cubemap_to_equirectangular, equirectangular_to_cubemap
from .points import thin_plate_spline
from .resizing import resize
from .sized.warpers import SizedResize, SizedWarp
from .streaming import resample_tiles

__all__ = [
    "SizedResize",
    "SizedWarp",
    "affine_grid",
    "camera_from_opencv",
    "compose_flows",
    "cubemap_to_equirectangular",
    "distort",
    "distort_points",
    "equirectangular_to_cubemap",
    "flow_from_itk",
    "forward_warp",
    "grid_sample",
    "integrate_velocity",
    "invert_flow",
    "jacobian_determinant",
    "matrix_from_itk",
    "matrix_from_nibabel",
    "matrix_from_opencv",
    "matrix_from_scipy",
    "matrix_from_skimage",
    "matrix_from_torch",
    "remap",
    "resample",
    "resample_tiles",
    "resize",
    "rotate",
    "spatial_transform",
    "thin_plate_spline",
    "undistort",
    "undistort_points",
    "warp_affine",
    "warp_boxes",
    "warp_chain",
    "warp_flow",
    "warp_labels",
    "warp_perspective",
    "warp_points",
]
__dir__ = listing(__all__)
