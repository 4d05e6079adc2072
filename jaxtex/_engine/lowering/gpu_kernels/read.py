"""The kernel of a read, in either arithmetic."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ....modes import ReadMode
from ...axis import Axis
from ...formats import decode
from ...operators import Path, blend, only_inside
from ...texel_walk import Coords, Grid, Place, as_given, flat_sizes
from . import channels
from .launch import launch
from .tiling import deal, samples_shape

TILE = (8, 16)
# The texel at a place as it is stored, of each thread: threads + (channels,).
Look = Callable[[Place], jax.Array]


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

    def value(look: Look, coords: Coords) -> jax.Array:
        def texel(place: Place, path: Path) -> jax.Array:
            del path
            return only_inside(place, decode(look(place), read_mode, dtype))

        return blend(coords, axes, texel)

    return each_sample(value, texels, None, operands, axes, dtype, batch, grid, "texture_read", interpret)


def each_sample(
    value: Callable[[Look, Coords], jax.Array],
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    dtype: np.dtype,
    batch: int,
    grid: Grid,
    name: str,
    interpret: bool,
) -> jax.Array:
    """What `value` makes of the texels of each sample.

    Args:
        color: with leading batch axes of size 1, what is read outside in place of a texel; `None` if `value` sees to
            it.
    """
    (total,) = flat_sizes(axes)
    count, textures = texels.shape[-1], texels.shape[:batch]
    dealt = deal(samples_shape(textures, operands), TILE, 1, batch)

    def kernel(program, stored, *refs):
        outside, refs = (refs[0], refs[1:]) if color is not None else (None, refs)
        *sources, out = refs
        index, mask = dealt.sample(program, 0)
        where = grid(*(channels.load(ref, dealt.offset(index, a.shape), mask) for ref, a in zip(sources, operands)))
        base = dealt.texture(index, textures) * total
        # Three channels are no vector: read one by one they leave no thread idle.
        for part in channels.parts(count, 1 if count == 3 else channels.AT_A_TIME):

            def look(place: Place, part=part) -> jax.Array:
                texel = channels.load(stored, *part.element(base + place.stored[0], mask))
                if outside is None or place.inside is None:
                    return texel
                border = channels.load(outside, *part.element(jnp.zeros_like(base), mask))
                return jnp.where(place.inside[:, None], texel, border)

            element, exists = part.element(dealt.offset(index, dealt.shape), mask)
            channels.store(out, element, value(look, where), exists)

    result = jax.ShapeDtypeStruct((*dealt.shape, count), dtype)
    arrays = [texels, *([] if color is None else [color]), *operands]
    return launch(kernel, dealt, arrays, [result], name, interpret)[0]
