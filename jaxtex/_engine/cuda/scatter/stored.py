"""Windows that are stored, and added to texels in a fixed order: sums with the same bits in every run.

A texture is divided into squares. `adjoint.cu` stores the window of each tile, and adds its number to the lists of the
squares that the window lies on. Then a second kernel, `stored.cu`, adds the windows of each texel in the order of their
numbers. At the border of a texture, a window covers texels, elsewhere indices.

Three kinds of samples are added as integers, to squares that the first kernel marks: those of tiles whose samples lie
too far apart for a window, of crowded windows, and of squares with more windows than a list has room for. If many tiles
have samples that lie too far apart, no window counts, and all samples are added so.
"""

import jax
import jax.numpy as jnp

from ...describe.axis import Role
from ..build.arrays import ArrayRole, KernelArray, KernelArrays
from ..build.launch import LANES
from ..build.source import Constant, KernelSource, header, struct_of
from ..samples.sample_source import AdjointPlan
from ..samples.sample_tiles import Lanes, SampleTiles
from .crowds import crowd_of

# The side of a square of texels, and the room of its list.
SIDE, MOST_WINDOWS = 32, 128
# Up to so many samples per texel, windows are stored.
MOST_CROWD = 4
# In the second kernel: the warps of a block; by whether windows are packed, the texels of a lane, and the windows that
# it loads together.
WARPS, ROWS, TOGETHER = 4, {False: 8, True: 4}, {False: 2, True: 1}


def stores_windows(plan: AdjointPlan, samples: SampleTiles) -> bool:
    """Whether windows of `samples` are stored: of images that are warped to images of about that size."""
    axes, image = plan.spec.axes, samples.rank == 2
    flat = len(axes) == 2 and all(axis.role is Role.SPACE for axis in axes) and not plan.spec.given
    return plan.spec.deterministic and flat and image and crowd_of(plan) <= MOST_CROWD


def num_squares(plan: AdjointPlan) -> int:
    """The squares of all textures."""
    down, across = (-(-axis.known_size // SIDE) for axis in plan.spec.axes)
    return plan.num_texels // plan.texels_per_texture * down * across


def crowd_cells(cells: int) -> int:
    """The most cells of a crowded window, where others have so many."""
    return cells // 20 * 4


def stored_arrays(plan: AdjointPlan, samples: SampleTiles, cells: int, row: int) -> list[KernelArray]:
    """The arrays of stored windows.

    Args:
        cells: of a window.
        row: the numbers of a cell.
    """
    numbers = -(-cells // (2 * LANES)) * 4 * (row % 4 == 0) + cells * row
    count, zeros = num_squares(plan), jnp.zeros((num_squares(plan) + 3, 2), jnp.int32)
    return [
        KernelArray(ArrayRole.WINDOWS, jax.ShapeDtypeStruct((samples.total, numbers), jnp.float32)),
        KernelArray(ArrayRole.CROWDS, jax.ShapeDtypeStruct((samples.total, crowd_cells(cells) * row), jnp.float32)),
        KernelArray(ArrayRole.BOXES, jax.ShapeDtypeStruct((samples.total, 4), jnp.int32)),
        KernelArray(ArrayRole.LISTS, jax.ShapeDtypeStruct((count, MOST_WINDOWS), jnp.int32)),
        KernelArray(ArrayRole.MARKS, zeros, start=zeros),
    ]


def collected(plan: AdjointPlan, channels: int, cells: int, given: list[KernelArray]) -> jax.Array:
    """The sums of stored windows at each texel.

    Args:
        cells: of a window.
        given: the arrays of `stored_arrays`, the sums of integers, and their unit.
    """
    result = jax.ShapeDtypeStruct((plan.num_texels, channels), jnp.float32)
    arrays = KernelArrays(given, [KernelArray(ArrayRole.RESULT, result)])
    return StoredSource(plan, arrays, cells).run("texture_windows")[ArrayRole.RESULT, 0]


class OnSquares(KernelSource):
    """A source whose kernel knows the squares of a plan: with the header that `squares.cuh` includes."""

    plan: AdjointPlan

    def headers(self, name: str) -> dict[str, str]:
        flat = len(self.plan.spec.axes) == 2 and not self.plan.spec.given
        down, across = (axis.known_size for axis in self.plan.spec.axes) if flat else (1, 1)
        squares = num_squares(self.plan) if flat else 0
        constants = [
            Constant("side", SIDE, "of a square of texels"),
            Constant("down", down, "the texels of a texture"),
            Constant("across", across),
            Constant("squares_down", -(-down // SIDE), "of a texture"),
            Constant("squares_across", -(-across // SIDE)),
            Constant("squares", squares, "of all textures"),
            Constant("most_windows", MOST_WINDOWS, "of a square, so that they are added in order"),
        ]
        struct = struct_of("Stored", "Squares of texels, and the windows on them.", constants)
        text = header("The squares of texels of one kernel, by stored.py.", (), struct)
        return super().headers(name) | {"scatter/squares_config.cuh": text}


class StoredSource(OnSquares):
    """The source of the kernel that adds stored windows to texels."""

    file, room, made_by = "scatter/stored.cu", "stored", "stored.py"

    def __init__(self, plan: AdjointPlan, arrays: KernelArrays, cells: int):
        super().__init__()
        self.plan, self.arrays, self.cells = plan, arrays, cells

    @property
    def packs(self) -> bool:
        """Whether windows are packed."""
        lanes = Lanes.of(self.arrays[ArrayRole.RESULT].shape[-1])
        return lanes.parts * lanes.width % 4 == 0

    @property
    def rows(self) -> int:
        return ROWS[self.packs]

    @property
    def num_blocks(self) -> int:
        return -(-num_squares(self.plan) * SIDE // self.rows // WARPS)

    @property
    def num_threads(self) -> int:
        return WARPS * LANES

    def constants(self) -> list[Constant]:
        return [
            Constant("lanes", LANES, "of a warp"),
            Constant("warps", WARPS, "of a block"),
            Constant("rows", self.rows, "of a warp"),
            Constant("together", TOGETHER[self.packs], "windows that a warp loads"),
            Constant("tiles", self.arrays[ArrayRole.WINDOWS].shape[0], "of samples"),
            Constant("window_cells", self.cells, "the most cells of a window"),
        ]

    def structs(self) -> list[str]:
        return [Lanes.of(self.arrays[ArrayRole.RESULT].shape[-1]).struct()]
