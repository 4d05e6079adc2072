"""Float arithmetic: weights and sums in float32, or float64."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._checks.arguments import ReadArguments
from .._tables.storage_formats import Decoding
from ..sampler import Sampler
from ..texture import Texture
from .compute import words
from .describe.cube import to_face
from .describe.footprint import along_side, clamped, footprint_level
from .describe.levels import CutChain
from .describe.plan import Layout, ReadPlan, ResolvedLevel, SizedTexture, in_texels, plan_of_level, sides_of
from .describe.spec import ReadSpec
from .rules import primitives
from .where_placed import read_where_placed


class ReadArithmetic(NamedTuple):
    """An arithmetic of reads.

    Attributes:
        resolve_level: the level and the footprint of a call.
        plan: the read at a resolved level, or the read of a given number along its footprint, counted from 1, with its
            weight.
        read: one read, border color included: ``read(texture, plan, decoding, dtype, deterministic)``, of `dtype`.
        read_texel: the same for plans of one tap, as a gather returns it.
        most_reads: the largest number of reads along a footprint.
    """

    resolve_level: Callable[[Layout, ReadArguments, Sampler], ResolvedLevel]
    plan: Callable[..., tuple[ReadPlan, jax.Array | None]]
    read: Callable[[Texture | SizedTexture, ReadPlan, Decoding, np.dtype, bool], jax.Array]
    read_texel: Callable[[Texture, ReadPlan, Decoding, np.dtype, bool], jax.Array]
    most_reads: Callable[[Sampler], int]


def resolve_level(layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
    """The level of detail of a call, and the extent of its footprint. A texture of one level has none."""
    coords, lod, footprint, face_coords = arguments.coords, arguments.lod, None, None
    sides, several = sides_of(arguments), sampler.max_anisotropy > 1
    if sides and (several or layout.num_levels > 1):
        steps = sides
        if layout.kind.is_cube:
            face_coords, steps = to_face(coords, *sides)
        texels = [in_texels(layout, step, sampler) for step in steps]
        footprint = footprint_level(sides, texels, sampler.max_anisotropy)
        lod = footprint.lod
    resolved = ResolvedLevel(coords, arguments.layer, None)
    if layout.num_levels > 1 and lod is None:
        # A read that asks for no level reads the finest, without bias.
        lowest = jnp.zeros([1] * coords[0].ndim, coords[0].dtype)
        resolved = resolved._replace(level=clamped(lowest, sampler, layout.num_levels))
    elif layout.num_levels > 1:
        resolved = resolved._replace(lod=lod)
    if footprint is None or not several:
        return resolved._replace(face_coords=face_coords)
    return resolved._replace(side=footprint.side, num_reads=footprint.num_reads)


def plan_read(
    layout: Layout, resolved: ResolvedLevel, sampler: Sampler, number: jax.Array | None = None
) -> tuple[ReadPlan, jax.Array | None]:
    weight = None
    if number is not None:
        assert resolved.side is not None
        assert resolved.num_reads is not None
        coords, weight = along_side(resolved.coords, resolved.side, resolved.num_reads, number)
        resolved = resolved._replace(coords=coords, face_coords=None)
    return plan_of_level(layout, resolved, sampler), weight


def read(
    texture: Texture | SizedTexture,
    plan: ReadPlan,
    decoding: Decoding,
    dtype: np.dtype,
    deterministic: bool = False,
) -> jax.Array:
    """One read of a texture."""
    texels, color = texture.texels, texture.border_color
    if isinstance(texture, SizedTexture) and texture.channels_of_words is not None:
        spec, channels = plan.spec(decoding, dtype), texture.channels_of_words
        return words.read(texels, channels, color_outside(color, channels, spec), plan.operands, spec)
    return read_texels(texels, color, plan, decoding, dtype, deterministic, chain=texture.cut)


def read_texels(
    texels: jax.Array,
    border_color: jax.Array | None,
    plan: ReadPlan,
    decoding: Decoding,
    dtype: np.dtype,
    deterministic: bool = False,
    chain: CutChain | None = None,
) -> jax.Array:
    """One read: the engine's, with the border color, or zero, for the taps outside.

    Args:
        chain: how the levels of a chain are cut over devices.
    """
    spec = plan.spec(decoding, dtype, deterministic)
    color = color_outside(border_color, texels.shape[-1], spec)
    return read_where_placed(read_over, texels, color, plan.operands, spec, has_edged_form=True, chain=chain)


def color_outside(border_color: jax.Array | None, channels: int, spec: ReadSpec) -> jax.Array | None:
    """The border color, (channels,), if there is one and a tap may lie outside."""
    if border_color is None or not any(axis.address.has_outside for axis in spec.axes):
        return None
    return jnp.broadcast_to(border_color.astype(spec.sums), (channels,))


def read_over(texels: jax.Array, color: jax.Array | None, operands: Sequence[jax.Array], spec: ReadSpec) -> jax.Array:
    """The engine's read over a color."""
    if color is None:
        return primitives.read(texels, operands, spec)
    return primitives.bordered_read(texels, color, operands, spec)


FLOAT = ReadArithmetic(resolve_level, plan_read, read, read, lambda sampler: sampler.max_anisotropy)
