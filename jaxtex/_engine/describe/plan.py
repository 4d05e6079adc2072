"""From a call to the reads of the engine: axes, and an operand for each."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.arguments import ReadArguments
from ..._tables.address_rules import CLAMP, LAST, AddressRule
from ..._tables.filter_kernels import POINT
from ..._tables.storage_formats import Decoding
from ...modes import TextureKind
from ...sampler import Sampler
from ...texture import Texture
from .axis import Axis, Given, Role, Stored
from .cube import NUM_FACES, SEAM, OnCube
from .footprint import InChain, level_axis, limited
from .operands import Arrays, Grid, Operand, StoredOrder, as_given, split
from .spec import Combination, Read, ReadSpec


class Layout(NamedTuple):
    """The static half of a texture.

    Attributes:
        kind: of the texture.
        shape: of the finest level, channels included. Where sizes are operands, they are `None` here.
        num_levels: how many levels there are; where sizes are operands, how many there may be at most.
        capacity: of texels whose sizes are operands, how many the flat array holds that they lie in.
        window: where a part of the texture is stored, the number of texels along each axis.
    """

    kind: TextureKind
    shape: tuple[int, ...]
    num_levels: int = 1
    capacity: int | None = None
    window: tuple[int, ...] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the filtered axes as they are stored: z, y, x."""
        return self.shape[-1 - self.kind.texel_ndim : -1]


class SizedTexture(NamedTuple):
    """A texture whose sizes are arrays, so that one program reads textures of many sizes.

    Attributes:
        texels: (capacity, C): those of the texture, row after row and level after level, and then others, which are
            never read.
        sizes: of the finest level, slowest axis first, int32 of one element each.
        border_color: as in `Texture`.
        num_levels: 1, or of a mip chain down to a single texel the most levels that it may have.
        window: where a part of a texture of one level is stored, as many texels of each axis; `texels` holds those
            alone. All that some sample of interest needs must be among them; others may read any texel.
        starts: the first stored texel of each axis, from 0, int32 of one element each. The part may go on after the
            last texel of an axis with its first ones.
        channels_of_words: where `texels` are words of uint32, (capacity, 1), that hold texels of uint8 in their lowest
            bytes, the first channel lowest: how many channels. A CPU alone reads such texels, without derivatives.
    """

    texels: jax.Array
    sizes: tuple[jax.Array, ...]
    border_color: jax.Array | None = None
    num_levels: int = 1
    window: tuple[int, ...] | None = None
    starts: tuple[jax.Array, ...] = ()
    channels_of_words: int | None = None

    @property
    def kind(self) -> TextureKind:
        return {1: TextureKind.TEXTURE1D, 2: TextureKind.TEXTURE2D, 3: TextureKind.TEXTURE3D}[len(self.sizes)]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.texels.dtype if self.channels_of_words is None else np.uint8)

    @property
    def num_channels(self) -> int:
        return self.channels_of_words or self.texels.shape[-1]

    @property
    def cut(self) -> None:
        """As in `Texture`: levels are not cut over devices."""
        return None


def layout_of(texture: Texture | SizedTexture) -> Layout:
    if isinstance(texture, SizedTexture):
        # So that whoever counts on sizes fails.
        shape = cast(tuple[int, ...], (*[None] * len(texture.sizes), texture.num_channels))
        return Layout(texture.kind, shape, texture.num_levels, len(texture.texels), texture.window)
    return Layout(texture.kind, texture.shape, texture.num_levels)


def sizes_of(texture: Texture | SizedTexture) -> tuple[jax.Array, ...]:
    """The sizes of a texture that are arrays, and the starts of a part that is stored; none if sizes are known."""
    return (*texture.sizes, *texture.starts) if isinstance(texture, SizedTexture) else ()


class ResolvedLevel(NamedTuple):
    """A call before it is split into reads: where, in which level, and how far along a footprint.

    Attributes:
        coords: the caller's coordinates.
        layer: the caller's layer.
        level: the level that is read; `None` for a texture of one level, and where `lod` says it.
        side: the side of the footprint along which several reads lie; `None` for one read at `coords`.
        num_reads: the number of reads along `side`, in float arithmetic.
        log_ratio: in hardware arithmetic, in place of that number, the logarithm of the ratio of the sides, in 1/256.
        face_coords: the face, u and v of a cube's direction, if they are known before the read.
        lod: the level of detail, before the sampler's bias and bounds, which the read computes where it uses them.
        sizes: those of the texture that are operands, slowest axis first.
    """

    coords: Arrays
    layer: jax.Array | None
    level: jax.Array | None
    side: Arrays | None = None
    num_reads: jax.Array | None = None
    log_ratio: jax.Array | None = None
    face_coords: Arrays | None = None
    lod: jax.Array | None = None
    sizes: tuple[jax.Array, ...] = ()


# Plans


