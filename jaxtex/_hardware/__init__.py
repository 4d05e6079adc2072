"""The arithmetic of an NVIDIA texture unit, bit for bit, in int32 and float32."""

from .anisotropy import ellipse, even, read_along
from .directions import divide, lifted, side_on_face
from .lod import fixed, fixed_exp2, fixed_lod, footprint_lod
from .read import gather, read

__all__ = [
    "divide",
    "ellipse",
    "even",
    "fixed",
    "fixed_exp2",
    "fixed_lod",
    "footprint_lod",
    "gather",
    "lifted",
    "read",
    "read_along",
    "side_on_face",
]
