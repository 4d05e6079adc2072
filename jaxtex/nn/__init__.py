"""Reads inside models: attention, convolutions, pools, lookups and grids of features that read where a model says.

Plain functions of arrays with channels last, ``(..., H, W, C)``, as JAX's layers have them.
"""

# pyright: strict, reportUnknownMemberType=false

from .weighted import sample_weighted

__all__ = ["sample_weighted"]
