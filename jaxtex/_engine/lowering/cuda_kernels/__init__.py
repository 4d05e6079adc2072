"""Reads and their adjoint as kernels in CUDA C: the walks of the engine, traced for one thread, in templates.

`sample_tiles` divides samples among warps and their lanes. `read_kernel` is the read. `adjoint_kernel` is the adjoint,
whose sources `window_source` and `gather_source` make. `convolution_kernel` is a convolution along one axis.
`jaxtex._engine.lowering.choice` says which programs get a kernel.
"""

from .adjoint_kernel import part_pullback, part_splat, pullback, splat
from .convolution_kernel import convolve
from .edged_kernels import edged_pullback, edged_read, edged_splat
from .read_kernel import bordered_read, joined_read, read, read_each_sample

__all__ = [
    "bordered_read",
    "convolve",
    "edged_pullback",
    "edged_read",
    "edged_splat",
    "joined_read",
    "part_pullback",
    "part_splat",
    "pullback",
    "read",
    "read_each_sample",
    "splat",
]
