"""Copies between arrays and plain memory, as functions that return the new destination.

A copy moves a run of bytes, or rows of bytes. Its declaration says which: a run has a `count`, and rows have a `width`
and a `height`; an end is an array or memory, as its type says. `memcpy3D` moves boxes.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import jax
import numpy as np
from jax.typing import ArrayLike

from ..._blocks.formats import blocks_along
from ..._checks.dropped import mention_dropped, watch
from ..._jax.calls import typed_jit
from ...modes import TextureKind
from ..declarations import DECLARATIONS
from ..enums import Error, MemcpyKind
from ..errors import CudaError, check_index, check_type, choose, invalid
from ..functions import TEXTS, Text, cuda_function, made, missing
from ..structs import Struct, struct
from .arrays import Array, Extent, MipmappedArray, check_array, check_no_planes, will_be_written, with_level
from .channel_formats import ChannelFormatDesc, as_texels
from .numbers import as_destination, as_memory, bytes_as, counts, is_literal, whole_numbers
from .pitched_memory import BYTE, PITCHED_REMEDY, PitchedPtr, Pos, Region, read_region, region_of, write_region

AnyArray = TypeVar("AnyArray", Array, MipmappedArray)
NEW_ARRAY = "A new `Array`; use it in place of `dst`."
NEW_MEMORY = "A new array of the shape and the dtype of `dst`."
OTHER_COPIES = "To differentiate other copies is an error"
PITCH_FITS = f"if both have the same dtype, and the pitch is a multiple of its size. {OTHER_COPIES}."
DIRECTION = "cudaErrorInvalidMemcpyDirection, if `kind` is not a `MemcpyKind`."
OUTSIDE = (
    "cudaErrorInvalidValue, if the part does not lie within the array, or cuts an element; cudaErrorInvalidPitchValue, "
    f"if a row is longer than the pitch; {DIRECTION}"
)
# The texts of copies that are made from declarations.
COPIES = {
    "memcpy": Text(
        "Returns memory whose first bytes are copied from other memory: `cudaMemcpy`.",
        NEW_MEMORY,
        f"To `dst` and `src`, if both have the same dtype, and `count` is a multiple of its size. {OTHER_COPIES}.",
        {"CudaError": f"cudaErrorInvalidValue, if the bytes do not lie within the memory; {DIRECTION}"},
        """
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> cuda.memcpy(jnp.zeros(3), jnp.array([1.0, 2.0]), 2 * 4, cuda.MemcpyKind.HostToDevice)
        Array([1., 2., 0.], dtype=float32)
        """,
    ),
    "memcpyArrayToArray": Text(
        "Returns an array with a run of bytes copied from another array: `cudaMemcpyArrayToArray`.",
        NEW_ARRAY,
        f"To the texels of both arrays, if they have the same dtype. {OTHER_COPIES}.",
        {"CudaError": "as in `memcpyToArray`."},
        """
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> empty = cuda.mallocArray(cuda.createChannelDesc("int"), 3)
        >>> array = cuda.memcpyToArray(empty, jnp.array([5, 6, 7]))
        >>> cuda.memcpyArrayToArray(empty, 0, 0, array, 4, 0, 2 * 4).texels[:, 0]
        Array([6, 7, 0], dtype=int32)
        """,
    ),
    "memcpy2D": Text(
        "Returns memory with rows copied from other memory: `cudaMemcpy2D`.",
        NEW_MEMORY,
        "To `dst` and `src`, if both have the same dtype, and the pitches and the width are multiples of its size. "
        f"{OTHER_COPIES}, also copies of floats into `mallocPitch` memory, which holds bytes.",
        {
            "CudaError": "cudaErrorInvalidPitchValue, if a row is longer than a pitch and there are several rows; "
            "cudaErrorInvalidValue, if a single row is longer than a pitch, or rows do not lie within the memory; "
            f"{DIRECTION}",
        },
        """
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> rows = cuda.mallocPitch(8, 2)
        >>> memory = cuda.memcpy2D(rows.ptr, rows.pitch, jnp.arange(4.0), 8, 8, 2)
        >>> pitched = cuda.ResourceDesc.Pitch2D(memory, cuda.createChannelDesc("float"), 2, 2, rows.pitch)
        >>> cuda.tex2D(cuda.createTextureObject(pitched, cuda.TextureDesc()), 1.5, 1.5)
        Array(3., dtype=float32)
        """,
    ),
    "memcpy2DToArray": Text(
        "Returns an array with a part copied from rows of memory: `cudaMemcpy2DToArray`.",
        NEW_ARRAY,
        f"To `src` and the texels of `dst`, {PITCH_FITS}",
        {"CudaError": OUTSIDE},
        """
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> cuda.memcpy2DToArray(array, 4, 1, jnp.array([1.0, 2.0]), 8, 8, 1).texels[..., 0]
        Array([[0., 0., 0.],
               [0., 1., 2.]], dtype=float32)
        """,
    ),
    "memcpy2DFromArray": Text(
        "Returns memory with rows copied from a part of an array: `cudaMemcpy2DFromArray`.",
        NEW_MEMORY,
        f"To `dst` and the texels of `src`, {PITCH_FITS}",
        {"CudaError": OUTSIDE},
    ),
    "memcpy2DArrayToArray": Text(
        "Returns an array with a part copied from another array: `cudaMemcpy2DArrayToArray`.",
        NEW_ARRAY,
        f"To the texels of both arrays, if they have the same dtype. {OTHER_COPIES}.",
        {
            "CudaError": "cudaErrorInvalidValue, if a part does not lie within its array, or cuts an element, or if "
            f"the elements differ in size; {DIRECTION}"
        },
    ),
}
__test__ = {name: text.example for name, text in COPIES.items()}


@cuda_function
def memcpyToArray(
    dst: AnyArray,
    wOffset: int | ArrayLike | Array | None = None,
    hOffset: int | None = None,
    src: ArrayLike | Array | None = None,
    count: int | None = None,
    kind: MemcpyKind | int = MemcpyKind.Default,
    *,
    level: int | None = None,
) -> AnyArray:
    """Returns an array with all elements, or a run of bytes, replaced: `cudaMemcpyToArray`.

    ``memcpyToArray(dst, src)`` replaces all elements of an array, or of a level. It takes numbers.
    ``memcpyToArray(dst, wOffset, hOffset, src, count, kind)`` is CUDA's form. It takes bytes, which fill the rest of a
    row, and then the rows below.

    Args:
        dst: an `Array` or a `MipmappedArray`. It is not changed.
        wOffset: the first byte in the first row, in **bytes**. In the short form: `src`.
        hOffset: the first row.
        src: in the short form, the elements, slowest axis first, in the shape of ``dst.texels``, or an `Array` that
            holds them. The axis of channels may be missing if there is one channel, and the axis of rows of a 2D array
            if there is one row. The dtype must be that of the format, because a copy converts nothing. But Python
            numbers are taken if they fit the format, and arrays of 64-bit numbers in place of those of 32 bits: floats
            are rounded, integers saturate. For halves, unsigned 16-bit integers are taken as their bits. In CUDA's
            form, an array of any dtype whose bytes, in C order, are the memory.
        count: the number of **bytes**, a multiple of the size of an element.
        level: which level of a `MipmappedArray`, an int from 0, in the short form. An `Array` has no level.

    Returns:
        A new array of the class of `dst`; use it in place of `dst`.

    Gradients:
        To `src`, and to the elements and levels of `dst` that stay: the identity. In CUDA's form both must have the
        same dtype; to differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if the shape, the dtype, the level or a Python number does not fit, or if the
            bytes do not lie within the array or the memory; cudaErrorInvalidMemcpyDirection, if `kind` is not a
            `MemcpyKind`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> cuda.memcpyToArray(array, 8, 0, jnp.array([7.0, 8.0]), 2 * 4, cuda.MemcpyKind.HostToDevice).texels[..., 0]
        Array([[0., 1., 7.],
               [8., 4., 5.]], dtype=float32)
    """
    name = "memcpyToArray"
    if hOffset is None and count is None and (wOffset is None) != (src is None):
        return _replace_all(dst, wOffset if src is None else src, level)
    given = {"dst": dst, "wOffset": wOffset, "hOffset": hOffset, "src": src, "count": count, "kind": kind}
    return cast(AnyArray, _copy_part_of_array(name, "dst", given, level))


@cuda_function
def memcpyFromArray(
    dst: ArrayLike | Array | MipmappedArray | None = None,
    src: Array | MipmappedArray | None = None,
    wOffset: int | None = None,
    hOffset: int | None = None,
    count: int | None = None,
    kind: MemcpyKind | int = MemcpyKind.Default,
    *,
    level: int | None = None,
) -> jax.Array:
    """Returns all elements of an array, or memory with a run of its bytes: `cudaMemcpyFromArray`.

    ``memcpyFromArray(src)`` returns all elements of an array, or of a level. ``memcpyFromArray(dst, src, wOffset,
    hOffset, count, kind)`` is CUDA's form, and returns memory with bytes of the array at its start.

    Args:
        dst: an array of any dtype, whose bytes, in C order, are the memory. It is not changed. In the short form: the
            `Array` or the `MipmappedArray` to read.
        wOffset, hOffset, count: the bytes of `src`, as in `memcpyToArray`.
        level: which level of a `MipmappedArray`, an int from 0, in the short form. An `Array` has no level.

    Returns:
        In the short form, the elements, slowest axis first and channels last, such as (H, W, C). A single channel has
        an axis too. In CUDA's form, a new array of the shape and the dtype of `dst`.

    Gradients:
        To the texels, and in CUDA's form to `dst`: the identity, if both have the same dtype. To differentiate other
        copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is no such level, or if the bytes do not lie within the array or the
            memory; cudaErrorInvalidMemcpyDirection, if `kind` is not a `MemcpyKind`.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.memcpyToArray(cuda.mallocArray(cuda.createChannelDesc("int"), 3), jnp.array([5, 6, 7]))
        >>> cuda.memcpyFromArray(array).shape
        (3, 1)
        >>> cuda.memcpyFromArray(jnp.zeros(2, jnp.int32), array, 4, 0, 8)
        Array([6, 7], dtype=int32)
    """
    name = "memcpyFromArray"
    if count is None and (src is None) != (dst is None):
        array = dst if src is None else src
        mention_dropped(name, array)
        if isinstance(array, MipmappedArray):
            return array.levels[_check_level(name, check_type(name, "src", array, MipmappedArray, ""), level)]
        return check_array(name, "src", array, level).texels
    given = {"dst": dst, "src": src, "wOffset": wOffset, "hOffset": hOffset, "count": count, "kind": kind}
    return _copy_part_of_array(name, "src", given, level)


def _copy_part_of_array(function: str, end: str, given: dict[str, Any], level: object) -> Any:
    """CUDA's form of a call that has a short form too."""
    for argument, value in given.items():
        if value is None:
            raise missing(function, argument)
    check_memcpy_kind(function, given["kind"])
    check_array(function, end, given[end], level)
    return copy_run(function, given)


