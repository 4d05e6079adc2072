"""How an axis of a texture is cut over devices, and the texels that a device has with its halo."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from ..describe.axis import Axis, Stored, start_axis
from ..describe.spec import Coords
from ..walk.taps import taps
from ..walk.texel_walk import groups, middle_texel, step_of

# The most taps whose texels may lie in several parts, where axes are addressed together.
MOST_JOINT_TAPS = 4


class Cut(NamedTuple):
    """How an axis of a texture is cut.

    Attributes:
        axis: its number among the axes of the read.
        dimension: of the texels.
        names: of the axes of the mesh along which it is cut, the slowest first.
        parts: how many.
        size: of the axis. The last part may be shorter, and is filled up with texels that nothing reads.
        room: how many texels that nothing reads lie between the last part and the first one.
    """

    axis: int
    dimension: int
    names: tuple[str, ...]
    parts: int
    size: int
    room: int = 0

    @property
    def own(self) -> int:
        """The texels of the axis that a device stores."""
        return -(-self.size // self.parts)

    @property
    def period(self) -> int:
        """After how many texels the first one follows again."""
        return self.own * self.parts + self.room

    def spec(self, ndim: int) -> PartitionSpec:
        """How texels of so many dimensions are cut."""
        return PartitionSpec(*(self.names if d == self.dimension else None for d in range(ndim)))

    @property
    def number(self) -> jax.Array:
        """The number of this device's part."""
        return jax.lax.axis_index(self.names)

    # Halos

    def reaches_all(self, reach: int) -> bool:
        """Whether a part with so many texels on each side is the whole axis."""
        return self.own + 2 * reach >= self.period

    def axes_in_part(self, axes: tuple[Axis, ...], reach: int) -> tuple[Axis, ...]:
        """The axes in the part that a device stores with its halo; one more in front says where it starts."""
        stored = Stored(self.own + 2 * reach, self.period)
        inner = [axis._replace(stored=stored) if k == self.axis else axis for k, axis in enumerate(axes)]
        return start_axis(stored), *inner

    def start(self, reach: int, rank: int) -> jax.Array:
        """The first texel of the part that a device stores with its halo, as an operand."""
        return jnp.mod(self.number * self.own - reach, self.period).astype(jnp.int32).reshape([1] * rank)

    # Routes

    def can_route(self, axes: tuple[Axis, ...]) -> bool:
        """Whether the devices are known that store the taps of a sample."""
        group, _ = self.step(axes)
        joint = functools.reduce(lambda count, axis: count * (1 if axis.integer else axis.kernel.num_taps), group, 1)
        return len(group) == 1 or (joint <= MOST_JOINT_TAPS and group[0].address.rows_of(0) is None)

    def step(self, axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], int]:
        """The axes that are addressed together with that which is cut, and the number of the first one."""
        first = 0
        for group in groups(axes):
            if self.axis < first + len(group):
                break
            first += len(group)
        return group, first

    def reach_of_filter(self, axes: tuple[Axis, ...]) -> int:
        """How far the texels of a sample lie from the part of the device that it travels to."""
        axis = axes[self.axis]
        if axis.integer or axis.address.apply is None:
            return 0
        around = self.period - self.size if axis.address.cyclic else 0
        return axis.kernel.num_taps // 2 + around

    def owners(self, coords: Coords, axes: tuple[Axis, ...]) -> list[jax.Array]:
        """The parts that samples travel to: that of the tap in the middle, which has the others in its halo.

        Of axes that are addressed together, those of all taps: each part once, and then `parts` in place of a part.
        """
        group, first = self.step(axes)
        if len(group) == 1:
            return [middle_texel(coords[self.axis], axes[self.axis]) // self.own]
        found: list[jax.Array] = []
        for tap in step_of(tuple(coords[first : first + len(group)]), group, taps).taps:
            owner = tap.index[self.axis - first] // self.own
            known = functools.reduce(jnp.logical_or, (owner == other for other in found), jnp.zeros(owner.shape, bool))
            found.append(jnp.where(known, self.parts, owner))
        return found
