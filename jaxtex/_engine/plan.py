"""From what a caller asks for to what the engine reads: axes, and an operand for each."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .. import _hardware
from .._arguments import ReadArguments
from ..mipmaps import along_footprint, biased, clamped, level_axis, level_of_detail
from ..modes import AddressMode, FilterMode, TextureKind
from ..sampler import Sampler
from .axis import Axis, Role
from .coordinates import Arrays, limited, to_face
from .taps import FOOTPRINTS, POINT
from .texel_walk import Coords, Grid, as_given


class Layout(NamedTuple):
    """The static half of a texture: its kind, the shape of its finest level, and how many levels there are."""

    kind: TextureKind
    shape: tuple[int, ...]
    num_levels: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the filtered axes as they are stored: z, y, x."""
        return self.shape[-1 - self.kind.texel_ndim : -1]


class Look(NamedTuple):
    """One read of the engine: its axes as they are stored (level, layer, face, z, y, x), and a coordinate for each.

    `grid` makes the coordinates of the operands, where they are used; as a rule they are the operands.
    """

    axes: tuple[Axis, ...]
    operands: tuple[jax.Array, ...]
    grid: Grid = as_given

    @property
    def coords(self) -> Coords:
        return self.grid(*self.operands)


class Stored(NamedTuple):
    """A grid of coordinates in stored order, from a function that gives them in the caller's, x first."""

    function: Callable[..., Arrays]

    def __call__(self, *operands: jax.Array) -> Coords:
        first, *rest = self.function(*operands)[::-1]
        shape = jnp.broadcast_shapes(*(a.shape for a in operands))
        if jnp.broadcast_shapes(*(a.shape for a in (first, *rest))) != shape:
            first = jnp.broadcast_to(first, shape)  # no coordinate depends on some axis of the samples
        return first, *rest


class Reach(NamedTuple):
    """What a call asks for before it is split into reads: where, in which level, and how far along a footprint.

    `reads` is how many reads lie along `side`, at each position; both are `None` where it is one, at `coords`.
    """

    coords: Arrays
    layer: jax.Array | None
    level: jax.Array
    side: Arrays | None = None
    reads: jax.Array | None = None


def reach(layout: Layout, where: ReadArguments, sampler: Sampler) -> Reach:
    """The level of detail of a call, and the extent of its footprint."""
    coords, lod, side, reads = where.coords, where.lod, None, None
    if where.ddx is not None and where.ddy is not None:
        ddx, ddy = numbers(where.ddx), numbers(where.ddy)
        x_side, y_side = (in_texels(layout, coords, d, sampler) for d in (ddx, ddy))
        lod, reads, x_longer = level_of_detail(x_side, y_side, sampler.max_anisotropy)
        side = tuple(jnp.where(x_longer, dx, dy) for dx, dy in zip(ddx, ddy))
    # A read that asks for no level reads the finest, without bias.
    lod = jnp.zeros([1] * coords[0].ndim, coords[0].dtype) if lod is None else biased(lod, sampler)
    level = clamped(lod, sampler, layout.num_levels)
    if sampler.max_anisotropy == 1 or side is None:
        return Reach(coords, where.layer, level)
    return Reach(coords, where.layer, level, side, reads)


def only_look(layout: Layout, reach: Reach, sampler: Sampler) -> Look:
    """The read at the centre of a reach."""
    axes, levels = space_axes(layout, sampler), level_axis(layout.num_levels, sampler)
    return look(layout, reach.coords, reach.layer, reach.level, axes, levels)


def look_along(layout: Layout, reach: Reach, sampler: Sampler, number: jax.Array) -> tuple[Look, jax.Array]:
    """One of the reads along a footprint, counted from 1, and its weight."""
    assert reach.side is not None
    assert reach.reads is not None
    coords, weight = along_footprint(reach.coords, reach.side, reach.reads, number)
    return only_look(layout, reach._replace(coords=coords), sampler), weight


def numbers(side: Arrays) -> Arrays:
    """A side of a footprint with 0 for NaN."""
    return tuple(jnp.where(d == d, d, 0) for d in side)


def hardware_reach(layout: Layout, where: ReadArguments, sampler: Sampler) -> Reach:
    """The level of a texture unit's read, in 1/256, and the way along its footprint; coordinates in float32.

    Where several reads follow a footprint, `side` is one texel of the level along it, and `reads` its ratio.
    """
    single = lambda arrays: tuple(a.astype(jnp.float32) for a in arrays)
    coords, lod, bent, ellipse = single(where.coords), None, None, None
    if where.lod is not None:
        lod = _hardware.fixed(where.lod)
    elif where.ddx is not None and where.ddy is not None:
        ddx, ddy = numbers(single(where.ddx)), numbers(single(where.ddy))
        if layout.kind.is_cube:
            x_side, x_bent = _hardware.side_on_face(coords, ddx)
            y_side, y_bent = _hardware.side_on_face(coords, ddy)
            x_side, y_side = (tuple(limited(d * layout.sizes[0]) for d in side) for side in (x_side, y_side))
            bent = x_bent | y_bent
        else:
            x_side, y_side = (in_texels(layout, coords, d, sampler) for d in (ddx, ddy))
        if sampler.max_anisotropy > 1 and layout.kind.texel_ndim == 2 and not layout.kind.is_cube:
            ellipse = _hardware.ellipse(x_side, y_side, sampler.max_anisotropy)
            lod = ellipse.lod
        else:
            lod = _hardware.footprint_lod(x_side, y_side, bent)
    sharpened = where.lod is not None or ellipse is not None
    shape = (1,) * coords[0].ndim
    level = _hardware.fixed_lod(lod, sampler, layout.num_levels, shape, sharpened)
    if ellipse is None:
        return Reach(coords, where.layer, level)
    texel = _hardware.fixed_exp2(_hardware.fixed_lod(lod, sampler, layout.num_levels, shape, explicit=False))
    side = tuple(d * texel for d in ellipse.direction)
    if sampler.normalized_coords:
        side = tuple(d / n for d, n in zip(side, layout.sizes[::-1]))
    return Reach(coords, where.layer, level, side, ellipse.log_ratio)


