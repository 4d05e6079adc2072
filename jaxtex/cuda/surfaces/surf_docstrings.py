"""Docstrings of the surface functions: the texts that fifteen functions share."""

# pyright: strict

from typing import cast

from ..docstrings import Function, complete, coordinates_of
from ..signatures import cuda_function

# The units of the coordinates other than x.
OTHER_COORDINATES = {1: "", 2: "; y counts rows", 3: "; y counts rows, and z counts slices"}
READ_RESULT = "An array of shape S if T is a scalar, S + (n,) if T is a vector of n, with the dtype of T's base type."
WRITE_RESULT = (
    "A new `Array`. If several writes change the same bytes, the last in the flattened (row-major) order of S is kept."
)
SURFACE = (
    "a `SurfaceObject`, a bound `SurfaceReference`, or an `Array` made with ``ArrayFlags.SurfaceLoadStore`` that is "
    "not too large for a surface."
)
WRONG_CLASS = "if `surface` is no surface, or an index is no integer."


def surface_function(function: Function) -> Function:
    """Adds the sections of a surface function to its docstring, as its name and its parameters require."""
    name, count = function.__name__, len(coordinates_of(function))
    writes = name.endswith("write")
    verb, misaligned = ("write", "the write is dropped") if writes else ("read", "the read returns 0")
    gradient_of = "`data` and to floating texels" if writes else "floating texels"
    arguments = {
        "data": "the values to write, of the base type of T; of shape S if T is a scalar, S + (n,) if T is a vector of "
        "n, or of one that broadcasts to it. A store moves bytes and converts nothing. But numbers of Python are "
        "taken if they fit the base type, and arrays of 64-bit numbers in place of those of 32 bits: floats are "
        "rounded, integers saturate.",
        "surface": f"{SURFACE} It is not changed." if writes else SURFACE,
        "x": "integers that broadcast with all other indices here to a shape S. **x counts bytes** and must be a "
        f"multiple of the size of T{OTHER_COORDINATES[count]}. A misaligned x raises `CudaError` if its value "
        f"is known. If it is traced, it is an error under checkify; without checkify {misaligned}. Unsigned integers "
        "are converted to int as C converts them, here and in the other indices; integers of other types saturate.",
        "layer": "integers that broadcast with S: which layer.",
        "face": "integers that broadcast with S: which face, in the order +x, -x, +y, -y, +z, -z.",
        "layerFace": "integers that broadcast with S: 6 * layer + face.",
        "boundaryMode": _boundary_mode(writes=writes),
        "T": f'the name of the type to {verb}, such as ``"uint2"``, of 1 to 16 bytes. The default is the whole texel. '
        "Its size may differ from that of a texel: bytes are reinterpreted.",
    }
    gradients = (
        f"To {gradient_of} if T has the dtype of the format, as of `jaxtex.surface_{verb}`. Reinterpreted bits have no "
        "gradient."
    )
    raises = {
        "CudaError": "cudaErrorInvalidValue, if the surface is of another kind, or if no access has the type T; "
        "cudaErrorMisalignedAddress, if x is known and misaligned.",
        "TypeError": WRONG_CLASS,
    }
    source = f'CUDA C++ Programming Guide, "Surface Functions", `{name}`.'
    completed = complete(function, arguments, WRITE_RESULT if writes else READ_RESULT, gradients, raises, source)
    return cast(Function, cuda_function(completed))


def formatted_store_function(function: Function) -> Function:
    """Adds the sections of a formatted store to its docstring."""
    arguments = {
        "data": "the components, of shape S + (n,) with n = 1, 2 or 4, or of one that broadcasts to it: float32 for "
        "float and normalized formats, uint32 for unsigned and int32 for signed ones. Integers saturate to the range "
        "of a channel. Halves are truncated toward zero. Fractions are clamped, and rounded to the codes of a "
        "normalized format as the hardware rounds them. Missing components are 0, and extra components are dropped.",
        "surface": f"{SURFACE} It is not changed.",
        "x": "integers that broadcast with all other indices here to a shape S. **x counts texels** here, not bytes.",
        "coords": "y, z, and the layer or face, as many as the surface has; 6 * layer + face for a layered cubemap.",
        "boundaryMode": _boundary_mode(writes=True),
    }
    gradients = (
        "To `data` and to the texels of float and half formats; truncation counts as the identity. Integer and "
        "normalized formats have no gradient."
    )
    raises = {
        "CudaError": "cudaErrorInvalidValue, if the number of coordinates does not fit the surface, or if `data` does "
        "not fit its format.",
        "TypeError": WRONG_CLASS,
    }
    completed = complete(function, arguments, WRITE_RESULT, gradients, raises, "PTX ISA, `sust.p`.")
    return cast(Function, cuda_function(completed))


def _boundary_mode(*, writes: bool) -> str:
    return (
        "a `SurfaceBoundaryMode`: what happens if any byte of an access is outside the surface. Zero "
        f"{'drops the write' if writes else 'reads 0'}. Clamp moves the access to the nearest position where all of it "
        "fits, and a layer or face out of range, also a negative one, to the last. Trap acts as Zero, and is an error "
        "under checkify; see `jaxtex.surface_read`."
    )
