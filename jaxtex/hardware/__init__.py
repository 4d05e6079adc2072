"""The arithmetic of an NVIDIA texture unit, bit for bit, in int32 and float32."""

from .lod import fixed, fixed_lod, footprint_lod
from .read import gather, read

__all__ = ["fixed", "fixed_lod", "footprint_lod", "gather", "read"]
