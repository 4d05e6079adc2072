"""The source of the adjoint's kernel: what a thread computes, traced, in the slots of its templates."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...axis import Axis, Role
from ...decoding import decode
from ...operators import Path as TapPath
from ...operators import slopes, zero_outside
from ...reproducible_sum import Units
from ...spec import ReadSpec
from ...taps import Taps
from ...texel_walk import Step, TexelAddress, flat_sizes, only_address, walks
from ..cuda_c import C_TYPES, Emitter, fill, load_row, read_source, scalars, warp
from .sample_tiles import CROWD_STEPS, LANES, STEPS, Lanes, offset, tiles_of

FOLDER = Path(__file__).parent
# The warps of a block, and the bytes of shared memory of all of them, of which any GPU has so many.
WARPS, SHARED_BYTES = 4, 46 * 1024
# A window has room for a tile that is turned by any angle, some more for an odd pitch, and for small textures.
ROOM, LEAST_CELLS = 1.05, 320
# Of an SM of the GPUs with the least: bytes of shared memory, and registers.
MULTIPROCESSOR_BYTES, MULTIPROCESSOR_REGISTERS = 228 * 1024, 65536
# A thread can have so many registers, whatever else is asked.
LEAST_REGISTERS = 96
# A lane loads the values of so many samples at once.
BATCH = 4
# A lane holds at most so many sums for the taps of a run of samples in one cell.
MOST_HELD = 32
# From so many samples for each texel on, times the channels of a lane, a lane adds up runs of samples in one cell, and
# takes more samples.
RUN_CROWD, FAR_CROWD = 64, 1024
# A lane keeps the coordinates of at most so many samples; else it computes them twice.
MOST_KEPT = 8
# How much larger a window is than samples that spread evenly over the texture would need.
SPREAD = 1.5
# The place of a sample: the number of its image, and where it lies there.
PLACE = [(name, np.dtype(np.int32)) for name in ("outer", "z", "y", "x")]
# A scalar of C, and its dtype.
Scalar = tuple[str, Any]

# With a window that takes turns: each sample, or a run of samples in one cell.
ADD_SAMPLE = """\
add_in_turns(window, exists, cell, part, lane, steps, [&](int n) { return product(value, taps.weight[n]); });"""
BEGIN_RUNS = """\
bool holds = false;
int held_cell = 0;
Value held[@taps@] = {};"""
ADD_RUN = """\
const bool stays = holds && cell == held_cell, leaves = exists && holds && !stays;
if (any_lane(leaves)) add_in_turns(window, leaves, held_cell, part, lane, steps, [&](int n) { return held[n]; });
if (exists) {
#pragma unroll
  for (int n = 0; n < @taps@; n++) {
    const Value more = product(value, taps.weight[n]);
    for (int k = 0; k < @width@; k++) held[n].v[k] = (stays ? held[n].v[k] : 0) + more.v[k];
  }
  held_cell = cell, holds = true;
}"""
END_RUNS = "add_in_turns(window, holds, held_cell, part, lane, steps, [&](int n) { return held[n]; });"
# The cotangents of a sample's coordinates, summed over the lanes that share its channels.
STORE_SLOPES = """\
{
const Offsets offsets = offsets_of(at.outer, at.z, at.y, at.x);
Slopes slopes = slopes_of(coords, value, offsets.texels, first_channel(part), overlap_of(part), texels);
for (int k = 0; k < @num_slopes@; k++) {
  if (!takes_part) slopes.along[k] = 0;
  for (int bits = 1; bits < @lanes_per_sample@; bits *= 2) slopes.along[k] += of_lane_xor(slopes.along[k], bits);
}
if (at.exists && lane % @lanes_per_sample@ == 0) {
  @stores@
}
}"""


class Walk(NamedTuple):
    """One walk of a read, as a window sees it.

    Attributes:
        first: the first tap on each axis, before any address rule.
        offsets: how far each tap lies beyond the first one, on each axis.
        weights: of each tap.
    """

    first: list[jax.Array]
    offsets: list[tuple[int, ...]]
    weights: list[Any]

    @classmethod
    def of(cls, weight: Any, address: TexelAddress, steps: list[Step]) -> "Walk":
        """All products of the taps of the steps of a walk."""
        level = [] if address.level is None else [address.level]
        first = [*level, *(index for step in steps for index in step.taps[0].unbounded)]
        offsets, weights = [], []
        for taps in itertools.product(*(list(zip(step.taps, step.weights())) for step in steps)):
            offsets.append((*[0] * len(level), *(k for tap, _ in taps for k in tap.offset)))
            weights.append(functools.reduce(jnp.multiply, (w for _, w in taps), weight))
        return cls(first, offsets, weights)


def as_it_is(index: jax.Array, axis: Axis) -> Taps:
    """The one tap at an index."""
    del axis
    return [(index, 1.0)]


def scalar(number: Any, dtype: Any = None) -> jax.Array:
    return jnp.broadcast_to(jnp.asarray(number, dtype), (1,))


def traced(function: Callable[..., Any], *scalars: Scalar) -> tuple[list[str], Any]:
    """The statements of a function of scalars, and the expressions of C for what it returns: of each array a list."""
    emitter = Emitter()
    out = emitter.call(function, *((np.array([name], object), dtype) for name, dtype in scalars))
    return emitter.lines, jax.tree.map(lambda names: [str(name) for name in np.ravel(names)], out)


def joined(*found: Any) -> str:
    """Expressions of C, one after the other."""
    return ", ".join(name for names in jax.tree.leaves(found) for name in [names])


class AdjointSource:
    """The source of a kernel.

    Args:
        coordinate_axes: the axes whose coordinates have a cotangent.
        shape: of the samples, batch axes first.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
        arrays, results: what the kernel reads and writes, by name.
    """

    def __init__(
        self,
        spec: ReadSpec,
        coordinate_axes: tuple[int, ...],
        shape: tuple[int, ...],
        read_from: tuple[int, ...],
        textures: tuple[int, ...],
        arrays: Mapping[str, Any],
        results: Mapping[str, Any],
    ):
        self.spec, self.coordinate_axes, self.shape = spec, coordinate_axes, shape
        self.read_from, self.textures, self.arrays, self.results = read_from, textures, arrays, results
        self.operands = {name: a for name, a in arrays.items() if name.startswith("operand_")}
        self.parts = 2 if "units" in arrays else 1  # of each sum
        self.lanes = Lanes.of(arrays["values"].shape[-1])
        dimensions = sum(axis.role is Role.SPACE for axis in spec.axes)
        num_texels = math.prod(textures) * flat_sizes(spec.axes)[0]
        self.crowd = math.prod(shape) / num_texels if "totals" in results else 0
        steps = CROWD_STEPS if self.crowd * self.lanes.width >= FAR_CROWD else STEPS
        self.tiles = tiles_of(shape, len(textures), dimensions, self.lanes, steps)
        self.several_textures = math.prod(textures) > 1
        self.walks = self.find_walks() if "totals" in results else []
        row = 4 * self.lanes.parts * self.lanes.width
        cells = max((self.cells(offsets) for _, _, offsets in self.walks), default=0)
        self.window_cells = min(cells, SHARED_BYTES // row) // 4 * 4
        self.num_warps = max(1, min(WARPS, SHARED_BYTES // max(1, self.window_cells * row)))

    @property
    def num_blocks(self) -> int:
        return -(-self.tiles.total // self.num_warps)

    @property
    def num_threads(self) -> int:
        return LANES * self.num_warps

    # What a thread computes

    @functools.cached_property
    def coords(self) -> list[Scalar]:
        """The fields of `Coords`: the number of the texture, if there are several, then a coordinate for each axis."""
        one = [jax.ShapeDtypeStruct((1,), a.dtype) for a in self.operands.values()]
        texture = [np.dtype(np.int32)] if self.several_textures else []
        dtypes = (*texture, *(c.dtype for c in jax.eval_shape(lambda *args: tuple(self.spec.grid(*args)), *one)))
        return [(f"at.c{k}", dtype) for k, dtype in enumerate(dtypes)]

    def find_coords(self) -> tuple[list[str], Any]:
        def function(*place: jax.Array) -> Any:
            index = self.tiles.index(*place)
            loaded = (load_row(name, offset(index, a.shape), 1, a.dtype)[:, 0] for name, a in self.operands.items())
            texture = [offset(index, self.textures)] if self.several_textures else []
            return [*texture, *map(scalar, self.spec.grid(*loaded))]

        return traced(function, *PLACE)

    def find_offsets(self) -> tuple[list[str], Any]:
        def function(*place: jax.Array) -> Any:
            index = self.tiles.index(*place)
            texels = offset(index[: len(self.read_from)], self.read_from) * flat_sizes(self.spec.axes)[0]
            return offset(index, self.arrays["values"].shape[:-1]), offset(index, self.shape), texels

        return traced(function, *PLACE)

    def find_walks(self) -> list[tuple[list[str], Any, list[tuple[int, ...]]]]:
        """Of each walk: statements, the first taps and the weights as expressions, and the offsets of the taps."""
        axes, texture = self.spec.axes, int(self.several_textures)
        count = axes[0].kernel.num_taps if axes[0].role is Role.LEVEL else 1

        def function(number: int, offsets: list[tuple[int, ...]], *coords: jax.Array) -> Any:
            walk = Walk.of(*list(walks(coords[texture:], axes))[number])
            offsets.extend((*[0] * texture, *taps) for taps in walk.offsets)
            return [scalar(i) for i in (*coords[:texture], *walk.first)], [scalar(w, jnp.float32) for w in walk.weights]

        found = []
        for number in range(count):
            offsets: list[tuple[int, ...]] = []
            found.append((*traced(functools.partial(function, number, offsets), *self.coords), offsets))
        return found

    def find_texel(self) -> tuple[list[str], Any]:
        axes, texture = self.spec.axes, int(self.several_textures)
        names = [(f"at[{k}]", np.dtype(np.int32)) for k in range(texture + len(axes))]

        def function(*at: jax.Array) -> Any:
            address = only_address(at[texture:], axes, as_it_is)
            number = address.flat_index[0]
            if texture:
                number = number + at[0] * flat_sizes(axes)[0]
            return number, scalar(True) if address.inside is None else address.inside

        return traced(function, *names)

    def find_split(self) -> tuple[list[str], Any]:
        """The parts of a piece of a sum: itself, or a coarse and a fine part."""
        names = [(f"piece.v[{k}]", np.dtype(np.float32)) for k in range(self.piece)]

        def function(*piece: jax.Array) -> Any:
            if self.parts == 1:
                return (jnp.stack(piece, -1),)
            units = load_row("units", jnp.zeros((1,), jnp.int32), 2, jnp.float32)[0]
            return Units(units[0], units[1]).split(jnp.stack(piece, -1))

        return traced(function, *names)

    def find_slopes(self) -> tuple[list[str], Any]:
        spec, lanes = self.spec, self.lanes
        dtype = self.arrays["texels"].dtype
        integers = [(name, np.dtype(np.int32)) for name in ("base", "first", "skipped")]
        values = [(f"value.v[{k}]", np.dtype(np.float32)) for k in range(lanes.width)]

        def function(*args: jax.Array) -> Any:
            base, first, skipped, *rest = args
            value, coords = jnp.stack(rest[: lanes.width], -1), rest[lanes.width + int(self.several_textures) :]

            def texel_times_cotangent(address: TexelAddress, path: TapPath) -> jax.Array:
                del path
                element = (base + address.flat_index[0]) * lanes.channels + first
                texel = load_row("texels", element, lanes.width, dtype, aligned=lanes.aligned)
                terms = decode(texel, spec.decoding, spec.dtype) * value
                if lanes.overlap:
                    terms = jnp.where(jnp.arange(lanes.width, dtype=jnp.int32)[None] >= skipped[:, None], terms, 0)
                return zero_outside(address, functools.reduce(jnp.add, jnp.split(terms, lanes.width, -1)))

            return slopes(coords, spec.axes, self.coordinate_axes, texel_times_cotangent)

        return traced(function, *integers, *values, *self.coords)

    # Windows

    def cells(self, offsets: list[tuple[int, ...]]) -> int:
        """The cells of a window that holds a tile at any angle, with taps at `offsets`."""
        if self.tiles.rank == 0:
            return 2 * math.prod(self.tiles.tile) + 128
        spans = [max(some) for some in zip(*offsets)][-self.tiles.rank :]
        diagonal = math.hypot(*sorted(self.tiles.tile)[-2:])
        lengths = [diagonal, diagonal, min(self.tiles.tile)][: self.tiles.rank]  # turned about one axis
        if self.crowd > 1:
            lengths = [min(n, SPREAD * n * self.crowd ** (-1 / self.tiles.rank)) for n in lengths]
        cells = math.prod(math.ceil(n) + span + 1 for n, span in zip(lengths, spans))
        return max(LEAST_CELLS, int(ROOM * cells))

    @property
    def blocks(self) -> int:
        """The blocks that a multiprocessor should hold at once: as many as its shared memory and registers do."""
        shared = MULTIPROCESSOR_BYTES // (1024 + 4 * self.num_warps * max(4, self.window_cells * self.lanes.parts * self.lanes.width))
        return max(1, min(shared, MULTIPROCESSOR_REGISTERS // (LEAST_REGISTERS * self.num_threads)))

    @property
    def takes_runs(self) -> bool:
        """Whether a lane adds up runs of samples in one cell, because many samples fall on few texels."""
        most = max(len(offsets) for *_, offsets in self.walks) * self.lanes.width
        return self.crowd * self.lanes.width >= RUN_CROWD and most <= MOST_HELD

    # The slots

    def filled(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        lanes, tiles = self.lanes, self.tiles
        axes = len(self.spec.axes) + int(self.several_textures)
        width = lanes.channels * self.parts
        slots: dict[str, object] = {
            "name": name,
            "axes": axes,
            "channels": lanes.channels,
            "width": lanes.width,
            "parts": lanes.parts,
            "overlap": lanes.overlap,
            "lanes_per_sample": lanes.per_sample,
            "row": lanes.parts * lanes.width,
            "total_width": width,
            "piece": self.piece,
            "pieces": lanes.parts * lanes.width // self.piece,
            "load": "load_aligned_row" if lanes.aligned else "load_row",
            "steps": tiles.num_steps,
            "batch": BATCH,
            "kept": tiles.num_steps if tiles.num_steps <= MOST_KEPT else 1,
            "batches_at_once": tiles.num_steps // BATCH if tiles.num_steps <= MOST_KEPT else 1,
            "coords_of_step": "kept[s + j]" if tiles.num_steps <= MOST_KEPT else f"coords_of({', '.join((*self.operands, 'at.outer', 'at.z', 'at.y', 'at.x'))})",
            "tiles": tiles.total,
            "warps": self.num_warps,
            "threads": self.num_threads,
            "shared": max(4, self.window_cells * lanes.parts * lanes.width),
            "blocks": self.blocks,
            "cells": self.window_cells,
            "num_slopes": len(self.coordinate_axes),
            "slopes_or_one": max(1, len(self.coordinate_axes)),
            "units": "units" if self.parts == 2 else "nullptr",
            "operand_names": ", ".join(self.operands),
            "stores": [f"slope_{axis}[offsets.sample] = slopes.along[{k}];" for k, axis in enumerate(self.coordinate_axes)],
        }
        slots |= self.functions()
        store_slopes = fill(STORE_SLOPES, **slots) if self.coordinate_axes else ""
        slots["parameters"] = ", ".join(self.parameters())
        slots["passes"] = fill(read_source(FOLDER / "slopes.cu"), **slots, store_slopes=store_slopes)
        if self.walks:
            passes = (self.window(k, store_slopes if k == 0 else "", slots) for k in range(len(self.walks)))
            slots["passes"] = "\n".join(passes)
        parts = (scalars(), warp(), tiles.source(), fill(read_source(FOLDER / "adjoint.cu"), **slots))
        return "\n".join(parts)

    @property
    def piece(self) -> int:
        """How many numbers are added to memory at once."""
        return self.lanes.width if self.lanes.aligned and self.lanes.width in (1, 2, 4) else 4 if self.lanes.aligned else 1

    def parameters(self) -> list[str]:
        named = {"values": "values", "texels": "texels", "units": "units", "zeros": ""}
        given = [f"const {C_TYPES[a.dtype.name]}* __restrict__ {named.get(k, k)}" for k, a in self.arrays.items()]
        return [*given, *(f"{C_TYPES[a.dtype.name]}* __restrict__ {k}" for k, a in self.results.items())]

    def functions(self) -> dict[str, object]:
        """The functions of a thread."""
        declared = lambda name, dtype: f"const {C_TYPES[np.dtype(dtype).name]}* __restrict__ {name}"
        slots: dict[str, object] = {
            "operands": ", ".join(declared(name, a.dtype) for name, a in self.operands.items()),
            "coordinate_fields": " ".join(f"{C_TYPES[np.dtype(d).name]} {name[3:]};" for name, d in self.coords),
            "texels": declared("texels", self.arrays["texels"].dtype if self.coordinate_axes else np.float32),
        }
        found = {"coords": self.find_coords(), "offsets": self.find_offsets(), "texel": ([], ["0", "false"])}
        found |= {"split": ([], []), "slopes": ([], ["0"])}
        if self.walks:
            found |= {"texel": self.find_texel(), "split": self.find_split()}
        if self.coordinate_axes:
            found["slopes"] = self.find_slopes()
        for key, (statements, out) in found.items():
            slots |= {f"{key}_statements": statements or [""], key: joined(out)}
        slots["additions"] = [
            f"add_to_memory(to + {k * self.lanes.channels}, Piece{{{{{joined(part)}}}}});"
            for k, part in enumerate(found["split"][1])
        ]
        functions = []
        for k, (statements, (first, weights), _) in enumerate(self.walks):
            body = "\n  ".join([*statements, f"return {{{{{joined(first)}}}, {{{joined(weights)}}}}};"])
            functions.append(f"DEVICE Taps taps_of_{k}(const Coords& at) {{\n  {body}\n}}")
        slots["taps_functions"] = "\n\n".join(functions)
        slots["most_taps"] = max((len(offsets) for *_, offsets in self.walks), default=1)
        return slots

    def window(self, number: int, store_slopes: str, slots: Mapping[str, Any]) -> str:
        """The statements of one walk."""
        *_, offsets = self.walks[number]
        slots = {**slots, "taps": len(offsets)}
        runs = (BEGIN_RUNS, ADD_RUN, END_RUNS) if self.takes_runs else ("", ADD_SAMPLE, "")
        begin, accumulate, end = (fill(text, **slots) for text in runs)
        last = slots["axes"] - 1
        carry = [f"while (i >= width) i -= width, at[{last - 1}]++;"] if last else []
        carry += [f"while (at[{k}] >= size[{k}]) at[{k}] -= size[{k}], at[{k - 1}]++;" for k in range(last - 1, 0, -1)]
        return fill(
            read_source(FOLDER / "window.cu"),
            walk=number,
            tap_offsets=", ".join("{" + ", ".join(map(str, some)) + "}" for some in offsets),
            span=", ".join(str(max(some)) for some in zip(*offsets)),
            begin_runs=begin,
            accumulate=accumulate,
            end_runs=end,
            carry=[f"      {line}" for line in carry] or [""],
            beyond="at[0] >= size[0]" if last else "i >= width",
            store_slopes=store_slopes,
            **slots,
        )