def copy_run(function: str, given: dict[str, Any]) -> Any:
    """The destination with a run of bytes of the source, by the arguments of a copy."""
    check_memcpy_kind(function, given["kind"])
    arrays = ends_that_are_arrays(function)
    parts = {end: run_of(function, end, given[end], *offsets(end, given), given["count"]) for end in arrays}
    (count,) = counts(function, count=given["count"])
    run = Region(0, count, count, count, 1, 1)
    dst, src = given["dst"], given["src"]
    if "dst" in arrays:
        will_be_written(function, dst)
    mention_dropped(function, src)
    memory = src.texels if "src" in arrays else _memory(function, src, dst)
    stored = dst.texels if "dst" in arrays else as_destination(function, "dst", dst)
    source, target = parts.get("src", run), parts.get("dst", run)
    result = copy_part(memory, stored, function=function, source=source, target=target)
    return watch(function, dst, dataclasses.replace(dst, texels=result)) if "dst" in arrays else result


def copy_rows(function: str, given: dict[str, Any]) -> Any:
    """The destination with rows of the source, by the arguments of a copy."""
    check_memcpy_kind(function, given["kind"])
    dst, src, arrays = given["dst"], given["src"], ends_that_are_arrays(function)
    sizes = {name: given[name] for name in ("width", "height", "spitch", "dpitch") if name in given}
    parts: dict[str, Box | Region] = {
        end: box_of_rows(function, end, given[end], *offsets(end, given), sizes["width"], sizes["height"])
        for end in arrays
    }
    width, height, *_ = whole = counts(function, **sizes)
    pitches = dict(zip(sizes, whole))
    if not arrays and height == 1 and width > min(pitches["spitch"], pitches["dpitch"]):
        # The card has another code for a single row.
        argument = "spitch" if pitches["spitch"] < pitches["dpitch"] else "dpitch"
        raise invalid(
            f"{function}: {argument} is {pitches[argument]} bytes, expected at least the width, {width} bytes."
        )
    check_sizes(function, *(given[end] for end in arrays))
    for end in {"dst", "src"} - {*arrays}:
        pitch = pitches[f"{end[0]}pitch"]
        parts[end] = Region(0, pitch, pitch * height, width, height, 1)
    if "dst" in arrays:
        will_be_written(function, dst)
    mention_dropped(function, src)
    memory = src if "src" in arrays else _memory(function, src, dst)
    stored = dst if "dst" in arrays else as_destination(function, "dst", dst)
    result = copy_part(memory, stored, function=function, source=parts["src"], target=parts["dst"])
    return watch(function, dst, result) if "dst" in arrays else result


