"""The scatter kernel of the adjoint: samples add to texels, in windows of shared memory."""
