"""The surface functions of device code: a read and a write for each kind of surface.

They take arrays: one call makes the accesses of a whole launch.
"""

import functools
from typing import Any

import jax
from jax.typing import ArrayLike

from ..declarations import SURFACE_PLACES
from ..enums import SurfaceBoundaryMode
from ..functions import Text, made
from ..kinds import KINDS_BY_NAME
from ..memory.arrays import Array
from .surface_access import read_units, write_units
from .surface_objects import Surface

BoundaryMode = SurfaceBoundaryMode | int
TRAP = SurfaceBoundaryMode.Trap
TYPES: dict[str, Any] = {
    "cudaSurfaceObject_t": Surface,
    "int": ArrayLike,
    "cudaSurfaceBoundaryMode": BoundaryMode,
}
# The texels that the functions of each kind access.
PLACES = {
    "1D": "a 1D array at byte x",
    "2D": "a 2D array at byte x of row y",
    "3D": "a 3D array at byte x of row y in slice z",
    "1DLayered": "a layer of a 1D layered array at byte x",
    "2DLayered": "a layer of a 2D layered array at byte x of row y",
    "Cubemap": "a face of a cubemap at byte x of row y",
    "CubemapLayered": "face layerFace % 6 of cubemap layerFace // 6 of a layered cubemap, at byte x of row y",
}
UNITS = {1: "", 2: "; y counts rows", 3: "; y counts rows, and z counts slices"}
SURFACE = (
    "a `SurfaceObject`, a bound `SurfaceReference`, or an `Array` made with ``ArrayFlags.SurfaceLoadStore`` that is "
    "not too large for a surface."
)
WRITTEN = (
    "A new `Array`. If several writes change the same bytes, the last in the flattened (row-major) order of S is kept."
)
READ = "An array of shape S if T is a scalar, S + (n,) if T is a vector of n, with the dtype of T's base type."
EXAMPLES = {
    "surf1Dread": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
    >>> array = cuda.memcpyToArray(array, jnp.array([10.0, 20.0, 30.0, 40.0]))
    >>> cuda.surf1Dread(array, jnp.array([4, 12]))
    Array([20., 40.], dtype=float32)
    """,
    "surf2Dwrite": """
    >>> import jax.numpy as jnp, jaxtex.cuda as cuda
    >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar4"), 2, 2, cuda.ArrayFlags.SurfaceLoadStore)
    >>> array = cuda.surf2Dwrite(jnp.uint32(0x04030201), array, 4 * 1, 0, T="uint")
    >>> cuda.memcpyFromArray(array)[0]
    Array([[0, 0, 0, 0],
           [1, 2, 3, 4]], dtype=uint8)
    """,
    "surfCubemapwrite": """
    >>> from jaxtex import cuda
    >>> flags = cuda.ArrayFlags.Cubemap | cuda.ArrayFlags.SurfaceLoadStore
    >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (2, 2, 6), flags)
    >>> cuda.surfCubemapwrite(7.0, array, 4 * 1, 0, 5).texels[5, 0, :, 0]
    Array([0., 7.], dtype=float32)
    """,
}
__test__ = EXAMPLES


def boundary_mode(outcome: str) -> str:
    return (
        "a `SurfaceBoundaryMode`: what happens if any byte of an access is outside the surface. Zero "
        f"{outcome}. Clamp moves the access to the nearest position where all of it fits, and a layer or face out of "
        "range, also a negative one, to the last. Trap acts as Zero, and is an error under checkify; see "
        "`jaxtex.surface_read`."
    )


def texts_of(kind: str, *, writes: bool) -> dict[str, str]:
    """The texts of the parameters."""
    verb, misaligned = ("write", "the write is dropped") if writes else ("read", "the read returns 0")
    axes = sum(place.split()[1] in "xyz" for place in SURFACE_PLACES[kind].split(", "))
    x = (
        "integers that broadcast with all other indices here to a shape S. **x counts bytes** and must be a multiple "
        f"of the size of T{UNITS[axes]}. A misaligned x raises `CudaError` if its value is known. If it is traced, it "
        f"is an error under checkify; without checkify {misaligned}. Unsigned integers are converted to int as C "
        "converts them, here and in the other indices; integers of other types saturate."
    )
    return {
        "data": "the values to write, of the base type of T; of shape S if T is a scalar, S + (n,) if T is a vector of "
        "n, or of one that broadcasts to it. A tuple holds the n components. A store moves bytes and converts nothing. "
        "But numbers of Python are taken if they fit the base type, and arrays of 64-bit numbers in place of those of "
        "32 bits: floats are rounded, integers saturate.",
        "surfObject": f"{SURFACE} It is not changed." if writes else SURFACE,
        **dict.fromkeys("xyz", x),
        "layer": "integers that broadcast with S: which layer.",
        "face": "integers that broadcast with S: which face, in the order +x, -x, +y, -y, +z, -z.",
        "layerFace": "integers that broadcast with S: 6 * layer + face.",
        "boundaryMode": boundary_mode("drops the write" if writes else "reads 0"),
        "T": f'the name of the type to {verb}, such as ``"uint2"``, of 1 to 16 bytes. The default is the whole texel. '
        "Its size may differ from that of a texel: bytes are reinterpreted.",
    }


def surface_functions() -> dict[str, Any]:
    """The functions by their names."""
    functions: dict[str, Any] = {}
    for kind, place in PLACES.items():
        for verb, body, returns, summary in (
            ("read", read_units, READ, f"Reads {place}."),
            ("write", write_units, WRITTEN, f"Writes to {place}."),
        ):
            name, writes = f"surf{kind}{verb}", verb == "write"
            text = Text(
                summary,
                returns,
                f"To {'`data` and to ' * writes}floating texels if T has the dtype of the format, as of "
                f"`jaxtex.surface_{verb}`. Reinterpreted bits have no gradient.",
                {
                    "CudaError": "cudaErrorInvalidValue, if the surface is of another kind, or if no access has the "
                    "type T; cudaErrorMisalignedAddress, if x is known and misaligned.",
                    "TypeError": "if `surfObject` is no surface, or an index is no integer.",
                },
                EXAMPLES.get(name, ""),
            )
            types = TYPES | {"T": ArrayLike | tuple[ArrayLike, ...]}
            functions[name] = made(
                name,
                functools.partial(body, name, KINDS_BY_NAME[kind]),
                text,
                types,
                texts_of(kind, writes=writes),
                result=Array if writes else jax.Array,
                options={"T": (str | None, None)},
            )
    return functions


SURFACE_FUNCTIONS = surface_functions()
