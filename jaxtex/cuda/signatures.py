"""The declarations, from CUDA's headers, of the CUDA functions that the functions here are named after.

The error for a call with a missing or an extra argument shows this declaration.
"""

# pyright: strict

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .._checks.integers import in_native_order

P = ParamSpec("P")
R = TypeVar("R")

KIND = "cudaMemcpyKind kind"
OF_ARRAY = "const cudaChannelFormatDesc* desc"
# Functions of the host, each with the parameters of its declaration.
HOST_FUNCTIONS = {
    "arrayGetInfo": "cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags, cudaArray_t array",
    "arrayGetPlane": "cudaArray_t* pPlaneArray, cudaArray_t hArray, unsigned int planeIdx",
    "bindSurfaceToArray": f"const surfaceReference* surfref, cudaArray_const_t array, {OF_ARRAY}",
    "bindTexture": f"size_t* offset, const textureReference* texref, const void* devPtr, {OF_ARRAY}, "
    "size_t size = UINT_MAX",
    "bindTexture2D": f"size_t* offset, const textureReference* texref, const void* devPtr, {OF_ARRAY}, size_t width, "
    "size_t height, size_t pitch",
    "bindTextureToArray": f"const textureReference* texref, cudaArray_const_t array, {OF_ARRAY}",
    "bindTextureToMipmappedArray": "const textureReference* texref, cudaMipmappedArray_const_t mipmappedArray, "
    f"{OF_ARRAY}",
    "createChannelDesc": "int x, int y, int z, int w, cudaChannelFormatKind f",
    "createChannelDescHalf": "",
    "createChannelDescHalf1": "",
    "createChannelDescHalf2": "",
    "createChannelDescHalf4": "",
    "createSurfaceObject": "cudaSurfaceObject_t* pSurfObject, const cudaResourceDesc* pResDesc",
    "createTextureObject": "cudaTextureObject_t* pTexObject, const cudaResourceDesc* pResDesc, "
    "const cudaTextureDesc* pTexDesc, const cudaResourceViewDesc* pResViewDesc",
    "destroySurfaceObject": "cudaSurfaceObject_t surfObject",
    "destroyTextureObject": "cudaTextureObject_t texObject",
    "deviceGetTexture1DLinearMaxWidth": "size_t* maxWidthInElements, const cudaChannelFormatDesc* fmtDesc, int device",
    "free": "void* devPtr",
    "freeArray": "cudaArray_t array",
    "freeMipmappedArray": "cudaMipmappedArray_t mipmappedArray",
    "getChannelDesc": "cudaChannelFormatDesc* desc, cudaArray_const_t array",
    "getErrorName": "cudaError_t error",
    "getErrorString": "cudaError_t error",
    "getLastError": "",
    "getMipmappedArrayLevel": "cudaArray_t* levelArray, cudaMipmappedArray_const_t mipmappedArray, unsigned int level",
    "getSurfaceObjectResourceDesc": "cudaResourceDesc* pResDesc, cudaSurfaceObject_t surfObject",
    "getSurfaceReference": "const surfaceReference** surfref, const void* symbol",
    "getTextureAlignmentOffset": "size_t* offset, const textureReference* texref",
    "getTextureObjectResourceDesc": "cudaResourceDesc* pResDesc, cudaTextureObject_t texObject",
    "getTextureObjectResourceViewDesc": "cudaResourceViewDesc* pResViewDesc, cudaTextureObject_t texObject",
    "getTextureObjectTextureDesc": "cudaTextureDesc* pTexDesc, cudaTextureObject_t texObject",
    "getTextureReference": "const textureReference** texref, const void* symbol",
    "malloc": "void** devPtr, size_t size",
    "malloc3D": "cudaPitchedPtr* pitchedDevPtr, cudaExtent extent",
    "malloc3DArray": f"cudaArray_t* array, {OF_ARRAY}, cudaExtent extent, unsigned int flags = 0",
    "mallocArray": f"cudaArray_t* array, {OF_ARRAY}, size_t width, size_t height = 0, unsigned int flags = 0",
    "mallocMipmappedArray": f"cudaMipmappedArray_t* mipmappedArray, {OF_ARRAY}, cudaExtent extent, "
    "unsigned int numLevels, unsigned int flags = 0",
    "mallocPitch": "void** devPtr, size_t* pitch, size_t width, size_t height",
    "memcpy": f"void* dst, const void* src, size_t count, {KIND}",
    "memcpy2D": f"void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, {KIND}",
    "memcpy2DArrayToArray": "cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, "
    f"size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, {KIND} = cudaMemcpyDeviceToDevice",
    "memcpy2DFromArray": "void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, "
    f"size_t width, size_t height, {KIND}",
    "memcpy2DToArray": "cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, "
    f"size_t width, size_t height, {KIND}",
    "memcpy3D": "const cudaMemcpy3DParms* p",
    "memcpyArrayToArray": "cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, "
    f"size_t wOffsetSrc, size_t hOffsetSrc, size_t count, {KIND} = cudaMemcpyDeviceToDevice",
    "memcpyFromArray": "void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count, " + KIND,
    "memcpyToArray": "cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count, " + KIND,
    "memset": "void* devPtr, int value, size_t count",
    "memset2D": "void* devPtr, size_t pitch, int value, size_t width, size_t height",
    "memset3D": "cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent",
    "peekAtLastError": "",
    "unbindTexture": "const textureReference* texref",
}
# Functions with names of their own in CUDA, each with its whole declaration.
OTHER_FUNCTIONS = {
    "make_cudaExtent": "cudaExtent make_cudaExtent(size_t w, size_t h, size_t d)",
    "make_cudaPitchedPtr": "cudaPitchedPtr make_cudaPitchedPtr(void* d, size_t p, size_t xsz, size_t ysz)",
    "make_cudaPos": "cudaPos make_cudaPos(size_t x, size_t y, size_t z)",
    "float2half_rn": "unsigned short __float2half_rn(float x)",
    "half2float": "float __half2float(unsigned short x)",
    "hiloint2double": "double __hiloint2double(int hi, int lo)",
    "double2hiint": "int __double2hiint(double x)",
    "double2loint": "int __double2loint(double x)",
    "float_as_int": "int __float_as_int(float x)",
    "int_as_float": "float __int_as_float(int x)",
    "float_as_uint": "unsigned int __float_as_uint(float x)",
    "uint_as_float": "float __uint_as_float(unsigned int x)",
    "sust_p": "sust.p{.dim}.{vec}.b32{.clamp} [surface, {x, ...}], {data}; of PTX",
}
# Coordinates of the texture functions, in their declarations.
PLACES = {
    "1D": "float x",
    "2D": "float x, float y",
    "3D": "float x, float y, float z",
    "1DLayered": "float x, int layer",
    "2DLayered": "float x, float y, int layer",
    "Cubemap": "float x, float y, float z",
    "CubemapLayered": "float x, float y, float z, int layer",
}
VECTORS = {"1D": "float", "2D": "float2", "3D": "float4", "1DLayered": "float", "2DLayered": "float2"}
SURFACE_PLACES = {
    "1D": "int x",
    "2D": "int x, int y",
    "3D": "int x, int y, int z",
    "1DLayered": "int x, int layer",
    "2DLayered": "int x, int y, int layer",
    "Cubemap": "int x, int y, int face",
    "CubemapLayered": "int x, int y, int layerFace",
}
# Texture functions with a form that tells whether the texels of a sparse array are resident.
SPARSE = ("2D", "3D", "2DLayered")


