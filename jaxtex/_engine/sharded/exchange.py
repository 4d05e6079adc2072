"""The exchange of halos: texels next to those of a device, which its neighbors send.

The functions here run on each device, inside `jax.shard_map`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ..._jax.primitives import bind, define


class Edges(NamedTuple):
    """The texels that a device receives from its neighbors.

    Attributes:
        names: the axes of the mesh over which the texels are partitioned, the slowest first.
        own: the number of texels of a part along the partitioned axis.
        reach: the number of texels that are received on each side.
        around: whether the first part and the last one are neighbors; if not, no sample reads texels that one of them
            receives from the other.
    """

    names: tuple[str, ...]
    parts: int
    own: int
    dimension: int
    reach: int
    around: bool

    @property
    def is_first(self) -> jax.Array:
        """Whether this device stores the first part."""
        return jax.lax.axis_index(self.names) == 0

    @property
    def once(self) -> bool:
        """Whether one exchange suffices: there are two devices, each the only neighbor of the other."""
        return self.parts == 2 and not self.around and self.reach <= self.own

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """For each neighbor on one side: its distance in parts, the texels that nearer neighbors send, and its own."""
        steps = list[tuple[int, int, int]]()
        for distance in range(1, -(-self.reach // self.own) + 1):
            start = (distance - 1) * self.own
            steps.append((distance, start, min(self.reach - start, self.own)))
        return steps

    def moved(self, a: jax.Array, distance: int) -> jax.Array:
        """The array of the device `distance` parts before this one."""
        pairs = list[tuple[int, int]]()
        for k in range(self.parts):
            if self.around or 0 <= k + distance < self.parts:
                pairs.append((k, (k + distance) % self.parts))
        return jax.lax.ppermute(a, self.names, pairs)

    def slice(self, texels: jax.Array, first: int, last: int) -> jax.Array:
        """A slice of texels along the partitioned axis."""
        return jax.lax.slice_in_dim(texels, first, last, axis=self.dimension)


def with_edges(texels: jax.Array, edges: Edges) -> list[jax.Array]:
    """A device's texels, the `reach` texels before them, and the `reach` texels after them."""
    if edges.reach == 0:
        nothing = edges.slice(texels, 0, 0)
        return [texels, nothing, nothing]
    return bind(with_edges_p, texels, edges=edges)


def with_halo(texels: jax.Array, edges: Edges) -> jax.Array:
    """A device's texels and its halo on both sides, in one array."""
    if edges.reach == 0:
        return texels
    own, before, after = with_edges(texels, edges)
    return jnp.concatenate([before, own, after], edges.dimension)


def with_edges_meaning(texels: jax.Array, *, edges: Edges) -> list[jax.Array]:
    dimension, own, before, after = edges.dimension, edges.own, list[jax.Array](), list[jax.Array]()
    if edges.once:
        first = jnp.where(edges.is_first, own - edges.reach, 0)
        sent = jax.lax.dynamic_slice_in_dim(texels, first, edges.reach, dimension)
        received = jax.lax.ppermute(sent, edges.names, [(0, 1), (1, 0)])
        return [texels, received, received]
    for distance, _, count in edges.steps:
        before.insert(0, edges.moved(edges.slice(texels, own - count, own), distance))
        after.append(edges.moved(edges.slice(texels, 0, count), -distance))
    sides = (side[0] if len(side) == 1 else jnp.concatenate(side, dimension) for side in (before, after))
    return [texels, *sides]


def with_edges_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, edges: Edges) -> tuple[Any, Any]:
    """The exchange is linear."""
    out = bind(with_edges_p, *primals, edges=edges)
    (tangent,) = tangents
    if isinstance(tangent, ad.Zero):
        return out, [ad.Zero(jax.typeof(a)) for a in out]
    return out, bind(with_edges_p, tangent, edges=edges)


def with_edges_transpose(cotangents: Sequence[Any], texels: Any, *, edges: Edges) -> tuple[jax.Array]:
    """The transpose: neighbors get the cotangents of a halo back, and add them to the cotangents of their texels."""
    own, before, after = (cast(jax.Array, ad.instantiate_zeros(c)) for c in cotangents)
    size, reach, dimension = edges.own, edges.reach, edges.dimension
    if edges.once:
        # One of the two is zero, as no sample reads these texels.
        returned = jax.lax.ppermute(before + after, edges.names, [(0, 1), (1, 0)])
        return (added_at(own, returned, jnp.where(edges.is_first, size - reach, 0), dimension),)
    for distance, start, count in edges.steps:
        of_first = edges.moved(edges.slice(after, start, start + count), distance)
        of_last = edges.moved(edges.slice(before, reach - start - count, reach - start), -distance)
        own = added_at(own, of_first, 0, dimension)
        own = added_at(own, of_last, size - count, dimension)
    return (own,)


def added_at(texels: jax.Array, more: jax.Array, first: jax.Array | int, dimension: int) -> jax.Array:
    """`texels`, with `more` added to a slice that starts at `first`."""
    count = more.shape[dimension]
    before = jax.lax.dynamic_slice_in_dim(texels, first, count, dimension)
    return jax.lax.dynamic_update_slice_in_dim(texels, before + more, first, dimension)


with_edges_p = define(
    "with_edges",
    with_edges_meaning,
    static=("edges",),
    linear_in=lambda **_: (0,),
    jvp=with_edges_jvp,
    transpose=with_edges_transpose,
    multiple_results=True,
)
