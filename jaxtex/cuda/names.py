"""CUDA's names with the prefix ``cuda``: the counterpart of each, or what to write instead."""

import functools
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from typing import Any

from .._checks.words import nearest, no_attribute
from . import enums
from .absent import instead
from .declarations import RUNTIME, SURFACE_REFERENCES, TEXTURE_REFERENCES

# CUDA's types, and enumerations with other names, with their names here.
TYPES = {
    "cudaArray_t": "Array",
    "cudaArray_const_t": "Array",
    "cudaError_t": "Error",
    "cudaMipmappedArray_t": "MipmappedArray",
    "cudaMipmappedArray_const_t": "MipmappedArray",
    "cudaSurfaceObject_t": "SurfaceObject",
    "cudaTextureObject_t": "TextureObject",
    "cudaTextureAddressMode": "AddressMode",
    "cudaTextureFilterMode": "FilterMode",
    "cudaTextureReadMode": "ReadMode",
}
STRUCTS = (
    *("ChannelFormatDesc", "DeviceProp", "Extent", "Memcpy3DParms", "PitchedPtr", "Pos", "ResourceDesc"),
    *("ResourceViewDesc", "TextureDesc"),
)
# The prefixes of the members of CUDA's enumerations.
ENUMERATIONS: dict[str, type[IntEnum | IntFlag]] = {
    "cudaAddressMode": enums.AddressMode,
    "cudaArray": enums.ArrayFlags,
    "cudaBoundaryMode": enums.SurfaceBoundaryMode,
    "cudaChannelFormatKind": enums.ChannelFormatKind,
    "cudaError": enums.Error,
    "cuda": enums.Error,  # cudaSuccess
    "cudaFilterMode": enums.FilterMode,
    "cudaFormatMode": enums.SurfaceFormatMode,
    "cudaGraphicsCubeFace": enums.GraphicsCubeFace,
    "cudaMemcpy": enums.MemcpyKind,
    "cudaReadMode": enums.ReadMode,
    "cudaResourceType": enums.ResourceType,
    "cudaResViewFormat": enums.ResourceViewFormat,
    "cudaSurface": enums.SurfaceType,
    "cudaTexture": enums.TextureType,
}


def with_prefix() -> dict[str, str]:
    """All names of CUDA with its prefix, each with the name here, such as ``AddressMode.Wrap``."""
    functions = (*RUNTIME, *TEXTURE_REFERENCES, *SURFACE_REFERENCES)
    classes = {*STRUCTS, *(enumeration.__name__ for enumeration in ENUMERATIONS.values())}
    members = {
        f"{prefix}{member.rstrip('_')}": f"{enumeration.__name__}.{member}"
        for prefix, enumeration in ENUMERATIONS.items()
        for member in enumeration.__members__
        if (prefix == "cuda") == (member == "Success")
    }
    return {
        **{f"cuda{name[0].upper()}{name[1:]}": name for name in functions},
        **{f"cuda{name}": name for name in sorted(classes)},
        **TYPES,
        **members,
    }


WITH_PREFIX = with_prefix()
# Suffixes of names in CUDA's headers, which name versions of a function, and its streams.
SUFFIXES = ("_v2", "_v3", "_ptsz", "_ptds")
# How alike a name is to one with a counterpart if it is a misspelling of that, and not another name of CUDA.
ALMOST_EQUAL = 0.92


def answer(module: Mapping[str, Any], name: str) -> Any:
    """The counterpart of a CUDA name in the namespace of `jaxtex.cuda`."""
    here = WITH_PREFIX.get(name)
    if here is None:
        raise no_attribute(f"module 'jaxtex.cuda' has no attribute {name!r}{remedy(name, module['__all__'])}", name)
    first, *rest = here.split(".")
    return functools.reduce(getattr, rest, module[first])


def remedy(name: str, names: Sequence[str]) -> str:
    """The end of the error for a name that is not here: what to write instead, if that is known."""
    bare = name
    for suffix in SUFFIXES:
        bare = bare.removesuffix(suffix)
    if bare != name and (bare in WITH_PREFIX or bare in names):
        return f"; use {WITH_PREFIX.get(bare, bare)}"
    misspelled = name.startswith("cuda") and nearest(name, WITH_PREFIX, ALMOST_EQUAL)
    sentence = None if misspelled else instead(bare)
    if sentence is not None:
        return f"; {sentence}"
    meant = nearest(name, (*names, *WITH_PREFIX))
    return f"; did you mean {meant}?" if meant else ""
