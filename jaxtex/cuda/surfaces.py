"""CUDA's surfaces: arrays that are read and written by integer coordinates."""

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .. import texture as core
from .._checks.dropped import mention_dropped, watch
from .._checks.numbers import known_integers
from .._engine.describe.plan import ReadArguments
from .._jax.calls import typed_jit
from .._jax.shapes import broadcast_shapes
from .._jax.versions import is_x64, stack
from .._reads.arguments import check_integer
from .._tables.address_rules import clamp, is_inside, last
from ..modes import TextureKind
from ..surface import OUTSIDE, report, surface_add, surface_max, surface_min, surface_read, surface_write
from .declarations import SURFACE_PLACES
from .descriptors import ResourceDesc
from .enums import ArrayFlags, Error, ResourceType, SurfaceBoundaryMode, SurfaceType
from .errors import CudaError, check_alive, check_type, choose, invalid, release
from .functions import Text, cuda_function, made
from .kinds import KINDS_BY_NAME, NEWEST_COMPUTE_CAPABILITY, TEXTURE_KINDS, check_limits
from .memory.arrays import Array, check_no_planes, will_be_written
from .memory.channel_formats import BASE_TYPES, ChannelFormatDesc, check_desc, parse_type
from .memory.numbers import as_numbers, bit_cast, is_literal, word_dtype
from .structs import OneLine, Struct, struct, value

# Surface objects and references: immutable values, made of an array
#
# CUDA 12 removed references. Binding one returns a bound copy, which surface functions access.


NAME = "createSurfaceObject"


@value("array")
class SurfaceObject(OneLine):
    """A surface that can be read and written: `createSurfaceObject` makes one.

    It is a pytree, so that jitted functions take it as an argument. There is no handle, and nothing needs to be
    destroyed.

    Attributes:
        array: the `Array` of which it is made.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> surface = cuda.createSurfaceObject(cuda.ResourceDesc.Array(array))
        >>> cuda.surf1Dwrite(7.0, surface, 3 * 4).texels[:, 0]
        Array([0., 0., 0., 7.], dtype=float32)
    """

    array: Array


@cuda_function
def createSurfaceObject(
    pResDesc: ResourceDesc, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY
) -> SurfaceObject:
    """Makes a surface object of an array: `cudaCreateSurfaceObject`.

    Args:
        pResDesc: ``ResourceDesc.Array(array)`` of an array made with ``ArrayFlags.SurfaceLoadStore``. For a level of a
            mipmapped array, `getMipmappedArrayLevel` returns the array.
        compute_capability: the compute capability whose size limits of surfaces apply, such as 9.0.

    Returns:
        A `SurfaceObject` with the texels that the array has now. A write returns another array, and does not change
        the object.

    Gradients:
        Gradients of reads and writes flow to floating texels of the array.

    Raises:
        CudaError: cudaErrorInvalidValue, if the resource is not an array, if the array lacks the flag, or if it is too
            large for a surface.
        TypeError: if `pResDesc` is not a `ResourceDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> plain = cuda.mallocArray(cuda.createChannelDesc("float"), 4)
        >>> try:
        ...     cuda.createSurfaceObject(cuda.ResourceDesc.Array(plain))
        ... except cuda.CudaError as error:
        ...     print(error.name)
        cudaErrorInvalidValue
    """
    resource = check_type(NAME, "pResDesc", pResDesc, ResourceDesc, "ResourceDesc.Array(array) makes one")
    resource_type = choose(NAME, "pResDesc.resType", ResourceType, resource.resType)
    if resource_type is not ResourceType.Array or not isinstance(resource.memory, Array):
        raise invalid(
            f"{NAME}: pResDesc is of type {resource_type.name}, expected an array; getMipmappedArrayLevel returns a "
            f"level of a mipmapped array as one."
        )
    array = check_backing(NAME, resource.memory, compute_capability)
    will_be_written(NAME, array)
    return SurfaceObject(array)


@cuda_function
def destroySurfaceObject(surfObject: SurfaceObject) -> None:
    """Marks a surface object as destroyed: `cudaDestroySurfaceObject`. There is nothing to release.

    Args:
        surfObject: a `SurfaceObject`. Later use is an error, except of copies that a JAX transformation made.

    Raises:
        CudaError: cudaErrorInvalidResourceHandle, if it was destroyed before.
    """
    release("destroySurfaceObject", _check_object("destroySurfaceObject", surfObject))


