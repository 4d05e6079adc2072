"""Reads of a texture that is cut over devices along one axis: what each device computes, and what it exchanges.

The functions here run on each device, inside `jax.shard_map`. A device stores neighboring texels of the axis, a part
of it. `Stored` says which, so that every filter, address mode and kind reads a part as it reads the whole, to the bit.
Exchanges are collectives of JAX, whose transposes send gradients back.

There are two ways. By halo, each device receives the texels beside its own, as far as its samples reach. By routing,
samples travel to the device that stores their texels, and values travel back.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from .axis import Axis, Stored, start_axis
from .routes import Routes
from .spec import Coords, Grid, ReadSpec, as_given
from .texel_walk import holds_taps, middle_texel

# A read of one device: of texels, at operands.
Read = Callable[[jax.Array, Sequence[jax.Array], ReadSpec], jax.Array]


class Started(NamedTuple):
    """A grid whose first operand is the coordinate of an axis in front of all others.

    Attributes:
        averages: whether the grid also takes the number of a read before its operands.
    """

    grid: Grid
    averages: bool

    def __call__(self, *args: jax.Array) -> Coords:
        number, (start, *operands) = args[: int(self.averages)], args[int(self.averages) :]
        return start, *self.grid(*number, *operands)


class Cut(NamedTuple):
    """How an axis of a texture is cut.

    Attributes:
        axis: its number among the axes of the read.
        dimension: of the texels.
        names: of the axes of the mesh along which it is cut, the slowest first.
        parts: how many.
        size: of the axis. The last part may be shorter, and is filled up with texels that nothing reads.
    """

    axis: int
    dimension: int
    names: tuple[str, ...]
    parts: int
    size: int

    @property
    def own(self) -> int:
        """The texels of the axis that a device stores."""
        return -(-self.size // self.parts)

    @property
    def circle(self) -> int:
        """The texels that all devices store."""
        return self.own * self.parts

    def spec(self, ndim: int) -> PartitionSpec:
        """How texels of so many dimensions are cut."""
        return PartitionSpec(*(self.names if d == self.dimension else None for d in range(ndim)))

    @property
    def number(self) -> jax.Array:
        """The number of this device's part."""
        return jax.lax.axis_index(self.names)

    def reaches_all(self, reach: int) -> bool:
        """Whether a part with so many texels on each side is the whole axis."""
        return self.own + 2 * reach >= self.circle


class ReadResult(NamedTuple):
    """The values of a device's samples, and which of them are right: the others reach further than allowed."""

    values: jax.Array
    reached: jax.Array


# By halo


def with_halo(texels: jax.Array, cut: Cut, reach: int) -> jax.Array:
    """A device's texels with `reach` of its neighbors' on both sides, around the end of the axis."""
    before, after, left = [], [], reach
    for distance in range(1, -(-reach // cut.own) + 1):
        count = min(left, cut.own)
        along = functools.partial(jax.lax.slice_in_dim, axis=cut.dimension)
        around = lambda step: [(k, (k + step) % cut.parts) for k in range(cut.parts)]
        last = along(texels, cut.own - count, cut.own)
        before.insert(0, jax.lax.ppermute(last, cut.names, around(distance)))
        after.append(jax.lax.ppermute(along(texels, 0, count), cut.names, around(-distance)))
        left -= count
    return jnp.concatenate([*before, texels, *after], cut.dimension)


def in_part(spec: ReadSpec, operands: Sequence[jax.Array], cut: Cut, reach: int) -> tuple[ReadSpec, list[jax.Array]]:
    """A read, of operands that hold one number of each sample, in the part that a device stores with its halo."""
    grid = as_given if spec.grid is as_given else Started(spec.grid, spec.num_reads > 1)
    rank = max(map(len, spec.sample_shapes(operands)))
    spec = dataclasses.replace(spec, axes=axes_in_part(spec.axes, cut, reach), grid=grid)
    return spec, [start_of_part(cut, reach, rank), *operands]


def axes_in_part(axes: tuple[Axis, ...], cut: Cut, reach: int) -> tuple[Axis, ...]:
    """The axes in the part that a device stores with its halo, with one more in front, which says where it starts."""
    stored = Stored(cut.own + 2 * reach, cut.circle)
    inner = [axis._replace(stored=stored) if k == cut.axis else axis for k, axis in enumerate(axes)]
    return start_axis(stored), *inner


def start_of_part(cut: Cut, reach: int, rank: int) -> jax.Array:
    """The first texel of the part that a device stores with its halo, as an operand."""
    return jnp.mod(cut.number * cut.own - reach, cut.circle).astype(jnp.int32).reshape([1] * rank)


def by_halo(
    read: Read, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut, reach: int
) -> ReadResult:
    """The read of samples none of whose taps lies further than `reach` texels from the part of their device."""
    spec, operands = in_part(spec, operands, cut, reach)
    values = read(with_halo(texels, cut, reach), operands, spec)
    return ReadResult(values, jnp.broadcast_to(reached_by(spec, operands), values.shape[:-1]))


def reached_by(spec: ReadSpec, operands: Sequence[jax.Array]) -> jax.Array:
    """Whether all texels that a result needs are stored."""
    if spec.num_reads == 1:
        held = holds_taps(spec.grid(*operands), spec.axes)
    else:

        def one(number: jax.Array) -> jax.Array:
            *coords, weight = spec.grid(number, *operands)
            return holds_taps(coords, spec.axes) | ~(weight > 0)

        ranked = jnp.arange(1, spec.num_reads + 1, dtype=jnp.int32).reshape(-1, *[1] * operands[0].ndim)
        held = jnp.all(jax.lax.map(one, ranked), 0)
    return jnp.all(held, spec.summed_axes, keepdims=True) if spec.summed_axes else held


# By routing


def reach_of_filter(axis: Axis, cut: Cut) -> int:
    """How far the texels of a filter lie from that of its tap in the middle."""
    if axis.integer:
        return 0
    around = cut.circle - cut.size if axis.address.cyclic else 0
    return axis.kernel.num_taps // 2 + around


def by_routing(
    read: Read, texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut, capacity: int
) -> jax.Array:
    """The read of samples that travel to the device that stores their texels.

    Each device sends at most `capacity` samples to each other one at once, in as many rounds as that takes.

    Args:
        spec: of a read that is no mean and no sum.
    """
    coords = jnp.broadcast_arrays(*spec.coords(operands))
    shape, coords = coords[0].shape, [c.reshape(-1) for c in coords]
    axis = spec.axes[cut.axis]
    reach = reach_of_filter(axis, cut)
    window = with_halo(texels, cut, reach) if reach else texels
    routes = Routes.to(middle_texel(coords[cut.axis], axis) // cut.own, cut.names, cut.parts, capacity)

    def step(values: jax.Array, number: jax.Array) -> jax.Array:
        sent, _ = routes.sent(number)
        part, given = in_part(spec.of_coords(), [routes.exchanged(c[sent]) for c in coords], cut, reach)
        return routes.returned(read(window, given, part), number, values)

    values = jnp.zeros((routes.count, texels.shape[-1]), spec.dtype)
    return routes.in_rounds(step, values).reshape(*shape, -1)
