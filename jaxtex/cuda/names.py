"""CUDA's names with the prefix ``cuda``: the counterpart of each, or what to write instead."""

import functools
from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from fnmatch import fnmatchcase
from typing import Any

from .._checks.words import nearest, no_attribute
from . import enums
from .declarations import RUNTIME, SURFACE_REFERENCES, TEXTURE_REFERENCES, VECTOR_TYPES

# Names without a counterpart: families of them, each with a sentence that says what to write instead
#
# They are the names that a program with textures or surfaces uses beside these: of the runtime and the driver API, of
# CUDA C++, and of the headers of CUDA's samples.


OF_XLA = "memory belongs to XLA, and every texel is resident; leave it out"
OF_DEVICES = (
    "JAX starts its devices by itself: jax.devices() lists them, jax.device_put(x, device) and shardings place data, "
    "and getDeviceProperties has the limits of textures"
)
OF_STREAMS = (
    "a stream orders side effects; here data orders calls, and JAX runs them asynchronously; leave it out, and use "
    "names without Async"
)
OF_THREADS = "a function of arrays makes the accesses of all threads, and the compiler orders them; leave it out"
OF_KERNELS = (
    "a kernel is a function of arrays under jax.jit, which compiles it; a launch is a call, and the shapes of the "
    "coordinates stand for the grid and its blocks"
)
OF_SHARED_MEMORY = (
    "another program changes the memory, and a pure function cannot see it; jnp.asarray copies its numbers to an array"
)
OF_MEMORY = "JAX makes memory, as jnp.zeros((h, w)) does, and releases it when nothing refers to it; malloc makes bytes"
OF_HALVES = "halves are numbers of the dtype jnp.float16, and operators compute with them"
OF_ROUNDING = "operators round to nearest even: a + b, a * b, a / b and jnp.sqrt(x)"
OF_CONVERSIONS = "x.astype(jnp.int32) converts numbers, truncating toward zero; jnp.rint(x) rounds first"

