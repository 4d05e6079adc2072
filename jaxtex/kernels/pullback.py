"""The kernel of the adjoint: gradients in texels and in coordinates from one look at taps, texels and cotangent.

What bounds it is the number of atomic additions. So a thread takes a few samples that lie side by side, and adds up
what they give to the same texel before it touches memory; and where many samples share few texels, threads add to
private copies of the texture, which are summed in the end.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..axis import Axis, Role
from ..formats import decode
from ..modes import ReadMode
from ..places import Coords, Place, flat_sizes
from ..resample import Path, counting, only_inside, slopes, spread, texels_shape, weight_bound
from ..sums import Sums, Units, private_copies, row_lanes
from . import channels
from .launch import launch
from .samples import Deal, Mask, deal, samples_shape

TEXELS = -1
TILE = (8, 16)


def splat(values, *coords, axes: tuple[Axis, ...], dtype: np.dtype, deterministic: bool, batch: int, interpret=False):
    """`resample.splat` over `batch` leading axes, on which an operand has their size or 1."""
    static = {"read_mode": ReadMode.ELEMENT, "dtype": values.dtype, "wanted": (TEXELS,), "batch": batch}
    static |= {"deterministic": deterministic, "stored": dtype, "interpret": interpret}
    return adjoint(values, None, *coords, axes=axes, **static)[0]


def pullback(cotangent, texels, *coords, interpret=False, **static):
    """`resample.pullback` over `batch` leading axes, on which an operand has their size or 1."""
    return adjoint(cotangent, texels, *coords, stored=texels.dtype, interpret=interpret, **static)


def adjoint(
    cotangent,
    texels,
    *coords,
    axes: tuple[Axis, ...],
    read_mode: ReadMode,
    dtype: np.dtype,
    stored: np.dtype,
    wanted: tuple[int, ...],
    deterministic: bool,
    batch: int,
    interpret: bool,
) -> tuple[jax.Array, ...]:
    """The cotangents of texels, of dtype `stored`, and of coordinates, in the order of `wanted`."""
    count, steep = cotangent.shape[-1], tuple(k for k in wanted if k != TEXELS)
    read_from = texels.shape[:batch] if steep else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *coords)))
    shape = samples_shape(read_from, [jax.eval_shape(lambda g: g[..., 0], cotangent), *coords])
    dealt = deal(shape, TILE, group(axes, count) if TEXELS in wanted else (1, 1), batch)
    copies = private_copies(math.prod(shape), math.prod(textures) * flat_sizes(axes)[0], count)
    plan = Plan(axes, read_mode, dtype, steep, dealt, read_from, textures, copies, interpret)
    if TEXELS not in wanted:
        return tuple(plan.launch(cotangent, texels, coords, None))
    cut = None
    if deterministic:
        counted, several = counting(axes)
        ones = jnp.ones((*[1] * len(shape), 1), jnp.float32)
        crowd = plan._replace(axes=counted, steep=()).launch(ones, None, coords, Sums(1, 1))[0]
        cut = Units.of(cotangent, weight_bound(axes), jnp.max(crowd) * several)
    sums = Sums(count, row_lanes(count), cut)
    total, *of_coords = plan.launch(cotangent, texels, coords, sums)
    total = sums.joined(total[0] if copies == 1 else jnp.sum(total, 0))
    return total.reshape(*textures, *texels_shape(axes, count)).astype(stored), *of_coords


class Addition(NamedTuple):
    """What a thread adds to a texel, in one part of the channels; `exists` says which threads do."""

    walk: int
    texel: jax.Array
    value: jax.Array
    exists: Mask


class Look(NamedTuple):
    """One sample of each thread: its coordinates, its cotangent by parts of channels, its texture, and if it exists."""

    coords: list[jax.Array]
    values: list[jax.Array]
    texture: jax.Array
    mask: Mask


class Plan(NamedTuple):
    """The static side of a kernel.

    Attributes:
        steep: the axes whose coordinates' cotangents are asked for.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
    """

    axes: tuple[Axis, ...]
    read_mode: ReadMode
    dtype: np.dtype
    steep: tuple[int, ...]
    dealt: Deal
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    copies: int
    interpret: bool

    def launch(self, cotangent, texels, coords: Coords, sums: Sums | None) -> list[jax.Array]:
        """The sums at each texel of each copy, if there are `sums`, and the cotangents of coordinates."""
        dealt, parts, (total,) = self.dealt, channels.parts(cotangent.shape[-1]), flat_sizes(self.axes)
        places = math.prod(self.textures) * total
        exact = sums is not None and sums.units is not None

        def kernel(program: jax.Array, *refs: Any) -> None:
            given = iter(refs[int(sums is not None) :])  # the first one is the zeros that `into` started as
            cut = next(given) if exact else None
            source, texture = next(given), next(given) if self.steep else None
            where = [next(given) for _ in coords]
            into, slots = next(given) if sums is not None else None, list(given)
            looks = []
            for down in range(dealt.group[0]):
                for across in range(dealt.group[1]):
                    index, mask = dealt.sample(program, down, across)
                    at = [channels.load(ref, dealt.offset(index, c.shape), mask) for ref, c in zip(where, coords)]
                    offset = dealt.offset(index, cotangent.shape[:-1])
                    values = [channels.load(source, *part.element(offset, mask)) for part in parts]
                    looks.append(Look(at, values, dealt.texture(index, self.textures) * total, mask))
                    if self.steep:
                        base = dealt.texture(index, self.read_from) * total
                        along = functools.partial(self.dot, texture, base, looks[-1], parts)
                        for ref, slope in zip(slots, slopes(at, self.axes, self.steep, along)):
                            channels.store(ref, dealt.offset(index, dealt.shape), slope, mask)
            if sums is None:
                return
            copy = dealt.thread(program) & (self.copies - 1) if self.copies > 1 else 0
            for k, part in enumerate(parts):
                row = part._replace(count=sums.lanes, stride=sums.width)
                for _, texel, value, exists in self.additions(looks, k):
                    texel = texel + copy * places
                    if cut is None:
                        channels.add(into, *row.element(texel, exists), value, self.interpret)
                        continue
                    for n, piece in enumerate(Units(cut[0], cut[1]).split(value)):
                        half = row._replace(offset=n * sums.lanes)
                        channels.add(into, *half.element(texel, exists), piece, self.interpret)

        args = [cotangent, *([texels] if self.steep else []), *coords]
        results = [jax.ShapeDtypeStruct(dealt.shape, self.dtype) for _ in self.steep]
        if sums is not None and sums.units is not None:
            args = [jnp.stack(sums.units), *args]
        if sums is not None:
            zeros = jnp.zeros((self.copies, places, sums.width), cotangent.dtype)
            args, results = [zeros, *args], [jax.ShapeDtypeStruct(zeros.shape, zeros.dtype), *results]
        in_place = int(sums is not None)
        return launch(kernel, dealt, args, results, "texture_pullback", self.interpret, in_place)

    def additions(self, looks: list[Look], k: int) -> list[Addition]:
        """What a thread adds, in part `k` of the channels: once to each texel."""
        found: list[Addition] = []
        for look in looks:
            spots = spread(look.values[k], look.coords, self.axes)
            found += left_over(
                [Addition(w, look.texture + p.stored[0], v, both(look.mask, p.inside)) for w, p, v in spots], found
            )
        return found

    def dot(self, texture: Any, base: jax.Array, look: Look, parts, place: Place, path: Path) -> jax.Array:
        """The texel of a tap times the cotangent, summed over all channels: threads + (1,)."""
        del path
        sums = []
        for part, value in zip(parts, look.values):
            texel = channels.load(texture, *part.element(base + place.stored[0], look.mask))
            sums.append(jnp.sum(decode(texel, self.read_mode, self.dtype) * value, -1, keepdims=True))
        return only_inside(place, functools.reduce(jnp.add, sums))


def both(mask: Mask, inside: Mask) -> Mask:
    return inside if mask is None else mask if inside is None else mask & inside


def left_over(additions: list[Addition], found: list[Addition]) -> list[Addition]:
    """Adds to those of `found` what falls on the same texel, and returns the rest, on texels of its own."""
    rest = []
    for addition in additions:
        exists = jnp.ones(addition.texel.shape, bool) if addition.exists is None else addition.exists
        for k, other in enumerate(found):
            if other.walk != addition.walk:  # another level of a mip chain
                continue
            same = exists & (other.texel == addition.texel)
            same = same if other.exists is None else same & other.exists
            found[k] = other._replace(value=other.value + jnp.where(same[:, None], addition.value, 0))
            exists = exists & ~same
        rest.append(addition._replace(exists=exists) if found else addition)
    return rest


def group(axes: tuple[Axis, ...], count: int) -> tuple[int, int]:
    """How many samples a thread takes, down and across: as many as its registers hold."""
    taps = math.prod(len(axis.footprint.weights) for axis in axes if axis.role is not Role.LEVEL)
    return (2, 1) if taps <= 4 and count <= 4 else (1, 1)
