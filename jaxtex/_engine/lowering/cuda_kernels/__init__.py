"""The read as a kernel in CUDA C: the walks of the engine, traced for one thread, in a template.

`jaxtex._engine.lowering.choice` says which programs get a kernel.
"""

from .read_kernel import bordered_read, read, read_each_sample

__all__ = ["bordered_read", "read", "read_each_sample"]
