"""What neighbors exchange of a texture that is cut over devices: the texels beside those that each of them stores.

The functions here run on each device, inside `jax.shard_map`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ..._jax.primitives import bind, define
from .cut import Cut


class Edges(NamedTuple):
    """Which texels of its neighbors a device receives.

    Attributes:
        reach: how many on each side.
        around: whether the first part and the last one are neighbors too; else what these two receive from each other
            is of no use.
    """

    cut: Cut
    reach: int
    around: bool

    @property
    def once(self) -> bool:
        """Whether one exchange is enough: of two devices, each of which has one neighbor."""
        return self.cut.parts == 2 and not self.around and self.reach <= self.cut.own

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """Of each neighbor: how many parts away it is, how many texels nearer ones send, and how many it sends."""
        own, found = self.cut.own, list[tuple[int, int, int]]()
        for distance in range(1, -(-self.reach // own) + 1):
            start = (distance - 1) * own
            found.append((distance, start, min(self.reach - start, own)))
        return found

    def moved(self, a: jax.Array, distance: int) -> jax.Array:
        """An array of each device at the device so many parts further on."""
        parts, pairs = self.cut.parts, list[tuple[int, int]]()
        for k in range(parts):
            if self.around or 0 <= k + distance < parts:
                pairs.append((k, (k + distance) % parts))
        return jax.lax.ppermute(a, self.cut.names, pairs)

    def part(self, texels: jax.Array, first: int, last: int) -> jax.Array:
        """A slice of texels along the axis."""
        return jax.lax.slice_in_dim(texels, first, last, axis=self.cut.dimension)


def with_edges(texels: jax.Array, edges: Edges) -> list[jax.Array]:
    """A device's texels, the `reach` texels that neighbors store before them, and those after."""
    if edges.reach == 0:
        nothing = edges.part(texels, 0, 0)
        return [texels, nothing, nothing]
    return bind(with_edges_p, texels, edges=edges)


def with_halo(texels: jax.Array, edges: Edges) -> jax.Array:
    """The same in one array."""
    if edges.reach == 0:
        return texels
    own, before, after = with_edges(texels, edges)
    return jnp.concatenate([before, own, after], edges.cut.dimension)


def with_edges_meaning(texels: jax.Array, *, edges: Edges) -> list[jax.Array]:
    cut, before, after = edges.cut, list[jax.Array](), list[jax.Array]()
    if edges.once:
        first = jnp.where(cut.number == 0, cut.own - edges.reach, 0)
        sent = jax.lax.dynamic_slice_in_dim(texels, first, edges.reach, cut.dimension)
        received = jax.lax.ppermute(sent, cut.names, [(0, 1), (1, 0)])
        return [texels, received, received]
    for distance, _, count in edges.steps:
        before.insert(0, edges.moved(edges.part(texels, cut.own - count, cut.own), distance))
        after.append(edges.moved(edges.part(texels, 0, count), -distance))
    joined = (some[0] if len(some) == 1 else jnp.concatenate(some, cut.dimension) for some in (before, after))
    return [texels, *joined]


def with_edges_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, edges: Edges):
    """It is linear."""
    out = bind(with_edges_p, *primals, edges=edges)
    (tangent,) = tangents
    if isinstance(tangent, ad.Zero):
        return out, [ad.Zero(jax.typeof(a)) for a in out]
    return out, bind(with_edges_p, tangent, edges=edges)


def with_edges_transpose(cotangents: Sequence[Any], texels: Any, *, edges: Edges):
    """What neighbors return is added to the texels at both ends, and the others stay where they are."""
    own, before, after = (ad.instantiate_zeros(c) for c in cotangents)
    cut, reach = edges.cut, edges.reach
    if edges.once:
        # One of the two is zero, of texels that nothing reads.
        returned = jax.lax.ppermute(before + after, cut.names, [(0, 1), (1, 0)])
        return (added_at(own, returned, jnp.where(cut.number == 0, cut.own - reach, 0), cut.dimension),)
    for distance, start, count in edges.steps:
        of_first = edges.moved(edges.part(after, start, start + count), distance)
        of_last = edges.moved(edges.part(before, reach - start - count, reach - start), -distance)
        own = added_at(own, of_first, 0, cut.dimension)
        own = added_at(own, of_last, cut.own - count, cut.dimension)
    return (own,)


def added_at(texels: jax.Array, more: jax.Array, first: jax.Array | int, dimension: int) -> jax.Array:
    """`texels` with `more` added to those from `first` on."""
    count = more.shape[dimension]
    some = jax.lax.dynamic_slice_in_dim(texels, first, count, dimension)
    return jax.lax.dynamic_update_slice_in_dim(texels, some + more, first, dimension)


with_edges_p = define(
    "with_edges", with_edges_meaning, static=("edges",), linear_in=lambda **_: (0,), multiple_results=True
)
ad.primitive_jvps[with_edges_p] = with_edges_jvp
ad.primitive_transposes[with_edges_p] = with_edges_transpose
