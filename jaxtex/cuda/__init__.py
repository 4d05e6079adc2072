"""CUDA's textures and surfaces under CUDA's own names, for people who port kernels.

Names are those of the CUDA runtime without the prefix ``cuda``. Enumerations have CUDA's values, and functions have
CUDA's argument order. Everything is an immutable value: an allocation is an array of zeros, a copy or a write returns
the new array, and a texture object is a pytree. A call that CUDA refuses raises `CudaError` with CUDA's code. Reads are
computed in the arithmetic of an NVIDIA texture unit, and return its values.

The code has three rooms: `memory` (arrays and copies), `textures` and `surfaces`.

Example:
    >>> import jax.numpy as jnp
    >>> from jaxtex import cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
    >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> point = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    >>> cuda.tex2D(point, 1.5, 0.5)
    Array(1., dtype=float32)
"""

# pyright: strict

from .enums import (
    AddressMode,
    ArrayFlags,
    ChannelFormatKind,
    FilterMode,
    MemcpyKind,
    ReadMode,
    ResourceType,
    ResourceViewFormat,
    SurfaceBoundaryMode,
    TextureType,
)
from .errors import CudaError
from .limits import NEWEST_COMPUTE_CAPABILITY
from .memory.allocation import malloc3DArray, mallocArray, mallocMipmappedArray
from .memory.arrays import Array, Extent, MipmappedArray, getMipmappedArrayLevel
from .memory.channel_formats import ChannelFormatDesc, createChannelDesc
from .memory.copies import memcpy2D, memcpy2DFromArray, memcpy2DToArray, memcpyFromArray, memcpyToArray
from .memory.copies3d import Memcpy3DParms, memcpy3D
from .memory.pitched_memory import PitchedPtr, Pos, mallocPitch
from .memory.resource_descriptor import ResourceDesc
from .surfaces.surf_functions import (
    surf1DLayeredread,
    surf1DLayeredwrite,
    surf1Dread,
    surf1Dwrite,
    surf2DLayeredread,
    surf2DLayeredwrite,
    surf2Dread,
    surf2Dwrite,
    surf3Dread,
    surf3Dwrite,
    surfCubemapLayeredread,
    surfCubemapLayeredwrite,
    surfCubemapread,
    surfCubemapwrite,
    sust_p,
)
from .surfaces.surface_objects import SurfaceObject, createSurfaceObject
from .textures.descriptors import ResourceViewDesc, TextureDesc
from .textures.tex_functions import (
    tex1D,
    tex1Dfetch,
    tex1DGrad,
    tex1DLayered,
    tex1DLayeredGrad,
    tex1DLayeredLod,
    tex1DLod,
    tex2D,
    tex2Dgather,
    tex2DGrad,
    tex2DLayered,
    tex2DLayeredGrad,
    tex2DLayeredLod,
    tex2DLod,
    tex3D,
    tex3DGrad,
    tex3DLod,
    texCubemap,
    texCubemapGrad,
    texCubemapLayered,
    texCubemapLayeredGrad,
    texCubemapLayeredLod,
    texCubemapLod,
)
from .textures.texture_objects import TextureObject, createTextureObject
from .textures.texture_references import (
    TextureReference,
    bindTexture,
    bindTexture2D,
    bindTextureToArray,
    bindTextureToMipmappedArray,
)

__all__ = [
    "NEWEST_COMPUTE_CAPABILITY",
    "AddressMode",
    "Array",
    "ArrayFlags",
    "ChannelFormatDesc",
    "ChannelFormatKind",
    "CudaError",
    "Extent",
    "FilterMode",
    "Memcpy3DParms",
    "MemcpyKind",
    "MipmappedArray",
    "PitchedPtr",
    "Pos",
    "ReadMode",
    "ResourceDesc",
    "ResourceType",
    "ResourceViewDesc",
    "ResourceViewFormat",
    "SurfaceBoundaryMode",
    "SurfaceObject",
    "TextureDesc",
    "TextureObject",
    "TextureReference",
    "TextureType",
    "bindTexture",
    "bindTexture2D",
    "bindTextureToArray",
    "bindTextureToMipmappedArray",
    "createChannelDesc",
    "createSurfaceObject",
    "createTextureObject",
    "getMipmappedArrayLevel",
    "malloc3DArray",
    "mallocArray",
    "mallocMipmappedArray",
    "mallocPitch",
    "memcpy2D",
    "memcpy2DFromArray",
    "memcpy2DToArray",
    "memcpy3D",
    "memcpyFromArray",
    "memcpyToArray",
    "surf1DLayeredread",
    "surf1DLayeredwrite",
    "surf1Dread",
    "surf1Dwrite",
    "surf2DLayeredread",
    "surf2DLayeredwrite",
    "surf2Dread",
    "surf2Dwrite",
    "surf3Dread",
    "surf3Dwrite",
    "surfCubemapLayeredread",
    "surfCubemapLayeredwrite",
    "surfCubemapread",
    "surfCubemapwrite",
    "sust_p",
    "tex1D",
    "tex1DGrad",
    "tex1DLayered",
    "tex1DLayeredGrad",
    "tex1DLayeredLod",
    "tex1DLod",
    "tex1Dfetch",
    "tex2D",
    "tex2DGrad",
    "tex2DLayered",
    "tex2DLayeredGrad",
    "tex2DLayeredLod",
    "tex2DLod",
    "tex2Dgather",
    "tex3D",
    "tex3DGrad",
    "tex3DLod",
    "texCubemap",
    "texCubemapGrad",
    "texCubemapLayered",
    "texCubemapLayeredGrad",
    "texCubemapLayeredLod",
    "texCubemapLod",
]
