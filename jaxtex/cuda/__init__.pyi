"""The types of `jaxtex.cuda`, made by `python -m tests.house.cuda_names --write`."""

# ruff: noqa
# fmt: off

import jax
from jax.typing import ArrayLike

from .descriptors import (ResourceDesc as ResourceDesc, ResourceViewDesc as ResourceViewDesc,
    TextureDesc as TextureDesc)
from .enums import (AddressMode as AddressMode, ArrayFlags as ArrayFlags, ChannelFormatKind as ChannelFormatKind,
    Error as Error, FilterMode as FilterMode, GraphicsCubeFace as GraphicsCubeFace, MemcpyKind as MemcpyKind,
    ReadMode as ReadMode, ResourceType as ResourceType, ResourceViewFormat as ResourceViewFormat,
    SurfaceBoundaryMode as SurfaceBoundaryMode, SurfaceFormatMode as SurfaceFormatMode, SurfaceType as SurfaceType,
    TextureType as TextureType)
from .errors import (CudaError as CudaError, getErrorName as getErrorName, getErrorString as getErrorString,
    getLastError as getLastError, peekAtLastError as peekAtLastError)
from .kinds import (DeviceProp as DeviceProp, NEWEST_COMPUTE_CAPABILITY as NEWEST_COMPUTE_CAPABILITY,
    getDeviceProperties as getDeviceProperties)
from .memory.arrays import (Array as Array, Extent as Extent, MipmappedArray as MipmappedArray,
    arrayGetInfo as arrayGetInfo, arrayGetPlane as arrayGetPlane,
    deviceGetTexture1DLinearMaxWidth as deviceGetTexture1DLinearMaxWidth, freeArray as freeArray,
    freeMipmappedArray as freeMipmappedArray, getChannelDesc as getChannelDesc,
    getMipmappedArrayLevel as getMipmappedArrayLevel, malloc3DArray as malloc3DArray, mallocArray as mallocArray,
    mallocMipmappedArray as mallocMipmappedArray)
from .memory.channel_formats import (ChannelFormatDesc as ChannelFormatDesc, createChannelDesc as createChannelDesc)
from .memory.copies import (Memcpy3DParms as Memcpy3DParms, memcpy3D as memcpy3D, memcpyFromArray as memcpyFromArray,
    memcpyToArray as memcpyToArray)
from .memory.pitched_memory import (PitchedPtr as PitchedPtr, Pos as Pos, free as free, malloc as malloc,
    malloc3D as malloc3D, mallocPitch as mallocPitch, memset as memset, memset2D as memset2D, memset3D as memset3D)
from .ptx import (suq as suq, sured_b as sured_b, sured_p as sured_p, sust_p as sust_p, txq as txq)
from .surfaces import (SurfaceObject as SurfaceObject, SurfaceReference as SurfaceReference,
    bindSurfaceToArray as bindSurfaceToArray, createSurfaceObject as createSurfaceObject,
    destroySurfaceObject as destroySurfaceObject, getSurfaceObjectResourceDesc as getSurfaceObjectResourceDesc,
    getSurfaceReference as getSurfaceReference)
from .textures.texture_objects import (TextureObject as TextureObject, createTextureObject as createTextureObject,
    destroyTextureObject as destroyTextureObject, getTextureObjectResourceDesc as getTextureObjectResourceDesc,
    getTextureObjectResourceViewDesc as getTextureObjectResourceViewDesc,
    getTextureObjectTextureDesc as getTextureObjectTextureDesc)
from .textures.texture_references import (BoundTexture as BoundTexture, TextureReference as TextureReference,
    bindTexture as bindTexture, bindTexture2D as bindTexture2D, bindTextureToArray as bindTextureToArray,
    bindTextureToMipmappedArray as bindTextureToMipmappedArray, getTextureAlignmentOffset as getTextureAlignmentOffset,
    getTextureReference as getTextureReference, unbindTexture as unbindTexture)

_Vector = ArrayLike | tuple[ArrayLike, ...]
_AnyTexture = TextureObject | BoundTexture
_Surface = SurfaceObject | SurfaceReference | Array
texture = TextureReference
surface = SurfaceReference

