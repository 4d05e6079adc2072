"""`HARDWARE`, the `ReadArithmetic` of a texture unit: mip levels in 1/256, reads along a footprint, and the read."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import ReadArithmetic, read_where_placed
from .._engine.compute.texel_value import decode
from .._engine.describe.arguments import ReadArguments
from .._engine.describe.operands import Arrays
from .._engine.describe.plan import Layout, ResolvedLevel, SizedTexture
from .._engine.describe.spec import Read, TexelReader
from .._tables.storage_formats import Decoding, rounded_dtype
from ..sampler import Sampler
from ..texture import Texture
from . import read as unit
from .directions import side_on_face, to_face
from .footprint import Ellipse, ellipse, even, fixed, fixed_exp2, fixed_lod, footprint_lod, in_texels, read_along
from .read import stored_color
from .taps import number, taps


class HardwareArithmetic(ReadArithmetic):
    """The fixed-point arithmetic of a texture unit."""

    def resolve_level(self, layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
        """The mip level is int32, in 1/256; coordinates are float32.

        For several reads along a footprint, `side` is a step along it of one texel of the level.
        """
        coords, lod, long = single_precision(arguments.coords), None, None
        if arguments.lod is not None:
            lod = fixed(arguments.lod)
        elif arguments.ddx is not None:
            lod, long = footprint(layout, coords, arguments, sampler)
        shape = (1,) * coords[0].ndim
        level = None
        if layout.num_levels > 1:
            level = fixed_lod(lod, sampler, layout.num_levels, shape, explicit=lod is not None)
        if long is None:
            return ResolvedLevel(coords, arguments.layer, level)
        side = tuple(long.direction if level is None else (d * fixed_exp2(level) for d in long.direction))
        if sampler.normalized_coords or layout.kind.is_cube:
            side = tuple(d / n for d, n in zip(side, layout.sizes[::-1]))
        return ResolvedLevel(coords, arguments.layer, level, side, log_ratio=long.log_ratio)

    def with_face(self, layout: Layout, resolved: ResolvedLevel) -> ResolvedLevel:
        return resolved._replace(face_coords=to_face(resolved.coords)) if layout.kind.is_cube else resolved

    def along_footprint(
        self, layout: Layout, resolved: ResolvedLevel, number: jax.Array
    ) -> tuple[ResolvedLevel, jax.Array]:
        assert resolved.side is not None
        assert resolved.log_ratio is not None
        offset, weight = read_along(resolved.log_ratio, number)
        step = tuple(offset * d for d in resolved.side)
        if layout.kind.is_cube:
            face, u, v = to_face(resolved.coords)
            return resolved._replace(face_coords=(face, u + step[0], v + step[1])), weight
        return resolved._replace(coords=tuple(c + d for c, d in zip(resolved.coords, step))), weight

    def most_reads(self, sampler: Sampler) -> int:
        return even(sampler.max_anisotropy)

    def read(self, texture: Texture | SizedTexture, read: Read) -> jax.Array:
        spec = read.spec
        stored = rounded_dtype(spec.dtype, unit.result_dtype(texture.dtype, spec.decoding))
        # `deterministic` concerns the derivatives alone, which are computed in float arithmetic.
        on_unit = dataclasses.replace(spec, dtype=np.dtype(stored), deterministic=False)
        single = Read(on_unit, tuple(map(as_single, read.operands)))
        out = read_where_placed(UNIT_READER, texture.texels, texture.border_color, single, texture.cut)
        return out.astype(spec.dtype)

    def read_texel(self, texture: Texture, read: Read) -> jax.Array:
        """Signed bytes that are read as fractions become 16-bit codes."""
        decoding = read.spec.decoding
        if texture.dtype != np.int8 or decoding is Decoding.ELEMENT:
            return self.read(texture, read)
        # The border color is stored in the format that the texture is read in.
        color = stored_color(texture.border_color, texture.num_channels, texture.dtype, decoding)
        stored = dataclasses.replace(texture, border_color=color)
        k = self.read(stored, read.replace(decoding=Decoding.ELEMENT, dtype=np.dtype(texture.dtype))).astype(jnp.int32)
        code = jnp.minimum(jnp.abs(k) * 258 + (jnp.abs(k) >= jnp.where(k < 0, 65, 64)).astype(jnp.int32), 32767)
        code = jnp.where(k < 0, -code, code).astype(jnp.int16)
        return decode(code, decoding, np.dtype(np.float32)).astype(read.spec.dtype)


def footprint(
    layout: Layout, coords: Arrays, arguments: ReadArguments, sampler: Sampler
) -> tuple[jax.Array | None, Ellipse | None]:
    """The level of detail of a footprint, in 1/256, and its ellipse if the sampler allows several reads along it."""
    several = sampler.max_anisotropy > 1 and layout.kind.texel_ndim < 3
    if not several and layout.num_levels == 1:
        return None, None
    assert arguments.ddx is not None
    assert arguments.ddy is not None
    sides, bent = [single_precision(side) for side in (arguments.ddx, arguments.ddy)], None
    sizes = layout.sizes[::-1] if sampler.normalized_coords or layout.kind.is_cube else (1,) * layout.kind.texel_ndim
    if layout.kind.is_cube:
        (x_side, x_bent), (y_side, y_bent) = (side_on_face(coords, side) for side in sides)
        sides, bent = [x_side, y_side], x_bent | y_bent
    elif layout.kind.texel_ndim == 3:
        sides = [tuple(map(side_in_volume, coords, side, sizes)) for side in sides]
    x_side, y_side = (tuple(map(in_texels, side, sizes)) for side in sides)
    if not several:
        return footprint_lod(x_side, y_side, bent), None
    long = ellipse(x_side, y_side, sampler.max_anisotropy, bent)
    return long.lod, long


def side_in_volume(coord: jax.Array, side: jax.Array, size: int) -> jax.Array:
    """A component of a side of a footprint in a volume: the difference of the coordinates of two neighboring threads.

    If a position in texels overflows float32, the component is infinite.
    """
    start, end = number(coord), number(coord + side)
    is_near = (jnp.abs(start * size) < jnp.inf) & (jnp.abs(end * size) < jnp.inf)
    return jnp.where(is_near, end - start, jnp.inf)


def single_precision(arrays: Arrays) -> Arrays:
    return tuple(a.astype(jnp.float32) for a in arrays)


def as_single(a: jax.Array) -> jax.Array:
    """Floats as float32; integers as they are."""
    return a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a


UNIT_READER = TexelReader(unit.read, axis_taps=taps)
HARDWARE = HardwareArithmetic()