def ends_that_are_arrays(function: str) -> list[str]:
    """The ends of a copy, of `dst` and `src`, that are arrays and no plain memory."""
    return [p.name for p in DECLARATIONS[function].parameters if p.type.startswith("cudaArray")]


def offsets(end: str, given: dict[str, Any]) -> tuple[Any, Any]:
    """Where a copy starts in an array: the first byte in a row, and the row."""
    suffix = "" if "wOffset" in given else end.capitalize()
    return given[f"wOffset{suffix}"], given[f"hOffset{suffix}"]


def run_of(function: str, argument: str, array: Array, wOffset: Any, hOffset: int, count: int) -> Region:
    """A run of bytes in a 1D or 2D array, as a part of its texels as memory."""
    array = check_no_planes(function, argument, check_array(function, argument, array, None))
    offset, row, count = whole_numbers(function, wOffset=wOffset, hOffset=hOffset, count=count)
    size = check_flat(function, argument, array).desc.texel_bytes
    width, height = array.elements.width * size, max(array.elements.height, 1)
    start = row * width + offset
    inside = 0 <= offset <= width and 0 <= row <= height and 0 <= count <= width * height - start
    if not inside or offset % size or count % size:
        raise invalid(
            f"{function}: the {count} bytes of {argument} start at byte {offset} of row {row}, expected multiples of "
            f"the {size} bytes of an element, within the {height} rows of {width} bytes."
        )
    return Region(start, count, count, count, 1, 1)


