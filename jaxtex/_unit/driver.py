"""The CUDA driver, `libcuda`, by its C interface: the structs and the calls that texture objects need.

Source: the CUDA Driver API, "Memory Management" and "Texture Object Management". Names of fields are shortened.
"""

import contextlib
import ctypes
import functools
from collections.abc import Generator
from typing import Any

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
HOST_MEMORY, DEVICE_MEMORY, ARRAY_MEMORY = 1, 2, 3
# Flags of arrays.
LAYERED, CUBEMAP, TEXTURE_GATHER = 0x01, 0x04, 0x08
# Flags of texture objects.
READ_AS_INTEGER, NORMALIZED_COORDINATES, SRGB, SEAMLESS_CUBEMAP = 0x01, 0x02, 0x10, 0x40
# The formats of arrays, by the names of dtypes, and by those of block formats.
FORMATS = {
    "uint8": 0x01,
    "uint16": 0x02,
    "uint32": 0x03,
    "int8": 0x08,
    "int16": 0x09,
    "int32": 0x0A,
    "float16": 0x10,
    "float32": 0x20,
}
OF_BLOCKS = {
    "bc1": 0x91,
    "bc2": 0x93,
    "bc3": 0x95,
    "bc4": 0x97,
    "bc4_signed": 0x98,
    "bc5": 0x99,
    "bc5_signed": 0x9A,
    "bc6h": 0x9B,
    "bc6h_signed": 0x9C,
    "bc7": 0x9D,
}
# The formats of blocks that are decoded from sRGB follow those that are not.
WITH_SRGB = ("bc1", "bc2", "bc3", "bc7")


class ArrayDescriptor(ctypes.Structure):
    """`CUDA_ARRAY3D_DESCRIPTOR`."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
        ("format", ctypes.c_int),
        ("num_channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    ]


class Side(ctypes.Structure):
    """The source or the destination of a copy, a half of `CUDA_MEMCPY3D`."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("x_in_bytes", "y", "z", "level")),
        ("memory_type", ctypes.c_int),
        ("host", ctypes.c_void_p),
        ("device", ctypes.c_uint64),
        ("array", ctypes.c_void_p),
        ("reserved", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    ]


class Copy(ctypes.Structure):
    """`CUDA_MEMCPY3D`."""

    _fields_ = [
        ("source", Side),
        ("destination", Side),
        *((name, ctypes.c_size_t) for name in ("width_in_bytes", "height", "depth")),
    ]


class Resource(ctypes.Structure):
    """`CUDA_RESOURCE_DESC` of an array (type 0) or of a mipmapped array (type 1)."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("memory", ctypes.c_void_p),
        ("others", ctypes.c_uint64 * 15),
        ("flags", ctypes.c_uint),
    ]


class TextureDescriptor(ctypes.Structure):
    """`CUDA_TEXTURE_DESC`."""

    _fields_ = [
        ("address_modes", ctypes.c_int * 3),
        ("filter_mode", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("max_anisotropy", ctypes.c_uint),
        ("mipmap_filter_mode", ctypes.c_int),
        ("mipmap_level_bias", ctypes.c_float),
        ("min_mipmap_level_clamp", ctypes.c_float),
        ("max_mipmap_level_clamp", ctypes.c_float),
        ("border_color", ctypes.c_uint32 * 4),  # the bits of four floats
        ("reserved", ctypes.c_int * 12),
    ]


class DriverError(RuntimeError):
    """The CUDA driver is missing, or refused a call.

    Attributes:
        code: a `CUresult`; `None` without a driver.
    """

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        self.code = code


@functools.cache
def library() -> ctypes.CDLL:
    """The driver.

    Raises:
        DriverError: if it is missing.
    """
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DriverError(
            f"jaxtex.unit: the CUDA driver, {LIBRARY}, cannot be loaded ({error}); install the driver of NVIDIA."
        ) from None


def call(name: str, *args: Any) -> None:
    """Calls a function of the driver.

    Raises:
        DriverError: if it fails.
    """
    code = getattr(library(), name)(*args)
    if code:
        text = ctypes.c_char_p()
        library().cuGetErrorName(code, ctypes.byref(text))
        raise DriverError(f"jaxtex.unit: {name} of the CUDA driver failed: {(text.value or b'?').decode()}.", code)


@functools.cache
def context_of(ordinal: int) -> ctypes.c_void_p:
    """The primary context of a GPU, which XLA uses, too."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), ordinal)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


@contextlib.contextmanager
def on_device(ordinal: int) -> Generator[None]:
    """Makes the context of a GPU the current one of this thread."""
    call("cuCtxPushCurrent_v2", context_of(ordinal))
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def make_array(descriptor: ArrayDescriptor, num_levels: int) -> ctypes.c_void_p:
    """A CUDA array, or a mipmapped array if `num_levels` is not 0."""
    made = ctypes.c_void_p()
    if num_levels:
        call("cuMipmappedArrayCreate", ctypes.byref(made), ctypes.byref(descriptor), ctypes.c_uint(num_levels))
    else:
        call("cuArray3DCreate_v2", ctypes.byref(made), ctypes.byref(descriptor))
    return made


def level_of(array: ctypes.c_void_p, level: int) -> ctypes.c_void_p:
    """A level of a mipmapped array."""
    found = ctypes.c_void_p()
    call("cuMipmappedArrayGetLevel", ctypes.byref(found), array, ctypes.c_uint(level))
    return found


def destroy_array(array: ctypes.c_void_p, num_levels: int) -> None:
    call("cuMipmappedArrayDestroy" if num_levels else "cuArrayDestroy", array)


def copy_to_array(source: int | bytes, array: ctypes.c_void_p, row_bytes: int, rows: int, slices: int) -> None:
    """Copies rows, one after the other, into an array. `write` waits for the copy.

    Args:
        source: an address in memory of the device, or bytes of the host.
    """
    copy = Copy(width_in_bytes=row_bytes, height=rows, depth=slices)
    if isinstance(source, bytes):
        pointer = ctypes.cast(ctypes.c_char_p(source), ctypes.c_void_p)
        copy.source = Side(memory_type=HOST_MEMORY, host=pointer, pitch=row_bytes, height=rows)
    else:
        copy.source = Side(memory_type=DEVICE_MEMORY, device=source, pitch=row_bytes, height=rows)
    copy.destination = Side(memory_type=ARRAY_MEMORY, array=array)
    call("cuMemcpy3D_v2", ctypes.byref(copy))


def make_object(array: ctypes.c_void_p, num_levels: int, descriptor: TextureDescriptor) -> int:
    """A texture object."""
    resource, made = Resource(type=int(num_levels > 0), memory=array), ctypes.c_uint64()
    call("cuTexObjectCreate", ctypes.byref(made), ctypes.byref(resource), ctypes.byref(descriptor), None)
    return made.value


def destroy_object(made: int) -> None:
    call("cuTexObjectDestroy", ctypes.c_uint64(made))


def allocate(size: int) -> int:
    """The address of new memory of the device."""
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value


def write(address: int, data: bytes) -> None:
    """Copies bytes of the host to memory of the device."""
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))


def synchronize() -> None:
    """Waits for everything that the current context has begun."""
    call("cuCtxSynchronize")
