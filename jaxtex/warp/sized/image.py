"""The warp of one image, tile by tile, by programs that serve images of many sizes."""

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..._reads import smoothed
from ..coordinate_functions import scaled
from ..options import ReadOptions
from ..streaming import Box
from .filters import ResizeFilters
from .kept import kept
from .mappings import Array, Device, Mapping, PerPixelParameters, Size
from .programs import DeviceTexels, TileOperands, TileProgram
from .texels import (
    LEAST_COPIED,
    LEAST_SHARED,
    Decode,
    Reused,
    chain_capacity,
    chain_weights,
    decoded,
    flat_texels,
    flat_words,
    longest_side,
    memory_for,
    with_levels,
)
from .tiling import LARGE, shape_in, tiles_of

# Vectors of 512 bits, where the processor has them. XLA's default is 256 bits.
CPU_OPTIONS: dict[str, str | bool] = {"xla_cpu_prefer_vector_width": "512"}
RGB = 3


class WarpResult(NamedTuple):
    """A warped image in tiles. The device may still be computing them.

    Attributes:
        size: width and height.
        tiles: the pixels of each tile, some of which may lie beyond the image.
        compile_seconds: the compile time of programs that this image was the first to need.
    """

    size: Size
    tiles: list[tuple[Box, jax.Array]]
    compile_seconds: float

    def pixels(self) -> Array:
        """The whole image, (H, W, C)."""
        first = self.tiles[0][1]
        sizes = self.size[::-1]
        tiles = (inner(place.cut(sizes), pixels) for place, pixels in self.tiles)
        return whole(tiles, (*sizes, first.shape[-1]), first.dtype)


def inner(where: tuple[slice, ...], pixels: jax.Array) -> tuple[tuple[slice, slice], Array]:
    """The pixels of a tile that lie in the output."""
    rows, columns = where
    return (rows, columns), np.asarray(pixels)[: rows.stop - rows.start, : columns.stop - columns.start]


