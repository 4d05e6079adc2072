"""The kernels of a mip chain and of its adjoint."""
