"""The kernel of a read, in either arithmetic."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...decoding import decode
from ...operators import Path, blend, zero_outside
from ...spec import Coords, ReadSpec
from ...texel_walk import TexelAddress, flat_sizes
from .channels import AT_A_TIME, Channels, channel_parts
from .launch import COMPILED, Launcher, load, store
from .tiling import samples_shape, tile_samples

TILE = (8, 16)
# The texel at an address as it is stored, of each thread: threads + (channels,).
LoadTexel = Callable[[TexelAddress], jax.Array]
# The result of a read at coordinates, of the texels that a function loads.
ReadValue = Callable[[LoadTexel, Coords], jax.Array]


def read(
    texels: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int, launcher: Launcher = COMPILED
) -> jax.Array:
    """`operators.read` over `batch` leading axes, on which an operand has their size or 1."""

    def value(load_texel: LoadTexel, coords: Coords) -> jax.Array:
        def texel_value(address: TexelAddress, path: Path) -> jax.Array:
            del path
            return zero_outside(address, decode(load_texel(address), spec.decoding, spec.dtype))

        return blend(coords, spec.axes, texel_value)

    return read_each_sample(value, texels, None, operands, spec, batch, "texture_read", launcher)


def read_each_sample(
    value: ReadValue,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    batch: int,
    name: str,
    launcher: Launcher,
) -> jax.Array:
    """`value` of each sample, of `spec.dtype`.

    Args:
        color: with leading batch axes of size 1, the texel that taps outside read; `None` if `value` masks them itself.
    """
    (num_texels,) = flat_sizes(spec.axes)
    channels, textures = texels.shape[-1], texels.shape[:batch]
    tiling = tile_samples(samples_shape(textures, operands), TILE, 1, batch)

    def kernel(program: jax.Array, stored: jax.Array, *refs: jax.Array) -> None:
        outside, refs = (refs[0], refs[1:]) if color is not None else (None, refs)
        *sources, out = refs
        index, mask = tiling.sample(program, 0)
        coords = spec.grid(*(load(ref, tiling.offset(index, a.shape), mask) for ref, a in zip(sources, operands)))
        base = tiling.texture(index, textures) * num_texels
        # Three channels are no vector: read one by one they leave no thread idle.
        for part in channel_parts(channels, 1 if channels == 3 else AT_A_TIME):

            def load_texel(address: TexelAddress, part: Channels = part) -> jax.Array:
                texel = load(stored, *part.element(base + address.flat_index[0], mask))
                if outside is None or address.inside is None:
                    return texel
                border = load(outside, *part.element(jnp.zeros_like(base), mask))
                return jnp.where(address.inside[:, None], texel, border)

            element, exists = part.element(tiling.offset(index, tiling.shape), mask)
            store(out, element, value(load_texel, coords), exists)

    result = jax.ShapeDtypeStruct((*tiling.shape, channels), np.dtype(spec.dtype))
    arrays = [texels, *([] if color is None else [color]), *operands]
    return launcher.run(kernel, tiling, arrays, [result], name)[0]
