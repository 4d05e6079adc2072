"""An image as tiles of few shapes, so that programs for tiles serve images of every size."""

from ..streaming import Box
from .mappings import Size

# Height and width: enough pixels to hide the cost of a call, and few enough that the texels read stay in a cache.
LARGE, SMALL = (256, 512), (64, 128)
# The large tiles of wide images.
WIDE, FROM_WIDTH = (128, 1024), 1536
# So many small tiles, with half the pixels, take as long as a large one.
MOST_SMALL = 8


def large_shape(width: int) -> tuple[int, int]:
    """The shape of the large tiles of an image of that width."""
    return LARGE if width < FROM_WIDTH else WIDE


def tiles_of(size: Size, shape: tuple[int, int] | None = None) -> list[Box]:
    """The tiles that cover an image of this width and height, the large ones of a shape.

    Large ones, and small ones at the right and at the bottom where few suffice.
    """
    shapes = shape or large_shape(size[0]), SMALL
    large, small = (shape_in(size, shape) for shape in shapes)
    found: list[Box] = []
    for part in Box((0, 0), size[::-1]).parts(large):
        few = list(part.covered(small))
        found += few if len(few) <= MOST_SMALL else [Box(part.start, large)]
    return found


def shape_in(size: Size, shape: tuple[int, int]) -> tuple[int, int]:
    """The height and width of tiles of a shape in an image of this width and height.

    Along an axis of one pixel they have one: XLA compiles other arithmetic there, which may differ in the last bit.
    """
    width, height = size
    return 1 if height == 1 else shape[0], 1 if width == 1 else shape[1]
