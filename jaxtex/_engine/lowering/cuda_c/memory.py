"""What a function that is traced for one thread may ask of memory."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

load_row_p = Primitive("load_row")


@load_row_p.def_abstract_eval
def shape_of_row(first: Any, *, array: str, count: int, dtype: np.dtype, aligned: bool) -> Any:
    del array, aligned
    return jax.make_jaxpr(lambda first: jnp.zeros((*first.shape, count), dtype))(first).out_avals[0]


def load_row(array: str, first: jax.Array, count: int, dtype: np.dtype, *, aligned: bool = False) -> jax.Array:
    """Loads neighboring elements of an array of the kernel, which the kernel does not write.

    Args:
        array: the name of a parameter of the kernel.
        first: the number of the first element of each row.
        count: the elements of a row.
        aligned: whether each `first` is a multiple of `count`, so that a row is one load.

    Returns:
        ``first.shape + (count,)``.
    """
    return load_row_p.bind(first, array=array, count=count, dtype=np.dtype(dtype), aligned=aligned)
