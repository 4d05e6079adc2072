"""The declarations of CUDA's functions: the one table of their names, parameters and sources.

Signatures, errors of wrong calls, parts of docstrings, and the tables in the reference come from here. Parameters have
CUDA's names: those of its headers, or of its programming guide where the headers name none.
"""

from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter as CUDA declares it: its type, its name, and its default, or an empty string."""

    type: str
    name: str
    default: str


class Declaration(NamedTuple):
    """A function: its name and parameters here, its declaration in CUDA, and its source in CUDA's documentation.

    `differs` tells how it differs from CUDA's function; it is empty if only the returned results do.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    source: str
    differs: str


OF_RUNTIME = "CUDA Runtime API, `{}`."
OF_REFERENCES = 'CUDA C++ Programming Guide 11, "Texture Reference API".'
OF_SURFACE_REFERENCES = 'CUDA C++ Programming Guide 11, "Surface Reference API".'
OF_VECTORS = 'CUDA C++ Programming Guide, "Built-in Vector Types".'
OF_MATH = "CUDA Math API, `{}`."
OF_HALVES = "CUDA Math API, `{}`, as before CUDA 9."
OF_TEXTURES = 'CUDA C++ Programming Guide, "Texture Functions", `{}`.'
OF_SURFACES = 'CUDA C++ Programming Guide, "Surface Functions", `{}`.'

RELEASES = "releases nothing; marks the object, and using it later raises an error (except in a compiled function)"
NEW_DESTINATION = "returns the new destination; Python numbers and 64-bit numbers are taken where they fit"
SHORT_FORM = "returns the new destination; a short form without offsets and count copies whole arrays and levels"
ZEROS = "the elements are 0"
BOUND = "returns a `BoundTexture`, and does not change the reference"
OWN_SYMBOL = "a reference is its own symbol"
TRANSFORMED = "an object that went through a JAX transformation has no descriptors (error 801)"
NO_ERRORS = "always `Error.Success`: errors are exceptions"
SNAPSHOT = "the object is a snapshot of its resource; after a copy or a write, create another"

