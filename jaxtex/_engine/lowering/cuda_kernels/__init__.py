"""Reads and their adjoint as kernels in CUDA C: the walks of the engine, traced for one thread, in templates.

`sample_tiles` divides samples among warps and their lanes. `read_kernel` is the read. `adjoint_kernel` is the adjoint,
whose sources `window_source` and `gather_source` make. `jaxtex._engine.lowering.choice` says which programs get a
kernel.
"""

from .adjoint_kernel import pullback, splat
from .read_kernel import bordered_read, read, read_each_sample

__all__ = ["bordered_read", "pullback", "read", "read_each_sample", "splat"]
