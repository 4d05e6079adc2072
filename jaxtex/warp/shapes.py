"""The shapes of images, outputs and matrices, checked."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._arguments import as_float
from .._tables.storage_formats import sum_dtype


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
    shape = tuple(int(n) for n in output_shape)
    if len(shape) not in ((2, 3) if ndim is None else (ndim,)) or min(shape) < 1:
        expected = {None: "(H, W) or (D, H, W)", 2: "(H, W)", 3: "(D, H, W)"}[ndim]
        raise ValueError(f"{name}: output_shape is {shape}, expected {expected}, sizes of at least 1.")
    return shape


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
