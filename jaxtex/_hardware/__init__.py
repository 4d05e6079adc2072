"""The arithmetic of an NVIDIA texture unit, bit for bit, in int32 and float32."""

from .arithmetic import HARDWARE

__all__ = ["HARDWARE"]
