"""CUDA's surfaces: arrays that are read and written by integer coordinates.

`surface_objects` makes surfaces of arrays. `surface_functions` makes the functions of device code, and `surface_access`
turns their bytes into units that the core reads and writes.
"""
