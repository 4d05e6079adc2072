"""The surface functions of device code under CUDA's names. They take arrays: one call accesses for a whole launch."""

# pyright: strict

import jax
from jax.typing import ArrayLike

from ...modes import TextureKind
from ..enums import SurfaceBoundaryMode
from ..memory.arrays import Array
from .formatted_stores import store_formatted
from .surf_docstrings import formatted_store_function, surface_function
from .surface_access import read_units, write_units
from .surface_checks import Surface

BoundaryMode = SurfaceBoundaryMode | int
TRAP = SurfaceBoundaryMode.Trap


@surface_function
def surf1Dread(surface: Surface, x: ArrayLike, boundaryMode: BoundaryMode = TRAP, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at byte x.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 4, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> array = cuda.memcpyToArray(array, jnp.array([10.0, 20.0, 30.0, 40.0]))
        >>> cuda.surf1Dread(array, jnp.array([4, 12]))
        Array([20., 40.], dtype=float32)
    """
    return read_units("surf1Dread", surface, TextureKind.TEXTURE1D, (x,), boundaryMode, T)


@surface_function
def surf1Dwrite(
    data: ArrayLike, surface: Surface, x: ArrayLike, boundaryMode: BoundaryMode = TRAP, *, T: str | None = None
) -> Array:
    """Writes to a 1D array at byte x."""
    return write_units("surf1Dwrite", data, surface, TextureKind.TEXTURE1D, (x,), boundaryMode, T)


@surface_function
def surf2Dread(
    surface: Surface, x: ArrayLike, y: ArrayLike, boundaryMode: BoundaryMode = TRAP, *, T: str | None = None
) -> jax.Array:
    """Reads a 2D array at byte x of row y."""
    return read_units("surf2Dread", surface, TextureKind.TEXTURE2D, (x, y), boundaryMode, T)


@surface_function
def surf2Dwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to a 2D array at byte x of row y.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar4"), 2, 2, cuda.ArrayFlags.SurfaceLoadStore)
        >>> array = cuda.surf2Dwrite(jnp.uint32(0x04030201), array, 4 * 1, 0, T="uint")
        >>> cuda.memcpyFromArray(array)[0]
        Array([[0, 0, 0, 0],
               [1, 2, 3, 4]], dtype=uint8)
    """
    return write_units("surf2Dwrite", data, surface, TextureKind.TEXTURE2D, (x, y), boundaryMode, T)


@surface_function
def surf3Dread(
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a 3D array at byte x of row y in slice z."""
    return read_units("surf3Dread", surface, TextureKind.TEXTURE3D, (x, y, z), boundaryMode, T)


@surface_function
def surf3Dwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to a 3D array at byte x of row y in slice z."""
    return write_units("surf3Dwrite", data, surface, TextureKind.TEXTURE3D, (x, y, z), boundaryMode, T)


@surface_function
def surf1DLayeredread(
    surface: Surface, x: ArrayLike, layer: ArrayLike, boundaryMode: BoundaryMode = TRAP, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a 1D layered array at byte x."""
    return read_units("surf1DLayeredread", surface, TextureKind.TEXTURE1D_LAYERED, (x, layer), boundaryMode, T)


@surface_function
def surf1DLayeredwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    layer: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to a layer of a 1D layered array at byte x."""
    return write_units("surf1DLayeredwrite", data, surface, TextureKind.TEXTURE1D_LAYERED, (x, layer), boundaryMode, T)


@surface_function
def surf2DLayeredread(
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    layer: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a layer of a 2D layered array at byte x of row y."""
    return read_units("surf2DLayeredread", surface, TextureKind.TEXTURE2D_LAYERED, (x, y, layer), boundaryMode, T)


@surface_function
def surf2DLayeredwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    layer: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to a layer of a 2D layered array at byte x of row y."""
    return write_units(
        "surf2DLayeredwrite", data, surface, TextureKind.TEXTURE2D_LAYERED, (x, y, layer), boundaryMode, T
    )


@surface_function
def surfCubemapread(
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    face: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a face of a cubemap at byte x of row y."""
    return read_units("surfCubemapread", surface, TextureKind.CUBEMAP, (x, y, face), boundaryMode, T)


@surface_function
def surfCubemapwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    face: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to a face of a cubemap at byte x of row y.

    Example:
        >>> from jaxtex import cuda
        >>> flags = cuda.ArrayFlags.Cubemap | cuda.ArrayFlags.SurfaceLoadStore
        >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (2, 2, 6), flags)
        >>> cuda.surfCubemapwrite(7.0, array, 4 * 1, 0, 5).texels[5, 0, :, 0]
        Array([0., 7.], dtype=float32)
    """
    return write_units("surfCubemapwrite", data, surface, TextureKind.CUBEMAP, (x, y, face), boundaryMode, T)


@surface_function
def surfCubemapLayeredread(
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    layerFace: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads face layerFace % 6 of cubemap layerFace // 6 of a layered cubemap, at byte x of row y."""
    return read_units(
        "surfCubemapLayeredread", surface, TextureKind.CUBEMAP_LAYERED, (x, y, layerFace), boundaryMode, T
    )


@surface_function
def surfCubemapLayeredwrite(
    data: ArrayLike,
    surface: Surface,
    x: ArrayLike,
    y: ArrayLike,
    layerFace: ArrayLike,
    boundaryMode: BoundaryMode = TRAP,
    *,
    T: str | None = None,
) -> Array:
    """Writes to face layerFace % 6 of cubemap layerFace // 6 of a layered cubemap, at byte x of row y."""
    return write_units(
        "surfCubemapLayeredwrite", data, surface, TextureKind.CUBEMAP_LAYERED, (x, y, layerFace), boundaryMode, T
    )


@formatted_store_function
def sust_p(
    data: ArrayLike, surface: Surface, x: ArrayLike, *coords: ArrayLike, boundaryMode: BoundaryMode = TRAP
) -> Array:
    """Writes to a surface of any kind, and converts to its format: the PTX instruction `sust.p`.

    CUDA C++ has no function for it.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("uchar2"), 3, 0, cuda.ArrayFlags.SurfaceLoadStore)
        >>> cuda.sust_p(jnp.array([300, 7, 0, 0], jnp.uint32), array, 1).texels[1]
        Array([255,   7], dtype=uint8)
    """
    return store_formatted("sust_p", data, surface, (x, *coords), boundaryMode)
