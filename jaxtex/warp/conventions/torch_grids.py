"""PyTorch's `affine_grid` and `grid_sample`: their `align_corners`, modes and paddings, as positions and a sampler."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from ..._checks.calls import public
from ..._checks.hints import looks_channels_first
from ..._checks.texels import check_sizes
from ..._checks.words import check_word, shown
from ..._jax.shapes import broadcast_shapes, is_symbolic
from ..._jax.versions import stack
from ...modes import AddressMode, FilterMode
from ...sampler import Sampler
from ..coordinate_functions import affine, matrix_parameters
from ..fields import as_components, field_parameters
from ..images import warp_image
from ..options import (
    Points,
    ReadOptions,
    ShapeLike,
    as_matrix,
    broadcast,
    check_shows_outside,
    contradiction,
    is_shape,
    resolve_sampler,
    result_dtype,
)

Entry = TypeVar("Entry")

AXES = {2: "H, W", 3: "D, H, W"}
# Whether channels come first.
CHANNELS_FIRST = {"NCHW": True, "NHWC": False, "NCDHW": True, "NDHWC": False}


@public(compiled=True)
def affine_grid(theta: ArrayLike, size: ShapeLike, align_corners: bool | None = False) -> jax.Array:
    """Returns the grid of an affine map for `grid_sample`: for each output pixel, a point of the input.

    The grid is ``theta @ (x, y, 1)`` or ``theta @ (x, y, z, 1)`` at the centers of the output's pixels, in coordinates
    from -1 to 1 across both images.

    Args:
        theta: ``(..., 2, 3)`` or ``(..., 3, 4)``: maps points of the output to points of the input, x first. Leading
            axes are batches.
        size: the size of the output, ``(H, W)`` or ``(D, H, W)``; or PyTorch's ``(N, C, H, W)`` or ``(N, C, D, H, W)``,
            with `theta` of shape (N, 2, 3) or (N, 3, 4).
        align_corners: whether -1 and 1 are the centers of the outer pixels; otherwise they are the outer edges of these
            pixels. An axis of one pixel is at 0 in both cases. ``None`` is false.

    Returns:
        ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, x first; float64 if `theta` is, else float32.

    Gradients: of any order, in forward and reverse mode, with respect to `theta`, in which the grid is linear.

    Raises:
        ValueError: if `theta` has another shape, or `size` does not fit it.

    Source: `torch.nn.functional.affine_grid`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> jt.warp.affine_grid(np.array([[1.0, 0.0, 0.25], [0.0, 2.0, 0.0]]), (2, 2))[..., 0]
        Array([[-0.25,  0.75],
               [-0.25,  0.75]], dtype=float32)
    """
    matrix = as_matrix("affine_grid", theta, ((2, 3), (3, 4)), "theta")
    ndim, batch = matrix.shape[-2], matrix.shape[:-2]
    check_sizes(f"affine_grid: size is {shown(size)}", size[-ndim:] if isinstance(size, tuple) else ())
    if not is_size(size, ndim):
        raise ValueError(
            f"affine_grid: size is {shown(size)}, expected ({AXES[ndim]}) or (N, C, {AXES[ndim]}), of one pixel or "
            f"more, for theta of shape {matrix.shape}."
        )
    sizes = (*(n if is_symbolic([n]) else int(n) for n in size[:-ndim]), *map(int, size[-ndim:]))
    if len(sizes) > ndim and batch != sizes[:1]:
        raise ValueError(
            f"affine_grid: theta has shape {matrix.shape}, expected {(sizes[0], *matrix.shape[-2:])}, one map for each "
            f"of the N images of size {sizes}; for other batches leave N and C out of size."
        )
    lines = [Span.of(n, align_corners).centers for n in sizes[: -ndim - 1 : -1]]
    axes = [(-1, *[1] * k) for k in range(ndim)]
    coords = [jnp.asarray(line, matrix.dtype).reshape(shape) for line, shape in zip(lines, axes)]
    coords = [jnp.expand_dims(c, range(len(batch) + ndim - c.ndim)) for c in coords]
    return stack(affine(*coords, *matrix_parameters(matrix, ndim)), axis=-1)


@public(compiled=True)
def grid_sample(
    image: ArrayLike,
    grid: ArrayLike | Points,
    mode: Literal["nearest", "bilinear", "trilinear", "bicubic"] | None = None,
    padding_mode: Literal["zeros", "border", "reflection"] | None = None,
    align_corners: bool | None = False,
    *,
    data_format: Literal["NCHW", "NHWC", "NCDHW", "NDHWC"] = "NCHW",
    sampler: Sampler | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Reads images at the points of grids, as `torch.nn.functional.grid_sample` does, gradients included.

    Args:
        image: ``(..., C, H, W)`` or ``(..., C, D, H, W)``, or with channels last, see `data_format`; of any floating
            or integer dtype or bool.
        grid: ``(..., H_out, W_out, 2)`` or ``(..., D_out, H_out, W_out, 3)``, x first; or, faster, a tuple of arrays
            ``(x, y)`` or ``(x, y, z)``. Leading axes are batches; those of image and grid broadcast with each other.
            NaN acts as -1. Infinite coordinates are outside.
        mode: ``"bilinear"``, the default; ``"nearest"`` (of two texels equally near, the one with the even index);
            ``"trilinear"``, the word for volumes; or ``"bicubic"`` (with the coefficient -0.75; for volumes too,
            unlike PyTorch).
        padding_mode: ``"zeros"``, the default; ``"border"``, the nearest texel of the edge; or ``"reflection"``, which
            mirrors the image at -1 and 1: the texel of the edge appears twice, or once with `align_corners`.
        align_corners: whether -1 and 1 are the centers of the outer pixels; otherwise they are the outer edges of these
            pixels. ``None`` is false.
        data_format: ``"NCHW"`` or ``"NHWC"``, for volumes also ``"NCDHW"`` or ``"NDHWC"``: whether channels come before
            or after the spatial axes. The grid decides whether the images are volumes.
        sampler: a `Sampler` in place of `mode`, for modes that PyTorch lacks, such as wrap. If it sets no address mode,
            `padding_mode` does. Its `normalized_coords` is ignored.
        border_color: a scalar or (C,), in place of the zeros outside.
        antialias: whether to smooth the image as much as the grid shrinks it, as in `remap`. PyTorch has no such
            option.
        dtype: the dtype of the result; by default that of the image, and float32 where the sampler reads fractions or a
            filter blends bool.

    Returns:
        ``(..., C, H_out, W_out)`` or ``(..., C, D_out, H_out, W_out)``, or with channels last. Weights and sums are
        computed in float32, or in float64 if image or grid are; integers are rounded, half to even.

    Gradients: of any order, in forward and reverse mode, with respect to image, grid and border color. They are
        PyTorch's, at kinks too. At the center of a texel the slope is the one on the right, seen after reflection.
        Under border and reflection the slope is zero where the coordinate reaches the center of an outer texel or lies
        beyond it. Under nearest the gradient with respect to the grid is zero. With a `sampler`, gradients are those of
        `jaxtex.sample`. All are zero if the result is of integers; pass a floating `dtype`.

    Raises:
        ValueError: if shapes do not fit, a mode is unknown or contradicts the sampler, or the sampler cannot read the
            image.
        TypeError: if an argument has the wrong type.

    Source: `torch.nn.functional.grid_sample`; docs/conventions.md lists where PyTorch differs from its manual.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image, grid = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0]]])
        >>> jt.warp.grid_sample(image, grid, padding_mode="border")
        Array([[[1., 2., 3.]]], dtype=float32)
        >>> jt.warp.grid_sample(image, grid, sampler=jt.Sampler(address_mode="wrap"))
        Array([[[2., 2., 2.]]], dtype=float32)
    """
    name = "grid_sample"
    first = entry(name, "data_format", data_format, CHANNELS_FIRST)
    pixels, points = jnp.asarray(image), as_components(name, "grid", grid)
    ndim, shape = len(points), broadcast_shapes(*(g.shape for g in points))
    if "D" in data_format and ndim == 2:
        raise ValueError(
            f"{name}: data_format is {data_format!r}, for volumes, but grid holds points (x, y) of images; use "
            f"{data_format.replace('D', '')!r}, or pass points (x, y, z)."
        )
    if mode == "trilinear" and ndim == 2:
        raise ValueError(
            f"{name}: mode is 'trilinear', for volumes, but grid holds points (x, y) of images; use 'bilinear', or "
            f"pass points (x, y, z)."
        )
    if pixels.ndim <= ndim or broadcast(pixels.shape[: -ndim - 1], shape[:-ndim]) is None:
        expected = f"(..., C, {AXES[ndim]})" if first else f"(..., {AXES[ndim]}, C)"
        raise ValueError(
            f"{name}: image has shape {pixels.shape}, expected {expected}, where the leading axes broadcast with "
            f"those of grid, {shape[:-ndim]}."
        )
    check_sizes(f"{name}: image has shape {pixels.shape}", pixels.shape[-ndim - 1 :])
    how, fold = grid_read(name, mode or "bilinear", padding_mode or "zeros", align_corners)
    if sampler is not None:
        if mode is not None:
            raise ValueError(f"{name}: mode is {mode!r}, but sampler takes its place; leave mode or sampler out.")
        if padding_mode is not None and sampler.address_mode is not None:
            raise ValueError(contradiction(name, "padding_mode", padding_mode, sampler.address_mode, "address_mode"))
        how, fold = resolve_sampler(name, sampler, None, None, cast(AddressMode, how.address_mode)), unchanged
    check_layout(name, pixels.shape, ndim, first)
    channels = -ndim - 1 if first else -1
    pixels = jnp.moveaxis(pixels, channels, -1)
    positions = GridPositions(tuple(Span.of(n, align_corners) for n in pixels.shape[-2 : -ndim - 2 : -1]), fold)
    check_shows_outside(name, how, border_color)
    options = ReadOptions(how, border_color, antialias, result_dtype(name, dtype), planar=first)
    parameters = field_parameters(name, "grid", grid)[0]
    out = warp_image(name, pixels, positions, parameters, shape[-ndim:], options)
    return jnp.moveaxis(out, -1, channels)


