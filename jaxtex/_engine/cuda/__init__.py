"""Kernels for NVIDIA GPUs: the engine's code, traced for one thread and written as CUDA C."""
