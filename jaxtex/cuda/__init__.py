"""CUDA's textures and surfaces under CUDA's own names, for people who port kernels.

Names are those of the CUDA runtime without the prefix ``cuda``. Enumerations have CUDA's values. Functions take
arguments in CUDA's order, but return results instead of taking pointers to them. Memory, arrays and objects are
immutable values: an allocation is an array of zeros, a copy or a write returns the new array, and a texture object is a
pytree. Descriptors are structs with fields that can be assigned. A call that CUDA refuses raises `CudaError` with
CUDA's code. Reads use the arithmetic of an NVIDIA texture unit, and return its values.

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

# pyright: strict

from .._checks.words import listing
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
from .limits import NEWEST_COMPUTE_CAPABILITY
from .memory.allocation import malloc3DArray, mallocArray, mallocMipmappedArray
from .memory.array_queries import arrayGetInfo, arrayGetPlane, deviceGetTexture1DLinearMaxWidth, getChannelDesc
from .memory.arrays import Array, Extent, MipmappedArray, getMipmappedArrayLevel, make_cudaExtent
from .memory.channel_formats import (
    ChannelFormatDesc,
    createChannelDesc,
    createChannelDescHalf,
    createChannelDescHalf1,
    createChannelDescHalf2,
    createChannelDescHalf4,
)
from .memory.copies import memcpy, memcpyArrayToArray, memcpyFromArray, memcpyToArray
from .memory.copies2d import memcpy2D, memcpy2DArrayToArray, memcpy2DFromArray, memcpy2DToArray
from .memory.copies3d import Memcpy3DParms, memcpy3D
from .memory.intrinsics import (
    double2hiint,
    double2loint,
    float2half_rn,
    float_as_int,
    float_as_uint,
    half2float,
    hiloint2double,
    int_as_float,
    uint_as_float,
)
from .memory.memsets import memset, memset2D, memset3D
from .memory.pitched_memory import PitchedPtr, Pos, make_cudaPitchedPtr, make_cudaPos, malloc, malloc3D, mallocPitch
from .memory.releases import free, freeArray, freeMipmappedArray
from .memory.resource_descriptor import ResourceDesc
from .memory.vectors import MAKERS
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
from .surfaces.surface_objects import (
    SurfaceObject,
    createSurfaceObject,
    destroySurfaceObject,
    getSurfaceObjectResourceDesc,
)
from .surfaces.surface_references import SurfaceReference, bindSurfaceToArray, getSurfaceReference
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
from .textures.texture_binding import bindTexture, bindTexture2D, bindTextureToArray, bindTextureToMipmappedArray
from .textures.texture_objects import TextureObject, createTextureObject
from .textures.texture_queries import (
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

# CUDA's names of device functions. Within a class Python changes names of this form.
__double2hiint = double2hiint
__double2loint = double2loint
__float2half_rn = float2half_rn
__float_as_int = float_as_int
__float_as_uint = float_as_uint
__half2float = half2float
__hiloint2double = hiloint2double
__int_as_float = int_as_float
__uint_as_float = uint_as_float

# Vectors.
make_char1 = MAKERS["make_char1"]
make_char2 = MAKERS["make_char2"]
make_char3 = MAKERS["make_char3"]
make_char4 = MAKERS["make_char4"]
make_uchar1 = MAKERS["make_uchar1"]
make_uchar2 = MAKERS["make_uchar2"]
make_uchar3 = MAKERS["make_uchar3"]
make_uchar4 = MAKERS["make_uchar4"]
make_short1 = MAKERS["make_short1"]
make_short2 = MAKERS["make_short2"]
make_short3 = MAKERS["make_short3"]
make_short4 = MAKERS["make_short4"]
make_ushort1 = MAKERS["make_ushort1"]
make_ushort2 = MAKERS["make_ushort2"]
make_ushort3 = MAKERS["make_ushort3"]
make_ushort4 = MAKERS["make_ushort4"]
make_int1 = MAKERS["make_int1"]
make_int2 = MAKERS["make_int2"]
make_int3 = MAKERS["make_int3"]
make_int4 = MAKERS["make_int4"]
make_uint1 = MAKERS["make_uint1"]
make_uint2 = MAKERS["make_uint2"]
make_uint3 = MAKERS["make_uint3"]
make_uint4 = MAKERS["make_uint4"]
make_float1 = MAKERS["make_float1"]
make_float2 = MAKERS["make_float2"]
make_float3 = MAKERS["make_float3"]
make_float4 = MAKERS["make_float4"]
make_long1 = MAKERS["make_long1"]
make_long2 = MAKERS["make_long2"]
make_long3 = MAKERS["make_long3"]
make_long4 = MAKERS["make_long4"]
make_ulong1 = MAKERS["make_ulong1"]
make_ulong2 = MAKERS["make_ulong2"]
make_ulong3 = MAKERS["make_ulong3"]
make_ulong4 = MAKERS["make_ulong4"]
make_longlong1 = MAKERS["make_longlong1"]
make_longlong2 = MAKERS["make_longlong2"]
make_longlong3 = MAKERS["make_longlong3"]
make_longlong4 = MAKERS["make_longlong4"]
make_ulonglong1 = MAKERS["make_ulonglong1"]
make_ulonglong2 = MAKERS["make_ulonglong2"]
make_ulonglong3 = MAKERS["make_ulonglong3"]
make_ulonglong4 = MAKERS["make_ulonglong4"]
make_double1 = MAKERS["make_double1"]
make_double2 = MAKERS["make_double2"]
make_double3 = MAKERS["make_double3"]
make_double4 = MAKERS["make_double4"]

__all__ = [
    "NEWEST_COMPUTE_CAPABILITY",
    "AddressMode",
    "Array",
    "ArrayFlags",
    "BoundTexture",
    "ChannelFormatDesc",
    "ChannelFormatKind",
    "CudaError",
    "Error",
    "Extent",
    "FilterMode",
    "GraphicsCubeFace",
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
    "SurfaceFormatMode",
    "SurfaceObject",
    "SurfaceReference",
    "SurfaceType",
    "TextureDesc",
    "TextureObject",
    "TextureReference",
    "TextureType",
    "__double2hiint",
    "__double2loint",
    "__float2half_rn",
    "__float_as_int",
    "__float_as_uint",
    "__half2float",
    "__hiloint2double",
    "__int_as_float",
    "__uint_as_float",
    "arrayGetInfo",
    "arrayGetPlane",
    "bindSurfaceToArray",
    "bindTexture",
    "bindTexture2D",
    "bindTextureToArray",
    "bindTextureToMipmappedArray",
    "createChannelDesc",
    "createChannelDescHalf",
    "createChannelDescHalf1",
    "createChannelDescHalf2",
    "createChannelDescHalf4",
    "createSurfaceObject",
    "createTextureObject",
    "destroySurfaceObject",
    "destroyTextureObject",
    "deviceGetTexture1DLinearMaxWidth",
    "double2hiint",
    "double2loint",
    "float2half_rn",
    "float_as_int",
    "float_as_uint",
    "free",
    "freeArray",
    "freeMipmappedArray",
    "getChannelDesc",
    "getErrorName",
    "getErrorString",
    "getLastError",
    "getMipmappedArrayLevel",
    "getSurfaceObjectResourceDesc",
    "getSurfaceReference",
    "getTextureAlignmentOffset",
    "getTextureObjectResourceDesc",
    "getTextureObjectResourceViewDesc",
    "getTextureObjectTextureDesc",
    "getTextureReference",
    "half2float",
    "hiloint2double",
    "int_as_float",
    "make_char1",
    "make_char2",
    "make_char3",
    "make_char4",
    "make_cudaExtent",
    "make_cudaPitchedPtr",
    "make_cudaPos",
    "make_double1",
    "make_double2",
    "make_double3",
    "make_double4",
    "make_float1",
    "make_float2",
    "make_float3",
    "make_float4",
    "make_int1",
    "make_int2",
    "make_int3",
    "make_int4",
    "make_long1",
    "make_long2",
    "make_long3",
    "make_long4",
    "make_longlong1",
    "make_longlong2",
    "make_longlong3",
    "make_longlong4",
    "make_short1",
    "make_short2",
    "make_short3",
    "make_short4",
    "make_uchar1",
    "make_uchar2",
    "make_uchar3",
    "make_uchar4",
    "make_uint1",
    "make_uint2",
    "make_uint3",
    "make_uint4",
    "make_ulong1",
    "make_ulong2",
    "make_ulong3",
    "make_ulong4",
    "make_ulonglong1",
    "make_ulonglong2",
    "make_ulonglong3",
    "make_ulonglong4",
    "make_ushort1",
    "make_ushort2",
    "make_ushort3",
    "make_ushort4",
    "malloc",
    "malloc3D",
    "malloc3DArray",
    "mallocArray",
    "mallocMipmappedArray",
    "mallocPitch",
    "memcpy",
    "memcpy2D",
    "memcpy2DArrayToArray",
    "memcpy2DFromArray",
    "memcpy2DToArray",
    "memcpy3D",
    "memcpyArrayToArray",
    "memcpyFromArray",
    "memcpyToArray",
    "memset",
    "memset2D",
    "memset3D",
    "peekAtLastError",
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
    "surface",
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
    "texture",
    "uint_as_float",
    "unbindTexture",
]
__dir__ = listing(__all__)
