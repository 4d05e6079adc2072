"""Reads whose results lie side by side in one array, as the features of several levels do.

XLA would write each result by itself and copy all of them, and in reverse mode copy each one's part of the cotangent.
On a GPU kernels write results, and load cotangents, where they lie. Each primitive here equals a function of other
primitives, and takes its rules from that function. There are two exceptions: the tangent of a joined read is joined
too, and its transpose is one pullback for each part.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ..._jax.primitives import bind, define, jvp_of_meaning
from ..describe.spec import TEXELS, ReadSpec, StaticRead, each_read
from ..describe.storage import Part, Place, copied, places_of
from ..forms.choice import LOWERINGS
from .primitives import active, as_cotangent, linear_in_first, pullback_p, pushforward_p, read_p, splat_p
from .result_types import of_read


class Read(NamedTuple):
    """A read over `batch` leading axes."""

    texels: jax.Array
    operands: tuple[jax.Array, ...]
    spec: ReadSpec
    batch: int = 0

    def values(self) -> jax.Array:
        """The result of this read alone."""
        return bind(read_p, self.texels, *self.operands, spec=self.spec, batch=self.batch)


def joined(reads: Sequence[Read], row_axes: int) -> jax.Array:
    """The results of reads side by side: (rows, elements). The first `row_axes` axes of each result number its rows."""
    args = [a for read in reads for a in (read.texels, *read.operands)]
    static = tuple(StaticRead(read.spec, read.batch, len(read.operands)) for read in reads)
    if any(0 in a.shape for a in args):
        return joined_meaning(*args, reads=static, row_axes=row_axes)
    return bind(joined_read_p, *args, reads=static, row_axes=row_axes)


# What the primitives mean


def joined_meaning(*args: Any, reads: tuple[StaticRead, ...], row_axes: int) -> jax.Array:
    """The reads, side by side."""
    found = (bind(read_p, *some, spec=read.spec, batch=read.batch) for read, some in each_read(reads, args))
    return side_by_side(found, row_axes)


def pushforward_meaning(*args: Any, reads: tuple[StaticRead, ...], row_axes: int) -> jax.Array:
    """The tangents of the reads, side by side: each from tangents in its `wrt`, texels and operands."""

    def tangents() -> Any:
        for read, (*some, texels, operands) in each_tangent(reads, args):
            params = {"spec": read.spec, "batch": read.batch}
            if read.wrt == (TEXELS,):
                yield bind(read_p, *some, *operands, **params)
            elif read.wrt:
                yield bind(pushforward_p, *some, texels, *operands, wrt=read.wrt, **params)
            else:
                yield jnp.zeros_like(bind(read_p, texels, *operands, **params))

    return side_by_side(tangents(), row_axes)


def splat_meaning(whole: Any, *operands: Any, place: Place, **params: Any) -> jax.Array:
    """The splat of a part of an array."""
    return bind(splat_p, copied(Part(whole, place)), *operands, **params)


def pullback_meaning(whole: Any, texels: Any, *operands: Any, place: Place, **params: Any) -> list[jax.Array]:
    """The pullback of a part of an array."""
    return bind(pullback_p, copied(Part(whole, place)), texels, *operands, **params)


def side_by_side(results: Any, row_axes: int) -> jax.Array:
    """Results as rows, side by side."""
    cut = lambda a: a.reshape(math.prod(a.shape[:row_axes]), math.prod(a.shape[row_axes:]))
    return jnp.concatenate([cut(a) for a in results], axis=1)


def each_tangent(reads: Sequence[StaticRead], args: Sequence[Any]) -> Any:
    """Each read with the tangents in its `wrt`, its texels, and its operands."""
    for read, some in each_read(reads, args):
        count = len(read.wrt)
        yield read, (*some[:count], some[count], some[count + 1 :])


# Rules


def joined_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, reads: tuple[StaticRead, ...], row_axes: int):
    """The tangent is joined too, where each read is linear in its texels."""
    if not all(read.spec.is_plain and read.spec.expected is None for read in reads):
        return jvp_of_meaning(joined_read_p, joined_meaning)(primals, tangents, reads=reads, row_axes=row_axes)
    out, args, static = bind(joined_read_p, *primals, reads=reads, row_axes=row_axes), [], []
    for (read, some), (_, d_some) in zip(each_read(reads, primals), each_read(reads, tangents)):
        found = active(read.spec, d_some)
        static.append(read._replace(wrt=tuple(found)))
        args.extend((*found.values(), *some))
    if not any(read.wrt for read in static):
        return out, jnp.zeros_like(out)
    return out, bind(joined_pushforward_p, *args, reads=tuple(static), row_axes=row_axes)


def joined_pushforward_transpose(cotangent: Any, *args: Any, reads: tuple[StaticRead, ...], row_axes: int):
    """The pullback of each part."""
    each = list(each_tangent(reads, args))
    shapes = [
        of_read(texels, *operands, spec=read.spec, batch=read.batch).shape for read, (*_, texels, operands) in each
    ]
    found: list[Any] = []
    for place, (read, (*tangents, texels, operands)) in zip(places_of(shapes, row_axes), each):
        linear = {k: t.aval for k, t in zip(read.wrt, tangents) if ad.is_undefined_primal(t)}
        params = {"batch": read.batch, "place": place}
        if tuple(linear) == (TEXELS,):
            adjoint = read.spec.adjoint(linear[TEXELS].dtype)
            some = [bind(part_splat_p, cotangent, *operands, spec=adjoint, **params)]
        elif linear:
            params |= {"spec": read.spec, "wrt": tuple(linear)}
            some = bind(part_pullback_p, cotangent, texels, *operands, **params)
        else:
            some = []
        sums = {k: as_cotangent(x, aval) for (k, aval), x in zip(linear.items(), some)}
        found.extend((*(sums.get(k) for k in read.wrt), *[None] * (1 + read.num_operands)))
    return found


def textures_of(*, reads: tuple[StaticRead, ...], row_axes: int) -> list[int]:
    """The positions of the texels of joined reads."""
    del row_axes
    return [sum(1 + read.num_operands for read in reads[:k]) for k in range(len(reads))]


joined_read_p = define(
    "joined_read",
    joined_meaning,
    static=("reads", "row_axes"),
    linear_in=textures_of,
    lowerings=LOWERINGS["joined_read"],
)
joined_pushforward_p = define(
    "joined_pushforward", pushforward_meaning, static=("reads", "row_axes"), linear_in=textures_of
)
part_splat_p = define(
    "part_splat",
    splat_meaning,
    static=("spec", "batch", "place"),
    linear_in=linear_in_first,
    lowerings=LOWERINGS["part_splat"],
)
part_pullback_p = define(
    "part_pullback",
    pullback_meaning,
    static=("spec", "wrt", "batch", "place"),
    linear_in=linear_in_first,
    lowerings=LOWERINGS["part_pullback"],
    multiple_results=True,
)
ad.primitive_jvps[joined_read_p] = joined_jvp
ad.primitive_transposes[joined_pushforward_p] = joined_pushforward_transpose
