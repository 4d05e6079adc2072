"""The kernel in which samples add to texels, in windows of shared memory."""
