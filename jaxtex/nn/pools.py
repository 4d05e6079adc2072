"""Pools of boxes: `roi_align`."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float, as_number, is_integer
from .._checks.words import shown
from .._tables.storage_formats import sum_dtype
from ..sampler import Sampler
from ..texture import texture2d_layered
from .shapes import as_features, as_pair, check_shape, check_texels
from .weighted import sample_weighted

NAME = "roi_align"
# Points up to a texel outside read the texel of the edge; those farther outside have no weight.
EDGE = Sampler(address_mode="clamp", normalized_coords=False)


@public(compiled=True)
def roi_align(
    features: ArrayLike,
    boxes: ArrayLike,
    output_size: int | tuple[int, int],
    *,
    batch_indices: ArrayLike | None = None,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = False,
    max_sampling_ratio: int | tuple[int, int] | None = None,
) -> jax.Array:
    """Pools boxes of feature maps to one size: each bin of a box is the mean of reads at regular points in it.

    Args:
        features: ``(N, H, W, C)``, floating.
        boxes: ``(K, 4)``: x1, y1, x2, y2, in the units of the image before `spatial_scale`.
        output_size: the number of bins of a box, ``(height, width)`` or one number for both; static.
        batch_indices: ``(K,)`` integers: the feature map of each box. Indices outside read the last map. With a single
            map it may be ``None``.
        spatial_scale: the size of a feature map divided by that of its image; boxes are multiplied by it. Static.
        sampling_ratio: reads per bin along each axis, static. -1 takes ``ceil(size of the box / output size)`` along
            each axis, as torchvision does by default, at a cost: see `max_sampling_ratio`.
        aligned: whether texel i has its center at i + 0.5 in the units of boxes, as elsewhere in jaxtex; boxes may then
            have any size. Otherwise the center is at i, and a smaller box counts as one texel wide or high.
        max_sampling_ratio: the most reads that ``sampling_ratio=-1`` takes along height and width, static. Every bin
            reads this many points; superfluous ones have weight zero. ``None`` is ``ceil(H / height)`` and
            ``ceil(W / width)``, enough for every box that is no larger than a feature map. A larger box takes this many
            reads, and torchvision takes more: for its values pass ``ceil(size / output size)`` of the largest box,
            after `spatial_scale`.

    Returns:
        ``(K, height, width, C)`` in the dtype of `features`. Sums are computed in float32, or in float64 if an argument
        is float64. A point more than one texel outside the feature map counts as zero; other points outside read the
        nearest texel of the edge.

    Gradients: of any order, in forward and reverse mode, with respect to `features` and, unlike torchvision's, `boxes`;
        the number of reads counts as fixed. At kinks the slope is the one on the right.

    Precision: with ``sampling_ratio=-1`` and a `spatial_scale` that is no power of two, torchvision may round their
        product differently, and a box whose size is a multiple of the output size may take one read more or less per
        bin.

    Raises:
        ValueError: if shapes do not fit each other, or there are several feature maps and no `batch_indices`.
        TypeError: if a static argument is traced.

    Source: K. He et al., "Mask R-CNN", 2017; `torchvision.ops.roi_align`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> ramp = np.broadcast_to(np.arange(8.0)[:, None, None], (1, 8, 8, 1))
        >>> jt.nn.roi_align(ramp, np.array([[1.0, 2.0, 3.0, 6.0]]), (2, 1))[0, :, 0, 0]
        Array([3., 5.], dtype=float32)
    """
    maps = as_features(NAME, "features", features, "(N, H, W, C)")
    corners = as_float(boxes)
    check_shape(NAME, "boxes", corners, (*corners.shape[:1], 4), "(K, 4): x1, y1, x2, y2")
    bins = as_pair(NAME, "output_size", output_size, 1)
    if sampling_ratio != -1 and not is_integer(sampling_ratio, 1):
        raise ValueError(
            f"{NAME}: sampling_ratio is {shown(sampling_ratio)}, expected an integer of at least 1, or -1."
        )
    sampling_ratio = int(sampling_ratio)
    as_number(NAME, "spatial_scale", spatial_scale, math.isfinite, "a finite number")
    if max_sampling_ratio is not None and sampling_ratio != -1:
        raise ValueError(
            f"{NAME}: max_sampling_ratio is given with sampling_ratio={sampling_ratio}, which needs no bound; leave it "
            f"out, or use sampling_ratio=-1."
        )
    sizes, count = maps.shape[1:3], corners.shape[0]
    check_texels(NAME, "features", maps, (*sizes, *maps.shape[: count and 1]))
    layer = check_indices(batch_indices, maps.shape[0], count)
    if not count:
        return jnp.zeros((0, *bins, maps.shape[3]), maps.dtype)
    if sampling_ratio == -1:
        bound = tuple(-(-n // count) for n, count in zip(sizes, bins))
        most = bound if max_sampling_ratio is None else as_pair(NAME, "max_sampling_ratio", max_sampling_ratio, 1)
    else:
        most = (sampling_ratio, sampling_ratio)
    # Positions are computed as torchvision computes them, up to the half texel at the end.
    corners = corners.astype(sum_dtype(maps.dtype, corners.dtype)) * spatial_scale - (0.5 if aligned else 0.0)
    spans = [
        points_of(corners[:, 1 - k], corners[:, 3 - k], sizes[k], bins[k], most[k], sampling_ratio, aligned)
        for k in range(2)
    ]
    # Axes of the samples: boxes, bins along y, bins along x, points along y, points along x.
    (y, weight_y), (x, weight_x) = (
        (jnp.expand_dims(span.position + 0.5, (2 - k, 4 - k)), jnp.expand_dims(span.weight, (2 - k, 4 - k)))
        for k, span in enumerate(spans)
    )
    texture = texture2d_layered(maps)
    return sample_weighted(texture, (x, y), weight_x * weight_y, EDGE, axis=(3, 4), layer=layer.reshape(-1, 1, 1, 1, 1))


class Points(NamedTuple):
    """The points of bins along one axis.

    Attributes:
        position: (K, bins, points): texel i has its center at i.
        weight: (K, bins, points): the share of a point in the mean of a bin.
    """

    position: jax.Array
    weight: jax.Array


def points_of(
    start: jax.Array, end: jax.Array, size: int, bins: int, most: int, sampling_ratio: int, aligned: bool
) -> Points:
    """The points of all bins along one axis, of boxes from `start` to `end`."""
    length = (end - start if aligned else jnp.maximum(end - start, 1))[:, None, None]
    width = quotient(length, bins)
    count = jnp.ceil(width) if sampling_ratio == -1 else jnp.full_like(width, sampling_ratio)
    count = jax.lax.stop_gradient(jnp.clip(count, 0, most))
    divisor = jnp.maximum(count, 1)
    first = jnp.arange(bins, dtype=width.dtype)[None, :, None]
    point = jnp.arange(most, dtype=width.dtype)[None, None, :]
    position = start[:, None, None] + first * width + (point + 0.5) * width / divisor
    used = (point < count) & (position >= -1) & (position <= size)
    return Points(position, jnp.where(used, 1 / divisor, 0))


def quotient(length: jax.Array, number: int) -> jax.Array:
    """``length / number``, correctly rounded for numbers up to 2^12.

    XLA multiplies by the inverse of a constant, and GPUs round a quotient less exactly: 21 / 7 may be more than 3, and
    a box then takes four reads. So the exact remainder corrects the quotient.
    """
    near, bits = length / number, np.finfo(length.dtype)
    high = jax.lax.reduce_precision(near, bits.nexp, bits.nmant // 2)
    remainder = (length - high * number) - (near - high) * number
    return near + jax.lax.stop_gradient(remainder) / number


def check_indices(indices: ArrayLike | None, maps: int, boxes: int) -> jax.Array:
    """The feature map of each box."""
    if indices is None:
        if maps > 1:
            raise ValueError(
                f"{NAME}: features holds {maps} feature maps, and batch_indices is missing; pass the feature map of "
                f"each box."
            )
        return jnp.zeros(boxes, jnp.int32)
    array = jnp.asarray(indices)
    check_shape(NAME, "batch_indices", array, (boxes,), "one feature map for each box")
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{NAME}: batch_indices has dtype {array.dtype}, expected integers; use .astype(int).")
    return array
