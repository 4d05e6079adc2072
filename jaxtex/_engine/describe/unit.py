"""A read by the texture unit of a GPU, by a texture object, as a static value."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Primitive

from ..._jax.shapes import broadcast_shapes
from ...modes import TextureKind

# Its rules are in `rules/unit.py`.
unit_read_p = Primitive("unit_read")


class UnitRead(NamedTuple):
    """What one `tex` instruction reads, and what it stands for.

    Attributes:
        kind: the kind of texture.
        level: how the mip level is given: ``""`` for the finest of several, ``"level zero"`` for the only one,
            ``"level"`` for a number, ``"grad"`` for a footprint.
        component: of a gather, the channel that is read; `None` for a filtered read.
        dtype: the dtype of the result: float32, or that of stored integers.
        num_channels: of the result.
        num_numbers: how many of the operands are numbers of a sample: coordinates, then a layer, then a level or a
            footprint. The others are the kept texels and the border color.
        meaning: the same read of the kept texels by array operations, a function of the operands.
    """

    kind: TextureKind
    level: str
    component: int | None
    dtype: np.dtype
    num_channels: int
    num_numbers: int
    meaning: Callable[..., jax.Array]

    def type_of(self, *numbers: Any) -> jax.ShapeDtypeStruct:
        """The type of the result, S + (C,), from those of the numbers, which broadcast to S."""
        shape = broadcast_shapes(*(a.shape for a in numbers))
        return jax.ShapeDtypeStruct((*shape, self.num_channels), self.dtype)
