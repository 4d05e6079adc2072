"""The kernels of a convolution along one axis."""
