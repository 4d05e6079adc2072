"""Reads of arrays at fractional indices, in the convention of `jax.scipy.ndimage`."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import jax.scipy.ndimage
import numpy as np
from jax.typing import ArrayLike

from .._checks.arguments import as_array, as_float, converted, described, shown
from .._checks.remedies import public
from .._jax.calls import typed_jit
from .._tables.storage_formats import STORAGE_FORMATS
from ..modes import AddressMode, FilterMode
from ..sampler import Sampler
from ..sampling import sample
from ..texture import texture1d, texture2d, texture3d
from .calls import as_static

TEXTURES = {1: texture1d, 2: texture2d, 3: texture3d}
FILTERS = {0: FilterMode.POINT, 1: FilterMode.LINEAR}
# SciPy's reflect repeats the element at the edge, its mirror does not.
ADDRESSES = {
    "constant": AddressMode.BORDER,
    "nearest": AddressMode.CLAMP,
    "wrap": AddressMode.WRAP,
    "reflect": AddressMode.MIRROR,
    "mirror": AddressMode.REFLECT,
}


@public
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike] | jax.Array | np.ndarray,
    order: int,
    mode: Literal["constant", "nearest", "wrap", "reflect", "mirror"] = "constant",
    cval: ArrayLike = 0.0,
) -> jax.Array:
    """Reads an array at fractional indices, with the meaning of `jax.scipy.ndimage.map_coordinates`.

    Real arrays of one to three axes are read as textures, and have the gradients of textures. All other arguments go to
    JAX's function, with its results and its errors.

    Args:
        input: the array, of any numeric dtype of a `Texture`.
        coordinates: indices, one array for each axis of `input`, the slowest axis first, of shapes that broadcast to S.
            Element i is at index i. NaN and infinite indices act as in `jaxtex.sample`; JAX's function returns NaN
            there where it blends.
        order: 0 for the nearest element (of two equally near, the one farther from index 0), or 1 for linear
            interpolation.
        mode: ``"constant"``, where each element outside is `cval`; ``"nearest"``; ``"wrap"`` with the period n;
            ``"reflect"``, where the first and the last element appear twice, or ``"mirror"``, where they appear once.
        cval: a number, rounded towards zero for an `input` of integers.

    Returns:
        S, in the dtype of `input`; integers are rounded, halves away from zero. Weights and sums are computed in
        float32, or in float64 if the array or the coordinates are float64.

    Gradients: of any order, in forward and reverse mode, with respect to a floating `input`, to `cval` and, with order
        1, to the coordinates. At a whole index the slope is the one on the right.

    Raises:
        ValueError, NotImplementedError, TypeError: where `jax.scipy.ndimage.map_coordinates` does.

    Source: `jax.scipy.ndimage.map_coordinates`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.map_coordinates(jnp.array([10.0, 20.0, 40.0]), [jnp.array([0.5, 1.5, 2.5])], order=1, mode="wrap")
        Array([15., 30., 25.], dtype=float32)
    """
    name = "map_coordinates"
    order, array = as_static(name, "order", order), converted(name, "input", input)
    if getattr(coordinates, "ndim", 1 if isinstance(coordinates, tuple | list) else 0) == 0:
        raise TypeError(f"{name}: coordinates is {described(coordinates)}, expected one array for each axis of input.")
    arrays = tuple(converted(name, "coordinates", c) for c in coordinates)
    if not (isinstance(cast(Any, mode), str) and isinstance(cast(Any, order), int)):
        raise TypeError(f"{name}: mode is {shown(mode)} and order {shown(order)}, expected a word and an integer.")
    if as_array(cval).ndim:
        raise ValueError(f"{name}: cval has shape {as_array(cval).shape}, expected a number.")
    is_texture = array.ndim in TEXTURES and array.size and array.dtype.name in STORAGE_FORMATS
    are_real = all(map(is_real, (array, *arrays))) and len(arrays) == array.ndim
    if not (is_texture and are_real and order in FILTERS and mode in ADDRESSES):
        of_jax = cast(Any, jax.scipy.ndimage.map_coordinates)
        try:
            return of_jax(input, coordinates, order, mode, cval)
        except NotImplementedError as error:
            raise NotImplementedError(f"{name}: {error}") from None
        except (TypeError, ValueError) as error:
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{name}: {error}") from None
    sampler = Sampler(address_mode=ADDRESSES[mode], filter_mode=FILTERS[order], normalized_coords=False)
    return _map_coordinates(array, arrays, cval if mode == "constant" else None, sampler=sampler)


def is_real(array: Any) -> bool:
    return any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer))


@typed_jit("sampler")
def _map_coordinates(
    array: jax.Array, arrays: tuple[jax.Array, ...], cval: ArrayLike | None, *, sampler: Sampler
) -> jax.Array:
    indices = [as_float(c) for c in reversed(arrays)]
    exact = not sampler.kernel.blends
    if exact:
        # Halves go away from zero; those of a texture go up.
        indices = [jax.lax.round(c) for c in indices]
    blends_integers = jnp.issubdtype(array.dtype, jnp.integer) and not exact
    texels = array.astype(np.result_type(*(c.dtype for c in indices))) if blends_integers else array
    color = None if cval is None else jnp.asarray(cval, array.dtype).astype(texels.dtype)
    texture = TEXTURES[array.ndim](texels[..., None], border_color=color)
    result = sample(texture, tuple(c + 0.5 for c in indices), sampler)[..., 0]
    return (jax.lax.round(result) if blends_integers else result).astype(array.dtype)
