"""Accesses to sharded textures: how texels and samples are sharded, and the method that brings them together.

Under explicit mesh axes the type of an array says how it is sharded. If one axis of a texture is sharded, samples
travel to texels, provided that this moves less data than the whole texture; otherwise each device receives the whole
texture. A caller may choose the method, see `jaxtex.sharded`.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import METHOD, REPORT
from ..._jax.indexing import explicit_sharding, names_of, parts_of
from ..describe.axis import Role
from ..describe.levels import Cut
from ..describe.operands import Stack
from ..describe.spec import AxisTaps, Combination, Read
from .partition import Partition

MEBIBYTE = 2**20


# Methods


@dataclasses.dataclass(frozen=True)
class Halo:
    """Each device receives the texels next to its own from its neighbors.

    Attributes:
        reach: the number of texels on each side. Samples may read so many texels beyond those of their device.
    """

    reach: int


@dataclasses.dataclass(frozen=True)
class Routing:
    """Samples travel to the device that stores their texels, and values travel back.

    Attributes:
        slack: the largest number of samples that a device sends to another one in a round, as a multiple of an equal
            share. Further rounds send the remaining samples.
    """

    slack: float = 1.1


@dataclasses.dataclass(frozen=True)
class Whole:
    """Each device receives the whole texture."""


Method = Halo | Routing | Whole


# Accesses


class Samples(NamedTuple):
    """How the samples of an access are sharded.

    Attributes:
        shape: the shape of all samples.
        names: the mesh axes along which each sample axis is sharded.
        given: the mesh axes along which the caller's operands are sharded, for each sample axis.
        padding: the axis along which samples are added, so that parts have equal sizes, and their number.
    """

    shape: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    padding: tuple[int, int]

    @classmethod
    def of(cls, read: Read, partition: Partition, values: jax.Array | None) -> "Samples | None":
        """The sharding of samples that follows their operands and values, and uses all devices of the texture.

        If need be, one more sample axis is sharded, but never an axis that is summed. `None` if there is no such axis.
        """
        # The mesh axes along which operands and values are sharded already.
        shape, spec = read.spec.samples_shape(read.operands), read.spec
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in (*read.operands, *(() if values is None else (values,))):
            for d, along in enumerate(names_of(explicit_sharding(a))[: len(shape)]):
                if along and a.shape[d] > 1:
                    names[d] = along
        used, summed = {name for along in names for name in along}, [len(shape) + d for d in spec.summed_axes]
        if any(names[d] for d in summed):
            return None
        # Samples must be divided among all devices of the texture, along one more axis if need be.
        if used.issuperset(partition.names):
            return cls(shape, tuple(names), tuple(names), (0, 0))
        free = [d for d, along in enumerate(names) if not along and d not in summed]
        if used & set(partition.names) or not free:
            return None
        # If samples have one axis for each axis of the texture, shard the one along the partitioned axis.
        in_space = len(shape) == sum(axis.role is Role.SPACE for axis in spec.axes)
        dimension, parts = partition.cut.dimension if in_space else -1, partition.parts
        chosen = max(free, key=lambda d: (d == dimension, shape[d] % parts == 0, shape[d]))
        given, names[chosen] = tuple(names), partition.names
        return cls(shape, tuple(names), given, (chosen, -shape[chosen] % parts))

    def count(self, mesh: Mesh | AbstractMesh) -> int:
        """The number of samples on a device."""
        parts = math.prod(mesh.shape[name] for along in self.names for name in along)
        return -(-math.prod(self.shape) // parts)

    def spec_of(self, shape: Sequence[int]) -> P:
        """The sharding of an array of `shape`, which broadcasts to the samples."""
        return P(*(names if n > 1 and names else None for n, names in zip(shape, self.names)))

    def spec_of_stacked(self, a: jax.Array, stack: Stack | None) -> P:
        """The sharding of an operand, which may hold several numbers of each sample."""
        if stack is None:
            return self.spec_of(a.shape)
        return P(*stack.with_axis(tuple(self.spec_of(stack.without_axis(a.shape))), None))

    def wanted(self) -> jax.Array:
        """The mask of samples that are not padding; it broadcasts to the samples."""
        axis, count = self.padding
        sizes = [n + count if d == axis else 1 for d, n in enumerate(self.shape)]
        return jnp.arange(sizes[axis], dtype=jnp.int32).reshape(sizes) < self.shape[axis]

    def values_spec(self) -> P:
        """The sharding of the samples' values, S + (C,); channels are not sharded."""
        return P(*(names or None for names in self.names), None)

    def padded(self, a: jax.Array) -> jax.Array:
        """An operand, padded with copies of its last sample."""
        axis, count = self.padding
        if count == 0 or a.shape[axis] == 1:
            return a
        return jnp.pad(a, [(0, count if d == axis else 0) for d in range(a.ndim)], mode="edge")


