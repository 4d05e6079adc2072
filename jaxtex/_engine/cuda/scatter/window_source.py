"""The source of the scatter kernel, the adjoint for all grids: its windows, and the sizes of its work."""

import math

from ...describe.axis import Role
from ..build.arrays import ArrayRole, KernelArrays
from ..build.launch import LANES
from ..build.source import Constant
from ..samples.operands import OperandResults
from ..samples.sample_tiles import STEPS
from .crowds import MOST_TEXELS, adds_runs, crowd_of, exceeds_registers, taps_in_space
from .stored import OnSquares, crowd_cells
from .window_functions import Offsets, WalkTaps, WindowFunctions

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


class WindowSource(OnSquares, WindowFunctions):
    """The source of the scatter kernel: its windows, and the sizes of its work."""

    file, room, made_by = "scatter/adjoint.cu", "scatter", "window_source.py"

    def __init__(self, cotangents: OperandResults, arrays: KernelArrays):
        super().__init__(cotangents, arrays)
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
        texture, steps = int(self.several_textures), self.samples.num_steps
        keeps, batch = steps <= MOST_KEPT, next(n for n in range(BATCH, 0, -1) if steps % n == 0)
        texture_size = self.plan.texels_per_texture * self.lanes.channels * self.words
        size = self.plan.num_texels * self.lanes.channels * self.words
        totals = math.prod(self.arrays[ArrayRole.TOTALS].shape) if ArrayRole.TOTALS in self.arrays else size
        images = math.prod(self.views[:-1]) if self.views else 0
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
