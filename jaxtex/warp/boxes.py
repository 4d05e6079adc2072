"""Boxes that follow a warped image."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_integer
from .._jax.versions import stack
from ..sampler import Sampler
from .composed import Transform, as_transforms, is_matrix, of_output
from .inverses import components_of
from .keypoints import Place, followed
from .options import ShapeLike, as_floats, as_shape

# Points along an edge: the corners, which are enough for matrices, and what other transforms get by default.
CORNERS, POINTS_PER_EDGE = 2, 9


@public(compiled=True)
def warp_boxes(
    boxes: ArrayLike,
    transforms: Sequence[Transform],
    output_shape: ShapeLike | None = None,
    *,
    to: Place = "output",
    clip: bool = False,
    points_per_edge: int | None = None,
    flow_sampler: Sampler | None = None,
) -> jax.Array:
    """Returns the boxes around what `warp_chain` makes of boxes: the smallest, with sides along the axes.

    A box with sides along the axes holds the warped corners, and points between them. After a rotation it is larger
    than the object in it, as every such box is.

    Args:
        boxes: ``(..., N, 4)``, each ``(x0, y0, x1, y1)``, the coordinates of its left, top, right and bottom edge; or
            ``(..., N, 6)`` for volumes, ``(x0, y0, z0, x1, y1, z1)``. They are in pixels from the top left corner of
            the image, so that ``(0, 0, W, H)`` is the whole image, and ``(3, 2, 4, 3)`` one pixel. A single box may
            leave N out. Leading axes broadcast with those of the transforms.
        transforms: as in `warp_chain`: matrices, flows and functions from output to image, first to last.
        output_shape: the spatial shape of the output, as in `warp_points`.
        to: ``"output"``: boxes of the image become boxes of the output. ``"image"``: the other way.
        clip: whether to cut off what lies outside of the output. A box that lies outside as a whole keeps no area.
        points_per_edge: how many points of each edge the box is put around, at least 2, the corners; those of volumes
            cover the faces. By default 2 if all transforms are matrices, which is exact, and 9 otherwise.
        flow_sampler: as in `warp_chain`.

    Returns:
        Boxes in the form of `boxes`, with ``x0 <= x1`` and ``y0 <= y1``; float64 if an argument is, else float32. A box
        is NaN if one of its points is, as in `warp_points`. A box that a homography maps across its horizon has no
        image of finite size, and its result says nothing.

    Gradients: as in `warp_points`, each number's from the point farthest out; equal points share it.

    Raises:
        ValueError: if shapes do not fit, or with `clip` the shape of the output is not known, or not that of boxes of
            the result.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> left = jnp.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]])  # the output shows what is 3 pixels to the right
        >>> jt.warp.warp_boxes(jnp.array([[2.0, 1.0, 6.0, 4.0]]), [left], (5, 8), clip=True)
        Array([[0., 1., 3., 4.]], dtype=float32)
    """
    name = "warp_boxes"
    low, high, is_single = sides(name, boxes, transforms)
    ndim, chain = low.shape[-1], as_transforms(name, transforms)
    count = CORNERS if all(is_matrix(t, ndim) for t in chain) else POINTS_PER_EDGE
    if points_per_edge is not None:
        count = as_integer(name, "points_per_edge", points_per_edge, CORNERS)
    # The surface of a lattice of points: shares of the way from one side to the other, (K, n).
    steps = [k / (count - 1) for k in range(count)]
    surface = [p for p in itertools.product(steps, repeat=ndim) if {0.0, 1.0} & {*p}]
    shares = jnp.asarray(surface, low.dtype).reshape(*[1] * (low.ndim - 1), len(surface), ndim)
    points = low[..., None, :] * (1 - shares) + high[..., None, :] * shares  # (..., N, K, n)
    rows = points.reshape(*points.shape[:-3], -1, ndim)
    moved = stack(followed(name, "boxes", components_of(rows), chain, output_shape, to, flow_sampler), -1)
    moved = moved.reshape(*moved.shape[:-2], low.shape[-2], len(surface), ndim)
    found = jnp.concatenate([jnp.min(moved, -2), jnp.max(moved, -2)], -1)
    if clip:
        found = clipped(name, found, of_output(chain, output_shape, ndim), ndim, to)
    return found[..., 0, :] if is_single else found


def sides(name: str, boxes: Any, transforms: Any) -> tuple[jax.Array, jax.Array, bool]:
    """The least and the greatest coordinates of boxes, (..., N, n), in the precision of all, and if N was left out."""
    (array, *_) = as_floats(boxes, *jax.tree.leaves(transforms))
    if array.shape[-1:] not in ((4,), (6,)):
        raise ValueError(
            f"{name}: boxes has shape {array.shape}, expected (..., N, 4) of x0, y0, x1, y1, or (..., N, 6) of x0, y0, "
            f"z0, x1, y1, z1 for volumes."
        )
    low, high = jnp.split(array[None] if array.ndim == 1 else array, 2, -1)
    return low, high, array.ndim == 1


def clipped(name: str, boxes: jax.Array, output_shape: ShapeLike | None, ndim: int, to: Place) -> jax.Array:
    """Boxes without what lies outside of the output."""
    if to == "image":
        raise ValueError(
            f"{name}: clip is True, but boxes in the image are asked for, expected to='output'; leave clip out, and "
            f"cut them with jnp.clip."
        )
    if output_shape is None:
        raise ValueError(f"{name}: clip is True, but the shape of the output is not known; pass output_shape.")
    sizes = jnp.asarray(as_shape(name, "output_shape", output_shape, (ndim,))[::-1] * 2, boxes.dtype)
    return jnp.clip(boxes, 0, sizes.reshape(*[1] * (boxes.ndim - 1), 2 * ndim))