@cuda_function
def getSurfaceObjectResourceDesc(surfObject: SurfaceObject) -> ResourceDesc:
    """Returns the descriptor of the array of a surface object: `cudaGetSurfaceObjectResourceDesc`."""
    return ResourceDesc.Array(_check_object("getSurfaceObjectResourceDesc", surfObject).array)


@struct("array")
class SurfaceReference(Struct):
    """A surface reference, ``surface<void, Type>``.

    `bindSurfaceToArray` returns a bound one, which surface functions read and write as they do a `SurfaceObject`. It is
    a pytree whose only child is `array`; the other fields are static. ``cuda.surface`` is the same class.

    Args:
        T: ``"void"``, the only type in CUDA.
        Type: a `SurfaceType`, by default 1D.
        channelDesc: a `ChannelFormatDesc`, without effect.
        array: the `Array` that the reference is bound to; ``None`` before it is bound.

    Source:
        CUDA C++ Programming Guide 11, "Surface Reference API".

    Example:
        >>> from jaxtex import cuda
        >>> ref = cuda.SurfaceReference("void", cuda.SurfaceType.Type2D)
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 2, 1, cuda.ArrayFlags.SurfaceLoadStore)
        >>> ref = cuda.bindSurfaceToArray(ref, array)
        >>> cuda.surf2Dwrite(7.0, ref, 4, 0).texels[..., 0]
        Array([[0., 7.]], dtype=float32)
    """

    T: str = "void"
    Type: SurfaceType | int = SurfaceType.Type1D
    channelDesc: ChannelFormatDesc = dataclasses.field(default_factory=ChannelFormatDesc)
    array: Array | None = None


@cuda_function
def bindSurfaceToArray(
    surfref: SurfaceReference, array: Array, desc: ChannelFormatDesc | None = None
) -> SurfaceReference:
    """Binds a surface reference to an array: `cudaBindSurfaceToArray`.

    Args:
        surfref: a `SurfaceReference` of the kind of the array. It is not changed.
        array: an `Array` made with ``ArrayFlags.SurfaceLoadStore``.
        desc: the format of the array, which may be left out.

    Returns:
        A bound `SurfaceReference`. A write returns another array; bind a reference to that array to read the result.

    Gradients:
        Gradients of reads and writes flow to floating texels of the array.

    Raises:
        CudaError: cudaErrorInvalidValue, if the array lacks the flag, is too large for a surface or is of another kind;
            cudaErrorInvalidChannelDescriptor, if `desc` is not its format.

    Example:
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("int"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.surf1Dread(cuda.bindSurfaceToArray(cuda.SurfaceReference(), array), 8)
        Array(0, dtype=int32)
    """
    name = "bindSurfaceToArray"
    surfref = _check_reference(name, surfref)
    array = check_type(name, "array", array, Array, "mallocArray makes one")
    surface_type = choose(name, "surfref.Type", SurfaceType, surfref.Type)
    if surfref.T != "void":
        raise invalid(f"{name}: surfref.T is {surfref.T!r}, expected 'void', the only type of CUDA.")
    if TEXTURE_KINDS[array.kind].texture_type != surface_type:
        raise invalid(
            f"{name}: surfref.Type is {surface_type.name}, but the array is of kind {array.kind.value!r}; declare the "
            f"reference with the type of this kind."
        )
    if desc is not None and check_desc(name, desc) != array.desc:
        raise CudaError(
            Error.InvalidChannelDescriptor,
            f"{name}: desc is {desc}, expected the format of the array, {array.desc}; leave it out.",
        )
    will_be_written(name, array)
    return dataclasses.replace(surfref, array=check_backing(name, array))


@cuda_function
def getSurfaceReference(symbol: SurfaceReference) -> SurfaceReference:
    """Returns a reference, which is its own symbol: `cudaGetSurfaceReference`."""
    return _check_reference("getSurfaceReference", symbol)


