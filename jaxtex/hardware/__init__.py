"""The arithmetic of an NVIDIA texture unit, bit for bit, in int32 and float32."""

from .directions import divide, lifted, side_on_face
from .lod import fixed, fixed_lod, footprint_lod
from .read import gather, read

__all__ = ["divide", "fixed", "fixed_lod", "footprint_lod", "gather", "lifted", "read", "side_on_face"]
