"""The kernels of a mip chain: its levels, and their adjoint."""