def _memory(function: str, src: Any, dst: object) -> jax.Array:
    """The bytes of a source. Numbers of Python have the type of an array."""
    if isinstance(dst, Array) and is_literal(src):
        return as_texels(function, "src", src, dst.desc)
    return as_memory(src)


def _replace_all(dst: AnyArray, src: Any, level: object) -> AnyArray:
    """An array with all its elements, or those of a level, replaced."""
    name = "memcpyToArray"
    if isinstance(dst, MipmappedArray):
        chosen = _check_level(name, check_type(name, "dst", dst, MipmappedArray, ""), level)
        values = _check_values(name, src, dst.levels[chosen], dst.desc)
        return watch(name, dst, with_level(dst, chosen, values))
    array = check_array(name, "dst", dst, level)
    will_be_written(name, array)
    return watch(name, array, dataclasses.replace(array, texels=_check_values(name, src, array.texels, array.desc)))


def _check_level(function: str, mipmap: MipmappedArray, level: object) -> int:
    if level is None:
        raise invalid(
            f"{function}: level is missing, and the mipmapped array has {len(mipmap.levels)} levels; pass level=0."
        )
    return check_index(function, "level", level, len(mipmap.levels))


def _check_values(function: str, src: Any, texels: jax.Array, desc: ChannelFormatDesc) -> jax.Array:
    """`src` in the shape of the texels."""
    if isinstance(src, Array):
        src = check_array(function, "src", src, None).texels
    values = as_texels(function, "src", src, desc)
    shapes = [texels.shape]
    if texels.ndim == 3 and texels.shape[0] == 1:
        shapes.append(texels.shape[1:])
    if texels.shape[-1] == 1:
        shapes += [shape[:-1] for shape in shapes]
    if values.shape not in shapes:
        raise invalid(
            f"{function}: src has shape {values.shape}, expected {' or '.join(map(str, shapes))}, slowest axis first "
            f"and channels last; CUDA's form of this call, memcpy2DToArray and memcpy3D copy a part of an array."
        )
    return values.reshape(texels.shape)


