"""The kernel of a read, in either arithmetic."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.accumulation import power_of_two_below
from ...compute.decoding import bits_dtype, in_bits
from ...compute.operators import LoadTexel
from ...compute.operators import value as value_at
from ...describe.axis import Role
from ...describe.spec import Coords, ReadSpec
from ...describe.storage import Part, Sliced, WithHalo, each_part, slice_of, slices_of
from ...walk.combinations import weighted
from ...walk.texel_walk import TexelAddress, flat_sizes
from ..build.launch import THIS_GPU, Kernel, Launcher
from ..build.source import fill, read_source, scalars
from ..samples.operands import load_numbers, named_operands
from ..samples.sample_tiles import PLACE, Extent, SampleTiles, offset, samples_shape, unravelled
from ..trace.elementwise import C_TYPES, literal
from ..trace.emitter import Emitter, Names, Typed
from ..trace.memory import load_row

TEMPLATE = Path(__file__).parent / "read.cu"
# The part of the read of a thread that is a mean of several reads.
MEAN = Path(__file__).parent / "mean.cu"
NOTED_TILES = Path(__file__).parent / "noted_tiles.cuh"
# The threads of a block: in a volume of samples and in an image, deep, down and across; and in all.
BLOCKS: dict[int, Extent] = {3: (4, 1, 32), 2: (1, 8, 16)}
THREADS = 128
# Limits of a thread: its samples, the taps of all of them, and the bytes that one tap of each of them loads. A read is
# divided among so many threads at least before one takes several samples.
MOST_SAMPLES, MOST_TAPS, TAP_BYTES, LEAST_THREADS = 4, 64, 16, 2**19
# A wider texel is divided among threads, so that a warp reads and writes whole lines of memory.
WIDTHS = (4, 2, 1)
# Tiles are looked up so many at once, by so many blocks.
NOTES_AT_ONCE, NOTED_BLOCKS = 4, 4224
# The result of a read at coordinates, of the texels that a function loads, and the border color, (1, C): (1, C).
ReadValue = Callable[[LoadTexel, Coords, jax.Array | None], jax.Array]


def read(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int, launcher: Launcher = THIS_GPU) -> jax.Array:
    """`operators.read` over `batch` leading axes, on which an operand has their size or 1."""
    stored = texels.dtype
    if spec.returns_texels(stored) and jnp.issubdtype(stored, jnp.floating) and stored.itemsize == 2:
        # A thread computes with float32, which changes the bits of NaN.
        as_integers = spec.with_dtype(bits_dtype(stored))
        return in_bits(lambda bits: read(bits, *args, spec=as_integers, batch=batch, launcher=launcher), texels)
    color, operands = spec.color_and_operands(args)
    name = "texture_read" if color is None else "texture_bordered_read"
    return read_each_sample(value_of(spec), texels, color, operands, spec, batch, name, launcher)


def concatenated_read(*args: Any, parts: Sequence[Part], row_axes: int, launcher: Launcher = THIS_GPU) -> Any:
    """Several reads, each of which fills its slice of one array."""
    each = [(part, texels, operands) for part, _, texels, operands in each_part(parts, args)]
    shapes = [result_shape(t, operands, part.spec, t.shape[: part.batch]) for part, t, operands in each]
    slices = slices_of(shapes, row_axes)
    whole: Any = jax.ShapeDtypeStruct((math.prod(shapes[0][:row_axes]), slices[0].row), parts[0].spec.dtype)
    for (part, texels, operands), place in zip(each, slices):
        how = value_of(part.spec), texels, None, operands, part.spec, part.batch, "texture_read", launcher
        whole = read_each_sample(*how, into=Sliced(whole, place))
    return whole


def result_shape(texels: Any, operands: Sequence[Any], spec: ReadSpec, batches: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the result of a read, whose textures and colors have the batch axes `batches`."""
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = [len(shape) + axis for axis in spec.summed_axes]
    return *(1 if k in along else n for k, n in enumerate(shape)), texels.shape[-1]


def value_of(spec: ReadSpec) -> ReadValue:
    """The result of a read in float arithmetic."""
    return lambda load_texel, coords, color: value_at(load_texel, coords, spec, color)


