"""The source of the scatter kernel, the adjoint for all grids: its windows, and the sizes of its work."""

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.linearization import operand_cotangents, slopes
from ...compute.texel_value import decode, zero_outside
from ...describe.axis import Role
from ...describe.operands import widened
from ...describe.storage import WithHalo
from ...walk.texel_walk import Path as TapPath
from ...walk.texel_walk import Step, TexelAddress, only_address, other_part, taps_are_available, walks
from ..build.arrays import ArrayRole, KernelArrays
from ..build.launch import LANES
from ..build.source import Constant, struct_of
from ..samples.sample_source import (
    ARRAYS,
    AT,
    OperandResults,
    SampleSource,
    load_numbers,
    names_of_axes,
    stored_at,
)
from ..samples.sample_tiles import PLACE_AT, STEPS, offset
from ..trace.emitter import DeviceFunctions, Scalar, names_of, scalar, struct_of_numbers
from ..trace.indexing import load_row
from .crowds import MOST_TEXELS, adds_runs, crowd_of, exceeds_registers, has_many_taps, taps_in_space
from .stored import OnSquares, crowd_cells

# The lengths of the rows of a window modulo the banks of shared memory, if lanes take the taps of one sample.
ROWS = 4, 12, 20, 28
INT, FLOAT = np.dtype(np.int32), np.dtype(np.float32)
# For each tap of a walk, its distance from the first tap on each axis of the window.
Offsets = list[tuple[int, ...]]
# The warps of a block, and the bytes of shared memory of a block, which any GPU has.
WARPS, SHARED_BYTES = 4, 46 * 1024
# ROOM is the factor by which a window exceeds a tile at any angle, for odd pitches. A window has at least LEAST_CELLS
# cells, if they take at most LEAST_BYTES bytes.
ROOM, LEAST_CELLS, LEAST_BYTES = 1.05, 320, 5120
# Limits of a window that holds a whole texture, into which random coordinates fit too.
WHOLE_CELLS, WHOLE_BYTES = 1200, 20 * 1024
# The bytes of shared memory and the registers of a multiprocessor of compute capability 9.0.
MULTIPROCESSOR_BYTES, MULTIPROCESSOR_REGISTERS = 228 * 1024, 65536
# The fewest registers of a thread, by its number of channels; the last entry holds for more channels.
LEAST_REGISTERS = {1: 64, 2: 80, 3: 80, 4: 128}
# The fewest registers of a thread with few samples, as in `PULL_STEPS`, of at most FEW_TAPS taps.
PULL_REGISTERS, FEW_TAPS = {1: 48, 2: 64, 3: 64, 4: 80}, 4
MANY_TAPS_REGISTERS = 128
# The fewest registers of a thread with more taps than MOST_TEXELS.
FULL_REGISTERS = 72
# If lanes take the taps of one sample, a window has room for unevenly spaced samples. With more taps than MOST_TEXELS,
# the window has the second number of bytes.
MANY_TAPS_BYTES = 16 * 1024, 18 * 1024 + 512
# The most samples whose values a lane loads at once.
BATCH = 4
# The most sums of a lane, for the taps of a run of samples in one cell.
MOST_HELD = 32
# The largest number of samples whose coordinates a lane keeps; otherwise it computes them twice.
MOST_KEPT = 8
# The factor by which a window exceeds the size that samples spread evenly over the texture would need.
SPREAD = 1.5
# The number of blocks that search the tiles of images that the gather kernel has not added, which are few as a rule:
# eight for each of 132 multiprocessors, which hold no more at once.
REMAINING_BLOCKS = 1056
# If the samples of more than one of so many tiles lie too far apart for a window, no window counts.
APART = 16
# The number of blocks that add what is not stored: five for each of 132 multiprocessors.
REST_BLOCKS = 660
# Up to so many images, a block first checks whether any of them remains.
FEW_IMAGES = 32


