"""CUDA's textures and surfaces under CUDA's own names, for people who port kernels.

Names are those of the CUDA runtime without the prefix ``cuda``; those with it, such as ``cuda.cudaMallocArray`` and
``cuda.cudaAddressModeWrap``, work too. Enumerations have CUDA's values. Functions take arguments by CUDA's names and
in CUDA's order, but return results instead of taking pointers to them. Memory, arrays and objects are
immutable values: an allocation is an array of zeros, a copy or a write returns the new array, and a texture object is a
pytree. Descriptors are structs with fields that can be assigned. A call that CUDA refuses raises `CudaError` with
CUDA's code. Reads use the arithmetic of an NVIDIA H200's texture unit, and return its bits; anisotropic reads are
close.

Values whose type differs from the array's are refused, because a copy converts nothing. There are two exceptions.
Python numbers are converted: to floats they are rounded, and a number that does not fit is an error. Arrays of 64-bit
numbers may stand for those of 32 bits: floats are rounded, and integers saturate.

Example:
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
    >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> point = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    >>> cuda.tex2D(point, 1.5, 0.5)
    Array(1., dtype=float32)
"""

# ruff: noqa: F401
# pyright: reportUnusedImport=false
# Type checkers and editors read `__init__.pyi`, made from the same tables.

from typing import Any

from .._checks.words import listing
from .declarations import DECLARATIONS
from .enums import (
    AddressMode,
    ArrayFlags,
    ChannelFormatKind,
    Error,
    FilterMode,
    GraphicsCubeFace,
    MemcpyKind,
    ReadMode,
    ResourceType,
    ResourceViewFormat,
    SurfaceBoundaryMode,
    SurfaceFormatMode,
    SurfaceType,
    TextureType,
)
from .errors import CudaError, getErrorName, getErrorString, getLastError, peekAtLastError
from .kinds import NEWEST_COMPUTE_CAPABILITY, DeviceProp, getDeviceProperties
from .memory.allocation import (
    deviceGetTexture1DLinearMaxWidth,
    freeArray,
    freeMipmappedArray,
    malloc3DArray,
    mallocArray,
    mallocMipmappedArray,
)
from .memory.arrays import (
    Array,
    Extent,
    MipmappedArray,
    arrayGetInfo,
    arrayGetPlane,
    getChannelDesc,
    getMipmappedArrayLevel,
    make_cudaExtent,
)
from .memory.channel_formats import HALF_FORMATS, ChannelFormatDesc, createChannelDesc
from .memory.copies import COPY_FUNCTIONS, memcpyFromArray, memcpyToArray
from .memory.copies3d import Memcpy3DParms, memcpy3D
from .memory.device_numbers import BITS, VECTORS
from .memory.pitched_memory import (
    PitchedPtr,
    Pos,
    free,
    make_cudaPitchedPtr,
    make_cudaPos,
    malloc,
    malloc3D,
    mallocPitch,
    memset,
    memset2D,
    memset3D,
)
from .memory.resource_descriptor import ResourceDesc
from .names import answer
from .ptx import suq, sured_b, sured_p, sust_p, txq
from .surfaces.surface_functions import SURFACE_FUNCTIONS
from .surfaces.surface_objects import (
    SurfaceObject,
    SurfaceReference,
    bindSurfaceToArray,
    createSurfaceObject,
    destroySurfaceObject,
    getSurfaceObjectResourceDesc,
    getSurfaceReference,
)
from .textures.descriptors import ResourceViewDesc, TextureDesc
from .textures.texture_binding import bindTexture, bindTexture2D, bindTextureToArray, bindTextureToMipmappedArray
from .textures.texture_functions import TEXTURE_FUNCTIONS
from .textures.texture_objects import (
    TextureObject,
    createTextureObject,
    destroyTextureObject,
    getTextureObjectResourceDesc,
    getTextureObjectResourceViewDesc,
    getTextureObjectTextureDesc,
)
from .textures.texture_references import (
    BoundTexture,
    TextureReference,
    getTextureAlignmentOffset,
    getTextureReference,
    unbindTexture,
)

# The C++ classes of references.
texture = TextureReference
surface = SurfaceReference
# CUDA's names of conversions. Within a class Python changes names of this form.
UNDERSCORED = {f"__{name}": function for name, function in BITS.items()}
globals().update(TEXTURE_FUNCTIONS | SURFACE_FUNCTIONS | COPY_FUNCTIONS | HALF_FORMATS | VECTORS | BITS | UNDERSCORED)

CLASSES = (
    *("AddressMode", "Array", "ArrayFlags", "BoundTexture", "ChannelFormatDesc", "ChannelFormatKind", "CudaError"),
    *("DeviceProp", "Error", "Extent", "FilterMode", "GraphicsCubeFace", "Memcpy3DParms", "MemcpyKind"),
    *("MipmappedArray", "PitchedPtr", "Pos", "ReadMode", "ResourceDesc", "ResourceType", "ResourceViewDesc"),
    *("ResourceViewFormat", "SurfaceBoundaryMode", "SurfaceFormatMode", "SurfaceObject", "SurfaceReference"),
    *("SurfaceType", "TextureDesc", "TextureObject", "TextureReference", "TextureType", "surface", "texture"),
)
__all__ = sorted(("NEWEST_COMPUTE_CAPABILITY", *CLASSES, *DECLARATIONS, *UNDERSCORED))  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = listing(__all__)


def __getattr__(name: str) -> Any:
    return answer(globals(), name)