def plan_of_grid(
    layout: Layout,
    function: Callable[..., Arrays],
    operands: Sequence[Operand],
    sampler: Sampler,
    dtype: np.dtype,
    affine_axes: int = 0,
    sizes: Sequence[jax.Array] = (),
) -> Read:
    """The read of a texture of one level at coordinates that `function` makes of operands, where they are used."""
    arrays, stacks = split(operands)
    spec = spec_of(space_axes(layout, sampler), sampler, dtype, StoredOrder(function, affine_axes))
    return Read(spec, arrays).replace(stacks=stacks).with_given(sizes)


def plan_of_texels(
    layout: Layout, arguments: ReadArguments, level: int, space: AddressRule, layers: AddressRule, dtype: np.dtype
) -> Read:
    """The read of single texels of one level by their indices, with address rules for them and for layers and faces."""
    whole = functools.partial(Axis, kernel=POINT, integer=True)
    rank = [1] * arguments.coords[0].ndim
    found = [
        (whole(layout.num_levels, address=CLAMP, role=Role.LEVEL), jnp.full(rank, level, jnp.int32)),
        (whole(layout.shape[0], address=layers, role=Role.LAYER), arguments.layer),
        (whole(NUM_FACES, address=layers, role=Role.FACE), arguments.face),
        *((whole(n, address=space), index) for n, index in zip(layout.sizes, arguments.coords[::-1])),
    ]
    found = [(axis, index) for axis, index in found if index is not None][0 if layout.num_levels > 1 else 1 :]
    axes, operands = zip(*found)
    return Read(ReadSpec(axes, Decoding.ELEMENT, np.dtype(dtype)), operands)


def plan_of_level(layout: Layout, resolved: ResolvedLevel, sampler: Sampler, dtype: np.dtype) -> Read:
    """The read at the coordinates of a resolved call."""
    axes, operands, grid = space_axes(layout, sampler), resolved.coords[::-1], as_given
    if layout.kind.is_cube:
        rule = SEAM if axes[-1].address is SEAM else CLAMP
        axes = (Axis(NUM_FACES, POINT, rule, integer=True, role=Role.FACE), *axes)
        if resolved.face_coords is None:
            front = sum(operand is not None for operand in (resolved.level, resolved.layer))
            operands, grid = resolved.coords, OnCube(front)
        else:
            face, u, v = resolved.face_coords
            operands = face, v, u
    if resolved.layer is not None:
        layers = Axis(layout.shape[0], POINT, LAST, integer=True, role=Role.LAYER)
        axes, operands = (layers, *axes), (resolved.layer, *operands)
    if layout.num_levels > 1:
        level = resolved.level
        if level is None:
            assert resolved.lod is not None
            level, grid = resolved.lod, InChain(sampler, layout.num_levels, grid)
        axes, operands = (level_axis(layout.num_levels, sampler), *axes), (level, *operands)
    return Read(spec_of(axes, sampler, dtype, grid), operands).with_given(resolved.sizes)


def spec_of(axes: tuple[Axis, ...], sampler: Sampler, dtype: np.dtype, grid: Grid) -> ReadSpec:
    """The static half of a read along axes, as a sampler asks for it."""
    return ReadSpec(
        axes, sampler.decoding, np.dtype(dtype), sampler.deterministic, grid, combination=combination(sampler)
    )


def combination(sampler: Sampler) -> Combination:
    """How the taps of a read become its value. A filter of one or two taps lies between them without a limit."""
    limits = sampler.limit is not None and sampler.kernel.num_taps > 2
    return Combination.LIMITED if limits else Combination.BLEND


def space_axes(layout: Layout, sampler: Sampler) -> tuple[Axis, ...]:
    """The filtered axes: z, y, x. Those of a cube's face are addressed across its seams, if the sampler says so."""
    kernel = sampler.kernel
    normalized = sampler.normalized_coords or layout.kind.is_cube
    if layout.kind.is_cube and sampler.seamless_cubemap:
        rules = (SEAM if kernel.blends else CLAMP,) * 2
    else:
        rules = sampler.address_rules(layout.kind.texel_ndim)[::-1]
    sizes = layout.sizes if layout.capacity is None else [Given(layout.capacity)] * layout.kind.texel_ndim
    axes = tuple(Axis(n, kernel, rule, normalized) for n, rule in zip(sizes, rules))
    if layout.window is None:
        return axes
    return tuple(
        axis._replace(stored=Stored(count, count, is_window=True))
        for axis, count in zip(axes, layout.window, strict=True)
    )


# Footprints


def without_nan(side: Arrays) -> Arrays:
    """A side of a footprint with 0 for NaN."""
    return tuple(jnp.where(d == d, d, 0) for d in side)


def sides_of(arguments: ReadArguments) -> tuple[Arrays, ...]:
    """The sides of the footprint that a caller gives; none if there is no footprint."""
    return tuple(without_nan(side) for side in (arguments.ddx, arguments.ddy, arguments.ddz) if side is not None)


def in_texels(layout: Layout, side: Arrays, sampler: Sampler) -> Arrays:
    """A side of a footprint in texels of the finest level, per axis; of a cube, a step of u and v."""
    if not (sampler.normalized_coords or layout.kind.is_cube):
        return tuple(map(limited, side))
    return tuple(limited(d * n) for d, n in zip(side, layout.sizes[::-1]))
