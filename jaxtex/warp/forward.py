"""Forward warps: each pixel of an image is moved along a flow, and what lands on a pixel is summed or averaged."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import as_float
from .._engine.operators import over_batch
from ..modes import FilterMode
from ..sampler import Sampler
from ..sampling import splat
from .calls import compiled
from .fields import as_fields, check_fields
from .grids import alike, pixel_centres
from .images import check_image, stored
from .options import resolve_sampler
from .shapes import spatial_shape


def exponential(importance: jax.Array) -> jax.Array:
    """``exp`` of an importance, less the greatest, that never vanishes: 1e-26 at least in float32."""
    lowest = 0.7 * float(np.log(jnp.finfo(importance.dtype).tiny))
    greatest = jax.lax.stop_gradient(importance.max())
    return jnp.exp(jnp.maximum(importance - jnp.where(jnp.isfinite(greatest), greatest, 0), lowest))


# Of the importance of an image's pixels, their weights; `None` where all count alike.
WEIGHTS: dict[str, Callable[[jax.Array], jax.Array] | None] = {
    "sum": None,
    "average": None,
    "linear": lambda importance: importance,
    "softmax": exponential,
}


@compiled("output_shape", "mode", "return_coverage", "sampler", "filter", "address", "dtype")
def forward_warp(
    image: Any,
    flow: Any,
    importance: Any = None,
    output_shape: Sequence[int] | None = None,
    sampler: Sampler | None = None,
    *,
    filter: Any = None,
    address: Any = None,
    mode: str = "softmax",
    return_coverage: bool = False,
    dtype: Any = None,
) -> Any:
    """Warps images forward along a flow: the pixel at p lands at ``p + flow(p)``, on the pixels around.

    With the flow from a first image to a second and the first one as `image`, the result looks like the second, with
    holes where nothing lands. Where several pixels land, `mode` says what is seen.

    Args:
        image: ``(..., H, W, C)``, as in `resample`.
        flow: ``(..., H, W, 2)``, x before y, in pixels; or a tuple of arrays ``(dx, dy)``. Leading axes broadcast with
            those of `image`. A pixel with a flow that is NaN or infinite lands nowhere.
        importance: ``(..., H, W)``, how much a pixel counts where several land, with ``mode="linear"`` and
            ``"softmax"``; by default all count alike. Such as the negative of a depth, times a factor, or of the
            difference between the image and the other one at ``p + flow(p)``.
        output_shape: the spatial shape of the output, ``(H, W)``; by default that of the image.
        sampler: a whole `Sampler`, for all that has no argument of its own here; its `deterministic` is for the same
            bits in every run.
        filter: how a pixel is spread: ``"linear"``, the default, in two by two parts, ``"point"`` in one.
        address: what becomes of a part that lands outside: ``"border"``, the default, drops it, ``"wrap"`` takes it in
            at the other side.
        mode: what is seen where pixels land, with weights w that the filter gives and importance z:

            - ``"sum"``: ``sum(w I)``; what leaves the image is lost, no more and no less.
            - ``"average"``: ``sum(w I) / sum(w)``.
            - ``"linear"``: ``sum(w z I) / sum(w z)``; z must not be negative.
            - ``"softmax"``: ``sum(w exp(z) I) / sum(w exp(z))``: the greatest z hides the others. Adding a number to z
              changes nothing. In float32 a z that is more than 61 below the greatest of its image acts as 61 below.
        return_coverage: whether to return the coverage as well.
        dtype: of the result; the default is that of the image.

    Returns:
        ``(..., *output_shape, C)``, zero where nothing lands. Integers are rounded, half to even. With
        `return_coverage` a pair: that and ``(..., *output_shape)``, in float32 (or float64), ``sum(w)``, how many
        pixels land: 0 in a hole, below 1 where the image is torn apart, above where it is folded.

    Gradients: to image, flow and importance, to any order in both modes; zero where nothing lands. Where the result is
    rounded they are zero; pass a floating `dtype`.

    Raises:
        ValueError: if shapes do not fit, `mode` is unknown or has no importance, or the filter is cubic, whose
            weights may be negative.

    Source: S. Niklaus and F. Liu, "Softmax Splatting for Video Frame Interpolation", 2020.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image, flow = jnp.array([[[1.0], [2.0], [3.0]]]), (jnp.array([[1.0, 0.0, 0.5]]), 0.0)
        >>> jt.warp.forward_warp(image, flow, mode="average")[0, :, 0]
        Array([0. , 1.5, 3. ], dtype=float32)
        >>> jt.warp.forward_warp(image, flow, jnp.array([[jnp.log(3.0), 0.0, 0.0]]))[0, :, 0]
        Array([0.  , 1.25, 3.  ], dtype=float32)
    """
    name = "forward_warp"
    sampler = resolve_sampler(name, sampler, filter, address)
    check_options(name, mode, importance, sampler)
    image = jnp.asarray(image)
    check_image(name, image, 2)
    image = image.astype(np.float32) if image.dtype == np.bool_ else image
    stored_dtype = image.dtype
    shape = spatial_shape(name, image, output_shape, 2)
    values = list(check_fields(name, "flow", as_fields(name, "flow", flow)))
    if importance is not None:
        values.append(as_float(importance))
    batch = len(check_sizes(name, image.shape[:-1], values))
    image, *values = alike(image, *(a[..., None] for a in values))
    land = functools.partial(landed, shape=shape, sampler=sampler, mode=mode, with_coverage=return_coverage)
    seen = over_batch(land, batch)(image, *(a[..., 0] for a in values))
    result = np.dtype(dtype or stored_dtype)
    return (stored(seen[..., :-1], result), seen[..., -1]) if return_coverage else stored(seen, result)


def check_options(name: str, mode: str, importance: Any, sampler: Sampler) -> None:
    if mode not in WEIGHTS:
        raise ValueError(f"{name}: mode is {mode!r}, expected one of {', '.join(map(repr, WEIGHTS))}.")
    if importance is not None and WEIGHTS[mode] is None:
        raise ValueError(
            f"{name}: importance is given, and mode={mode!r} counts all pixels alike; leave it out, or use "
            f"mode='softmax' or 'linear'."
        )
    if sampler.filter_mode is FilterMode.CUBIC:
        raise ValueError(
            f"{name}: the filter is 'cubic', whose weights may be negative, and cannot be averaged with; use "
            f"filter='linear' or 'point'."
        )


def check_sizes(name: str, image: tuple[int, ...], values: Sequence[jax.Array]) -> tuple[int, ...]:
    """The batch axes of images, of flows and of an importance, which are as large as the images."""
    try:
        whole = np.broadcast_shapes(image, *(a.shape for a in values))
    except ValueError:
        whole = ()
    if whole[-2:] != image[-2:]:
        raise ValueError(
            f"{name}: image is of shape {image} and channels, and flow and importance of shapes "
            f"{[a.shape for a in values]}, expected such that broadcast to that, and to leading batch axes."
        )
    return whole[:-2]


def landed(
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
    """What is seen of one image, and as a last channel how many pixels land."""
    size = image.shape[:-1]
    lands = jnp.broadcast_to(jnp.isfinite(dx) & jnp.isfinite(dy), size)
    x, y = (jnp.where(lands, centre + move, 0) for centre, move in zip(pixel_centres(size, image.dtype), (dx, dy)))
    weigh = WEIGHTS[mode]
    weight = jnp.ones(size, image.dtype)
    if importance is not None and weigh is not None:
        weight = jnp.broadcast_to(weigh(importance), size)
    channels = [image * weight[..., None]]
    if mode != "sum":
        channels.append(weight[..., None])
    if with_coverage:
        channels.append(jnp.ones_like(weight)[..., None])
    values = jnp.where(lands[..., None], jnp.concatenate(channels, -1), 0)
    sampler = dataclasses.replace(sampler, normalized_coords=False)
    sums = splat(values, (x, y), (*shape, values.shape[-1]), sampler).texels
    count = image.shape[-1]
    seen = sums[..., :count]
    if mode != "sum":
        seen = mean(seen, sums[..., count : count + 1])
    return jnp.concatenate([seen, sums[..., -1:]], -1) if with_coverage else seen


def mean(sums: jax.Array, weights: jax.Array) -> jax.Array:
    """``sums / weights``, and zero where nothing landed.

    Both are divided by the value of the weights first, so that no derivative squares a small one.
    """
    some = weights > 0
    unit = jax.lax.stop_gradient(jnp.where(some, weights, 1))
    return jnp.where(some, (sums / unit) / jnp.where(some, weights / unit, 1), 0)
