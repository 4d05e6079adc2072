"""Block-compressed formats: one row for each, and the texels of an image of blocks."""

# pyright: strict, reportUnknownMemberType=false

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._jax.calls import typed_jit
from ..modes import BlockFormat
from .interpolated import bc1_texels, bc2_texels, bc3_texels, bc4_texels, bc5_texels
from .partitioned import bc6h_texels, bc7_texels

SIZE = 4


class FormatRow(NamedTuple):
    """A block-compressed format.

    Attributes:
        size: of a block, in bytes.
        channels: of a texel.
        texels: the texels of blocks, (N, size) uint8 to (N, 16, channels), row by row, in the dtype that holds what
            a texture unit makes of them.
    """

    size: int
    channels: int
    texels: Callable[[jax.Array], jax.Array]


FORMATS = {
    BlockFormat.BC1: FormatRow(8, 4, bc1_texels),
    BlockFormat.BC2: FormatRow(16, 4, bc2_texels),
    BlockFormat.BC3: FormatRow(16, 4, bc3_texels),
    BlockFormat.BC4: FormatRow(8, 1, functools.partial(bc4_texels, signed=False)),
    BlockFormat.BC4_SIGNED: FormatRow(8, 1, functools.partial(bc4_texels, signed=True)),
    BlockFormat.BC5: FormatRow(16, 2, functools.partial(bc5_texels, signed=False)),
    BlockFormat.BC5_SIGNED: FormatRow(16, 2, functools.partial(bc5_texels, signed=True)),
    BlockFormat.BC6H: FormatRow(16, 3, functools.partial(bc6h_texels, signed=False)),
    BlockFormat.BC6H_SIGNED: FormatRow(16, 3, functools.partial(bc6h_texels, signed=True)),
    BlockFormat.BC7: FormatRow(16, 4, bc7_texels),
}


def blocks_along(size: int) -> int:
    """How many blocks hold `size` texels along an axis."""
    return -(-size // SIZE)


def bytes_of(block_format: BlockFormat, shape: tuple[int, ...]) -> int:
    """The number of bytes of images, (..., H, W)."""
    *front, height, width = shape
    return math.prod(front) * blocks_along(height) * blocks_along(width) * FORMATS[block_format].size


@typed_jit("block_format", "shape")
def decoded(blocks: jax.Array, *, block_format: BlockFormat, shape: tuple[int, ...]) -> jax.Array:
    """The texels of images, (..., H, W, C), of bytes of any shape. Texels of a block outside an image are left out."""
    *front, height, width = shape
    row = FORMATS[block_format]
    rows, columns = blocks_along(height), blocks_along(width)
    texels = row.texels(blocks.reshape(-1, row.size)).reshape(*front, rows, columns, SIZE, SIZE, row.channels)
    texels = jnp.swapaxes(texels, -4, -3).reshape(*front, rows * SIZE, columns * SIZE, row.channels)
    return texels[..., :height, :width, :]