def hardware_look(layout: Layout, reach: Reach, sampler: Sampler) -> Look:
    """The read of a texture unit at the centre of a reach."""
    coords = _hardware.lifted(reach.coords) if layout.kind.is_cube else reach.coords
    axes, levels = space_axes(layout, sampler), level_axis(layout.num_levels, sampler)
    return look(layout, coords, reach.layer, reach.level, axes, levels, _hardware.divide)


def hardware_look_along(layout: Layout, reach: Reach, sampler: Sampler, number: jax.Array) -> tuple[Look, jax.Array]:
    """One of a texture unit's reads along a footprint, counted from 1, and its weight."""
    assert reach.side is not None
    assert reach.reads is not None
    offset, weight = _hardware.read_along(reach.reads, number)
    coords = tuple(c + offset * d for c, d in zip(reach.coords, reach.side))
    return hardware_look(layout, reach._replace(coords=coords), sampler), weight


class OnCube(NamedTuple):
    """A grid of a cube: from `front` operands that are coordinates and a direction, to face, v and u."""

    front: int

    def __call__(self, *operands: jax.Array) -> Coords:
        face, u, v = to_face(operands[self.front :])[0]
        return (*operands[: self.front], face, v, u)


def grid_look(layout: Layout, function: Callable[..., Arrays], operands: Arrays, sampler: Sampler) -> Look:
    """The read of a texture of one level at coordinates that `function` makes of operands, where they are used."""
    return Look(space_axes(layout, sampler), operands, Stored(function))


def texel_look(layout: Layout, where: ReadArguments, level: int, space: AddressMode, layers: AddressMode) -> Look:
    """The read of single texels of one level by their indices, with address modes for them and for layers and faces."""
    whole = functools.partial(Axis, footprint=POINT, integer=True)
    rank = [1] * where.coords[0].ndim
    found = [
        (whole(layout.num_levels, address=AddressMode.CLAMP, role=Role.LEVEL), jnp.full(rank, level, jnp.int32)),
        (whole(layout.shape[0], address=layers, role=Role.LAYER), where.layer),
        (whole(6, address=layers, role=Role.FACE), where.face),
        *((whole(n, address=space), index) for n, index in zip(layout.sizes, where.coords[::-1])),
    ]
    found = [(axis, index) for axis, index in found if index is not None][0 if layout.num_levels > 1 else 1 :]
    axes, operands = zip(*found)
    return Look(axes, operands)


def look(layout: Layout, coords: Arrays, layer, level, axes: tuple[Axis, ...], levels: Axis, divide=jnp.divide) -> Look:
    """Axes and operands, in stored order."""
    operands, grid = coords[::-1], as_given
    if layout.kind.is_cube:
        axes = (Axis(6, POINT, AddressMode.CLAMP, integer=True, role=Role.FACE), *axes)
        if divide is jnp.divide and layout.num_levels == 1:
            operands, grid = coords, OnCube(0 if layer is None else 1)
        else:  # a level has derivatives of its own; a texture unit's quotients are exact
            (face, u, v), _ = to_face(coords, divide=divide)
            operands = face, v, u
    if layer is not None:
        layers = Axis(layout.shape[0], POINT, AddressMode.LAST, integer=True, role=Role.LAYER)
        axes, operands = (layers, *axes), (layer, *operands)
    if layout.num_levels > 1:
        axes, operands = (levels, *axes), (level, *operands)
    return Look(axes, operands, grid)


def space_axes(layout: Layout, sampler: Sampler) -> tuple[Axis, ...]:
    """The filtered axes: z, y, x. Those of a cube's face are addressed across its seams, if the sampler says so."""
    footprint = FOOTPRINTS[FilterMode(sampler.filter_mode)](sampler.cubic_coefficient)
    normalized = sampler.normalized_coords or layout.kind.is_cube
    if layout.kind.is_cube and sampler.seamless_cubemap:
        modes = [AddressMode.CLAMP if sampler.filter_mode is FilterMode.POINT else AddressMode.SEAM] * 2
    else:
        modes = sampler.address_modes(layout.kind.texel_ndim)[::-1]
    return tuple(Axis(n, footprint, mode, normalized) for n, mode in zip(layout.sizes, modes))


def in_texels(layout: Layout, coords: Arrays, side: Arrays, sampler: Sampler) -> Arrays:
    """A side of a footprint in texels of the finest level, per axis; of a cube, on the face that is read."""
    if layout.kind.is_cube:
        side = to_face(coords, side)[1][0]
    elif not sampler.normalized_coords:
        return tuple(map(limited, side))
    return tuple(limited(d * n) for d, n in zip(side, layout.sizes[::-1]))
