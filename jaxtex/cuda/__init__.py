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
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 2)
    >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> point = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
    >>> cuda.tex2D(point, 1.5, 0.5)
    Array(1., dtype=float32)
"""

# Type checkers and editors read `__init__.pyi`, which names the module of each name.

from typing import Any

from .._checks.words import listing
from . import descriptors, device_numbers, enums, errors, kinds, ptx, surfaces
from .declarations import DECLARATIONS
from .memory import arrays, channel_formats, copies, pitched_memory
from .names import WITH_PREFIX, answer
from .textures import texture_functions, texture_objects, texture_references

MODULES = (
    *(enums, errors, kinds, arrays, channel_formats, copies, pitched_memory, descriptors),
    *(ptx, surfaces, texture_objects, texture_references),
)
CLASSES = (
    *("AddressMode", "Array", "ArrayFlags", "BoundTexture", "ChannelFormatDesc", "ChannelFormatKind", "CudaError"),
    *("DeviceProp", "Error", "Extent", "FilterMode", "GraphicsCubeFace", "Memcpy3DParms", "MemcpyKind"),
    *("MipmappedArray", "PitchedPtr", "Pos", "ReadMode", "ResourceDesc", "ResourceType", "ResourceViewDesc"),
    *("ResourceViewFormat", "SurfaceBoundaryMode", "SurfaceFormatMode", "SurfaceObject", "SurfaceReference"),
    *("SurfaceType", "TextureDesc", "TextureObject", "TextureReference", "TextureType"),
)
NAMES = {"NEWEST_COMPUTE_CAPABILITY", *CLASSES, *DECLARATIONS}
# CUDA's names of conversions. Within a class Python changes names of this form.
UNDERSCORED = {f"__{name}": function for name, function in device_numbers.BITS.items()}
DEFINED: dict[str, Any] = {
    **{name: value for module in MODULES for name, value in vars(module).items() if name in NAMES},
    **texture_functions.TEXTURE_FUNCTIONS,
    **surfaces.SURFACE_FUNCTIONS,
    **copies.COPY_FUNCTIONS,
    **channel_formats.HALF_FORMATS,
    **pitched_memory.MAKERS,
    **device_numbers.VECTORS,
    **device_numbers.BITS,
    **UNDERSCORED,
}
# The C++ classes of references.
REFERENCES = {"texture": texture_references.TextureReference, "surface": surfaces.SurfaceReference}
globals().update(DEFINED | REFERENCES)

__all__ = sorted((*NAMES, *UNDERSCORED, *REFERENCES))  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = listing((*__all__, *WITH_PREFIX))


def __getattr__(name: str) -> Any:
    return answer(globals(), name)
