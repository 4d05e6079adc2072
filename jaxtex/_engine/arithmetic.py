"""The interface of an arithmetic, and float arithmetic. `jaxtex._hardware` has the arithmetic of a texture unit.

Reads and splats go from here to the primitives, or to `sharded` if texels are sharded. The modules of `sharded` are
loaded when they are first needed.
"""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from .._jax.indexing import is_sharded
from ..sampler import Sampler
from ..texture import Texture
from .compute import operators
from .compute.texel_value import loads_bytes, words_of_channels
from .describe.cube import to_face
from .describe.folds import Fold
from .describe.footprint import along_side, clamped, footprint_level, limited
from .describe.levels import Cut
from .describe.plan import Layout, ReadArguments, ResolvedLevel, SizedTexture, without_nan
from .describe.spec import Read, ReadSpec, TexelReader
from .rules import folds, primitives


class ReadArithmetic(abc.ABC):
    """The computation of mip levels, of reads along a footprint, and of values.

    A call takes three steps: `resolve_level` once, `along_footprint` for each of several reads, and `read` for the
    plan that `plan_of_level` makes of the two. An arithmetic has no state, so that it is static and hashable.
    """

    @abc.abstractmethod
    def resolve_level(self, layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
        """The mip level of a call, and the reads along its footprint."""

    def with_face(self, layout: Layout, resolved: ResolvedLevel) -> ResolvedLevel:
        """The call for a single read, with the face of a cube if the arithmetic computes it beforehand."""
        del layout
        return resolved

    @abc.abstractmethod
    def along_footprint(
        self, layout: Layout, resolved: ResolvedLevel, number: jax.Array
    ) -> tuple[ResolvedLevel, jax.Array]:
        """The call for read `number`, from 1, along the footprint, and the weight of that read."""

    def most_reads(self, sampler: Sampler) -> int:
        """The largest number of reads along a footprint."""
        return sampler.max_anisotropy

    @abc.abstractmethod
    def read(self, texture: Texture | SizedTexture, read: Read) -> jax.Array:
        """The values of a read, border color included: S + (C,) of the read's dtype."""

    @abc.abstractmethod
    def read_texel(self, texture: Texture, read: Read) -> jax.Array:
        """The values of a read of single texels, as `gather` returns them."""


class FloatArithmetic(ReadArithmetic):
    """Weights and sums in float32, or in float64 for float64 texels or coordinates."""

    def resolve_level(self, layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
        coords, lod, footprint, face_coords = arguments.coords, arguments.lod, None, None
        given, several = (arguments.ddx, arguments.ddy, arguments.ddz), sampler.max_anisotropy > 1
        sides = tuple(without_nan(side) for side in given if side is not None)
        # A footprint gives the level of detail. With one level and one read, it would change nothing.
        if sides and (several or layout.num_levels > 1):
            # On a cube, sides are steps of u and v on the face that the direction meets.
            steps = sides
            if layout.kind.is_cube:
                face_coords, steps = to_face(coords, *sides)
            # Its lengths are in texels of the finest level.
            if sampler.normalized_coords or layout.kind.is_cube:
                texels = [tuple(limited(d * n) for d, n in zip(step, layout.sizes[::-1])) for step in steps]
            else:
                texels = [tuple(map(limited, step)) for step in steps]
            footprint = footprint_level(sides, texels, sampler.max_anisotropy)
            lod = footprint.lod
        # The read itself applies the sampler's bias and bounds to a level of detail.
        resolved = ResolvedLevel(coords, arguments.layer, None)
        if layout.num_levels > 1 and lod is None:
            # A call without a level reads the finest, without bias.
            lowest = jnp.zeros([1] * coords[0].ndim, coords[0].dtype)
            resolved = resolved._replace(level=clamped(lowest, sampler, layout.num_levels))
        elif layout.num_levels > 1:
            resolved = resolved._replace(lod=lod)
        # Several reads lie along the longest side, each at a direction of its own on a cube.
        if footprint is None or not several:
            return resolved._replace(face_coords=face_coords)
        return resolved._replace(side=footprint.side, num_reads=footprint.num_reads)

    def along_footprint(
        self, layout: Layout, resolved: ResolvedLevel, number: jax.Array
    ) -> tuple[ResolvedLevel, jax.Array]:
        del layout
        assert resolved.side is not None
        assert resolved.num_reads is not None
        coords, weight = along_side(resolved.coords, resolved.side, resolved.num_reads, number)
        return resolved._replace(coords=coords, face_coords=None), weight

    def read(self, texture: Texture | SizedTexture, read: Read) -> jax.Array:
        color = border_of(texture.border_color, texture.num_channels, read.spec)
        # Words that hold texels of bytes are read by array operations, since their reads have no derivatives.
        if isinstance(texture, SizedTexture) and texture.channels_of_words is not None:
            words = words_of_channels(texture.texels, texture.channels_of_words)
            spec, args = read.over(color)
            return operators.read(words, *args, spec=spec, loads=loads_bytes)
        return read_where_placed(READ_WITH_HALO, texture.texels, color, read, texture.cut)

    read_texel = read


def read_derivatives(texture: Texture, read: Read) -> list[jax.Array]:
    """The derivatives of a read in float arithmetic that its spec names; from sharded texels, by a read of each."""
    if texture.cut is not None or is_sharded(texture.texels):
        return [FLOAT.read(texture, read._replace(spec=one)) for one in read.spec.each_derivative()]
    color = border_of(texture.border_color, texture.num_channels, read.spec)
    return primitives.read_derivatives(texture.texels, color, read)


def read_folded(
    texels: jax.Array, border_color: jax.Array | None, read: Read, fold: Fold, given: Sequence[jax.Array]
) -> jax.Array:
    """The fold of a read's samples along its one summed axis, which keeps size 1.

    From sharded texels, blocks of samples are read, and folded.

    Args:
        border_color: for taps outside, or zero; with it, the fold has no derivatives.
        given: the operands that the fold takes, of the rank of the read's.
    """
    read = read.besides(given)
    if not is_sharded(texels):
        return folds.fold(texels, border_of(border_color, texels.shape[-1], read.spec), read, fold)

    def block(texels: jax.Array, *operands: jax.Array, spec: ReadSpec) -> jax.Array:
        color = border_of(border_color, texels.shape[-1], spec)
        return read_where_placed(READ_WITH_HALO, texels, color, Read(spec, operands))

    return folds.by_reads(block, texels, *read.operands, spec=read.spec, fold=fold)


def border_of(border_color: jax.Array | None, channels: int, spec: ReadSpec) -> jax.Array | None:
    """The border color, (channels,) of `spec.sums`; `None` if there is none, or no tap can lie outside."""
    if border_color is None or not any(axis.address.has_outside for axis in spec.axes):
        return None
    return jnp.broadcast_to(border_color.astype(spec.sums), (channels,))


# Whole or sharded texels


def read_where_placed(
    reader: TexelReader, texels: jax.Array, color: jax.Array | None, read: Read, chain: Cut | None = None
) -> jax.Array:
    """A read; if texels carry an explicit sharding, each device computes a part of it.

    Args:
        reader: reads a texture on one device.
        chain: how the levels of a mip chain are partitioned.
    """
    if chain is None and not is_sharded(texels):
        return reader.read(texels, color, read)
    from .sharded.read import read_sharded  # loaded only for texels that are sharded

    return read_sharded(reader, texels, color, read, chain)


def read_texels(texels: jax.Array, border_color: jax.Array | None, read: Read) -> jax.Array:
    """A read of texels along any axes; a border color that no tap reaches is left out."""
    return read_where_placed(READ_WITH_HALO, texels, border_of(border_color, texels.shape[-1], read.spec), read)


def splat_where_placed(values: jax.Array, read: Read, sharding: NamedSharding | None) -> jax.Array:
    """A splat, the adjoint of a read, into texels with the sharding `sharding`; `None` for no sharding."""
    if sharding is None or not any(sharding.spec):
        return primitives.splat(values, read)
    from .sharded.read import splat_sharded

    return splat_sharded(READ_WITH_HALO, values, read, sharding)


READ, READ_WITH_HALO = TexelReader(primitives.read), TexelReader(primitives.read, takes_halo=True)
FLOAT = FloatArithmetic()
