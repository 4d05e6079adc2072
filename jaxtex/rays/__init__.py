"""Projections of images and volumes along rays, and the rays of scanners and cameras.

A ray is a segment from a start to an end, in texels: texel i spans [i, i + 1), and points are x, y (and z).
Angles are in radians.
"""

from .._checks.words import listing
from .geometries import Rays, camera_rays, cone_beam, parallel_beam
from .projections import composite, first_crossing, line_integral, maximum_intensity

__all__ = [
    "Rays",
    "camera_rays",
    "composite",
    "cone_beam",
    "first_crossing",
    "line_integral",
    "maximum_intensity",
    "parallel_beam",
]
__dir__ = listing(__all__)
