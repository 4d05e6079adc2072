"""Antialiased reads: a texture read as it is where the output magnifies, and smoothed as far as the output shrinks it.

Of a pixel of the output that covers s texels along its longest side, the mean of the texels under it is wanted. A
linear read of level k of a mip chain is the mean over 2^k texels, smoothed once more over 2^(k + 1): it is either too
wide, or, at a finer level, too sparse. A read by `SPAN`, the mean over two texels at any position, is better. Its
variance in level k is that of a box of ``sqrt(6 4^k - 3)`` texels, read linearly, which makes

    level of detail = log2((s^2 + 3) / 6) / 2

So a box of sqrt(3) texels is a read of the finest level. Between 1 and sqrt(3) the read is blended with the sampler's
own. Photographs that are turned and shrunk come 7 to 14 dB nearer to the mean of what their pixels cover than by linear
reads at log2(s) of the same chain; `python -m benchmarks.shrink` measures it.
"""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import ReadArguments, as_operands
from .._engine.axis import Role
from .._engine.channel_masks import one_by_one
from .._engine.decoding import decode
from .._engine.float_arithmetic import FLOAT, plan_read
from .._engine.level_of_detail import biased, clamped
from .._engine.plan import Layout, ReadPlan, ResolvedLevel, layout_of
from .._reads import plan_along_footprint
from .._tables.filter_kernels import SPAN
from .._tables.storage_formats import Decoding, sum_dtype
from ..mipmaps import next_level, with_levels
from ..sampler import Sampler
from ..texture import Texture, chain_shapes
from .types import Arrays

# The level of detail, log2(s), at which the finest level is read by `SPAN` alone.
SPANS_FROM = 0.5 * math.log2(3)
# Of a footprint that is r times as long as wide, one read is r^-NARROWED of its length wide; r is LONGEST at most.
NARROWED, LONGEST = 0.25, 5


def read_smoothed(
    texture: Texture, coords: Arrays, sides: Sequence[Arrays], sampler: Sampler, *, alone: bool
) -> jax.Array:
    """A read of a texture of one level, smoothed over footprints; float32, or float64 for float64 operands.

    Args:
        texture: of one level, of any dtype; integers that are read as elements are numbers.
        coords: in texels, or directions of a cubemap.
        sides: of the footprints, in the same units.
        sampler: in float arithmetic. Its levels of detail are the logarithm of the length of a side.
        alone: whether the program may choose at run time what it computes: for all samples, of one image.
    """
    # Reverse mode computes levels and blends again, and keeps the texels and what makes the coordinates.
    read = cast(Callable[..., jax.Array], jax.checkpoint(functools.partial(_read, sampler=sampler, alone=alone)))
    return read(texture, coords, tuple(sides))


def _read(texture: Texture, coords: Arrays, sides: tuple[Arrays, ...], *, sampler: Sampler, alone: bool) -> jax.Array:
    sampler = dataclasses.replace(sampler, normalized_coords=False)
    arguments = as_operands(ReadArguments(coords, None, **dict(zip(("ddx", "ddy", "ddz"), sides))))
    sums = sum_dtype(texture.dtype, arguments.coords[0].dtype)
    num_levels = len(chain_shapes(texture.kind, texture.shape, None, "resample"))
    layout = layout_of(texture)
    resolved = FLOAT.resolve_level(layout._replace(num_levels=num_levels + 1), arguments, sampler)
    lod = level_of_detail(layout._replace(num_levels=num_levels + 1), arguments, sampler, resolved)
    resolved = resolved._replace(lod=None, level=None)
    # Two levels beyond the last one, which is a single texel, all is smooth.
    lod = clamped(biased(lod, sampler), sampler, num_levels + 2)
    share = jnp.where(lod < SPANS_FROM, lod * (1 / SPANS_FROM), 1)
    level = 0.5 * jnp.log2((jnp.exp2(2 * lod) + 3) / 6)

    def read(
        texture: Texture, plan_of_read: Callable[..., Any], resolved: ResolvedLevel, how: Sampler, apart: bool = False
    ) -> jax.Array:
        plan = plan_along_footprint(plan_of_read, layout_of(texture), resolved, how, how.max_anisotropy)
        plan = plan._replace(apart=apart or not alone)
        return FLOAT.read(texture, plan, how.decoding, sums, how.deterministic)

    def sharp() -> jax.Array:
        return read(texture, plan_read, resolved, sampler)

    spans = dataclasses.replace(sampler, filter_mode="linear", limit=None)

    def from_finest() -> jax.Array:
        return read(texture, plan_span, resolved, spans)

    def from_chain(chain: Texture, level: jax.Array | None) -> jax.Array:
        inside = in_units_of_chain(layout, resolved)._replace(lod=level)
        return read(chain, plan_span, inside, of_chain(spans), apart=True)

    def from_two_levels() -> jax.Array:
        return blended(from_finest(), from_chain(next_level(decoded(texture, sampler.decoding, sums)), None), level)

    def from_all_levels() -> jax.Array:
        return from_chain(with_levels(decoded(texture, sampler.decoding, sums), num_levels), level)

    if num_levels == 1:
        return sharp()
    if not alone:
        return blended(sharp(), from_all_levels(), share)
    # What no sample needs is not computed: most of the time goes into the chain.
    needed = sum(jnp.any(some).astype(jnp.int32) for some in (share > 0, level > 0, level > 1))
    branches = (
        sharp,
        lambda: blended(sharp(), from_finest(), share),
        lambda: blended(sharp(), from_two_levels(), share),
        lambda: blended(sharp(), from_all_levels(), share),
    )
    return cast(jax.Array, jax.lax.switch(needed, branches))


