"""The texture functions of device code, under CUDA's names. Every argument is an array: one call is a whole launch."""

from typing import Any

import jax

from ...modes import TextureKind
from .tex_dispatch import read, read_gather, read_texel
from .tex_docstrings import texture_function
from .texture_objects import TextureObject


@texture_function
def tex1Dfetch(t: TextureObject, x: Any, *, T: str | None = None) -> jax.Array:
    """Reads texels of linear memory by their index, unfiltered.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> words = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.array([7, 8, 9])), cuda.TextureDesc())
        >>> cuda.tex1Dfetch(words, jnp.array([-1, 0, 2, 3]))
        Array([0, 7, 9, 0], dtype=int32)
    """
    return read_texel("tex1Dfetch", t, x, T)


@texture_function
def tex1D(t: TextureObject, x: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x."""
    return read("tex1D", t, TextureKind.TEXTURE1D, (x,), T)


@texture_function
def tex2D(t: TextureObject, x: Any, y: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> rows = cuda.ResourceDesc.Pitch2D(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> image = cuda.createTextureObject(rows, cuda.TextureDesc(filterMode=cuda.FilterMode.Linear))
        >>> cuda.tex2D(image, jnp.array([0.5, 1.5]), 1.0)
        Array([1., 2.], dtype=float32)
    """
    return read("tex2D", t, TextureKind.TEXTURE2D, (x, y), T)


@texture_function
def tex3D(t: TextureObject, x: Any, y: Any, z: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 3D array at (x, y, z)."""
    return read("tex3D", t, TextureKind.TEXTURE3D, (x, y, z), T)


@texture_function
def tex1DLayered(t: TextureObject, x: Any, layer: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 1D layered array at x."""
    return read("tex1DLayered", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer)


@texture_function
def tex2DLayered(t: TextureObject, x: Any, y: Any, layer: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y)."""
    return read("tex2DLayered", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer)


@texture_function
def texCubemap(t: TextureObject, x: Any, y: Any, z: Any, *, T: str | None = None) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z)."""
    return read("texCubemap", t, TextureKind.CUBEMAP, (x, y, z), T)


@texture_function
def texCubemapLayered(t: TextureObject, x: Any, y: Any, z: Any, layer: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z)."""
    return read("texCubemapLayered", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer)


@texture_function
def tex1DLod(t: TextureObject, x: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x, from a given level."""
    return read("tex1DLod", t, TextureKind.TEXTURE1D, (x,), T, lod=level)


@texture_function
def tex2DLod(t: TextureObject, x: Any, y: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y), from a given level."""
    return read("tex2DLod", t, TextureKind.TEXTURE2D, (x, y), T, lod=level)


@texture_function
def tex3DLod(t: TextureObject, x: Any, y: Any, z: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 3D array at (x, y, z), from a given level."""
    return read("tex3DLod", t, TextureKind.TEXTURE3D, (x, y, z), T, lod=level)


@texture_function
def tex1DLayeredLod(t: TextureObject, x: Any, layer: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 1D layered array at x, from a given level."""
    return read("tex1DLayeredLod", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer, lod=level)


@texture_function
def tex2DLayeredLod(t: TextureObject, x: Any, y: Any, layer: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y), from a given level."""
    return read("tex2DLayeredLod", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer, lod=level)


@texture_function
def texCubemapLod(t: TextureObject, x: Any, y: Any, z: Any, level: Any, *, T: str | None = None) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z), from a given level."""
    return read("texCubemapLod", t, TextureKind.CUBEMAP, (x, y, z), T, lod=level)


@texture_function
def texCubemapLayeredLod(
    t: TextureObject, x: Any, y: Any, z: Any, layer: Any, level: Any, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z), from a given level."""
    return read("texCubemapLayeredLod", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer, lod=level)


@texture_function
def tex1DGrad(t: TextureObject, x: Any, dPdx: Any, dPdy: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x, from the level that its derivatives ask for."""
    return read("tex1DGrad", t, TextureKind.TEXTURE1D, (x,), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex2DGrad(t: TextureObject, x: Any, y: Any, dPdx: Any, dPdy: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y), from the level that its derivatives ask for."""
    return read("tex2DGrad", t, TextureKind.TEXTURE2D, (x, y), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex3DGrad(t: TextureObject, x: Any, y: Any, z: Any, dPdx: Any, dPdy: Any, *, T: str | None = None) -> jax.Array:
    """Reads a 3D array at (x, y, z), from the level that its derivatives ask for."""
    return read("tex3DGrad", t, TextureKind.TEXTURE3D, (x, y, z), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex1DLayeredGrad(t: TextureObject, x: Any, layer: Any, dPdx: Any, dPdy: Any, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 1D layered array at x, from the level that its derivatives ask for."""
    return read("tex1DLayeredGrad", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer, ddx=dPdx, ddy=dPdy)


@texture_function
def tex2DLayeredGrad(
    t: TextureObject, x: Any, y: Any, layer: Any, dPdx: Any, dPdy: Any, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y), from the level that its derivatives ask for."""
    return read("tex2DLayeredGrad", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer, ddx=dPdx, ddy=dPdy)


@texture_function
def texCubemapGrad(
    t: TextureObject, x: Any, y: Any, z: Any, dPdx: Any, dPdy: Any, *, T: str | None = None
) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z), from the level that its derivatives ask for."""
    return read("texCubemapGrad", t, TextureKind.CUBEMAP, (x, y, z), T, ddx=dPdx, ddy=dPdy)


@texture_function
def texCubemapLayeredGrad(
    t: TextureObject, x: Any, y: Any, z: Any, layer: Any, dPdx: Any, dPdy: Any, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z), from the level that its derivatives ask for."""
    return read("texCubemapLayeredGrad", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer, ddx=dPdx, ddy=dPdy)


@texture_function
def tex2Dgather(t: TextureObject, x: Any, y: Any, comp: int = 0, *, T: str | None = None) -> jax.Array:
    """Reads one channel of the four texels that a linear read at (x, y) would blend.

    With (x0, y0) the upper left one, they come as (x0, y1), (x1, y1), (x1, y0), (x0, y0): counter-clockwise from the
    lower left, as y points down in memory. The array needs the flag TextureGather.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 3, cuda.ArrayFlags.TextureGather)
        >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1, 2], [10, 11, 12], [20, 21, 22]]))
        >>> cuda.tex2Dgather(cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc()), 1.0, 1.0)
        Array([10., 11.,  1.,  0.], dtype=float32)
    """
    return read_gather("tex2Dgather", t, (x, y), comp, T)
