"""The shapes of images, outputs and matrices, checked."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.arguments import as_array, as_float
from .._checks.integers import is_integer
from .._checks.remedies import mode_of
from .._checks.words import shown
from .._tables.storage_formats import sum_dtype
from .calls import as_static
from .types import ShapeLike

SPATIAL = {2: "(H, W)", 3: "(D, H, W)"}
AXES = {1: "(..., W, C)", 2: "(..., H, W, C)", 3: "(..., D, H, W, C)"}


def spatial_shape(
    name: str,
    image: ArrayLike,
    output_shape: ShapeLike | None,
    ndim: int | None = None,
    argument: str = "image",
    source: str = "",
) -> tuple[int, ...]:
    """The spatial shape of the output: the one given, or that of the image.

    Args:
        ndim: the number of spatial axes; ``None`` is 2 or 3, as many as `output_shape` has.
        argument: the name of the image.
        source: the argument that sets `ndim`, if one does.
    """
    of_image, shape = np.shape(image), ()
    if output_shape is not None:
        shape = as_shape(name, "output_shape", output_shape, (2, 3) if ndim is None else (ndim,))
        if ndim is None and len(shape) == 3 == len(of_image):
            raise ValueError(
                f"{name}: output_shape is {shape}, the sizes (D, H, W) of a volume, but {argument} has shape "
                f"{of_image}, (H, W, C); leave out the channels, output_shape={shape[:2]}."
            )
    count = ndim or len(shape) or 2
    check_axes(name, argument, of_image, count, source)
    check_pixels(name, argument, of_image, count)
    return shape or of_image[-1 - count : -1]


def check_axes(name: str, argument: str, shape: tuple[int, ...], ndim: int, source: str = "") -> None:
    """Checks that an image has `ndim` spatial axes and channels; see `spatial_shape`."""
    if len(shape) <= ndim:
        remedy = f"add an axis for a single channel, {argument}[..., None]"
        if source and len(shape) == ndim == 3:
            remedy = f"if it is a volume of one channel, {remedy}; if it is an image, pass {source} of two dimensions"
        raise ValueError(
            f"{name}: {argument} has shape {shape}, expected {AXES[ndim]}{f' for this {source}' if source else ''}; "
            f"{remedy}."
        )


def check_pixels(name: str, argument: str, shape: tuple[int, ...], ndim: int) -> None:
    """Checks that an image has pixels."""
    if 0 in shape[-1 - ndim : -1]:
        raise ValueError(f"{name}: {argument} has shape {shape}, expected {AXES[ndim]} of one pixel or more.")


def as_shape(name: str, argument: str, sizes: Any, ndims: Sequence[int] = (2, 3)) -> tuple[int, ...]:
    """A spatial shape, slowest axis first, whose length is one of `ndims`."""
    shape = as_static(name, argument, sizes)
    if not is_shape(shape) or len(shape) not in ndims:
        expected = " or ".join(SPATIAL[ndim] for ndim in ndims)
        remedy = shape_remedy(argument, shape, ndims)
        raise ValueError(f"{name}: {argument} is {shown(shape)}, expected {expected}, sizes of at least 1{remedy}.")
    return tuple(map(int, shape))


def shape_remedy(argument: str, shape: Any, ndims: Sequence[int]) -> str:
    """How to mend a shape that is none, where that is known."""
    option = mode_of(shape)
    if option is not None:
        return f"; pass {option}={shape!r}"
    if is_shape((shape,)):
        return f"; pass {argument}={(shape,) * min(ndims)!r}"
    if is_shape(shape) and len(shape) == max(ndims) + 1:
        return f"; leave out the channels, {argument}={shape[:-1]!r}"
    return ""


def is_shape(value: Any) -> bool:
    """Whether a value is a tuple of whole numbers of at least 1."""
    if not isinstance(value, tuple):
        return False
    whole = (is_integer(int(n) if isinstance(n, float) and n % 1 == 0 else n, 1) for n in cast(tuple[Any, ...], value))
    return all(whole)


def as_floats(*values: ArrayLike, like: Any = None) -> tuple[jax.Array, ...]:
    """Numbers as floating arrays of one dtype: float64 if an array among them is, or an image `like`, else float32."""
    arrays = [jnp.asarray(v) for v in values]
    dtypes = [a.dtype for a in arrays if not jax.typeof(a).weak_type]
    dtype = sum_dtype(*dtypes, *(() if like is None else (dtype_of(like),)))
    return tuple(a.astype(dtype) for a in arrays)


def dtype_of(image: Any) -> np.dtype[Any]:
    """The dtype of an array, before JAX narrows it to 32 bits, or of numbers."""
    return np.dtype(jax.dtypes.canonicalize_dtype(as_array(image).dtype))


def as_matrix(name: str, matrix: ArrayLike, shapes: Sequence[tuple[int, int]], argument: str = "matrix") -> jax.Array:
    """Matrices of one of these shapes, as floating numbers."""
    array = as_float(matrix)
    if array.shape[-2:] not in shapes:
        listed = " or ".join(f"(..., {m}, {n})" for m, n in shapes)
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected {listed}.")
    return array
