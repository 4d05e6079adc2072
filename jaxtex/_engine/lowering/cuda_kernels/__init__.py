"""The read as a kernel in CUDA C: the walks of the engine, traced for one thread, in a template.

`choice` does not take these kernels yet; `gpu_kernels` holds those that run.
"""

from .read_kernel import read, read_each_sample

__all__ = ["read", "read_each_sample"]
