"""The texture unit of a GPU for JAX: filtered reads, address modes and their adjoints as pure functions.

`jaxtex.warp` (image warps), `jaxtex.nn` (reads inside models), `jaxtex.ndimage` (SciPy's names), `jaxtex.layers`
(spatial transformers) and `jaxtex.cuda` (CUDA's names) are loaded when they are first used.
"""

# pyright: strict, reportUnknownMemberType=false

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from .exports import kernels_in_exports
from .mipmaps import build_mipmaps, footprint
from .modes import AddressMode, Arithmetic, BoundaryMode, FilterMode, Limit, ReadMode, TextureKind
from .sampler import Sampler
from .sampling import fetch, gather, sample, splat
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

if TYPE_CHECKING:
    from . import cuda as cuda
    from . import layers as layers
    from . import ndimage as ndimage
    from . import nn as nn
    from . import warp as warp

__version__ = "0.1.0"

__all__ = [
    "AddressMode",
    "Arithmetic",
    "BoundaryMode",
    "FilterMode",
    "Limit",
    "ReadMode",
    "Sampler",
    "Texture",
    "TextureKind",
    "build_mipmaps",
    "cubemap",
    "cubemap_layered",
    "fetch",
    "footprint",
    "gather",
    "kernels_in_exports",
    "sample",
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

_LOADED_ON_USE = ("cuda", "layers", "ndimage", "nn", "warp")


def __getattr__(name: str) -> ModuleType:
    if name in _LOADED_ON_USE:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'jaxtex' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LOADED_ON_USE})