def bound_array(function: str, surfref: SurfaceReference) -> Array:
    """The array of a bound reference (37)."""
    if surfref.array is None:
        raise CudaError(
            Error.InvalidSurface,
            f"{function}: the surface reference is not bound, expected one that bindSurfaceToArray returned: binding "
            f"does not change its argument.",
        )
    return surfref.array


def _check_reference(function: str, surfref: object) -> SurfaceReference:
    return check_type(function, "surfref", surfref, SurfaceReference, 'SurfaceReference("void", 2) makes one')


def _check_object(function: str, surface: object) -> SurfaceObject:
    return check_type(function, "surfObject", surface, SurfaceObject, "createSurfaceObject makes one")


def check_backing(function: str, array: Array, compute_capability: float = NEWEST_COMPUTE_CAPABILITY) -> Array:
    """`array`, which must be allocated for surface accesses, and not be too large for them."""
    check_alive(function, "the array", array)
    check_no_planes(function, "the array", array)
    if not array.flags & ArrayFlags.SurfaceLoadStore:
        raise invalid(
            f"{function}: the array has flags {array.flags!r}, expected SurfaceLoadStore; allocate it with "
            f"ArrayFlags.SurfaceLoadStore."
        )
    check_limits(function, TEXTURE_KINDS[array.kind].surface_limits, tuple(array.extent), compute_capability)
    return array


# The arguments of surface functions.
Surface = SurfaceObject | SurfaceReference | Array
REMEDY = "createSurfaceObject makes one, and an Array with ArrayFlags.SurfaceLoadStore is accepted too"


def check_surface(function: str, surface: object) -> Array:
    """The array of a surface. An array that may back a surface is accepted in its place."""
    if isinstance(surface, SurfaceReference):
        surface = bound_array(function, surface)
    if isinstance(surface, Array):
        return check_backing(function, surface)
    array = check_type(function, "surfObject", surface, SurfaceObject, REMEDY).array
    check_alive(function, "the array of surfObject", array)
    return array


def array_of_kind(function: str, surface: object, kind: TextureKind) -> Array:
    """The array of a surface, which must be of the given kind."""
    array = check_surface(function, surface)
    if array.kind is not kind:
        raise invalid(
            f"{function}: surfObject is of kind {array.kind.value!r}, expected {kind.value!r}; use the function of its "
            f"kind."
        )
    return array


# Accesses of the core: bytes along x become units of the access's size
#
# An access of n bytes divides each row into whole units of n bytes; bytes left at the end of a row are out of reach.
# Where a unit has the size of a texel or the dtype of the channels, the texels are accessed as they are, and gradients
# pass; elsewhere their bytes are reinterpreted.


# Types of 64 bits, of accesses but not of channels.
WIDE_DTYPES = {"long": "int64", "longlong": "int64", "ulong": "uint64", "ulonglong": "uint64"}
MAX_BYTES = 16
# The names of types by their dtypes: what CUDA deduces as T from the data of a write.
TYPE_NAMES = {row.dtype: name for name, row in BASE_TYPES.items()} | {"int64": "longlong", "uint64": "ulonglong"}
# The least of bits is their conjunction, the largest their disjunction.
BITWISE = ("and", "or")
REDUCTIONS = {"add": surface_add, "min": surface_min, "max": surface_max, "and": surface_min, "or": surface_max}
COORDINATES = ("x", "y", "z", "layer", "face", "layerFace")


class Access(NamedTuple):
    """One access: of a number of `dtype`, or of a vector of `length` of them."""

    dtype: np.dtype
    length: int | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.dtype.itemsize * (self.length or 1)


def read_units(function: str, kind: TextureKind, given: dict[str, Any]) -> jax.Array:
    """A read of a surface of `kind`, by the arguments of a surface function."""
    array, access, mode, coords = check_access(function, kind, given)
    indices = check_indices(function, coords, access, is_named=given["T"] is not None)
    mention_dropped(function, array)
    return _read_units(array, indices, function=function, access=access, mode=mode)


