"""The kernel of a read."""

import jax
import numpy as np

from ..axis import Axis
from ..formats import decode
from ..modes import ReadMode
from ..places import Grid, Place, as_given, flat_sizes
from ..resample import Path, blend, only_inside
from . import channels
from .launch import launch
from .samples import deal, samples_shape

TILE = (8, 32)


def read(
    texels,
    *operands,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    batch: int,
    grid: Grid = as_given,
    interpret=False,
    **_,
):
    """`resample.read` over `batch` leading axes, on which an operand has their size or 1."""
    (total,) = flat_sizes(axes)
    count = texels.shape[-1]
    textures = texels.shape[:batch]
    dealt = deal(samples_shape(textures, operands), TILE, 1, batch)

    def kernel(program, stored, *refs):
        *sources, out = refs
        index, mask = dealt.sample(program, 0)
        where = grid(*(channels.load(ref, dealt.offset(index, a.shape), mask) for ref, a in zip(sources, operands)))
        base = dealt.texture(index, textures) * total
        # Three channels are no vector: read one by one they leave no thread idle.
        for part in channels.parts(count, 1 if count == 3 else channels.AT_A_TIME):

            def texel(place: Place, path: Path, part=part) -> jax.Array:
                value = channels.load(stored, *part.element(base + place.stored[0], mask))
                return only_inside(place, decode(value, read_mode, dtype))

            element, exists = part.element(dealt.offset(index, dealt.shape), mask)
            channels.store(out, element, blend(where, axes, texel), exists)

    result = jax.ShapeDtypeStruct((*dealt.shape, count), dtype)
    return launch(kernel, dealt, [texels, *operands], [result], "texture_read", interpret)[0]
