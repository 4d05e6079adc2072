"""An image as tiles of few shapes, so that programs for tiles serve images of every size."""

from collections.abc import Iterator
from typing import NamedTuple

from .mappings import Size

# Height and width: enough pixels to hide the cost of a call, and few enough that the texels read stay in a cache.
LARGE, SMALL = (256, 512), (64, 128)
# The large tiles of wide images.
WIDE, FROM_WIDTH = (128, 1024), 1536
# So many small tiles, with half the pixels, take as long as a large one.
MOST_SMALL = 8


class Place(NamedTuple):
    """The place of a tile in an image. It may reach beyond the image."""

    row: int
    column: int
    height: int
    width: int

    def cut(self, size: Size) -> tuple[slice, slice]:
        """The rows and columns that lie in an image of this width and height."""
        width, height = size
        rows = slice(self.row, min(self.row + self.height, height))
        return rows, slice(self.column, min(self.column + self.width, width))


def large_shape(width: int) -> tuple[int, int]:
    """The shape of the large tiles of an image of that width."""
    return LARGE if width < FROM_WIDTH else WIDE


def tiles_of(size: Size, shape: tuple[int, int] | None = None) -> list[Place]:
    """The tiles that cover an image of this width and height, the large ones of a shape.

    Large ones, and small ones at the right and at the bottom where few suffice.
    """
    height, width = size[::-1]
    shapes = shape or large_shape(width), SMALL
    large, small = (shape_in(size, shape) for shape in shapes)
    found: list[Place] = []
    for part in grid_of(Place(0, 0, height, width), large):
        within = Place(part.row, part.column, min(height - part.row, large[0]), min(width - part.column, large[1]))
        few = list(grid_of(within, small))
        found += few if len(few) <= MOST_SMALL else [part]
    return found


def shape_in(size: Size, shape: tuple[int, int]) -> tuple[int, int]:
    """The height and width of tiles of a shape in an image of this width and height.

    Along an axis of one pixel they have one: XLA compiles other arithmetic there, which may differ in the last bit.
    """
    width, height = size
    return 1 if height == 1 else shape[0], 1 if width == 1 else shape[1]


def grid_of(part: Place, shape: tuple[int, int]) -> Iterator[Place]:
    """The tiles of a shape that cover a part of an image."""
    for row in range(part.row, part.row + part.height, shape[0]):
        for column in range(part.column, part.column + part.width, shape[1]):
            yield Place(row, column, *shape)
