"""The accesses to a sharded texture: where its texels and the samples lie, and the method that lets them meet.

Under explicit mesh axes the type of an array says how it is sharded. Where one axis of a texture is, samples travel to
texels if that moves less than the whole texture; if not, each device receives all of it. A caller may choose the
method, see `jaxtex.sharded`.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import METHOD
from ..._jax.indexing import explicit_sharding
from ...texture import Texture, packed
from ..describe.axis import Role
from ..describe.levels import Cut, divided_levels, joined_levels
from ..describe.operands import Stack
from ..describe.spec import Combination, ReadSpec
from ..walk.taps import taps
from ..walk.texel_walk import AxisTaps
from .method import Halo, Method, Routing, Whole, report
from .partition import Partition, names_of, parts_of

MEBIBYTE = 2**20


class Samples(NamedTuple):
    """How the samples of an access are sharded.

    Attributes:
        shape: the shape of all samples.
        names: the mesh axes along which each of their axes is sharded.
        given: the same for the operands as they were given.
        padding: the axis along which samples are added, so that parts are equal, and their number.
    """

    shape: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    padding: tuple[int, int]

    @classmethod
    def of(
        cls, operands: Sequence[jax.Array], spec: ReadSpec, partition: Partition, values: jax.Array | None = None
    ) -> "Samples | None":
        """Samples that are sharded as their operands and values are, and over the devices of the texture.

        If need be, one more of their axes is sharded, but none along which samples are summed.
        """
        shape = np.broadcast_shapes(*spec.sample_shapes(operands))
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in (*operands, *(() if values is None else (values,))):
            for d, along in enumerate(names_of(explicit_sharding(a))[: len(shape)]):
                if along and a.shape[d] > 1:
                    names[d] = along
        used, summed = {name for along in names for name in along}, [len(shape) + d for d in spec.summed_axes]
        if any(names[d] for d in summed):
            return None
        if used.issuperset(partition.names):
            return cls(shape, tuple(names), tuple(names), (0, 0))
        free = [d for d, along in enumerate(names) if not along and d not in summed]
        if used & set(partition.names) or not free:
            return None
        # The axis of the samples that lies along that of the texture, if they have one for each.
        in_space = len(shape) == sum(axis.role is Role.SPACE for axis in spec.axes)
        dimension, parts = partition.cut.dimension if in_space else -1, partition.parts
        chosen = max(free, key=lambda d: (d == dimension, shape[d] % parts == 0, shape[d]))
        given, names[chosen] = tuple(names), partition.names
        return cls(shape, tuple(names), given, (chosen, -shape[chosen] % parts))

    def count(self, mesh: Any) -> int:
        """The number of samples of a device."""
        parts = math.prod(mesh.shape[name] for along in self.names for name in along)
        return -(-math.prod(self.shape) // parts)

    def spec_of(self, shape: Sequence[int]) -> P:
        """The sharding of an array of that shape, which broadcasts to the samples."""
        return P(*(names if n > 1 and names else None for n, names in zip(shape, self.names)))

    def spec_of_stacked(self, a: jax.Array, stack: Stack | None) -> P:
        """The sharding of an operand, which may hold several numbers of each sample."""
        if stack is None:
            return self.spec_of(a.shape)
        entries = list(self.spec_of(stack.without_axis(a.shape)))
        entries.insert(a.ndim + stack.axis, None)
        return P(*entries)

    def wanted(self) -> jax.Array:
        """Whether each sample was given, not added, as an array that broadcasts to the samples."""
        axis, count = self.padding
        sizes = [n + count if d == axis else 1 for d, n in enumerate(self.shape)]
        return jnp.arange(sizes[axis], dtype=jnp.int32).reshape(sizes) < self.shape[axis]

    def values_spec(self) -> P:
        """The sharding of values of the samples, whose channels are not sharded."""
        return P(*(names or None for names in self.names), None)

    def padded(self, a: jax.Array) -> jax.Array:
        """An operand with the samples that are added."""
        axis, count = self.padding
        if count == 0 or a.shape[axis] == 1:
            return a
        return jnp.pad(a, [(0, count if d == axis else 0) for d in range(a.ndim)], mode="edge")


class ShardedAccess(NamedTuple):
    """A partitioned texture, and the samples that read it or write it.

    Attributes:
        texels: the shape, dtype and sharding of the texture.
        operands, spec: the read, where each operand holds one number of each sample.
        partition: how the texture is partitioned.
        samples: how the samples are sharded.
        stacked, stacked_spec: `operands` and `spec` as they were given.
        splits_over_taps: whether a read is the sum of reads of some of its taps and of the others.
        axis_taps: finds the taps of one axis, as the read does.
    """

    texels: jax.ShapeDtypeStruct
    operands: tuple[jax.Array, ...]
    spec: ReadSpec
    partition: Partition
    samples: Samples
    stacked: tuple[jax.Array, ...]
    stacked_spec: ReadSpec
    splits_over_taps: bool = True
    axis_taps: AxisTaps = taps

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        dtype: Any,
        sharding: NamedSharding,
        operands: Sequence[jax.Array],
        spec: ReadSpec,
        values: jax.Array | None = None,
        cut: Cut | None = None,
    ) -> "ShardedAccess | None":
        """The access to a texture that is partitioned along one axis, by samples that can be sharded over its devices.

        Args:
            cut: how the levels of a chain are cut.
        """
        stacked = tuple(operands), spec
        # Numbers by themselves, whose axes are those of the samples.
        operands, spec = tuple(spec.numbers(operands)), spec.replace(stacks=())
        partition = Partition.of(spec.axes, shape, sharding, cut)
        samples = None if partition is None else Samples.of(operands, spec, partition, values)
        if partition is None or samples is None:
            return None
        texels = jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=sharding)
        return cls(texels, operands, spec, partition, samples, *stacked)

    @property
    def mesh(self) -> Any:
        return self.texels.sharding.mesh

    @property
    def names(self) -> tuple[str, ...]:
        """The mesh axes along which samples or texels are sharded."""
        return tuple({name: None for along in (*self.samples.names, self.partition.names) for name in along})

    # Operands as each device gets them

    def sharded_numbers(self) -> tuple[list[jax.Array], list[P]]:
        """The numbers of the samples, those that are added among them, and the sharding of each."""
        return self.resharded([self.samples.padded(a) for a in self.operands], self.spec)

    def sharded_stacks(self) -> tuple[list[jax.Array], list[P]]:
        """The operands as they were given, without added samples, and the sharding of each."""
        return self.resharded(self.stacked, self.stacked_spec)

    def resharded(self, operands: Sequence[jax.Array], spec: ReadSpec) -> tuple[list[jax.Array], list[P]]:
        """Operands that are sharded as the samples are."""
        specs = [self.samples.spec_of_stacked(a, spec.stack_of(k)) for k, a in enumerate(operands)]
        return [jax.reshard(a, NamedSharding(self.mesh, s)) for a, s in zip(operands, specs)], specs

    # The method

    @property
    def texel_bytes(self) -> int:
        """The bytes of the whole texture."""
        return math.prod(self.texels.shape) * self.texels.dtype.itemsize

    @property
    def sample_bytes(self) -> int:
        """The bytes of the coordinates and the values of the reads of a sample."""
        return self.spec.num_reads * (4 * len(self.spec.axes) + self.spec.dtype.itemsize * self.texels.shape[-1])

    @property
    def can_be_routed(self) -> bool:
        """Whether the devices are known that store the taps of a sample, and their sums add up to its value."""
        splits_over_taps = self.splits_over_taps and self.spec.combination is Combination.BLEND
        return self.partition.can_route and (splits_over_taps or not self.partition.has_several_owners)

    @property
    def num_samples(self) -> int:
        """The number of samples of a device."""
        return self.samples.count(self.mesh)

    def capacity(self, slack: float) -> int:
        """The number of samples that a device sends to another one at once, at most."""
        return min(self.num_samples, max(1, math.ceil(slack * self.num_samples / self.partition.parts)))

    def method(self) -> Method:
        """The method that the caller has chosen, if that can serve; or else the one that moves less."""
        parts, chosen = self.partition.parts, METHOD.value
        if self.spec.expected is not None:
            return Whole()  # its derivative is that of another read
        if isinstance(chosen, Halo):
            return Whole() if self.partition.reaches_all(chosen.reach) else chosen
        if chosen is None and self.num_samples * self.sample_bytes < self.texel_bytes * (parts - 1) // parts:
            chosen = Routing()
        return chosen if isinstance(chosen, Routing) and self.can_be_routed else Whole()

    def report(self, method: Method) -> None:
        """Adds what moves to each device, and what it holds, to the report of a caller."""
        partition, row, texels = self.partition, self.texel_bytes / self.partition.size, self.texels
        of = texels.shape, texels.dtype, texels.sharding
        if isinstance(method, Whole):
            report_whole(*of)
            return
        if isinstance(method, Routing):
            reach = partition.reach_of_filter
            of_one = self.capacity(method.slack) * self.sample_bytes
            sent = (partition.parts - 1) * of_one
            buffers = f" and {partition.parts * of_one / MEBIBYTE:.3g} MiB of samples a round"
        else:
            reach, sent, buffers = method.reach, 0, ""
        moved, held = 2 * reach * row + sent, (partition.own + 2 * reach) * row
        moves = f"receives {moved / MEBIBYTE:.3g} MiB, holds {held / MEBIBYTE:.3g} MiB of texels{buffers}"
        report(f"{described(*of)}: {method}; {moves}")


def described(shape: Sequence[int], dtype: Any, sharding: NamedSharding) -> str:
    """The line of a report that says what a texture is, and how it is sharded."""
    parts = {d: parts_of(sharding, names) for d, names in enumerate(names_of(sharding)) if names}
    axes = f"{'axis' if len(parts) == 1 else 'axes'} {' and '.join(map(str, parts))}"
    counts = " and ".join(map(str, parts.values()))
    return f"texels {tuple(shape)} {dtype}, {axes} in {counts} part{'' if counts == '1' else 's'}"


def report_whole(shape: Sequence[int], dtype: Any, sharding: NamedSharding) -> None:
    """Adds to the report of a caller what moves where each device receives a whole texture."""
    held = math.prod(shape) * np.dtype(dtype).itemsize / MEBIBYTE
    own = held / math.prod(parts_of(sharding, names) for names in names_of(sharding))
    moves = f"receives {held - own:.3g} MiB, holds {held:.3g} MiB of texels"
    report(f"{described(shape, dtype, sharding)}: {Whole()}; {moves}")


# Accesses that take the whole chain


def without_cut(texture: Texture) -> Texture:
    """The texture with the levels of its chain one after the other, not cut for several devices."""
    if texture.cut is None:
        return texture
    levels = joined_levels(texture.texels, texture.level_shapes or (), texture.cut)
    sharding = jax.typeof(texture.texels).sharding
    if any(sharding.spec):
        whole = NamedSharding(sharding.mesh, P())
        levels = [jax.reshard(level, whole) for level in levels]
    return packed(texture.kind, levels, texture.border_color)


def with_cut(texture: Texture, like: Texture) -> Texture:
    """The texture with the levels of its chain cut for several devices as those of `like` are."""
    if like.cut is None:
        return texture
    texels, sharding = divided_levels(texture.levels, like.cut), jax.typeof(like.texels).sharding
    if any(sharding.spec):
        texels = jax.reshard(texels, sharding)
    return dataclasses.replace(texture, texels=texels, cut=like.cut)
