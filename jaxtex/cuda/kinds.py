"""The kinds of textures and surfaces: their names in CUDA, constructors, and limits of devices."""

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import texture as core
from ..modes import TextureKind
from .enums import TextureType
from .errors import invalid
from .functions import cuda_function
from .structs import Struct, struct

NEWEST_COMPUTE_CAPABILITY = 12.1


class KindRow(NamedTuple):
    """A kind of texture: its name in CUDA's functions and limits, its constructor in the core, and its type."""

    name: str
    build: Callable[..., core.Texture]
    texture_type: TextureType

    @property
    def texture_limits(self) -> str:
        """The row of `LIMITS` for textures."""
        return f"maxTexture{self.name}"

    @property
    def surface_limits(self) -> str:
        """The row of `LIMITS` for surfaces."""
        return f"maxSurface{self.name}"


TEXTURE_KINDS = {
    TextureKind.TEXTURE1D: KindRow("1D", core.texture1d, TextureType.Type1D),
    TextureKind.TEXTURE2D: KindRow("2D", core.texture2d, TextureType.Type2D),
    TextureKind.TEXTURE3D: KindRow("3D", core.texture3d, TextureType.Type3D),
    TextureKind.TEXTURE1D_LAYERED: KindRow("1DLayered", core.texture1d_layered, TextureType.Type1DLayered),
    TextureKind.TEXTURE2D_LAYERED: KindRow("2DLayered", core.texture2d_layered, TextureType.Type2DLayered),
    TextureKind.CUBEMAP: KindRow("Cubemap", core.cubemap, TextureType.TypeCubemap),
    TextureKind.CUBEMAP_LAYERED: KindRow("CubemapLayered", core.cubemap_layered, TextureType.TypeCubemapLayered),
}
KINDS_BY_NAME = {row.name: kind for kind, row in TEXTURE_KINDS.items()}
# The largest (width, height, depth or layers), from each compute capability on, by the names of `cudaDeviceProp`.
# Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; its archive for older columns.
LIMITS = {
    "maxTexture1D": {2.0: (65536,), 6.0: (131072,)},
    "maxTexture1DLinear": {
        2.0: (2**27,),
        6.0: (2**28,),
        6.1: (2**27,),
        7.0: (2**28,),
        7.2: (2**27,),
        7.5: (2**28,),
    },
    "maxTexture1DLayered": {2.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "maxTexture2D": {2.0: (65536, 65535), 3.5: (65536, 65536), 6.0: (131072, 65536)},
    "maxTexture2DLinear": {2.0: (65000, 65000), 5.0: (65536, 65536), 6.0: (131072, 65000)},
    "maxTexture2DGather": {2.0: (16384, 16384), 6.0: (32768, 32768)},
    "maxTexture2DLayered": {2.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "maxTexture3D": {2.0: (2048,) * 3, 3.0: (4096,) * 3, 6.0: (16384,) * 3},
    "maxTextureCubemap": {2.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    # The guide counts faces as layers: 2046 of them are 341 cubemaps.
    "maxTextureCubemapLayered": {2.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
    "maxSurface1D": {2.0: (65536,), 5.0: (16384,), 6.0: (32768,)},
    "maxSurface1DLayered": {2.0: (65536, 0, 2048), 5.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "maxSurface2D": {2.0: (65536, 32768), 5.0: (65536, 65536), 6.0: (131072, 65536)},
    "maxSurface2DLayered": {2.0: (65536, 32768, 2048), 5.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "maxSurface3D": {2.0: (65536, 32768, 2048), 5.0: (4096,) * 3, 6.0: (16384,) * 3},
    "maxSurfaceCubemap": {2.0: (32768, 32768, 6), 5.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    "maxSurfaceCubemapLayered": {2.0: (32768, 32768, 2046), 5.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
}


def check_limits(function: str, what: str, sizes: tuple[int, ...], compute_capability: object) -> None:
    """Refuses sizes, in x, y, z order, above the limits of a compute capability (1). `what` is a row of `LIMITS`."""
    limit = limit_of(function, what, compute_capability)
    if any(size > most for size, most in zip(sizes, limit)):
        raise invalid(
            f"{function}: the size is {sizes}, expected at most {limit}, the {what} of compute capability "
            f"{compute_capability}; split it into parts."
        )


def limit_of(function: str, what: str, compute_capability: object) -> tuple[int, ...]:
    """The limits of a compute capability. `what` is a row of `LIMITS`."""
    table = LIMITS[what]
    if not isinstance(compute_capability, int | float) or compute_capability < min(table):
        raise invalid(
            f"{function}: compute_capability is {compute_capability!r}, expected a number such as 9.0, at least "
            f"{min(table)}."
        )
    return table[max(version for version in table if version <= compute_capability)]


# In bytes: of linear memory, and of the pitch of a texture over pitched memory.
TEXTURE_ALIGNMENT, PITCH_ALIGNMENT = 512, 32


@struct()
class DeviceProp(Struct):
    """The limits of a device for textures and surfaces: `cudaDeviceProp`. `getDeviceProperties` returns one.

    Args:
        major, minor: the compute capability.
        textureAlignment, texturePitchAlignment: in bytes. Memory of JAX needs no alignment, but a pitch does.
        maxTexture1D, maxTexture1DLinear, maxTextureCubemap, maxSurface1D, maxSurfaceCubemap: the largest width.
        maxTexture2D, maxTexture2DLinear, maxTexture2DGather, maxSurface2D: the largest width and height.
        maxTexture3D, maxSurface3D: the largest width, height and depth.
        maxTexture1DLayered, maxTextureCubemapLayered, maxSurface1DLayered, maxSurfaceCubemapLayered: the largest width
            and number of layers; of a cubemap, faces count as layers.
        maxTexture2DLayered, maxSurface2DLayered: the largest width, height and number of layers.
    """

    major: int = 0
    minor: int = 0
    textureAlignment: int = 0
    texturePitchAlignment: int = 0
    maxTexture1D: int = 0
    maxTexture1DLinear: int = 0
    maxTexture1DLayered: tuple[int, int] = (0, 0)
    maxTexture2D: tuple[int, int] = (0, 0)
    maxTexture2DLinear: tuple[int, int] = (0, 0)
    maxTexture2DGather: tuple[int, int] = (0, 0)
    maxTexture2DLayered: tuple[int, int, int] = (0, 0, 0)
    maxTexture3D: tuple[int, int, int] = (0, 0, 0)
    maxTextureCubemap: int = 0
    maxTextureCubemapLayered: tuple[int, int] = (0, 0)
    maxSurface1D: int = 0
    maxSurface1DLayered: tuple[int, int] = (0, 0)
    maxSurface2D: tuple[int, int] = (0, 0)
    maxSurface2DLayered: tuple[int, int, int] = (0, 0, 0)
    maxSurface3D: tuple[int, int, int] = (0, 0, 0)
    maxSurfaceCubemap: int = 0
    maxSurfaceCubemapLayered: tuple[int, int] = (0, 0)


@cuda_function
def getDeviceProperties(device: int = 0, *, compute_capability: float = NEWEST_COMPUTE_CAPABILITY) -> DeviceProp:
    """Returns the limits of a device for textures and surfaces: `cudaGetDeviceProperties`.

    Args:
        device: without effect: no device is asked, so results do not depend on the machine.
        compute_capability: the compute capability whose limits are returned, such as 9.0.

    Returns:
        A `DeviceProp`, with the limits that the functions of this module apply for this compute capability.

    Raises:
        CudaError: cudaErrorInvalidValue, if no such compute capability has limits.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.getDeviceProperties(compute_capability=9.0).maxTexture2D
        (131072, 65536)
    """
    limits: dict[str, Any] = {}
    for name in LIMITS:
        limit = limit_of("getDeviceProperties", name, compute_capability)
        if "Cubemap" in name:
            limit = limit[::2] if "Layered" in name else limit[:1]
        width, *others = (n for n in limit if n)
        limits[name] = (width, *others) if others else width
    major, minor = divmod(round(10 * compute_capability), 10)
    return DeviceProp(major, minor, TEXTURE_ALIGNMENT, PITCH_ALIGNMENT, **limits)
