"""The faces of a cube: their orientation, the point of a face that a direction meets, and the texels across an edge."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._jax.branches import where_needed
from ..._jax.calls import typed_jit
from ..._tables.address_rules import AddressRule, SameInEveryLevel, Size, StoredTap, TapsOfAxes, is_inside
from .footprint import limited
from .operands import Arrays, Coords

# For the faces +x, -x, +y, -y, +z, -z: the unit vectors along s (to the right), along t (down), and outward.
# Source: CUDA C++ Programming Guide, "Cubemap Textures".
FACE_AXES = (
    ((0, 0, -1), (0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (0, -1, 0), (-1, 0, 0)),
    ((1, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)),
    ((1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ((-1, 0, 0), (0, -1, 0), (0, 0, -1)),
)
NUM_FACES = len(FACE_AXES)


def along(unit: Sequence[int], vector: Sequence[jax.Array]) -> jax.Array:
    """The component of `vector` along a unit vector that is parallel to an axis."""
    ((sign, component),) = ((sign, c) for sign, c in zip(unit, vector) if sign)
    return component if sign > 0 else -component


def on_face(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, Callable[..., Arrays]]:
    """The face of a cube that a direction meets, and a function from vectors to their components on the face's axes.

    The function returns (s, t, m): to the right, down, and outward. The largest component of the direction decides the
    face; among equal components z comes before y, and y before x. Integers and floats are allowed. Selects, not maxima,
    choose the axis, so that a derivative flows to one axis alone.
    """
    # The axis of the largest component, and its sign, are the face.
    is_z = (jnp.abs(z) >= jnp.abs(x)) & (jnp.abs(z) >= jnp.abs(y))
    is_y = ~is_z & (jnp.abs(y) >= jnp.abs(x))
    choose = lambda for_x, for_y, for_z: jnp.where(is_z, for_z, jnp.where(is_y, for_y, for_x))
    negative = choose(x, y, z) < 0
    face = jnp.where(is_z, jnp.int32(4), jnp.where(is_y, jnp.int32(2), jnp.int32(0))) + negative.astype(jnp.int32)

    # The same choice takes the components of any vector.
    def on_own_axes(x: jax.Array, y: jax.Array, z: jax.Array) -> Arrays:
        def component(k: int) -> jax.Array:
            pairs = ((FACE_AXES[face][k], FACE_AXES[face + 1][k]) for face in (0, 2, 4))
            return choose(*(by_sign(positive, other, (x, y, z)) for positive, other in pairs))

        def by_sign(positive: Sequence[int], other: Sequence[int], vector: Arrays) -> jax.Array:
            if positive == other:
                return along(positive, vector)
            return jnp.where(negative, along(other, vector), along(positive, vector))

        s, t, major = component(0), component(1), choose(x, y, z)
        return s, t, jnp.where(negative, -major, major)

    return face, on_own_axes


def to_one(number: jax.Array) -> jax.Array:
    """The power of two that scales a finite positive number to [0.5, 1), or for the largest, to [1, 4).

    For a subnormal number the product stays below 0.5.
    """
    info = jnp.finfo(number.dtype)
    bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(number), f"int{info.bits}")
    exponent = jnp.maximum(2 * info.maxexp - 3 - (bits >> info.nmant), 1)  # that of 0 is subnormal
    return jax.lax.bitcast_convert_type(exponent << info.nmant, number.dtype)


def to_face(direction: Arrays, *sides: Arrays) -> tuple[Arrays, list[Arrays]]:
    """The face of a cube that a direction meets, and the normalized coordinates u and v of that point.

    A direction that meets no face, such as zero or an infinity, gives the center of +z, with derivative zero.

    Args:
        sides: the sides of a footprint, as steps of the direction.

    Returns:
        ``(face, u, v)``, and for each side its step of (u, v).
    """
    # The components of the direction on its face; where it meets none, those of the center of +z.
    direction = tuple(jnp.where(c == c, c, 0) for c in jnp.broadcast_arrays(*direction))
    face, on_own_axes = on_face(*direction)
    s, t, m = on_own_axes(*direction)
    meets = (m > 0) & (m < jnp.inf)
    s, t, m = (jnp.where(meets, c, nowhere) for c, nowhere in ((s, 0), (t, 0), (m, 1)))
    # A power of two changes no quotient; without it, the quotient's derivative overflows for a short direction.
    scale = to_one(m)
    m = m * scale
    right, down = (c * scale / m for c in (s, t))
    # Sides of a footprint, by the quotient rule.
    steps = []
    for side in sides:
        ds, dt, dm = (jnp.where(meets, limited(d * scale), 0) for d in on_own_axes(*side))
        steps.append(((ds - right * dm) / m * 0.5, (dt - down * dm) / m * 0.5))
    return (jnp.where(meets, face, 4), (right + 1) * 0.5, (down + 1) * 0.5), steps


class Seam(NamedTuple):
    """The neighborhood across one edge of a face of a cube.

    Attributes:
        face: the adjacent face.
        turned: whether an index along the edge is a column of the adjacent face, not a row.
        reversed: whether the index counts in the opposite direction there.
        far: whether the edge is the last row or column of the adjacent face, not the first.
    """

    face: jax.Array
    turned: jax.Array
    reversed: jax.Array
    far: jax.Array

    def texel(self, along: jax.Array, size: Size) -> Arrays:
        """The texel (face, y, x) of the adjacent face at index `along` of the edge, clamped to its ends."""
        along = jnp.clip(along, 0, size - 1)
        along = jnp.where(self.reversed, size - 1 - along, along)
        across = jnp.where(self.far, size - 1, 0)
        return self.face, jnp.where(self.turned, across, along), jnp.where(self.turned, along, across)


def adjacent(face: int, across: int, sign: int) -> tuple[int, int]:
    """The adjacent face in direction `sign` of axis `across` of `face`, and the flags of the `Seam` as bits."""
    axes = FACE_AXES[face]
    (other,) = (k for k, (*_, outward) in enumerate(FACE_AXES) if np.dot(outward, axes[across]) == sign)
    right, down, _ = FACE_AXES[other]
    along, back = axes[1 - across], axes[2]
    flags = (np.dot(along, right) != 0, np.dot(along, np.add(right, down)) < 0, np.dot(back, np.add(right, down)) > 0)
    return other, sum(int(flag) << k for k, flag in enumerate(flags))


def digits(numbers: Sequence[int]) -> np.int32:
    """Numbers below 8 as the octal digits of one int32: a lookup table that a shift reads."""
    return np.int32(sum(number << 3 * k for k, number in enumerate(numbers)))


def seams(face: jax.Array, across: int, taps: Sequence[jax.Array], size: Size) -> list[Seam]:
    """For each of several adjacent taps, the seam at the edge of `face` that the tap may lie beyond.

    Args:
        across: the axis of the taps in `FACE_AXES`: 0 for columns, 1 for rows.
    """
    tables = []
    for sign in (-1, 1):
        faces, flags = zip(*(adjacent(k, across, sign) for k in range(NUM_FACES)))
        tables.append((digits(faces), digits(flags)))

    def beyond(far: jax.Array) -> Seam:
        other, flags = (jnp.where(far, after, before) >> (3 * face) for before, after in zip(*tables))
        return Seam(other & 7, *((flags & 1 << k) != 0 for k in range(3)))

    # Of two taps, none lies beyond the first edge if one lies beyond the last.
    return [beyond((tap if len(taps) > 2 else taps[-1]) >= size) for tap in taps]


@typed_jit()
def across_seam(
    face: jax.Array, y: jax.Array, x: jax.Array, size: Size, of_rows: Seam, of_columns: Seam
) -> tuple[Arrays, jax.Array]:
    """The texel (face, y, x) of a cube that a tap reads, on `face` or at most one texel beyond an edge.

    A tap off a corner, beyond two edges, has no texel; it reads a neighbor.

    Args:
        of_rows: the seam at the edge that `y` may lie beyond.
        of_columns: the seam at the edge that `x` may lie beyond.

    Returns:
        The texel, and whether the tap lies off a corner.
    """
    is_row, is_column = is_inside(y, size), is_inside(x, size)
    choices = zip((face, y, x), of_rows.texel(x, size), of_columns.texel(y, size))
    texel = tuple(jnp.where(is_column, jnp.where(is_row, own, row), column) for own, row, column in choices)
    return texel, ~(is_row | is_column)


def across_seams(place: tuple[jax.Array, Sequence[jax.Array], Sequence[jax.Array], Size]) -> list[jax.Array]:
    """The results of `across_seam` for all pairs of a row and a column, as one flat list: face, y, x, missing, ..."""
    face, rows, columns, size = place
    numbers: list[jax.Array] = []
    for y, of_rows in zip(rows, seams(face, 1, rows, size)):
        for x, of_columns in zip(columns, seams(face, 0, columns, size)):
            texel, missing = across_seam(face, y, x, size, of_rows, of_columns)
            numbers += [*texel, missing]
    return numbers


def seam(taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
    """The texels that taps on the axes (face, y, x) read, also across the edges of the face."""
    ((face,), rows, columns), (_, size, _) = taps, sizes
    place = (face, rows, columns, size)
    if len(rows) == len(columns) == 1:
        numbers = across_seams(place)
    else:  # few samples have taps off an edge
        edges = (rows[0], rows[-1], columns[0], columns[-1])
        inside = functools.reduce(jnp.logical_and, (is_inside(tap, size) for tap in edges))
        own = [
            number
            for y, x in itertools.product(rows, columns)
            for number in (*jnp.broadcast_arrays(face, y, x), jnp.zeros_like(inside))
        ]
        numbers = where_needed(~inside, across_seams, place, own)
    # Four numbers a tap: face, row, column, and whether the tap lies off a corner.
    fours = (numbers[k : k + 4] for k in range(0, len(numbers), 4))
    return [StoredTap(tuple(texel), missing=gone) for *texel, gone in fours]


# The rule of the axes (face, y, x) of a seamless cubemap. The point that a direction meets lies within its face.
SEAM = AddressRule(
    "seam", None, False, apply_together=SameInEveryLevel(seam), num_axes=3, within=True, on_hardware=True
)


class OnCube(NamedTuple):
    """The grid of a cube: `front` operands stay coordinates; the last three, a direction, become face, v and u."""

    front: int

    def __call__(self, *operands: jax.Array) -> Coords:
        face, u, v = to_face(operands[self.front :])[0]
        return (*operands[: self.front], face, v, u)
