"""The accesses to a sharded texture: where its texels and the samples lie, and the method that lets them meet.

Under explicit mesh axes the type of an array says how it is sharded. Where one axis of a texture is, samples travel to
texels if that moves less than the whole texture; if not, each device receives all of it. A caller may choose the
method, see `jaxtex.sharded`.
"""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
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
        reach: the number of texels on each side. Samples may reach so far beyond the texels of their device.
    """

    reach: int


@dataclasses.dataclass(frozen=True)
class Routing:
    """Samples travel to the device that stores their texels, and values travel back.

    Attributes:
        slack: how many samples a device sends to each of the other devices in one round, at most, as a multiple of an
            equal share. Further rounds send the rest.
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
        names: the mesh axes along which each of their axes is sharded.
        given: those mesh axes for the operands as they were given.
        padding: the axis along which samples are added, so that parts are equal, and their number.
    """

    shape: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    padding: tuple[int, int]

    @classmethod
    def of(cls, read: Read, partition: Partition, values: jax.Array | None) -> "Samples | None":
        """Samples that are sharded as their operands and values are, and over the devices of the texture.

        If need be, one more of their axes is sharded, but none along which samples are summed.
        """
        shape, spec = np.broadcast_shapes(*read.spec.sample_shapes(read.operands)), read.spec
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in (*read.operands, *(() if values is None else (values,))):
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
        # Where samples have an axis for each axis of the texture, the one along the partitioned axis.
        in_space = len(shape) == sum(axis.role is Role.SPACE for axis in spec.axes)
        dimension, parts = partition.cut.dimension if in_space else -1, partition.parts
        chosen = max(free, key=lambda d: (d == dimension, shape[d] % parts == 0, shape[d]))
        given, names[chosen] = tuple(names), partition.names
        return cls(shape, tuple(names), given, (chosen, -shape[chosen] % parts))

    def count(self, mesh: Mesh | AbstractMesh) -> int:
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
        read: the read, where each operand holds one number of each sample.
        stacked: the read as it was given.
        partition: how the texture is partitioned.
        samples: how the samples are sharded.
        axis_taps: finds the taps of one axis, as in `TexelRead`.
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
        """The access to a texture that is partitioned along one axis, by samples that can be sharded over its devices.

        Args:
            values: of a write or a splat.
            cut: how the levels of a chain are cut.
        """
        # One number of each sample in an operand: its axes are the axes of the samples.
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
        """The numbers of the samples, those that are added among them, and the sharding of each."""
        return self.resharded(Read(self.read.spec, tuple(map(self.samples.padded, self.read.operands))))

    def resharded(self, read: Read) -> tuple[list[jax.Array], list[P]]:
        """Operands that are sharded as the samples are, and the sharding of each."""
        specs = [self.samples.spec_of_stacked(a, read.spec.stack_of(k)) for k, a in enumerate(read.operands)]
        return [jax.reshard(a, NamedSharding(self.mesh, s)) for a, s in zip(read.operands, specs)], specs

    # The method

    @property
    def texel_bytes(self) -> int:
        """The bytes of the whole texture."""
        return math.prod(self.texels.shape) * self.texels.dtype.itemsize

    @property
    def sample_bytes(self) -> int:
        """The bytes of the coordinates and the values of the reads of a sample."""
        spec = self.read.spec
        return spec.num_reads * (4 * len(spec.axes) + spec.dtype.itemsize * self.texels.shape[-1])

    @property
    def can_be_routed(self) -> bool:
        """Whether the devices are known that store the taps of a sample, and their sums add up to its value."""
        splits_over_taps = self.axis_taps is None and self.read.spec.combination is Combination.BLEND
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
        if self.read.spec.expected is not None:
            return Whole()  # its derivative is the derivative of another read
        if isinstance(chosen, Halo):
            return Whole() if self.partition.reaches_all(chosen.reach) else chosen
        if chosen is None and self.num_samples * self.sample_bytes < self.texel_bytes * (parts - 1) // parts:
            chosen = Routing()
        return chosen if isinstance(chosen, Routing) and self.can_be_routed else Whole()

    def report(self, method: Method) -> None:
        """Adds what moves to each device, and what it holds, to the report of a caller."""
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
        moved, held = 2 * reach * row + sent, (partition.own + 2 * reach) * row
        moves = f"receives {moved / MEBIBYTE:.3g} MiB, holds {held / MEBIBYTE:.3g} MiB of texels{buffers}"
        report(self.texels, f"{method}; {moves}")


# Reports


def struct_of(texels: jax.Array) -> jax.ShapeDtypeStruct:
    """The shape, the dtype and the explicit sharding of texels."""
    return jax.ShapeDtypeStruct(texels.shape, texels.dtype, sharding=explicit_sharding(texels))


def report(texels: jax.ShapeDtypeStruct, line: str) -> None:
    """Adds a line about an access to a texture to the report that a caller has asked for."""
    if REPORT.value is None:
        return
    sharding = cast(NamedSharding, texels.sharding)
    parts = {d: parts_of(sharding, names) for d, names in enumerate(names_of(sharding)) if names}
    axes = f"{'axis' if len(parts) == 1 else 'axes'} {' and '.join(map(str, parts))}"
    counts = " and ".join(map(str, parts.values()))
    of = f"texels {texels.shape} {texels.dtype}, {axes} in {counts} part{'' if counts == '1' else 's'}"
    REPORT.value.found.append(f"{of}: {line}")


def report_whole(texels: jax.ShapeDtypeStruct) -> None:
    """Adds to the report of a caller what moves where each device receives a whole texture."""
    sharding, held = cast(NamedSharding, texels.sharding), math.prod(texels.shape) * texels.dtype.itemsize / MEBIBYTE
    own = held / math.prod(parts_of(sharding, names) for names in names_of(sharding))
    report(texels, f"{Whole()}; receives {held - own:.3g} MiB, holds {held:.3g} MiB of texels")
