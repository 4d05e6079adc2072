"""The source of the read kernel: its sizes, and its traced functions."""

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.texel_value import LoadTexel
from ...describe.axis import Role
from ...describe.folds import Fold
from ...describe.operands import Coords
from ...describe.spec import ReadSpec
from ...describe.storage import Slice, WithHalo
from ...walk.known_taps import taps_are_inside, taps_are_outside
from ...walk.texel_order import flat_sizes
from ...walk.texel_walk import TexelAddress, weighted
from ..build.arrays import ArrayRole, KernelArrays
from ..build.source import Constant, KernelSource
from ..samples.sample_source import load_numbers, names_of_axes
from ..samples.sample_tiles import PLACE_AT, ReadThreads, offset, slice_struct
from ..trace.elementwise import C_TYPES, literal
from ..trace.emitter import DeviceFunctions, Scalar, names_of, scalar, struct_of_numbers
from ..trace.indexing import load_row

# A function ``value(load_texel, coords, border_color)``: the result of a read of one sample, (1, C), like the color.
# Without a border color, `load_texel` returns zero for taps outside, and loads nothing.
ReadValue = Callable[[LoadTexel, Coords, jax.Array | None], jax.Array]
PART = ("part", np.dtype(np.int32))
# The number of a read in a sum, by its group and its place there.
NUMBER = (("group", np.dtype(np.int32)), ("number", np.dtype(np.int32)))
# The largest number of blocks that read noted tiles.
NOTED_BLOCKS = 4224
# For hardware arithmetic, by the number of filtered axes of space and the channels of a thread: how many blocks a
# multiprocessor must have room for. Without this bound, the compiler gives threads too many registers, or too few.
BLOCKS_OF_UNIT = {(2, 1): 9, (2, 4): 8, (3, 4): 6}
# The largest number of reads of a sum that a thread computes at once, and for how many blocks of a short sum a
# multiprocessor must have room.
MOST_AT_ONCE, BLOCKS_OF_SUM = 4, 8
# The largest number of taps of these reads: more take the compiler minutes.
MOST_TAPS_AT_ONCE = 256
# The result types of traced functions.
RESULTS = """\
// The value of a read, and whether its tile is noted for another kernel.
struct Read { Sum value; bool noted; };
// The number of a sample, and the first channel of a thread.
struct Place { int sample, channel; };
"""
# Sums of so many reads take several at once in any case, which made those of 512 reads 5 to 8 % faster on an H100.
LONG_SUM = 128
# If a sum tells apart where taps lie, reads with all taps inside need no checks, and reads with all outside are zero.
ALL_INSIDE, ALL_OUTSIDE = "bool all_inside(const Coords& coords)", "bool all_outside(const Coords& coords)"
# The functions of a fold of reads; a sum is one, of terms.
START, IS_FINAL = "void start(State& state)", "bool is_final(const State& state)"
COUNTS, TERM_OF = "bool counts(const Coords& coords)", "Sum term_of(const Coords& coords, const Sum& value)"
FOLDED = "State folded(const State& state, const Coords& coords, const Sum& value)"
RESULT_OF_VALUE = "Result result_of_value(const Sum& value)"
RESULT_OF_STATE = "Result result_of_state(const State& state)"


