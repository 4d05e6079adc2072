"""Writes of single texels of a texture that carries an explicit sharding.

Texels stay where they are. Samples that all devices have are written by each device to its own texels. Samples that are
cut over the devices of the texture travel to the texels.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from ..._jax.contexts import METHOD
from ..._jax.indexing import everywhere, explicit_sharding
from ..._tables.storage_formats import Decoding
from ..compute import texel_write
from ..describe.axis import Axis
from ..describe.spec import Coords, ReadSpec
from .cut import Cut
from .cut_writes import RoutedWrites
from .method import Routing, Whole, report
from .placement import ShardedAccess, cut_of, described, is_cut, report_whole


class TexelWrite(NamedTuple):
    """A write of single texels without its arrays.

    Attributes:
        axes: all integer.
        rule: set, add, min or max.
        unique: of a rule that sets, whether no two samples write the same texel.
    """

    axes: tuple[Axis, ...]
    rule: str = "set"
    unique: bool = False

    def alone(self, texels: jax.Array, values: jax.Array, coords: Coords, axes: tuple[Axis, ...]) -> jax.Array:
        """By one device that has all samples."""
        return texel_write.by_rule(texels, values, coords, axes, self.rule, unique=self.unique)

    def __call__(self, texels: jax.Array, values: jax.Array, coords: Coords) -> jax.Array:
        """By all devices that store texels, if texels carry an explicit sharding."""
        placed = explicit_sharding(texels)
        if placed is None or not is_cut(placed) or not values.size:
            return self.alone(texels, values, coords, self.axes)
        cut = cut_of(placed, texels.shape, self.axes)
        if not isinstance(cut, Cut):
            report_whole(texels.shape, texels.dtype, placed)
            whole = self.alone(everywhere(texels), everywhere(values), [everywhere(c) for c in coords], self.axes)
            return jax.reshard(whole, placed)
        spec = ReadSpec(self.axes, Decoding.ELEMENT, texels.dtype)
        access = ShardedAccess.of(texels.shape, texels.dtype, placed, coords, spec, values)
        if access is None or access.samples.given != access.samples.names or isinstance(METHOD.value, Whole):
            place = described(texels.shape, texels.dtype, placed)
            report(f"{place}: each device receives all samples, and writes to its own texels")
            return self.of_all_samples(texels, values, coords, cut)
        method = METHOD.value if isinstance(METHOD.value, Routing) else Routing()
        access.report(method)
        return self.routed(texels, values, coords, cut, access, access.capacity(method.slack))

    def of_all_samples(self, texels: jax.Array, values: jax.Array, coords: Coords, cut: Cut) -> jax.Array:
        """Each device has all samples."""

        def on_device(texels: jax.Array, values: jax.Array, *coords: jax.Array) -> jax.Array:
            start = cut.start(0, coords[0].ndim)
            return self.alone(texels, values, [start, *coords], cut.axes_in_part(self.axes, 0))

        mesh, spec = jax.typeof(texels).sharding.mesh, cut.spec(texels.ndim)
        run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec, P(), *[P() for _ in coords]), out_specs=spec)
        return run(texels, everywhere(values), *map(everywhere, coords))

    def routed(
        self, texels: jax.Array, values: jax.Array, coords: Coords, cut: Cut, access: ShardedAccess, capacity: int
    ) -> jax.Array:
        """Each device has some samples, and sends those that belong to other devices."""
        mesh, shape = access.mesh, values.shape[:-1]
        writes = RoutedWrites(self.axes, cut, capacity)

        def on_device(texels: jax.Array, values: jax.Array, *coords: jax.Array) -> jax.Array:
            flat = [jnp.broadcast_to(c, values.shape[:-1]).reshape(-1) for c in coords]
            values = values.reshape(-1, values.shape[-1])
            if self.rule == "set":
                return writes.write(texels, values, flat, unique=self.unique)
            return writes.reduce(texels, values, flat, self.rule)

        # Along other axes of the mesh each device has all samples of the part.
        names = [tuple(name for name in some if name in cut.names) or None for some in access.samples.names]
        arrays = [values, *coords, texel_write.numbers(shape)]
        specs = [P(*(some if n > 1 else None for n, some in zip(a.shape, (*names, None)))) for a in arrays]
        arrays = [jax.reshard(a, NamedSharding(mesh, s)) for a, s in zip(arrays, specs)]
        spec = cut.spec(texels.ndim)
        return jax.shard_map(on_device, mesh=mesh, in_specs=(spec, *specs), out_specs=spec)(texels, *arrays)
