"""`HARDWARE`, the `ReadArithmetic` of a texture unit: mip levels in 1/256, reads along a footprint, and the read."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import ReadArithmetic, read_where_placed
from .._engine.compute.texel_value import decode
from .._engine.describe.cube import on_face
from .._engine.describe.operands import Arrays
from .._engine.describe.plan import Layout, ReadArguments, ResolvedLevel, SizedTexture
from .._engine.describe.spec import Read, TexelReader
from .._jax.float_bits import EXPONENT, SIGN, SMALLEST_NORMAL, bits_of, float_of
from .._jax.indexing import entry
from .._tables.storage_formats import Decoding, rounded_dtype
from ..sampler import Sampler
from ..texture import Texture
from . import read as unit
from .footprint import (
    Ellipse,
    cut,
    ellipse,
    even,
    fixed,
    fixed_exp2,
    fixed_lod,
    footprint_lod,
    guarded_sum,
    in_texels,
    read_along,
)
from .read import number, stored_color, taps

# The face and the coordinates of a direction into a cube, as CUDA code and the texture unit compute them
#
# CUDA code multiplies the components by the reciprocal of the largest. The texture unit chooses the face of the largest
# product, and truncates u = (s + 1) / 2 like any coordinate. A read with derivatives is a read of four neighboring
# threads: the sides of its footprint are differences between the products of two threads.
#
# The reciprocal is the instruction MUFU.RCP of an NVIDIA GPU, to the bit. Behind the leading 1 of the significand, 7
# bits choose a row of a table, and 16 bits are x. The result is a polynomial, truncated to 24 bits:
#
#     floor((8192 c0 + 2023 + c1 x + c2 s) / 2^15)
#
# s is x^2 2^-17, without the products of two bits of x that are worth less than 2^17. The rows were fitted to the
# reciprocals of all 2^23 significands, recorded on an NVIDIA H200, and reproduce every one.


MAGNITUDE = np.int32(0x7FFFFFFF)
NORMAL = np.int32(1 << 23)
# The bits of 2^126. The reciprocal of a larger number is subnormal, and flushed to zero.
LONGEST = np.int32(253 << 23)
LIFT = 100
# More bits of a coordinate than the unit keeps on any axis of a cube.
COORDINATE_BITS = 23


def to_face(direction: Arrays) -> Arrays:
    """The face that a direction meets, and u and v on it, truncated to `COORDINATE_BITS`."""
    unit = projected(direction)
    face, on_own_axes = on_face(*map(order, unit))
    return face, *(coordinate(number(c)) for c in on_own_axes(*unit)[:2])


def coordinate(component: jax.Array) -> jax.Array:
    """(component + 1) / 2, truncated to `COORDINATE_BITS`; infinities are clipped to the edges."""
    half = np.float32(1 << (COORDINATE_BITS - 1))
    return (jnp.floor(jnp.clip(component, -1, 1) * half) + half) * np.float32(0.5**COORDINATE_BITS)


def projected(direction: Arrays) -> Arrays:
    """A direction times the reciprocal of its largest component, with the bits of CUDA code, NaN and infinity included.

    Subnormal numbers are read from their bits, because some processors flush them to zero.
    """
    # The largest component decides by its bits. If it is subnormal or too long, 1 stands in for it.
    direction = tuple(jnp.broadcast_arrays(*direction))
    sizes = [jnp.where(c == c, bits_of(c) & MAGNITUDE, 0) for c in direction]
    largest = jnp.maximum(jnp.maximum(*sizes[:2]), sizes[2])
    is_short, is_long = largest < NORMAL, largest > LONGEST
    inverse = reciprocal(float_of(jnp.where(is_short | is_long, 127 << 23, largest)))
    lowered = inverse * np.float32(2.0**-LIFT)

    # The product, as the unit rounds it, and what it returns for extreme directions.
    def component(c: jax.Array, size: jax.Array) -> jax.Array:
        lifted = (size & 0x7FFFFF).astype(jnp.float32) * np.float32(2.0 ** (LIFT - 149))
        lifted = float_of(bits_of(lifted) | (bits_of(c) & SIGN))
        product = jnp.where(size < NORMAL, lifted * lowered, c * inverse)
        product = jnp.where(jnp.abs(product) < SMALLEST_NORMAL, 0, product)
        # The reciprocal of a subnormal number is infinity, and infinity times zero is NaN.
        infinite = float_of(EXPONENT | (bits_of(c) & SIGN))
        product = jnp.where(is_short, jnp.where(size == 0, jnp.nan, infinite), product)
        product = jnp.where(is_long, jnp.where(size == EXPONENT, jnp.nan, 0), product)
        return jnp.where(c == c, product, jnp.nan)

    return tuple(component(c, size) for c, size in zip(direction, sizes))


def order(component: jax.Array) -> jax.Array:
    """An int32 with the sign of `component`, which grows with its magnitude; 0 for NaN, nearer to 0 than any float."""
    size = (bits_of(component) & MAGNITUDE) + 1
    return jnp.where(component == component, jnp.where(component < 0, -size, size), 0)


def side_on_face(direction: Arrays, side: Arrays) -> tuple[Arrays, jax.Array]:
    """A side of a footprint as a step of (u, v) on the face that a direction meets, and whether it leaves that face.

    The step is a difference, not a derivative: from the point where the direction meets the cube to the point where
    direction plus side meets it, with the faces unfolded into the plane of the first. Across an edge, it is the sum of
    the distances of both points from the edge.
    """
    # Both ends of the side: their faces, and their components on the axes of the first one.
    start, end = projected(direction), projected(tuple(c + d for c, d in zip(direction, side)))
    (face, on_own_axes), (end_face, _) = (on_face(*map(order, v)) for v in (start, end))
    (s, t, _), (s_end, t_end, m_end) = (map(number, on_own_axes(*v)) for v in (start, end))
    # Which edge the side crosses, if it leaves the face.
    end_axis = on_own_axes(*((end_face >> 1 == axis).astype(jnp.float32) for axis in range(3)))
    over_s, over_t, same_axis = (component != 0 for component in end_axis)
    stays = face == end_face
    behind = same_axis & ~stays

    # On one face, a difference; to the opposite face, the way around; else over the edge.
    def step(end: jax.Array, start: jax.Array, over: jax.Array, further: jax.Array) -> jax.Array:
        sign = jnp.where(end < 0, np.float32(-1), np.float32(1))
        over_edge = guarded_sum(cut(1 - sign * start), cut(1 - m_end))
        straight = jnp.where(behind & further, sign * 4 - end, end) - start
        return jnp.where(over, sign * over_edge, straight) * 0.5

    further = jnp.abs(s_end) > jnp.abs(t_end)
    return (step(s_end, s, over_s, further), step(t_end, t, over_t, ~further)), ~stays


# The reciprocal

# fmt: off
# The coefficients c0, c1 and c2 of each row.
ROWS = np.array((
    (67108864, -65534, 1013), (66588642, -64522, 989), (66076422, -63533, 966), (65572021, -62567, 945),
    (65075262, -61622, 923), (64585976, -60699, 902), (64103992, -59797, 883), (63629146, -58914, 863),
    (63161284, -58051, 845), (62700254, -57207, 827), (62245905, -56381, 809), (61798091, -55572, 791),
    (61356677, -54781, 774), (60921524, -54007, 758), (60492499, -53249, 742), (60069474, -52507, 727),
    (59652325, -51780, 711), (59240930, -51068, 696), (58835170, -50371, 682), (58434930, -49688, 669),
    (58040099, -49019, 656), (57650569, -48363, 642), (57266231, -47721, 631), (56886986, -47091, 618),
    (56512729, -46473, 605), (56143366, -45868, 594), (55778798, -45274, 582), (55418934, -44692, 572),
    (55063686, -44121, 561), (54712961, -43560, 549), (54366677, -43011, 540), (54024747, -42471, 529),
    (53687093, -41942, 519), (53353633, -41423, 510), (53024288, -40913, 501), (52698987, -40412, 490),
    (52377651, -39921, 482), (52060212, -39439, 474), (51746596, -38965, 465), (51436737, -38500, 457),
    (51130565, -38043, 449), (50828017, -37594, 441), (50529029, -37153, 433), (50233538, -36720, 426),
    (49941482, -36294, 418), (49652803, -35876, 412), (49367442, -35464, 403), (49085342, -35060, 397),
    (48806449, -34663, 390), (48530705, -34272, 383), (48258060, -33888, 377), (47988464, -33511, 371),
    (47721861, -33140, 366), (47458204, -32774, 358), (47197444, -32415, 353), (46939534, -32062, 348),
    (46684429, -31714, 341), (46432082, -31373, 337), (46182446, -31036, 331), (45935480, -30705, 326),
    (45691143, -30379, 320), (45449392, -30059, 316), (45210185, -29743, 310), (44973481, -29432, 305),
    (44739244, -29127, 302), (44507436, -28826, 297), (44278016, -28529, 291), (44050948, -28237, 287),
    (43826199, -27950, 283), (43603730, -27667, 279), (43383510, -27388, 274), (43165503, -27114, 271),
    (42949675, -26843, 266), (42735995, -26577, 263), (42524430, -26314, 258), (42314950, -26056, 256),
    (42107525, -25801, 251), (41902122, -25550, 248), (41698714, -25302, 243), (41497270, -25058, 240),
    (41297764, -24818, 237), (41100168, -24581, 233), (40904453, -24348, 231), (40710593, -24117, 226),
    (40518561, -23890, 223), (40328333, -23667, 222), (40139883, -23446, 218), (39953186, -23228, 214),
    (39768218, -23014, 212), (39584955, -22802, 208), (39403371, -22593, 205), (39223448, -22388, 204),
    (39045159, -22184, 199), (38868484, -21984, 197), (38693401, -21787, 196), (38519888, -21592, 193),
    (38347924, -21399, 189), (38177489, -21209, 186), (38008563, -21022, 184), (37841123, -20837, 182),
    (37675154, -20655, 180), (37510633, -20475, 178), (37347543, -20297, 175), (37185866, -20122, 173),
    (37025582, -19949, 171), (36866673, -19778, 169), (36709124, -19609, 166), (36552915, -19443, 165),
    (36398030, -19278, 161), (36244452, -19116, 160), (36092164, -18956, 159), (35941151, -18797, 155),
    (35791396, -18641, 154), (35642884, -18487, 153), (35495599, -18334, 150), (35349528, -18184, 149),
    (35204652, -18035, 147), (35060959, -17888, 145), (34918436, -17743, 143), (34777064, -17600, 143),
    (34636835, -17458, 140), (34497732, -17318, 138), (34359741, -17180, 137), (34222849, -17043, 135),
    (34087044, -16908, 133), (33952313, -16775, 132), (33818641, -16643, 131), (33686019, -16513, 130),
), np.int32)
# fmt: on
MIDDLE = 2**25  # subtracted from c0, so that sums stay within int32
COLUMNS = tuple((ROWS - np.array((MIDDLE, 0, 0), np.int32)).T)


def reciprocal(number: jax.Array) -> jax.Array:
    """1 / `number` for float32 from 2^-126 to 2^126, with the bits of MUFU.RCP."""
    bits = bits_of(number)
    x = bits & 0xFFFF
    c0, c1, c2 = (entry(column, (bits >> 16) & 127) for column in COLUMNS)
    low = c1 * (x & 255) + c2 * truncated_square(x) + 2023
    significand = (c0 * 32 + c1 * (x >> 8) + (low >> 8)) >> 7  # minus 2^23
    # For a power of two the significand is 2^24, and the sum carries into the exponent.
    return float_of((253 << 23) - (bits & 0x7F800000) + significand)


def truncated_square(x: jax.Array) -> jax.Array:
    """x^2 2^-17 for x of 16 bits, without the products of two bits that are worth less than 2^17."""
    terms = (((x >> j) & 1) * (((x & ((1 << j) - 1)) >> (16 - j)) + (1 << (2 * j - 17))) for j in range(9, 16))
    total = next(terms)
    for term in terms:
        total = total + term
    return total


# The arithmetic


class HardwareArithmetic(ReadArithmetic):
    """The fixed-point arithmetic of a texture unit."""

    def resolve_level(self, layout: Layout, arguments: ReadArguments, sampler: Sampler) -> ResolvedLevel:
        """The mip level is int32, in 1/256; coordinates are float32.

        For several reads along a footprint, `side` is a step along it of one texel of the level.
        """
        # The level that is given, or that of the footprint.
        coords, lod, long = single_precision(arguments.coords), None, None
        if arguments.lod is not None:
            lod = fixed(arguments.lod)
        elif arguments.ddx is not None:
            lod, long = footprint(layout, coords, arguments, sampler)
        # It gets the sampler's bias and bounds here: the read takes it as it is.
        shape = (1,) * coords[0].ndim
        level = None
        if layout.num_levels > 1:
            level = fixed_lod(lod, sampler, layout.num_levels, shape, explicit=lod is not None)
        if long is None:
            return ResolvedLevel(coords, arguments.layer, level)
        # A step along the footprint is a texel of the level, in the units of coordinates.
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
        # The unit returns one of its own dtypes.
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
        # The code of the texel, and the unit's code of 16 bits for it.
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
    # The sides as texels of the finest level: on a face of a cube, or of a volume.
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
    # One read needs the level alone.
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
