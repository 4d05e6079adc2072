"""The kernel of a read, in either arithmetic."""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ...decoding import decode
from ...operators import Path as TapPath
from ...operators import blend, zero_outside
from ...spec import Coords, ReadSpec
from ...texel_walk import TexelAddress, flat_sizes
from ..cuda_c import C_TYPES, THIS_GPU, Emitter, Kernel, Launcher, fill, load_row, read_source, scalars
from .sample_tiles import samples_shape, unravelled
from .tiling import Tiling, tile_samples

TEMPLATE = Path(__file__).parent / "read.cu"
# The most threads of a block: across, down and in all.
ACROSS, DOWN, THREADS = 16, 8, 128
# A wider texel is divided among threads, so that a warp reads and writes whole lines of memory.
WIDTHS = (4, 2, 1)
# The texel at an address as it is stored: (1, C).
LoadTexel = Callable[[TexelAddress], jax.Array]
# The result of a read at coordinates, of the texels that a function loads: (1, C).
ReadValue = Callable[[LoadTexel, Coords], jax.Array]


def read(
    texels: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int, launcher: Launcher = THIS_GPU
) -> jax.Array:
    """`operators.read` over `batch` leading axes, on which an operand has their size or 1."""

    def value(load_texel: LoadTexel, coords: Coords) -> jax.Array:
        def texel_value(address: TexelAddress, path: TapPath) -> jax.Array:
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
    *,
    exact: bool = False,
) -> jax.Array:
    """`value` of each sample, of `spec.dtype`.

    Args:
        color: with leading batch axes of size 1, the texel that taps outside read; `None` if `value` masks them itself.
        exact: whether each product and each sum is rounded by itself.
    """
    textures, channels = texels.shape[:batch], texels.shape[-1]
    width = width_of_part(channels)
    parts = channels // width
    tiling = tile_samples(samples_shape(textures, operands), tile_of(parts), 1, batch)
    (num_texels,) = flat_sizes(spec.axes)
    sample = tiling._replace(tile=(1, 1))  # as one thread sees it

    def thread(outer: jax.Array, y: jax.Array, x: jax.Array, part: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The number of the first element of a thread's result, and the result."""
        index = index_of(tiling, outer, y, x)
        loaded = (
            load_row(f"operand_{k}", sample.offset(index, a.shape), 1, a.dtype)[:, 0] for k, a in enumerate(operands)
        )
        base = sample.texture(index, textures) * num_texels

        def load_texel(address: TexelAddress) -> jax.Array:
            texel = load_channels("texels", base + address.flat_index[0])
            if color is None or address.inside is None:
                return texel
            return jnp.where(address.inside[:, None], texel, load_channels("color", jnp.zeros_like(base)))

        def load_channels(array: str, texel: jax.Array) -> jax.Array:
            return load_row(array, first_of(texel), width, texels.dtype, aligned=width in WIDTHS)

        first_of = lambda texel: texel * channels + part * width
        return first_of(sample.offset(index, tiling.shape)), value(load_texel, spec.grid(*loaded))

    emitter = Emitter()
    numbers = [(np.array([variable], object), np.int32) for variable in ("outer", "y", "x", "part")]
    element, values = emitter.call(thread, *numbers)
    arrays = {"texels": texels} | ({} if color is None else {"color": color})
    arrays |= {f"operand_{k}": a for k, a in enumerate(operands)}
    result = jax.ShapeDtypeStruct((*tiling.shape, channels), np.dtype(spec.dtype))
    c_type = C_TYPES[result.dtype.name]
    parameters = [f"const {C_TYPES[a.dtype.name]}* __restrict__ {key}" for key, a in arrays.items()]
    source = fill(
        read_source(TEMPLATE),
        name=name,
        parameters=", ".join((*parameters, f"{c_type}* __restrict__ out")),
        threads=tiling.num_threads * parts,
        parts=parts,
        width=width,
        statements=emitter.lines,
        element=element[0],
        values=", ".join(np.broadcast_to(values, (1, width))[0]),
        type=c_type,
        store="store_aligned_row" if width in WIDTHS else "store_row",
        **slots_of(tiling),
    )
    kernel = Kernel(f"{scalars()}\n{source}", name, tiling.num_programs, tiling.num_threads * parts, exact)
    return launcher.run(kernel, list(arrays.values()), [result])[0]


def width_of_part(channels: int) -> int:
    """How many channels of a texel a thread takes: a row that is one load, or three, which are too few to part."""
    return channels if channels == 3 else next(width for width in WIDTHS if channels % width == 0)


def tile_of(parts: int) -> tuple[int, int]:
    """The samples of a block, down and across, each of so many threads."""
    across = max(1, ACROSS // parts)
    return max(1, min(DOWN, THREADS // (parts * across))), across


def index_of(tiling: Tiling, outer: jax.Array, y: jax.Array, x: jax.Array) -> list[jax.Array]:
    """The index of a sample on every axis, from its pixel (x, y) in an image, and the number of the image."""
    return unravelled(x, tiling.shape) if tiling.flat else [*unravelled(outer, tiling.shape[:-2]), y, x]


def slots_of(tiling: Tiling) -> dict[str, int]:
    """What a template knows of a tiling."""
    (tiles_down, tiles_across), (down, across), (height, width) = tiling.num_tiles, tiling.extent, tiling.tile
    return {
        "tiles_down": tiles_down,
        "tiles_across": tiles_across,
        "tiles_per_image": tiles_down * tiles_across,
        "tile_height": height,
        "tile_width": width,
        "down": down,
        "across": across,
    }
