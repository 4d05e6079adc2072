"""Kernels of programs of one sample."""