def write_units(function: str, kind: TextureKind, given: dict[str, Any]) -> Array:
    """The array after a write to a surface of `kind`, by the arguments of a surface function."""
    array, access, mode, coords = check_access(function, kind, given)
    # First of all: where T is not the type of data, x counts other bytes.
    values = check_type_of(function, given["data"], access, coords)
    indices = check_indices(function, coords, access, is_named=given["T"] is not None)
    check_shape(function, values, indices, access)
    will_be_written(function, array)
    return watch(function, array, _write_units(array, values, indices, function=function, access=access, mode=mode))


def check_access(
    function: str, kind: TextureKind, given: dict[str, Any]
) -> tuple[Array, Access, SurfaceBoundaryMode, tuple[Any, ...]]:
    """The array of an access, its `Access`, its boundary mode, and its coordinates, which are not checked."""
    array = array_of_kind(function, given["surfObject"], kind)
    access, mode = access_of(function, array.desc, given["T"]), check_boundary_mode(function, given["boundaryMode"])
    return array, access, mode, tuple(given[name] for name in COORDINATES if name in given)


def access_of(function: str, desc: ChannelFormatDesc, T: str | None) -> Access:
    """The access that T names, by default that of a whole texel."""
    if T is None:
        return Access(desc.dtype, desc.numbers if desc.numbers > 1 else None)
    base, length = parse_type(function, "T", T)
    name = BASE_TYPES[base].dtype if base in BASE_TYPES else WIDE_DTYPES.get(base)
    access = Access(jnp.dtype(name or "uint8"), length)
    if name is None or length == 3 or access.size > MAX_BYTES:
        raise invalid(
            f"{function}: T is {T!r}, expected a type of 8, 16, 32 or 64 bits, alone or as a vector of 1, 2 or 4, of "
            f"{MAX_BYTES} bytes at most."
        )
    if access.dtype.itemsize == 8 and not is_x64():
        raise invalid(
            f"{function}: T is {T!r}, and 64-bit numbers are disabled; use 'int2' or 'uint2', which have the same "
            f"bytes, or enable 64-bit numbers with jax_enable_x64."
        )
    return access


def check_boundary_mode(function: str, mode: object) -> SurfaceBoundaryMode:
    """The boundary mode that a caller names."""
    return choose(function, "boundaryMode", SurfaceBoundaryMode, mode)


def check_indices(
    function: str, coords: tuple[ArrayLike, ...], access: Access, *, is_named: bool = True
) -> tuple[jax.Array, ...]:
    """Arrays of integers. An x that is known must be a multiple of the size of the access.

    Unsigned integers are converted to int as C converts them.

    Args:
        is_named: whether the type of the access is given, and not that of the texels.
    """
    x: Any
    x, *others = (check_integer(function, name, c, wrap_unsigned=True) for name, c in zip("xyz", coords))
    wrong = first_misaligned(known_integers(coords[0]), x, access.size)
    if wrong is not None:
        raise CudaError(
            Error.MisalignedAddress,
            f"{function}: x holds {wrong}, expected multiples of {access.size}, the size of the access; x counts "
            f"bytes: multiply the numbers of texels by {access.size}"
            f"{'' if is_named else ', or name the type of the access with T'}.",
        )
    if isinstance(x, np.ndarray):
        x = cast(Any, x - x % access.size)  # where x saturated
    return cast(tuple[jax.Array, ...], (x, *others))


def first_misaligned(known: np.ndarray | None, x: Any, size: int) -> int | None:
    """The first number of x that is known and no multiple of `size`; `known` holds the numbers in their own width."""
    if size == 1 or isinstance(x, Tracer):
        return None
    if known is None:
        with jax.ensure_compile_time_eval():  # an array that a jitted function closes over is known too
            known = np.asarray(x) if _any_misaligned(x, size=size) else np.zeros(0, int)
    wrong = np.ravel(known)[np.ravel(known % size != 0)]  # one integer of more than 64 bits gives a bool
    return int(wrong[0]) if wrong.size else None


@typed_jit("size", inline=False)
def _any_misaligned(x: jax.Array, *, size: int) -> jax.Array:
    return (x % size != 0).any()


