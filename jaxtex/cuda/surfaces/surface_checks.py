"""The surfaces that surface functions accept: an object, a bound reference, or an array."""

# pyright: strict

from ...modes import TextureKind
from ..errors import INVALID_VALUE, CudaError, check_alive, check_type
from ..memory.arrays import Array
from .surface_objects import SurfaceObject, check_backing
from .surface_references import SurfaceReference, bound_array

# What surface functions access.
Surface = SurfaceObject | SurfaceReference | Array
REMEDY = "createSurfaceObject makes one, and an Array with ArrayFlags.SurfaceLoadStore is accepted too"


def check_surface(function: str, surface: object) -> Array:
    """The array of a surface. An array that may back a surface is accepted in its place."""
    if isinstance(surface, SurfaceReference):
        surface = bound_array(function, surface)
    if isinstance(surface, Array):
        return check_backing(function, surface)
    array = check_type(function, "surface", surface, SurfaceObject, REMEDY).array
    check_alive(function, "the array of surface", array)
    return array


def array_of_kind(function: str, surface: object, kind: TextureKind) -> Array:
    """The array of a surface, which must be of the given kind."""
    array = check_surface(function, surface)
    if array.kind is not kind:
        raise CudaError(
            INVALID_VALUE,
            f"{function}: surface is of kind {array.kind.value!r}, expected {kind.value!r}; use the function of its "
            f"kind.",
        )
    return array
