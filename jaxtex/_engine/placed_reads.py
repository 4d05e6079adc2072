"""Reads of a texture that carries an explicit sharding: how samples meet texels, chosen by sizes.

Under explicit mesh axes the type of an array says how it is cut. A texture of which one axis is cut is read by routing,
if less moves so than the whole texture; else each device receives all of it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from .axis import Role, inner_axes
from .cut_reads import Cut, by_routing
from .indexing import everywhere, explicit_sharding
from .spec import ReadSpec, as_given

# A read: of texels, a border color, operands, and a spec.
Read = Callable[[jax.Array, Any, Sequence[jax.Array], ReadSpec], jax.Array]
# Samples that a device sends to another one at once, over those that it would send if all were sent to equally many.
SLACK = 1.25


def read_where_placed(
    read: Read, texels: jax.Array, color: jax.Array | None, operands: Sequence[jax.Array], spec: ReadSpec
) -> jax.Array:
    """A read, of which each device computes a part if texels carry an explicit sharding."""
    placed = explicit_sharding(texels)
    if placed is None or not any(placed.spec):
        return read(texels, color, operands, spec)
    cut = cut_of(placed, texels.shape, spec)
    samples = None if cut is None else Samples.of(operands, spec, cut)
    if cut is None or samples is None or not is_routed(texels, operands, spec, cut, samples):
        return read(everywhere(texels), color, operands, spec)
    return routed(read, texels, color, operands, spec, cut, samples, placed.mesh)


def cut_of(placed: Any, shape: Sequence[int], spec: ReadSpec) -> Cut | None:
    """How a texture is cut, if that is along one axis whose taps are found by themselves."""
    names = [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in placed.spec]
    names += [()] * (len(shape) - len(names))
    stored = [k for k, axis in enumerate(spec.axes) if axis.role is not Role.FACTOR]
    dimensions = [d for d, some in enumerate(names) if some]
    if len(dimensions) != 1 or len(stored) != len(shape) - 1 or dimensions[0] == len(shape) - 1:
        return None
    (dimension,) = dimensions
    axis = spec.axes[stored[dimension]]
    if axis.address.apply is None or inner_axes(spec.axes) != spec.axes:
        return None
    parts = math.prod(placed.mesh.shape[name] for name in names[dimension])
    return Cut(stored[dimension], dimension, names[dimension], parts, shape[dimension])


class Samples(NamedTuple):
    """How samples are cut over devices.

    Attributes:
        shape: of all samples.
        names: of the mesh axes along which each of their axes is cut.
        given: the same as operands are cut.
        padding: along which axis some samples are added, so that parts are equal, and how many.
    """

    shape: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]
    given: tuple[tuple[str, ...], ...]
    padding: tuple[int, int]

    @classmethod
    def of(cls, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut) -> "Samples | None":
        """As their operands are cut, and along the mesh axes of the texture, by one more axis if need be."""
        shape = np.broadcast_shapes(*spec.sample_shapes(operands))
        names: list[tuple[str, ...]] = [()] * len(shape)
        for a in operands:
            placed = explicit_sharding(a)
            for d, entry in enumerate(() if placed is None else placed.spec):
                if entry is not None and a.shape[d] > 1:
                    names[d] = entry if isinstance(entry, tuple) else (entry,)
        used = {name for some in names for name in some}
        if used.issuperset(cut.names):
            return cls(shape, tuple(names), tuple(names), (0, 0))
        free = [d for d, some in enumerate(names) if not some]
        if used & set(cut.names) or not free:
            return None
        chosen = max(free, key=lambda d: (shape[d] % cut.parts == 0, shape[d]))
        given, names[chosen] = tuple(names), cut.names
        return cls(shape, tuple(names), given, (chosen, -shape[chosen] % cut.parts))

    def count(self, mesh: Any) -> int:
        """The samples of a device."""
        parts = math.prod(mesh.shape[name] for some in self.names for name in some)
        return -(-math.prod(self.shape) // parts)

    def spec_of(self, shape: Sequence[int]) -> P:
        """How an array is cut that broadcasts to the samples."""
        return P(*(names if n > 1 and names else None for n, names in zip(shape, self.names)))

    def padded(self, a: jax.Array) -> jax.Array:
        axis, count = self.padding
        if count == 0 or a.shape[axis] == 1:
            return a
        return jnp.pad(a, [(0, count if d == axis else 0) for d in range(a.ndim)], mode="edge")


def is_routed(texels: jax.Array, operands: Sequence[jax.Array], spec: ReadSpec, cut: Cut, samples: Samples) -> bool:
    """Whether samples travel to texels: if they can, and if less moves so."""
    single = spec.num_reads == 1 and not spec.summed_axes and spec.expected is None and not spec.stacks
    mesh = jax.typeof(texels).sharding.mesh
    coords = sum(jnp.dtype(a.dtype).itemsize for a in operands) + 4 * len(spec.axes)
    sample = coords + spec.dtype.itemsize * texels.shape[-1]
    return single and samples.count(mesh) * sample < texels.size * texels.dtype.itemsize * (cut.parts - 1) // cut.parts


def routed(
    read: Read,
    texels: jax.Array,
    color: jax.Array | None,
    operands: Sequence[jax.Array],
    spec: ReadSpec,
    cut: Cut,
    samples: Samples,
    mesh: Any,
) -> jax.Array:
    """The read by routing, on each device."""
    colors = [] if color is None else [color]
    capacity = max(1, math.ceil(SLACK * samples.count(mesh) / cut.parts))

    def on_device(texels: jax.Array, colors: list[jax.Array], *operands: jax.Array) -> jax.Array:
        alone = lambda texels, operands, spec: read(texels, colors[0] if colors else None, operands, spec)
        return by_routing(alone, texels, operands, spec, cut, capacity)

    operands = [samples.padded(a) for a in operands]
    specs = [samples.spec_of(a.shape) for a in operands]
    operands = [jax.reshard(a, jax.NamedSharding(mesh, s)) for a, s in zip(operands, specs)]
    cut_spec = P(*(cut.names if d == cut.dimension else None for d in range(texels.ndim)))
    colors = [jax.reshard(a, jax.NamedSharding(mesh, P())) for a in colors]
    out_specs = P(*(names or None for names in samples.names), None)
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(cut_spec, P(), *specs), out_specs=out_specs)
    values, (axis, count) = run(texels, colors, *operands), samples.padding
    if samples.given == samples.names or (spec.grid is not as_given and not count):
        return values  # those of a grid are cut as the texture is
    values = jax.reshard(values, jax.NamedSharding(mesh, P(*(names or None for names in samples.given), None)))
    return jax.lax.slice_in_dim(values, 0, samples.shape[axis], axis=axis) if count else values