def read_each_sample(
    value: ReadValue,
    texels: jax.Array | WithHalo,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    batch: int,
    name: str,
    launcher: Launcher,
    *,
    exact: bool = False,
    into: Sliced | None = None,
    notes: Callable[[Coords], jax.Array] | None = None,
    noted: jax.Array | None = None,
) -> Any:
    """`value` of each sample, of `spec.dtype`.

    Args:
        color: what `value` gets as the border color: C numbers after the batch axes.
        exact: whether each product and each sum of the computation of coordinates is rounded by itself. What `value`
            rounds, a compiler may then round once with the sum that it enters, so it must not matter to `value`.
        into: the slice of a larger array that the result fills; then the result is that array, filled so far.
        notes: which samples are of interest to another read of the same samples, which are no mean and no sum. Then the
            result is a pair: the values, and which tiles hold such samples.
        noted: such tiles; only their samples are read.
    """
    textures, channels = texels.shape[:batch], texels.shape[-1]
    width = width_of_part(channels)
    parts, aligned = -(-channels // width), width in WIDTHS and channels % width == 0
    batches = textures if color is None else np.broadcast_shapes(textures, color.shape[:batch])
    shape = samples_shape(batches, spec.sample_shapes(operands))
    along = sorted(len(shape) + axis for axis in spec.summed_axes)
    kept, terms = (tuple(n for k, n in enumerate(shape) if (k in along) == some) for some in (False, True))
    steps = steps_of(spec, width, texels.dtype, math.prod(shape) * parts, exact)
    volumes = sum(axis.role is Role.SPACE and not axis.integer for axis in spec.axes) >= 3
    tiles = tiles_of_block(kept, batch, volumes, parts, steps)
    factors = [channels * math.prod(flat_sizes(spec.axes)[k:]) for k in range(len(flat_sizes(spec.axes)) + 1)]

    # The last part of a texel that is no whole number of parts repeats channels of the one before.
    first_of = lambda part: part * width if channels % width == 0 else jnp.minimum(part * width, channels - width)

    def coords_of(outer: jax.Array, z: jax.Array, y: jax.Array, x: jax.Array, _: jax.Array, *number: jax.Array):
        index = tiles.index(outer, z, y, x)
        if terms:
            for axis, i in zip(along, unravelled(number[0] - 1, terms)):
                index.insert(axis, i)
            number = ()
        return tuple(spec.grid(*number, *load_numbers(spec, named_operands(operands), index)))

    def place_of(*place: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The number of a thread's sample, and its first channel."""
        return offset(tiles.index(*place[:4]), tiles.shape), jnp.broadcast_to(first_of(place[4]), (1,))

    def read_at(outer: jax.Array, z: jax.Array, y: jax.Array, x: jax.Array, part: jax.Array, *coords: jax.Array):
        """The read of a thread."""
        index, channel = tiles.index(outer, z, y, x)[:batch], first_of(part)

        def load_texel(address: TexelAddress) -> jax.Array:
            place = [*zip((offset(index, textures), *address.flat_index), factors), (channel, 1)]
            return load_row("texels", place, width, texels.dtype, aligned=aligned)

        border = None
        if color is not None:
            place = [(offset(index, color.shape[:batch]), channels), (channel, 1)]
            border = load_row("color", place, width, color.dtype, aligned=aligned)
        return jnp.broadcast_to(value(load_texel, coords, border), (1, width))

    emitter, num_threads = Emitter(), math.prod(tiles.lanes) * parts
    numbers = [Typed(np.array([name], object), dtype) for name, dtype in (*PLACE, ("part", np.dtype(np.int32)))]
    place, channel = emitter.call(place_of, *numbers)
    count = math.prod(terms) if terms else spec.num_reads if spec.num_reads > 1 else None
    note, coords = "", None
    if count is None:
        with emitter.exactly(exact):
            coords = emitter.typed_call(coords_of, *numbers)
    values = emit_values(emitter, coords or coords_of, read_at, numbers, spec, count, exact)
    if notes is not None:
        assert coords is not None
        (found,) = emitter.call(notes, *coords).flat
        note = f"if (at.exists && {found}) notes[tile] = 1;"
    arrays: dict[str, Any] = {"texels": texels}
    declarations = list[str]()
    if isinstance(texels, WithHalo):
        arrays = texels.arrays("texels")
        declarations.append(texels.declared("texels", f"const {C_TYPES[texels.dtype.name]}"))
    arrays |= ({} if color is None else {"color": color}) | named_operands(operands)
    own = jax.ShapeDtypeStruct(result_shape(texels, operands, spec, batches), np.dtype(spec.dtype))
    result, filled, aliases = own if into is None else into.whole, slice_of(into or own), {}
    c_type, results = C_TYPES[result.dtype.name], [jax.ShapeDtypeStruct(result.shape, result.dtype)]
    parameters = [f"const {C_TYPES[a.dtype.name]}* __restrict__ {key}" for key, a in arrays.items()]
    if isinstance(result, jax.Array):
        aliases[len(arrays)] = 0
        arrays["filled"] = result
        parameters.append(f"const {c_type}*")
    loop, tile, noted_tiles = "", "blockIdx.x", ""
    num_blocks, outputs = tiles.total, [f"{c_type}* __restrict__ out"]
    if notes is not None:
        aliases[len(arrays)] = len(results)
        arrays["no_notes"] = jnp.zeros(-(-tiles.total // NOTES_AT_ONCE) * NOTES_AT_ONCE, jnp.uint8)
        parameters.append("const uint8*")
        outputs.append("uint8* __restrict__ notes")
        results.append(jax.ShapeDtypeStruct(arrays["no_notes"].shape, jnp.uint8))
    if noted is not None:
        arrays["notes"] = noted
        parameters.append("const uint8* __restrict__ notes")
        num_blocks = min(num_blocks, NOTED_BLOCKS)
        noted_tiles = fill(read_source(NOTED_TILES), count=noted.size, blocks=num_blocks)
        loop, tile = "for (NotedTiles tiles(notes); tiles.next();)", "tiles.tile"
    source = fill(
        read_source(TEMPLATE),
        name=name,
        parameters=", ".join((*parameters, *outputs)),
        tiles=loop,
        tile=tile,
        note=note,
        threads=num_threads,
        parts=parts,
        steps=tiles.num_steps,
        width=width,
        arrays=declarations or [""],
        statements=emitter.lines,
        place=filled.place(place[0], channels),
        channel=channel[0],
        values=", ".join(values),
        type=c_type,
        store="store_aligned_row" if aligned and filled.keeps_aligned(width) else "store_row",
    )
    source = "\n".join((scalars(), *emitter.tables, tiles.source(), noted_tiles, source))
    kernel = Kernel(source, name, num_blocks, num_threads)
    found = launcher.run(kernel, list(arrays.values()), results, aliases)
    return found if notes is not None else found[0]


def emit_values(
    emitter: Emitter,
    coords_of: Sequence[Typed] | Callable[..., Coords],
    read_at: Callable[..., jax.Array],
    numbers: Sequence[Typed],
    spec: ReadSpec,
    count: int | None,
    exact: bool,
) -> Names:
    """Emits `operators.mean`, and returns the names of a thread's results.

    Args:
        coords_of: the coordinates of a thread's read; or, of one of several, what computes them from `numbers` and its
            number, counted from 1. Of a mean, its weight follows.
        read_at: a thread's read, from `numbers` and coordinates: (1, width).
        numbers: the variables that tell threads apart.
        count: how many reads a thread sums; `None` if it is one.
    """
    rounded = lambda values: values.astype(spec.dtype)
    if not callable(coords_of):
        return emitter.call(rounded, emitter.typed_call(read_at, *numbers, *coords_of))[0]
    number = Typed(np.array(["number"], object), np.int32)
    with emitter.scope() as of_read, emitter.exactly(exact):
        coords, counts, weight = emitter.typed_call(coords_of, *numbers, number), "true", None
        if spec.num_reads > 1:
            *coords, weight = coords
            (counts,) = emitter.call(lambda weight: weight > 0, weight)
        with emitter.scope() as of_value:
            with emitter.exactly(False):
                value = emitter.typed_call(read_at, *numbers, *coords)
            width, dtype = value.names.size, value.dtype
            terms = value.names if weight is None else emitter.call(weighted, weight, value)
        total, term = (
            Typed(np.array([[f"{a}.v[{k}]" for k in range(width)]], object), dtype) for a in ("total", "term")
        )
        with emitter.scope() as of_total:
            sums = emitter.call(jnp.add, total, term)
    assign = lambda target, names: [f"{a} = {b};" for a, b in zip(target.names[0], names[0])]
    neutral = -0.0 if jnp.issubdtype(dtype, jnp.floating) else 0
    lines = fill(
        read_source(MEAN),
        type=C_TYPES[dtype.name],
        width=width,
        count=count,
        zero=literal(neutral, dtype),
        nothing=literal(0, dtype),
        counts=counts,
        of_read=of_read,
        of_value=[*of_value, *assign(term, terms)],
        of_total=[*of_total, *assign(total, sums)],
    )
    emitter.lines.extend(lines.splitlines())
    return emitter.call(rounded, total)[0]


def width_of_part(channels: int) -> int:
    """How many channels of a texel a thread takes: a row that is one load; or, of an odd number, at most four."""
    return min(channels, WIDTHS[0]) if channels % 2 else next(width for width in WIDTHS if channels % width == 0)


def steps_of(spec: ReadSpec, width: int, dtype: np.dtype, threads: int, exact: bool) -> int:
    """How many samples a thread takes, where `threads` would take one each.

    They share what they have in common, as a row of them has, and their loads are under way together.
    """
    taps = math.prod(axis.kernel.num_taps for axis in spec.axes if not axis.integer)
    most = min(MOST_SAMPLES, MOST_TAPS // taps, threads // LEAST_THREADS)
    if spec.num_reads > 1 or spec.summed_axes or most < 2:
        return 1
    # Exact arithmetic takes longer than its loads.
    return power_of_two_below(min(most, max(1 + exact, TAP_BYTES // (width * dtype.itemsize))))


def tiles_of_block(shape: tuple[int, ...], batch: int, volumes: bool, parts: int, steps: int) -> SampleTiles:
    """The samples of a block: a box of them, or a row where there are fewer than a box has along some axis.

    Args:
        parts: how many threads share a sample.
        steps: how many samples of a row a thread takes.
        volumes: whether three axes are filtered, so that samples in a block of them read the same texels.
    """
    for rank, (deep, down, across) in BLOCKS.items():
        across = max(1, across // parts)
        down = max(1, min(down, THREADS // (parts * deep * across)))
        fits = all(n >= m for n, m in zip(shape[-rank:], (deep, down, across * steps)[3 - rank :]))
        if fits and len(shape) - batch >= rank and (rank < 3 or volumes):
            return SampleTiles(shape, rank, (deep, down, across), (1, 1, steps), spread=True)
    return SampleTiles(shape, 0, (1, 1, max(1, THREADS // parts)), (1, 1, steps))
