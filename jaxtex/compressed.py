"""Textures of block-compressed and packed images."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ._blocks.formats import FORMATS, bytes_of, decoded
from ._checks.calls import public
from ._checks.numbers import on_device
from ._checks.words import described, listing
from .modes import BlockFormat, TextureKind, choose
from .texture import Texels, Texture, build, chain_shapes, check_shape

__all__ = ["block_compressed"]
__dir__ = listing(__all__)

KINDS = tuple(kind for kind in TextureKind if kind.texel_ndim > 1)


@public
def block_compressed(
    blocks: Texels,
    format: BlockFormat | str,
    shape: tuple[int, ...],
    *,
    kind: TextureKind | str = "2d",
    border_color: ArrayLike | None = None,
) -> Texture:
    """Decodes a block-compressed image (4 by 4 texels in 8 or 16 bytes), or a packed one, to a texture.

    Decoding returns the bits of an NVIDIA H200's texture unit. It happens once, so reads have all options and full
    speed, and texels take the memory of an uncompressed image. On an NVIDIA H100, decoding 4096 by 4096 texels takes
    0.15 ms (BC1) or 0.84 ms (BC7), and as many linear reads take 0.19 ms.

    =================  =====  ========  ========  ==========================
    format             bytes  channels  dtype     read with
    =================  =====  ========  ========  ==========================
    bc1                8      4         uint8     ``"normalized_float"``
    bc2, bc3, bc7      16     4         uint8     ``"normalized_float"``
    bc4, bc4_signed    8      1         (u)int16  ``"normalized_float"``
    bc5, bc5_signed    16     2         (u)int16  ``"normalized_float"``
    bc6h, bc6h_signed  16     3         float16   ``"element"``, the default
    rgb10a2            4      4         uint16    ``"normalized_float"``
    =================  =====  ========  ========  ==========================

    A block of ``"rgb10a2"`` is one texel: a word with red in its lowest 10 bits, then green, blue, and 2 bits of alpha.
    A code c of 10 bits becomes one of 16 bits, which a linear read of a texture unit blends. It differs from c / 1023
    by less than 1/65535.

    Read colors that are stored as sRGB with ``Sampler(read_mode="normalized_float", srgb=True)``.

    Args:
        blocks: the blocks as bytes (uint8) or words (uint32), in any shape: image after image, row by row, left to
            right; or a tuple with such an array for each mip level, finest first, of sizes ``max(1, n >> level)``.
            ``numpy.frombuffer(data, numpy.uint8)`` converts the bytes of a file.
        format: a `BlockFormat`, or its name.
        shape: the sizes of level 0 in texels, slowest axis first, without channels: by `kind`, ``(H, W)``,
            ``(D, H, W)``, ``(L, H, W)``, ``(6, N, N)`` or ``(L, 6, N, N)``. Texels of blocks beyond the right and lower
            edges are left out.
        kind: a `TextureKind`, or its name, of two or three dimensions. Slices of a volume are compressed one by one.
        border_color: scalar or ``(C,)``, what ``address_mode="border"`` reads outside; ``None`` is zero.

    Returns:
        A `Texture` of decoded texels. Blocks of BC6H and BC7 without a valid mode hold zeros.

    Gradients: none with respect to `blocks`, which are integers. Reads are differentiable with respect to coordinates,
        `border_color`, and the floating `Texture.texels` of BC6H.

    Raises:
        ValueError: if the number of bytes does not fit `shape`, the shape does not fit the kind, or a name is unknown.
        TypeError: if `blocks` is neither uint8 nor uint32, or `shape` is not a tuple of integers.

    Source: Microsoft, "Texture Block Compression in Direct3D 11". It leaves the rounding of BC1 to BC5 open.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> red = jnp.array([0, 248, 0, 0, 0, 0, 0, 0], jnp.uint8)  # two colors, and the indices of 16 texels
        >>> texture = jt.block_compressed(red, "bc1", (4, 4))
        >>> jt.sample(texture, (0.5, 0.5), jt.Sampler(read_mode="normalized_float"))
        Array([1., 0., 0., 1.], dtype=float32)
    """
    return texture_of_blocks("block_compressed", blocks, format, shape, kind, border_color)


def texture_of_blocks(
    name: str,
    blocks: Texels,
    format: BlockFormat | str,
    shape: tuple[int, ...],
    kind: TextureKind | str,
    border_color: ArrayLike | None,
) -> Texture:
    """`block_compressed` for the function `name`, which errors name."""
    block_format = choose(name, "format", format, BlockFormat)
    chosen = choose(name, "kind", kind, KINDS)
    front = check_shape(name, chosen, shape)
    chain = isinstance(blocks, tuple | list)
    named = {f"blocks[{k}]": level for k, level in enumerate(blocks)} if chain else {"blocks": blocks}
    shapes = chain_shapes(chosen, (*front, 1), len(named), name, "blocks")
    levels = [
        decoded(
            check_blocks(name, argument, level, block_format, shape[:-1]), block_format=block_format, shape=shape[:-1]
        )
        for (argument, level), shape in zip(named.items(), shapes)
    ]
    return build(chosen, levels if chain else levels[0], border_color, name)


def check_blocks(
    name: str, argument: str, blocks: object, block_format: BlockFormat, shape: tuple[int, ...]
) -> jax.Array:
    """The bytes of a level, as many as its shape needs."""
    if getattr(blocks, "dtype", None) not in (np.uint8, np.uint32):
        raise TypeError(
            f"{name}: {argument} is {described(blocks)}, expected an array of uint8 or of uint32; "
            f"numpy.frombuffer(data, numpy.uint8) makes one of bytes."
        )
    array, needed, row = on_device(blocks), bytes_of(block_format, shape), FORMATS[block_format]
    if array.nbytes != needed:
        raise ValueError(
            f"{name}: {argument} has {array.nbytes} bytes, expected {needed}: {block_format.value} stores {shape} "
            f"texels in {needed // row.size} blocks of {row.size} bytes, each of {row.side} by {row.side} texels."
        )
    return array if array.dtype == np.uint8 else jax.lax.bitcast_convert_type(array, jnp.uint8)