class WalkTaps(NamedTuple):
    """The taps of a walk. The weight of a tap is a product of factors, one of each step, which several taps share.

    Attributes:
        offsets: the distance of each tap from the first one, on each axis of the window.
        factors: the numbers of the factors of a tap.
        counts: the factors of each step.
        axes: the axis of the window that a step moves along; `None` if one moves along several, or not tap by tap.
    """

    offsets: Offsets
    factors: list[tuple[int, ...]]
    counts: list[int]
    axes: list[int] | None


def walk_taps(single: int, steps: Sequence[Step]) -> WalkTaps:
    """The taps of the steps of a walk.

    Args:
        single: the axes of the window before those of the steps, along which it has one cell.
    """
    counts, axes, axis = list[int](), list[int](), single
    for step in steps:
        alone = [tap.offset for tap in step.taps] == [(k,) for k in range(len(step.taps))]
        counts.append(len(step.taps))
        axes.append(axis if alone else -1)
        axis += len(step.taps[0].offset)
    starts = [sum(counts[:k]) for k in range(len(counts))]
    taps = list(itertools.product(*(enumerate(step.taps, start) for step, start in zip(steps, starts))))
    offsets = [(*[0] * single, *(k for _, tap in some for k in tap.offset)) for some in taps]
    return WalkTaps(offsets, [tuple(n for n, _ in some) for some in taps], counts, None if -1 in axes else axes)


