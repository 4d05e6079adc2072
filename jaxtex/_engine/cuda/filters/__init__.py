"""The kernels of filters of whole arrays: a convolution along an axis, and mip levels."""
