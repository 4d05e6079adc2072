"""Inverses of maps that have no formula: by a fixed-point iteration, then Newton's method, with implicit derivatives.

A map moves each point p to ``p + field(p)``. Its inverse moves q by the vector v with ``v + field(q + v) = 0``.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp

from .._jax.indexing import explicit_sharding
from .._jax.versions import stack
from .coordinate_functions import Arrays
from .matrices import Rows, dot, inverse

# The vectors, (..., n), at the points to which vectors of the same shape lead. The arguments are these vectors, and
# arrays of which the derivatives of the inverse are taken. Each result depends on one vector alone.
Field: TypeAlias = Callable[..., jax.Array]
# The most steps of Newton's method. An excess of so many roundings is none; one of more than the last is too large.
NEWTON_STEPS, ROUNDINGS, MOST_ROUNDINGS = 30, 16, 1024
# The number of the step, the inverse, the excess that should be zero, and the share of the step to take.
NewtonState: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


def inverse_vectors(field: Field, steps: int, start: jax.Array, size: jax.Array, parameters: Arrays) -> jax.Array:
    """The v with ``v + field(v, *parameters) = 0``; NaN where none was found.

    `steps` fixed-point iterations come first, and then Newton's method where these have not converged.

    Args:
        start: the first vectors, which have no derivative.
        size: the largest coordinates that are rounded on the way, (..., 1).
    """
    return cast(jax.Array, vectors_found(field, steps, start, size, parameters))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def vectors_found(field: Field, steps: int, start: jax.Array, size: jax.Array, parameters: Arrays) -> jax.Array:
    """`inverse_vectors`, with a rule for its derivatives."""

    def improved(_: jax.Array | int, vectors: jax.Array) -> jax.Array:
        return -field(vectors, *parameters)

    found = cast(jax.Array, jax.lax.fori_loop(0, steps, improved, start))
    excess = found - improved(steps, found)
    # A position and a value of the field are rounded in proportion to these.
    unit = float(cast(Any, jnp.finfo(start.dtype)).eps) * size
    converged = length(excess) <= jnp.maximum(ROUNDINGS * unit, 0.5 ** (steps + 1) * length(start))

    def active(excess: jax.Array) -> jax.Array:
        return ~converged & (length(excess) > ROUNDINGS * unit)

    def unfinished(state: NewtonState) -> jax.Array:
        return (state[0] < NEWTON_STEPS) & jnp.any(active(state[2]))

    def nearer(state: NewtonState) -> NewtonState:
        """One more step; one that does not lessen the excess is not taken, and the next is half as long."""
        number, at, excess, share = state
        place = at - share * solved(field, parameters, at, excess)
        rest = place - improved(number, place)
        better = length(rest) < length(excess)
        taken = better & active(excess)
        share = jnp.where(better, jnp.minimum(2 * share, 1), share / 2)
        return number + 1, jnp.where(taken, place, at), jnp.where(taken, rest, excess), share

    def one_step(number: jax.Array, state: NewtonState) -> NewtonState:
        del number
        return nearer(state)

    first = jnp.int32(0), found, excess, jnp.ones_like(unit)
    if explicit_sharding(start) is None:
        last = jax.lax.while_loop(unfinished, nearer, first)
    else:  # JAX cannot batch the end of a loop along an explicit axis of a mesh; steps too many change nothing
        last = cast(NewtonState, jax.lax.fori_loop(0, NEWTON_STEPS, one_step, first))
    _, found, excess, _ = last
    return jnp.where(converged | (length(excess) <= MOST_ROUNDINGS * unit), found, jnp.nan)


def length(vectors: jax.Array) -> jax.Array:
    """The largest component of vectors along the last axis, which keeps size 1."""
    return jnp.max(jnp.abs(vectors), -1, keepdims=True)


@cast(Any, vectors_found).defjvp
def vectors_found_jvp(
    field: Field, steps: int, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    """From ``v + field(v, k) = 0`` follows ``(I + J) dv = -(d field / dk) dk``, with J the derivative in v.

    Source: the implicit function theorem. The rule calls the function itself, so that it holds for every order.
    """
    found = inverse_vectors(field, steps, *primals)
    change = cast(Any, jax.checkpoint(functools.partial(solved_for_change, field)))
    return found, -change(found, primals[-1], tangents[-1])


def solved_for_change(field: Field, at: jax.Array, parameters: Arrays, changes: Arrays) -> jax.Array:
    """The solution of ``(I + J) x = (d field / dk) dk``, or zero where `at` is unknown."""
    known = jnp.all(jnp.isfinite(at), -1, keepdims=True)
    at = jnp.where(known, at, 0)
    _, right = jax.jvp(functools.partial(field, at), parameters, changes)
    return jnp.where(known, solved(field, parameters, at, right, known[..., 0]), 0)


def solved(
    field: Field, parameters: Arrays, at: jax.Array, right: jax.Array, known: jax.Array | bool = True
) -> jax.Array:
    """The solution of ``(I + J) x = right``, J being the derivative of `field` at `at` where that is known, else 0."""
    ndim = at.shape[-1]

    def read(at: jax.Array) -> jax.Array:
        return field(at, *parameters)

    def along(axis: int) -> Arrays:
        unit = jnp.broadcast_to(jnp.asarray([float(k == axis) for k in range(ndim)], at.dtype), at.shape)
        return components_of(jax.jvp(read, (at,), (unit,))[1])

    columns = [along(axis) for axis in range(ndim)]
    slopes = [[slope if known is True else jnp.where(known, slope, 0) for slope in row] for row in zip(*columns)]
    rows = inverse(with_identity(slopes))
    return stack([dot(row, components_of(right)) for row in rows], -1)


def components_of(vectors: jax.Array) -> Arrays:
    """The components of vectors along the last axis."""
    return tuple(jax.lax.index_in_dim(vectors, k, -1, keepdims=False) for k in range(vectors.shape[-1]))


def with_identity(rows: Sequence[Sequence[jax.Array]]) -> Rows:
    """The derivative of ``p + field(p)``, from that of the field."""
    return [[slope + 1 if i == k else slope for k, slope in enumerate(row)] for i, row in enumerate(rows)]