def copy_function(name: str) -> Callable[..., Any]:
    """The copy of a row of `COPIES`."""
    to_array, names = "dst" in ends_that_are_arrays(name), [p.name for p in DECLARATIONS[name].parameters]
    body = copy_run if "count" in names else copy_rows
    types = {
        **dict.fromkeys(("void*", "const void*"), ArrayLike),
        **dict.fromkeys(("cudaArray_t", "cudaArray_const_t"), Array),
        "size_t": int,
        "cudaMemcpyKind": MemcpyKind | int,
    }
    defaults = {} if len(ends_that_are_arrays(name)) == 2 else {"kind": MemcpyKind.Default}
    result = Array if to_array else jax.Array
    call = functools.partial(body, name)
    return made(name, call, COPIES[name], types, TEXTS, result=result, defaults=defaults)


COPY_FUNCTIONS = {name: copy_function(name) for name in COPIES}
Destination = TypeVar("Destination", Array, jax.Array)


class Box(NamedTuple):
    """A box in an array whose texels are (slices, rows, numbers): its first index and its size along each axis."""

    z: int
    y: int
    x: int
    depth: int
    height: int
    width: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements."""
        return min(self.depth, self.height, self.width) == 0

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """The box as an index."""
        z, y, x = (slice(start, start + count) for start, count in zip(self[:3], self[3:]))
        return z, y, x


def check_memcpy_kind(function: str, kind: object) -> None:
    """Refuses a `kind` that is no direction of a copy (21)."""
    choose(function, "kind", MemcpyKind, kind, Error.InvalidMemcpyDirection)


def texel_rows(array: Array) -> jax.Array:
    """The texels of an array as (slices, rows, numbers)."""
    texels = array.texels
    height = texels.shape[-3] if array.extent.height else 1
    return texels.reshape(-1, height, texels.shape[-2] * texels.shape[-1])


def box_at(
    function: str, argument: str, array: Array, start: tuple[int, int, int], width: int, height: int, depth: int
) -> Box:
    """The box of an array at a place in elements, with its `width` in bytes."""
    array = check_no_planes(function, argument, array)
    elements, numbers = width // array.desc.texel_bytes, array.desc.numbers
    sizes = tuple(max(n, 1) for n in array.elements)
    box = (elements, height, depth)
    if min(*start, *box) < 0 or any(first + count > n for first, count, n in zip(start, box, sizes)):
        raise invalid(
            f"{function}: the box in {argument} starts at {start} and has {box} elements, expected a box "
            f"within the {sizes} elements of the array."
        )
    x, y, z = start
    return Box(z, y, x * numbers, depth, height, elements * numbers)


def check_flat(function: str, argument: str, array: Array) -> Array:
    """`array`, which must be 1D or 2D (1)."""
    if array.kind not in (TextureKind.TEXTURE1D, TextureKind.TEXTURE2D):
        raise invalid(
            f"{function}: {argument} is of kind {array.kind.value!r}, expected a 1D or 2D array; use memcpy3D."
        )
    return array


def check_sizes(function: str, *ends: object) -> int:
    """The size of an element of the arrays among the ends of a copy, which must be of one size (1); 1 without any."""
    sizes = sorted({end.desc.texel_bytes for end in ends if isinstance(end, Array)})
    if len(sizes) > 1:
        raise invalid(
            f"{function}: the arrays have elements of {' and '.join(map(str, sizes))} bytes, expected elements of one "
            f"size."
        )
    return sizes[0] if sizes else 1


def box_of_rows(function: str, argument: str, array: Array, wOffset: int, hOffset: int, width: int, height: int) -> Box:
    """A box of a 1D or 2D array, with `wOffset` and `width` in bytes."""
    array = check_array(function, argument, array, None)
    wOffset, hOffset, width, height = whole_numbers(
        function, wOffset=wOffset, hOffset=hOffset, width=width, height=height
    )
    size = check_flat(function, argument, array).desc.texel_bytes
    if wOffset % size or width % size:
        raise invalid(
            f"{function}: wOffset and width are {wOffset} and {width} bytes, expected multiples of the {size} bytes of "
            f"an element."
        )
    return box_at(function, argument, array, (wOffset // size, hOffset, 0), width, height, 1)


@typed_jit("function", "source", "target", "names", inline=False)
def copy_part(
    src: Array | jax.Array,
    dst: Destination,
    *,
    function: str,
    source: Box | Region,
    target: Box | Region,
    names: tuple[str, str] = ("src", "dst"),
) -> Destination:
    """`dst` with a part replaced by a part of `src`: a `Box` of an `Array`, or a `Region` of plain memory.

    `names` are those of plain memory in errors.
    """
    if source.is_empty or target.is_empty:
        return dst
    stored = dst.texels if isinstance(dst, Array) else dst
    dtype = np.dtype(stored.dtype)
    if isinstance(src, Array):
        assert isinstance(source, Box)
        numbers = texel_rows(src)[source.slices]
    else:
        assert isinstance(source, Region)
        whole = isinstance(dst, Array) or (src.dtype == dtype and source.width % dtype.itemsize == 0)
        numbers = read_region(function, names[0], src, source, dtype if whole else BYTE)
    if isinstance(dst, Array):
        assert isinstance(target, Box)
        rows = texel_rows(dst).at[target.slices].set(bytes_as(function, numbers, dtype))
        return dataclasses.replace(dst, texels=rows.reshape(stored.shape))
    assert isinstance(target, Region)
    return write_region(function, names[1], stored, target, numbers)


# Copies of boxes of up to three dimensions between arrays and pitched memory


@struct("srcArray", "srcPtr", "dstArray", "dstPtr")
class Memcpy3DParms(Struct):
    """The arguments of `memcpy3D`: `cudaMemcpy3DParms`. ``Memcpy3DParms()`` is a zeroed struct.

    Exactly one of `srcArray` and `srcPtr` is given, and exactly one of `dstArray` and `dstPtr`. It is a pytree whose
    children are these four; the other fields are static.

    Args:
        srcArray, dstArray: an `Array`.
        srcPtr, dstPtr: a `PitchedPtr`.
        srcPos, dstPos: the `Pos` at which the box starts.
        extent: the size of the box, an `Extent`, 1 along an axis that an array lacks. The width counts elements if the
            source or the destination is an array, else bytes. If the size is 0 along an axis, nothing is copied. For
            an array of a block-compressed format, `extent` and its `Pos` count texels, and whole blocks are copied.
        kind: a `MemcpyKind`; it has no effect.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), cuda.Extent(2, 2, 2))
        >>> volume = cuda.PitchedPtr(jnp.arange(8.0), 8, 2, 2)
        >>> parms = cuda.Memcpy3DParms(srcPtr=volume, dstArray=array, extent=cuda.Extent(2, 2, 1))
        >>> cuda.memcpy3D(parms).texels[..., 0]
        Array([[[0., 1.],
                [2., 3.]],
        <BLANKLINE>
               [[0., 0.],
                [0., 0.]]], dtype=float32)
    """

    srcArray: Array | None = None
    srcPos: Pos = dataclasses.field(default_factory=Pos)
    srcPtr: PitchedPtr | None = dataclasses.field(default_factory=PitchedPtr)
    dstArray: Array | None = None
    dstPos: Pos = dataclasses.field(default_factory=Pos)
    dstPtr: PitchedPtr | None = dataclasses.field(default_factory=PitchedPtr)
    extent: Extent = dataclasses.field(default_factory=Extent)
    kind: MemcpyKind | int = MemcpyKind.Default

    def _converted(self, name: str, value: Any) -> Any:
        """The value that is stored for a field: tuples are accepted in place of structs."""
        kinds = {"srcPos": Pos, "dstPos": Pos, "extent": Extent, "srcPtr": PitchedPtr, "dstPtr": PitchedPtr}
        return kinds[name](*value) if name in kinds and isinstance(value, tuple | list) else value


@cuda_function
def memcpy3D(p: Memcpy3DParms) -> Array | jax.Array:
    """Returns the destination with a box copied from the source: `cudaMemcpy3D`.

    Args:
        p: the source, the destination and the box, a `Memcpy3DParms`.

    Returns:
        A new `Array` if the destination is one. If it is a `PitchedPtr`, a new array of the shape and the dtype of its
        memory.

    Gradients:
        To the source and the destination, if both have the same dtype, and pitches are multiples of its size. To
        differentiate other copies is an error.

    Raises:
        CudaError: cudaErrorInvalidValue, if there is not exactly one source and one destination, if a box does not lie
            within its array or memory, or if two arrays differ in the size of an element; cudaErrorInvalidPitchValue,
            if a row is longer than a pitch; cudaErrorInvalidMemcpyDirection, if ``p.kind`` is not a `MemcpyKind`.
        TypeError: if a gradient passes through a copy between memory of different dtypes.

    Example:
        >>> import jax.numpy as jnp, jaxtex.cuda as cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 2)
        >>> array = cuda.memcpyToArray(array, jnp.arange(6.0).reshape(2, 3))
        >>> memory = cuda.PitchedPtr(jnp.zeros((1, 2)), 8, 2, 1)
        >>> cuda.memcpy3D(cuda.Memcpy3DParms(array, cuda.Pos(1, 1), dstPtr=memory, extent=cuda.Extent(2, 1, 1)))
        Array([[4., 5.]], dtype=float32)
    """
    name = "memcpy3D"
    p = check_type(name, "p", p, Memcpy3DParms, "Memcpy3DParms() makes one")
    check_memcpy_kind(name, p.kind)
    src = exactly_one(name, "src", p.srcArray, p.srcPtr)
    dst = exactly_one(name, "dst", p.dstArray, p.dstPtr)
    width, height, depth = counts(name, **named("p.extent", p.extent))
    size = check_sizes(name, src, dst)
    sides = {end.desc.block_side for end in (src, dst) if isinstance(end, Array)}
    if len(sides) > 1:
        raise CudaError(
            Error.NotSupported,
            f"{name}: p.srcArray and p.dstArray have the formats {src} and {dst}, expected blocks in both or in none; "
            f"copy by way of memory.",
        )
    width, height = (blocks_along(n, max(sides, default=1)) for n in (width, height))
    extent = (width * size, height, depth)
    source, target = part_of(name, "src", src, p.srcPos, extent), part_of(name, "dst", dst, p.dstPos, extent)
    mention_dropped(name, src)
    values = src if isinstance(src, Array) else as_memory(src.ptr)
    names = ("p.srcPtr", "p.dstPtr")
    if isinstance(dst, Array):
        will_be_written(name, dst)
        return watch(name, dst, copy_part(values, dst, function=name, source=source, target=target, names=names))
    memory = as_destination(name, "p.dstPtr", dst.ptr)
    return copy_part(values, memory, function=name, source=source, target=target, names=names)


def part_of(
    function: str, end: str, holder: Array | PitchedPtr, pos: Pos, extent: tuple[int, int, int]
) -> Box | Region:
    """The part of the source or of the destination that is copied. The width of `extent` is in bytes."""
    x, y, z = counts(function, **named(f"p.{end}Pos", pos))
    if isinstance(holder, Array):
        x, y = x // holder.desc.block_side, y // holder.desc.block_side
        return box_at(function, f"p.{end}Array", holder, (x, y, z), *extent)
    return region_of(function, f"p.{end}Ptr", holder, (x, y, z), extent)


def named(argument: str, struct: Pos | Extent) -> dict[str, int]:
    """The fields of a struct by the names that a caller gives them."""
    return {f"{argument}.{field.name}": getattr(struct, field.name) for field in dataclasses.fields(struct)}


def exactly_one(function: str, end: str, array: Array | None, pointer: PitchedPtr | None) -> Array | PitchedPtr:
    """The source or the destination of a copy, which is an array or pitched memory."""
    pointer = None if pointer is None else check_type(function, f"p.{end}Ptr", pointer, PitchedPtr, PITCHED_REMEDY)
    pointer = None if pointer is None or pointer.ptr is None else pointer
    if array is not None and pointer is None:
        return check_array(function, f"p.{end}Array", array, None)
    if pointer is not None and array is None:
        return pointer
    given = "none" if array is None else "each"
    raise invalid(f"{function}: {given} of p.{end}Array and p.{end}Ptr is given, expected exactly one.")
