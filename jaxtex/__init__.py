"""The texture unit of a GPU for JAX: filtered reads, address modes and their adjoints as pure functions.

`jaxtex.warp` (image warps), `jaxtex.rays` (line integrals), `jaxtex.nn` (reads inside models), `jaxtex.ndimage`
(SciPy's names), `jaxtex.layers` (spatial transformers), `jaxtex.sharded` (textures on several devices) and
`jaxtex.cuda` (CUDA's names) are loaded on first use. So are the names of this module, all at once: the command line
prints its help without JAX, whose import takes half a second.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import cuda as cuda
    from . import layers as layers
    from . import ndimage as ndimage
    from . import nn as nn
    from . import rays as rays
    from . import sharded as sharded
    from . import unit as unit
    from . import warp as warp
    from .compressed import block_compressed
    from .derivatives import sample_with_derivatives
    from .exports import kernels_in_exports
    from .fused import fused_map, fused_vmap
    from .mipmaps import build_mipmaps, footprint
    from .modes import AddressMode, Arithmetic, BlockFormat, BoundaryMode, FilterMode, Limit, ReadMode, TextureKind
    from .sampler import Sampler, deterministic
    from .sampling import fetch, gather, positions, sample, splat
    from .splines import spline_filter
    from .surface import surface_add, surface_max, surface_min, surface_read, surface_write
    from .texture import (
        Texture,
        cubemap,
        cubemap_layered,
        texture1d,
        texture1d_layered,
        texture2d,
        texture2d_layered,
        texture3d,
    )

__version__ = "0.2.0"

__all__ = [
    "AddressMode",
    "Arithmetic",
    "BlockFormat",
    "BoundaryMode",
    "FilterMode",
    "Limit",
    "ReadMode",
    "Sampler",
    "Texture",
    "TextureKind",
    "block_compressed",
    "build_mipmaps",
    "cubemap",
    "cubemap_layered",
    "deterministic",
    "fetch",
    "footprint",
    "fused_map",
    "fused_vmap",
    "gather",
    "kernels_in_exports",
    "positions",
    "sample",
    "sample_with_derivatives",
    "splat",
    "spline_filter",
    "surface_add",
    "surface_max",
    "surface_min",
    "surface_read",
    "surface_write",
    "texture1d",
    "texture1d_layered",
    "texture2d",
    "texture2d_layered",
    "texture3d",
]

_LOADED_ON_USE = ("cuda", "layers", "ndimage", "nn", "rays", "sharded", "unit", "warp")
# The modules that define the names of `__all__`, each after those that it imports.
_MODULES = (
    *("modes", "sampler", "texture", "compressed", "sampling", "derivatives"),
    *("splines", "mipmaps", "surface", "exports", "fused"),
)


def __getattr__(name: str) -> Any:
    if name in (*_LOADED_ON_USE, *_MODULES):
        return importlib.import_module(f".{name}", __name__)
    if name in __all__:
        # First of all, since JAX traces known functions again after a new context.
        importlib.import_module("._jax.contexts", __name__)
        for module in _MODULES:
            loaded = importlib.import_module(f".{module}", __name__)
            globals().update({public: getattr(loaded, public) for public in loaded.__all__})
            if name in globals():
                return globals()[name]
    raise AttributeError(f"module 'jaxtex' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__, *_LOADED_ON_USE])
