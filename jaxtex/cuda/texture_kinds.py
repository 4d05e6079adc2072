"""One row for each kind of texture: its constructor in the core, its type in CUDA, and its size limits."""

# pyright: strict

from collections.abc import Callable
from typing import NamedTuple

from .. import texture as core
from ..modes import TextureKind
from .enums import TextureType


class KindRow(NamedTuple):
    """A kind of texture. `texture_limits` and `surface_limits` name rows of `limits.LIMITS`."""

    build: Callable[..., core.Texture]
    texture_type: TextureType
    texture_limits: str
    surface_limits: str


TEXTURE_KINDS = {
    TextureKind.TEXTURE1D: KindRow(core.texture1d, TextureType.Type1D, "1D texture", "1D surface"),
    TextureKind.TEXTURE2D: KindRow(core.texture2d, TextureType.Type2D, "2D texture", "2D surface"),
    TextureKind.TEXTURE3D: KindRow(core.texture3d, TextureType.Type3D, "3D texture", "3D surface"),
    TextureKind.TEXTURE1D_LAYERED: KindRow(
        core.texture1d_layered, TextureType.Type1DLayered, "1D layered texture", "1D layered surface"
    ),
    TextureKind.TEXTURE2D_LAYERED: KindRow(
        core.texture2d_layered, TextureType.Type2DLayered, "2D layered texture", "2D layered surface"
    ),
    TextureKind.CUBEMAP: KindRow(core.cubemap, TextureType.TypeCubemap, "cubemap", "cubemap surface"),
    TextureKind.CUBEMAP_LAYERED: KindRow(
        core.cubemap_layered, TextureType.TypeCubemapLayered, "layered cubemap", "layered cubemap surface"
    ),
}
