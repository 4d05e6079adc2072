"""tiny-cuda-nn's grid of features, without networks: the kernels alone.

Tables and their gradients are of the dtype that it is given. With float16 it also sums in float16, both the features of
a point and the gradients at a row, where jaxtex sums in float32.
"""

import functools
from typing import Any

from .protocol import optional


def hash_grid(torch: Any, table: Any, at: Any, *, levels: int, **sizes: Any) -> Any:
    del torch
    grid = module(levels=levels, dtype=table.dtype, **{k: v for k, v in sizes.items() if k in CONFIGURATION})
    return function().apply(grid, at, table.flatten())


# The names of our sizes, in its configuration or as numbers that it follows from.
CONFIGURATION = ("coarsest", "finest", "log2_rows", "features")


@functools.cache
def module(levels: int, coarsest: int, finest: int, log2_rows: int, features: int, dtype: Any) -> Any:
    configuration = {
        "otype": "HashGrid",
        "n_levels": levels,
        "n_features_per_level": features,
        "log2_hashmap_size": log2_rows,
        "base_resolution": coarsest,
        "per_level_scale": (finest / coarsest) ** (1 / (levels - 1)),
    }
    return optional("tinycudann").Encoding(3, configuration, dtype=dtype).native_tcnn_module


@functools.cache
def function() -> Any:
    """Its own passes, without the scaling of gradients that its modules for PyTorch put around them."""
    torch = optional("torch")

    class Grid(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, grid: Any, at: Any, table: Any) -> Any:
            ctx.grid = grid
            ctx.state, out = grid.fwd(at, table)
            ctx.save_for_backward(at, table, out)
            return out

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            at, table, out = ctx.saved_tensors
            of_points, of_table = ctx.grid.bwd(ctx.state, at, table, out, cotangent)
            return None, of_points, of_table

    return Grid
