"""Programs of one sample: functions of scalars and whole arrays, which a kernel computes for every sample of a grid.

`program.py` is a traced function as a static value; `rules.py` has the two primitives that map programs over grids,
and their derivatives; `sites.py` replaces whole arrays by loads and additions, for kernels.
"""
