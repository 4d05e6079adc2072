"""Warps by fields: arrays with one point or one vector for each pixel of the output."""

from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_float
from .._engine.api import Operand, Stacked
from .._jax.shapes import broadcast_shapes
from .._jax.versions import stack
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Arrays, displaced, stored_points
from .images import warp_image
from .options import AddressLike, Points, as_floats, broadcast, check_axes, read_options

# The spatial sizes and the components of a field, by their number.
SIZES = {2: "H, W", 3: "D, H, W"}
POINTS = {2: "(x, y)", 3: "(x, y, z)"}


@public(compiled=True)
def remap(
    image: ArrayLike,
    coords: ArrayLike | Points,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by coordinates, which give the point of the image that each output pixel shows.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        coords: ``(x, y)``, or ``(x, y, z)`` for volumes: arrays that broadcast to leading batch axes and the spatial
            shape of the output; or one array ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``. They are in pixels from the
            top left corner, with pixel centers at +0.5.
        antialias: as in `resample`; the footprint of a pixel is the difference between the coordinates of its
            neighbors.
        sampler, filter_mode, address_mode, border_color, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``, where ``output_shape`` is the spatial shape that `coords` broadcast to.

    Gradients: of any order, as in `resample`, with respect to image, coordinates and border color.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> jt.warp.remap(image, (np.array([[0.5, 1.0, 3.5]]), np.array([[0.5]])))[0, :, 0]
        Array([0. , 0.5, 3. ], dtype=float32)
    """
    parameters, shape = field_parameters("remap", "coords", coords)
    check_axes("remap", "image", np.shape(image), len(shape), "coords")
    options = read_options("remap", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    return warp_image("remap", image, stored_points, parameters, shape, options)


@public(compiled=True)
def warp_flow(
    image: ArrayLike,
    flow: ArrayLike | Points,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images backward along a flow: the output pixel at p shows the image at ``p + flow(p)``.

    If `flow` leads from a first image to a second image, and `image` is the second, then the result looks like the
    first.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        flow: ``(..., H, W, 2)``, x before y, or ``(..., D, H, W, 3)``, in pixels; or a tuple of arrays ``(dx, dy)`` or
            ``(dx, dy, dz)``. Its spatial shape is that of the output.
        sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `remap`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, flow and border color.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> jt.warp.warp_flow(image, (np.full((1, 4), 0.5), 0.0))[0, :, 0]
        Array([0.5, 1.5, 2.5, 1.5], dtype=float32)
    """
    options = read_options("warp_flow", sampler, filter_mode, address_mode, border_color, antialias, dtype)
    parameters, shape = field_parameters("warp_flow", "flow", flow)
    check_axes("warp_flow", "image", np.shape(image), len(shape), "flow")
    return warp_image("warp_flow", image, displaced, parameters, shape, options)


def field_parameters(name: str, argument: str, field: Any) -> tuple[tuple[Operand, ...], tuple[int, ...]]:
    """A vector field as parameters of a coordinate function, and its spatial shape."""
    arrays = as_components(name, argument, field)
    shape = broadcast_shapes(*(a.shape for a in arrays))[-len(arrays) :]
    return arrays if isinstance(field, tuple | list) else (Stacked.last(as_float(field)),), shape


def as_components(name: str, argument: str, field: Any, counts: Sequence[int] = (2, 3)) -> Arrays:
    """The components of a vector field: the arrays of a tuple, or the slices of an array along its last axis.

    Args:
        counts: how many there may be.
    """
    if isinstance(field, tuple | list):
        return check_fields(name, argument, field, counts)
    array = as_float(field)
    if array.ndim < 1 or array.shape[-1] not in counts or array.ndim < array.shape[-1] + 1:
        arrays = " or ".join(f"(..., {SIZES[n]}, {n})" for n in counts)
        tuples = " or ".join(POINTS[n] for n in counts)
        raise ValueError(
            f"{name}: {argument} has shape {array.shape}, expected {arrays}, or a tuple of arrays {tuples}."
        )
    return tuple(lax.index_in_dim(array, k, -1, keepdims=False) for k in range(array.shape[-1]))


def stacked(name: str, argument: str, field: Any) -> jax.Array:
    """A vector field as one floating array, with its components last."""
    arrays = as_components(name, argument, field)
    if not isinstance(field, tuple | list):
        return as_float(field)
    return stack(jnp.broadcast_arrays(*as_floats(*arrays)), -1)


def as_points(name: str, argument: str, points: Any, like: Any = None) -> jax.Array:
    """Points of the plane, (..., 2), from one array or from a tuple (x, y).

    Args:
        like: an image whose precision the points have.
    """
    if isinstance(points, tuple | list) and len(cast(list[Any], points)) == 2:
        x, y = as_floats(*cast(list[Any], points), like=like)
        if broadcast(x.shape, y.shape) is None:
            raise ValueError(
                f"{name}: {argument} has arrays of shapes {x.shape} and {y.shape}, expected shapes that broadcast."
            )
        return stack(jnp.broadcast_arrays(x, y), -1)
    array = as_float(points)
    if array.shape[-1:] != (2,):
        raise ValueError(
            f"{name}: {argument} has shape {array.shape}, expected (..., 2), x before y, or a tuple of arrays (x, y)."
        )
    return array


def check_fields(name: str, argument: str, fields: Any, counts: Sequence[int] = (2, 3)) -> Arrays:
    """Two or three arrays of one rank, which broadcast to at least as many axes; see `as_components`."""
    arrays = tuple(jnp.asarray(a) for a in fields)
    if len(arrays) not in counts:
        expected = " or ".join(POINTS[n] for n in counts)
        raise ValueError(f"{name}: {argument} has {len(arrays)} arrays, expected {expected}.")
    shape = broadcast(*(a.shape for a in arrays))
    if shape is None or len(shape) < len(arrays):
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ValueError(
            f"{name}: {argument} has arrays of shapes {shapes}, expected shapes that broadcast to "
            f"(..., {SIZES[len(arrays)]})."
        )
    return tuple(jnp.expand_dims(a, range(len(shape) - a.ndim)) for a in arrays)