class ShardedAccess(NamedTuple):
    """A partitioned texture, and the samples that read it or write it.

    Attributes:
        texels: the shape, dtype and sharding of the texture.
        read: the read, with stacked operands split, so that each operand holds one number of each sample.
        stacked: the read as the caller gave it.
        axis_taps: finds the taps of one axis, as in `TexelReader`.
    """

    texels: jax.ShapeDtypeStruct
    read: Read
    stacked: Read
    partition: Partition
    samples: Samples
    axis_taps: AxisTaps | None = None

    @classmethod
    def of(
        cls,
        texels: jax.ShapeDtypeStruct,
        read: Read,
        values: jax.Array | None = None,
        cut: Cut | None = None,
        axis_taps: AxisTaps | None = None,
    ) -> "ShardedAccess | None":
        """The access, or `None` unless one axis of the texture is partitioned and samples can be sharded likewise.

        Args:
            values: the values of a write or a splat; otherwise `None`.
            cut: how the levels of a mip chain are partitioned.
        """
        # Without stacks, the axes of an operand are the axes of the samples.
        numbers = Read(read.spec.replace(stacks=()), tuple(read.spec.numbers(read.operands)))
        partition = Partition.of(numbers.spec.axes, texels, cut)
        samples = None if partition is None else Samples.of(numbers, partition, values)
        if partition is None or samples is None:
            return None
        return cls(texels, numbers, read, partition, samples, axis_taps)

    @property
    def mesh(self) -> Mesh | AbstractMesh:
        """The mesh of the texture."""
        return cast(NamedSharding, self.texels.sharding).mesh

    @property
    def names(self) -> tuple[str, ...]:
        """The mesh axes along which samples or texels are sharded."""
        return tuple({name: None for along in (*self.samples.names, self.partition.names) for name in along})

    # Operands as each device gets them

    def sharded_numbers(self) -> tuple[list[jax.Array], list[P]]:
        """The operands of `read`, padded and sharded as the samples are, and their shardings."""
        return self.resharded(Read(self.read.spec, tuple(map(self.samples.padded, self.read.operands))))

    def resharded(self, read: Read) -> tuple[list[jax.Array], list[P]]:
        """The operands of a read, sharded as the samples are, and their shardings."""
        specs = [self.samples.spec_of_stacked(a, read.spec.stack_of(k)) for k, a in enumerate(read.operands)]
        return [jax.reshard(a, NamedSharding(self.mesh, s)) for a, s in zip(read.operands, specs)], specs

    # The method

    @property
    def texel_bytes(self) -> int:
        """The bytes of the whole texture."""
        return math.prod(self.texels.shape) * self.texels.dtype.itemsize

    @property
    def sample_bytes(self) -> int:
        """The bytes of the coordinates and the values of one sample, for all of its reads."""
        spec = self.read.spec
        return spec.num_reads * (4 * len(spec.axes) + spec.dtype.itemsize * self.texels.shape[-1])

    @property
    def can_be_routed(self) -> bool:
        """Whether routing is possible: the owners of a sample's taps are known, and their partial sums can be added."""
        splits_over_taps = self.axis_taps is None and self.read.spec.combination is Combination.BLEND
        return self.partition.can_route and (splits_over_taps or not self.partition.has_several_owners)

    @property
    def num_samples(self) -> int:
        """The number of samples on a device."""
        return self.samples.count(self.mesh)

    def capacity(self, slack: float) -> int:
        """The largest number of samples that a device sends to another one in a round."""
        return min(self.num_samples, max(1, math.ceil(slack * self.num_samples / self.partition.parts)))

    def method(self) -> Method:
        """The caller's method, if that is possible; otherwise the method that moves less data."""
        parts, chosen = self.partition.parts, METHOD.value
        if self.read.spec.expected is not None:
            return Whole()  # derivatives of drawn taps need another read, see `rules.primitives`
        # A halo as wide as the texture is the whole texture.
        if isinstance(chosen, Halo):
            return Whole() if self.partition.reaches_all(chosen.reach) else chosen
        # Without a choice, routing is taken where samples are fewer bytes than texels.
        if chosen is None and self.num_samples * self.sample_bytes < self.texel_bytes * (parts - 1) // parts:
            chosen = Routing()
        return chosen if isinstance(chosen, Routing) and self.can_be_routed else Whole()

    def report(self, method: Method) -> None:
        """Adds a line to the caller's report: the data that each device receives and holds."""
        partition, row = self.partition, self.texel_bytes / self.partition.size
        if isinstance(method, Whole):
            report_whole(self.texels)
            return
        if isinstance(method, Routing):
            reach = partition.reach_of_filter
            of_one = self.capacity(method.slack) * self.sample_bytes
            sent = (partition.parts - 1) * of_one
            buffers = f" and {partition.parts * of_one / MEBIBYTE:.3g} MiB of samples a round"
        else:
            reach, sent, buffers = method.reach, 0, ""
        # What a device receives: its halo and what the others send. What it holds: its part and the halo.
        moved, held = 2 * reach * row + sent, (partition.own + 2 * reach) * row
        moves = f"receives {moved / MEBIBYTE:.3g} MiB, holds {held / MEBIBYTE:.3g} MiB of texels{buffers}"
        report(self.texels, f"{method}; {moves}")


