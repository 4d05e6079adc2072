"""Antialiased reads: the texture is smoothed as far as the output shrinks it.

An output pixel that covers s texels along its longest side should show the mean of the texels under it. A linear read
of level k of a mip chain is the mean over 2^k texels, smoothed once more over 2^(k + 1): it is too wide, or, at a finer
level, too sparse. A read by `SPAN`, the mean over two texels at any position, is better. Its variance in level k is
that of a box of ``sqrt(6 4^k - 3)`` texels, read linearly, which gives

    level of detail = log2((s^2 + 3) / 6) / 2

So a box of sqrt(3) texels is a read of the finest level. Between 1 and sqrt(3) the read is blended with the sampler's
own. For rotated and shrunk photographs, results are 7 to 14 dB closer to the mean of the texels that each pixel covers
than those of linear reads at log2(s) of the same chain; `python -m benchmarks.shrink` measures it.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import FLOAT
from .._engine.compute.texel_value import decode
from .._engine.describe.axis import Role
from .._engine.describe.footprint import biased, clamped
from .._engine.describe.operands import Arrays
from .._engine.describe.plan import Layout, ReadArguments, ResolvedLevel, SizedTexture, sizes_of
from .._jax.barriers import one_by_one
from .._tables.filter_kernels import SPAN, FilterKernel
from .._tables.storage_formats import Decoding, sum_dtype
from ..modes import TextureKind
from ..sampler import Sampler
from ..texture import Texture
from .calls import plan_of_call

# The level of detail, log2(s), at which the finest level is read by `SPAN` alone.
SPANS_FROM = 0.5 * math.log2(3)
# For a footprint r times as long as wide, a single read has r^-NARROWED of its length as width; r is at most LONGEST.
NARROWED, LONGEST = 0.25, 5


class Smoothing(NamedTuple):
    """How each sample is smoothed.

    Attributes:
        resolved: the call in texels, resolved to a level and reads along the footprint.
        share: the weight of the smooth read; the sampler's own read has the rest.
        level: the level of a chain that the smooth read takes; `None` for a texture of one level.
        sums: the dtype of the results.
    """

    resolved: ResolvedLevel
    share: jax.Array
    level: Any
    sums: np.dtype[Any]


# The reads beside the sampler's own: none, or a smooth read of one level, of two, or of a chain.
SHARP, FINEST, TWO_LEVELS, CHAIN = range(4)


def smoothing_at(
    texture: Texture | SizedTexture,
    coords: Arrays,
    sides: Sequence[Arrays],
    sampler: Sampler,
    num_levels: int | jax.Array,
) -> Smoothing:
    """How far each sample of a texture is smoothed.

    Args:
        num_levels: of a chain of the texture.
    """
    sampler = in_texels(sampler)
    arguments = ReadArguments(coords, None, **dict(zip(("ddx", "ddy", "ddz"), sides))).as_operands()
    layout = Layout.of(texture)._replace(num_levels=2)  # a chain, of any length
    resolved = FLOAT.resolve_level(layout, arguments, sampler)
    lod = level_of_detail(layout, arguments, sampler, resolved)
    resolved = resolved._replace(lod=None, level=None, sizes=sizes_of(texture))
    # Two levels beyond the last one, a single texel, all samples are smooth.
    lod = clamped(biased(lod, sampler), sampler, num_levels + 2)
    share = jnp.where(lod < SPANS_FROM, lod * (1 / SPANS_FROM), 1)
    level = 0.5 * jnp.log2((jnp.exp2(2 * lod) + 3) / 6)
    return Smoothing(resolved, share, level, sum_dtype(texture.dtype, arguments.coords[0].dtype))


def reads_needed(at: Smoothing) -> jax.Array:
    """The first of `SHARP` to `CHAIN` that suffices for all samples."""
    return functools.reduce(jnp.add, (jnp.any(a).astype(jnp.int32) for a in (at.share > 0, at.level > 0, at.level > 1)))


def switched(
    at: Smoothing,
    reads: jax.Array,
    first: Callable[[], jax.Array],
    finest: Callable[[], jax.Array],
    second: Callable[[], jax.Array] | None = None,
    chain: Callable[[], jax.Array] | None = None,
) -> jax.Array:
    """The first of four reads that suffices for all samples; the program branches.

    Args:
        reads: its number, of `SHARP` to `CHAIN`; up to `FINEST` without a chain.
        first: the sampler's own read.
        finest, second, chain: the smooth reads of the finest level, of the second one, and of a chain if there is one.
    """

    def two_levels() -> jax.Array:
        assert second is not None
        coarse = second()
        return blended(finest(), coarse, at.level)

    def smoothed(smooth: Callable[[], jax.Array]) -> jax.Array:
        return blended(first(), smooth(), at.share)

    smooth = [finest] if chain is None else [finest, two_levels, chain]
    branches = [first, *(functools.partial(smoothed, each) for each in smooth)]
    return cast(jax.Array, jax.lax.switch(reads, branches))


def sharp(texture: Texture | SizedTexture, at: Smoothing, sampler: Sampler, *, materialized: bool) -> jax.Array:
    """The sampler's own read of a texture of one level."""
    return read(texture, at.resolved, in_texels(sampler), at.sums, materialized=materialized)