def check_type_of(
    function: str, data: Any, access: Access, coords: Sequence[Any], types: Collection[str] = TYPE_NAMES.values()
) -> Any:
    """The values of a write, which must have the dtype of the access.

    Args:
        coords: the coordinates; data with more axes holds vectors.
        types: the base types that the function takes as T.
    """
    values = data_of(function, data, access.dtype)
    if values.dtype != access.dtype:
        name, remedy = TYPE_NAMES.get(values.dtype.name), f"convert the numbers with data.astype(jnp.{access.dtype})"
        if name in types and (values.dtype.itemsize < 8 or is_x64()):
            is_vector = values.ndim > max(map(np.ndim, coords)) or isinstance(data, tuple)
            length = values.shape[-1] if is_vector and values.shape[-1] in (2, 4) else ""
            remedy = (
                f"CUDA deduces the type from data: pass T={f'{name}{length}'!r} to store its bytes, where x is a "
                f"multiple of their number; or {remedy}"
            )
        raise invalid(
            f"{function}: data has dtype {values.dtype}, expected {access.dtype}: a store converts nothing; {remedy}."
        )
    return values


def check_shape(function: str, values: Any, indices: tuple[jax.Array, ...], access: Access) -> None:
    """Refuses values that do not broadcast to the shape of the coordinates, with vectors along the last axis."""
    shape = broadcast_shapes(*(index.shape for index in indices))
    vector = () if access.length is None else (access.length,)
    if not broadcasts_to(values.shape, shape + vector) or values.shape[-1:][: len(vector)] != vector:
        raise invalid(
            f"{function}: data has shape {values.shape}, expected one that broadcasts to {shape + vector}, the shape "
            f"of the coordinates{', and has the whole vector along its last axis' if vector else ''}."
        )