# Reports


def struct_of(texels: jax.Array) -> jax.ShapeDtypeStruct:
    """The shape, the dtype and the explicit sharding of texels."""
    return jax.ShapeDtypeStruct(texels.shape, texels.dtype, sharding=explicit_sharding(texels))


def report(texels: jax.ShapeDtypeStruct, line: str) -> None:
    """Adds a line about an access to the caller's report, if there is one."""
    if REPORT.value is None:
        return
    sharding = cast(NamedSharding, texels.sharding)
    parts = {d: parts_of(sharding, names) for d, names in enumerate(names_of(sharding)) if names}
    axes = f"{'axis' if len(parts) == 1 else 'axes'} {' and '.join(map(str, parts))}"
    counts = " and ".join(map(str, parts.values()))
    of = f"texels {texels.shape} {texels.dtype}, {axes} in {counts} part{'' if counts == '1' else 's'}"
    REPORT.value.lines.append(f"{of}: {line}")


def report_whole(texels: jax.ShapeDtypeStruct) -> None:
    """Adds a line to the caller's report for an access in which each device receives the whole texture."""
    sharding, held = cast(NamedSharding, texels.sharding), math.prod(texels.shape) * texels.dtype.itemsize / MEBIBYTE
    own = held / math.prod(parts_of(sharding, names) for names in names_of(sharding))
    report(texels, f"{Whole()}; receives {held - own:.3g} MiB, holds {held:.3g} MiB of texels")