def whole(tiles: Iterable[tuple[tuple[slice, slice], Array]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The output, joined from tiles."""
    out = np.empty(shape, dtype)
    for where, pixels in tiles:
        out[where] = pixels
    return out


def warp(
    pixels: Array, mapping: Mapping, border: Array, *, size: Size, read: ReadOptions, device: Device
) -> WarpResult:
    """Warps an image, and does not wait for the result.

    Args:
        pixels: (H, W, C). An alpha is not premultiplied.
        mapping: from output to input points, in pixels.
        border: (C,), in units of `pixels`: the values outside under ``address_mode="border"``.
        size: width and height of the output.
    """
    image = ImageWarp.of(pixels.shape, pixels.dtype, mapping, border, size, read, device).with_texels(pixels)
    return WarpResult(size, [(place, image.tile(place)) for place in image.places()], image.programs.compile_seconds)


class ImageWarp(NamedTuple):
    """The warp of an image whose texels are on a device; it computes any tile of the output.

    Attributes:
        source: the texels that tiles read.
        mapping: from output to input points, with parameters on the device.
        target: height and width of the output, on the device.
        size: of the output, width and height.
        reads: those of `smoothed` that the output needs.
        filters: of a resize with widened filters.
        num_levels, stored, words: as in `TileProgram`.
        reused: the owner of the numbers' memory.
    """

    source: DeviceTexels
    mapping: Mapping
    target: jax.Array
    size: Size
    read: ReadOptions
    reads: int
    num_levels: int
    programs: "Programs"
    filters: ResizeFilters | None = None
    stored: tuple[int, int] | None = None
    dtype: np.dtype[Any] = np.dtype(np.uint8)
    words: bool = False
    reused: Reused | None = None

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        mapping: Mapping,
        border: Array,
        size: Size,
        read: ReadOptions,
        device: Device,
    ) -> "ImageWarp":
        """The warp of an image of this shape and dtype, whose texels, or a window of them, are still to be sent."""
        (height, width, channels), filters = shape, None
        if mapping.function is scaled:
            filters = ResizeFilters.of((width, height), size, read, dtype)
            read = read.replace(antialias=False)
        if read.antialias:
            read = read.with_sampler(max_anisotropy=mapping.max_anisotropy)
        sizes, target = (np.array(some, np.int32) for some in ((height, width), size[::-1]))
        sizes, color, target = sent((sizes, border, target), device)
        if not isinstance(mapping.parameters, PerPixelParameters):
            mapping = mapping._replace(parameters=sent(mapping.parameters, device))
        source = DeviceTexels(jax.device_put(np.zeros((1, channels), dtype), device), None, sizes, color)
        image = cls(source, mapping, target, size, read, smoothed.SHARP, 1, Programs(device), filters)
        return image._replace(dtype=np.dtype(read.dtype or dtype)).with_reads(height, width)

    def with_texels(self, pixels: Array) -> "ImageWarp":
        """This warp with the texels of an image on the device."""
        (height, width, channels), device = pixels.shape, self.programs.device
        margin = 0 if self.filters is None else self.filters.shape.window[1]
        words = takes_words(pixels, self.mapping, self.read, device) and self.filters is None
        least = LEAST_SHARED if device.platform == "cpu" else LEAST_COPIED
        texels = jax.device_put(flat_words(pixels, least) if words else flat_texels(pixels, least, margin), device)
        image = self._replace(source=self.source._replace(texels=texels), words=words)
        return image.with_numbers(height * width + margin, height, width, channels)

    def reads_needed(self) -> int:
        """The reads of `smoothed` that the output needs, whatever its texels are."""
        places, found = self.places(), smoothed.SHARP
        if not self.mapping.differs:  # one tile suffices, of a shape that has a program in any case
            places = [Box((0, 0), shape_in(self.size, LARGE))]
        first, rest = places[:1], places[1:]
        for some in (first, rest):
            of_tiles = [self.run(self.program(place), "needed", place) for place in some]
            found = max([found, *map(int, of_tiles)])
            if found == smoothed.CHAIN:
                break
        return found

    def with_reads(self, height: int, width: int) -> "ImageWarp":
        """This warp with the reads that it needs as an operand, if it is antialiased."""
        if not self.read.antialias:
            return self
        reads = self.reads_needed() if max(height, width) > 1 else smoothed.SHARP
        operand = sent(np.array(reads, np.int32), self.programs.device)
        return self._replace(reads=reads, source=self.source._replace(reads=operand))

    def with_numbers(self, count: int, height: int, width: int, channels: int) -> "ImageWarp":
        """This warp with decoded texels, if tiles cannot decode the texels that they read.

        Args:
            count: the number of texels without a chain.
        """
        alpha, light = self.read.has_alpha(channels), self.read.linear_light and not self.read.is_point
        texels, sizes = self.source.texels, self.source.sizes
        if self.stored is not None:
            sizes = sent(np.array(self.stored, np.int32), self.programs.device)
        convert = Decode(alpha, light, channels if self.words else None)
        device = self.programs.device
        if self.stored is not None:
            if not self.read.has_numbers(channels):
                return self
            numbers = self.programs.run(decoded, (convert, len(texels)), texels, sizes)
            return self._replace(source=self.source._replace(numbers=numbers), num_levels=1)
        if not (self.read.antialias or self.read.has_numbers(channels)):
            return self
        into = memory_for((chain_capacity(height, width), channels), device)
        wanted = self.reads >= smoothed.TWO_LEVELS
        if wanted or self.read.has_numbers(channels):
            weights, flag = sent((chain_weights(height, width), np.array(wanted)), device)
            given = texels, sizes, weights, flag, into
            into = self.programs.run(with_levels, (convert,), *given, donated=4)
        num_levels = longest_side(height, width).bit_length() - 1
        return self._replace(source=self.source._replace(numbers=into), num_levels=num_levels, reused=Reused(into))

    def places(self) -> list[Box]:
        """The tiles that cover the output."""
        if self.filters is not None:
            return self.filters.places()
        # Where footprints differ, each shape needs a second program, for the reads needed; so only large tiles are
        # used.
        alike = self.read.antialias and self.mapping.differs
        return tiles_of(self.size, LARGE if alike else None)

    def tile(self, place: Box) -> jax.Array:
        """The pixels of a tile, (height, width, C), of the dtype of the image."""
        program = self.program(place)
        return self.run(program, "with_alpha" if self.read.has_alpha(self.source.channels) else "opaque", place)

    def program(self, place: Box) -> TileProgram:
        height, width = place.shape
        on_cpu = self.programs.device.platform == "cpu"
        program = TileProgram(self.mapping.function, (height, width), self.read, self.num_levels, touches=on_cpu)
        program = program._replace(stored=self.stored, dtype=self.dtype, words=self.words)
        if self.filters is None:
            return program
        resize = self.filters.shape_within(place, self.stored)
        if not on_cpu:  # a loop would take longer there
            resize = resize._replace(turn=resize.tile[0])
        return program._replace(shape=resize.tile, resize=resize)

    def run(self, program: TileProgram, name: str, place: Box, *more: jax.Array) -> Any:
        """Runs one of the programs for tiles.

        Args:
            more: its arguments beside the source, parameters, the origin of the tile and the size of the output.
        """
        parameters = parameters_of(self.mapping, place, self.size)
        if isinstance(self.mapping.parameters, PerPixelParameters):
            parameters = sent(parameters, self.programs.device)
        origin = origin_on(place.start, self.programs.device)
        source = self.source
        if self.filters is not None and program.resize is not None:
            filters = sent(self.filters.at(place, program.resize), self.programs.device)
            source = source._replace(filters=filters)
        at = TileOperands(tuple(parameters), origin, self.target)
        return self.programs.run(getattr(TileProgram, name), (program,), source, at, *more)


def takes_words(pixels: Array, mapping: Mapping, read: ReadOptions, device: Device) -> bool:
    """Whether the texels of an image are read as words: on a CPU, if they are not decoded first.

    Several reads along footprints that differ are a loop, and each turn would unpack all words.
    """
    channels = pixels.shape[-1]
    if read.antialias and mapping.differs:
        return False
    packs = pixels.dtype == np.uint8 and channels == RGB
    return packs and device.platform == "cpu" and not read.is_point and not read.has_numbers(channels)


def parameters_of(mapping: Mapping, place: Box, size: Size) -> Sequence[Array | jax.Array]:
    """The parameters of the coordinate function for a tile; fields have one more pixel on each side."""
    if not isinstance(mapping.parameters, PerPixelParameters):
        return mapping.parameters
    if size == (1, 1):
        return mapping.parameters.at(Box((0, 0), (1, 1)), size, 0)
    return mapping.parameters.at(place, size, 1)


def sent(arrays: Any, device: Device) -> Any:
    """Small arrays of NumPy on a device. For a CPU they stay NumPy arrays, which calls take faster."""
    return arrays if device.platform == "cpu" else jax.device_put(arrays, device)


@functools.lru_cache(maxsize=2**12)
def origin_on(start: tuple[int, ...], device: Device) -> jax.Array:
    """The origin of a tile, on a device."""
    return jax.device_put(np.array(start, np.int32), device)


class Programs:
    """The compiled programs of a device, and how long they took to compile for the image at hand."""

    def __init__(self, device: Device):
        self.device = device
        self.compile_seconds = 0.0

    def run(
        self, function: Callable[..., Any], static: tuple[Any, ...], *arguments: Any, donated: int | None = None
    ) -> Any:
        """Runs a program, which is compiled once for each function and each shape of arguments.

        Args:
            function: of a module or a class.
            static: its first arguments.
            arguments: the others.
            donated: the number of the one whose memory the result reuses.
        """
        leaves, structure = jax.tree.flatten(arguments)
        avals = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        start, before = time.perf_counter(), compiled.cache_info().misses
        program = compiled(function, static, structure, avals, self.device, donated)
        if compiled.cache_info().misses > before:
            self.compile_seconds += time.perf_counter() - start
        return program(*arguments)


@functools.lru_cache(maxsize=128)
def compiled(
    function: Callable[..., Any],
    static: tuple[Any, ...],
    structure: Any,
    avals: tuple[Any, ...],
    device: Device,
    donated: int | None = None,
) -> Callable[..., Any]:
    """The compiled program for arguments of these shapes and dtypes."""
    sharding = jax.sharding.SingleDeviceSharding(device)
    leaves = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape, dtype in avals]
    options = CPU_OPTIONS if device.platform == "cpu" else None

    def compile_program() -> Any:
        program = jax.jit(functools.partial(function, *static), donate_argnums=() if donated is None else donated)
        return program.lower(*jax.tree.unflatten(structure, leaves)).compile(compiler_options=options)

    return kept((function, static, str(structure), avals, donated, options), device, compile_program)
