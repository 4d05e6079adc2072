"""The read and its relatives as GPU kernels, where a kernel of our own is faster than what XLA makes of arrays.

A kernel deals the samples to threads, and then says the same as `jaxtex.resample`: `blend` and `spread` walk the taps
of a thread's sample as they walk those of an array. Only the ends of the walk are its own: a load, an atomic addition.
Programs that are partitioned over devices, other platforms, and reads beyond the limits of `policy` keep XLA's form.
"""

from .adjoint import pullback, splat
from .policy import lowering, suits_exact, suits_pullback, suits_read, suits_splat
from .read import Look, each_sample, read

__all__ = [
    "Look",
    "each_sample",
    "lowering",
    "pullback",
    "read",
    "splat",
    "suits_exact",
    "suits_pullback",
    "suits_read",
    "suits_splat",
]
