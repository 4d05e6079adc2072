# pyright: strict

"""Descriptors of a texture: how its texels are read, and which part of a resource belongs to it."""

import dataclasses

from jax.typing import ArrayLike

from ..enums import AddressMode, FilterMode, ReadMode, ResourceViewFormat
from ..pytrees import pytree

# One mode for every axis, or up to three in x, y, z order.
Mode = AddressMode | int
AddressModes = Mode | tuple[Mode, ...]
# An array of shape (4,), or four numbers.
BorderColor = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]


@pytree("borderColor")
@dataclasses.dataclass(frozen=True)
class TextureDesc:
    """How a texture is read: `cudaTextureDesc`. Every default is what a zeroed struct means in CUDA.

    Args:
        addressMode: an `AddressMode` for every axis, or a tuple in x, y, z order; axes that it leaves out wrap, as in
            a zeroed array. The default is **Wrap**. With unnormalised coordinates Wrap and Mirror act as Clamp.
        filterMode: `FilterMode`, by default **Point**.
        readMode: `ReadMode`. NormalizedFloat makes fractions of 8- and 16-bit integers.
        sRGB: whether 8-bit unsigned colours that are read as fractions are decoded first; ignored elsewhere.
        borderColor: four floats. Where integers are read as elements, the bits of these floats are the colour:
            ``numpy.int32(5).view(numpy.float32)``. The one field that is a leaf of the pytree: gradients reach it.
        normalizedCoords: whether coordinates run from 0 to 1, by default **not**. Mipmapped arrays need it; the
            directions of cubemaps have no unit.
        maxAnisotropy: clamped to 1 to 16.
        mipmapFilterMode: `FilterMode` between levels.
        mipmapLevelBias: added to a level that is given or follows from derivatives.
        minMipmapLevelClamp, maxMipmapLevelClamp: bounds of the level, relative to the view's first; the first wins.
            The default of **0** for both pins every read to level 0.
        disableTrilinearOptimization: a hint to hardware, ignored.
        seamlessCubemap: whether linear reads of a cubemap cross its edges, by default **not**; cubemaps only.

    Source: CUDA Runtime API, `cudaTextureDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.TextureDesc().addressMode[0].name, cuda.TextureDesc().filterMode.name
        ('Wrap', 'Point')
    """

    addressMode: AddressModes = (AddressMode.Wrap, AddressMode.Wrap, AddressMode.Wrap)
    filterMode: FilterMode | int = FilterMode.Point
    readMode: ReadMode | int = ReadMode.ElementType
    sRGB: int = 0
    borderColor: BorderColor = (0.0, 0.0, 0.0, 0.0)
    normalizedCoords: int = 0
    maxAnisotropy: int = 0
    mipmapFilterMode: FilterMode | int = FilterMode.Point
    mipmapLevelBias: float = 0.0
    minMipmapLevelClamp: float = 0.0
    maxMipmapLevelClamp: float = 0.0
    disableTrilinearOptimization: int = 0
    seamlessCubemap: int = 0

    def __post_init__(self):
        for name in ("addressMode", "borderColor"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclasses.dataclass(frozen=True)
class ResourceViewDesc:
    """Which part of an array a texture sees, and in which format: `cudaResourceViewDesc`.

    Args:
        format: a `ResourceViewFormat` with texels of the same size as the array's, or ``None_`` for the array's own.
        width, height, depth: those of the array's extent.
        firstMipmapLevel, lastMipmapLevel: the levels that are seen; both 0 without mip levels. The first becomes
            level 0.
        firstLayer, lastLayer: the layers that are seen; both 0 without layers. The first becomes layer 0. The layers
            of a layered cubemap are whole cubemaps.

    Source: CUDA Runtime API, `cudaResourceViewDesc`.

    Example:
        >>> from jaxtex import cuda
        >>> cuda.ResourceViewDesc(cuda.ResourceViewFormat.Float1, 64, 64, firstMipmapLevel=2, lastMipmapLevel=6).depth
        0
    """

    format: ResourceViewFormat | int = ResourceViewFormat.None_
    width: int = 0
    height: int = 0
    depth: int = 0
    firstMipmapLevel: int = 0
    lastMipmapLevel: int = 0
    firstLayer: int = 0
    lastLayer: int = 0
