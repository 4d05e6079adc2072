"""Warps of images larger than memory, as a stream of tiles. Each tile reads a part of the image."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from ..._reads import smoothed
from ..._tables.filter_kernels import POINT, SPAN
from ..streaming import Box, TileReads
from ..windows import ImageLike, Span, TexelWindow, WindowShapes, texel_spans
from .image import ImageWarp
from .mappings import Array
from .programs import read_axes
from .texels import aligned

# Height and width of tiles. In a rotated picture, a square reads the smallest window.
TILE = (512, 1024)
# Tiles are computed in bands of so many rows of tiles, left to right, so that neighbors reuse decoded texels.
BAND = 4
# The shortest side of a window: texels are decoded 4,096 at a time.
LEAST_WINDOW = 128
# Windows in memory: two that are read, and one that is loaded.
WINDOWS = 3


class NeedsWholeImage(ValueError):
    """A tile of an antialiased warp depends on the whole image."""


class StreamedImage:
    """The warp of an image that loads windows as tiles need them, with the pixels of `ImageWarp`.

    Args:
        image: (H, W, C), uint8 or uint16.
        whole: its warp, without texels.
        window_bytes: the most bytes that windows take together.

    Raises:
        NeedsWholeImage: if the whole image is needed to compute a tile.
    """

    def __init__(self, image: ImageLike, whole: ImageWarp, window_bytes: int) -> None:
        dtype, channels, read = np.dtype(image.dtype), image.shape[-1], whole.read
        if whole.reads >= smoothed.TWO_LEVELS:
            raise NeedsWholeImage(
                "the image becomes much smaller in places, which needs a mip chain of the whole image"
            )
        self.image, self.whole, self.device = image, whole, whole.programs.device
        self.axes = read_axes(read.sampler)
        self.kernels = (read.sampler.kernel, *((SPAN, POINT) if read.antialias else (POINT,)))
        number_bytes = 4 * channels if read.has_numbers(channels) or whole.filters is not None else 0
        # A window is copied to the device, and decoded there.
        texel_bytes = 2 * channels * dtype.itemsize + number_bytes
        self.shapes = WindowShapes(LEAST_WINDOW, window_bytes // (WINDOWS * texel_bytes))
        self.tile = min(TILE[0], whole.size[1]), min(TILE[1], whole.size[0])

    def boxes(self) -> list[Box]:
        """The parts of the output, in order of computation."""
        width, height = self.whole.size
        bands = Box((0, 0), (height, width)).parts((BAND * self.tile[0], width))
        columns = (part for band in bands for part in band.parts((band.shape[0], self.tile[1])))
        return [box for column in columns for box in column.parts(self.tile)]

    def pixels(self, boxes: list[Box]) -> Iterator[tuple[Box, Array]]:
        """The pixels of parts of the output, (height, width, C), in their order."""
        reads = TileReads(self.find, self.spans, self.shapes, self.compute)
        stream = reads.streamed(boxes, self.tile)
        for box in boxes:
            whole = np.empty((*box.shape, self.image.shape[-1]), self.image.dtype)
            left = box.shape[0] * box.shape[1]
            while left:
                part, found = next(stream)
                row, column = (at - first for at, first in zip(part.start, box.start))
                height, width = part.shape
                whole[row : row + height, column : column + width] = np.asarray(found)[:height, :width]
                left -= height * width
            yield box, whole

    def find(self, box: Box, shape: tuple[int, ...]) -> tuple[Any, None]:
        place = Box(box.start, shape)
        if self.whole.filters is not None:
            return self.whole.filters.spans(place), None
        counts = jax.device_put(np.array(box.shape, np.int32), self.device)
        return self.whole.run(self.whole.program(place), "reached", place, counts), None

    def spans(self, positions: Array) -> tuple[Span, ...] | None:
        if self.whole.filters is not None:
            return tuple(Span(int(first), int(last - first) + 1) for first, last in positions)
        return texel_spans(positions, self.axes, self.image.shape[:2], self.kernels)

    def compute(self, box: Box, window: TexelWindow, _: None) -> jax.Array:
        height, width = window.shape
        texels = aligned((height * width, self.image.shape[-1]), self.image.dtype)
        window.load(self.image, texels.reshape(height, width, -1))
        texels, starts = jax.device_put((texels, window.starts), self.device)
        image = self.whole._replace(
            source=self.whole.source._replace(texels=texels, starts=starts), stored=(height, width)
        )
        channels = self.image.shape[-1]
        return image.with_numbers(height * width, height, width, channels).tile(box)