def level_of_detail(layout: Layout, arguments: ReadArguments, sampler: Sampler, resolved: ResolvedLevel) -> jax.Array:
    """The level of detail of a footprint. One read of a long footprint is somewhat narrower than its longest side.

    As wide as that side, it blurs the other direction the most; as narrow as the other side, it aliases.
    """
    assert resolved.lod is not None
    if sampler.max_anisotropy > 1:
        return resolved.lod
    narrower = FLOAT.resolve_level(layout, arguments, dataclasses.replace(sampler, max_anisotropy=LONGEST)).lod
    assert narrower is not None
    return resolved.lod + jnp.where(resolved.lod > 0, NARROWED * (narrower - resolved.lod), 0)


def blended(first: jax.Array, smooth: jax.Array, share: jax.Array) -> jax.Array:
    """Two reads, the second with a share; one without a share counts as zero, also where it is not finite."""
    share, for_channels = jnp.clip(share, 0, 1).astype(first.dtype), one_by_one(first.shape[-1])
    first, smooth = jnp.where(for_channels(share < 1), first, 0), jnp.where(for_channels(share > 0), smooth, 0)
    return first * (1 - share)[..., None] + smooth * share[..., None]


def decoded(texture: Texture, decoding: Decoding, dtype: np.dtype[Any]) -> Texture:
    """The texture with numbers for texels."""
    return dataclasses.replace(texture, texels=decode(texture.texels, decoding, dtype))


def of_chain(sampler: Sampler) -> Sampler:
    """A sampler for a chain of numbers, whose level of detail is final."""
    unchanged = {name: field.default for name, field in Sampler.__dataclass_fields__.items() if "mipmap_level" in name}
    return dataclasses.replace(
        sampler, normalized_coords=True, mipmap_filter_mode="linear", read_mode="element", srgb=False, **unchanged
    )


def in_units_of_chain(layout: Layout, resolved: ResolvedLevel) -> ResolvedLevel:
    """A resolved call in texels, with normalized coordinates; directions have none."""
    if layout.kind.is_cube:
        return resolved

    def normalized(arrays: Arrays) -> Arrays:
        return tuple(a / n for a, n in zip(arrays, layout.sizes[::-1]))

    side = None if resolved.side is None else normalized(resolved.side)
    return resolved._replace(coords=normalized(resolved.coords), side=side)


def plan_span(
    layout: Layout, resolved: ResolvedLevel, sampler: Sampler, number: jax.Array | None = None
) -> tuple[ReadPlan, jax.Array | None]:
    """`plan_read` by the filter `SPAN`."""
    plan, weight = plan_read(layout, resolved, sampler, number)
    axes = (a._replace(kernel=SPAN) if a.role is Role.SPACE else a for a in plan.axes)
    return plan._replace(axes=tuple(axes)), weight
