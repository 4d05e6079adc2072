"""The warp of one image, tile by tile, by programs that serve images of many sizes."""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...warp import smoothing
from ...warp.coordinate_functions import scaled
from .mappings import Array, Device, Mapping, PerPixelParameters, Size
from .programs import DeviceTexels, ReadOptions, TileProgram
from .resizes import ResizeFilters
from .texels import (
    capacity_of,
    chain_capacity,
    chain_program,
    chain_weights,
    flat_texels,
    flat_words,
    longest_side,
    numbers_of,
    numbers_program,
)
from .tiling import Place, tiles_of

# Vectors of 512 bits, where a processor has them. XLA's default are those of 256 bits.
CPU_OPTIONS: dict[str, str | bool] = {"xla_cpu_prefer_vector_width": "512"}
RGB = 3


class WarpResult(NamedTuple):
    """A warped image in tiles, which the device may still be computing.

    Attributes:
        size: width and height.
        tiles: the pixels of each tile, some of which may lie beyond the image.
        compile_seconds: how long the programs took to compile that the image is the first to need.
    """

    size: Size
    tiles: list[tuple[Place, jax.Array]]
    compile_seconds: float

    def wait(self) -> None:
        """Waits until the device has computed all tiles."""
        jax.block_until_ready([pixels for _, pixels in self.tiles])

    def pixels(self) -> Array:
        """The whole image, (H, W, C)."""
        first = self.tiles[0][1]
        whole = np.empty((*self.size[::-1], first.shape[-1]), first.dtype)
        for place, pixels in self.tiles:
            rows, columns = place.cut(self.size)
            whole[rows, columns] = np.asarray(pixels)[: rows.stop - rows.start, : columns.stop - columns.start]
        return whole


def warp(
    pixels: Array, mapping: Mapping, border: Array, *, size: Size, read: ReadOptions, device: Device
) -> WarpResult:
    """Warps an image, and does not wait for the result.

    Args:
        pixels: (H, W, C), uint8 or uint16; with 2 or 4 channels the last is alpha, not premultiplied.
        mapping: from output to input points, in pixels.
        border: (C,), of the dtype of `pixels`: the values outside under ``address_mode="border"``.
        size: width and height of the output.
        read: how the image is read.
        device: where the work is done.
    """
    image = ImageWarp.of(pixels, mapping, border, size, read, device)
    return WarpResult(size, [(place, image.tile(place)) for place in tiles_of(size)], image.programs.compile_seconds)


