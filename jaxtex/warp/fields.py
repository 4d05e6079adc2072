"""Warps by fields: arrays that say for each pixel of the output where it looks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import as_float, stacked_coords
from ..sampler import Sampler
from .calls import OPTIONS, compiled
from .grids import Arrays, given, moved
from .images import warp_image
from .options import read_options


@compiled(*OPTIONS)
def remap(
    image: Any,
    coords: tuple[Any, ...],
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images by coordinates: which point of the input each pixel of the output shows.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        coords: ``(x, y)``, or ``(x, y, z)`` for volumes: arrays that broadcast to leading batch axes and the spatial
            shape of the output, in pixels from the top left corner, pixel centres at +0.5.
        sampler, filter, address, border_color, dtype: as in `resample`.
        antialias: as in `resample`; the footprint of a pixel is the difference of its neighbours' coordinates.

    Returns:
        ``(..., *output_shape, C)``, of the spatial shape that `coords` broadcast to.

    Gradients: to image, coordinates and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.
        TypeError: if `coords` is one stacked array.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.remap(image, (jnp.array([[0.5, 1.0, 3.5]]), jnp.array([[0.5]])))[0, :, 0]
        Array([0. , 0.5, 3. ], dtype=float32)
    """
    if not isinstance(coords, tuple | list):
        raise TypeError(stacked_coords("remap", "coords", coords))
    arrays = check_fields("remap", "coords", coords)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))[-len(arrays) :]
    options = read_options(
        "remap", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("remap", image, given, arrays, shape, options)


@compiled(*OPTIONS)
def warp_flow(
    image: Any,
    flow: Any,
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    border_color: Any = None,
    antialias: bool = False,
    dtype: Any = None,
) -> jax.Array:
    """Warps images backward along a flow: a pixel of the output at p shows the input at ``p + flow(p)``.

    With the flow from a first image to a second, and the second one as `image`, the result looks like the first.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        flow: ``(..., H, W, 2)``, x before y, or ``(..., D, H, W, 3)``, in pixels; or a tuple of arrays ``(dx, dy)`` or
            ``(dx, dy, dz)``, which is read faster. Its spatial shape is the output's.
        sampler, filter, address, border_color, dtype: as in `resample`.
        antialias: as in `resample`; the footprint of a pixel is the difference of its neighbours' coordinates.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: to image, flow and border colour, to any order in both modes; see `resample`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(4.0)[None, :, None]
        >>> jt.warp.warp_flow(image, (jnp.full((1, 4), 0.5), 0.0))[0, :, 0]
        Array([0.5, 1.5, 2.5, 1.5], dtype=float32)
    """
    arrays = check_fields("warp_flow", "flow", as_fields("warp_flow", "flow", flow))
    shape = np.broadcast_shapes(*(a.shape for a in arrays))[-len(arrays) :]
    options = read_options(
        "warp_flow", sampler, filter, address, border_color=border_color, antialias=antialias, dtype=dtype
    )
    return warp_image("warp_flow", image, moved, arrays, shape, options)


def as_fields(name: str, argument: str, field: Any) -> tuple[Any, ...]:
    """The components of a field of vectors: of a tuple, or of an array whose last axis they are."""
    if isinstance(field, tuple | list):
        return tuple(field)
    array = as_float(field)
    if array.ndim < 1 or array.shape[-1] not in (2, 3) or array.ndim < array.shape[-1] + 1:
        raise ValueError(
            f"{name}: {argument} has shape {array.shape}, expected (..., H, W, 2) or (..., D, H, W, 3), or a tuple of "
            f"arrays."
        )
    return tuple(array[..., k] for k in range(array.shape[-1]))


def check_fields(name: str, argument: str, fields: Any) -> Arrays:
    """Two or three arrays that broadcast to at least as many axes."""
    arrays = tuple(as_float(a) for a in fields)
    if len(arrays) not in (2, 3):
        raise ValueError(f"{name}: {argument} has {len(arrays)} arrays, expected (x, y) or (x, y, z).")
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shape = ()
    if len(shape) < len(arrays):
        raise ValueError(
            f"{name}: the arrays of {argument} have shapes {[a.shape for a in arrays]}, expected such that broadcast "
            f"to leading batch axes and {len(arrays)} spatial axes."
        )
    return tuple(jnp.expand_dims(a, range(len(shape) - a.ndim)) for a in arrays)
