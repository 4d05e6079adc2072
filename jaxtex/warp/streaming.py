"""Warps, tile by tile, of images too large for a device: each tile reads only the part of the image that it needs."""

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from numpy.typing import NDArray

from .._checks.calls import public
from .._checks.numbers import as_float, as_integer, in_dtype_of_jax, on_device
from .._checks.words import described
from .._engine.api import Axis, Layout
from .._jax.calls import typed_jit
from .._reads import smoothed
from .._tables.storage_formats import sum_dtype
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Arrays, CoordinateFunction, evaluated_at, stored_points
from .images import (
    KINDS,
    Window,
    as_numbers,
    check_has_values,
    check_image,
    check_reads,
    floating_parameters,
    warp_checked,
)
from .options import AddressLike, ReadOptions, ShapeLike, as_shape, read_options, spatial_shape
from .windows import ImageLike, Span, TexelWindow, WindowShapes, position_spans, texel_spans

# Tiles of images and of volumes, unless the caller says otherwise.
TILES = {2: (512, 512), 3: (64, 64, 64)}
# The least sides of windows, by the number of axes.
LEAST_WINDOWS = {2: 64, 3: 16}
# The least side of computed tiles; of smaller ones only a part counts.
LEAST_SIDE = 8
# How many tiles ahead positions are found, so that loading need not wait for them.
PENDING = 2


class Box(NamedTuple):
    """Pixels of the output, or beyond it: the first and the number along each axis, slowest axis first."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    def cut(self, sizes: Sequence[int]) -> tuple[slice, ...]:
        """The pixels that lie in an output of these sizes."""
        return tuple(slice(at, min(at + n, size)) for at, n, size in zip(self.start, self.shape, sizes))

    def parts(self, shape: Sequence[int]) -> Iterator["Box"]:
        """Boxes of at most that shape, row after row."""
        steps = [range(at, at + n, step) for at, n, step in zip(self.start, self.shape, shape)]
        for start in itertools.product(*steps):
            ends = (at + n for at, n in zip(self.start, self.shape))
            yield Box(start, tuple(min(n, end - at) for n, at, end in zip(shape, start, ends)))

    def covered(self, shape: tuple[int, ...]) -> Iterator["Box"]:
        """Boxes of that shape, row after row, which may reach beyond this one."""
        return (Box(part.start, shape) for part in self.parts(shape))


class WindowTooLarge(ValueError):
    """A single pixel reads more texels than a window may have.

    Args:
        counts: of texels that it reads, along each axis.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        super().__init__(f"a pixel reads {' x '.join(map(str, counts))} texels")


