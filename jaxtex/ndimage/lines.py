"""The indices of the elements of a result along each of its axes."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.describe.operands import Coords
from .._jax.typed_jit import typed_jit
from .reads import Arrays, at_axis


def index_lines(shape: Sequence[int], dtype: np.dtype[Any]) -> Arrays:
    """The indices along each axis."""
    return tuple(jnp.arange(n, dtype=jnp.int32).astype(dtype) for n in shape)


def index_grid(shape: Sequence[int], dtype: Any) -> Arrays:
    """The same as arrays that broadcast to `shape`."""
    return tuple(at_axis(jnp.arange(n, dtype=jnp.int32).astype(dtype), k, len(shape)) for k, n in enumerate(shape))


class Affine(NamedTuple):
    """A matrix times indices, plus an offset: an index function.

    Its operands are `columns` indices of the result, then the elements of the matrix by rows, each row followed by its
    offset.
    """

    rows: int
    columns: int

    def __call__(self, *operands: jax.Array) -> Coords:
        indices, elements = operands[: self.columns], operands[self.columns :]
        step = self.columns + 1
        return tuple(row_times(elements[k * step : (k + 1) * step], indices) for k in range(self.rows))


def row_times(row: Sequence[jax.Array], indices: Sequence[jax.Array]) -> jax.Array:
    """A row of a matrix times indices, plus the last element of the row."""
    total = row[-1]
    for element, index in zip(row, indices):
        total = total + element * index
    return total


@typed_jit("rank")
def affine_elements(matrix: jax.Array, offset: jax.Array, rank: int) -> Arrays:
    """The elements of a matrix and an offset as `Affine` takes them, of `rank` axes."""
    rows = jnp.concatenate([matrix, offset[:, None]], 1)
    return tuple(rows[i, j].reshape([1] * rank) for i in range(rows.shape[0]) for j in range(rows.shape[1]))
