"""Deformable convolutions."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float, is_integer
from .._checks.texels import check_sizes
from .._checks.words import shown
from .._jax.indexing import is_sharded, with_batch_alike
from .._tables.storage_formats import sum_dtype
from ..sampler import Sampler
from ..texture import texture2d
from .shapes import as_features, as_pair, check_shape, check_texels
from .weighted import sample_weighted

NAME = "deformable_conv"
ZEROS = Sampler(address_mode="border", normalized_coords=False)
Pads = tuple[tuple[int, int], tuple[int, int]]
Padding = int | Sequence[int] | Sequence[tuple[int, int]] | Literal["SAME", "VALID"]


@public(compiled=True)
def deformable_conv(
    x: ArrayLike,
    offsets: ArrayLike,
    kernel: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    strides: int | tuple[int, int] = 1,
    padding: Padding = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    offset_groups: int | None = None,
) -> jax.Array:
    """Deformable convolution, version 2: each kernel tap reads at its own offset and is multiplied by a mask.

    ``out[p] = bias + sum_k kernel_k mask_k(p) x(p + k + offsets_k(p))``, a cross-correlation as in `jax.lax`. Without
    `mask` it is version 1, and with offsets of zero a plain convolution.

    Args:
        x: ``(N, H, W, C)``, floating.
        offsets: ``(N, H_out, W_out, offset_groups * kh * kw * 2)``, in texels of `x`. Channels are in torchvision's
            order: for each offset group, kernel row and kernel column, the offset along y, then the offset along x.
        kernel: ``(kh, kw, C / groups, O)``.
        mask: ``(N, H_out, W_out, offset_groups * kh * kw)``, the weight of each tap, usually from 0 to 1. ``None`` is
            1.
        bias: ``(O,)``. ``None`` is 0.
        strides: the strides along height and width, an integer or two; static.
        padding: zeros around `x`: an integer, one for height and one for width, a pair (before, after) for each, or
            ``"SAME"`` or ``"VALID"`` as in `jax.lax`; static.
        dilation: the dilation of the kernel, an integer or two; static.
        groups: the number of groups into which input and output channels are divided; static.
        offset_groups: the number of groups of channels of `x` that have their own offsets; static. With ``None`` it
            follows from the number of channels of `offsets`.

    Returns:
        ``(N, H_out, W_out, O)`` in the dtype of `x`. Sums are computed in float32, or in float64 if an argument is
        float64.

    Gradients: of any order, in forward and reverse mode, with respect to all arrays. At the center of a texel the slope
        is the one on the right, as in torchvision. Offsets of zero are such points.

    Precision: reads are rounded to the dtype of `x`. Products with the kernel have the precision of JAX's matrix
        products, see `jax.default_matmul_precision`. Images are processed one by one, each with an array of its reads,
        ``(H_out, W_out, kh * kw * C)``; reverse mode reads again.

    Raises:
        ValueError: if shapes or options do not fit each other.
        TypeError: if a static argument is traced.

    Source: X. Zhu et al., "Deformable ConvNets v2", 2019; `torchvision.ops.deform_conv2d`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> x = np.arange(9.0).reshape(1, 3, 3, 1)
        >>> left = np.broadcast_to(np.array([0.0, -0.5]), (1, 3, 3, 2))
        >>> jt.nn.deformable_conv(x, left, np.ones((1, 1, 1, 1)))[0, :, :, 0]
        Array([[0. , 0.5, 1.5],
               [1.5, 3.5, 4.5],
               [3. , 6.5, 7.5]], dtype=float32)
    """
    image = as_features(NAME, "x", x, "(N, H, W, C)")
    check_texels(NAME, "x", image, image.shape[1:3])
    taps = as_features(NAME, "kernel", kernel, "(kh, kw, C / groups, O)")
    check_sizes(f"{NAME}: kernel has shape {taps.shape}", taps.shape)
    layout = layout_of(image.shape, taps.shape, strides, padding, dilation, groups)
    moved = as_float(offsets)
    expected = (image.shape[0], *layout.output_shape)
    moved_groups = check_offset_groups(offset_groups, moved, layout, image.shape[3])
    count = moved_groups * layout.num_taps
    check_shape(NAME, "offsets", moved, (*expected, 2 * count), "(N, H_out, W_out, offset_groups * kh * kw * 2)")
    weight = jnp.ones((image.shape[0], 1, 1, count), jnp.float32) if mask is None else as_float(mask)
    if mask is not None:
        check_shape(NAME, "mask", weight, (*expected, count), "(N, H_out, W_out, offset_groups * kh * kw)")
    if bias is not None:
        check_shape(NAME, "bias", jnp.asarray(bias), (taps.shape[3],), "one number for each channel of the result")
    sums = sum_dtype(*(a.dtype for a in (image, taps, moved, weight)))
    moved = moved.astype(sums).reshape(*expected, moved_groups, layout.num_taps, 2)
    weight = weight.astype(sums).reshape(*weight.shape[:3], moved_groups, layout.num_taps)
    weight = jnp.broadcast_to(weight, (image.shape[0], *weight.shape[1:]))

    def of_image(image: jax.Array, moved: jax.Array, weight: jax.Array) -> jax.Array:
        return multiplied(columns_of(image, moved, weight, layout), taps, int(groups), sums)

    arrays = with_batch_alike(image, moved, weight)
    once = cast(Callable[..., jax.Array], jax.checkpoint(of_image))

    def on_one(one: tuple[jax.Array, ...]) -> jax.Array:
        return once(*one)

    if is_sharded(arrays[0]):  # each device has images of its own
        out = jax.vmap(once)(*arrays)
    else:  # one image at a time, so that memory holds the reads of one image
        each = cast(Callable[..., jax.Array], jax.lax.map)
        out = each(on_one, tuple(arrays))
    if bias is not None:
        out = out + jnp.asarray(bias).astype(sums)[None, None, None]
    return out.astype(image.dtype)


def columns_of(image: jax.Array, offsets: jax.Array, weight: jax.Array, layout: "ConvolutionLayout") -> jax.Array:
    """The weighted reads of all taps in an image (H, W, C): (H_out, W_out, offset groups, taps, C / offset groups).

    Args:
        offsets: (H_out, W_out, offset groups, taps, 2).
        weight: (H_out, W_out, offset groups, taps), or with sizes of 1.
    """
    rows, columns = layout.base_positions(offsets.dtype)
    y, x = rows.T[:, None, None] + offsets[..., 0], columns.T[None, :, None] + offsets[..., 1]
    num_heads = offsets.shape[-3]
    head = jnp.arange(num_heads, dtype=jnp.int32)[:, None]
    return sample_weighted(texture2d(image), (x, y), weight, ZEROS, axis=(), head=head, num_heads=num_heads)


def multiplied(columns: jax.Array, kernel: jax.Array, groups: int, sums: Any) -> jax.Array:
    """The reads of all taps, as `columns_of` returns them, times the kernel: (H_out, W_out, O) of `sums`."""
    height, width, parts, taps, channels = columns.shape
    matrix = kernel.reshape(taps, kernel.shape[2], kernel.shape[3])
    if columns.dtype != matrix.dtype:
        columns, matrix = columns.astype(sums), matrix.astype(sums)
    if groups == 1:
        matrix = matrix.reshape(taps, parts, channels, matrix.shape[2])
        return jnp.einsum("hwptc,tpco->hwo", columns, matrix, preferred_element_type=sums)
    _, inputs, outputs = matrix.shape
    columns = jnp.moveaxis(columns, 3, 2).reshape(height, width, taps, groups, inputs)
    matrix = matrix.reshape(taps, inputs, groups, outputs // groups)
    out = jnp.einsum("hwtgc,tcgo->hwgo", columns, matrix, preferred_element_type=sums)
    return out.reshape(height, width, outputs)


class ConvolutionLayout(NamedTuple):
    """The sizes of a convolution along height and width."""

    kernel_shape: tuple[int, int]
    output_shape: tuple[int, int]
    strides: tuple[int, int]
    pads: Pads
    dilation: tuple[int, int]

    @property
    def num_taps(self) -> int:
        """The number of taps of the kernel."""
        return self.kernel_shape[0] * self.kernel_shape[1]

    def base_positions(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """Where the taps lie without offsets, (taps, H_out) and (taps, W_out): texel i has its center at i + 0.5."""
        lines: list[jax.Array] = []
        for size, taps, stride, (before, _), dilation in zip(
            self.output_shape, self.kernel_shape, self.strides, self.pads, self.dilation
        ):
            start = jnp.arange(size, dtype=jnp.int32) * stride - before
            lines.append((start[None] + jnp.arange(taps, dtype=jnp.int32)[:, None] * dilation).astype(dtype) + 0.5)
        height, width = self.kernel_shape
        return jnp.repeat(lines[0], width, axis=0), jnp.tile(lines[1], (height, 1))


def layout_of(
    shape: tuple[int, ...], kernel: tuple[int, ...], strides: Any, padding: Any, dilation: Any, groups: Any
) -> ConvolutionLayout:
    """The sizes of a convolution, checked."""
    channels, outputs = shape[3], kernel[3]
    if not is_integer(groups, 1) or channels % groups or outputs % groups:
        raise ValueError(
            f"{NAME}: groups is {shown(groups)}, expected an integer that divides the {channels} channels of x and the "
            f"{outputs} channels of the result."
        )
    if kernel[2] != channels // groups or 0 in kernel[:2]:
        raise ValueError(
            f"{NAME}: kernel has shape {kernel}, expected (kh, kw, {channels // groups}, O): the {channels} channels "
            f"of x in {groups} groups."
        )
    steps, spread = as_pair(NAME, "strides", strides, 1), as_pair(NAME, "dilation", dilation, 1)
    extent = tuple((n - 1) * d + 1 for n, d in zip(kernel[:2], spread))
    pads = check_padding(padding, shape[1:3], extent, steps)
    sizes = [(n + sum(pad) - e) // s + 1 for n, pad, e, s in zip(shape[1:3], pads, extent, steps)]
    if min(sizes) < 1:
        raise ValueError(
            f"{NAME}: a kernel of {extent[0]} x {extent[1]} texels, dilation included, does not fit into x of shape "
            f"{shape} with padding {pads}; pad more."
        )
    return ConvolutionLayout((kernel[0], kernel[1]), (sizes[0], sizes[1]), steps, pads, spread)


def check_padding(
    padding: Any, sizes: Sequence[int], extent: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The zeros before and behind each axis."""
    if padding in ("SAME", "VALID"):
        first, second = jax.lax.padtype_to_pads(sizes, extent, strides, padding)
        return (int(first[0]), int(first[1])), (int(second[0]), int(second[1]))
    given = cast(tuple[Any, ...], padding if isinstance(padding, tuple) else (padding, padding))
    pairs = [cast(tuple[Any, ...], p if isinstance(p, tuple) else (p, p)) for p in given]
    if len(pairs) != 2 or not all(len(p) == 2 and all(is_integer(n, 0) for n in p) for p in pairs):
        raise ValueError(
            f"{NAME}: padding is {shown(padding)}, expected an integer, two integers or two pairs, all of at least 0, "
            f"or 'SAME' or 'VALID'."
        )
    first, second = ((int(before), int(behind)) for before, behind in pairs)
    return first, second


def check_offset_groups(offset_groups: Any, offsets: jax.Array, layout: ConvolutionLayout, channels: int) -> int:
    """The number of offset groups: given, or from the channels of the offsets."""
    held = offsets.shape[-1] // (2 * layout.num_taps) if offsets.ndim else 0
    count = held if offset_groups is None else offset_groups
    if not is_integer(count, 1) or channels % count:
        raise ValueError(
            f"{NAME}: offset_groups is {shown(offset_groups)}, and offsets has shape {offsets.shape} for "
            f"{layout.num_taps} taps; expected a number of groups of at least 1 that divides the {channels} channels "
            f"of x."
        )
    return int(count)
