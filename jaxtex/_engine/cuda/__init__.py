"""Kernels for NVIDIA GPUs: walks of the engine, traced for one thread, as CUDA C."""
