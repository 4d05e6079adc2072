"""Deformable attention."""

import functools
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_floating, is_integer
from .._checks.words import shown
from .._engine.describe.plan import ReadArguments
from .._jax.indexing import over_examples, reshaped
from ..modes import TextureKind
from ..sampler import Sampler
from ..texture import Texture
from .shapes import as_features, check_shape
from .weighted import in_one_pass

NAME = "deformable_attention"
ZEROS = Sampler(address_mode="border")


@public(compiled=True)
def deformable_attention(
    value: ArrayLike,
    spatial_shapes: Sequence[tuple[int, int]],
    sampling_locations: ArrayLike,
    attention_weights: ArrayLike,
    *,
    mask: ArrayLike | None = None,
) -> jax.Array:
    """Multi-scale deformable attention: for each query and head, a weighted sum of reads from all levels.

    This is the core of Deformable DETR's attention module. Linear layers before it make values, locations and weights,
    and another linear layer follows it.

    Args:
        value: ``(B, S, heads, C)``, floating: the levels of a pyramid, each flattened row by row, one after the other.
        spatial_shapes: the sizes (H, W) of the levels, static. The sum of their products is S.
        sampling_locations: ``(B, Q, heads, L, P, 2)``, x first: P points for each query, head and level. A level spans
            0 to 1: the center of texel i is at (i + 0.5) / W. Texels outside a level are zero.
        attention_weights: ``(B, Q, heads, L, P)``, usually the softmax over the last two axes together. They are not
            normalized here.
        mask: ``(B, S)`` of bool: true where a value is padding. Padding counts as zero.

    Returns:
        ``(B, Q, heads * C)``, in the dtype of `value`. Sums are computed in float32, or in float64 if an argument is
        float64.

    Gradients: of any order, in forward and reverse mode, with respect to `value`, `sampling_locations` and
        `attention_weights`. At the center of a texel the slope is the one on the right, as in PyTorch.

    Raises:
        ValueError: if shapes do not fit each other.
        TypeError: if `spatial_shapes` is traced.

    Source: X. Zhu et al., "Deformable DETR", 2021; `ms_deform_attn_core_pytorch` of its reference code.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> value = np.arange(5.0).reshape(1, 5, 1, 1)  # levels of 2x2 texels and of one
        >>> locations = np.full((1, 1, 1, 2, 1, 2), 0.5)
        >>> weights = np.full((1, 1, 1, 2, 1), 0.5)
        >>> jt.nn.deformable_attention(value, ((2, 2), (1, 1)), locations, weights)
        Array([[[2.75]]], dtype=float32)
    """
    features = as_features(NAME, "value", value, "(B, S, heads, C)")
    shapes = check_levels(spatial_shapes, features.shape)
    batch, stored, heads, channels = features.shape
    points, weights = (as_floating(a) for a in (sampling_locations, attention_weights))
    if points.ndim != 6:
        raise ValueError(
            f"{NAME}: sampling_locations has shape {points.shape}, expected (B, Q, heads, L, P, 2), x first."
        )
    expected = (batch, points.shape[1], heads, len(shapes), points.shape[4])
    check_shape(NAME, "sampling_locations", points, (*expected, 2), "(B, Q, heads, L, P, 2), x first")
    check_shape(NAME, "attention_weights", weights, expected, "(B, Q, heads, L, P)")
    if mask is not None:
        padded = jnp.asarray(mask)
        check_shape(NAME, "mask", padded, (batch, stored), "(B, S)")
        if padded.dtype != jnp.bool_:
            raise ValueError(f"{NAME}: mask has dtype {padded.dtype}, expected bool, true at padding.")
        features = jnp.where(padded[..., None, None], jnp.zeros((), features.dtype), features)
    read = functools.partial(attended, shapes=tuple((*shape, heads * channels) for shape in shapes))
    out = over_examples(read)(reshaped(features, (batch, stored, heads * channels)), points, weights)
    return reshaped(out, (batch, points.shape[1], heads * channels))


def attended(
    texels: jax.Array, points: jax.Array, weights: jax.Array, *, shapes: tuple[tuple[int, ...], ...]
) -> jax.Array:
    """The reads of all heads in one image, (Q, heads, C).

    Args:
        texels: (S, heads * C).
        points: (Q, heads, L, P, 2), x first.
        weights: (Q, heads, L, P).
    """
    heads, levels = weights.shape[1:3]
    # Known numbers, which no program computes.
    level = jnp.asarray(np.arange(levels, dtype=np.int32).reshape(1, 1, -1, 1))
    head = jnp.asarray(np.arange(heads, dtype=np.int32).reshape(1, -1, 1, 1))
    return in_one_pass(
        *(
            Texture(texels, None, TextureKind.TEXTURE2D, shapes),
            ReadArguments((points[..., 0], points[..., 1])),
            weights,
            level,
            head,
        ),
        sampler=ZEROS,
        num_heads=max(heads, 1),
        summed_axes=(-2, -1),
        dtype=texels.dtype,
        points=points,
    )


def check_levels(shapes: Any, value: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The sizes of the levels, which hold all values."""
    given = cast(tuple[Any, ...], shapes if isinstance(shapes, tuple) else ())
    sizes = [cast(tuple[Any, ...], size) for size in given if isinstance(size, tuple)]
    known = all(len(size) == 2 and all(is_integer(n, 1) for n in size) for size in sizes)
    if not sizes or len(sizes) < len(given) or not known:
        raise ValueError(f"{NAME}: spatial_shapes is {shown(shapes)}, expected sizes ((H, W), ...) of at least 1.")
    levels = tuple((int(size[0]), int(size[1])) for size in sizes)
    if sum(h * w for h, w in levels) != value[1]:
        raise ValueError(
            f"{NAME}: value has shape {value}, but spatial_shapes {levels} hold {sum(h * w for h, w in levels)} "
            f"texels; expected the same number along axis 1 of value."
        )
    return levels
