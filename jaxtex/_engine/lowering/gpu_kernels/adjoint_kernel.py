"""The kernel of the adjoint: texel and coordinate gradients from one read of taps, texels and cotangent.

The number of atomic additions bounds its speed. So a thread takes a few samples that lie side by side, and adds up
their contributions to the same texel before it touches memory; and where many samples share few texels, threads add to
private copies of the texture, which are summed at the end.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...axis import Axis, Role
from ...decoding import decode
from ...operators import Path, contributions, counting_spec, slopes, units_of, zero_outside
from ...reproducible_sum import TexelSums, Units
from ...spec import TEXELS, Coords, ReadSpec, Wrt
from ...texel_walk import TexelAddress, both, flat_sizes, texels_shape
from ..accumulation import is_crowded, num_private_copies, power_of_two_below, row_lanes
from .channels import Channels, channel_parts
from .launch import COMPILED, VECTOR, Launcher, load, store
from .tiling import Mask, Tiling, samples_shape, tile_samples

# Threads down and across, for texels of few channels and of many.
TILE, WIDE_TILE = (8, 16), (4, 8)
# How many samples a thread takes at most: of few channels, of many, and where samples crowd.
MAX_SAMPLES, MAX_WIDE_SAMPLES, MAX_CROWDED_SAMPLES = 8, 2, 16
# So many samples keep a GPU busy with two samples per thread.
BUSY = 2**18


def splat(
    values: jax.Array, *operands: jax.Array, spec: ReadSpec, batch: int, launcher: Launcher = COMPILED
) -> jax.Array:
    """`operators.splat` over `batch` leading axes, on which an operand has their size or 1."""
    adjoint_spec = spec.adjoint(values.dtype)
    return adjoint(values, None, operands, adjoint_spec, (TEXELS,), spec.dtype, batch, launcher)[0]


def pullback(
    cotangent: jax.Array,
    texels: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    batch: int,
    launcher: Launcher = COMPILED,
) -> tuple[jax.Array, ...]:
    """`operators.pullback` over `batch` leading axes, on which an operand has their size or 1."""
    return adjoint(cotangent, texels, operands, spec, wrt, texels.dtype, batch, launcher)


def adjoint(
    cotangent: jax.Array,
    texels: Any,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    wrt: Wrt,
    texel_dtype: np.dtype,
    batch: int,
    launcher: Launcher,
) -> tuple[jax.Array, ...]:
    """The cotangents of texels, of `texel_dtype`, and of coordinates, in the order of `wrt`."""
    channels, coordinate_axes = cotangent.shape[-1], tuple(k for k in wrt if k != TEXELS)
    read_from = texels.shape[:batch] if coordinate_axes else (1,) * batch
    textures = np.broadcast_shapes(read_from, *(a.shape[:batch] for a in (cotangent, *operands)))
    shape = samples_shape(read_from, [jax.eval_shape(lambda g: g[..., 0], cotangent), *operands])
    tile = TILE if channels <= VECTOR else WIDE_TILE
    samples, num_texels = math.prod(shape), math.prod(textures) * flat_sizes(spec.axes)[0]
    per_thread = samples_per_thread(spec.axes, channels, samples, num_texels) if TEXELS in wrt else 1
    tiling = tile_samples(shape, tile, per_thread, batch)
    copies = num_private_copies(samples, num_texels, channels)
    plan = AdjointPlan(spec, coordinate_axes, tiling, read_from, textures, copies, launcher)
    if TEXELS not in wrt:
        return tuple(plan.run(cotangent, texels, operands, None))
    units = None
    if spec.deterministic:
        ones = jnp.ones((*[1] * len(shape), 1), jnp.float32)
        counting = lambda axes: plan._replace(spec=counting_spec(axes, spec.grid), coordinate_axes=())
        units = units_of(
            cotangent, spec.axes, lambda axes: counting(axes).run(ones, None, operands, TexelSums(1, 1))[0]
        )
    sums = TexelSums(channels, row_lanes(channels), units)
    total, *of_coords = plan.run(cotangent, texels, operands, sums)
    total = sums.joined(total[0] if copies == 1 else jnp.sum(total, 0))
    return total.reshape(*textures, *texels_shape(spec.axes, channels)).astype(texel_dtype), *of_coords


class Addition(NamedTuple):
    """What each thread adds to a texel, in one part of the channels; `exists` masks the threads that do."""

    texel: jax.Array
    value: jax.Array
    exists: jax.Array


# Of each part of the channels, the additions of a sample.
Additions = list[list[Addition]]


class References(NamedTuple):
    """The arguments and results of the kernel, by name; `None` where a kernel has none.

    Attributes:
        totals: the sums at each texel of each copy.
        units: of reproducible sums, coarse and fine.
        slopes: of the coordinates.
    """

    totals: Any
    units: Any
    cotangent: Any
    texels: Any
    operands: tuple[Any, ...]
    slopes: tuple[Any, ...]


class AdjointPlan(NamedTuple):
    """The static side of a kernel.

    Attributes:
        coordinate_axes: the axes whose coordinates have a cotangent.
        read_from, textures: the batch axes of the textures that are read, and of those that are added to.
        copies: the number of private copies of the sums.
    """

    spec: ReadSpec
    coordinate_axes: tuple[int, ...]
    tiling: Tiling
    read_from: tuple[int, ...]
    textures: tuple[int, ...]
    copies: int
    launcher: Launcher

    @property
    def texels_per_texture(self) -> int:
        return flat_sizes(self.spec.axes)[0]

    def run(
        self, cotangent: jax.Array, texels: Any, operands: Sequence[jax.Array], sums: TexelSums | None
    ) -> list[jax.Array]:
        """The sums at each texel of each copy, if there are `sums`, and the cotangents of coordinates."""
        parts = channel_parts(cotangent.shape[-1])
        exact = sums is not None and sums.units is not None
        work = SampleWork(self, cotangent.shape, tuple(a.shape for a in operands), parts, sums)

        def kernel(program: jax.Array, *refs: Any) -> None:
            work.of_program(program, self.unpacked(refs, len(operands), sums is not None, exact))

        args = [cotangent, *([texels] if self.coordinate_axes else []), *operands]
        results = [jax.ShapeDtypeStruct(self.tiling.shape, self.spec.dtype) for _ in self.coordinate_axes]
        if sums is not None and sums.units is not None:
            args = [jnp.stack(sums.units), *args]
        if sums is not None:
            num_texels = math.prod(self.textures) * self.texels_per_texture
            zeros = jnp.zeros((self.copies, num_texels, sums.width), cotangent.dtype)
            args, results = [zeros, *args], [jax.ShapeDtypeStruct(zeros.shape, zeros.dtype), *results]
        return self.launcher.run(
            kernel, self.tiling, args, results, "texture_pullback", in_place=sums is not None, width=parts[0].width
        )

    def unpacked(self, refs: tuple[Any, ...], num_operands: int, has_sums: bool, exact: bool) -> References:
        """The references of a kernel by name, in the order of `run`."""
        given = iter(refs[int(has_sums) :])  # the first one is the zeros that `totals` started as
        units = next(given) if exact else None
        cotangent, texels = next(given), next(given) if self.coordinate_axes else None
        operands = tuple(next(given) for _ in range(num_operands))
        totals = next(given) if has_sums else None
        return References(totals, units, cotangent, texels, operands, tuple(given))


class SampleWork(NamedTuple):
    """The work of a thread: sample after sample, then a flush of the additions that it holds."""

    plan: AdjointPlan
    cotangent_shape: tuple[int, ...]
    operand_shapes: tuple[tuple[int, ...], ...]
    parts: list[Channels]
    sums: TexelSums | None

    def of_program(self, program: jax.Array, refs: References) -> None:
        tiling = self.plan.tiling
        copy = tiling.thread(program) & (self.plan.copies - 1) if self.plan.copies > 1 else 0
        of_sample = functools.partial(self.of_sample, program, refs, copy)
        if tiling.num_samples == 1:
            held = of_sample(0, [])
        else:
            held = jax.lax.fori_loop(0, tiling.num_samples, of_sample, [self.nothing(p.width) for p in self.parts])
        self.flush(refs, copy, held)

    def of_sample(self, program, refs: References, copy, number: jax.Array | int, held: Additions) -> Additions:
        """One sample of each thread: the additions that remain to be flushed, with those held for the same texels."""
        plan, tiling, spec = self.plan, self.plan.tiling, self.plan.spec
        index, mask = tiling.sample(program, number)
        loaded = (load(ref, tiling.offset(index, s), mask) for ref, s in zip(refs.operands, self.operand_shapes))
        coords = spec.grid(*loaded)
        offset = tiling.offset(index, self.cotangent_shape[:-1])
        values = [load(refs.cotangent, *part.element(offset, mask)) for part in self.parts]
        if plan.coordinate_axes:
            base = tiling.texture(index, plan.read_from) * plan.texels_per_texture
            dot = functools.partial(self.texel_times_cotangent, refs.texels, base, values, mask)
            for ref, slope in zip(refs.slopes, slopes(coords, spec.axes, plan.coordinate_axes, dot)):
                store(ref, tiling.offset(index, tiling.shape), slope, mask)
        if self.sums is None:
            return held
        base = tiling.texture(index, plan.textures) * plan.texels_per_texture
        found = [self.additions(coords, value, base, mask) for value in values]
        if held:
            pairs = [passed_on(*pair, spec.axes) for pair in zip(held, found)]
            self.flush(refs, copy, [old for old, _ in pairs])
            found = [new for _, new in pairs]
        return found

    def flush(self, refs: References, copy, held: Additions) -> None:
        """Adds the additions that threads hold to memory."""
        if self.sums is None:
            return
        num_texels = math.prod(self.plan.textures) * self.plan.texels_per_texture
        for part, some in zip(self.parts, held):
            row = part._replace(total=self.sums.lanes, stride=self.sums.width)
            for texel, value, exists in some:
                units = None if refs.units is None else Units(refs.units[0], refs.units[1])
                pieces = [value] if units is None else units.split(value)
                for n, piece in enumerate(pieces):
                    half = row._replace(offset=n * self.sums.lanes)
                    self.plan.launcher.add(refs.totals, *half.element(texel + copy * num_texels, exists), piece)

    def additions(self, coords: Coords, value: jax.Array, base: jax.Array, mask: Mask) -> list[Addition]:
        """What one sample of each thread adds to the texel of each tap."""
        everywhere = jnp.ones(value.shape[:1], bool)
        found = []
        for address, part in contributions(value, coords, self.plan.spec.axes):
            exists = both(mask, address.inside)
            found.append(Addition(base + address.flat_index[0], part, everywhere if exists is None else exists))
        return found

    def nothing(self, width: int) -> list[Addition]:
        """The additions that threads hold before their first sample: none."""
        taps = math.prod(axis.kernel.num_taps for axis in self.plan.spec.axes)
        n = self.plan.tiling.num_threads
        none = Addition(jnp.zeros(n, jnp.int32), jnp.zeros((n, width), self.plan.spec.dtype), jnp.zeros(n, bool))
        return [none] * taps

    def texel_times_cotangent(
        self, texels: Any, base: jax.Array, values: list[jax.Array], mask: Mask, address: TexelAddress, path: Path
    ) -> jax.Array:
        """The texel of a tap times the cotangent, summed over all channels: threads + (1,)."""
        del path
        spec, sums = self.plan.spec, []
        for part, value in zip(self.parts, values):
            texel = load(texels, *part.element(base + address.flat_index[0], mask))
            sums.append(jnp.sum(decode(texel, spec.decoding, spec.dtype) * value, -1, keepdims=True))
        return zero_outside(address, functools.reduce(jnp.add, sums))


def passed_on(
    held: list[Addition], found: list[Addition], axes: tuple[Axis, ...]
) -> tuple[list[Addition], list[Addition]]:
    """`held` and `found`, with additions to the same texel moved to `found`.

    Taps of two levels of a mip chain are not compared: they seldom meet.
    """
    walk = len(held) // (axes[0].kernel.num_taps if axes[0].role is Role.LEVEL else 1)
    for k, old in enumerate(held):
        for n in range(k // walk * walk, (k // walk + 1) * walk):
            new = found[n]
            same = old.exists & new.exists & (old.texel == new.texel)
            found[n] = new._replace(value=new.value + jnp.where(same[:, None], old.value, 0))
            old = old._replace(exists=old.exists & ~same)
        held[k] = old
    return held, found


def samples_per_thread(axes: tuple[Axis, ...], channels: int, samples: int, texels: int) -> int:
    """How many samples a thread takes: a power of two; several, if its registers hold the taps of two of them."""
    taps = math.prod(axis.kernel.num_taps for axis in axes if axis.role is not Role.LEVEL)
    if taps > 4:
        return 1
    crowded = MAX_CROWDED_SAMPLES if is_crowded(samples, texels) else MAX_SAMPLES
    limit = MAX_WIDE_SAMPLES if channels > VECTOR else crowded
    return power_of_two_below(min(limit, max(1, 2 * samples // BUSY)))