def check_layout(name: str, shape: tuple[int, ...], ndim: int, channels_first: bool) -> None:
    """Warns of an image that is read with channels first, but looks as if they came last."""
    if channels_first and looks_channels_first((shape[-1], *shape[-ndim - 1 : -1])):
        axes, layout = {2: ("(..., C, H, W)", "NHWC"), 3: ("(..., C, D, H, W)", "NDHWC")}[ndim]
        warnings.warn(
            f"{name}: image has shape {shape}, read as {axes}: {shape[-ndim - 1]} channels. If its channels come last, "
            f"pass data_format={layout!r}.",
            stacklevel=2,
        )


def is_size(value: Any, ndim: int) -> bool:
    """Whether a value is the size of an output: its spatial shape, alone or behind N and C, which may be 0."""
    if not isinstance(value, tuple) or len(cast(tuple[Any, ...], value)) not in (ndim, ndim + 2):
        return False
    front, spatial = cast(tuple[Any, ...], value[:-ndim]), cast(tuple[Any, ...], value[-ndim:])
    return is_shape(spatial) and is_shape(tuple(1 if is_symbolic([n]) else n or 1 for n in front))


# Positions and modes


class Span(NamedTuple):
    """The part of an axis of `size` texels that a grid spans: -1 is the position `low`, and 1 is `high`."""

    low: float
    high: float
    size: int

    @classmethod
    def of(cls, size: int, align_corners: bool | None) -> "Span":
        """From center to center of the outer texels, or from edge to edge."""
        return cls(0.5, size - 0.5, size) if align_corners else cls(0.0, float(size), size)

    @property
    def length(self) -> float:
        """The number of texels between -1 and 1."""
        return self.high - self.low

    @property
    def centers(self) -> np.ndarray:
        """The coordinates of the texels' centers; 0 if the span has no length."""
        if not self.length:
            return np.zeros(self.size)
        return (np.arange(self.size) + 0.5 - self.low) * (2 / self.length) - 1

    def position(self, g: jax.Array) -> jax.Array:
        """The position of a grid's coordinate. NaN acts as -1, as in PyTorch's manual."""
        return (jnp.where(g == g, g, -1) + 1) * (self.length / 2) + self.low