DESC = "const cudaChannelFormatDesc* desc"
KIND = "cudaMemcpyKind kind"
TO_ARRAY = "cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src"
TO_AND_FROM = (
    "cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc"
)
REFERENCE = "const textureReference* texref"
# Functions of the host: pointers to results, up to a semicolon, and the other parameters; and how each one differs.
RUNTIME = {
    "arrayGetInfo": ("cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags; cudaArray_t array", ""),
    "arrayGetPlane": (
        "cudaArray_t* pPlaneArray; cudaArray_t hArray, unsigned int planeIdx",
        "a copy of the plane; use what a copy or a write returns in its place",
    ),
    "createChannelDesc": (
        "int x, int y, int z, int w, cudaChannelFormatKind f",
        '`cudaCreateChannelDesc<float4>()` becomes `createChannelDesc("float4")`',
    ),
    **dict.fromkeys((f"createChannelDescHalf{n}" for n in ("", 1, 2, 4)), ("", "")),
    "createSurfaceObject": ("cudaSurfaceObject_t* pSurfObject; const cudaResourceDesc* pResDesc", SNAPSHOT),
    "createTextureObject": (
        "cudaTextureObject_t* pTexObject; const cudaResourceDesc* pResDesc, const cudaTextureDesc* pTexDesc, "
        "const cudaResourceViewDesc* pResViewDesc",
        SNAPSHOT,
    ),
    "destroySurfaceObject": ("cudaSurfaceObject_t surfObject", RELEASES),
    "destroyTextureObject": ("cudaTextureObject_t texObject", RELEASES),
    "deviceGetTexture1DLinearMaxWidth": (
        "size_t* maxWidthInElements; const cudaChannelFormatDesc* fmtDesc, int device",
        "the limit in the guide's table, for `compute_capability=`, the same for every format",
    ),
    "free": ("void* devPtr", "marks a `PitchedPtr`; an array has no mark"),
    "freeArray": ("cudaArray_t array", RELEASES),
    "freeMipmappedArray": ("cudaMipmappedArray_t mipmappedArray", RELEASES),
    "getChannelDesc": ("cudaChannelFormatDesc* desc; cudaArray_const_t array", ""),
    "getDeviceProperties": (
        "cudaDeviceProp* prop; int device",
        "the limits in the guide's table, for `compute_capability=`; no device is asked",
    ),
    "getErrorName": ("cudaError_t error", ""),
    "getErrorString": ("cudaError_t error", ""),
    "getLastError": ("", NO_ERRORS),
    "getMipmappedArrayLevel": (
        "cudaArray_t* levelArray; cudaMipmappedArray_const_t mipmappedArray, unsigned int level",
        "a copy of the level; `memcpyToArray(mipmappedArray, levelArray, level=1)` stores it",
    ),
    "getSurfaceObjectResourceDesc": ("cudaResourceDesc* pResDesc; cudaSurfaceObject_t surfObject", ""),
    "getTextureObjectResourceDesc": ("cudaResourceDesc* pResDesc; cudaTextureObject_t texObject", TRANSFORMED),
    "getTextureObjectResourceViewDesc": (
        "cudaResourceViewDesc* pResViewDesc; cudaTextureObject_t texObject",
        TRANSFORMED,
    ),
    "getTextureObjectTextureDesc": ("cudaTextureDesc* pTexDesc; cudaTextureObject_t texObject", TRANSFORMED),
    "malloc": ("void** devPtr; size_t size", "bytes, which are 0; any array of JAX or NumPy is linear memory too"),
    "malloc3D": ("cudaPitchedPtr* pitchedDevPtr; cudaExtent extent", "returns a `PitchedPtr` of bytes, which are 0"),
    "malloc3DArray": (f"cudaArray_t* array; {DESC}, cudaExtent extent, unsigned int flags = 0", ZEROS),
    "mallocArray": (f"cudaArray_t* array; {DESC}, size_t width, size_t height = 0, unsigned int flags = 0", ZEROS),
    "mallocMipmappedArray": (
        f"cudaMipmappedArray_t* mipmappedArray; {DESC}, cudaExtent extent, unsigned int numLevels, "
        "unsigned int flags = 0",
        ZEROS,
    ),
    "mallocPitch": (
        "void** devPtr, size_t* pitch; size_t width, size_t height",
        "returns a `PitchedPtr` of bytes, which are 0",
    ),
    "memcpy": (f"void* dst, const void* src, size_t count, {KIND}", NEW_DESTINATION),
    "memcpy2D": (
        f"void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, {KIND}",
        NEW_DESTINATION,
    ),
    "memcpy2DArrayToArray": (
        f"{TO_AND_FROM}, size_t width, size_t height, {KIND} = cudaMemcpyDeviceToDevice",
        NEW_DESTINATION,
    ),
    "memcpy2DFromArray": (
        "void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width, "
        f"size_t height, {KIND}",
        NEW_DESTINATION,
    ),
    "memcpy2DToArray": (f"{TO_ARRAY}, size_t spitch, size_t width, size_t height, {KIND}", NEW_DESTINATION),
    "memcpy3D": ("const cudaMemcpy3DParms* p", NEW_DESTINATION),
    "memcpyArrayToArray": (f"{TO_AND_FROM}, size_t count, {KIND} = cudaMemcpyDeviceToDevice", NEW_DESTINATION),
    "memcpyFromArray": (
        f"void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count, {KIND}",
        SHORT_FORM,
    ),
    "memcpyToArray": (f"{TO_ARRAY}, size_t count, {KIND}", SHORT_FORM),
    "memset": ("void* devPtr, int value, size_t count", "returns the new memory"),
    "memset2D": ("void* devPtr, size_t pitch, int value, size_t width, size_t height", "returns the new memory"),
    "memset3D": ("cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent", "returns the new memory"),
    "peekAtLastError": ("", NO_ERRORS),
}
TEXTURE_REFERENCES = {
    "bindTexture": (
        f"size_t* offset, {REFERENCE}, const void* devPtr, {DESC}, size_t size = UINT_MAX",
        f"{BOUND}; `offset` is `0` or `None`, or left out",
    ),
    "bindTexture2D": (
        f"size_t* offset, {REFERENCE}, const void* devPtr, {DESC}, size_t width, size_t height, size_t pitch",
        f"{BOUND}; `offset` is `0` or `None`, or left out",
    ),
    "bindTextureToArray": (f"{REFERENCE}, cudaArray_const_t array, {DESC}", BOUND),
    "bindTextureToMipmappedArray": (f"{REFERENCE}, cudaMipmappedArray_const_t mipmappedArray, {DESC}", BOUND),
    "getTextureAlignmentOffset": (f"size_t* offset; {REFERENCE}", ""),
    "getTextureReference": ("const textureReference** texref; const void* symbol", OWN_SYMBOL),
    "unbindTexture": (REFERENCE, "unbinds this object; copies that compiled functions received stay bound"),
}
SURFACE_REFERENCES = {
    "bindSurfaceToArray": (
        f"const surfaceReference* surfref, cudaArray_const_t array, {DESC}",
        "returns a bound `SurfaceReference`, and does not change the reference",
    ),
    "getSurfaceReference": ("const surfaceReference** surfref; const void* symbol", OWN_SYMBOL),
}
STRUCTS = {
    "make_cudaExtent": "cudaExtent make_cudaExtent(size_t w, size_t h, size_t d)",
    "make_cudaPitchedPtr": "cudaPitchedPtr make_cudaPitchedPtr(void* d, size_t p, size_t xsz, size_t ysz)",
    "make_cudaPos": "cudaPos make_cudaPos(size_t x, size_t y, size_t z)",
}
HALVES = "float16 numbers are unsigned shorts, as before CUDA 9"
DOUBLES = "need 64-bit numbers, `jax_enable_x64`"
# Functions of the math API without the two underscores with which their names start in CUDA: result and parameters.
INTRINSICS = {
    "float2half_rn": ("unsigned short", "float x", OF_HALVES, HALVES),
    "half2float": ("float", "unsigned short x", OF_HALVES, HALVES),
    "hiloint2double": ("double", "int hi, int lo", OF_MATH, DOUBLES),
    "double2hiint": ("int", "double x", OF_MATH, DOUBLES),
    "double2loint": ("int", "double x", OF_MATH, DOUBLES),
    "float_as_int": ("int", "float x", OF_MATH, ""),
    "int_as_float": ("float", "int x", OF_MATH, ""),
    "float_as_uint": ("unsigned int", "float x", OF_MATH, ""),
    "uint_as_float": ("float", "unsigned int x", OF_MATH, ""),
}
VECTOR_TYPES = (
    *("char", "uchar", "short", "ushort", "int", "uint", "float"),
    *("long", "ulong", "longlong", "ulonglong", "double"),
)

