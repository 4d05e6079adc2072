"""The arithmetic of an NVIDIA H200's texture unit in int32 and float32: bit for bit, except anisotropic reads."""

from .arithmetic import HARDWARE

__all__ = ["HARDWARE"]
