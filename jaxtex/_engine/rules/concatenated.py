"""Several reads whose results are concatenated, such as the features of several levels.

XLA would write each result to an array of its own and copy it, and in reverse mode copy a slice of the cotangent for
each read. GPU kernels write results into slices of one array, and adjoints load slices of the cotangent.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ..._jax.indexing import reshaped
from ..._jax.primitives import bind, define, jvp_of_meaning, transpose_of_meaning
from ..describe.spec import Read
from ..describe.storage import ConcatenatedRead, each_part, read_p, slices_of
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from .primitives import (
    Argument,
    Cotangents,
    Tangent,
    WithTangent,
    active,
    pushforward_transpose,
    tangent_of_read,
    type_of_read,
)


def concatenated(reads: Sequence[tuple[jax.Array, Read, int]], row_axes: int) -> jax.Array:
    """The results of reads, concatenated: (rows, elements). The first `row_axes` axes of every result become rows.

    Args:
        reads: of each its texels, the read, and over how many leading axes of both it goes.
    """
    args = [a for texels, read, _ in reads for a in (texels, *read.operands)]
    parts = tuple(ConcatenatedRead(read.spec, batch, len(read.operands)) for _, read, batch in reads)
    if any(0 in a.shape for a in args):
        return meaning(*args, parts=parts, row_axes=row_axes)
    return bind(concatenated_read_p, *args, parts=parts, row_axes=row_axes)


def meaning(*args: jax.Array, parts: tuple[ConcatenatedRead, ...], row_axes: int) -> jax.Array:
    """The results of reads, or the tangents of these, concatenated."""
    return in_rows((result(*arguments) for arguments in each_part(parts, args)), row_axes)


def result(
    part: ConcatenatedRead, tangents: Sequence[jax.Array], texels: jax.Array, operands: Sequence[jax.Array]
) -> jax.Array:
    """The result of one read, or, if `part.wrt` is given, its tangent."""
    params = {"spec": part.spec, "batch": part.batch}
    if part.wrt is None:
        return bind_read(read_p, texels, *operands, **params)
    if part.wrt:
        return tangent_of_read(dict(zip(part.wrt, tangents)), (texels, *operands), **params)
    return jnp.zeros_like(bind_read(read_p, texels, *operands, **params))


def in_rows(results: Iterable[jax.Array], row_axes: int) -> jax.Array:
    """Results, concatenated along the elements of a row: (rows, elements)."""
    cut = lambda a: reshaped(a, (math.prod(a.shape[:row_axes]), math.prod(a.shape[row_axes:])))
    return jnp.concatenate([cut(a) for a in results], axis=1)


def jvp(
    primals: Sequence[jax.Array], tangents: Sequence[Tangent], *, parts: tuple[ConcatenatedRead, ...], row_axes: int
) -> WithTangent:
    """The tangents are concatenated by the primitive too, if every read is plain."""
    params = {"parts": parts, "row_axes": row_axes}
    if not all(p.wrt is None and p.spec.is_plain and p.spec.expected is None for p in parts):
        return jvp_of_meaning(concatenated_read_p, meaning)(primals, tangents, **params)
    out, args, moved = bind(concatenated_read_p, *primals, **params), list[Any](), list[ConcatenatedRead]()
    for (part, _, *given), (_, _, *d_given) in zip(each_part(parts, primals), each_part(parts, tangents)):
        (texels, operands), (d_texels, d_operands) = given, d_given
        nonzero = active(part.spec, [d_texels, *d_operands])
        moved.append(part._replace(wrt=tuple(nonzero)))
        args.extend((*nonzero.values(), texels, *operands))
    if not any(part.wrt for part in moved):
        return out, jnp.zeros_like(out)
    return out, bind(concatenated_read_p, *args, parts=tuple(moved), row_axes=row_axes)


def transpose(cotangent: jax.Array, *args: Argument, parts: tuple[ConcatenatedRead, ...], row_axes: int) -> Cotangents:
    """The transpose of tangents: for each read, the splat or the pullback of its slice of the cotangent."""
    if any(part.wrt is None for part in parts):
        of_reads = transpose_of_meaning(meaning, textures_of)
        return of_reads(cotangent, *args, parts=parts, row_axes=row_axes)
    reads, out = list(each_part(parts, args)), list[jax.Array | None]()
    shape = lambda part, texels, operands: type_of_read(texels, *operands, spec=part.spec, batch=part.batch).shape
    slices = slices_of([shape(part, *given) for part, _, *given in reads], row_axes)
    for storage, (part, tangents, texels, operands) in zip(slices, reads):
        own, params = (*tangents, texels, *operands), {"spec": part.spec, "batch": part.batch, "wrt": part.wrt}
        moves = any(map(ad.is_undefined_primal, tangents))
        out.extend(pushforward_transpose(cotangent, *own, **params, storage=storage) if moves else [None] * len(own))
    return tuple(out)


def textures_of(*, parts: tuple[ConcatenatedRead, ...], row_axes: int) -> list[int]:
    """The positions of the texels among the arguments."""
    del row_axes
    return [sum(1 + part.num_operands for part in parts[:k]) for k in range(len(parts))]


concatenated_read_p = define(
    "concatenated_read",
    meaning,
    static=("parts", "row_axes"),
    linear_in=textures_of,
    jvp=jvp,
    transpose=transpose,
    lowerings=LOWERINGS["concatenated_read"],
)
