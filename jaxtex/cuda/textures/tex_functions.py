"""The texture functions of device code under CUDA's names. They take arrays: one call reads for a whole launch."""

# pyright: strict

import jax
from jax.typing import ArrayLike

from ...modes import TextureKind
from .tex_dispatch import Texture, fetch_texel, gather_texels, read_filtered
from .tex_docstrings import texture_function

# Derivatives of one, two or three coordinates: CUDA's float, float2 and float4, as an array or as a tuple.
Derivatives1D = ArrayLike
Derivatives2D = ArrayLike | tuple[ArrayLike, ArrayLike]
Derivatives3D = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]


@texture_function
def tex1Dfetch(t: Texture, x: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads single texels of linear memory by their integer index, without a filter.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> words = cuda.createTextureObject(cuda.ResourceDesc.Linear(jnp.array([7, 8, 9])), cuda.TextureDesc())
        >>> cuda.tex1Dfetch(words, jnp.array([-1, 0, 2, 3]))
        Array([0, 7, 9, 0], dtype=int32)
    """
    return fetch_texel("tex1Dfetch", t, x, T)


@texture_function
def tex1D(t: Texture, x: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x."""
    return read_filtered("tex1D", t, TextureKind.TEXTURE1D, (x,), T)


@texture_function
def tex2D(t: Texture, x: ArrayLike, y: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> rows = cuda.ResourceDesc.Pitch2D(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> image = cuda.createTextureObject(rows, cuda.TextureDesc(filterMode=cuda.FilterMode.Linear))
        >>> cuda.tex2D(image, jnp.array([0.5, 1.5]), 1.0)
        Array([1., 2.], dtype=float32)
    """
    return read_filtered("tex2D", t, TextureKind.TEXTURE2D, (x, y), T)


@texture_function
def tex3D(t: Texture, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a 3D array at (x, y, z)."""
    return read_filtered("tex3D", t, TextureKind.TEXTURE3D, (x, y, z), T)


@texture_function
def tex1DLayered(t: Texture, x: ArrayLike, layer: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 1D layered array at x."""
    return read_filtered("tex1DLayered", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer)


@texture_function
def tex2DLayered(t: Texture, x: ArrayLike, y: ArrayLike, layer: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (2, 2, 3), cuda.ArrayFlags.Layered)
        >>> array = cuda.memcpyToArray(array, jnp.arange(12.0).reshape(3, 2, 2, 1))
        >>> layers = cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc())
        >>> cuda.tex2DLayered(layers, 1.5, 0.5, jnp.array([0, 2]))
        Array([1., 9.], dtype=float32)
    """
    return read_filtered("tex2DLayered", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer)


@texture_function
def texCubemap(t: Texture, x: ArrayLike, y: ArrayLike, z: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.malloc3DArray(cuda.createChannelDesc("float"), (4, 4, 6), cuda.ArrayFlags.Cubemap)
        >>> faces = jnp.broadcast_to(jnp.arange(6.0)[:, None, None, None], (6, 4, 4, 1))
        >>> cube = cuda.createTextureObject(
        ...     cuda.ResourceDesc.Array(cuda.memcpyToArray(array, faces)), cuda.TextureDesc())
        >>> cuda.texCubemap(cube, jnp.array([1.0, 0.0]), 0.0, jnp.array([0.0, -3.0]))
        Array([0., 5.], dtype=float32)
    """
    return read_filtered("texCubemap", t, TextureKind.CUBEMAP, (x, y, z), T)


@texture_function
def texCubemapLayered(
    t: Texture, x: ArrayLike, y: ArrayLike, z: ArrayLike, layer: ArrayLike, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z)."""
    return read_filtered("texCubemapLayered", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer)


@texture_function
def tex1DLod(t: Texture, x: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x, with a given level of detail."""
    return read_filtered("tex1DLod", t, TextureKind.TEXTURE1D, (x,), T, lod=level)


@texture_function
def tex2DLod(t: Texture, x: ArrayLike, y: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y), with a given level of detail.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
        >>> for level, texels in enumerate(mipmap.levels):
        ...     mipmap = cuda.memcpyToArray(mipmap, jnp.full_like(texels, level), level=level)
        >>> desc = cuda.TextureDesc(normalizedCoords=1, maxMipmapLevelClamp=2.0)
        >>> levels = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
        >>> cuda.tex2DLod(levels, 0.5, 0.5, jnp.array([0.0, 1.0, 9.0]))
        Array([0., 1., 2.], dtype=float32)
    """
    return read_filtered("tex2DLod", t, TextureKind.TEXTURE2D, (x, y), T, lod=level)


@texture_function
def tex3DLod(
    t: Texture, x: ArrayLike, y: ArrayLike, z: ArrayLike, level: ArrayLike, *, T: str | None = None
) -> jax.Array:
    """Reads a 3D array at (x, y, z), with a given level of detail."""
    return read_filtered("tex3DLod", t, TextureKind.TEXTURE3D, (x, y, z), T, lod=level)


@texture_function
def tex1DLayeredLod(t: Texture, x: ArrayLike, layer: ArrayLike, level: ArrayLike, *, T: str | None = None) -> jax.Array:
    """Reads a layer of a 1D layered array at x, with a given level of detail."""
    return read_filtered("tex1DLayeredLod", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer, lod=level)


@texture_function
def tex2DLayeredLod(
    t: Texture, x: ArrayLike, y: ArrayLike, layer: ArrayLike, level: ArrayLike, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y), with a given level of detail."""
    return read_filtered("tex2DLayeredLod", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer, lod=level)


@texture_function
def texCubemapLod(
    t: Texture, x: ArrayLike, y: ArrayLike, z: ArrayLike, level: ArrayLike, *, T: str | None = None
) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z), with a given level of detail."""
    return read_filtered("texCubemapLod", t, TextureKind.CUBEMAP, (x, y, z), T, lod=level)


@texture_function
def texCubemapLayeredLod(
    t: Texture,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    layer: ArrayLike,
    level: ArrayLike,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z), with a given level of detail."""
    return read_filtered("texCubemapLayeredLod", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer, lod=level)


@texture_function
def tex1DGrad(t: Texture, x: ArrayLike, dPdx: Derivatives1D, dPdy: Derivatives1D, *, T: str | None = None) -> jax.Array:
    """Reads a 1D array at x, with a level of detail from derivatives."""
    return read_filtered("tex1DGrad", t, TextureKind.TEXTURE1D, (x,), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex2DGrad(
    t: Texture, x: ArrayLike, y: ArrayLike, dPdx: Derivatives2D, dPdy: Derivatives2D, *, T: str | None = None
) -> jax.Array:
    """Reads a 2D array, or pitched memory, at (x, y), with a level of detail from derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> mipmap = cuda.mallocMipmappedArray(cuda.createChannelDesc("float"), (4, 4, 0), 3)
        >>> for level, texels in enumerate(mipmap.levels):
        ...     mipmap = cuda.memcpyToArray(mipmap, jnp.full_like(texels, level), level=level)
        >>> desc = cuda.TextureDesc(normalizedCoords=1, maxMipmapLevelClamp=2.0)
        >>> levels = cuda.createTextureObject(cuda.ResourceDesc.MipmappedArray(mipmap), desc)
        >>> cuda.tex2DGrad(levels, 0.5, 0.5, cuda.make_float2(0.5, 0), cuda.make_float2(0, 0.25))  # 2 texels by 1
        Array(1., dtype=float32)
    """
    return read_filtered("tex2DGrad", t, TextureKind.TEXTURE2D, (x, y), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex3DGrad(
    t: Texture,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    dPdx: Derivatives3D,
    dPdy: Derivatives3D,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a 3D array at (x, y, z), with a level of detail from derivatives."""
    return read_filtered("tex3DGrad", t, TextureKind.TEXTURE3D, (x, y, z), T, ddx=dPdx, ddy=dPdy)


@texture_function
def tex1DLayeredGrad(
    t: Texture, x: ArrayLike, layer: ArrayLike, dPdx: Derivatives1D, dPdy: Derivatives1D, *, T: str | None = None
) -> jax.Array:
    """Reads a layer of a 1D layered array at x, with a level of detail from derivatives."""
    return read_filtered("tex1DLayeredGrad", t, TextureKind.TEXTURE1D_LAYERED, (x,), T, layer=layer, ddx=dPdx, ddy=dPdy)


@texture_function
def tex2DLayeredGrad(
    t: Texture,
    x: ArrayLike,
    y: ArrayLike,
    layer: ArrayLike,
    dPdx: Derivatives2D,
    dPdy: Derivatives2D,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a layer of a 2D layered array at (x, y), with a level of detail from derivatives."""
    return read_filtered(
        "tex2DLayeredGrad", t, TextureKind.TEXTURE2D_LAYERED, (x, y), T, layer=layer, ddx=dPdx, ddy=dPdy
    )


@texture_function
def texCubemapGrad(
    t: Texture,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    dPdx: Derivatives3D,
    dPdy: Derivatives3D,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a cubemap in the direction (x, y, z), with a level of detail from derivatives."""
    return read_filtered("texCubemapGrad", t, TextureKind.CUBEMAP, (x, y, z), T, ddx=dPdx, ddy=dPdy)


@texture_function
def texCubemapLayeredGrad(
    t: Texture,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    layer: ArrayLike,
    dPdx: Derivatives3D,
    dPdy: Derivatives3D,
    *,
    T: str | None = None,
) -> jax.Array:
    """Reads a layer of a layered cubemap in the direction (x, y, z), with a level of detail from derivatives."""
    return read_filtered(
        "texCubemapLayeredGrad", t, TextureKind.CUBEMAP_LAYERED, (x, y, z), T, layer=layer, ddx=dPdx, ddy=dPdy
    )


@texture_function
def tex2Dgather(t: Texture, x: ArrayLike, y: ArrayLike, comp: int = 0, *, T: str | None = None) -> jax.Array:
    """Reads one channel of the four texels that a linear read at (x, y) would blend.

    With (x0, y0) the texel of the smallest coordinates, the order is (x0, y1), (x1, y1), (x1, y0), (x0, y0): counter-
    clockwise from the lower left in an image whose y points down. The array must have ``ArrayFlags.TextureGather``.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxtex import cuda
        >>> array = cuda.mallocArray(cuda.createChannelDesc("float"), 3, 3, cuda.ArrayFlags.TextureGather)
        >>> array = cuda.memcpyToArray(array, jnp.array([[0.0, 1, 2], [10, 11, 12], [20, 21, 22]]))
        >>> cuda.tex2Dgather(cuda.createTextureObject(cuda.ResourceDesc.Array(array), cuda.TextureDesc()), 1.0, 1.0)
        Array([10., 11.,  1.,  0.], dtype=float32)
    """
    return gather_texels("tex2Dgather", t, (x, y), comp, T)
