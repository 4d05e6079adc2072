"""Warps of label maps: labels are chosen, never blended."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_array
from .._checks.words import check_word
from .._engine.api import Operand
from .._jax.calls import typed_jit
from .._jax.indexing import over_batch
from .._reads.calls import sample_labels
from ..modes import AddressMode, FilterMode
from ..sampler import Sampler, check_modes
from ..texture import check_color
from .composed import ComposedPoints, Transform, as_transforms, composed
from .coordinate_functions import Composed, GridFunction, is_affine, stored_points
from .fields import field_parameters
from .images import KINDS, batched, check_image, grid_operands
from .options import AddressLike, Points, ShapeLike, address_modes, check_shows_outside

METHODS = {"nearest": FilterMode.POINT, "partial_volume": FilterMode.LINEAR}


@public(compiled=True)
def warp_labels(
    labels: ArrayLike,
    transforms: Sequence[Transform] | None = None,
    output_shape: ShapeLike | None = None,
    *,
    coords: ArrayLike | Points | None = None,
    method: Literal["nearest", "partial_volume"] = "nearest",
    flow_sampler: Sampler | None = None,
    address_mode: AddressLike | None = None,
    border_label: ArrayLike | None = None,
) -> jax.Array:
    """Warps label maps: each output pixel gets one of the labels, never a blend.

    Args:
        labels: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, of integers or bool. Leading axes are batches, and
            each channel is a label map of its own.
        transforms: a list of matrices, flows and functions from output to input, as in `warp_chain`.
        output_shape: the spatial shape of the output, as in `warp_chain`.
        coords: in place of `transforms`, the points of the input that the output shows, as in `remap`.
        method: ``"nearest"`` takes the label of the pixel that contains the point. ``"partial_volume"`` adds up, label
            by label, the weights that a linear filter gives to the 4 pixels around the point, or to the 8 voxels, and
            takes the label with the most weight; among equal weights, the smallest label. Neither memory nor time
            depends on the number of labels.
        flow_sampler: how flows are interpolated, as in `warp_chain`.
        address_mode: how the labels continue outside, as in `resample`; by default ``"border"``.
        border_label: the label outside under ``"border"``, an integer or ``(C,)``; by default 0.

    Returns:
        ``(..., *output_shape, C)``, in the dtype of `labels`.

    Gradients: none; they are zero.

    Raises:
        ValueError: if shapes do not fit, or if both or neither of `transforms` and `coords` are given.
        TypeError: if labels are neither integers nor bool.

    Source: F. Maes et al., "Multimodality Image Registration by Maximization of Mutual Information", 1997, for the
        partial-volume weights.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> labels = np.array([[7, 5], [9, 5]])[..., None]
        >>> point = np.array([[0.9]]), np.array([[0.9]])
        >>> jt.warp.warp_labels(labels, coords=point).item()
        7
        >>> jt.warp.warp_labels(labels, coords=point, method="partial_volume").item()  # weight 0.36 for 7, 0.4 for 5
        5
    """
    name = "warp_labels"
    check_word(name, "method", method, METHODS)
    modes = AddressMode.BORDER if address_mode is None else address_modes(name, address_mode)
    sampler = Sampler(filter_mode=METHODS[method], address_mode=modes, normalized_coords=False)
    check_shows_outside(name, sampler, border_label, "border_label")
    if (transforms is None) == (coords is None):
        came = "neither is" if coords is None else "both are"
        raise ValueError(f"{name}: expected either transforms or coords, but {came} given; pass one of them.")
    if coords is not None:
        points = points_of(name, coords, output_shape, flow_sampler)
    else:
        chain = as_transforms(name, transforms)
        points = composed(name, chain, output_shape, labels, flow_sampler, "labels")
    return warped_labels(name, labels, points, border_label, sampler)


def points_of(name: str, coords: Any, output_shape: ShapeLike | None, flow_sampler: Sampler | None) -> ComposedPoints:
    """Points that a caller gives, as a coordinate function."""
    if output_shape is not None:
        raise ValueError(f"{name}: output_shape is given, but the shape of coords sets it; leave output_shape out.")
    if flow_sampler is not None:
        raise ValueError(f"{name}: flow_sampler is given, but coords are not interpolated; leave flow_sampler out.")
    parameters, shape = field_parameters(name, "coords", coords)
    return ComposedPoints(Composed(((stored_points, len(shape)),)), parameters, shape)


def warped_labels(
    name: str, labels: ArrayLike, points: ComposedPoints, border_label: ArrayLike | None, sampler: Sampler
) -> jax.Array:
    """Labels at the points of an output, by the filter of a sampler."""
    ndim, texels = len(points.output_shape), as_array(labels)
    check_image(name, texels, ndim, "labels")
    stored = texels.dtype
    if jnp.issubdtype(stored, jnp.floating):
        raise TypeError(f"{name}: labels has dtype {stored}, expected integers or bool; convert it with labels.astype.")
    texels = jnp.asarray(texels).astype(np.uint8 if stored == jnp.bool_ else stored)
    color = jnp.asarray(0 if border_label is None else border_label)
    check_color(name, color, texels.shape[-1], "border_label")
    color = jnp.broadcast_to(color.astype(texels.dtype), texels.shape[-1:])
    check_modes(name, sampler, ndim, texels.shape[-2])
    parameters, shape = batched(name, "labels", texels, points.parameters, points.output_shape)
    if 0 in shape:
        return jnp.zeros(shape, stored)
    found = _read_labels(
        texels,
        color,
        parameters,
        function=points.function,
        output_shape=points.output_shape,
        sampler=sampler,
        batch=len(shape) - ndim - 1,
    )
    return jnp.broadcast_to(found, shape).astype(stored)


@typed_jit("function", "output_shape", "sampler", "batch")
def _read_labels(
    labels: jax.Array,
    color: jax.Array,
    parameters: tuple[Operand, ...],
    *,
    function: GridFunction,
    output_shape: tuple[int, ...],
    sampler: Sampler,
    batch: int,
) -> jax.Array:
    ndim = len(output_shape)
    operands = grid_operands(parameters, output_shape, batch, labels.dtype)
    labels = jnp.expand_dims(labels, range(batch + ndim + 1 - labels.ndim))

    def read(labels: jax.Array, *operands: Operand) -> jax.Array:
        axes = ndim if is_affine(function) else 0
        return sample_labels(labels, color, function, operands, sampler, kind=KINDS[ndim], affine_axes=axes)

    return over_batch(read, batch)(labels, *operands)