# Families, the first that fits answers: patterns of names as in a shell, and what to write instead.
ABSENT: dict[str, str] = {
    # of the runtime and the driver API
    "cuda*GetSparseProperties cudaArraySparse* cu*GetSparseProperties cuMemMapArrayAsync "
    "cuda*MemoryRequirements cu*MemoryRequirements": OF_XLA,
    "cudaMemcpy*Peer* cuMemcpy*Peer* cudaMemcpy*Batch* cuMemcpy*Batch*": OF_DEVICES,
    "cudaGraphics* cuGraphics* cuda*External* cu*External* cudaIpc* cuIpc* cudaGL* cuGL* cudaD3D* cuD3D* cudaEGL* "
    "cuEGL* cudaVDPAU* cuVDPAU*": OF_SHARED_MEMORY,
    "cuda*Synchronize cu*Synchronize": "a result waits for itself where its numbers are used, and "
    "jax.block_until_ready(x) waits for x",
    "cudaEvent* cuEvent* CUevent* clock clock64 __globaltimer sdk*Timer* cut*Timer*": "to measure time, take "
    "time.perf_counter() before and after jax.block_until_ready(f(x)); data orders calls without events",
    "cudaStream* cuStream* CUstream* cudaLaunchHostFunc* *Async": OF_STREAMS,
    "cudaGraph* cuGraph* CUgraph* cudaLaunch* cuLaunch* cudaConfigureCall cudaSetupArgument cudaFunc* cuFunc* "
    "CUfunction* cudaOccupancy* cuOccupancy* cudaSharedMem* cudaLibrary* cuLibrary* CUlibrary cudaKernel* cuKernel* "
    "CUkernel cuLink* CUlinkState nvrtc* dim3": OF_KERNELS,
    "cuModuleGetTexRef cuTexRefCreate CUtexref* textureReference": "TextureReference makes a reference",
    "cuModuleGetSurfRef CUsurfref* surfaceReference": "SurfaceReference makes a reference",
    "cuda*Symbol* cuModuleGetGlobal* __constant__ __managed__": "pass the array to the function, as an argument",
    "cuModule* CUmodule*": OF_KERNELS,
    "cudaProfiler* cuProfiler* nvtx*": "jax.profiler.trace records a profile",
    "cudaError* CUDA_ERROR_* CUDA_SUCCESS CUresult checkCudaErrors* getLastCudaError CUDA_SAFE_CALL cutil* "
    "gpuErrchk CUDA_CHECK*": "errors are exceptions, CudaError with .code and .name; those that calls here raise are "
    "the members of Error",
    "cudaSetDevice* cudaGetDevice* cudaChooseDevice cudaSetValidDevices cudaDevice* cudaDevAttr* cudaThread* cudaInit* "
    "cudaCtx* cuDevice* cuCtx* cuInit CUdevice CUcontext CUdevice_attribute* CU_DEVICE_* cudaLimit* cudaCpuDeviceId "
    "*GetVersion cutChooseDevice findCudaDevice": OF_DEVICES,
    # of the driver API, by the names of the runtime
    **{
        patterns: f"it is a name of the driver API; use {here}"
        for patterns, here in {
            "cuTexObjectCreate CUtexObject*": "createTextureObject",
            "cuTexObjectDestroy": "destroyTextureObject",
            "cuTexObjectGetTextureDesc": "getTextureObjectTextureDesc",
            "cuTexObjectGetResourceViewDesc": "getTextureObjectResourceViewDesc",
            "cuTexObjectGet*": "getTextureObjectResourceDesc",
            "cuSurfObjectCreate CUsurfObject*": "createSurfaceObject",
            "cuSurfObjectDestroy": "destroySurfaceObject",
            "cuSurfObjectGet*": "getSurfaceObjectResourceDesc",
            "cuArrayCreate* CUarray": "mallocArray",
            "cuArray3DCreate* CUDA_ARRAY*_DESCRIPTOR*": "malloc3DArray, with a format from createChannelDesc and an "
            "Extent",
            "cuArrayDestroy": "freeArray",
            "cuArrayGetPlane": "arrayGetPlane",
            "cuArray*GetDescriptor*": "arrayGetInfo",
            "cuMipmappedArrayCreate CUmipmappedArray": "mallocMipmappedArray",
            "cuMipmappedArrayDestroy": "freeMipmappedArray",
            "cuMipmappedArrayGetLevel": "getMipmappedArrayLevel",
            "cuTexRefSetArray": "bindTextureToArray",
            "cuTexRefSetMipmappedArray": "bindTextureToMipmappedArray",
            "cuTexRefSetAddress2D*": "bindTexture2D",
            "cuTexRefSetAddress cuTexRefSetAddress_v2": "bindTexture",
            "cuTexRef* CU_TRSA_*": "the attributes of a TextureReference, such as filterMode",
            "cuSurfRef*": "bindSurfaceToArray",
            "CU_TRSF_*": "ReadMode, and the fields normalizedCoords, sRGB and seamlessCubemap of TextureDesc",
            "cuMemcpyAtoA*": "memcpyArrayToArray",
            "cuMemcpy?toA*": "memcpyToArray",
            "cuMemcpyAto?*": "memcpyFromArray",
            "cuMemcpy2D* CUDA_MEMCPY2D*": "memcpy2DToArray, memcpy2DFromArray, memcpy2DArrayToArray or memcpy2D",
            "cuMemcpy3D* CUDA_MEMCPY3D*": "memcpy3D, with Memcpy3DParms",
            "cuMemcpy*": "memcpy",
            "cuMemsetD2D*": "memset2D",
            "cuMemset*": "memset",
            "cuMemAllocPitch*": "mallocPitch",
            "cuMemAlloc cuMemAlloc_v2 CUdeviceptr*": "malloc; any array of JAX is memory too",
            "cuMemFree cuMemFree_v2": "free",
            "CUDA_RESOURCE_DESC*": "ResourceDesc",
            "CUDA_RESOURCE_VIEW_DESC*": "ResourceViewDesc",
            "CUDA_TEXTURE_DESC*": "TextureDesc",
            "CUDA_ARRAY3D_*": "ArrayFlags",
            "CU_TR_ADDRESS_MODE_* CUaddress_mode*": "AddressMode",
            "CU_TR_FILTER_MODE_* CUfilter_mode*": "FilterMode",
            "CU_AD_FORMAT_* CUarray_format*": 'ChannelFormatKind; createChannelDesc("float4") makes a format',
            "CU_RESOURCE_TYPE_* CUresourcetype*": "ResourceType",
            "CU_RES_VIEW_FORMAT_* CUresourceViewFormat*": "ResourceViewFormat",
            "CU_CUBEMAP_FACE_* CUarray_cubemap_face*": "GraphicsCubeFace",
            "CU_MEMORYTYPE_* CUmemorytype*": "MemcpyKind, which copies need not be given",
            "cuGetErrorName": "getErrorName",
            "cuGetErrorString": "getErrorString",
        }.items()
    },
    "cudaMalloc* cudaHost* cudaFreeHost cudaMem* cuMem* cudaPointer* cuPointer*": OF_MEMORY,
    "cu[A-Z]* CU[a-z]* CU_*": "it belongs to the driver API; use the names of the runtime, such as mallocArray",
    # of CUDA C++
    "threadIdx blockIdx blockDim gridDim warpSize": "arrays stand for the indices of all threads: "
    "x, y = jnp.arange(w)[None, :], jnp.arange(h)[:, None]",
    "__global__ __device__ __host__ __noinline__ __forceinline__ __restrict__ __launch_bounds__ __grid_constant__ "
    "__cluster_dims__ __CUDA_ARCH__": OF_KERNELS,
    "__shared__ __sync* __threadfence* __barrier* __nanosleep __trap __brkpt cooperative_groups": OF_THREADS,
    "atomic*": "values may fall on one element: x.at[i].add(v), .min, .max and .set change arrays, jaxtex.surface_add, "
    "surface_min and surface_max texels, and sured_b surfaces",
    "__shfl* __ballot* __any __any_sync __all __all_sync __activemask __match_a[nl]* __reduce_*": "what threads "
    "exchange are elements of an array: x.sum(-1), x.max(-1), x.any(-1) or jnp.roll(x, 1, -1)",
    "__ldg __ldc* __ldlu __ldcv __st??": "index the array: x[i], and x.at[i].set(v)",
    "printf cuPrintf*": "jax.debug.print prints what is traced",
    "assert": "jax.experimental.checkify.check is an assertion of what is traced",
    " ".join((*(f"{base}[1-4]" for base in VECTOR_TYPES), "make_*")): "a vector is an array with its components along "
    'the last axis: make_float4(x, y, z, w) makes one, and T="float4" names the type',
    "char uchar short ushort int uint ulong long longlong ulonglong double size_t": "numbers have dtypes, such as "
    "jnp.int32 and jnp.uint8, and counts are int",
    "half half2 __half __half2 __half_raw __nv_bfloat16* bfloat16 __float2half* __half2* __h[a-z]*[a-z0-9]": OF_HALVES,
    "__*_as_*": "jax.lax.bitcast_convert_type(x, jnp.int32) keeps the bits",
    "__*2*_r[nzud] __*2int* __*2uint*": OF_CONVERSIONS,
    "__[fd]*_r[nzud] __fdividef fdividef": OF_ROUNDING,
    "__mul24 __umul24 __mulhi __umulhi __[us]ad __[ur]hadd __hadd": "integers have operators: a * b, abs(a - b)",
    "__popc* __clz* __ffs* __brev*": "jax.lax.population_count and jax.lax.clz count bits",
    "CUDART_* M_PI* INFINITY NAN": "jnp.pi, jnp.inf and jnp.nan are numbers",
    "NULL nullptr": "leave the argument out, or pass None",
    # of other libraries
    "curand*": "jax.random draws numbers",
    "cufft* cublas* cusolver* cusparse* npp* thrust cub": "jnp has sums and sorts, jnp.linalg, and jnp.fft",
}
# Functions of numbers that jax.numpy has by other names, or not as one function.
MATH = {
    **dict.fromkeys(("fma", "mad"), "a * b + c"),
    **dict.fromkeys(("saturate", "clamp"), "jnp.clip(x, low, high)"),
    **{name: f"jnp.{name}imum(a, b)" for name in ("min", "max")},
    **{f"{kind}{name}": f"jnp.{name}imum(a, b)" for kind in ("u", "ll", "ull") for name in ("min", "max")},
    **{f"{name}pi": f"jnp.{name}(jnp.pi * x)" for name in ("sin", "cos")},
    **{f"{name}int": "jnp.rint(x)" for name in ("nearby", "lr", "llr")},
    **dict.fromkeys(("erf", "erfc", "erfinv", "gamma"), "jax.scipy.special"),
    **dict.fromkeys(("lgamma", "tgamma"), "jax.scipy.special.gammaln(x)"),
    **dict.fromkeys(("lerp", "mix"), "a + t * (b - a)"),
    "rsqrt": "jax.lax.rsqrt(x)",
    "rcp": "1 / x",
    "sincos": "(jnp.sin(x), jnp.cos(x))",
    "exp10": "10.0**x",
    "fdim": "jnp.maximum(a - b, 0)",
    "length": "jnp.linalg.norm(x, axis=-1)",
    "normalize": "x / jnp.linalg.norm(x, axis=-1, keepdims=True)",
}

# Those that jax.numpy has by CUDA's name.
ELEMENTWISE = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh"),
    *("cross", "dot", "exp", "exp2", "expm1", "fabs", "floor", "fmax", "fmin", "fmod", "frexp", "hypot", "isfinite"),
    *("isinf", "isnan", "ldexp", "log", "log10", "log1p", "log2", "modf", "nextafter", "pow", "remainder"),
    *("rint", "round", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)


def instead(name: str) -> str | None:
    """What to write in place of a name of CUDA, as a sentence, or None if no family has it."""
    for patterns, sentence in ABSENT.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns.split()):
            return sentence
    stem = name.strip("_")
    for function in (stem, stem.removesuffix("f")):
        if function in MATH:
            return f"functions of numbers are those of JAX: {MATH[function]}"
        if function in ELEMENTWISE:
            return f"functions of numbers are those of JAX: jnp.{function}"
    return None


# Names with a counterpart


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
