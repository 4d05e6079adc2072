"""Meshes for shardings that XLA's partitioner has chosen.

The partitioner knows which part each device holds, but no names of mesh axes: it may have split or dropped an axis of
the caller's mesh, and a program may use several meshes. So the devices are arranged in the finest possible mesh, with
axes of prime sizes, and a dimension is sharded along one or several of these.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

# Devices of JAX, which type checkers do not know.
Devices = tuple[Any, ...]


class DeviceAxes(NamedTuple):
    """A mesh: the devices in the order of a program, along axes of `sizes`; the last axis varies fastest."""

    devices: Devices
    sizes: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"axis{k}" for k in range(len(self.sizes)))

    @property
    def mesh(self) -> Mesh:
        return Mesh(np.array(self.devices, object).reshape(self.sizes), self.names)

    def sharding(self, dimensions: Sequence[tuple[str, ...]]) -> NamedSharding:
        """The sharding of an array, from the names of the axes that shard each dimension, the slowest first."""
        return NamedSharding(self.mesh, PartitionSpec(*(names or None for names in dimensions)))

    def num_parts(self, names: tuple[str, ...]) -> int:
        return math.prod(self.sizes[self.names.index(name)] for name in names)

    def counting(self, part: np.ndarray) -> tuple[str, ...] | None:
        """The axes, slowest first, that number the devices as `part` does; `None` if there are none.

        Args:
            part: for each device, the number of the part that it holds.
        """
        strides = [int(part[math.prod(self.sizes[k + 1 :])]) for k in range(len(self.sizes))]
        cut = sorted((k for k, stride in enumerate(strides) if stride), key=lambda k: -strides[k])
        steps = [math.prod(self.sizes[m] for m in cut[n + 1 :]) for n in range(len(cut))]
        place = np.indices(self.sizes).reshape(len(self.sizes), -1)
        if (part == sum((place[k] * step for k, step in zip(cut, steps)), np.zeros_like(part))).all():
            return tuple(self.names[k] for k in cut)
        return None


def device_axes(parts: Sequence[np.ndarray], devices: Devices) -> DeviceAxes:
    """The mesh whose axes express most of `parts`, by `DeviceAxes.counting`."""
    candidates = (DeviceAxes(devices, sizes) for sizes in orders(prime_factors(len(devices))))
    return max(candidates, key=lambda axes: sum(axes.counting(part) is not None for part in parts))


def parts_of(sharding: Sharding | None, rank: int, count: int) -> list[np.ndarray]:
    """For each dimension of an array, the number of the part that each of `count` devices holds."""
    if sharding is None or rank == 0:
        return [np.zeros(count, int)] * rank
    # The number of parts divides the number of devices, so a dimension of that size has equal parts.
    slices = sharding.devices_indices_map((count,) * rank).values()
    ranges = [[s.indices(count)[:2] for s in index] for index in slices]
    return [np.array([index[k][0] // (index[k][1] - index[k][0]) for index in ranges]) for k in range(rank)]


def prime_factors(n: int) -> list[int]:
    factors, p = [], 2
    while n > 1:
        while n % p == 0:
            factors, n = [*factors, p], n // p
        p += 1
    return factors


def orders(numbers: list[int]) -> Iterator[tuple[int, ...]]:
    """The distinct permutations of `numbers`."""
    if not numbers:
        yield ()
    for first in sorted(set(numbers)):
        rest = list(numbers)
        rest.remove(first)
        yield from ((first, *others) for others in orders(rest))
