"""Integrals of images and volumes along rays, and the rays of scanners and cameras: projections with exact gradients.

A ray is a segment from a start to an end, in texels: texel i spans [i, i + 1), and points are x, y (and z).
"""

# pyright: strict, reportUnknownMemberType=false

from .._checks.words import listing
from .geometries import Rays, camera_rays, cone_beam, parallel_beam
from .integrals import line_integral

__all__ = ["Rays", "camera_rays", "cone_beam", "line_integral", "parallel_beam"]
__dir__ = listing(__all__)