class TapLanes(NamedTuple):
    """How the lanes of a warp divide the taps of a sample: in boxes, one for each share of a lane.

    Attributes:
        along: the taps of a box along each step.
        plane: the distance of two planes of a window, modulo the banks of shared memory.
    """

    along: tuple[int, ...]
    plane: int

    @classmethod
    @functools.cache
    def of(cls, counts: tuple[int, ...], parts: int, width: int) -> "TapLanes":
        """The division with the fewest accesses to shared memory.

        Args:
            counts: the taps along each step.
            parts: as of `Lanes`.
            width: the numbers that a lane loads at once.
        """
        boxes = [
            box for box in itertools.product(*(range(1, n + 1) for n in counts)) if math.prod(box) * parts <= LANES
        ]
        shares = lambda box: [-(-n // k) for n, k in zip(counts, box)]
        # A share is loaded and stored, and shares that differ in other steps have a factor in common.
        cost = lambda box, conflicts: 2 * math.prod(shares(box)) * conflicts + sum(shares(box))
        fewest, best = math.inf, cls(counts, 0)
        for box in sorted(boxes, key=lambda box: cost(box, 1)):
            if cost(box, 1) >= fewest:
                break
            for plane in range(LANES):
                found = cost(box, sum(conflicts(box, parts, width, (plane, row, 1)) for row in ROWS) / len(ROWS))
                if found < fewest:
                    fewest, best = found, cls(box, plane)
        return best


def conflicts(box: tuple[int, ...], parts: int, width: int, strides: tuple[int, ...]) -> float:
    """How many times longer an access to a box takes because lanes that are served together use one bank.

    Args:
        strides: the distance of two cells along each of the last steps.
    """
    banks, steps = LANES // width, len(strides)
    cells = (
        sum(map(operator.mul, place[-steps:], strides[-len(place) :])) for place in itertools.product(*map(range, box))
    )
    rows = [(cell * parts + part) % banks for cell in cells for part in range(parts)]
    groups = [rows[k : k + banks] for k in range(0, len(rows), banks)]
    return sum(max(map(group.count, group)) for group in groups) / len(groups)


def table_of(name: str, columns: str, column: str, rows: Sequence[tuple[int, ...]], comment: str) -> str:
    """The declaration of a function of a tap and of a column, whose values are constants."""
    table = ", ".join("{" + ", ".join(map(str, some)) + "}" for some in rows)
    body = f"constexpr int all[][{columns}] = {{{table}}}; return all[tap][{column}];"
    return f"static DEVICE constexpr int {name}(int tap, int {column}) {{ {body} }}  // {comment}"


class WindowSource(OnSquares, SampleSource):
    """The source of the scatter kernel: its windows, the sizes of its work, and its traced functions.

    Attributes:
        cotangents: the results for the cotangents of operands.
        walks: the offsets of the taps, for each walk.
    """

    file, room, made_by = "scatter/adjoint.cu", "scatter", "window_source.py"

    def __init__(self, cotangents: OperandResults, arrays: KernelArrays):
        plan = cotangents.plan
        super().__init__(plan)
        self.arrays, self.cotangents, self.samples = arrays, cotangents, cotangents.samples
        self.coordinate_axes = plan.spec.axes_of(plan.wrt)
        self.several_textures = math.prod(plan.textures) > 1
        self.deterministic = ArrayRole.UNIT in arrays
        self.words = 2 if self.deterministic else 1  # of each sum
        self.stores = ArrayRole.WINDOWS in arrays
        self.walks = self.add_walks() if self.stores or ArrayRole.TOTALS in arrays else []
        self.views = arrays[ArrayRole.VIEWS].shape if ArrayRole.VIEWS in arrays else ()
        self.crowd = crowd_of(self.plan) if self.walks else 0
        cells = max(map(self.cells, self.walks), default=0)
        self.window_cells = min(-(-cells // 4), (SHARED_BYTES - self.shown_bytes) // (16 * self.row)) * 4
        self.num_warps = max(1, min(WARPS, SHARED_BYTES // max(1, self.warp_bytes)))

    @property
    def row(self) -> int:
        """The number of floats in a cell of a window."""
        return self.lanes.parts * self.lanes.width

    @property
    def shown_bytes(self) -> int:
        """The shared memory in which the lanes of a warp see their samples, if they take the taps of each."""
        samples = LANES // self.lanes.per_sample
        numbers = max((sum(walk.counts) for walk in self.walks if self.takes_taps(walk)), default=0)
        pitch = 4 if samples < 8 else samples + 4
        return (
            4 * pitch * (numbers + self.row + int(self.several_textures) + self.spec.given + len(self.spec.axes))
            if numbers
            else 0
        )

    @property
    def warp_bytes(self) -> int:
        """The shared memory of a warp."""
        return 4 * max(4, self.window_cells * self.row) + self.shown_bytes

    @property
    def num_blocks(self) -> int:
        needed = -(-self.samples.total // self.num_warps)
        return min(needed, REST_BLOCKS if self.adds_rest else REMAINING_BLOCKS if self.views else needed)

    @property
    def adds_rest(self) -> bool:
        """Whether the kernel adds what another has not stored."""
        return ArrayRole.BOXES in self.arrays and not self.stores

    @property
    def num_threads(self) -> int:
        return LANES * self.num_warps

    @property
    def bounds(self) -> str:
        return "threads, blocks"

    # Windows

    def cells(self, walk: WalkTaps) -> int:
        """The cells of a window that holds a tile at any angle."""
        rank, offsets = self.samples.image_axes, walk.offsets
        if rank == 0:
            return 2 * math.prod(self.samples.tile) + 128
        spans = [max(some) for some in zip(*offsets)][-rank:]
        tile = sorted(self.samples.tile if self.samples.rank else (1, 1, *self.samples.shape[-rank:]))[-3:]
        # From the first sample to the last; a volume gets one more, as it may be turned about any axis.
        diagonal = math.hypot(*(n - (rank == 2) for n in tile[-2:]))
        lengths = [diagonal, diagonal, tile[0]][:rank]
        if self.crowd > 1:
            lengths = [min(n, SPREAD * n * self.crowd ** (-1 / rank)) for n in lengths]
        cells = math.prod(math.ceil(n) + span + 1 for n, span in zip(lengths, spans))
        least = min(LEAST_CELLS, LEAST_BYTES // (4 * self.row))
        if self.takes_taps(walk):
            least = MANY_TAPS_BYTES[len(walk.offsets) > MOST_TEXELS] // (4 * self.row)
        return max(least, int(ROOM * cells), self.cells_of_texture(offsets))

    def cells_of_texture(self, offsets: Offsets) -> int:
        """The number of cells of a window that holds a small texture and the taps around it; 0 for a large texture."""
        if self.several_textures or self.spec.given or self.spec.axes[0].role is Role.LEVEL:
            return 0
        sizes = [axis.known_size + 1 + 2 * max(some) for axis, some in zip(self.spec.axes, zip(*offsets))]
        cells = math.prod((*sizes[:-1], sizes[-1] | 1))
        return cells if cells <= min(WHOLE_CELLS, WHOLE_BYTES // (4 * self.row)) and self.crowd > 1 else 0

    @property
    def blocks(self) -> int:
        """The number of blocks that a multiprocessor should hold, as its shared memory and registers allow."""
        shared = MULTIPROCESSOR_BYTES // (1024 + self.num_warps * self.warp_bytes)
        taps = taps_in_space(self.spec.axes)
        few = taps <= FEW_TAPS and self.samples.num_steps < math.prod(STEPS[self.samples.rank])
        registers = (PULL_REGISTERS if few else LEAST_REGISTERS)[min(self.lanes.width, 4)]
        if exceeds_registers(self.spec.axes):
            registers = max(registers, FULL_REGISTERS)
        if any(map(self.takes_taps, self.walks)):
            registers = MANY_TAPS_REGISTERS
        return max(1, min(shared, MULTIPROCESSOR_REGISTERS // (registers * self.num_threads)))

    @property
    def takes_runs(self) -> bool:
        """Whether a lane adds up runs of samples in one cell, because many samples fall on few texels."""
        most = max((len(walk.offsets) for walk in self.walks), default=0) * self.lanes.width
        return adds_runs(self.crowd, self.lanes) and most <= MOST_HELD

    @property
    def sets_zero(self) -> bool:
        """Whether a warp sets the texture of its samples to zero."""
        return ArrayRole.TOTALS in self.arrays and self.arrays.find(ArrayRole.TOTALS).start is None

    @property
    def writes_whole(self) -> bool:
        """Whether the warp writes that texture once, zeros included; the window must have the indices of texels."""
        own = all(axis.role is Role.SPACE and axis.address.drops_outside for axis in self.spec.axes)
        return self.sets_zero and own and self.lanes.overlap == 0

    # The source

    def constants(self) -> list[Constant]:
        # How the steps of a lane are divided: coordinates are kept for a few, values are loaded in batches.
        texture, steps = int(self.several_textures), self.samples.num_steps
        keeps, batch = steps <= MOST_KEPT, next(n for n in range(BATCH, 0, -1) if steps % n == 0)
        # The numbers of a texture, of all textures, and of all copies of them.
        texture_size = self.plan.texels_per_texture * self.lanes.channels * self.words
        size = self.plan.num_texels * self.lanes.channels * self.words
        totals = math.prod(self.arrays[ArrayRole.TOTALS].shape) if ArrayRole.TOTALS in self.arrays else size
        # What remains from the gather kernel, if it ran before.
        images = math.prod(self.views[:-1]) if self.views else 0
        # The axes of a window: those of the texture follow the number of the texture and the starts.
        sizes = [axis.known_size if self.writes_whole or self.stores else 1 for axis in self.spec.axes]
        first = texture + self.spec.given
        return [
            Constant("blocks", self.blocks, "that a multiprocessor holds at once"),
            Constant("lanes", LANES, "the threads of a warp"),
            Constant("warps", self.num_warps, "of a block"),
            Constant("num_blocks", self.num_blocks, "of the launch"),
            Constant("tiles", self.samples.total, "of samples"),
            Constant("steps", steps, "the samples of a lane in a tile"),
            Constant("batch", batch, "the samples of which a lane loads the values at once"),
            Constant("keeps_coords", keeps, "whether a lane keeps the coordinates of its samples"),
            Constant("lanes_per_sample", self.lanes.per_sample, "some of which may take no part"),
            Constant("axes", first + len(self.spec.axes), "of a window: for textures and starts, then of a texture"),
            Constant("first_axis", first, "that is one of a texture"),
            Constant("size_of", (*[1] * first, *sizes), "of a texture along an axis; 1 if it is not used"),
            Constant("num_walks", len(self.walks), "that add to texels: one for each level that is blended"),
            Constant("window_cells", self.window_cells, "the most cells of a window"),
            Constant("deterministic", self.deterministic, "whether sums are integers, the same in any order"),
            Constant("stores", self.stores, "whether windows are stored, and not added to texels"),
            Constant("adds_rest", self.adds_rest, "whether the kernel adds what is not stored"),
            Constant("crowd_cells", crowd_cells(self.window_cells), "the most cells of a crowded window"),
            Constant("most_apart", self.samples.total // APART, "tiles whose samples lie too far apart for windows"),
            Constant("words", self.words, "of 32 bits that a sum takes"),
            Constant("piece_width", self.piece, "the numbers that are added to memory at once"),
            Constant("takes_runs", self.takes_runs, "whether a lane adds up runs of samples in one cell"),
            Constant("sets_zero", self.sets_zero, "whether a warp sets the texture of its samples to zero"),
            Constant("writes_whole", self.writes_whole, "whether a warp writes that texture once, with its zeros"),
            Constant("texture_size", texture_size, "the totals of a texture"),
            Constant("copies", totals // size, "of all totals; blocks add to them in turn"),
            Constant("size_of_copy", size, "the totals of a copy"),
            Constant("images", images, "that the gather kernel may have added; 0 for none"),
            Constant("looks_first", 0 < images <= FEW_IMAGES, "whether a block looks first if any image remains"),
            Constant("numbers_of_view", self.views[-1] if self.views else 0),
            Constant("skips", self.plan.only_within is not None, "whether some samples are not added"),
            Constant("pulls", bool(self.plan.wrt), "whether operands have cotangents"),
            Constant("num_slopes", len(self.coordinate_axes), "the derivatives along coordinates"),
            Constant("num_cotangents", sum(map(len, self.cotangents.numbers)), "of the operands of a sample"),
            Constant("lanes_of_sum", self.cotangents.lanes_of_sum, "that add up cotangents which reads of a sum share"),
            Constant("adds_cotangents", bool(self.cotangents.added), "whether reads of a sum share cotangents"),
            Constant("steps_along_sum", self.samples.steps_along_last, "whether a lane's samples are reads of one sum"),
            Constant("num_sums", len(self.cotangents.summed), "the operands whose cotangents a tile adds up"),
        ]

    def structs(self) -> list[str]:
        return [*self.structs_of_values(), self.samples.struct()]

    # Traced functions

    @functools.cached_property
    def fields(self) -> list[Scalar]:
        """The fields of `Coords`: the number of the texture, if there are several, then the coordinates."""
        dtypes = (a.dtype for k, a in enumerate(self.arrays.operands) for _ in self.spec.numbers_of(k))
        one = [jax.ShapeDtypeStruct((1,), dtype) for dtype in dtypes]
        texture = [INT] if self.several_textures else []
        coords = jax.eval_shape(lambda *args: tuple(self.spec.coords_at(*map(widened, args))), *one)
        dtypes = (*texture, *(c.dtype for c in coords))
        return [(f"c{k}", dtype) for k, dtype in enumerate(dtypes)]

    @property
    def coords(self) -> list[Scalar]:
        """The coordinates of a sample as arguments of a traced function."""
        return [(f"coords.{name}", dtype) for name, dtype in self.fields]

    @property
    def piece(self) -> int:
        """The count of numbers in one addition to memory."""
        return min(4, self.lanes.width) if self.lanes.aligned and not self.deterministic else 1

    @property
    def names(self) -> str:
        """The axes of a window, for comments."""
        front = (*["texture"] * self.several_textures, *["start"] * self.spec.given)
        return ", ".join((*front, *names_of_axes(self.spec.axes)))

    def add_walks(self) -> list[WalkTaps]:
        """Adds the taps of each walk."""
        axes, texture = self.spec.axes, int(self.several_textures)
        count = axes[0].kernel.num_taps if axes[0].role is Role.LEVEL else 1

        # A walk is traced once for its device function; the trace notes what does not depend on coordinates.
        def function(number: int, noted: list[WalkTaps], *coords: jax.Array) -> Any:
            weight, address, steps = list(walks(coords[texture:], axes))[number]
            # Along the texture, sizes, starts and the level, a window has one cell.
            single = [*coords[: texture + self.spec.given], *([] if address.level is None else [address.level])]
            first = [*single, *(index for step in steps for index in step.taps[0].unbounded)]
            weights = [step.weights() for step in steps]
            weights[0] = [weight * w for w in weights[0]]
            noted.append(walk_taps(len(single), steps))
            return [[scalar(i) for i in first], [scalar(w, jnp.float32) for some in weights for w in some]]

        # Each level that is blended has a walk, and its own function.
        found = list[WalkTaps]()
        for number in range(count):
            noted: list[WalkTaps] = []
            signature = f"Taps<Walk<{number}>::factors> taps_of(Walk<{number}>, const Coords& coords)"
            comment = f"The taps of axes {self.names}, walk {number}."
            self.functions.add(signature, comment, functools.partial(function, number, noted), *self.coords)
            found.append(noted[-1])
        return found

    @property
    def begins_even(self) -> bool:
        """Whether each array of totals, and each copy of them, begins at a texel of even number.

        Else two texels, the first of even number, are no aligned row there, or lie in two arrays.
        """
        totals = self.arrays[ArrayRole.TOTALS]
        if isinstance(totals, WithHalo):
            return all(math.prod(a.shape[:-1]) % 2 == 0 for a in (totals.before, totals.own))
        return totals.shape[0] == self.plan.num_texels or self.plan.num_texels % 2 == 0

    def adds_pairs(self, offsets: Offsets) -> bool:
        """Whether two taps along the last axis are one addition to memory if their texels form an aligned row."""
        adjacent = all(b[-1] == a[-1] + 1 for a, b in zip(offsets[::2], offsets[1::2])) and len(offsets) % 2 == 0
        floats = not self.deterministic and not self.stores
        return adjacent and floats and self.lanes.channels in (1, 2) and self.begins_even

    def takes_taps(self, walk: WalkTaps) -> bool:
        """Whether the lanes of a warp take the taps of one sample, instead of one sample each."""
        return has_many_taps(self.plan) and walk.axes is not None

    def walk_struct(self, number: int, walk: WalkTaps) -> str:
        """The struct of the taps of a walk."""
        offsets, many = walk.offsets, self.takes_taps(walk)
        constants = [
            Constant("taps", len(offsets)),
            Constant("factors", sum(walk.counts), "of the weights of all taps"),
            Constant("steps", len(walk.counts), "each of which has a factor of the weight of a tap"),
            Constant("adds_pairs", self.adds_pairs(offsets), "whether two taps are one addition to memory"),
            Constant("many", many, "whether the lanes of a warp take the taps of one sample"),
            Constant("span", tuple(max(some) for some in zip(*offsets)), "from the first tap to the last on each axis"),
        ]
        # Lanes that take the taps of one sample need the taps of each step, and a layout without bank conflicts.
        if many:
            constants.append(Constant("count", tuple(walk.counts), "the factors of each step"))
            constants.append(Constant("axis", tuple(walk.axes or ()), "that a step moves along"))
            lanes = TapLanes.of(tuple(walk.counts), self.lanes.parts, math.gcd(self.lanes.width, 4))
            constants.append(Constant("along", lanes.along, "the taps of each step that lanes take at once"))
            constants.append(Constant("plane", lanes.plane, "the distance of two planes of a window, modulo the banks"))
        # Tables hold where each tap lies, and which factors make up its weight.
        members = [table_of("offset", "axes", "axis", offsets, "from the first tap")]
        members.append(table_of("factor", "steps", "step", walk.factors, "of the weight of a tap"))
        comment = f"Walk {number}: {len(offsets)} taps along {self.names}."
        return struct_of(f"Walk<{number}>", comment, constants, *members, template="template <> ")

    def declarations(self) -> list[str]:
        """The types of the functions' parameters and results."""
        totals = self.arrays.type_of(ArrayRole.TOTALS)
        return [
            struct_of_numbers("Coords", f"The coordinates of a sample: {self.names}.", self.fields),
            "template <int number> struct Walk;\n",
            *(self.walk_struct(number, walk) for number, walk in enumerate(self.walks)),
            f"typedef {totals} Totals;\n",
        ]

    def traced(self, functions: DeviceFunctions) -> list[str]:
        self.add_offsets(functions)
        comment = f"The coordinates of a sample along {self.names}."
        functions.add(f"Coords coords_of({ARRAYS}, {AT})", comment, self.coords_of, *PLACE_AT)
        self.add_texels(functions)
        if self.plan.wrt:
            self.add_cotangents(functions)
        return self.declarations()

    def includes(self) -> tuple[str, ...]:
        return *super().includes(), "scatter/types.cuh"

    def coords_of(self, *place: jax.Array) -> Any:
        index = self.samples.index_of(*place)
        texture = [offset(index, self.plan.textures)] if self.several_textures else []
        return [*texture, *map(scalar, self.spec.coords_at(*load_numbers(self.spec, self.arrays.operands, index)))]

    def add_texels(self, functions: DeviceFunctions) -> None:
        """Adds the functions that find the texels of a sample."""
        axes, texture, only_within = self.spec.axes, int(self.several_textures), self.plan.only_within

        # The texel at unbounded indices, found by the address rules once a window is added to memory.
        def texel(*at: jax.Array) -> Any:
            address = only_address(at[texture:], axes, lambda index, axis: [(index, 1.0)])
            number = address.flat_index[0]
            if texture:
                number = number + at[0] * self.plan.texels_per_texture
            return [number, scalar(True) if address.inside is None else address.inside]

        # With a halo, some samples need texels that this device does not have.
        def added(*coords: jax.Array) -> jax.Array:
            if only_within is None:
                return scalar(True)
            return scalar(taps_are_available(*other_part(coords, axes, *only_within)))

        functions.add(
            "Texel texel_of(const int (&at)[axes])",
            f"The texel at indices before any address rule: {self.names}.",
            texel,
            *names_of("at", texture + self.spec.given + len(axes), INT),
        )
        comment = "Whether a sample is added: its texels are all stored."
        functions.add("bool is_added(const Coords& coords)", comment, added, *self.coords)

    def add_cotangents(self, functions: DeviceFunctions) -> None:
        """Adds the functions that compute and store the cotangents of operands."""
        # Every number of an operand has a cotangent of its own, so operands are taken apart.
        wrt = tuple(n for some in self.cotangents.numbers for n in some)
        of_numbers = self.spec.replace(stacks=())

        def cotangents(*args: jax.Array) -> Any:
            of_coords = dict(zip(self.coordinate_axes, args[len(PLACE_AT) :]))
            index = self.samples.index_of(*args[: len(PLACE_AT)])
            numbers = load_numbers(self.spec, self.arrays.operands, index)
            found = operand_cotangents(of_coords, numbers, of_numbers, wrt)
            return [[found[k].astype(jnp.float32) for k in wrt]]

        # First the slopes along coordinates, over the channels of a lane.
        integers = [(name, INT) for name in ("base", "first", "skipped")]
        parameters = f"{ARRAYS}, const Coords& coords, const Value& value, int base, int first, int skipped"
        functions.add(
            f"Slopes slopes_of({parameters})",
            "A lane's part of the derivatives along coordinates, without the first `skipped` channels.",
            self.slopes,
            *integers,
            *names_of("value.v", self.lanes.width, FLOAT),
            *self.coords,
        )
        # Lanes add these up; then the chain rule leads to the operands.
        functions.add(
            f"Cotangents cotangents_of({ARRAYS}, {AT}, const Slopes& slopes)",
            "The cotangents of the operands of a sample.",
            cotangents,
            *PLACE_AT,
            *names_of("slopes.along", len(self.coordinate_axes), FLOAT),
        )
        # Last, cotangents are stored, added up over a tile, or added to memory.
        keep = f"void keep_cotangents({ARRAYS}, int sample, const Cotangents& found, Sums& sums)"
        functions.define(keep, "Stores them, or adds them to the sums of a tile.", self.kept_cotangents(added=False))
        add = f"void add_cotangents({ARRAYS}, int sample, const Cotangents& found)"
        functions.define(add, "Adds to memory what reads of a sum share.", self.kept_cotangents(added=True))

    def slopes(self, *args: jax.Array) -> Any:
        spec, lanes, dtype = self.spec, self.lanes, self.arrays[ArrayRole.TEXELS].dtype
        base, first, skipped, *rest = args
        value, coords = jnp.stack(rest[: lanes.width], -1), rest[lanes.width + int(self.several_textures) :]

        # The value at a tap is the texel times the cotangent, summed over the channels of the lane.
        def texel_times_cotangent(address: TexelAddress, path: TapPath) -> jax.Array:
            del path
            place = [(base + address.flat_index[0], lanes.channels), (first, 1)]
            texel = load_row("arrays.texels", place, lanes.width, dtype, aligned=lanes.aligned)
            terms = decode(texel, spec.decoding, spec.dtype) * value
            if lanes.overlap:
                terms = jnp.where(jnp.arange(lanes.width, dtype=jnp.int32)[None] >= skipped[:, None], terms, 0)
            return zero_outside(address, functools.reduce(jnp.add, jnp.split(terms, lanes.width, -1)))

        # Where texels would exceed the registers, all derivatives take one before the next is loaded.
        together = exceeds_registers(spec.axes)
        return [[*slopes(coords, spec.axes, self.coordinate_axes, texel_times_cotangent, together=together)]]

    def kept_cotangents(self, *, added: bool) -> Sequence[str]:
        """Statements that store the cotangents of a sample, or add them to the sums of its tile.

        Args:
            added: whether to add those that all reads of a sum share to memory, and nothing else.
        """
        stored, summed, shared, first = [], [], [], 0
        for k, numbers in zip(self.plan.wrt, self.cotangents.numbers):
            for n in range(len(numbers)):
                # Which of the three ways a number takes follows from its operand.
                found = f"found.of[{first + n}]"
                if k in self.cotangents.summed:
                    summed.append(f"sums[{len(summed)}] += {found};")
                elif k not in self.cotangents.added:
                    place = stored_at(self.spec.stack_of(k), self.plan.shape, n, "sample")
                    stored.append(f"arrays.cotangent_{k}[{place}] = {found};")
                elif added:
                    number = f"(sample / {self.plan.reads_of_sum})"
                    place = stored_at(self.spec.stack_of(k), self.plan.shape_of_sums, n, number)
                    shared.append(f"add_atomically(arrays.cotangent_{k} + {place}, {found});")
            first += len(numbers)
        return shared if added else [*stored, *summed]