# The coordinates of texture and surface functions, by the name of the kind in them.
PLACES = {
    "1D": "float x",
    "2D": "float x, float y",
    "3D": "float x, float y, float z",
    "1DLayered": "float x, int layer",
    "2DLayered": "float x, float y, int layer",
    "Cubemap": "float x, float y, float z",
    "CubemapLayered": "float x, float y, float z, int layer",
}
SURFACE_PLACES = {
    "1D": "int x",
    "2D": "int x, int y",
    "3D": "int x, int y, int z",
    "1DLayered": "int x, int layer",
    "2DLayered": "int x, int y, int layer",
    "Cubemap": "int x, int y, int face",
    "CubemapLayered": "int x, int y, int layerFace",
}
# The parameters that a suffix adds, where V is the vector type of the coordinates: a float4 has one component more.
SUFFIXES = {"": "", "Lod": ", float level", "Grad": ", V dPdx, V dPdy"}
VECTORS = {"1D": "float", "2D": "float2", "3D": "float4"}
# Kinds whose functions have a form in CUDA that reports the residency of sparse texels.
SPARSE = ("2D", "3D", "2DLayered")
RESIDENT = "[, bool* isResident]"
BOUNDARY = "cudaSurfaceBoundaryMode boundaryMode = cudaBoundaryModeTrap"
READS = (
    "takes arrays of coordinates; `T=` names the type; in all recorded reads the values are those of an H200's texture "
    "unit, bit for bit"
)
ACCESSES = "takes arrays of indices; `T=` names the type"
WRITES = "takes arrays, and returns the new `Array`; of several writes to one texel the last one wins"
DIFFERENCES = {
    "": READS,
    "Lod": f"{READS}; levels are arrays",
    "Grad": f"{READS}, except anisotropic reads, which are close; derivatives are arrays or tuples",
}
OF_ANY_KIND = "one function for every kind of surface, which returns the new `Array`"
# Instructions of PTX, for which CUDA C++ has no functions.
PTX = {
    "suq": ("suq.query.b32 d, [surface]", "the query is a string"),
    "sured_b": ("sured.b.op.geom.ctype.clamp [surface, {x, ...}], data", OF_ANY_KIND),
    "sured_p": ("sured.p.op.geom.b32.clamp [surface, {x, ...}], data", f"{OF_ANY_KIND}; texels have 4 bytes"),
    "sust_p": ("sust.p.geom.vec.b32.clamp [surface, {x, ...}], {data}", OF_ANY_KIND),
    "txq": ("txq.query.b32 d, [texture]; txq.level.query.b32 d, [texture], lod", "the query is a string"),
}