def createChannelDescHalf() -> ChannelFormatDesc: """Describes texels of one half, 16 bits each: ``createChannelDesc("half")``."""
def createChannelDescHalf1() -> ChannelFormatDesc: """Describes texels of one half, 16 bits each: ``createChannelDesc("half1")``."""
def createChannelDescHalf2() -> ChannelFormatDesc: """Describes texels of 2 halves, 16 bits each: ``createChannelDesc("half2")``."""
def createChannelDescHalf4() -> ChannelFormatDesc: """Describes texels of 4 halves, 16 bits each: ``createChannelDesc("half4")``."""
def double2hiint(x: ArrayLike) -> jax.Array: """Returns the upper 32 bits of doubles: `__double2hiint`."""
def double2loint(x: ArrayLike) -> jax.Array: """Returns the lower 32 bits of doubles: `__double2loint`."""
def float2half_rn(x: ArrayLike) -> jax.Array: """Converts floats to halves, kept as unsigned shorts. Halves round to nearest even: `__float2half_rn`."""
def float_as_int(x: ArrayLike) -> jax.Array: """Returns the bits of floats as ints: `__float_as_int`."""
def float_as_uint(x: ArrayLike) -> jax.Array: """Returns the bits of floats as uints: `__float_as_uint`."""
def half2float(x: ArrayLike) -> jax.Array: """Converts halves, kept as unsigned shorts, to floats: `__half2float`."""
def hiloint2double(hi: ArrayLike, lo: ArrayLike) -> jax.Array: """Makes doubles from their upper and lower 32 bits: `__hiloint2double`."""
def int_as_float(x: ArrayLike) -> jax.Array: """Returns ints as the bits of floats: `__int_as_float`."""
def make_char1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of int8 along the last axis: CUDA's type `char1`."""
def make_char2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of int8 along the last axis: CUDA's type `char2`."""
def make_char3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of int8 along the last axis: CUDA's type `char3`."""
def make_char4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of int8 along the last axis: CUDA's type `char4`."""
def make_cudaExtent(w: int, h: int, d: int) -> Extent: """Makes a struct `Extent`: `make_cudaExtent`."""
def make_cudaPitchedPtr(d: ArrayLike, p: int, xsz: int, ysz: int) -> PitchedPtr: """Makes a struct `PitchedPtr`: `make_cudaPitchedPtr`."""
def make_cudaPos(x: int, y: int, z: int) -> Pos: """Makes a struct `Pos`: `make_cudaPos`."""
def make_double1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of float64 along the last axis: CUDA's type `double1`."""
def make_double2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of float64 along the last axis: CUDA's type `double2`."""
def make_double3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of float64 along the last axis: CUDA's type `double3`."""
def make_double4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of float64 along the last axis: CUDA's type `double4`."""
def make_float1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of float32 along the last axis: CUDA's type `float1`."""
def make_float2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of float32 along the last axis: CUDA's type `float2`."""
def make_float3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of float32 along the last axis: CUDA's type `float3`."""
def make_float4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of float32 along the last axis: CUDA's type `float4`."""
def make_int1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of int32 along the last axis: CUDA's type `int1`."""
def make_int2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of int32 along the last axis: CUDA's type `int2`."""
def make_int3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of int32 along the last axis: CUDA's type `int3`."""
def make_int4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of int32 along the last axis: CUDA's type `int4`."""
def make_long1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of int64 along the last axis: CUDA's type `long1`."""
def make_long2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of int64 along the last axis: CUDA's type `long2`."""
def make_long3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of int64 along the last axis: CUDA's type `long3`."""
def make_long4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of int64 along the last axis: CUDA's type `long4`."""
def make_longlong1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of int64 along the last axis: CUDA's type `longlong1`."""
def make_longlong2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of int64 along the last axis: CUDA's type `longlong2`."""
def make_longlong3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of int64 along the last axis: CUDA's type `longlong3`."""
def make_longlong4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of int64 along the last axis: CUDA's type `longlong4`."""
def make_short1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of int16 along the last axis: CUDA's type `short1`."""
def make_short2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of int16 along the last axis: CUDA's type `short2`."""
def make_short3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of int16 along the last axis: CUDA's type `short3`."""
def make_short4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of int16 along the last axis: CUDA's type `short4`."""
def make_uchar1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of uint8 along the last axis: CUDA's type `uchar1`."""
def make_uchar2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of uint8 along the last axis: CUDA's type `uchar2`."""
def make_uchar3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of uint8 along the last axis: CUDA's type `uchar3`."""
def make_uchar4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of uint8 along the last axis: CUDA's type `uchar4`."""
def make_uint1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of uint32 along the last axis: CUDA's type `uint1`."""
def make_uint2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of uint32 along the last axis: CUDA's type `uint2`."""
def make_uint3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of uint32 along the last axis: CUDA's type `uint3`."""
def make_uint4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of uint32 along the last axis: CUDA's type `uint4`."""
def make_ulong1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of uint64 along the last axis: CUDA's type `ulong1`."""
def make_ulong2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of uint64 along the last axis: CUDA's type `ulong2`."""
def make_ulong3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of uint64 along the last axis: CUDA's type `ulong3`."""
def make_ulong4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of uint64 along the last axis: CUDA's type `ulong4`."""
def make_ulonglong1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of uint64 along the last axis: CUDA's type `ulonglong1`."""
def make_ulonglong2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of uint64 along the last axis: CUDA's type `ulonglong2`."""
def make_ulonglong3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of uint64 along the last axis: CUDA's type `ulonglong3`."""
def make_ulonglong4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of uint64 along the last axis: CUDA's type `ulonglong4`."""
def make_ushort1(x: ArrayLike) -> jax.Array: """Makes vectors of one component of uint16 along the last axis: CUDA's type `ushort1`."""
def make_ushort2(x: ArrayLike, y: ArrayLike) -> jax.Array: """Joins 2 components to vectors of uint16 along the last axis: CUDA's type `ushort2`."""
def make_ushort3(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> jax.Array: """Joins 3 components to vectors of uint16 along the last axis: CUDA's type `ushort3`."""
def make_ushort4(x: ArrayLike, y: ArrayLike, z: ArrayLike, w: ArrayLike) -> jax.Array: """Joins 4 components to vectors of uint16 along the last axis: CUDA's type `ushort4`."""
def memcpy(dst: ArrayLike, src: ArrayLike, count: int, kind: MemcpyKind | int = MemcpyKind.Default) -> jax.Array: """Returns memory whose first bytes are copied from other memory: `cudaMemcpy`."""
def memcpy2D(dst: ArrayLike, dpitch: int, src: ArrayLike, spitch: int, width: int, height: int, kind: MemcpyKind | int = MemcpyKind.Default) -> jax.Array: """Returns memory with rows copied from other memory: `cudaMemcpy2D`."""
def memcpy2DArrayToArray(dst: Array, wOffsetDst: int, hOffsetDst: int, src: Array, wOffsetSrc: int, hOffsetSrc: int, width: int, height: int, kind: MemcpyKind | int = MemcpyKind.DeviceToDevice) -> Array: """Returns an array with a part copied from another array: `cudaMemcpy2DArrayToArray`."""
def memcpy2DFromArray(dst: ArrayLike, dpitch: int, src: Array, wOffset: int, hOffset: int, width: int, height: int, kind: MemcpyKind | int = MemcpyKind.Default) -> jax.Array: """Returns memory with rows copied from a part of an array: `cudaMemcpy2DFromArray`."""
def memcpy2DToArray(dst: Array, wOffset: int, hOffset: int, src: ArrayLike, spitch: int, width: int, height: int, kind: MemcpyKind | int = MemcpyKind.Default) -> Array: """Returns an array with a part copied from rows of memory: `cudaMemcpy2DToArray`."""
def memcpyArrayToArray(dst: Array, wOffsetDst: int, hOffsetDst: int, src: Array, wOffsetSrc: int, hOffsetSrc: int, count: int, kind: MemcpyKind | int = MemcpyKind.DeviceToDevice) -> Array: """Returns an array with a run of bytes copied from another array: `cudaMemcpyArrayToArray`."""
def surf1DLayeredread(surfObject: _Surface, x: ArrayLike, layer: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a layer of a 1D layered array at byte x."""
def surf1DLayeredwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, layer: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a layer of a 1D layered array at byte x."""
def surf1Dread(surfObject: _Surface, x: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a 1D array at byte x."""
def surf1Dwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a 1D array at byte x."""
def surf2DLayeredread(surfObject: _Surface, x: ArrayLike, y: ArrayLike, layer: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a layer of a 2D layered array at byte x of row y."""
def surf2DLayeredwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, y: ArrayLike, layer: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a layer of a 2D layered array at byte x of row y."""
def surf2Dread(surfObject: _Surface, x: ArrayLike, y: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a 2D array at byte x of row y."""
def surf2Dwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, y: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a 2D array at byte x of row y."""
def surf3Dread(surfObject: _Surface, x: ArrayLike, y: ArrayLike, z: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a 3D array at byte x of row y in slice z."""
def surf3Dwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, y: ArrayLike, z: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a 3D array at byte x of row y in slice z."""
def surfCubemapLayeredread(surfObject: _Surface, x: ArrayLike, y: ArrayLike, layerFace: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads face layerFace % 6 of cubemap layerFace // 6 of a layered cubemap, at byte x of row y."""
def surfCubemapLayeredwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, y: ArrayLike, layerFace: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to face layerFace % 6 of cubemap layerFace // 6 of a layered cubemap, at byte x of row y."""
def surfCubemapread(surfObject: _Surface, x: ArrayLike, y: ArrayLike, face: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> jax.Array: """Reads a face of a cubemap at byte x of row y."""
def surfCubemapwrite(data: _Vector, surfObject: _Surface, x: ArrayLike, y: ArrayLike, face: ArrayLike, boundaryMode: SurfaceBoundaryMode | int = SurfaceBoundaryMode.Trap, *, T: str | None = None) -> Array: """Writes to a face of a cubemap at byte x of row y."""
def tex1D(texObject: _AnyTexture, x: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 1D array at x."""
def tex1DGrad(texObject: _AnyTexture, x: ArrayLike, dPdx: ArrayLike, dPdy: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 1D array at x, with a level of detail from derivatives."""
def tex1DLayered(texObject: _AnyTexture, x: ArrayLike, layer: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a 1D layered array at x."""
def tex1DLayeredGrad(texObject: _AnyTexture, x: ArrayLike, layer: ArrayLike, dPdx: ArrayLike, dPdy: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a 1D layered array at x, with a level of detail from derivatives."""
def tex1DLayeredLod(texObject: _AnyTexture, x: ArrayLike, layer: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a 1D layered array at x, with a given level of detail."""
def tex1DLod(texObject: _AnyTexture, x: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 1D array at x, with a given level of detail."""
def tex1Dfetch(texObject: _AnyTexture, x: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads single texels of linear memory by their integer index, without a filter."""
def tex2D(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 2D array, or pitched memory, at (x, y)."""
def tex2DGrad(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, dPdx: _Vector, dPdy: _Vector, *, T: str | None = None) -> jax.Array: """Reads a 2D array, or pitched memory, at (x, y), with a level of detail from derivatives."""
def tex2DLayered(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, layer: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a 2D layered array at (x, y)."""
def tex2DLayeredGrad(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, layer: ArrayLike, dPdx: _Vector, dPdy: _Vector, *, T: str | None = None) -> jax.Array: """Reads a layer of a 2D layered array at (x, y), with a level of detail from derivatives."""
def tex2DLayeredLod(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, layer: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a 2D layered array at (x, y), with a given level of detail."""
def tex2DLod(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 2D array, or pitched memory, at (x, y), with a given level of detail."""
def tex2Dgather(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, comp: ArrayLike = 0, *, T: str | None = None) -> jax.Array: """Reads one channel of the four texels that a linear read at (x, y) would blend."""
def tex3D(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 3D array at (x, y, z)."""
def tex3DGrad(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, dPdx: _Vector, dPdy: _Vector, *, T: str | None = None) -> jax.Array: """Reads a 3D array at (x, y, z), with a level of detail from derivatives."""
def tex3DLod(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a 3D array at (x, y, z), with a given level of detail."""
def texCubemap(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a cubemap in the direction (x, y, z)."""
def texCubemapGrad(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, dPdx: _Vector, dPdy: _Vector, *, T: str | None = None) -> jax.Array: """Reads a cubemap in the direction (x, y, z), with a level of detail from derivatives."""
def texCubemapLayered(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, layer: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a layered cubemap in the direction (x, y, z)."""
def texCubemapLayeredGrad(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, layer: ArrayLike, dPdx: _Vector, dPdy: _Vector, *, T: str | None = None) -> jax.Array: """Reads a layer of a layered cubemap in the direction (x, y, z), with a level of detail from derivatives."""
def texCubemapLayeredLod(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, layer: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a layer of a layered cubemap in the direction (x, y, z), with a given level of detail."""
def texCubemapLod(texObject: _AnyTexture, x: ArrayLike, y: ArrayLike, z: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array: """Reads a cubemap in the direction (x, y, z), with a given level of detail."""
def uint_as_float(x: ArrayLike) -> jax.Array: """Returns uints as the bits of floats: `__uint_as_float`."""

__double2hiint = double2hiint
__double2loint = double2loint
__float2half_rn = float2half_rn
__float_as_int = float_as_int
__float_as_uint = float_as_uint
__half2float = half2float
__hiloint2double = hiloint2double
__int_as_float = int_as_float
__uint_as_float = uint_as_float
cudaArrayGetInfo = arrayGetInfo
cudaArrayGetPlane = arrayGetPlane
cudaCreateChannelDesc = createChannelDesc
cudaCreateChannelDescHalf = createChannelDescHalf
cudaCreateChannelDescHalf1 = createChannelDescHalf1
cudaCreateChannelDescHalf2 = createChannelDescHalf2
cudaCreateChannelDescHalf4 = createChannelDescHalf4
cudaCreateSurfaceObject = createSurfaceObject
cudaCreateTextureObject = createTextureObject
cudaDestroySurfaceObject = destroySurfaceObject
cudaDestroyTextureObject = destroyTextureObject
cudaDeviceGetTexture1DLinearMaxWidth = deviceGetTexture1DLinearMaxWidth
cudaFree = free
cudaFreeArray = freeArray
cudaFreeMipmappedArray = freeMipmappedArray
cudaGetChannelDesc = getChannelDesc
cudaGetDeviceProperties = getDeviceProperties
cudaGetErrorName = getErrorName
cudaGetErrorString = getErrorString
cudaGetLastError = getLastError
cudaGetMipmappedArrayLevel = getMipmappedArrayLevel
cudaGetSurfaceObjectResourceDesc = getSurfaceObjectResourceDesc
cudaGetTextureObjectResourceDesc = getTextureObjectResourceDesc
cudaGetTextureObjectResourceViewDesc = getTextureObjectResourceViewDesc
cudaGetTextureObjectTextureDesc = getTextureObjectTextureDesc
cudaMalloc = malloc
cudaMalloc3D = malloc3D
cudaMalloc3DArray = malloc3DArray
cudaMallocArray = mallocArray
cudaMallocMipmappedArray = mallocMipmappedArray
cudaMallocPitch = mallocPitch
cudaMemcpy = memcpy
cudaMemcpy2D = memcpy2D
cudaMemcpy2DArrayToArray = memcpy2DArrayToArray
cudaMemcpy2DFromArray = memcpy2DFromArray
cudaMemcpy2DToArray = memcpy2DToArray
cudaMemcpy3D = memcpy3D
cudaMemcpyArrayToArray = memcpyArrayToArray
cudaMemcpyFromArray = memcpyFromArray
cudaMemcpyToArray = memcpyToArray
cudaMemset = memset
cudaMemset2D = memset2D
cudaMemset3D = memset3D
cudaPeekAtLastError = peekAtLastError
cudaBindTexture = bindTexture
cudaBindTexture2D = bindTexture2D
cudaBindTextureToArray = bindTextureToArray
cudaBindTextureToMipmappedArray = bindTextureToMipmappedArray
cudaGetTextureAlignmentOffset = getTextureAlignmentOffset
cudaGetTextureReference = getTextureReference
cudaUnbindTexture = unbindTexture
cudaBindSurfaceToArray = bindSurfaceToArray
cudaGetSurfaceReference = getSurfaceReference
cudaAddressMode = AddressMode
cudaArrayFlags = ArrayFlags
cudaChannelFormatDesc = ChannelFormatDesc
cudaChannelFormatKind = ChannelFormatKind
cudaDeviceProp = DeviceProp
cudaError = Error
cudaExtent = Extent
cudaFilterMode = FilterMode
cudaGraphicsCubeFace = GraphicsCubeFace
cudaMemcpy3DParms = Memcpy3DParms
cudaMemcpyKind = MemcpyKind
cudaPitchedPtr = PitchedPtr
cudaPos = Pos
cudaReadMode = ReadMode
cudaResourceDesc = ResourceDesc
cudaResourceType = ResourceType
cudaResourceViewDesc = ResourceViewDesc
cudaResourceViewFormat = ResourceViewFormat
cudaSurfaceBoundaryMode = SurfaceBoundaryMode
cudaSurfaceFormatMode = SurfaceFormatMode
cudaSurfaceType = SurfaceType
cudaTextureDesc = TextureDesc
cudaTextureType = TextureType
cudaArray_t = Array
cudaArray_const_t = Array
cudaError_t = Error
cudaMipmappedArray_t = MipmappedArray
cudaMipmappedArray_const_t = MipmappedArray
cudaSurfaceObject_t = SurfaceObject
cudaTextureObject_t = TextureObject
cudaTextureAddressMode = AddressMode
cudaTextureFilterMode = FilterMode
cudaTextureReadMode = ReadMode
cudaAddressModeWrap = AddressMode.Wrap
cudaAddressModeClamp = AddressMode.Clamp
cudaAddressModeMirror = AddressMode.Mirror
cudaAddressModeBorder = AddressMode.Border
cudaArrayDefault = ArrayFlags.Default
cudaArrayLayered = ArrayFlags.Layered
cudaArraySurfaceLoadStore = ArrayFlags.SurfaceLoadStore
cudaArrayCubemap = ArrayFlags.Cubemap
cudaArrayTextureGather = ArrayFlags.TextureGather
cudaArrayColorAttachment = ArrayFlags.ColorAttachment
cudaArraySparse = ArrayFlags.Sparse
cudaArrayDeferredMapping = ArrayFlags.DeferredMapping
cudaArrayVideoEncodeDecode = ArrayFlags.VideoEncodeDecode
cudaBoundaryModeZero = SurfaceBoundaryMode.Zero
cudaBoundaryModeClamp = SurfaceBoundaryMode.Clamp
cudaBoundaryModeTrap = SurfaceBoundaryMode.Trap
cudaChannelFormatKindSigned = ChannelFormatKind.Signed
cudaChannelFormatKindUnsigned = ChannelFormatKind.Unsigned
cudaChannelFormatKindFloat = ChannelFormatKind.Float
cudaChannelFormatKindNone = ChannelFormatKind.None_
cudaChannelFormatKindNV12 = ChannelFormatKind.NV12
cudaChannelFormatKindUnsignedNormalized8X1 = ChannelFormatKind.UnsignedNormalized8X1
cudaChannelFormatKindUnsignedNormalized8X2 = ChannelFormatKind.UnsignedNormalized8X2
cudaChannelFormatKindUnsignedNormalized8X4 = ChannelFormatKind.UnsignedNormalized8X4
cudaChannelFormatKindUnsignedNormalized16X1 = ChannelFormatKind.UnsignedNormalized16X1
cudaChannelFormatKindUnsignedNormalized16X2 = ChannelFormatKind.UnsignedNormalized16X2
cudaChannelFormatKindUnsignedNormalized16X4 = ChannelFormatKind.UnsignedNormalized16X4
cudaChannelFormatKindSignedNormalized8X1 = ChannelFormatKind.SignedNormalized8X1
cudaChannelFormatKindSignedNormalized8X2 = ChannelFormatKind.SignedNormalized8X2
cudaChannelFormatKindSignedNormalized8X4 = ChannelFormatKind.SignedNormalized8X4
cudaChannelFormatKindSignedNormalized16X1 = ChannelFormatKind.SignedNormalized16X1
cudaChannelFormatKindSignedNormalized16X2 = ChannelFormatKind.SignedNormalized16X2
cudaChannelFormatKindSignedNormalized16X4 = ChannelFormatKind.SignedNormalized16X4
cudaChannelFormatKindUnsignedBlockCompressed1 = ChannelFormatKind.UnsignedBlockCompressed1
cudaChannelFormatKindUnsignedBlockCompressed1SRGB = ChannelFormatKind.UnsignedBlockCompressed1SRGB
cudaChannelFormatKindUnsignedBlockCompressed2 = ChannelFormatKind.UnsignedBlockCompressed2
cudaChannelFormatKindUnsignedBlockCompressed2SRGB = ChannelFormatKind.UnsignedBlockCompressed2SRGB
cudaChannelFormatKindUnsignedBlockCompressed3 = ChannelFormatKind.UnsignedBlockCompressed3
cudaChannelFormatKindUnsignedBlockCompressed3SRGB = ChannelFormatKind.UnsignedBlockCompressed3SRGB
cudaChannelFormatKindUnsignedBlockCompressed4 = ChannelFormatKind.UnsignedBlockCompressed4
cudaChannelFormatKindSignedBlockCompressed4 = ChannelFormatKind.SignedBlockCompressed4
cudaChannelFormatKindUnsignedBlockCompressed5 = ChannelFormatKind.UnsignedBlockCompressed5
cudaChannelFormatKindSignedBlockCompressed5 = ChannelFormatKind.SignedBlockCompressed5
cudaChannelFormatKindUnsignedBlockCompressed6H = ChannelFormatKind.UnsignedBlockCompressed6H
cudaChannelFormatKindSignedBlockCompressed6H = ChannelFormatKind.SignedBlockCompressed6H
cudaChannelFormatKindUnsignedBlockCompressed7 = ChannelFormatKind.UnsignedBlockCompressed7
cudaChannelFormatKindUnsignedBlockCompressed7SRGB = ChannelFormatKind.UnsignedBlockCompressed7SRGB
cudaChannelFormatKindUnsignedNormalized1010102 = ChannelFormatKind.UnsignedNormalized1010102
cudaErrorInvalidValue = Error.InvalidValue
cudaErrorInvalidPitchValue = Error.InvalidPitchValue
cudaErrorInvalidTextureBinding = Error.InvalidTextureBinding
cudaErrorInvalidChannelDescriptor = Error.InvalidChannelDescriptor
cudaErrorInvalidMemcpyDirection = Error.InvalidMemcpyDirection
cudaErrorInvalidFilterSetting = Error.InvalidFilterSetting
cudaErrorInvalidNormSetting = Error.InvalidNormSetting
cudaErrorInvalidSurface = Error.InvalidSurface
cudaErrorInvalidResourceHandle = Error.InvalidResourceHandle
cudaErrorMisalignedAddress = Error.MisalignedAddress
cudaErrorNotSupported = Error.NotSupported
cudaSuccess = Error.Success
cudaFilterModePoint = FilterMode.Point
cudaFilterModeLinear = FilterMode.Linear
cudaFormatModeForced = SurfaceFormatMode.Forced
cudaFormatModeAuto = SurfaceFormatMode.Auto
cudaGraphicsCubeFacePositiveX = GraphicsCubeFace.PositiveX
cudaGraphicsCubeFaceNegativeX = GraphicsCubeFace.NegativeX
cudaGraphicsCubeFacePositiveY = GraphicsCubeFace.PositiveY
cudaGraphicsCubeFaceNegativeY = GraphicsCubeFace.NegativeY
cudaGraphicsCubeFacePositiveZ = GraphicsCubeFace.PositiveZ
cudaGraphicsCubeFaceNegativeZ = GraphicsCubeFace.NegativeZ
cudaMemcpyHostToHost = MemcpyKind.HostToHost
cudaMemcpyHostToDevice = MemcpyKind.HostToDevice
cudaMemcpyDeviceToHost = MemcpyKind.DeviceToHost
cudaMemcpyDeviceToDevice = MemcpyKind.DeviceToDevice
cudaMemcpyDefault = MemcpyKind.Default
cudaReadModeElementType = ReadMode.ElementType
cudaReadModeNormalizedFloat = ReadMode.NormalizedFloat
cudaResourceTypeArray = ResourceType.Array
cudaResourceTypeMipmappedArray = ResourceType.MipmappedArray
cudaResourceTypeLinear = ResourceType.Linear
cudaResourceTypePitch2D = ResourceType.Pitch2D
cudaResViewFormatNone = ResourceViewFormat.None_
cudaResViewFormatUnsignedChar1 = ResourceViewFormat.UnsignedChar1
cudaResViewFormatUnsignedChar2 = ResourceViewFormat.UnsignedChar2
cudaResViewFormatUnsignedChar4 = ResourceViewFormat.UnsignedChar4
cudaResViewFormatSignedChar1 = ResourceViewFormat.SignedChar1
cudaResViewFormatSignedChar2 = ResourceViewFormat.SignedChar2
cudaResViewFormatSignedChar4 = ResourceViewFormat.SignedChar4
cudaResViewFormatUnsignedShort1 = ResourceViewFormat.UnsignedShort1
cudaResViewFormatUnsignedShort2 = ResourceViewFormat.UnsignedShort2
cudaResViewFormatUnsignedShort4 = ResourceViewFormat.UnsignedShort4
cudaResViewFormatSignedShort1 = ResourceViewFormat.SignedShort1
cudaResViewFormatSignedShort2 = ResourceViewFormat.SignedShort2
cudaResViewFormatSignedShort4 = ResourceViewFormat.SignedShort4
cudaResViewFormatUnsignedInt1 = ResourceViewFormat.UnsignedInt1
cudaResViewFormatUnsignedInt2 = ResourceViewFormat.UnsignedInt2
cudaResViewFormatUnsignedInt4 = ResourceViewFormat.UnsignedInt4
cudaResViewFormatSignedInt1 = ResourceViewFormat.SignedInt1
cudaResViewFormatSignedInt2 = ResourceViewFormat.SignedInt2
cudaResViewFormatSignedInt4 = ResourceViewFormat.SignedInt4
cudaResViewFormatHalf1 = ResourceViewFormat.Half1
cudaResViewFormatHalf2 = ResourceViewFormat.Half2
cudaResViewFormatHalf4 = ResourceViewFormat.Half4
cudaResViewFormatFloat1 = ResourceViewFormat.Float1
cudaResViewFormatFloat2 = ResourceViewFormat.Float2
cudaResViewFormatFloat4 = ResourceViewFormat.Float4
cudaResViewFormatUnsignedBlockCompressed1 = ResourceViewFormat.UnsignedBlockCompressed1
cudaResViewFormatUnsignedBlockCompressed2 = ResourceViewFormat.UnsignedBlockCompressed2
cudaResViewFormatUnsignedBlockCompressed3 = ResourceViewFormat.UnsignedBlockCompressed3
cudaResViewFormatUnsignedBlockCompressed4 = ResourceViewFormat.UnsignedBlockCompressed4
cudaResViewFormatSignedBlockCompressed4 = ResourceViewFormat.SignedBlockCompressed4
cudaResViewFormatUnsignedBlockCompressed5 = ResourceViewFormat.UnsignedBlockCompressed5
cudaResViewFormatSignedBlockCompressed5 = ResourceViewFormat.SignedBlockCompressed5
cudaResViewFormatUnsignedBlockCompressed6H = ResourceViewFormat.UnsignedBlockCompressed6H
cudaResViewFormatSignedBlockCompressed6H = ResourceViewFormat.SignedBlockCompressed6H
cudaResViewFormatUnsignedBlockCompressed7 = ResourceViewFormat.UnsignedBlockCompressed7
cudaSurfaceType1D = SurfaceType.Type1D
cudaSurfaceType2D = SurfaceType.Type2D
cudaSurfaceType3D = SurfaceType.Type3D
cudaSurfaceTypeCubemap = SurfaceType.TypeCubemap
cudaSurfaceType1DLayered = SurfaceType.Type1DLayered
cudaSurfaceType2DLayered = SurfaceType.Type2DLayered
cudaSurfaceTypeCubemapLayered = SurfaceType.TypeCubemapLayered
cudaTextureType1D = TextureType.Type1D
cudaTextureType2D = TextureType.Type2D
cudaTextureType3D = TextureType.Type3D
cudaTextureTypeCubemap = TextureType.TypeCubemap
cudaTextureType1DLayered = TextureType.Type1DLayered
cudaTextureType2DLayered = TextureType.Type2DLayered
cudaTextureTypeCubemapLayered = TextureType.TypeCubemapLayered
