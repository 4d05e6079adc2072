"""The kernel of the adjoint: gradients in texels and in coordinates from one look at taps, texels and cotangent.

What bounds it is the number of atomic additions. So a thread takes a few samples that lie side by side, and adds up
what they give to the same texel before it touches memory; and where many samples share few texels, threads add to
private copies of the texture, which are summed in the end.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....modes import ReadMode
from ...axis import Axis, Role
from ...formats import decode
from ...operators import TEXELS, Path, only_inside, slopes, spread, texels_shape, units
from ...reproducible_sum import Sums, Units, crowded, power_below, private_copies, row_lanes
from ...texel_walk import Coords, Grid, Place, as_given, both, flat_sizes
from . import channels
from .launch import VECTOR, launch
from .tiling import Deal, Mask, deal, samples_shape

# Threads down and across, for texels of few channels and of many.
TILE, WIDE_TILE = (8, 16), (4, 8)
# How many samples a thread takes at most: of one channel or a few, of many, and where samples crowd. Each program has
# a tile; so many samples are enough to keep a GPU busy with groups of two.
GROUP, WIDE_GROUP, CROWD_GROUP = 8, 2, 16
BUSY = 2**18


def splat(values, *operands, dtype: np.dtype, interpret=False, **static):
    """`resample.splat` over `batch` leading axes, on which an operand has their size or 1."""
    static |= {"read_mode": ReadMode.ELEMENT, "dtype": values.dtype, "wanted": (TEXELS,)}
    return adjoint(values, None, *operands, stored=dtype, interpret=interpret, **static)[0]


def pullback(cotangent, texels, *operands, interpret=False, **static):
    """`resample.pullback` over `batch` leading axes, on which an operand has their size or 1."""
    return adjoint(cotangent, texels, *operands, stored=texels.dtype, interpret=interpret, **static)


def adjoint(
    cotangent,
    texels,
    *operands,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    stored: np.dtype,
    wanted: tuple[int, ...],
    deterministic: bool,
    batch: int,
    interpret: bool,
    grid: Grid = as_given,
) -> tuple[jax.Array, ...]:
    """The cotangents of texels, of dtype `stored`, and of coordinates, in the order of `wanted`."""
    count, steep = cotangent.shape[-1], tuple(k for k in wanted if k != TEXELS)
    read_from = texels.shape[:batch] if steep else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *operands)))
    shape = samples_shape(read_from, [jax.eval_shape(lambda g: g[..., 0], cotangent), *operands])
    tile = TILE if count <= VECTOR else WIDE_TILE
    samples, places = math.prod(shape), math.prod(textures) * flat_sizes(axes)[0]
    dealt = deal(shape, tile, group(axes, count, samples, places) if TEXELS in wanted else 1, batch)
    copies = private_copies(samples, places, count)
    plan = Plan(axes, grid, read_mode, dtype, steep, dealt, read_from, textures, copies, interpret)
    if TEXELS not in wanted:
        return tuple(plan.launch(cotangent, texels, operands, None))
    cut = None
    if deterministic:
        ones = jnp.ones((*[1] * len(shape), 1), jnp.float32)
        crowd = lambda axes: plan._replace(axes=axes, steep=()).launch(ones, None, operands, Sums(1, 1))[0]
        cut = units(cotangent, axes, crowd)
    sums = Sums(count, row_lanes(count), cut)
    total, *of_coords = plan.launch(cotangent, texels, operands, sums)
    total = sums.joined(total[0] if copies == 1 else jnp.sum(total, 0))
    return total.reshape(*textures, *texels_shape(axes, count)).astype(stored), *of_coords


class Addition(NamedTuple):
    """What threads add to a texel each, in one part of the channels; `exists` says which threads do."""

    texel: jax.Array
    value: jax.Array
    exists: jax.Array


class Plan(NamedTuple):
    """The static side of a kernel.

    Attributes:
        steep: the axes whose coordinates' cotangents are asked for.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
    """

    axes: tuple[Axis, ...]
    grid: Grid
    read_mode: ReadMode
    dtype: np.dtype
    steep: tuple[int, ...]
    dealt: Deal
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    copies: int
    interpret: bool

    def launch(self, cotangent, texels, operands: Sequence[jax.Array], sums: Sums | None) -> list[jax.Array]:
        """The sums at each texel of each copy, if there are `sums`, and the cotangents of coordinates."""
        dealt, parts, (total,) = self.dealt, channels.parts(cotangent.shape[-1]), flat_sizes(self.axes)
        places = math.prod(self.textures) * total
        exact = sums is not None and sums.units is not None

        def kernel(program: jax.Array, *refs: Any) -> None:
            given = iter(refs[int(sums is not None) :])  # the first one is the zeros that `into` started as
            cut = next(given) if exact else None
            source, texture = next(given), next(given) if self.steep else None
            where = [next(given) for _ in operands]
            into, slots = next(given) if sums is not None else None, list(given)
            copy = dealt.thread(program) & (self.copies - 1) if self.copies > 1 else 0

            def write(additions: list[list[Addition]]) -> None:
                """Adds what threads hold to memory."""
                assert sums is not None
                for part, some in zip(parts, additions):
                    row = part._replace(count=sums.lanes, stride=sums.width)
                    for texel, value, exists in some:
                        pieces = [value] if cut is None else Units(cut[0], cut[1]).split(value)
                        for n, piece in enumerate(pieces):
                            half = row._replace(offset=n * sums.lanes)
                            element = half.element(texel + copy * places, exists)
                            channels.add(into, *element, piece, self.interpret)

            def look(number: jax.Array | int, held: list[list[Addition]]) -> list[list[Addition]]:
                """One sample of each thread: what it adds, with what was held for the same texels."""
                index, mask = dealt.sample(program, number)
                loaded = (channels.load(ref, dealt.offset(index, a.shape), mask) for ref, a in zip(where, operands))
                at = self.grid(*loaded)
                offset = dealt.offset(index, cotangent.shape[:-1])
                values = [channels.load(source, *part.element(offset, mask)) for part in parts]
                if self.steep:
                    base = dealt.texture(index, self.read_from) * total
                    along = functools.partial(self.dot, texture, base, values, mask, parts)
                    for ref, slope in zip(slots, slopes(at, self.axes, self.steep, along)):
                        channels.store(ref, dealt.offset(index, dealt.shape), slope, mask)
                if sums is None:
                    return held
                base = dealt.texture(index, self.textures) * total
                found = [self.additions(at, value, base, mask) for value in values]
                if held:
                    pairs = [self.passed_on(*pair) for pair in zip(held, found)]
                    write([old for old, _ in pairs])
                    found = [new for _, new in pairs]
                return found

            if dealt.samples == 1:
                found = look(0, [])
            else:
                found = jax.lax.fori_loop(0, dealt.samples, look, [self.nothing(part.width) for part in parts])
            if sums is not None:
                write(found)

        args = [cotangent, *([texels] if self.steep else []), *operands]
        results = [jax.ShapeDtypeStruct(dealt.shape, self.dtype) for _ in self.steep]
        if sums is not None and sums.units is not None:
            args = [jnp.stack(sums.units), *args]
        if sums is not None:
            zeros = jnp.zeros((self.copies, places, sums.width), cotangent.dtype)
            args, results = [zeros, *args], [jax.ShapeDtypeStruct(zeros.shape, zeros.dtype), *results]
        how = {"in_place": sums is not None, "width": parts[0].width}
        return launch(kernel, dealt, args, results, "texture_pullback", self.interpret, **how)

    def additions(self, at: Coords, value: jax.Array, base: jax.Array, mask: Mask) -> list[Addition]:
        """What one sample of each thread adds to the texel of each tap."""
        everywhere = jnp.ones(value.shape[:1], bool)
        found = []
        for place, part in spread(value, at, self.axes):
            exists = both(mask, place.inside)
            found.append(Addition(base + place.stored[0], part, everywhere if exists is None else exists))
        return found

    def nothing(self, width: int) -> list[Addition]:
        """What threads hold at first, for the taps of one sample."""
        taps = math.prod(len(axis.footprint.weights) for axis in self.axes)
        n = self.dealt.threads
        none = Addition(jnp.zeros(n, jnp.int32), jnp.zeros((n, width), self.dtype), jnp.zeros(n, bool))
        return [none] * taps

    def passed_on(self, held: list[Addition], found: list[Addition]) -> tuple[list[Addition], list[Addition]]:
        """`held` and `found`, with what falls on the same texel moved to the latter.

        Taps of two levels of a mip chain are not compared: they seldom meet.
        """
        walk = len(held) // (2 if self.axes[0].role is Role.LEVEL and len(self.axes[0].footprint.weights) == 2 else 1)
        for k, old in enumerate(held):
            for n in range(k // walk * walk, (k // walk + 1) * walk):
                new = found[n]
                same = old.exists & new.exists & (old.texel == new.texel)
                found[n] = new._replace(value=new.value + jnp.where(same[:, None], old.value, 0))
                old = old._replace(exists=old.exists & ~same)
            held[k] = old
        return held, found

    def dot(self, texture: Any, base, values, mask: Mask, parts, place: Place, path: Path) -> jax.Array:
        """The texel of a tap times the cotangent, summed over all channels: threads + (1,)."""
        del path
        sums = []
        for part, value in zip(parts, values):
            texel = channels.load(texture, *part.element(base + place.stored[0], mask))
            sums.append(jnp.sum(decode(texel, self.read_mode, self.dtype) * value, -1, keepdims=True))
        return only_inside(place, functools.reduce(jnp.add, sums))


def group(axes: tuple[Axis, ...], count: int, samples: int, places: int) -> int:
    """How many samples a thread takes: a power of two; several, if its registers hold the taps of two of them."""
    taps = math.prod(len(axis.footprint.weights) for axis in axes if axis.role is not Role.LEVEL)
    if taps > 4:
        return 1
    limit = WIDE_GROUP if count > VECTOR else CROWD_GROUP if crowded(samples, places) else GROUP
    return power_below(min(limit, max(1, 2 * samples // BUSY)))