def smooth(texture: Texture | SizedTexture, at: Smoothing, sampler: Sampler, *, materialized: bool) -> jax.Array:
    """The smooth read of a texture of one level."""
    return read(texture, at.resolved, spanning(sampler), at.sums, kernel=SPAN, materialized=materialized)


def smooth_in_chain(
    chain: Texture | SizedTexture,
    sizes: Sequence[int | jax.Array],
    at: Smoothing,
    sampler: Sampler,
    *,
    second: bool = False,
    num_levels: jax.Array | None = None,
) -> jax.Array:
    """The smooth read of a chain of numbers.

    Args:
        sizes: of its finest level, x first.
        second: whether its second level is read alone.
        num_levels: of the chain, if that is an operand.
    """
    how = of_chain(spanning(sampler))
    level = at.level if num_levels is None else clamped(at.level, how, num_levels)
    inside = in_units_of_chain(chain.kind, sizes, at.resolved)
    if not second:
        return read(chain, inside._replace(lod=level), how, at.sums, kernel=SPAN)
    alone = dataclasses.replace(how, mipmap_filter_mode="point")
    return read(chain, inside._replace(lod=jnp.ones_like(at.level)), alone, at.sums, kernel=SPAN)


def read(
    texture: Texture | SizedTexture,
    resolved: ResolvedLevel,
    sampler: Sampler,
    dtype: np.dtype[Any],
    *,
    kernel: FilterKernel | None = None,
    materialized: bool = True,
) -> jax.Array:
    """The read at a resolved level, by a filter in place of the sampler's if one is given."""
    planned = plan_of_call(FLOAT, Layout.of(texture), resolved, sampler, dtype).replace(materialized=materialized)
    if kernel is not None:
        axes = (a._replace(kernel=kernel) if a.role is Role.SPACE else a for a in planned.spec.axes)
        planned = planned.replace(axes=tuple(axes))
    return FLOAT.read(texture, planned)


def in_texels(sampler: Sampler) -> Sampler:
    return dataclasses.replace(sampler, normalized_coords=False)


def spanning(sampler: Sampler) -> Sampler:
    """A sampler for reads by `SPAN`, which takes the place of a linear filter."""
    return dataclasses.replace(in_texels(sampler), filter_mode="linear", limit=None)


def level_of_detail(layout: Layout, arguments: ReadArguments, sampler: Sampler, resolved: ResolvedLevel) -> jax.Array:
    """The level of detail of a footprint. A single read of a long footprint is somewhat narrower than its longest side.

    As wide as the longest side, it would blur the other direction; as narrow as the shortest, it would alias.
    """
    assert resolved.lod is not None
    if sampler.max_anisotropy > 1:
        return resolved.lod
    narrower = FLOAT.resolve_level(layout, arguments, dataclasses.replace(sampler, max_anisotropy=LONGEST)).lod
    assert narrower is not None
    return resolved.lod + jnp.where(resolved.lod > 0, NARROWED * (narrower - resolved.lod), 0)


def blended(first: jax.Array, smooth: jax.Array, share: jax.Array) -> jax.Array:
    """Two reads, the second with a share. A read without a share counts as zero, also where it is not finite."""
    share, for_channels = jnp.clip(share, 0, 1).astype(first.dtype), one_by_one(first.shape[-1])
    first, smooth = jnp.where(for_channels(share < 1), first, 0), jnp.where(for_channels(share > 0), smooth, 0)
    return first * (1 - share)[..., None] + smooth * share[..., None]


def decoded(texture: Texture, decoding: Decoding, dtype: np.dtype[Any]) -> Texture:
    """The texture with decoded texels."""
    return dataclasses.replace(texture, texels=decode(texture.texels, decoding, dtype))


def of_chain(sampler: Sampler) -> Sampler:
    """A sampler for a chain of numbers, whose level of detail is final."""
    unchanged = {name: field.default for name, field in Sampler.__dataclass_fields__.items() if "mipmap_level" in name}
    return dataclasses.replace(
        sampler, normalized_coords=True, mipmap_filter_mode="linear", read_mode="element", srgb=False, **unchanged
    )


def in_units_of_chain(kind: TextureKind, sizes: Sequence[int | jax.Array], resolved: ResolvedLevel) -> ResolvedLevel:
    """A resolved call in texels, with normalized coordinates; directions have none."""
    if kind.is_cube:
        return resolved

    def normalized(arrays: Arrays) -> Arrays:
        # By the inverse: XLA divides by a constant so, but not by an operand.
        return tuple(a * inverse(n, a.dtype) for a, n in zip(arrays, sizes))

    side = None if resolved.side is None else normalized(resolved.side)
    return resolved._replace(coords=normalized(resolved.coords), side=side)


def inverse(size: int | jax.Array, dtype: np.dtype[Any]) -> Any:
    """The inverse of a size, with the same bits for a known size and an operand."""
    return (1 / size.astype(dtype)) if isinstance(size, jax.Array) else np.ones((), dtype) / np.asarray(size, dtype)
