"""The arguments of a read: what callers pass beside a texture, as the engine takes it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._checks.numbers import as_float, as_index
from ..._tables.storage_formats import sum_dtype


class ReadArguments(NamedTuple):
    """The arrays of a call, in the caller's order: coordinates or indices, layer, face, level and footprint."""

    coords: tuple[Any, ...]
    layer: Any = None
    face: Any = None
    lod: Any = None
    ddx: tuple[Any, ...] | None = None
    ddy: tuple[Any, ...] | None = None
    ddz: tuple[Any, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape S that everything broadcasts to."""
        return np.broadcast_shapes(*(a.shape for a in jax.tree.leaves(self)))

    def as_operands(self, *, integer: bool = False, beside: Sequence[np.dtype] = ()) -> "ReadArguments":
        """Checked arrays as the engine takes them: layers and `integer` coordinates int32, all else of one floating
        dtype; of one rank.

        Integers, weak types and 16-bit floats become float32, a strong float64 stays. Called under `jax.jit`.

        Args:
            beside: the dtypes of other floating numbers that the read computes with.
        """
        layer, rest = self.layer, self._replace(layer=None)
        if integer:
            rest = jax.tree.map(as_index, rest)
        else:
            rest = jax.tree.map(as_float, rest)
            widest = sum_dtype(*(a.dtype for a in jax.tree.leaves(rest)), *beside)

            def widened(a: jax.Array) -> jax.Array:
                return a.astype(widest)

            rest = jax.tree.map(widened, rest)
        arguments = rest._replace(layer=None if layer is None else as_index(layer))
        rank = max(a.ndim for a in jax.tree.leaves(arguments))

        def of_rank(a: jax.Array) -> jax.Array:
            return jnp.expand_dims(a, tuple(range(rank - a.ndim)))

        return jax.tree.map(of_rank, arguments)
