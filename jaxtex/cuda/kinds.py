"""The kinds of textures and surfaces: their names in CUDA, how they are built, and their largest sizes on a device."""

# pyright: strict

from collections.abc import Callable
from typing import NamedTuple

from .. import texture as core
from ..modes import TextureKind
from .enums import TextureType
from .errors import INVALID_VALUE, CudaError

NEWEST_COMPUTE_CAPABILITY = 12.1


class KindRow(NamedTuple):
    """A kind of texture: its name in CUDA's functions. `texture_limits` and `surface_limits` name rows of `LIMITS`."""

    name: str
    build: Callable[..., core.Texture]
    texture_type: TextureType
    texture_limits: str
    surface_limits: str


TEXTURE_KINDS = {
    TextureKind.TEXTURE1D: KindRow("1D", core.texture1d, TextureType.Type1D, "1D texture", "1D surface"),
    TextureKind.TEXTURE2D: KindRow("2D", core.texture2d, TextureType.Type2D, "2D texture", "2D surface"),
    TextureKind.TEXTURE3D: KindRow("3D", core.texture3d, TextureType.Type3D, "3D texture", "3D surface"),
    TextureKind.TEXTURE1D_LAYERED: KindRow(
        "1DLayered", core.texture1d_layered, TextureType.Type1DLayered, "1D layered texture", "1D layered surface"
    ),
    TextureKind.TEXTURE2D_LAYERED: KindRow(
        "2DLayered", core.texture2d_layered, TextureType.Type2DLayered, "2D layered texture", "2D layered surface"
    ),
    TextureKind.CUBEMAP: KindRow("Cubemap", core.cubemap, TextureType.TypeCubemap, "cubemap", "cubemap surface"),
    TextureKind.CUBEMAP_LAYERED: KindRow(
        "CubemapLayered",
        core.cubemap_layered,
        TextureType.TypeCubemapLayered,
        "layered cubemap",
        "layered cubemap surface",
    ),
}
KINDS_BY_NAME = {row.name: kind for kind, row in TEXTURE_KINDS.items()}
# The largest (width, height, depth or layers), from each compute capability on.
# Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; its archive for older columns.
LIMITS = {
    "1D texture": {2.0: (65536,), 6.0: (131072,)},
    "1D texture from linear memory": {
        2.0: (2**27,),
        6.0: (2**28,),
        6.1: (2**27,),
        7.0: (2**28,),
        7.2: (2**27,),
        7.5: (2**28,),
    },
    "1D layered texture": {2.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "2D texture": {2.0: (65536, 65535), 3.5: (65536, 65536), 6.0: (131072, 65536)},
    "2D texture from pitched memory": {2.0: (65000, 65000), 5.0: (65536, 65536), 6.0: (131072, 65000)},
    "2D texture with gather": {2.0: (16384, 16384), 6.0: (32768, 32768)},
    "2D layered texture": {2.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "3D texture": {2.0: (2048,) * 3, 3.0: (4096,) * 3, 6.0: (16384,) * 3},
    "cubemap": {2.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    # The guide counts faces as layers: 2046 of them are 341 cubemaps.
    "layered cubemap": {2.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
    "1D surface": {2.0: (65536,), 5.0: (16384,), 6.0: (32768,)},
    "1D layered surface": {2.0: (65536, 0, 2048), 5.0: (16384, 0, 2048), 6.0: (32768, 0, 2048)},
    "2D surface": {2.0: (65536, 32768), 5.0: (65536, 65536), 6.0: (131072, 65536)},
    "2D layered surface": {2.0: (65536, 32768, 2048), 5.0: (16384, 16384, 2048), 6.0: (32768, 32768, 2048)},
    "3D surface": {2.0: (65536, 32768, 2048), 5.0: (4096,) * 3, 6.0: (16384,) * 3},
    "cubemap surface": {2.0: (32768, 32768, 6), 5.0: (16384, 16384, 6), 6.0: (32768, 32768, 6)},
    "layered cubemap surface": {2.0: (32768, 32768, 2046), 5.0: (16384, 16384, 2046), 6.0: (32768, 32768, 2046)},
}


def check_limits(function: str, what: str, sizes: tuple[int, ...], compute_capability: object) -> None:
    """Refuses sizes, in x, y, z order, above the limits of a compute capability (1). `what` is a row of `LIMITS`."""
    limit = limit_of(function, what, compute_capability)
    if any(size > most for size, most in zip(sizes, limit)):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: the {what} has the size {sizes}, expected at most {limit} for compute capability "
            f"{compute_capability}; split it into parts.",
        )


def limit_of(function: str, what: str, compute_capability: object) -> tuple[int, ...]:
    """The limits of a compute capability. `what` is a row of `LIMITS`."""
    table = LIMITS[what]
    if not isinstance(compute_capability, int | float) or compute_capability < min(table):
        raise CudaError(
            INVALID_VALUE,
            f"{function}: compute_capability is {compute_capability!r}, expected a number such as 9.0, at least "
            f"{min(table)}.",
        )
    return table[max(version for version in table if version <= compute_capability)]
