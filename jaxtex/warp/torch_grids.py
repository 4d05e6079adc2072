"""Grids from -1 to 1 as PyTorch has them: made of affine maps, and images read at them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..sampler import Sampler
from .calls import compiled
from .fields import as_fields, check_fields
from .grids import affine, given, rows
from .images import warp_image
from .options import ReadOptions, resolve_sampler
from .paddings import Span, option, reading, stays
from .shapes import as_matrix, is_shape

AXES = {2: "H, W", 3: "D, H, W"}
# Whether the channels stand in front of the other axes.
CHANNELS_FIRST = {"NCHW": True, "NHWC": False, "NCDHW": True, "NDHWC": False}


@compiled("size", "align_corners")
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool = False) -> jax.Array:
    """The grid of an affine map, for `grid_sample`: for each pixel of an output, where in the input it comes from.

    ``theta @ (x, y, 1)`` or ``theta @ (x, y, z, 1)`` at the centres of the output's pixels, where both images run from
    -1 to 1.

    Args:
        theta: (..., 2, 3) or (..., 3, 4), maps output to input. Leading axes are batches.
        size: of the output, ``(H, W)`` or ``(D, H, W)``; or torch's ``(N, C, H, W)`` or ``(N, C, D, H, W)``, where
            `theta` is (N, 2, 3) or (N, 3, 4).
        align_corners: whether -1 and 1 are the centres of the outer pixels, or their outer edges. An axis of one pixel
            is at 0 in both.

    Returns:
        (..., H, W, 2) or (..., D, H, W, 3), x first; float32, or float64 if `theta` is.

    Gradients: to `theta`, in which the grid is linear, in both modes.

    Raises:
        ValueError: if `theta` has another shape, or `size` does not fit it.

    Source: `torch.nn.functional.affine_grid`.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> jt.warp.affine_grid(jnp.array([[1.0, 0.0, 0.25], [0.0, 2.0, 0.0]]), (2, 2))[..., 0]
        Array([[-0.25,  0.75],
               [-0.25,  0.75]], dtype=float32)
    """
    theta = as_matrix("affine_grid", theta, ((2, 3), (3, 4)), "theta")
    ndim, batch = theta.shape[-2], theta.shape[:-2]
    if not is_shape(size) or len(size) not in (ndim, ndim + 2):
        raise ValueError(
            f"affine_grid: size is {size}, expected ({AXES[ndim]}) or (N, C, {AXES[ndim]}), all positive, for theta of "
            f"shape {theta.shape}."
        )
    size = tuple(map(int, size))
    if len(size) > ndim and batch != size[:1]:
        raise ValueError(
            f"affine_grid: theta has shape {theta.shape}, expected {(size[0], *theta.shape[-2:])}, one map for each of "
            f"the N images of size {size}; for other batches leave N and C out of size."
        )
    lines = [Span.of(n, align_corners).centres for n in size[: -ndim - 1 : -1]]
    axes = [(-1, *[1] * k) for k in range(ndim)]
    coords = [jnp.asarray(line, theta.dtype).reshape(shape) for line, shape in zip(lines, axes)]
    coords = [jnp.expand_dims(c, range(len(batch) + ndim - c.ndim)) for c in coords]
    return jnp.stack(affine(*coords, *rows(theta, ndim)), axis=-1)


@compiled("mode", "padding_mode", "align_corners", "data_format", "antialias", "sampler")
def grid_sample(
    images: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
    *,
    data_format: str = "NCHW",
    sampler: Sampler | None = None,
    border_color: Any = None,
    antialias: bool = False,
) -> jax.Array:
    """Reads images at the points of grids, with the values and gradients of `torch.nn.functional.grid_sample`.

    Args:
        images: (..., C, H, W) or (..., C, D, H, W), or with channels last, see `data_format`; of any floating or
            integer dtype.
        grid: (..., H_out, W_out, 2) or (..., D_out, H_out, W_out, 3), x first; or a tuple of arrays ``(x, y)`` or
            ``(x, y, z)``, which is read faster. Leading axes are batches, on which images and grids broadcast. NaN acts
            as -1, infinities are outside.
        mode: ``"nearest"`` (of two texels equally near, the one with the even index), ``"bilinear"`` (for volumes
            trilinear, and ``"trilinear"`` is the same), or ``"bicubic"`` (with the coefficient -0.75; for volumes too,
            where torch has none).
        padding_mode: ``"zeros"``; ``"border"``, the nearest texel of the edge; or ``"reflection"`` at -1 and 1: so the
            texel of the edge comes twice, or with `align_corners` once.
        align_corners: whether -1 and 1 are the centres of the outer pixels, or their outer edges; `None` is `False`.
        data_format: ``"NCHW"`` or ``"NHWC"``, for volumes also ``"NCDHW"`` or ``"NDHWC"``: whether channels stand
            before the other axes or behind them. Whether the images are volumes follows from the grid.
        sampler: a `Sampler` in place of `mode` and `padding_mode`, for what torch lacks, such as wrap; `padding_mode`
            holds if it sets no address mode. It makes no difference whether its coordinates are normalized.
        border_color: scalar or (C,), what lies outside in place of zeros.
        antialias: whether to smooth the images as far as the grid shrinks them, as `remap` does; torch does not.

    Returns:
        (..., C, H_out, W_out) or (..., C, D_out, H_out, W_out), or with channels last; in the dtype of `images`, or
        float32 where the sampler reads fractions. Weights and sums are taken in float32, or float64 if images or grid
        are; integers are rounded, half to even.

    Gradients: to images, grid and border colour, to any order, in both modes. They are torch's, at kinks too: on a
    texel's centre the slope is the one to its right, read away from the edge at which the coordinate was reflected;
    under border and reflection it is zero where the coordinate comes to lie on the centre of an outer texel, or beyond.
    Nearest has none in the grid. With a `sampler` they are those of `jaxtex.sample`.

    Raises:
        ValueError: if shapes do not fit, a mode is unknown, or the sampler cannot read the images.
        TypeError: if an argument is of the wrong kind.

    Source: `torch.nn.functional.grid_sample`; docs/conventions.md says where torch differs from its manual.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image, grid = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]])
        >>> jt.warp.grid_sample(image, grid, padding_mode="border")
        Array([[[1., 2., 3.]]], dtype=float32)
        >>> jt.warp.grid_sample(image, grid, sampler=jt.Sampler(address_mode="wrap"))
        Array([[[2., 2., 2.]]], dtype=float32)
    """
    first = option("grid_sample", "data_format", data_format, CHANNELS_FIRST)
    images, grid = jnp.asarray(images), check_fields("grid_sample", "grid", as_fields("grid_sample", "grid", grid))
    ndim, points = len(grid), np.broadcast_shapes(*(g.shape for g in grid))
    if "D" in data_format and ndim == 2:
        raise ValueError(
            f"grid_sample: data_format is {data_format!r}, that of volumes, but grid holds points (x, y) of images; "
            f"use {data_format.replace('D', '')!r}, or give points (x, y, z)."
        )
    batches = images.shape[: -ndim - 1], points[:-ndim]
    if images.ndim <= ndim or not fits(*batches):
        expected = f"(..., C, {AXES[ndim]})" if first else f"(..., {AXES[ndim]}, C)"
        raise ValueError(
            f"grid_sample: images has shape {images.shape}, expected {expected}, where leading axes broadcast with "
            f"those of grid, {batches[1]}."
        )
    if mode == "trilinear" and ndim == 2:
        raise ValueError(
            "grid_sample: mode is 'trilinear', which is for volumes, but grid holds points (x, y) of images; use "
            "'bilinear'."
        )
    whole, fold = reading("grid_sample", mode, padding_mode, align_corners)
    if sampler is not None:
        whole, fold = resolve_sampler("grid_sample", sampler, None, None, whole.address_mode), stays
    channels = -ndim - 1 if first else -1
    images = jnp.moveaxis(images, channels, -1)
    spans = [Span.of(n, align_corners) for n in images.shape[-2 : -ndim - 2 : -1]]
    positions = [fold(span.position(g), span) for g, span in zip(grid, spans)]
    options = ReadOptions(whole, border_color, antialias)
    out = warp_image("grid_sample", images, given, positions, points[-ndim:], options)
    return jnp.moveaxis(out, -1, channels)


def fits(*shapes: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes broadcast."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
