"""Forward warps: each pixel moves along a flow. Pixels that land on the same pixel are summed or averaged."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Literal, cast, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_array
from .._checks.words import check_word
from .._engine.api import Layout, texels_of
from .._jax.indexing import cut_like, gather, over_batch, placed_like, scatter
from ..modes import TextureKind
from ..sampler import FilterModeLike, Sampler, check_adjoint, check_modes
from ..sampling import splat
from .coordinate_functions import Arrays, aligned, pixel_centers
from .fields import as_components
from .images import check_image, converted
from .options import (
    AddressLike,
    Points2D,
    ShapeLike,
    as_floats,
    broadcast,
    resolve_sampler,
    result_dtype,
    spatial_shape,
)

Mode = Literal["sum", "average", "linear", "softmax"]


# Whether a mode takes an importance.
TAKES_IMPORTANCE = {"sum": False, "average": False, "linear": True, "softmax": True}


@overload
def forward_warp(
    image: ArrayLike,
    flow: ArrayLike | Points2D,
    importance: ArrayLike | None = None,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    mode: Mode = "softmax",
    return_coverage: Literal[False] = False,
    dtype: DTypeLike | None = None,
) -> jax.Array: ...


@overload
def forward_warp(
    image: ArrayLike,
    flow: ArrayLike | Points2D,
    importance: ArrayLike | None = None,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    mode: Mode = "softmax",
    return_coverage: Literal[True],
    dtype: DTypeLike | None = None,
) -> tuple[jax.Array, jax.Array]: ...


@public(compiled=True)
def forward_warp(
    image: ArrayLike,
    flow: ArrayLike | Points2D,
    importance: ArrayLike | None = None,
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    mode: Mode = "softmax",
    return_coverage: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """Warps images forward along a flow: the pixel at p moves to ``p + flow(p)``, spread over the pixels around it.

    If `flow` leads from a first image to a second image, and `image` is the first, then the result looks like the
    second, with holes where no pixel lands. Where several pixels land, `mode` combines them.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        flow: ``(..., H, W, 2)``, x before y, in pixels; or a tuple of arrays ``(dx, dy)``. Leading axes broadcast with
            those of `image`. A pixel whose flow is NaN or infinite is dropped.
        importance: ``(..., H, W)``, the importance of each pixel where several land, for ``mode="linear"`` and
            ``"softmax"``; by default all pixels are equally important. Examples are the negative depth times a factor,
            or the negative difference between the image and the second image at ``p + flow(p)``.
        output_shape: the spatial shape of the output, ``(H, W)``; by default that of the image.
        sampler: a `Sampler`, for options that have no argument here. With ``deterministic=True`` the result has the
            same bits in every run.
        filter_mode: ``"linear"``, the default, spreads a pixel over 2 x 2 pixels; ``"point"`` moves it to one pixel.
        address_mode: ``"border"``, the default, drops the parts of a pixel that land outside; ``"wrap"`` moves them to
            the opposite side.
        mode: how pixels are combined, with the weights w of the filter and the importance z:

            - ``"sum"``: ``sum(w I)``. The output has the same sum as the image, less the parts that land outside.
            - ``"average"``: ``sum(w I) / sum(w)``.
            - ``"linear"``: ``sum(w z I) / sum(w z)``; z must not be negative.
            - ``"softmax"``: ``sum(w exp(z) I) / sum(w exp(z))``: a pixel hides others on the same place whose z is much
              lower. Adding one number to all z changes nothing, and z may be of any size: the greatest z of each place
              is taken off before the exponential.
        return_coverage: whether to return the coverage as well.
        dtype: the dtype of the result; by default that of the image, and float32 for a bool mask.

    Returns:
        ``(..., *output_shape, C)``, zero where no pixel lands. Integers are rounded, half to even. With
        `return_coverage`, a pair of this and the coverage ``sum(w)``, ``(..., *output_shape)``, in float32 (or
        float64): 0 in a hole, below 1 where the flow diverges, above 1 where it converges.

    Gradients: of any order, in forward and reverse mode, with respect to image, flow and importance; zero where no
        pixel lands. They are zero where the result is rounded; pass a floating `dtype`.

    Raises:
        ValueError: if shapes do not fit, `mode` is unknown, `mode` ignores the `importance` that is given, or the
            filter has negative weights, as a cubic filter does.

    Source: S. Niklaus and F. Liu, "Softmax Splatting for Video Frame Interpolation", 2020.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image, flow = np.array([[[1.0], [2.0], [3.0]]]), (np.array([[1.0, 0.0, 0.5]]), 0.0)
        >>> jt.warp.forward_warp(image, flow, mode="average")[0, :, 0]
        Array([0. , 1.5, 3. ], dtype=float32)
        >>> jt.warp.forward_warp(image, flow, np.array([[np.log(3.0), 0.0, 0.0]]))[0, :, 0]
        Array([0.  , 1.25, 3.  ], dtype=float32)
    """
    name = "forward_warp"
    sampler = resolve_sampler(name, sampler, filter_mode, address_mode)
    check_mode(name, mode, importance, sampler)
    check_adjoint(name, sampler)
    pixels: Any = as_array(image)
    shape = spatial_shape(name, pixels, output_shape, 2)
    check_modes(name, sampler, 2, shape[-1])
    check_image(name, pixels, 2)
    pixels = jnp.asarray(pixels, np.float32 if pixels.dtype == np.bool_ else None)
    values = list(as_components(name, "flow", flow, (2,)))
    if importance is not None:
        values.append(jnp.asarray(importance))
    batch = batch_shape(name, pixels.shape[:-1], values)
    asked = result_dtype(name, dtype)
    result: np.dtype[Any] = np.dtype(pixels.dtype) if asked is None else asked
    pixels, *values = aligned(pixels, *(a[..., None] for a in as_floats(*values, like=pixels)))
    land = functools.partial(splatted, shape=shape, sampler=sampler, mode=mode, with_coverage=return_coverage)
    if 0 in batch:
        out = jnp.zeros((*batch, *shape, pixels.shape[-1] + return_coverage), pixels.dtype)
    else:
        out = over_batch(land, len(batch))(pixels, *(a[..., 0] for a in values))
    return (converted(out[..., :-1], result), out[..., -1]) if return_coverage else converted(out, result)


def check_mode(name: str, mode: str, importance: ArrayLike | None, sampler: Sampler) -> None:
    check_word(name, "mode", mode, TAKES_IMPORTANCE)
    if importance is not None and not TAKES_IMPORTANCE[mode]:
        raise ValueError(
            f"{name}: importance is given, but mode={mode!r} ignores it; leave importance out, or use mode='softmax' "
            f"or 'linear'."
        )
    if sampler.kernel.signed:
        raise ValueError(
            f"{name}: filter_mode is {str(sampler.filter_mode)!r}, whose weights may be negative, expected weights "
            f"of at least 0; use filter_mode='linear' or 'point'."
        )


def batch_shape(name: str, image: tuple[int, ...], values: Sequence[jax.Array]) -> tuple[int, ...]:
    """The batch axes that images, flow and importance broadcast to.

    Args:
        image: the shape of the images without channels.
        values: dx, dy, and the importance if there is one.
    """
    shape = broadcast(image, *(a.shape for a in values)) or ()
    if shape[-2:] == image[-2:]:
        return shape[:-2]
    flow = broadcast(image, *(a.shape for a in values[:2])) or ()
    came = f"importance has shape {values[-1].shape}"
    if flow[-2:] != image[-2:]:
        came = f"flow has components of shape {values[0].shape} and {values[1].shape}"
    raise ValueError(
        f"{name}: {came}; expected shapes that broadcast to the spatial shape of image, {image[-2:]}, and to leading "
        f"batch axes."
    )


def splatted(
    image: jax.Array,
    dx: jax.Array,
    dy: jax.Array,
    importance: jax.Array | None = None,
    *,
    shape: tuple[int, ...],
    sampler: Sampler,
    mode: str,
    with_coverage: bool,
) -> jax.Array:
    """The forward warp of one image, and the coverage as a last channel."""
    size = image.shape[:-1]
    lands = jnp.broadcast_to(jnp.isfinite(dx) & jnp.isfinite(dy), size)
    centers = pixel_centers(size, image.dtype)
    x, y = (jnp.where(lands, center + move, 0) for center, move in zip(centers, (dx, dy)))
    pixels, weight, share = image, jnp.ones(size, image.dtype), None
    in_pixels = dataclasses.replace(sampler, normalized_coords=False)
    if importance is not None:
        weight = jnp.broadcast_to(importance, size)
    if importance is not None and mode == "softmax":
        pixels = image[None]
        lands, (x, y), weight, share = softmax_taps(lands, (x, y), weight, shape, in_pixels)
        in_pixels = dataclasses.replace(in_pixels, filter_mode="point", address_mode="border")
    channels = [pixels * weight[..., None]]
    if mode != "sum":
        channels.append(weight[..., None])
    if with_coverage:
        channels.append((jnp.ones_like(weight) if share is None else share)[..., None])
    channels = [placed_like(a, channels[0]) for a in channels]
    values = jnp.where(lands[..., None], jnp.concatenate(channels, -1), 0)
    placed = cut_like(image, (*shape, values.shape[-1]))
    sums = splat(values, (x, y), (*shape, values.shape[-1]), in_pixels, out_sharding=placed).texels
    count = image.shape[-1]
    out = sums[..., :count]
    if mode != "sum":
        out = quotient(out, sums[..., count : count + 1])
    return jnp.concatenate([out, sums[..., -1:]], -1) if with_coverage else out


def softmax_taps(
    lands: jax.Array, coords: Arrays, importance: jax.Array, shape: tuple[int, ...], sampler: Sampler
) -> tuple[jax.Array, Arrays, jax.Array, jax.Array]:
    """The parts of pixels, with an axis of taps in front, for a splat of whole pixels.

    The exponential of an importance would vanish beside a much greater one elsewhere, so the greatest importance of
    each pixel of the output is taken off, and weights differ from part to part.

    Returns:
        Whether a part lands; the center of the pixel where it lands; its weight, times the exponential; and its weight.
    """
    # Within these bounds, differences are finite.
    most = float(cast(Any, jnp.finfo(importance.dtype)).max) / 4
    importance = jnp.clip(importance, -most, most)
    axes = Layout(TextureKind.TEXTURE2D, (*shape, 1)).axes(sampler)
    places, shares = list[tuple[jax.Array, ...]](), list[jax.Array]()
    for part, indices, inside in texels_of(coords[::-1], axes):
        # Of the point filter, each part is the number 1.
        shares.append(jnp.broadcast_to(part, importance.shape))
        places.append((*indices, lands if inside is None else lands & inside))
    share = jnp.stack(shares)
    row, column, lands = (jnp.stack(jnp.broadcast_arrays(*a)) for a in zip(*places))
    # A part of weight 0 has a derivative, but hides nothing.
    importance = jnp.broadcast_to(importance, share.shape)
    lowest = jnp.full((*shape, 1), -jnp.inf, share.dtype)
    above = jax.lax.stop_gradient(importance)[..., None]
    greatest = scatter(lowest, (row, column), lands & (share > 0), above, "max")
    greatest = gather(greatest, (row, column))[..., 0]
    # Beside such a part all others may be small; their ratio stays finite, and so does its square.
    ratio = jnp.exp(jnp.minimum(jnp.where(greatest > -jnp.inf, importance - greatest, 0), 0.2 * float(np.log(most))))
    centers = (jnp.where(lands, k.astype(share.dtype) + 0.5, -1) for k in (column, row))
    return lands, tuple(centers), share * ratio, share


def quotient(sums: jax.Array, weights: jax.Array) -> jax.Array:
    """``sums / weights``, and zero where no pixel landed.

    Both are divided by the value of the weights first. Otherwise the derivative of a quotient would square a small
    weight.
    """
    covered = weights > 0
    unit = jax.lax.stop_gradient(jnp.where(covered, weights, 1))
    return jnp.where(covered, (sums / unit) / jnp.where(covered, weights / unit, 1), 0)
