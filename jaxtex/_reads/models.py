"""Reads inside models: sums of weighted reads, and grids whose vertices share the rows of a table."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.arguments import ReadArguments, as_operands
from .._engine.arithmetic import FLOAT
from .._engine.describe.hashing import pyramid_axes
from .._engine.describe.operands import Arrays
from .._engine.describe.plan import Layout, layout_of, plan_of_grid
from .._engine.describe.spec import ReadSpec
from .._engine.rules.concatenated import Read
from .._engine.where_placed import without_cut
from .._jax.indexing import everywhere
from .._jax.typed_jit import typed_jit
from .._tables.storage_formats import Decoding, rounded_dtype, sum_dtype
from ..modes import TextureKind
from ..sampler import Sampler
from ..texture import Texture
from .calls import numbers_of, plan_of_call


@typed_jit("sampler", "num_heads", "summed_axes", "dtype")
def sample_weighted(
    texture: Texture,
    arguments: ReadArguments,
    weights: jax.Array,
    level: jax.Array | None,
    head: jax.Array | None,
    *,
    sampler: Sampler,
    num_heads: int,
    summed_axes: tuple[int, ...],
    dtype: np.dtype,
) -> jax.Array:
    """The sum of `weights` times reads in float arithmetic, along axes of the samples, counted from the end.

    Args:
        texture: with `level`, a pyramid of levels of any sizes, of which each sample reads the one of that number.
        head: which of `num_heads` parts of the channels each sample reads.
        weights, level, head: of the rank of the arrays in `arguments`.
    """
    arguments, texture = as_operands(arguments), without_cut(texture)
    sums, _ = numbers_of(texture, sampler.decoding, (*arguments.coords, weights), blends=True)
    layout = layout_of(texture) if level is None else layout_of(texture)._replace(num_levels=1)
    read = plan_of_call(FLOAT, layout, arguments, sampler, rounded_dtype(dtype, sums))
    read = read.weighted_sum(weights.astype(sums), summed_axes)
    if head is not None:
        read, texture = read.in_head(head, num_heads), in_heads(texture, num_heads)
    if level is not None:
        assert texture.level_shapes is not None
        read = read.in_pyramid(level, texture.level_shapes)
    out = FLOAT.read(texture, read)
    return jnp.squeeze(out, tuple(axis - 1 for axis in summed_axes)).astype(dtype)


def in_heads(texture: Texture, num_heads: int) -> Texture:
    """A texture whose channels are divided among heads, as one with an axis of heads behind the others."""
    *sizes, channels = texture.texels.shape
    shape = (*sizes, num_heads, channels // num_heads)
    if texture.level_shapes:
        shape = (sizes[0] * num_heads, channels // num_heads)
    return dataclasses.replace(texture, texels=texture.texels.reshape(shape))


def plan_pyramid(
    table: jax.Array,
    points: Arrays,
    scales: Sequence[float],
    sizes: Sequence[int],
    rows: Sequence[int],
    hashed: Sequence[bool],
) -> Read:
    """The linear read of all levels of a pyramid of grids, whose levels lie one after the other in a table.

    Args:
        table: ``(sum of rows, C)``, floating.
        points: x first, of one shape S. In a level a point lies at its scale times the point, in vertices, of which the
            first one is at 0.5.
        sizes, rows, hashed: as in `hashing.pyramid_axes`.

    """
    operands = [point[..., None] for point in as_operands(ReadArguments(tuple(points))).coords[::-1]]
    front = [1] * (operands[0].ndim - 1)
    level = jnp.arange(len(sizes), dtype=jnp.int32).reshape(*front, -1)
    scale = jnp.asarray(scales, operands[0].dtype).reshape(*front, -1)
    sums = sum_dtype(table.dtype, operands[0].dtype)
    axes, dtype = pyramid_axes(sizes, rows, hashed, len(operands)), rounded_dtype(table.dtype, sums)
    spec = ReadSpec(axes, Decoding.ELEMENT, np.dtype(dtype), grid=scaled_points)
    # A point reads rows from anywhere in the table.
    return Read(everywhere(table), (level, scale, *operands), spec)


def plan_windows(
    images: jax.Array, function: Callable[..., Arrays], operands: Sequence[jax.Array], sampler: Sampler
) -> Read:
    """The reads of images, each at coordinates of its own, that `function` makes of operands.

    Args:
        images: ``(n, H, W, C)``, floating numbers.
        operands: of equal rank, whose shapes broadcast to (n,) + S.
        sampler: one that reads zero outside, if at all, and whose filter blends.
    """
    layout = Layout(TextureKind.TEXTURE2D, images.shape[1:])
    dtype = rounded_dtype(images.dtype, sum_dtype(images.dtype, *(a.dtype for a in operands)))
    read = plan_of_grid(layout, function, operands, sampler, dtype).replace(
        decoding=Decoding.ELEMENT, deterministic=False
    )
    return Read(images, read.operands, read.spec, 1)


def scaled_points(level: jax.Array, scale: jax.Array, *points: jax.Array) -> Arrays:
    """The coordinates of points in a level of a pyramid: a grid."""
    return level, *(point * scale + 1 for point in points)
