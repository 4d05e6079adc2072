"""The partition of a texture over devices, and the window of a device: its part with a halo."""

import functools
import math
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from ..._jax.indexing import names_of, parts_of
from ..describe.axis import Axis, Role, Stored, StoredLevel, num_given
from ..describe.levels import Cut
from ..describe.operands import Coords
from ..describe.spec import Read
from ..walk.texel_order import groups
from ..walk.texel_walk import middle_texel, step_of, taps
from .exchange import Edges, with_halo

# The largest number of taps of a jointly addressed read whose samples travel to several devices.
MOST_JOINT_TAPS = 4


class Partition(NamedTuple):
    """The partition of a texture over devices along one axis.

    A device stores adjacent texels of that axis. A texture of one level is treated as a chain of one level, with two
    differences: its texels keep their axes, while a device stores the levels of a chain one after the other; and its
    last part may be shorter, and is then padded with texels that no sample reads.

    Attributes:
        axes: the axes of the read.
        number: the index of the partitioned axis in `axes`.
        names: the mesh axes over which it is partitioned, the slowest first.
        shapes: the shapes of all levels, without channels.
    """

    axes: tuple[Axis, ...]
    number: int
    names: tuple[str, ...]
    cut: Cut
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, axes: tuple[Axis, ...], texels: jax.ShapeDtypeStruct, cut: Cut | None) -> "Partition | None":
        """The partition of sharded texels; `None` unless they are sharded along exactly one axis of the texture."""
        # The mesh axes of every dimension of texels, and the axes of the texture that these are.
        sharding, shape = cast(NamedSharding, texels.sharding), texels.shape
        names = names_of(sharding)
        names += [()] * (len(shape) - len(names))
        stored = [k for k, axis in enumerate(axes) if axis.role not in (Role.LEVEL, Role.WEIGHT)]
        if num_given(axes):
            return None
        # A mip chain is divided by its cut, along its one dimension of texels.
        if cut is not None:
            if parts_of(sharding, names[0]) != cut.parts or any(names[1:]):
                return None
            shapes = tuple(tuple(axes[k].level_size(level) for k in stored) for level in range(axes[0].known_size))
            return cls(axes, stored[cut.dimension], names[0], cut, shapes)
        # Other textures: along exactly one dimension, and not along channels.
        dimensions = [d for d, along in enumerate(names) if along]
        if len(dimensions) != 1 or len(stored) != len(shape) - 1 or dimensions[0] == len(shape) - 1:
            return None
        if axes[0].role is Role.LEVEL:
            return None
        (dimension,) = dimensions
        cut = Cut(dimension, parts_of(sharding, names[dimension]))
        return cls(axes, stored[dimension], names[dimension], cut, (tuple(shape[:-1]),))

    @property
    def axis(self) -> Axis:
        """The partitioned axis."""
        return self.axes[self.number]

    @property
    def is_chain(self) -> bool:
        """Whether samples choose their level."""
        return self.axes[0].role is Role.LEVEL

    @property
    def parts(self) -> int:
        """The number of parts."""
        return self.cut.parts

    @property
    def size(self) -> int:
        """The size of the partitioned axis in the finest level."""
        return self.shapes[0][self.cut.dimension]

    @property
    def own(self) -> int:
        """The number of texels of the partitioned axis that a device stores of the finest level."""
        return -(-self.size // self.parts)

    @property
    def dimension(self) -> int:
        """The sharded dimension of the array of texels."""
        return 0 if self.is_chain else self.cut.dimension

    @property
    def is_split_first(self) -> bool:
        """Whether the texture has one level, and its first axis is partitioned."""
        return not self.is_chain and self.cut.dimension == 0

    def spec(self, ndim: int) -> PartitionSpec:
        """The sharding of an array of texels of `ndim` dimensions."""
        return PartitionSpec(*(self.names if d == self.dimension else None for d in range(ndim)))

    @property
    def part(self) -> jax.Array:
        """The index of this device's part."""
        return jax.lax.axis_index(self.names)

    # The window of a device: its part with a halo

    def reaches_all(self, reach: int) -> bool:
        """Whether a part with a halo of `reach` texels on each side covers the whole axis."""
        return self.own + 2 * reach >= self.own * self.parts

    @property
    def around(self) -> bool:
        """Whether the first part and the last one are neighbors."""
        return self.is_chain or self.axis.address.cyclic

    def reach_in(self, level: int, reach: int) -> int:
        """The halo of a level, in texels, if `reach` is the halo of the finest level."""
        if level == 0:
            return reach
        # The largest distance of a tap from the sample's position, in texels of the level.
        margin = 0 if self.axis.integer else self.axis.kernel.num_taps // 2 + 1
        return -(-reach >> level) + margin

    def stored_level(self, level: int, reach: int) -> StoredLevel:
        """The texels of a level that a window holds."""
        size, reach = self.shapes[level][self.cut.dimension], self.reach_in(level, reach)
        if level >= self.cut.num_cut:
            return StoredLevel(size, size, 0, 0)
        own = -(-size // self.parts)
        # Between the last part and the first, if they are not neighbors, lie halo texels that no sample reads.
        room = 0 if self.around else reach
        return StoredLevel(own + 2 * reach, own * self.parts + room, own, -reach)

    def axes_in_window(self, reach: int) -> tuple[Axis, ...]:
        """The axes of a read in a window; they take the start of the window as an operand."""
        levels = tuple(self.stored_level(level, reach) for level in range(len(self.shapes)))
        stored = Stored(levels[0].count, levels[0].period, levels=levels if self.is_chain else ())
        return tuple(axis._replace(stored=stored) if k == self.number else axis for k, axis in enumerate(self.axes))

    def start(self, reach: int) -> jax.Array:
        """The operand for the start of a window, int32: its first texel, or the index of the part of a mip chain."""
        start = self.part
        if not self.is_chain:
            start = jnp.mod(start * self.own - reach, self.stored_level(0, reach).period)
        return start.astype(jnp.int32)

    def in_window(self, read: Read, reach: int) -> Read:
        """`read`, in the window of this device."""
        return read.replace(axes=self.axes_in_window(reach)).with_given([self.start(reach)])

    def edges(self, level: int, reach: int) -> Edges:
        """The halo of a level, which neighbors send."""
        dimension = self.cut.dimension
        own = -(-self.shapes[level][dimension] // self.parts)
        return Edges(self.names, self.parts, own, dimension, self.reach_in(level, reach), self.around)

    def window(self, texels: jax.Array, reach: int) -> jax.Array:
        """A device's texels, with a halo in each level that is partitioned."""
        if not self.is_chain:
            return with_halo(texels, self.edges(0, reach))
        first, levels = 0, list[jax.Array]()
        for level, shape in enumerate(self.shapes):
            part = self.cut.part_shape(level, (*shape, texels.shape[-1]))
            last = first + math.prod(part[:-1])
            stored = texels[first:last]
            if level < self.cut.num_cut:
                stored = with_halo(stored.reshape(part), self.edges(level, reach)).reshape(-1, part[-1])
            levels.append(stored)
            first = last
        return jnp.concatenate(levels)

    # The devices that samples travel to

    @property
    def step(self) -> tuple[tuple[Axis, ...], int]:
        """The axes that are addressed jointly with the partitioned one, itself included, and the index of the first."""
        first = 0
        for group in groups(self.axes):
            if self.number < first + len(group):
                return group, first
            first += len(group)
        raise AssertionError

    @property
    def can_route(self) -> bool:
        """Whether the coordinates of a sample tell which devices store its taps."""
        axis, (group, _) = self.axis, self.step
        if self.is_chain:
            # The position in the finest level must determine the positions in the other levels. It does not for reads
            # of single texels, nor under a reflection about texel centers.
            moves = axis.address.repeats or axis.address.saturates
            return axis.address.apply is not None and (axis.role is not Role.SPACE if axis.integer else moves)
        joint = math.prod(1 if axis.integer else axis.kernel.num_taps for axis in group)
        return len(group) == 1 or (joint <= MOST_JOINT_TAPS and group[0].address.rows_of(0) is None)

    @property
    def has_several_owners(self) -> bool:
        """Whether a sample travels to several devices, each of which stores a part of its taps."""
        return len(self.step[0]) > 1

    @property
    def reach_of_filter(self) -> int:
        """The largest distance, in texels, of a sample's taps from the part of the device that it travels to."""
        axis = self.axis
        if axis.integer or axis.address.apply is None:
            return 0
        filled_up = self.own * self.parts - self.size if axis.address.cyclic else 0
        return axis.kernel.num_taps // 2 + filled_up

    def owners(self, coords: Coords) -> list[jax.Array]:
        """The parts that samples travel to: the part of the middle tap, whose halo has the other taps.

        For joint axes, these are the parts of all taps, one array for each tap; a repeated part is replaced by `parts`.
        """
        group, first = self.step
        if len(group) == 1:
            return [middle_texel(coords[self.number], self.axis) // self.own]
        owners: list[jax.Array] = []
        for tap in step_of(tuple(coords[first : first + len(group)]), group, taps).taps:
            owner = tap.index[self.number - first] // self.own
            known = functools.reduce(jnp.logical_or, (owner == other for other in owners), jnp.zeros(owner.shape, bool))
            owners.append(jnp.where(known, self.parts, owner))
        return owners
