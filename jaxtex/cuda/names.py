"""CUDA's names with the prefix ``cuda``: the counterpart of each, or the reason for having none."""

import functools
from collections.abc import Mapping
from enum import IntEnum, IntFlag
from typing import Any

from . import enums
from .declarations import DECLARATIONS

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
OF_XLA = "memory belongs to XLA, and every texel is resident"
OF_DEVICES = "the call names devices; in JAX a sharding places data"
SHARED = "another program changes the memory"
# Functions and types of CUDA without a pure counterpart.
IMPOSSIBLE = {
    "cudaArrayGetSparseProperties": OF_XLA,
    "cudaMipmappedArrayGetSparseProperties": OF_XLA,
    "cudaArraySparseProperties": OF_XLA,
    "cudaArraySparsePropertiesSingleMipTail": OF_XLA,
    "cudaArrayGetMemoryRequirements": OF_XLA,
    "cudaMipmappedArrayGetMemoryRequirements": OF_XLA,
    "cudaArrayMemoryRequirements": OF_XLA,
    **{
        f"cuda{name}Async": "a stream orders side effects; here data orders calls, and JAX runs them asynchronously; "
        "use the name without Async"
        for name in (
            *("Memcpy", "Memcpy2D", "Memcpy3D", "MemcpyToArray", "MemcpyFromArray", "Memcpy2DToArray"),
            *("Memcpy2DFromArray", "Memset", "Memset2D", "Memset3D"),
        )
    },
    "cudaMemcpy3DPeer": OF_DEVICES,
    "cudaMemcpy3DPeerAsync": OF_DEVICES,
    "cudaMemcpy3DBatchAsync": OF_DEVICES,
    "cudaGraphicsSubResourceGetMappedArray": SHARED,
    "cudaGraphicsResourceGetMappedMipmappedArray": SHARED,
    "cudaExternalMemoryGetMappedMipmappedArray": SHARED,
}


def name_here(name: str) -> str | None:
    """The name here, such as ``AddressMode.Wrap``, of a name in CUDA with its prefix, or None if there is none."""
    bare = name.removeprefix("cuda")
    function = bare[:1].lower() + bare[1:]
    if name in TYPES:
        return TYPES[name]
    if function in DECLARATIONS:
        return function
    if bare in STRUCTS or bare in {enumeration.__name__ for enumeration in ENUMERATIONS.values()}:
        return bare
    for prefix, enumeration in ENUMERATIONS.items():
        member = name.removeprefix(prefix)
        member = "None_" if member == "None" else member
        if name.startswith(prefix) and member in enumeration.__members__:
            return f"{enumeration.__name__}.{member}"
    return None


def answer(module: Mapping[str, Any], name: str) -> Any:
    """The counterpart of a CUDA name in the namespace of `jaxtex.cuda`."""
    here = name_here(name) if name.startswith("cuda") else None
    if here is None:
        reason = f"; it is impossible in a pure function: {IMPOSSIBLE[name]}" if name in IMPOSSIBLE else ""
        raise AttributeError(f"module 'jaxtex.cuda' has no attribute {name!r}{reason}")
    first, *rest = here.split(".")
    return functools.reduce(getattr, rest, module[first])