def texture_signatures() -> dict[str, str]:
    """The declarations of the texture functions."""
    found = {
        "tex1Dfetch": "T tex1Dfetch<T>(cudaTextureObject_t texObj, int x)",
        "tex2Dgather": "T tex2Dgather<T>(cudaTextureObject_t texObj, float x, float y, int comp = 0)",
    }
    for name, place in PLACES.items():
        vector = VECTORS.get(name, "float4")
        resident = ", bool* isResident" if name in SPARSE else ""
        for suffix, more in {"": "", "Lod": ", float level", "Grad": f", {vector} dPdx, {vector} dPdy"}.items():
            declared = f"cudaTextureObject_t texObj, {place}{more}{resident and f'[{resident}]'}"
            found[f"tex{name}{suffix}"] = f"T tex{name}{suffix}<T>({declared})"
    return found


def surface_signatures() -> dict[str, str]:
    """The declarations of the surface functions."""
    mode = "cudaSurfaceBoundaryMode boundaryMode = cudaBoundaryModeTrap"
    reads = {
        f"surf{name}read": f"T surf{name}read<T>(cudaSurfaceObject_t surfObj, {place}, {mode})"
        for name, place in SURFACE_PLACES.items()
    }
    return reads | {
        f"surf{name}write": f"void surf{name}write(T data, cudaSurfaceObject_t surfObj, {place}, {mode})"
        for name, place in SURFACE_PLACES.items()
    }


SIGNATURES = {
    **{name: f"cudaError_t cuda{name[0].upper()}{name[1:]}({declared})" for name, declared in HOST_FUNCTIONS.items()},
    **OTHER_FUNCTIONS,
    **texture_signatures(),
    **surface_signatures(),
}


def cuda_function(function: Callable[P, R]) -> Callable[P, R]:
    """Names CUDA's own signature in the error for a call that lacks an argument, or has one too many.

    Arrays of NumPy arrive in the byte order of the machine.
    """
    return with_signature(SIGNATURES[function.__name__])(function)


def with_signature(declared: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `cuda_function`, with the declaration given."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            args, kwargs = in_native_order((args, kwargs))
            try:
                return function(*args, **kwargs)
            except TypeError:
                fault = _fault_of(signature, args, kwargs)
                if fault is None:
                    raise
            names = ", ".join(signature.parameters)
            raise TypeError(
                f"{function.__name__}: {fault}; CUDA declares {declared}, and its parameters here are {names}."
            )

        return call

    return decorate


def missing(name: str, argument: str) -> TypeError:
    """The error of a call without an argument that only some forms of the call may leave out."""
    return TypeError(f"{name}: missing a required argument: {argument!r}; CUDA declares {SIGNATURES[name]}.")


def _fault_of(signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]) -> str | None:
    """What is wrong with the arguments of a call, or None if they fit the parameters."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as fault:
        return str(fault)
    return None
