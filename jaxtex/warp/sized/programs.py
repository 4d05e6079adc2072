"""Programs for one tile that serve images of many sizes."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.numbers import as_float
from ..._engine.api import Axis, Layout, SizedTexture
from ..._jax.barriers import materialized_p
from ..._jax.primitives import doubled
from ..._reads import smoothed
from ...modes import TextureKind
from ...sampler import Sampler
from ..coordinate_functions import is_affine
from ..images import converted, read_at
from ..options import ReadOptions
from ..windows import position_spans
from . import reads as tiles
from .filters import Filters, ResizeShape, Stored, filtered
from .pixels import (
    coverage,
    may_be_covered,
    over,
    premultiply,
    quantize,
    to_codes,
    to_fractions,
    to_light,
    unpremultiply,
)

# One texel in so many bytes is touched: half a cache line.
TOUCHED = 32


class DeviceTexels(NamedTuple):
    """The texels that the tiles of an image read.

    Attributes:
        texels: as stored, (capacity, C), or as words, (capacity, 1), see `flat_words`.
        numbers: the decoded texels, with a mip chain; `None` if neither is needed.
        sizes: height and width, int32.
        border: the texel outside, (C,), of any dtype.
        filters: the widened filters of a resize, for one tile.
        starts: the first row and column of `texels` if they are a window; else `None`.
        reads: the reads of `smoothed` that the output needs, int32; `None` without antialiasing.
    """

    texels: jax.Array
    numbers: jax.Array | None
    sizes: jax.Array
    border: jax.Array
    filters: Filters | None = None
    starts: jax.Array | None = None
    reads: jax.Array | None = None

    @property
    def channels(self) -> int:
        return self.border.shape[0]


class TileOperands(NamedTuple):
    """The parameters of the coordinate function, the origin of a tile, and height and width of the output."""

    parameters: tuple[Any, ...]
    origin: jax.Array
    target: jax.Array


class TileProgram(NamedTuple):
    """The computation of a program for tiles.

    Attributes:
        shape: height and width of a tile.
        num_levels: the most levels of a chain.
        resize: for widened filters, the shapes in the program.
        stored: height and width of the window in `DeviceTexels`; `None` if it holds the whole image.
        touches: whether texels are brought into a cache first, on a CPU; see `touching`.
        words: whether texels are stored as words.
    """

    function: Callable[..., tuple[Any, ...]]
    shape: tuple[int, int]
    read: ReadOptions
    num_levels: int
    resize: ResizeShape | None = None
    stored: tuple[int, int] | None = None
    touches: bool = False
    dtype: np.dtype[Any] = np.dtype(np.uint8)
    words: bool = False

    def texture(
        self, source: DeviceTexels, texels: jax.Array, color: jax.Array | None = None, num_levels: int = 1
    ) -> SizedTexture:
        """Stored or decoded texels as a texture."""
        starts = () if source.starts is None else (source.starts[0], source.starts[1])
        words = source.channels if self.words and texels is source.texels else None
        return SizedTexture(texels, (source.sizes[0], source.sizes[1]), color, num_levels, self.stored, starts, words)

    def blended(self, source: DeviceTexels) -> jax.Array:
        """The texels that a filter blends: stored ones, or numbers."""
        if not self.read.has_numbers(source.channels):
            return source.texels
        assert source.numbers is not None
        return source.numbers

    def tile(self, at: TileOperands) -> tiles.Tile:
        return tiles.Tile(self.function, *at, self.shape)

    def needed(self, source: DeviceTexels, at: TileOperands) -> jax.Array:
        """The reads of `smoothed` that the pixels of a tile need."""
        texture = self.texture(source, source.texels)
        # Beyond the output, a coordinate function that solves an equation may take long.
        tile = self.tile(at)._replace(within=True)
        return tiles.reads_needed(texture, tile, self.read.sampler)

    def reached(self, source: DeviceTexels, at: TileOperands, counts: jax.Array) -> jax.Array:
        """The `position_spans` of the first pixels of a tile, `counts` along each axis."""
        tile = self.tile(at)
        (rows, columns), origin = tile.numbers, at.origin
        needed, reach = (rows - origin[0] < counts[0]) & (columns - origin[1] < counts[1]), None
        if self.read.frame:
            needed &= may_be_covered(tile.points, tile.footprint(), (source.sizes[1], source.sizes[0]))
        if self.read.antialias:
            along_x, along_y = (tuple(jnp.where(d == d, d, 0) for d in side) for side in tile.footprint())
            reach = [jnp.abs(x) + jnp.abs(y) for x, y in zip(along_x, along_y)][::-1]
        axes = read_axes(self.read.sampler)
        sized = [axis._replace(size=source.sizes[k]) for k, axis in enumerate(axes)]
        return position_spans(tile.points[::-1], sized, needed, reach)

    def touching(self, source: DeviceTexels, at: TileOperands) -> jax.Array:
        """The origin, once the texels of an affine tile are in a cache.

        The read of a rotated image meets a new cache line every few pixels, and waits for each. A short loop that only
        loads texels waits for many lines at once.
        """
        if not self.touches or not is_affine(self.function) or self.resize:
            return at.origin
        if source.reads is None:
            return self.touched(source, at)
        finest = source.reads < smoothed.TWO_LEVELS
        return jax.lax.cond(finest, lambda: self.touched(source, at), lambda: at.origin)

    def touched(self, source: DeviceTexels, at: TileOperands) -> jax.Array:
        """The origin, once the texels of a tile are in a cache."""
        texels = self.blended(source)
        step = max(1, TOUCHED // (texels.shape[-1] * texels.dtype.itemsize))
        tile = self.tile(at)
        some = tuple(a[:, ::step] if a.shape[1] > 1 else a for a in tile.operands)
        point = dataclasses.replace(self.read.sampler, filter_mode="point")
        found = read_at(self.texture(source, texels), tile.function, some, point, materialized=False)[..., :1]
        return materialized_p.bind(at.origin, jnp.max(found))[0]

    def opaque(self, source: DeviceTexels, at: TileOperands) -> jax.Array:
        """The pixels of a tile without alpha, or of the point filter, which returns stored texels."""
        at = at._replace(origin=self.touching(source, at))
        tile, dtype = self.tile(at), self.dtype
        finish, color = functools.partial(converted, dtype=dtype), as_float(source.border)
        if self.read.linear_light and not self.read.is_point:
            color = to_light(to_fractions(source.border))

            def finish(values: jax.Array) -> jax.Array:
                return quantize(to_codes(values), dtype)

        if self.resize is not None:
            return self.filtered(source, self.resize, finish)
        return finish(self.values(source, tile, color))

    def with_alpha(self, source: DeviceTexels, at: TileOperands) -> jax.Array:
        """The pixels of a tile with alpha, from filtered premultiplied fractions and the nearest texels."""
        at = at._replace(origin=self.touching(source, at))
        tile, read = self.tile(at), self.read
        color = to_light(to_fractions(source.border)) if read.linear_light else source.border
        filtered = self.values(source, tile, premultiply(color))
        address_mode = "border" if read.frame else read.sampler.address_mode
        point = dataclasses.replace(read.sampler, filter_mode="point", address_mode=address_mode)
        nearest = tiles.read_tile(self.texture(source, source.texels, as_float(source.border)), tile, point)
        # XLA for CPUs would otherwise read again for each use of the result.
        filtered, nearest = materialized_p.bind(filtered, nearest)
        if self.read.linear_light:
            filtered = premultiply(to_codes(divided(filtered)))
        return unpremultiply(filtered, nearest)

    def values(self, source: DeviceTexels, tile: tiles.Tile, color: jax.Array) -> jax.Array:
        """The blended pixels of a tile; `color` is a texel of the border."""
        if self.resize is not None:
            return self.filtered(source, self.resize, lambda values: values)
        sampler, sizes = self.read.sampler, (source.sizes[0], source.sizes[1])
        texture = self.texture(source, self.blended(source), color)
        if self.read.antialias:
            chain = None
            if source.numbers is not None:
                chain = self.texture(source, source.numbers, color, self.num_levels)
            assert source.reads is not None
            out = tiles.read_tile_smoothed(texture, chain, tile, sampler, source.reads)
        else:
            out = tiles.read_tile(texture, tile, sampler)
        if not self.read.frame:
            return out
        return over(out, color, coverage(tile.points, tile.footprint(), sizes[::-1], tile.shape))

    def filtered(self, source: DeviceTexels, shape: ResizeShape, finish: Callable[[jax.Array], jax.Array]) -> jax.Array:
        """The pixels of a tile of a resize with widened filters; see `filters.filtered`."""
        assert source.filters is not None
        texels = source.texels if source.numbers is None else source.numbers
        height, width = self.stored or (source.sizes[0], source.sizes[1])
        filters = source.filters
        if self.stored is not None:  # a window begins with the first texel that is read
            rows = (some._replace(first=jnp.zeros((), jnp.int32)) for some in filters.rows)
            filters = filters._replace(rows=tuple(rows))
        finite = not jnp.issubdtype(source.texels.dtype, jnp.floating)
        ends = finish if finite or source.texels.dtype != np.float32 else lambda values: finish(doubled(values))
        return filtered(Stored(texels, height, width, finite), filters, shape, ends)


def read_axes(sampler: Sampler) -> tuple[Axis, ...]:
    """The axes of an image of any size, in texels."""
    layout = Layout(TextureKind.TEXTURE2D, cast(tuple[int, ...], (None, None, 1)))
    return layout.axes(smoothed.in_texels(sampler))


def divided(premultiplied: jax.Array) -> jax.Array:
    """Fractions with colors divided by alpha, the last channel; those of a transparent pixel stay."""
    alpha = premultiplied[..., -1:]
    colors = premultiplied[..., :-1] / jnp.where(alpha > 0, alpha, 1)
    return jnp.concatenate([colors, alpha], axis=-1)