class ReadSource(KernelSource):
    """The source of the read kernel.

    Args:
        value, exact, notes: as in `read_each_sample`.
        batch: the number of leading batch axes of the texels.
        filled: the slice of its array that the result fills.
        fold: what the reads of a sample become, if not their sum.
        inside: `value` for coordinates whose taps are all inside; `None` if they are not told apart.
    """

    file, room, made_by = "read/read.cu", "read", "read_source.py"
    dtype: np.dtype  # the dtype of values, which is known once functions are traced

    def __init__(
        self,
        value: ReadValue,
        spec: ReadSpec,
        batch: int,
        threads: ReadThreads,
        arrays: KernelArrays,
        filled: Slice,
        exact: bool,
        notes: Callable[[Coords], jax.Array] | None,
        fold: Fold | None = None,
        inside: ReadValue | None = None,
    ):
        super().__init__()
        self.value, self.spec, self.batch, self.threads, self.arrays = value, spec, batch, threads, arrays
        self.inside = inside
        self.filled, self.exact, self.notes, self.fold = filled, exact, notes, fold
        self.is_long = inside is not None or self.group >= LONG_SUM

    @property
    def channels(self) -> int:
        return self.arrays[ArrayRole.TEXELS].shape[-1]

    @property
    def num_results(self) -> int:
        """The number of results of a read: one, or one for each of several derivatives."""
        return 1 if self.fold is not None else max(1, len(self.spec.derivatives))

    @property
    def result_width(self) -> int:
        """The numbers of a result that a thread stores."""
        return self.threads.width if self.fold is None else self.fold.width(self.threads.width)

    @property
    def num_sums(self) -> int:
        """The numbers of a read: a thread's channels of every derivative."""
        return max(1, len(self.spec.derivatives)) * self.threads.width

    @property
    def num_state(self) -> int:
        """The numbers of the state of a thread's reads."""
        return self.num_sums if self.fold is None else len(self.fold.start(self.threads.width))

    @property
    def skips_outside(self) -> bool:
        """Whether reads are told apart that are zero because all of their taps are outside."""
        drops = all(axis.role is Role.SPACE and axis.address.drops_outside for axis in self.spec.axes)
        return drops and self.inside is not None and ArrayRole.COLOR not in self.arrays

    @property
    def averages(self) -> bool:
        """Whether the result is a weighted mean of several reads."""
        return self.spec.several is not None

    @property
    def num_reads(self) -> int:
        """The number of reads that a thread sums; 0 if the result is a single read."""
        summed = self.threads.summed
        return math.prod(summed) if summed else self.spec.num_reads if self.averages else 0

    @property
    def group(self) -> int:
        """The number of reads of a group, which differ in the index on the last summed axis alone."""
        return self.threads.summed[-1] if self.threads.summed else max(self.num_reads, 1)

    @property
    def reads_at_once(self) -> int:
        """The number of reads whose loads overlap; of a short sum, it divides a group."""
        if not self.threads.summed:
            return 1
        most = max(1, min(MOST_AT_ONCE, MOST_TAPS_AT_ONCE // self.spec.num_taps))
        return most if self.is_long else max(n for n in range(1, most + 1) if self.group % n == 0)

    # Functions of a thread, which are traced

    def coords(self, *args: jax.Array) -> list[jax.Array]:
        """The coordinates of a read of the sample at a place.

        In a mean, the weight of the read follows; in a fold, its number, and the operands that the fold takes.

        Args:
            args: the place; for a sum of reads, followed by the number of the read, as in NUMBER.
        """
        place, number = args[: len(PLACE_AT)], args[len(PLACE_AT) :]
        numbers = load_numbers(self.spec, self.arrays.operands, self.threads.index_of(place, number))
        if not self.averages:
            coords = list(map(scalar, self.spec.coords_at(*numbers)))
            if self.fold is None:
                return coords
            given = [scalar(a, self.spec.sums) for a in numbers[len(numbers) - self.fold.num_given :]]
            return [*coords, scalar(number[1].astype(self.spec.sums)), *given]
        coords, weight = self.spec.read_at(number[1] + 1, *numbers)
        return [*map(scalar, coords), scalar(weight)]

    def place(self, *args: jax.Array) -> list[jax.Array]:
        """The flat index of a thread's sample, and its first channel."""
        *place, part = args
        tiles = self.threads.tiles
        return [offset(tiles.index_of(*place), tiles.shape), scalar(self.threads.first_channel(part, self.channels))]

    def read(self, read_value: ReadValue, *args: jax.Array) -> list[jax.Array]:
        """A thread's channels of a read, and whether its tile is noted.

        Args:
            read_value: `value` or `inside`.
            args: the place of the sample, the thread's part of the channels, and the coordinates.
        """
        # What the thread reads: a texture of the batch, and its channels.
        place, part, coords = args[: len(PLACE_AT)], args[len(PLACE_AT)], args[len(PLACE_AT) + 1 :]
        index, width = self.threads.tiles.index_of(*place)[: self.batch], self.threads.width
        channel, texels = self.threads.first_channel(part, self.channels), self.arrays[ArrayRole.TEXELS]
        # The strides of the axes, in numbers.
        sizes = flat_sizes(self.spec.axes)
        factors = [self.channels * math.prod(sizes[k:]) for k in range(len(sizes) + 1)]
        # Instructions bound the speed of sums, so their loads share most of the address. A halo is three arrays.
        shares = bool(self.threads.summed) and self.threads.aligned and not isinstance(texels, WithHalo)
        load = functools.partial(load_row, count=width, aligned=self.threads.aligned, by_pair=True)

        # An address is a place of each axis. A sum shares what its reads have in common.
        def load_texel(address: TexelAddress) -> jax.Array:
            texture = offset(index, texels.shape[: self.batch])
            first = address._replace(further=0).flat_index
            place = [*zip((texture, *first), factors)]
            place.insert(0 if shares else len(place), (channel, 1))
            if address.further:
                place.append((jnp.ones_like(channel), address.further * factors[-1]))
            inside = None if ArrayRole.COLOR in self.arrays else address.inside
            return load("arrays.texels", place, dtype=texels.dtype, num_kept=2 * shares, inside=inside)

        # The border color has batch axes of its own.
        border = None
        if ArrayRole.COLOR in self.arrays:
            color = self.arrays[ArrayRole.COLOR]
            place = [(offset(index, color.shape[: self.batch]), self.channels), (channel, 1)]
            border = load("arrays.color", place, dtype=color.dtype)
        # The walk, and whether the second of two kernels must read this sample again.
        value = jnp.broadcast_to(read_value(load_texel, coords, border), (1, self.num_sums))
        return [value, scalar(False if self.notes is None else self.notes(coords))]

    # The source

    @property
    def num_blocks(self) -> int:
        total = self.threads.tiles.total
        return min(total, NOTED_BLOCKS) if ArrayRole.NOTED in self.arrays else total

    @property
    def num_threads(self) -> int:
        return math.prod(self.threads.tiles.lanes) * self.threads.parts

    @property
    def bounds(self) -> str:
        axes = sum(axis.role is Role.SPACE and not axis.integer for axis in self.spec.axes)
        blocks = BLOCKS_OF_UNIT.get((axes, self.threads.width)) if self.exact and len(self.spec.axes) == axes else None
        blocks = BLOCKS_OF_SUM if self.threads.summed and not self.is_long and self.fold is None else blocks
        return super().bounds if blocks is None else f"{super().bounds}, {blocks}"

    def includes(self) -> tuple[str, ...]:
        return *super().includes(), "samples/position.cuh"

    def traced(self, functions: DeviceFunctions) -> list[str]:
        axes = ", ".join(names_of_axes(self.spec.axes))
        # First the coordinates of a sample, whose dtypes give `Coords` its fields.
        results = functions.add(
            "Coords coords_of(const Arrays& arrays, Position at, int group, int number)",
            f"The coordinates of a sample along its axes ({axes}); of a sum of reads, those of one read.",
            self.coords,
            *PLACE_AT,
            *(NUMBER if self.num_reads > 0 else ()),
            exact=self.exact,
        )
        # Behind them, a mean has a weight, and a fold the number of its read and what it is given.
        names = [f"c{k}" for k in range(len(self.spec.axes) + self.spec.given)]
        if self.averages:
            names.append("weight")
        if self.fold is not None:
            names += ["number", *(f"given{k}" for k in range(self.fold.num_given))]
        fields = [(name, a.dtype) for name, a in zip(names, results, strict=True)]
        coords = [(f"coords.{name}", dtype) for name, dtype in fields]
        functions.add("Place place_of(Position at, int part)", "Where a result lies.", self.place, *PLACE_AT, PART)
        # Then the read at these coordinates; its dtype is that of the sums.
        of_read = *PLACE_AT, PART, *coords[: len(self.spec.axes) + self.spec.given]
        parameters = "(const Arrays& arrays, Position at, int part, const Coords& coords)"
        value, _ = functions.add(
            f"Read read_at{parameters}",
            f"A read: its taps, weights and texels along the axes ({axes}).",
            functools.partial(self.read, self.value),
            *of_read,
        )
        self.dtype = value.dtype
        # A sum may read more simply where all taps are inside.
        if self.inside is not None:
            signature, inside = f"Read read_inside{parameters}", functools.partial(self.read, self.inside)
            functions.add(signature, "A read all of whose taps are inside.", inside, *of_read)
            self.add_where(functions, of_read[len(PLACE_AT) + 1 :])
        # Last, what reads become together, and where the result goes.
        if self.fold is not None:
            self.add_fold(functions, self.fold, coords)
        else:
            self.add_sums(functions, coords)
        functions.define(
            "Stored* result_of(const Arrays& arrays, int k)",
            "The array of a result.",
            [f"return {self.array_of_result()};"],
        )
        comment = "The coordinates of a sample, and its weight in a mean of several."
        return [struct_of_numbers("Coords", comment, fields), RESULTS]

    def array_of_result(self) -> str:
        """The array of result `k`, in C++."""
        others = range(self.num_results - 1, 0, -1)
        return functools.reduce(lambda rest, k: f"k == {k} ? arrays.derivative_{k} : {rest}", others, "arrays.result")

    def add_where(self, functions: DeviceFunctions, coords: Sequence[Scalar]) -> None:
        """Adds the functions that tell apart where the taps of a read lie."""
        axes = self.spec.axes
        inside = lambda *coords: scalar(taps_are_inside(coords, axes))
        outside = lambda *coords: scalar(taps_are_outside(coords, axes) if self.skips_outside else False)
        functions.add(ALL_INSIDE, "Whether all taps of a read are known to be inside.", inside, *coords)
        functions.add(ALL_OUTSIDE, "Whether all taps of a read are known to be outside.", outside, *coords)

    def add_sums(self, functions: DeviceFunctions, coords: Sequence[Scalar]) -> None:
        """Adds the functions for a read, and for a sum of reads if it is one."""
        width, dtype = self.num_sums, self.dtype
        row = lambda numbers: jnp.stack(numbers, -1)
        # A single read is a value alone.
        functions.add(
            RESULT_OF_VALUE,
            "A value in the dtype of the result.",
            lambda *values: row(values).astype(self.spec.dtype),
            *names_of("value.v", width, dtype),
        )
        if self.num_reads == 0:
            return
        # A sum has a state, which is the sum so far.
        functions.define(RESULT_OF_STATE, "The sum.", ["return result_of_value(state);"])
        functions.define(IS_FINAL, "A sum is never final.", ["return false;"])
        # The neutral element of addition: with +0, the sum of -0 would be +0.
        neutral = -0.0 if jnp.issubdtype(dtype, jnp.floating) else 0
        self.define_start(functions, [neutral] * width)
        functions.add(
            COUNTS,
            "Whether a read has a weight.",
            lambda *coords: scalar(coords[-1] > 0 if self.averages else True),
            *coords,
            exact=self.exact,
        )
        functions.add(
            TERM_OF,
            "A read times its weight.",
            lambda *args: weighted(args[len(coords) - 1] if self.averages else 1.0, row(args[len(coords) :])),
            *coords,
            *names_of("value.v", width, dtype),
            exact=self.exact,
        )
        functions.add(
            FOLDED,
            "The sum of two.",
            lambda *args: row(args[:width]) + row(args[width:]),
            *names_of("state.v", width, dtype),
            *names_of("value.v", width, dtype),
            exact=self.exact,
        )

    def add_fold(self, functions: DeviceFunctions, fold: Fold, coords: Sequence[Scalar]) -> None:
        """Adds the functions for a fold of reads."""
        width, count = self.num_sums, self.num_state
        functions.define(COUNTS, "All reads count.", ["return true;"])
        functions.define(TERM_OF, "A read has no weight.", ["return value;"])
        self.define_start(functions, fold.start(self.threads.width))

        # The step takes the state apart; the result and the end follow from the state.
        def row(numbers: Sequence[jax.Array]) -> jax.Array:
            return jnp.stack(numbers, -1)

        def folded(*args: jax.Array) -> jax.Array:
            return fold.step(row(args[:count]), row(args[count : count + width]), *args[count + width :])

        state = names_of("state.v", count, self.dtype)
        given = coords[len(coords) - 1 - fold.num_given :]
        functions.add(
            FOLDED, "The state after a read.", folded, *state, *names_of("value.v", width, self.dtype), *given
        )
        of_state = lambda *args: fold.result(row(args)).astype(self.spec.dtype)
        functions.add(RESULT_OF_STATE, "The result.", of_state, *state)
        final = lambda *args: scalar(fold.is_final(row(args)))
        functions.add(IS_FINAL, "Whether no further read changes the result.", final, *state)

    def define_start(self, functions: DeviceFunctions, numbers: Sequence[float]) -> None:
        """Adds the state before all reads."""
        start = ", ".join(literal(n, self.dtype) for n in numbers)
        functions.define(START, "Sets the state before all reads.", [f"state = {{{start}}};"])

    @property
    def stores_aligned(self) -> bool:
        """Whether the channels that a thread stores are aligned for a vector store."""
        alike = self.result_width == self.threads.width
        return alike and self.threads.aligned and self.filled.keeps_aligned(self.result_width)

    def constants(self) -> list[Constant]:
        threads, arrays = self.threads, self.arrays
        noted = math.prod(arrays[ArrayRole.NOTED].shape) if ArrayRole.NOTED in arrays else 0
        return [
            Constant("steps", threads.tiles.num_steps, "the samples of a thread"),
            Constant("parts", threads.parts, "the threads of a sample"),
            Constant("width", threads.width, "the channels of a thread"),
            Constant("result_width", self.result_width, "the channels of a result that a thread stores"),
            Constant("num_results", self.num_results, "of a read: more than one for several derivatives"),
            Constant("num_reads", self.num_reads, "of which the result is the sum; 0 for one read"),
            Constant(
                "group_size", self.group, "the reads of a group, which share indices on all summed axes but the last"
            ),
            Constant("reads_at_once", self.reads_at_once, "the reads of a group whose loads overlap"),
            Constant("asks_inside", self.inside is not None, "whether reads whose taps are inside are told apart"),
            Constant("stores_aligned", self.stores_aligned),
            Constant(
                "in_lines", threads.in_lines, "whether warps load coordinates and store results in lines of memory"
            ),
            Constant("num_noted", noted, "the tiles, of which the noted ones are read; 0 reads all"),
            Constant("num_blocks", self.num_blocks, "of the launch"),
        ]

    def structs(self) -> list[str]:
        stored = self.arrays[ArrayRole.RESULT].dtype
        results = self.num_results * self.result_width
        rows = {"Sum": (self.dtype, self.num_sums), "Result": (stored, results), "State": (self.dtype, self.num_state)}
        types = f"typedef {C_TYPES[np.dtype(stored).name]} Stored;\n"
        types += "".join(
            f"typedef Row<{C_TYPES[np.dtype(d).name]}, {count}> {name};\n" for name, (d, count) in rows.items()
        )
        channels = self.channels if self.fold is None else self.fold.width(self.channels)
        return [types, self.threads.tiles.struct(), slice_struct("ResultSlice", self.filled, channels)]