class TileReads(NamedTuple):
    """The functions that find, load and compute the tiles of a warp.

    Attributes:
        find: from a box and the shape of a program, the `position_spans` of its pixels, and the operands of `compute`.
        spans: the texels at positions; see `texel_spans`.
        shapes: of windows.
        compute: the pixels of a box, from the texels that they read, which the device may still be computing.
    """

    find: Callable[[Box, tuple[int, ...]], tuple[jax.Array, Any]]
    spans: Callable[[NDArray[Any]], tuple[Span, ...] | None]
    shapes: WindowShapes
    compute: Callable[[Box, TexelWindow, Any], jax.Array]

    def computed(
        self, box: Box, shape: tuple[int, ...], found: tuple[jax.Array, Any]
    ) -> Iterator[tuple[Box, jax.Array]]:
        """The pixels of a box, in one tile, or in smaller ones if its window would be too large.

        Raises:
            WindowTooLarge: if the window of a single pixel is.
        """
        positions, operands = found
        spans = self.spans(np.asarray(positions))
        counts = [1] * len(shape) if spans is None else [span.count for span in spans]
        window = self.shapes.holding(counts)
        if window is not None:
            yield box, self.compute(Box(box.start, shape), TexelWindow(spans, window), operands)
            return
        if max(box.shape) == 1:
            raise WindowTooLarge(counts)
        shape = tuple(max(-(-n // 2), min(n, LEAST_SIDE)) for n in shape)
        for part in box.parts([-(-n // 2) for n in box.shape]):
            yield from self.computed(part, shape, self.find(part, shape))

    def streamed(self, boxes: Iterable[Box], shape: tuple[int, ...]) -> Iterator[tuple[Box, jax.Array]]:
        """The pixels of boxes of at most a shape, in their order.

        While the device computes one tile, the window of the next one is loaded.
        """
        asked = ((box, self.find(box, shape)) for box in boxes)
        yield from ahead((part for box, found in ahead(asked, PENDING) for part in self.computed(box, shape, found)), 1)


def ahead(items: Iterable[Any], count: int) -> Iterator[Any]:
    """Items, taken from an iterator some steps ahead."""
    taken: deque[Any] = deque()
    for item in items:
        taken.append(item)
        if len(taken) > count:
            yield taken.popleft()
    yield from taken


@public
def resample_tiles(
    image: ImageLike,
    function: CoordinateFunction,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    tile_shape: ShapeLike | None = None,
    window_bytes: int = 2**28,
) -> Iterator[tuple[tuple[slice, ...], NDArray[Any]]]:
    """Warps an image or a volume that does not fit the device, tile by tile; the pixels are those of `resample`.

    Each tile loads only its window, the part of the image that it reads, and sends it to the device. At most three
    windows, three tiles and the points of four tiles are in memory at once. A tile whose window is larger than
    `window_bytes` is divided.

    Args:
        image: ``(H, W, C)``, or with an `output_shape` of three sizes ``(D, H, W, C)``: an array-like object with
            `shape` and `dtype` that returns arrays for slices, such as a `numpy.memmap`, or an array of zarr or h5py.
        function: as in `resample`. It is called for each tile, with the centers of the pixels of the tile.
        output_shape: the sizes of the output, ``(H, W)`` or ``(D, H, W)``; by default those of the image, ``(H, W)``.
        sampler, filter_mode, address_mode, border_color, dtype: as in `resample`. There is no antialiasing.
        tile_shape: the sizes of a tile; by default ``(512, 512)`` or ``(64, 64, 64)``.
        window_bytes: the maximum size in bytes of the window of one tile.

    Returns:
        An iterator over tiles, row by row. Each item is a pair ``(slices, pixels)``: the slices of the output that the
        tile fills, one for each spatial axis, and a NumPy array with the sizes of the slices and an axis of channels.

    Gradients: none; tiles are NumPy arrays. For gradients, call `resample` with a part of the image.

    Raises:
        ValueError: if shapes do not fit, or one pixel reads more than `window_bytes`.
        TypeError: if the image holds no numbers, or is traced.

    Example:
        >>> import numpy as np, jaxtex as jt
        >>> image, out = np.arange(12.0, dtype=np.float32).reshape(3, 4, 1), np.empty((3, 4, 1), np.float32)
        >>> for where, pixels in jt.warp.resample_tiles(image, lambda x, y: (4 - x, y), tile_shape=(2, 2)):
        ...     out[where] = pixels
        >>> out[0, :, 0]
        array([3., 2., 1., 0.], dtype=float32)
    """
    name = "resample_tiles"
    check_has_values(name, image)
    try:
        stored = np.dtype(image.dtype).newbyteorder("=")
    except (AttributeError, TypeError):
        stored = None
    if stored is None or not (hasattr(image, "shape") and hasattr(image, "__getitem__")):
        raise TypeError(
            f"{name}: image is {described(image)}, expected an array with a shape, a dtype and slices; pass "
            "numpy.asarray(image)."
        )
    window_bytes = as_integer(name, "window_bytes", window_bytes, 1)
    # Each window of 64-bit numbers is converted when it is loaded.
    like = jax.ShapeDtypeStruct(tuple(image.shape), jax.dtypes.canonicalize_dtype(stored))
    shape = spatial_shape(name, like, output_shape)  # pyright: ignore[reportArgumentType]
    check_image(name, like, len(shape))
    if len(like.shape) != len(shape) + 1:
        raise ValueError(f"{name}: image has shape {like.shape}, expected no batch axes; call it for each image.")
    if 0 in like.shape:
        raise ValueError(f"{name}: image has shape {like.shape}, expected sizes of at least 1.")
    tile = TILES[len(shape)] if tile_shape is None else as_shape(name, "tile_shape", tile_shape, (len(shape),))
    options = read_options(name, sampler, filter_mode, address_mode, border_color, False, dtype)
    check_reads(name, options, len(shape), like.dtype, image.shape)
    texel_bytes = stored.itemsize * like.shape[-1]
    numbers, options = as_numbers(np.zeros((1, 1), like.dtype), options)
    read_as = np.dtype(numbers.dtype)
    loaded_as = read_as if stored == like.dtype else stored
    warp = StreamedWarp(image, function, shape, read_as, options, window_bytes, loaded_as)
    shapes = WindowShapes(LEAST_WINDOWS[len(shape)], max(window_bytes // texel_bytes, 1))
    return warp.tiles(shapes, tuple(map(min, tile, shape)))


class StreamedWarp(NamedTuple):
    """A warp by a coordinate function, tile by tile.

    Attributes:
        image: with an axis of channels.
        function: of coordinates.
        shape: of the output.
        dtype: in which windows are read.
        options: how they are read.
        window_bytes: the most bytes of a window.
        loaded_as: the dtype in which windows are loaded, which JAX may not have.
    """

    image: ImageLike
    function: CoordinateFunction
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    options: ReadOptions
    window_bytes: int
    loaded_as: np.dtype[Any]

    @property
    def axes(self) -> tuple[Axis, ...]:
        layout = Layout(KINDS[len(self.shape)], (*self.image.shape[:-1], 1))
        return layout.axes(smoothed.in_texels(self.options.sampler))

    def tiles(self, shapes: WindowShapes, shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], NDArray[Any]]]:
        """The tiles of the output, of at most a shape."""
        reads = TileReads(self.find, self.spans, shapes, self.compute)
        try:
            for box, pixels in reads.streamed(Box((0,) * len(shape), self.shape).parts(shape), shape):
                yield box.cut(self.shape), np.asarray(pixels)[tuple(slice(0, n) for n in box.shape)]
        except WindowTooLarge as error:
            raise ValueError(
                f"resample_tiles: {error}, in a window of at least {shapes.least} along each axis, but "
                f"window_bytes={self.window_bytes} has room for {shapes.most} texels only; pass larger window_bytes."
            ) from None

    def find(self, box: Box, shape: tuple[int, ...]) -> tuple[jax.Array, Arrays]:
        coords = self.points(box, shape)
        return spans_of(coords, np.array(box.shape, np.int32), axes=self.axes), coords

    def points(self, box: Box, shape: tuple[int, ...]) -> Arrays:
        """The points that pixels read, x first; beyond the output, those of its last pixel."""
        ndim, centers = len(shape), list[jax.Array]()
        for axis, (first, n, size) in enumerate(zip(box.start, shape, self.shape)):
            line = np.minimum(np.arange(first, first + n), size - 1).astype(sum_dtype(self.dtype)) + 0.5
            centers.append(on_device(line.reshape([n if k == axis else 1 for k in range(ndim)])))
        return evaluated_at("resample_tiles", self.function, centers[::-1])

    def spans(self, positions: NDArray[Any]) -> tuple[Span, ...] | None:
        return texel_spans(positions, self.axes, self.image.shape[:-1], [axis.kernel for axis in self.axes[:1]])

    def compute(self, box: Box, window: TexelWindow, coords: Arrays) -> jax.Array:
        texels = np.zeros((*window.shape, self.image.shape[-1]), self.loaded_as)
        window.load(self.image, texels)
        texels = in_dtype_of_jax("resample_tiles", "image", texels)
        sizes, starts = (
            tuple(jnp.asarray(n, jnp.int32) for n in some) for some in (self.image.shape[:-1], window.starts)
        )
        return warp_checked(
            texels,
            floating_parameters(coords, len(box.shape), texels),
            None,
            self.options,
            Window(sizes, starts),
            function=stored_points,
            output_shape=box.shape,
            batch=0,
        )


@typed_jit("axes")
def spans_of(coords: Arrays, counts: Any, *, axes: tuple[Axis, ...]) -> jax.Array:
    """`position_spans` of the first pixels of a tile, `counts` along each axis, at coordinates, x first."""
    coords = tuple(as_float(c) for c in coords)
    shape = np.broadcast_shapes(*(c.shape for c in coords))
    numbers = (jax.lax.broadcasted_iota(jnp.int32, shape, k) for k in range(len(shape)))
    needed = functools.reduce(jnp.logical_and, (number < n for number, n in zip(numbers, counts)))
    return position_spans(coords[::-1], axes, needed)
