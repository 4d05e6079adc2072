"""The adjoint as GPU kernels, where a kernel is faster than XLA's form of array operations.

A kernel divides the samples among threads, and then runs the very walks of `jaxtex._engine.operators` on a thread's
sample in place of an array. Only the ends of a walk are its own: a load, an atomic addition. `launch` is the contract
with the backend; `jaxtex._engine.lowering.choice` says which programs get a kernel.
"""

from .adjoint_kernel import pullback, splat
from .launch import COMPILED, Launcher

__all__ = ["COMPILED", "Launcher", "pullback", "splat"]
