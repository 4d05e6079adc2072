"""The conventions of other libraries: their grids, indices, matrices and millimeters, in jaxtex's pixels."""