class ImageWarp(NamedTuple):
    """The warp of an image whose texels are on a device; it computes any tile of the output.

    Attributes:
        source: what tiles read.
        mapping: from output to input points, with parameters on the device.
        target: height and width of the output, on the device.
        size: of the output, width and height.
        read: how the image is read.
        reads: as in `TileProgram`.
        num_levels: as in `TileProgram`.
        programs: compiled for the device.
        filters: of a resize, if they are as wide as its steps.
        stored: as in `TileProgram`.
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

    @classmethod
    def of(
        cls, pixels: Array, mapping: Mapping, border: Array, size: Size, read: ReadOptions, device: Device
    ) -> "ImageWarp":
        """The warp of an image; see `warp`."""
        height, width, channels = pixels.shape
        filters = None
        if mapping.function is scaled:
            filters, read = ResizeFilters.of((width, height), size, read), read._replace(antialias=False)
        margin = 0 if filters is None else filters.longest_row
        if read.antialias:
            read = read._replace(sampler=dataclasses.replace(read.sampler, max_anisotropy=mapping.max_anisotropy))
        sizes, target = (np.array(some, np.int32) for some in ((height, width), size[::-1]))
        words = takes_words(pixels, read, device) and filters is None
        on_host = flat_words(pixels) if words else flat_texels(pixels, margin), sizes, border, target
        texels, sizes, color, target = jax.device_put(on_host, device)
        if not isinstance(mapping.parameters, PerPixelParameters):
            mapping = mapping._replace(parameters=jax.device_put(mapping.parameters, device))
        source = DeviceTexels(texels, None, sizes, color)
        image = cls(source, mapping, target, size, read, smoothing.SHARP, 1, Programs(device), filters)
        if read.antialias and max(height, width) > 1:
            image = image._replace(reads=image.reads_needed())
        return image.with_numbers(height * width + margin, height, width, channels)

    def reads_needed(self) -> int:
        """Which of the reads of `smoothing` some pixel of the output needs."""
        places, found = tiles_of(self.size), smoothing.SHARP
        first, rest = places[:1], places[1:] if self.mapping.differs else []
        for some in (first, rest):
            of_tiles = [self.run(self.program(place), "needed", place) for place in some]
            found = max([found, *map(int, of_tiles)])
            if found == smoothing.CHAIN:
                break
        return found

    def with_numbers(self, count: int, height: int, width: int, channels: int) -> "ImageWarp":
        """The same with the numbers that tiles read, if they cannot decode texels where they read them.

        Args:
            count: how many numbers there must be room for, without a chain.
        """
        alpha, light = self.read.has_alpha(channels), self.read.linear_light and not self.read.is_point
        texels, sizes = self.source.texels, self.source.sizes
        if self.stored is not None:
            sizes = jax.device_put(np.array(self.stored, np.int32), self.programs.device)
        words = self.source.channels_of_words
        convert = functools.partial(numbers_of, alpha=alpha, light=light, channels_of_words=words)
        if self.reads >= smoothing.TWO_LEVELS:
            weights = jax.device_put(chain_weights(height, width), self.programs.device)
            make = functools.partial(chain_program, convert, chain_capacity(height, width))
            key, arguments = ("chain", alpha, light, words, chain_capacity(height, width)), (texels, sizes, weights)
            num_levels = longest_side(height, width).bit_length() - 1
        elif self.read.has_numbers(channels):
            capacity = capacity_of(count) if self.stored is None else len(texels)
            make = functools.partial(numbers_program, convert, capacity)
            key, arguments, num_levels = ("numbers", alpha, light, words, capacity), (texels, sizes), 1
        else:
            return self
        numbers = self.programs.run(key, make, *arguments)
        return self._replace(source=self.source._replace(numbers=numbers), num_levels=num_levels)

    def tile(self, place: Place) -> jax.Array:
        """The pixels of a tile, (height, width, C), of the dtype of the image."""
        program = self.program(place)
        if not self.read.has_alpha(self.source.channels):
            return self.run(program, "opaque", place)
        make = functools.partial(getattr, program, "finished")
        return self.programs.run((program, "finished"), make, *self.run(program, "with_alpha", place))

    def program(self, place: Place) -> TileProgram:
        shape = place.height, place.width
        on_cpu = self.programs.device.platform == "cpu"
        program = TileProgram(self.mapping.function, shape, self.read, self.reads, self.num_levels, touches=on_cpu)
        program = program._replace(stored=self.stored)
        if self.filters is None:
            return program
        return program._replace(window=self.filters.window(shape), first_axis=self.filters.first_axis)

    def run(self, program: TileProgram, name: str, place: Place, *more: jax.Array) -> Any:
        """Runs one of the programs for tiles.

        Args:
            more: what it takes beside the source, parameters, the origin of the tile and the size of the output.
        """
        parameters = parameters_of(self.mapping, place, self.size)
        if isinstance(self.mapping.parameters, PerPixelParameters):
            parameters = jax.device_put(parameters, self.programs.device)
        origin = origin_on(place.row, place.column, self.programs.device)
        source = self.source
        if self.filters is not None:
            source = source._replace(window=jax.device_put(self.filters.at(place), self.programs.device))
        make = functools.partial(getattr, program, name)
        return self.programs.run((program, name), make, source, parameters, origin, self.target, *more)


def takes_words(pixels: Array, read: ReadOptions, device: Device) -> bool:
    """Whether the texels of an image are read as words: by a CPU, where they are not made numbers first."""
    channels = pixels.shape[-1]
    packs = pixels.dtype == np.uint8 and channels == RGB
    return packs and device.platform == "cpu" and not read.is_point and not read.has_numbers(channels)


def parameters_of(mapping: Mapping, place: Place, size: Size) -> Sequence[Array | jax.Array]:
    """The parameters of the coordinate function for a tile: those of a field with one more pixel on each side."""
    if not isinstance(mapping.parameters, PerPixelParameters):
        return mapping.parameters
    if size == (1, 1):
        return mapping.parameters.at(Place(0, 0, 1, 1), size, 0)
    return mapping.parameters.at(place, size, 1)


@functools.lru_cache(maxsize=2**12)
def origin_on(row: int, column: int, device: Device) -> jax.Array:
    """The origin of a tile, on a device."""
    return jax.device_put(np.array([row, column], np.int32), device)


class Programs:
    """The compiled programs of a device, and how long they took to compile for the image at hand."""

    def __init__(self, device: Device):
        self.device = device
        self.compile_seconds = 0.0

    def run(self, key: tuple[Any, ...], make: Callable[[], Callable[..., Any]], *arguments: Any) -> Any:
        """Runs a program, which is compiled once for each key and each shape of arguments.

        Args:
            make: returns what it computes.
        """
        leaves, structure = jax.tree.flatten(arguments)
        avals = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        start, before = time.perf_counter(), compiled.cache_info().misses
        program = compiled(ProgramFactory(key, make), structure, avals, self.device)
        if compiled.cache_info().misses > before:
            self.compile_seconds += time.perf_counter() - start
        return program(*arguments)


class ProgramFactory:
    """What makes the function of a program, known by a key."""

    def __init__(self, key: tuple[Any, ...], make: Callable[[], Callable[..., Any]]):
        self.key = key
        self.make = make

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProgramFactory) and self.key == other.key


@functools.lru_cache(maxsize=128)
def compiled(factory: ProgramFactory, structure: Any, avals: tuple[Any, ...], device: Device) -> Callable[..., Any]:
    """The compiled program for arguments of these shapes and dtypes."""
    sharding = jax.sharding.SingleDeviceSharding(device)
    leaves = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape, dtype in avals]
    options = CPU_OPTIONS if device.platform == "cpu" else None
    return jax.jit(factory.make()).lower(*jax.tree.unflatten(structure, leaves)).compile(compiler_options=options)
