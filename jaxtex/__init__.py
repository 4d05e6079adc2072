"""The texture unit of a GPU for JAX: filtered reads, address modes and their adjoints as pure functions."""

from . import warp as warp
from .mipmaps import build_mipmaps, footprint
from .modes import AddressMode, BoundaryMode, FilterMode, ReadMode, TextureKind
from .sampler import Sampler
from .sampling import fetch, gather, sample, splat
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

__version__ = "0.1.0"

__all__ = [
    "AddressMode",
    "BoundaryMode",
    "FilterMode",
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
    "sample",
    "splat",
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