# Maps a position before the read.
Fold = Callable[[jax.Array, Span], jax.Array]


def unchanged(position: jax.Array, span: Span) -> jax.Array:
    """The position itself."""
    return position


def clamped(position: jax.Array, span: Span) -> jax.Array:
    """The position, clamped to the centers of the outer texels. At these centers the slope is zero; NaN acts as the
    first center."""
    first, last = 0.5, span.size - 0.5
    return jnp.where(position > first, jnp.where(position < last, position, last), first)


def reflected(position: jax.Array, span: Span) -> jax.Array:
    """The position, mirrored at both ends of the span, and clamped where these are the edges of the outer texels."""
    if not span.length:
        return clamped(position, span)
    phase = jnp.mod(position - span.low, 2 * span.length)
    return clamped(jnp.where(phase < span.length, phase, 2 * span.length - phase) + span.low, span)


class Rounded(NamedTuple):
    """The center nearest to the folded position; of two equally near, the one with the even index."""

    fold: Fold

    def __call__(self, position: jax.Array, span: Span) -> jax.Array:
        return jnp.round(self.fold(position, span) - 0.5) + 0.5


class GridPositions(NamedTuple):
    """A coordinate function that takes the coordinates of a grid, from -1 to 1, behind those of the pixels.

    Attributes:
        spans: of the image, x first.
        fold: maps a position before the read.
    """

    spans: tuple[Span, ...]
    fold: Fold

    def __call__(self, *args: jax.Array) -> tuple[jax.Array, ...]:
        points = args[len(args) // 2 :]
        return tuple(self.fold(span.position(g), span) for g, span in zip(points, self.spans, strict=True))


class Padding(NamedTuple):
    """The result of a read outside the image.

    PyTorch folds a coordinate into the image, and for a cubic filter each tap. An address mode returns the same values,
    but differs in the slope at a kink and in a tie under reflection.

    Attributes:
        fold: maps positions into the image, for all filters but cubic.
        address_mode: the address mode without and with `align_corners`.
    """

    fold: Fold
    address_mode: tuple[AddressMode, AddressMode]


PADDINGS = {
    "zeros": Padding(unchanged, (AddressMode.BORDER, AddressMode.BORDER)),
    "border": Padding(clamped, (AddressMode.CLAMP, AddressMode.CLAMP)),
    "reflection": Padding(reflected, (AddressMode.MIRROR, AddressMode.REFLECT)),
}
FILTERS = {
    "nearest": FilterMode.POINT,
    "bilinear": FilterMode.LINEAR,
    "trilinear": FilterMode.LINEAR,
    "bicubic": FilterMode.CUBIC,
}
CUBIC_COEFFICIENT = -0.75


def grid_read(name: str, mode: str, padding_mode: str, align_corners: bool | None) -> tuple[Sampler, Fold]:
    """The sampler and the fold of positions that PyTorch's modes stand for."""
    filter_mode, padding = entry(name, "mode", mode, FILTERS), entry(name, "padding_mode", padding_mode, PADDINGS)
    address_mode = padding.address_mode[bool(align_corners)]
    sampler = Sampler(address_mode=address_mode, filter_mode=filter_mode, cubic_coefficient=CUBIC_COEFFICIENT)
    if filter_mode is FilterMode.CUBIC:
        return sampler, unchanged
    return sampler, Rounded(padding.fold) if filter_mode is FilterMode.POINT else padding.fold


def entry(name: str, argument: str, value: Any, table: Mapping[str, Entry]) -> Entry:
    """The entry of `table` that `value` names."""
    check_word(name, argument, value, table)
    return table[value]
