"""The shapes of images, outputs and matrices, checked."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_float
from .._tables.storage_formats import sum_dtype
from .calls import as_static

SPATIAL = {2: "(H, W)", 3: "(D, H, W)"}


def spatial_shape(
    name: str, image: Any, output_shape: Sequence[int] | None, ndim: int | None = None
) -> tuple[int, ...]:
    """The spatial shape of the output: as given, or that of the image.

    Args:
        ndim: how many spatial axes there must be; `None` is 2 or 3.
    """
    if output_shape is None:
        count = ndim or 2
        output_shape = jnp.shape(image)[-1 - count : -1]
        if len(output_shape) != count:
            raise ValueError(
                f"{name}: image has shape {jnp.shape(image)}, expected leading batch axes, {count} spatial axes and "
                f"channels; a single channel is an axis too, image[..., None]."
            )
    return as_shape(name, "output_shape", output_shape, (2, 3) if ndim is None else (ndim,))


def as_shape(name: str, argument: str, sizes: Any, ndims: Sequence[int] = (2, 3)) -> tuple[int, ...]:
    """A spatial shape, slowest axis first, of as many sizes as one of `ndims`."""
    shape = as_static(name, argument, sizes)
    if not is_shape(shape) or len(shape) not in ndims:
        expected = " or ".join(SPATIAL[ndim] for ndim in ndims)
        raise ValueError(f"{name}: {argument} is {shape!r}, expected {expected}, sizes of at least 1.")
    return tuple(map(int, shape))


def is_shape(value: Any) -> bool:
    """Whether a value is a tuple of whole numbers of at least 1."""
    return isinstance(value, tuple) and all(isinstance(n, int | float) and n >= 1 and n % 1 == 0 for n in value)


def as_floats(*values: Any) -> tuple[jax.Array, ...]:
    """Numbers as floating arrays of one dtype: float64 if any is, else float32."""
    arrays = tuple(map(as_float, values))
    return tuple(a.astype(sum_dtype(*(a.dtype for a in arrays))) for a in arrays)


def as_matrix(name: str, matrix: Any, shapes: Sequence[tuple[int, int]], argument: str = "matrix") -> jax.Array:
    """Matrices of one of these shapes, as floating numbers."""
    array = as_float(matrix)
    if array.shape[-2:] not in shapes:
        listed = " or ".join(f"(..., {m}, {n})" for m, n in shapes)
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected {listed}.")
    return array
