"""The programs of one device's part, which XLA asks for when it partitions a program: here nothing asks, so we do.

A primitive gives a program of several devices a function that makes these programs, by JAX's `custom_partitioning`.
"""

import contextlib
import math
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import jax
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = 8
# Each array is cut over the devices along its first axis of one of these sizes: evenly, or not.
CUT_SIZES = (16, 17)


def cut(x, mesh):
    """How an array may be cut."""
    axis = next((k for k, n in enumerate(x.shape) if n in CUT_SIZES), None)
    spec = P() if axis is None else P(*[None] * axis, *mesh.axis_names)
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))


def padded(x, sharding):
    """An array whose parts are equal."""
    count = lambda names: math.prod(sharding.mesh.shape[name] for name in names or ())
    spec = (*sharding.spec, *[None] * (len(x.shape) - len(sharding.spec)))
    return jax.ShapeDtypeStruct([-(-n // count(names)) * count(names) for n, names in zip(x.shape, spec)], x.dtype)


class PartitionedCall(NamedTuple):
    """A call in a program that XLA partitions: what makes the program of a part, and the shapes of the whole arrays."""

    partition: Callable
    operands: tuple
    results: tuple

    def lower(self):
        """The program of each device for CUDA."""
        mesh = Mesh(np.array(jax.devices("cpu")[:DEVICES]), ("devices",))
        given = [tuple(cut(x, mesh) for x in arrays) for arrays in (self.operands, self.results)]
        mesh, of_part, results, operands = self.partition(mesh, *given)
        specs = [tuple(sharding.spec for sharding in shardings) for shardings in (operands, results)]
        of_devices = jax.shard_map(of_part, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)
        run = lambda *operands: of_devices(*operands)  # whose name is that of all programs
        return jax.jit(run).trace(*map(padded, self.operands, operands)).lower(lowering_platforms=("cuda",))


@contextlib.contextmanager
def recorded_calls():
    """Yields the partitioned calls of the programs that are lowered meanwhile, in their order."""
    found, partitions = [], {}
    define, call = custom_partitioning.def_partition, custom_partitioning.__call__

    def def_partition(self, partition, *args, **options):
        partitions[self] = partition
        return define(self, partition, *args, **options)

    def called(self, *operands):
        results = call(self, *operands)
        shapes = [jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), a) for a in (operands, results)]
        found.append(PartitionedCall(partitions[self], *shapes))
        return results

    with (
        mock.patch.object(custom_partitioning, "def_partition", def_partition),
        mock.patch.object(custom_partitioning, "__call__", called),
    ):
        yield found
