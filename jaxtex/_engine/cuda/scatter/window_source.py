"""The source of the adjoint's kernel for all grids: windows of shared memory, and the cotangents of operands."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.decoding import decode
from ...compute.linearization import operand_cotangents, slopes
from ...compute.operators import zero_outside
from ...compute.reproducible_sum import Units
from ...describe.axis import Role, inner_axes
from ...describe.storage import WithHalo
from ...walk.combinations import Path as TapPath
from ...walk.texel_walk import TexelAddress, only_address, other_part, taps_are_available, walks
from ..build.source import scalars, warp
from ..samples.operands import stored_at
from ..samples.sample_source import SampleSource, Scalar, Traced, declared, joined, of_function, scalar
from ..samples.sample_tiles import LANES, PLACE, STEPS, offset
from ..trace.elementwise import C_TYPES
from ..trace.memory import load_row
from .crowds import crowd_of, is_crowded
from .operand_results import TILE_SUMS, OperandResults
from .window_walk import Walk, as_it_is

# The warps of a block, and the bytes of shared memory of all of them, of which any GPU has so many.
WARPS, SHARED_BYTES = 4, 46 * 1024
# A window has room for a tile that is turned by any angle, and some more for an odd pitch. It has so many cells at
# least, if they take no more bytes.
ROOM, LEAST_CELLS, LEAST_BYTES = 1.05, 320, 5120
# The window holds a whole texture, so that random coordinates fit, if that takes no more cells and bytes.
WHOLE_CELLS, WHOLE_BYTES = 1200, 20 * 1024
# Of a multiprocessor of compute capability 9.0: bytes of shared memory, and registers. Others take what they can.
MULTIPROCESSOR_BYTES, MULTIPROCESSOR_REGISTERS = 228 * 1024, 65536
# A thread has room for so many registers at least, by the channels that it takes; any more channels need as many.
LEAST_REGISTERS = {1: 64, 2: 80, 3: 80, 4: 128}
# The same where it takes few samples, as in `PULL_STEPS`, of no more taps than these.
PULL_REGISTERS, FEW_TAPS = {1: 48, 2: 64, 3: 64, 4: 80}, 4
# A lane loads the values of so many samples at once, at most.
BATCH = 4
# A lane holds at most so many sums for the taps of a run of samples in one cell.
MOST_HELD = 32
# A lane keeps the coordinates of at most so many samples; else it computes them twice.
MOST_KEPT = 8
# How much larger a window is than samples that spread evenly over the texture would need.
SPREAD = 1.5
# So many blocks look at all tiles for those of images whose texels have not looked for their samples: few, as a rule.
# Eight for each of 132 multiprocessors, which hold no more at once.
REMAINING_BLOCKS = 1056
# If there are so few images, a block looks first whether there is any of these.
FEW_IMAGES = 32


class WindowSource(SampleSource):
    """The source of a kernel.

    Attributes:
        cotangents: what it writes of the cotangents of operands.
    """

    def __init__(self, cotangents: OperandResults, arrays: Mapping[str, Any], results: Mapping[str, Any]):
        plan = cotangents.plan
        super().__init__(plan, arrays, results)
        self.cotangents, self.samples = cotangents, cotangents.samples
        self.coordinate_axes = plan.spec.axes_of(plan.wrt)
        self.several_textures = math.prod(plan.textures) > 1
        self.numbers_of_view = arrays["views"].shape[-1] if "views" in arrays else 0
        self.num_parts = 2 if "units" in arrays else 1  # of each sum
        self.crowd = crowd_of(plan) if "totals" in results else 0
        self.walks = self.find_walks() if "totals" in results else []
        cells = max((self.cells(offsets) for _, _, offsets in self.walks), default=0)
        self.window_cells = min(-(-cells // 4), SHARED_BYTES // (16 * self.row)) * 4
        self.num_warps = max(1, min(WARPS, SHARED_BYTES // max(1, 4 * self.window_cells * self.row)))

    @property
    def row(self) -> int:
        """The numbers of a cell of a window."""
        return self.lanes.parts * self.lanes.width

    @property
    def num_blocks(self) -> int:
        needed = -(-self.samples.total // self.num_warps)
        return min(needed, REMAINING_BLOCKS) if self.numbers_of_view else needed

    @property
    def num_threads(self) -> int:
        return LANES * self.num_warps

    # What a thread computes

    @functools.cached_property
    def coords(self) -> list[Scalar]:
        """The fields of `Coords`: the number of the texture, if there are several, then a coordinate for each axis."""
        dtypes = (a.dtype for k, a in enumerate(self.operands.values()) for _ in self.spec.numbers_of(k))
        one = [jax.ShapeDtypeStruct((1,), dtype) for dtype in dtypes]
        texture = [np.dtype(np.int32)] if self.several_textures else []
        dtypes = (*texture, *(c.dtype for c in jax.eval_shape(lambda *args: tuple(self.spec.grid(*args)), *one)))
        return [(f"at.c{k}", dtype) for k, dtype in enumerate(dtypes)]

    def find_coords(self) -> Traced:
        def function(*place: jax.Array) -> Any:
            index = self.samples.index(*place)
            texture = [offset(index, self.plan.textures)] if self.several_textures else []
            return [*texture, *map(scalar, self.spec.grid(*self.loaded(index)))]

        return self.traced(function, *PLACE)

    def find_walks(self) -> list[tuple[list[str], Any, list[tuple[int, ...]]]]:
        """Of each walk: statements, the first taps and the weights as expressions, and the offsets of the taps."""
        axes, texture = self.spec.axes, int(self.several_textures)
        inner = texture + len(axes) - len(inner_axes(axes))
        count = axes[inner - texture].kernel.num_taps if axes[inner - texture].role is Role.LEVEL else 1

        def function(number: int, offsets: list[tuple[int, ...]], *coords: jax.Array) -> Any:
            walk = Walk.of(coords[texture:inner], *list(walks(coords[texture:], axes))[number])
            offsets.extend((*[0] * texture, *taps) for taps in walk.offsets)
            return [scalar(i) for i in (*coords[:texture], *walk.first)], [scalar(w, jnp.float32) for w in walk.weights]

        found = []
        for number in range(count):
            offsets: list[tuple[int, ...]] = []
            found.append((*self.traced(functools.partial(function, number, offsets), *self.coords), offsets))
        return found

    def find_texel(self) -> Traced:
        axes, texture = self.spec.axes, int(self.several_textures)
        names = [(f"at[{k}]", np.dtype(np.int32)) for k in range(texture + len(axes))]

        def function(*at: jax.Array) -> Any:
            address = only_address(at[texture:], axes, as_it_is)
            number = address.flat_index[0]
            if texture:
                number = number + at[0] * self.plan.texels_per_texture
            return number, scalar(True) if address.inside is None else address.inside

        return self.traced(function, *names)

    def find_holds(self) -> Traced:
        """Whether a sample is added."""
        only_within = self.plan.only_within
        assert only_within is not None
        added = lambda *coords: taps_are_available(*other_part(coords, self.spec.axes, *only_within))
        return self.traced(lambda *coords: scalar(added(*coords)), *self.coords)

    def find_split(self) -> Traced:
        """The parts of a piece of a sum: itself, or a coarse and a fine part."""
        names = [(f"piece.v[{k}]", np.dtype(np.float32)) for k in range(self.piece)]

        def function(*piece: jax.Array) -> Any:
            if self.num_parts == 1:
                return (jnp.stack(piece, -1),)
            units = load_row("units", jnp.zeros((1,), jnp.int32), 2, jnp.float32)[0]
            return Units(units[0], units[1]).split(jnp.stack(piece, -1))

        return self.traced(function, *names)

    def find_slopes(self) -> Traced:
        spec, lanes = self.spec, self.lanes
        dtype = self.arrays["texels"].dtype
        integers = [(name, np.dtype(np.int32)) for name in ("base", "first", "skipped")]
        values = [(f"value.v[{k}]", np.dtype(np.float32)) for k in range(lanes.width)]

        def function(*args: jax.Array) -> Any:
            base, first, skipped, *rest = args
            value, coords = jnp.stack(rest[: lanes.width], -1), rest[lanes.width + int(self.several_textures) :]

            def texel_times_cotangent(address: TexelAddress, path: TapPath) -> jax.Array:
                del path
                place = [(base + address.flat_index[0], lanes.channels), (first, 1)]
                texel = load_row("texels", place, lanes.width, dtype, aligned=lanes.aligned)
                terms = decode(texel, spec.decoding, spec.dtype) * value
                if lanes.overlap:
                    terms = jnp.where(jnp.arange(lanes.width, dtype=jnp.int32)[None] >= skipped[:, None], terms, 0)
                return zero_outside(address, functools.reduce(jnp.add, jnp.split(terms, lanes.width, -1)))

            return slopes(coords, spec.axes, self.coordinate_axes, texel_times_cotangent)

        return self.traced(function, *integers, *values, *self.coords)

    def find_cotangents(self) -> Traced:
        """Of the numbers that the operands in `wrt` hold, from the slopes of a sample."""
        spec, wrt = self.spec.of_numbers(), tuple(n for some in self.cotangents.numbers for n in some)
        along = [(f"slopes.along[{k}]", np.dtype(np.float32)) for k in range(len(self.coordinate_axes))]

        def function(*args: jax.Array) -> Any:
            of_coords = dict(zip(self.coordinate_axes, args[len(PLACE) :]))
            found = operand_cotangents(of_coords, self.loaded(self.samples.index(*args[: len(PLACE)])), spec, wrt)
            return [found[k].astype(jnp.float32) for k in wrt]

        return self.traced(function, *PLACE, *along)

    # Windows

    def cells(self, offsets: list[tuple[int, ...]]) -> int:
        """The cells of a window that holds a tile at any angle, with taps at `offsets`."""
        rank = self.samples.image_axes
        if rank == 0:
            return 2 * math.prod(self.samples.tile) + 128
        spans = [max(some) for some in zip(*offsets)][-rank:]
        tile = sorted(self.samples.tile if self.samples.rank else (1, 1, *self.samples.shape[-rank:]))[-3:]
        # From the first sample to the last one; a volume has more room, as it may be turned about any axis.
        diagonal = math.hypot(*(n - (rank == 2) for n in tile[-2:]))
        lengths = [diagonal, diagonal, tile[0]][:rank]
        if self.crowd > 1:
            lengths = [min(n, SPREAD * n * self.crowd ** (-1 / rank)) for n in lengths]
        cells = math.prod(math.ceil(n) + span + 1 for n, span in zip(lengths, spans))
        least = min(LEAST_CELLS, LEAST_BYTES // (4 * self.row))
        return max(least, int(ROOM * cells), self.cells_of_texture(offsets))

    def cells_of_texture(self, offsets: list[tuple[int, ...]]) -> int:
        """The cells of a window that holds all of a small texture, and the taps beside it; 0 for a large one."""
        if self.several_textures or self.spec.axes[0].role in (Role.LEVEL, Role.START):
            return 0
        sizes = [axis.known_size + 1 + 2 * max(some) for axis, some in zip(self.spec.axes, zip(*offsets))]
        cells = math.prod((*sizes[:-1], sizes[-1] | 1))
        return cells if cells <= min(WHOLE_CELLS, WHOLE_BYTES // (4 * self.row)) and self.crowd > 1 else 0

    @property
    def blocks(self) -> int:
        """The blocks that a multiprocessor should hold at once: as many as its shared memory and registers do."""
        shared = MULTIPROCESSOR_BYTES // (1024 + 4 * self.num_warps * max(4, self.window_cells * self.row))
        taps = math.prod(axis.kernel.num_taps for axis in self.spec.axes if axis.role is Role.SPACE)
        few = taps <= FEW_TAPS and self.samples.num_steps < math.prod(STEPS[self.samples.rank])
        registers = (PULL_REGISTERS if few else LEAST_REGISTERS)[min(self.lanes.width, 4)]
        return max(1, min(shared, MULTIPROCESSOR_REGISTERS // (registers * self.num_threads)))

    @property
    def takes_runs(self) -> bool:
        """Whether a lane adds up runs of samples in one cell, because many samples fall on few texels."""
        most = max(len(offsets) for *_, offsets in self.walks) * self.lanes.width
        return is_crowded(self.crowd, self.lanes) and most <= MOST_HELD

    # The slots

    def source(self, name: str) -> str:
        """The whole source, with a function called `name`."""
        axes, kept = len(self.spec.axes) + int(self.several_textures), self.samples.num_steps
        in_registers, batch = kept <= MOST_KEPT, next(n for n in range(BATCH, 0, -1) if kept % n == 0)
        size = self.plan.num_texels * self.lanes.channels * self.num_parts
        copies = math.prod(self.results["totals"].shape) // size if self.walks else 1
        coords = f"coords_of({', '.join((*self.operands, 'at.outer', 'at.z', 'at.y', 'at.x'))})"
        images = math.prod(self.arrays["views"].shape[:-1]) if self.numbers_of_view else 0
        slots: dict[str, Any] = {
            **self.slots(),
            "name": name,
            "axes": axes,
            "lanes_per_sample": self.lanes.per_sample,
            "row": self.row,
            "total_width": self.lanes.channels * self.num_parts,
            "piece": self.piece,
            "pieces": self.row // self.piece,
            "steps": self.samples.num_steps,
            "batch": batch,
            "kept": kept if in_registers else 1,
            "batches_at_once": kept // batch if in_registers else 1,
            "coords_of_step": "kept[s + j]" if in_registers else coords,
            "tiles": self.samples.total,
            "warps": self.num_warps,
            "threads": self.num_threads,
            "shared": max(4, self.window_cells * self.row),
            "blocks": self.blocks,
            "cells": self.window_cells,
            "slopes_or_one": max(1, len(self.coordinate_axes)),
            "cotangents_or_one": max(1, sum(map(len, self.cotangents.numbers))),
            "sums": len(self.cotangents.summed),
            "sums_or_one": max(1, len(self.cotangents.summed)),
            "sums_to": TILE_SUMS if self.cotangents.summed else "((float*)nullptr)",
            "cotangents_to": ", ".join(f"cotangent_{k}" for k in self.cotangents.stored) or "nullptr",
            "stored_or_one": max(1, len(self.cotangents.stored)),
            "store_cotangents": self.place_cotangents(),
            "texels_or_none": "texels" if self.plan.wrt else "nullptr",
            "units": "units" if self.num_parts == 2 else "nullptr",
            "images": images,
            "few_images": boolean(0 < images <= FEW_IMAGES),
            "remaining": boolean(self.numbers_of_view > 0),
            "views": "views" if self.numbers_of_view else "((const float*)nullptr)",
            "numbers": self.numbers_of_view,
            "totals": "totals" if self.walks else "((float*)nullptr)",
            "sets_zero": boolean(self.sets_zero),
            "writes_whole": boolean(self.writes_whole),
            "texture_size": self.plan.texels_per_texture * self.lanes.channels * self.num_parts,
            "edged": self.edged() or [""],
            "choose_copy": f"totals += (int64)(blockIdx.x % {copies}) * {size};" if copies > 1 else "",
            "all_warps": self.num_blocks * self.num_warps,
            **self.functions(),
        }
        slots["whole"] = [""]
        if self.writes_whole:
            slots["whole"] = self.filled("scatter/whole.cu", {**slots, **self.whole()}).splitlines()
        passes = [self.window(number, slots) for number in range(len(self.walks))]
        passes = passes or [self.filled("scatter/slopes.cu", slots)]
        slots["passes"] = "\n".join(passes)
        templates = (self.filled(template, slots) for template in ("samples/samples.cuh", "scatter/adjoint.cu"))
        return "\n".join((scalars(), warp(), *self.tables, self.samples.source(), *templates))

    @property
    def piece(self) -> int:
        """How many numbers are added to memory at once."""
        return min(4, self.lanes.width) if self.lanes.aligned else 1

    @property
    def sets_zero(self) -> bool:
        """Whether a warp sets the texture of its samples to zero."""
        return "totals" in self.results and "start" not in self.arrays

    @property
    def writes_whole(self) -> bool:
        """Whether it writes that texture once, zeros and all, where each index of the window is that of a texel."""
        own = all(axis.role is Role.SPACE and axis.address.drops_outside for axis in self.spec.axes)
        return self.sets_zero and own and self.lanes.overlap == 0 and self.num_parts == 1

    def whole(self) -> dict[str, Any]:
        """The slots of what writes a whole texture."""
        texture, numbers = int(self.several_textures), self.plan.texels_per_texture * self.lanes.channels
        sizes = ", ".join(map(str, [1] * texture + [axis.known_size for axis in self.spec.axes]))
        return {"first_axis": texture, "sizes": sizes, "numbers_at_once": 4 if numbers % 4 == 0 else 1}

    def adds_pairs(self, offsets: list[tuple[int, ...]]) -> bool:
        """Whether two taps along the last axis are one addition to memory, where their texels make an aligned row."""
        adjacent = all(b[-1] == a[-1] + 1 for a, b in zip(offsets[::2], offsets[1::2])) and len(offsets) % 2 == 0
        return adjacent and self.num_parts == 1 and self.lanes.channels in (1, 2)

    def functions(self) -> dict[str, object]:
        """The functions of a thread."""
        texel, split, slopes, cotangents = ([], ["0", "false"]), ([], []), ([], ["0"]), ([], ["0"])
        holds = ([], "true") if self.plan.only_within is None else self.find_holds()
        if self.walks:
            texel, split = self.find_texel(), self.find_split()
        if self.plan.wrt:
            slopes, cotangents = self.find_slopes(), self.find_cotangents()
        taps = []
        for k, (statements, (first, weights), _) in enumerate(self.walks):
            body = "\n  ".join([*statements, f"return {{{{{joined(first)}}}, {{{joined(weights)}}}}};"])
            taps.append(f"DEVICE Taps taps_of_{k}(const Coords& at) {{\n  {body}\n}}")
        return {
            "texels": declared(
                "texels",
                self.arrays["texels"].dtype if self.plan.wrt else np.float32,
                isinstance(self.arrays.get("texels"), WithHalo),
            ),
            "additions": [
                f"add_to_memory(to + {k * self.lanes.channels}, Piece{{{{{joined(part)}}}}});"
                for k, part in enumerate(split[1])
            ],
            "coordinate_fields": " ".join(f"{C_TYPES[np.dtype(d).name]} {name[3:]};" for name, d in self.coords),
            "taps_functions": "\n\n".join(taps),
            "most_taps": max((len(offsets) for *_, offsets in self.walks), default=1),
            **of_function("coords", self.find_coords()),
            "skips": boolean(self.plan.only_within is not None),
            **of_function("holds", holds),
            **of_function("texel", texel),
            **of_function("split", split),
            **of_function("slopes", slopes),
            **of_function("cotangents", cotangents),
        }

    def place_cotangents(self) -> list[str]:
        """Statements that store the cotangents of a sample, or add them to the sums of its tile."""
        stored, summed, first = [], [], 0
        for k, numbers in zip(self.plan.wrt, self.cotangents.numbers):
            for n in range(len(numbers)):
                found = f"found.of[{first + n}]"
                if k in self.cotangents.summed:
                    summed.append(f"sums[{len(summed)}] += {found};")
                else:
                    place = stored_at(self.spec.stack_of(k), self.plan.shape, n, "offsets.sample")
                    stored.append(f"to[{self.cotangents.stored.index(k)}][{place}] = {found};")
            first += len(numbers)
        return [*stored, *summed]

    def window(self, number: int, slots: Mapping[str, Any]) -> str:
        """The statements of one walk."""
        *_, offsets = self.walks[number]
        of_walk = {
            "walk": number,
            "taps": len(offsets),
            "tap_offsets": ", ".join("{" + ", ".join(map(str, some)) + "}" for some in offsets),
            "span": ", ".join(str(max(some)) for some in zip(*offsets)),
            "runs": boolean(self.takes_runs),
            "pulls": boolean(number == 0 and len(self.plan.wrt) > 0),
            "pairs": boolean(self.adds_pairs(offsets)),
            "pair": 2 * self.lanes.width if self.adds_pairs(offsets) else 1,
        }
        return self.filled("scatter/window.cu", {**slots, **of_walk})


def boolean(value: bool) -> str:
    """A truth value in C."""
    return str(value).lower()