def data_of(function: str, data: Any, dtype: np.dtype) -> Any:
    """The values of a write, of `dtype` where its numbers may stand for those of `dtype`. A tuple holds components."""
    if not isinstance(data, tuple) or is_literal(data):
        return as_numbers(function, "data", data, dtype)
    components = [as_numbers(function, "data", component, dtype) for component in cast(tuple[Any, ...], data)]
    return stack(jnp.broadcast_arrays(*components), axis=-1)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` broadcasts to the shape `target`."""
    try:
        return broadcast_shapes(shape, target) == target
    except ValueError:
        return False


@typed_jit("function", "access", "mode")
def _read_units(
    array: Array, coords: tuple[jax.Array, ...], *, function: str, access: Access, mode: SurfaceBoundaryMode
) -> jax.Array:
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size, mode)
    numbers = bit_cast(surface_read(surface, indices, boundary_mode="zero", layer=layer), access.dtype)
    return numbers if access.length else numbers[..., 0]


@typed_jit("function", "access", "mode")
def _write_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    *,
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
) -> Array:
    data = jnp.asarray(data, access.dtype)
    return store_units(array, data if access.length else data[..., None], coords, function, access, mode)


def store_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
    *,
    in_bytes: bool = True,
) -> Array:
    """The array after a write of units, S + (length,), at an x in bytes or in units."""
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size if in_bytes else 1, mode)
    values = bit_cast(data, np.dtype(surface.dtype))
    written = surface_write(surface, values, indices, boundary_mode="zero", layer=layer)
    return dataclasses.replace(array, texels=as_texels(array, access, written))


@typed_jit("function", "access", "mode", "op", "in_bytes")
def reduce_units(
    array: Array,
    data: jax.Array,
    coords: tuple[jax.Array, ...],
    *,
    function: str,
    access: Access,
    mode: SurfaceBoundaryMode,
    op: str,
    in_bytes: bool,
) -> Array:
    """The array after numbers are reduced into its units, at an x in bytes or in units."""
    surface = as_surface(array, access)
    indices, layer = unit_indices(function, surface, coords, access.size if in_bytes else 1, mode)
    units, values = bit_cast(surface.texels, access.dtype), jnp.asarray(data, access.dtype)[..., None]
    if op in BITWISE:  # a channel for each bit
        units, values = bits_of(units), bits_of(values)
    reduce = REDUCTIONS[op]
    reduced = reduce(dataclasses.replace(surface, texels=units), values, indices, boundary_mode="zero", layer=layer)
    texels = of_bits(reduced.texels, access.dtype) if op in BITWISE else reduced.texels
    return dataclasses.replace(array, texels=as_texels(array, access, dataclasses.replace(surface, texels=texels)))


def bits_of(numbers: jax.Array) -> jax.Array:
    """The bits of 32-bit numbers, along the last axis, which had one element."""
    words = jax.lax.bitcast_convert_type(numbers, jnp.uint32)
    return ((words >> jnp.arange(32, dtype=jnp.uint32).reshape(*(1,) * (words.ndim - 1), 32)) & 1).astype(jnp.uint8)


def of_bits(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    """The numbers of these bits, along a last axis of one element."""
    shifts = jnp.arange(32, dtype=jnp.uint32).reshape(*(1,) * (bits.ndim - 1), 32)
    words = (bits.astype(jnp.uint32) << shifts).sum(-1, keepdims=True, dtype=jnp.uint32)
    return jax.lax.bitcast_convert_type(words, dtype)


def units_per_row(array: Array, access: Access) -> int:
    """The number of whole units in a row."""
    return array.extent.width * array.desc.texel_bytes // access.size


def as_surface(array: Array, access: Access) -> core.Texture:
    """The array as a texture whose texels are units of the access. A row without a unit gets one unit of zeros."""
    texels = array.texels
    if access.size != array.desc.texel_bytes:
        row = rows_of(texels)
        stored, count = np.dtype(row.dtype), units_per_row(array, access)
        if count:
            row = row[..., : count * access.size // stored.itemsize]
            row = row if stored == access.dtype else bit_cast(row, word_dtype(access.dtype))
        else:
            word = word_dtype(access.dtype)
            row = jnp.zeros((*row.shape[:-1], access.size // word.itemsize), word)
        texels = row.reshape(*row.shape[:-1], max(count, 1), row.shape[-1] // max(count, 1))
    # A face is a layer, and face f of layer l of a layered cubemap is layer 6 l + f.
    return TEXTURE_KINDS[TextureKind.TEXTURE2D_LAYERED if array.kind.is_cube else array.kind].build(texels)


def rows_of(texels: jax.Array) -> jax.Array:
    """The texels as rows of numbers."""
    return texels.reshape(*texels.shape[:-2], texels.shape[-2] * texels.shape[-1])


def as_texels(array: Array, access: Access, written: core.Texture) -> jax.Array:
    """The texels of the array after a write to its units."""
    texels = array.texels
    if access.size == array.desc.texel_bytes:
        return bit_cast(written.texels, np.dtype(texels.dtype))
    if not units_per_row(array, access):
        return texels
    row = bit_cast(rows_of(written.texels), np.dtype(texels.dtype))
    rest = rows_of(texels)[..., row.shape[-1] :]
    return jnp.concatenate([row, rest], axis=-1).reshape(texels.shape)


def unit_indices(
    function: str, surface: core.Texture, coords: tuple[jax.Array, ...], step: int, mode: SurfaceBoundaryMode
) -> tuple[tuple[jax.Array, ...], jax.Array | None]:
    """The indices of units, and their layer if the surface has layers.

    A unit is `step` along x. Indices are clamped if the mode is Clamp. The index of a misaligned access is -1 along x,
    which is outside the surface.
    """
    operands = ReadArguments(coords).as_operands(integer=True).coords
    x, *others = operands
    aligned = (coords[0] % step == 0).reshape(x.shape)  # of an x of any width, since saturation may misalign it
    named = dict(zip("xyz", operands))
    indices, sizes = [x // step, *others], surface.shape[-2::-1]
    if mode is SurfaceBoundaryMode.Clamp:
        rules = [clamp] * surface.kind.ndim + [last]
        indices = [rule(index, n)[0] for rule, index, n in zip(rules, indices, sizes)]
    if step > 1:
        report(function, aligned, f"has an x that is no multiple of the {step} bytes of its access", named)
    if mode is SurfaceBoundaryMode.Trap:
        report(function, functools.reduce(jnp.logical_and, map(is_inside, indices, sizes)), OUTSIDE, named)
    indices[0] = jnp.where(aligned, indices[0], -1)
    return tuple(indices[: surface.kind.ndim]), indices[-1] if surface.kind.layered else None


# The surface functions of device code: a read and a write for each kind of surface
#
# They take arrays: one call makes the accesses of a whole launch.


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
