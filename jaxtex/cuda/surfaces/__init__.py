"""CUDA's surfaces: arrays that are read and written by integer coordinates.

`surface_objects` makes a `SurfaceObject` of an array, `surface_references` binds references, and `surface_checks` says
what a surface is. `surf_functions` holds the functions of device code, with `surf_docstrings`. `surface_access` turns
their bytes into units that the core reads and writes; `formatted_stores` converts numbers to a channel format, as
`sust.p` does.
"""

# pyright: strict
