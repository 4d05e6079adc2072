"""Block formats, one row for each, and the texels of an image of blocks."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._jax.calls import typed_jit
from ..modes import BlockFormat
from .bc1_to_bc5 import bc1_texels, bc2_texels, bc3_texels, bc4_texels, bc5_texels
from .bc6h_bc7 import bc6h_texels, bc7_texels
from .bits import rgb10a2_texels


class FormatRow(NamedTuple):
    """A format of blocks.

    Attributes:
        size: of a block, in bytes.
        texels: the texels of blocks, (N, size) uint8 to (N, side * side, channels), row by row, in the dtype of a
            texture unit's values.
        side: of a block, in texels.
    """

    size: int
    channels: int
    texels: Callable[[jax.Array], jax.Array]
    side: int = 4


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
    BlockFormat.RGB10A2: FormatRow(4, 4, rgb10a2_texels, side=1),
}


def blocks_along(size: int, side: int) -> int:
    """How many blocks hold `size` texels along an axis."""
    return -(-size // side)


def bytes_of(block_format: BlockFormat, shape: tuple[int, ...]) -> int:
    """The number of bytes of images, (..., H, W)."""
    *front, height, width = shape
    row = FORMATS[block_format]
    return math.prod(front) * blocks_along(height, row.side) * blocks_along(width, row.side) * row.size


@typed_jit("block_format", "shape")
def decoded(blocks: jax.Array, *, block_format: BlockFormat, shape: tuple[int, ...]) -> jax.Array:
    """The texels of images, `shape` + (C,), from bytes of any shape. Texels outside the images are left out."""
    *front, height, width = shape if len(shape) > 1 else (1, *shape)
    row = FORMATS[block_format]
    side, rows, columns = row.side, blocks_along(height, row.side), blocks_along(width, row.side)
    texels = row.texels(blocks.reshape(-1, row.size)).reshape(*front, rows, columns, side, side, row.channels)
    texels = jnp.swapaxes(texels, -4, -3).reshape(*front, rows * side, columns * side, row.channels)
    return texels[..., :height, :width, :].reshape(*shape, row.channels)