def declaration(name: str, text: str, source: str, differs: str = "", results: int = 0) -> Declaration:
    """A declaration whose first parameters are pointers to results, which functions here return."""
    start, end = text.index("("), text.rindex(")")
    listed = [part for part in text[start + 1 : end].replace(RESIDENT, "").split(", ") if part]
    cuda_name = text[:start].removesuffix("<T>").split()[-1]
    return Declaration(name, text, tuple(map(parameter, listed[results:])), source.format(cuda_name), differs)


def parameter(text: str) -> Parameter:
    declared, _, default = text.partition(" = ")
    type_, _, name = declared.rpartition(" ")
    return Parameter(type_, name, default)


def of_runtime(rows: dict[str, tuple[str, str]], source: str) -> dict[str, Declaration]:
    """The declarations of functions of the host, whose names in CUDA have the prefix ``cuda``."""
    declared: dict[str, Declaration] = {}
    for name, (parameters, differs) in rows.items():
        results = parameters.partition(";")[0].count(",") + 1 if ";" in parameters else 0
        text = f"cudaError_t cuda{name[0].upper()}{name[1:]}({parameters.replace('; ', ', ')})"
        declared[name] = declaration(name, text, source, differs, results)
    return declared


def of_vectors() -> dict[str, Declaration]:
    differs = "components are arrays; the result has them along the last axis"
    names = {(base, n): f"make_{base}{n}" for base in VECTOR_TYPES for n in (1, 2, 3, 4)}
    return {
        name: declaration(
            name, f"{base}{n} {name}({', '.join(f'{base} {c}' for c in 'xyzw'[:n])})", OF_VECTORS, differs
        )
        for (base, n), name in names.items()
    }


def of_textures() -> dict[str, Declaration]:
    """The texture functions: each kind with each suffix, and the two that have a form of their own."""
    declared = {
        "tex1Dfetch": declaration(
            "tex1Dfetch", "T tex1Dfetch<T>(cudaTextureObject_t texObject, int x)", OF_TEXTURES, ACCESSES
        ),
        "tex2Dgather": declaration(
            "tex2Dgather",
            "T tex2Dgather<T>(cudaTextureObject_t texObject, float x, float y, int comp = 0)",
            OF_TEXTURES,
            "takes arrays of coordinates",
        ),
    }
    for kind, place in PLACES.items():
        resident = RESIDENT if kind in SPARSE else ""
        vector = VECTORS.get(kind.removesuffix("Layered"), "float4")
        for suffix, more in SUFFIXES.items():
            name = f"tex{kind}{suffix}"
            text = f"T {name}<T>(cudaTextureObject_t texObject, {place}{more.replace('V ', vector + ' ')}{resident})"
            declared[name] = declaration(name, text, OF_TEXTURES, DIFFERENCES[suffix])
    return declared


def of_surfaces() -> dict[str, Declaration]:
    declared: dict[str, Declaration] = {}
    for kind, place in SURFACE_PLACES.items():
        read, write = f"surf{kind}read", f"surf{kind}write"
        where = f"cudaSurfaceObject_t surfObject, {place}, {BOUNDARY}"
        declared[read] = declaration(read, f"T {read}<T>({where})", OF_SURFACES, ACCESSES)
        declared[write] = declaration(write, f"void {write}(T data, {where})", OF_SURFACES, WRITES)
    return declared


DECLARATIONS = {
    **of_runtime(RUNTIME, OF_RUNTIME),
    **of_runtime(TEXTURE_REFERENCES, OF_REFERENCES),
    **of_runtime(SURFACE_REFERENCES, OF_SURFACE_REFERENCES),
    **{name: declaration(name, text, OF_RUNTIME) for name, text in STRUCTS.items()},
    **{
        name: declaration(name, f"{result} __{name}({declared})", source, differs)
        for name, (result, declared, source, differs) in INTRINSICS.items()
    },
    **of_vectors(),
    **of_textures(),
    **of_surfaces(),
    **{
        name: Declaration(name, f"{text}; of PTX", (), f"PTX ISA, `{name.replace('_', '.')}`.", differs)
        for name, (text, differs) in PTX.items()
    },
}
