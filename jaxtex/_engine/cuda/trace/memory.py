"""What a function that is traced for one thread may ask of memory."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

load_row_p = Primitive("load_row")
Place = jax.Array | Sequence[tuple[jax.Array, int]]


@load_row_p.def_abstract_eval
def shape_of_row(*first: Any, array: str, factors: tuple[int, ...], count: int, dtype: np.dtype, aligned: bool) -> Any:
    del array, factors, aligned
    of_row = lambda *first: jnp.zeros((*jnp.broadcast_shapes(*(a.shape for a in first)), count), dtype)
    return jax.make_jaxpr(of_row)(*first).out_avals[0]


def load_row(array: str, first: Place, count: int, dtype: np.dtype, *, aligned: bool = False) -> jax.Array:
    """Loads neighboring elements of an array of the kernel, which the kernel does not write.

    Args:
        array: the name of a parameter of the kernel.
        first: the number of the first element of each row; or several numbers, each with a factor, whose sum of
            products is taken in 64 bits. The arrays broadcast.
        count: the elements of a row.
        aligned: whether each `first` is a multiple of `count`, so that a row is one load.

    Returns:
        S + ``(count,)``.
    """
    numbers, factors = zip(*([(first, 1)] if isinstance(first, jax.Array) else first))
    return load_row_p.bind(*numbers, array=array, factors=factors, count=count, dtype=np.dtype(dtype), aligned=aligned)
