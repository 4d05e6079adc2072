"""Projections of images and volumes along rays, the rays of scanners and cameras, and reconstructions.

A ray is a segment from a start to an end, in texels: texel i spans [i, i + 1), and points are x, y (and z).
Angles are in radians.
"""

from .._checks.words import listing
from .geometries import Rays, camera_rays, cone_beam, parallel_beam
from .projections import composite, first_crossing, line_integral, maximum_intensity
from .reconstructions import filtered_backprojection

__all__ = [
    "Rays",
    "camera_rays",
    "composite",
    "cone_beam",
    "filtered_backprojection",
    "first_crossing",
    "line_integral",
    "maximum_intensity",
    "parallel_beam",
]
__dir__ = listing(__all__)
