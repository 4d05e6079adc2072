"""The meanings of the primitives behind `jnp.linalg.inv`, `solve` and `det`, for the small matrices of a thread."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from .statements import UnknownPrimitive

# The most numbers of a matrix that a thread decomposes.
MOST_DECOMPOSED = 36


def lu(x: jax.Array, **_: Any) -> list[jax.Array]:
    """The factors of matrices with exchanged rows, with which rows these were exchanged, and the order of all rows."""
    *batch, height, width = x.shape
    if height * width > MOST_DECOMPOSED:
        raise UnknownPrimitive(f"lu: a thread decomposes at most {MOST_DECOMPOSED} numbers, and here {height * width}")
    rows, pivots = [*jnp.moveaxis(x, -2, 0)], list[jax.Array]()
    for k in range(min(height, width)):
        # The row with the largest number in this column is exchanged with row k.
        place, largest = jnp.full(batch, k, jnp.int32), abs(rows[k][..., k])
        for i in range(k + 1, height):
            better = abs(rows[i][..., k]) > largest
            place, largest = lax.select(better, jnp.full_like(place, i), place), lax.max(largest, abs(rows[i][..., k]))
        pivots.append(place)
        for i in range(k + 1, height):
            here = jnp.broadcast_to((place == i)[..., None], rows[k].shape)
            rows[k], rows[i] = exchanged(here, rows[k], rows[i])
        # A column of zeros stays as it is.
        divisor = rows[k][..., k]
        divisor = lax.select(divisor == 0, jnp.ones_like(divisor), divisor)
        for i in range(k + 1, height):
            factor = (rows[i][..., k] / divisor)[..., None]
            rest = rows[i][..., k + 1 :] - factor * rows[k][..., k + 1 :]
            rows[i] = jnp.concatenate([rows[i][..., :k], factor, rest], -1)
    exchanges = jnp.stack(pivots, -1)
    return [jnp.stack(rows, -2), exchanges, lu_pivots_to_permutation(exchanges, permutation_size=height)]


def exchanged(where: jax.Array, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two arrays, with their numbers exchanged `where` that is true."""
    return lax.select(where, second, first), lax.select(where, first, second)


def lu_pivots_to_permutation(pivots: jax.Array, *, permutation_size: int) -> jax.Array:
    """The order of rows after exchanges, one after the other."""
    order = [jnp.full(pivots.shape[:-1], k, jnp.int32) for k in range(permutation_size)]
    for k in range(pivots.shape[-1]):
        for i in range(k + 1, permutation_size):
            order[k], order[i] = exchanged(pivots[..., k] == i, order[k], order[i])
    return jnp.stack(order, -1)


def triangular_solve(
    a: jax.Array,
    b: jax.Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> jax.Array:
    """The solution of equations with triangular matrices, from the row with one unknown on."""
    del conjugate_a  # numbers are real
    if transpose_a == left_side:  # x a = b is a^T x^T = b^T
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    rows = [*jnp.moveaxis(b if left_side else jnp.swapaxes(b, -1, -2), -2, 0)]
    order = range(len(rows)) if lower else reversed(range(len(rows)))
    found = dict[int, jax.Array]()
    for k in order:
        row = functools.reduce(lambda row, i: row - a[..., k, i, None] * found[i], found, rows[k])
        found[k] = row if unit_diagonal else row / a[..., k, k, None]
    solution = jnp.stack([found[k] for k in range(len(rows))], -2)
    return solution if left_side else jnp.swapaxes(solution, -1, -2)


def custom_linear_solve(*args: jax.Array, const_lengths: Any, jaxprs: Any) -> list[jax.Array]:
    """The solution by the function that the primitive holds, such as one by LU factors."""
    first = const_lengths.matvec + const_lengths.vecmat
    consts, b = args[first : first + const_lengths.solve], args[sum(const_lengths) :]
    return jaxpr_as_fun(jaxprs.solve)(*consts, *b)


MATRICES = {f.__name__: f for f in (lu, lu_pivots_to_permutation, triangular_solve, custom_linear_solve)}
