"""Address modes: the texel that a tap reads on one axis, or on several axes that one rule addresses jointly."""

import dataclasses
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import AddressMode

# The size of an axis: a number, or an int32 array with one size for each sample, if each sample chooses a mip level.
Size = int | jax.Array
# The stored index, int32, and the mask of the taps inside, or None if every tap reads a texel.
Addressed = tuple[jax.Array, jax.Array | None]


class StoredTap(NamedTuple):
    """The texel that a combination of taps reads, one tap for each of several axes.

    Attributes:
        texel: the stored indices.
        inside: whether the combination reads a texel and not the border; `None` if it always does.
        missing: whether the combination has no texel (off a cube's corner), so that the other combinations share its
            weight; `None` if it always has one.
    """

    texel: tuple[jax.Array, ...]
    inside: jax.Array | None = None
    missing: jax.Array | None = None


# For each of several axes, its adjacent taps.
TapsOfAxes = Sequence[Sequence[jax.Array]]


class JointRule(Protocol):
    """An address rule for several axes jointly: the texels that their taps read."""

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> Sequence[StoredTap]:
        """The texels of all combinations of taps, one tap for each axis; the tap of the last axis varies fastest.

        Axes and indices are in stored order.
        """
        ...

    def rows_of(self, level: int) -> Size | None:
        """The number of rows of a level that is stored as a table (rows, C); `None` if it has the axes' sizes."""
        ...

    def in_level(self, level: jax.Array) -> "JointRule":
        """The rule for the mip levels that samples choose, int32, one for each sample."""
        ...


@dataclasses.dataclass(frozen=True)
class SameInEveryLevel:
    """A joint rule that is one function for all levels; texels are stored with the sizes of the axes."""

    function: Callable[[TapsOfAxes, Sequence[Size]], Sequence[StoredTap]]

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> Sequence[StoredTap]:
        return self.function(taps, sizes)

    def rows_of(self, level: int) -> None:
        del level

    def in_level(self, level: jax.Array) -> "SameInEveryLevel":
        del level
        return self


class Continuation(StrEnum):
    """How the knots of an axis continue beyond an edge: as they begin, or mirrored about the edge or the last knot."""

    CYCLIC = "cyclic"
    MIRRORED = "mirrored"
    REFLECTED = "reflected"


class AddressRule(NamedTuple):
    """One address mode.

    Attributes:
        name: the mode's name in error messages.
        apply: ``apply(tap, size)`` returns the index that a tap reads, and the mask of the taps inside or `None`.
            `None` for a joint rule.
        apply_together: the rule for several axes jointly; `None` for a rule of one axis.
        num_axes: the number of adjacent axes, all with this rule, that are addressed jointly.
        has_outside: whether `apply` returns a mask: taps outside read the border color.
        saturates: whether all taps below 0 read one value, and all taps from the size on read one value. Then an
            infinite coordinate has a value, and positions far outside may be moved to just outside.
        repeats: whether the texture repeats with a period of one or two sizes, so that a normalized coordinate can be
            reduced modulo 2 without a rounding.
        multiplicity: the largest number of taps of equal offset, of one sample, that read one texel; `None` if unknown.
        neighbors_stay_adjacent: whether two adjacent taps read adjacent texels, or one texel.
        cyclic: whether adjacent taps also read the last texel and the first one.
        drops_outside: whether a tap inside reads the texel of its own number, and a tap outside reads none.
        folds: whether a tap inside reads the texel of its own number, and a tap outside needs a division.
        even_width: whether the size of the last axis must be even.
        within: whether coordinates are known to be finite and within the axis.
        on_hardware: whether texture units have the mode.
        continuations: how knots continue on each axis of the rule, in stored order.
    """

    name: str
    apply: Callable[[Any, Size], Addressed] | None
    has_outside: bool
    apply_together: JointRule | None = None
    num_axes: int = 1
    saturates: bool = False
    repeats: bool = False
    multiplicity: int | None = None
    neighbors_stay_adjacent: bool = False
    cyclic: bool = False
    drops_outside: bool = False
    folds: bool = False
    even_width: bool = False
    within: bool = False
    on_hardware: bool = False
    continuations: tuple[Continuation, ...] = (Continuation.MIRRORED,)

    def in_level(self, level: jax.Array) -> "AddressRule":
        """The rule for the mip levels that samples choose, int32, one for each sample."""
        together = self.apply_together
        return self if together is None else self._replace(apply_together=together.in_level(level))

    def rows_of(self, level: int) -> Size | None:
        """The number of rows of a level that is stored as a table (rows, C); `None` if it has the axes' sizes."""
        return None if self.apply_together is None else self.apply_together.rows_of(level)


# Rules of one axis map JAX arrays to JAX arrays, and taps that are known while tracing, NumPy arrays, to NumPy arrays.


def module_of(tap: Any) -> Any:
    """The module with the functions of an array: that of JAX or NumPy."""
    return jnp if isinstance(tap, jax.Array) else np


def is_inside(tap: Any, size: Size) -> Any:
    """Whether 0 <= `tap` < `size`, by one comparison: as uint32 a negative tap is a large number."""
    xp = module_of(tap)
    return tap.astype(xp.uint32) < xp.asarray(size, xp.uint32)


def clamp(tap: Any, size: Size) -> Addressed:
    return module_of(tap).clip(tap, 0, size - 1), None


def border(tap: Any, size: Size) -> Addressed:
    inside = is_inside(tap, size)
    return module_of(tap).where(inside, tap, 0), inside


def masked(tap: Any, size: Size) -> Addressed:
    """As `border`, for code that does not use the index of a tap outside."""
    return tap, is_inside(tap, size)


def wrap(tap: Any, size: Size) -> Addressed:
    return module_of(tap).mod(tap, size), None


def mirror(tap: Any, size: Size) -> Addressed:
    xp = module_of(tap)
    phase = xp.mod(tap, 2 * size)
    return xp.minimum(phase, 2 * size - 1 - phase), None


def reflect(tap: Any, size: Size) -> Addressed:
    xp = module_of(tap)
    period = xp.maximum(2 * (size - 1), 1) if isinstance(size, jax.Array) else max(2 * (size - 1), 1)
    phase = xp.mod(tap, period)
    return xp.minimum(phase, period - phase), None


def last(tap: Any, size: Size) -> Addressed:
    return module_of(tap).where(is_inside(tap, size), tap, size - 1), None


def inside(tap: Any, size: Size) -> Addressed:
    del size
    return tap, None


def sphere(taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
    """The texels of an image whose rows are latitudes and whose columns are longitudes.

    Beyond a pole, a meridian continues on the opposite one, half the width away. So rows have a period of twice the
    height. Half of an odd width, which coarse mip levels may have, is rounded down.
    """
    (rows, columns), (height, width) = taps, sizes
    half, stored = width // 2, list[StoredTap]()
    here = [jnp.mod(x, width) for x in columns]
    across = [jnp.where(x < width - half, x + half, x + half - width) for x in here]
    for y in rows:
        phase = jnp.mod(y, 2 * height)
        beyond = phase >= height
        row = jnp.where(beyond, 2 * height - 1 - phase, phase)
        stored += [StoredTap((row, jnp.where(beyond, *x))) for x in zip(across, here)]
    return stored


# The defaults of most rows.
_PLAIN = AddressRule("", None, False, multiplicity=1, neighbors_stay_adjacent=True, on_hardware=True)
CLAMP = _PLAIN._replace(name="clamp", apply=clamp, saturates=True)
BORDER = _PLAIN._replace(name="border", apply=border, has_outside=True, saturates=True, drops_outside=True)
WRAP = _PLAIN._replace(
    name="wrap", apply=wrap, repeats=True, cyclic=True, folds=True, continuations=(Continuation.CYCLIC,)
)
MIRROR = _PLAIN._replace(name="mirror", apply=mirror, repeats=True, multiplicity=2, folds=True)
REFLECT = _PLAIN._replace(
    name="reflect",
    apply=reflect,
    multiplicity=2,
    folds=True,
    on_hardware=False,
    continuations=(Continuation.REFLECTED,),
)
# The rule of layers: an index out of range, negative or not, reads the last layer.
LAST = _PLAIN._replace(name="last", apply=last)
# The rule of an axis all of whose taps are known to be inside.
INSIDE = _PLAIN._replace(name="inside", apply=inside, within=True)
SPHERE = AddressRule(
    "sphere",
    None,
    False,
    apply_together=SameInEveryLevel(sphere),
    num_axes=2,
    repeats=True,
    even_width=True,
    continuations=(Continuation.MIRRORED, Continuation.CYCLIC),
)

ADDRESS_RULES = {
    AddressMode.CLAMP: CLAMP,
    AddressMode.BORDER: BORDER,
    AddressMode.WRAP: WRAP,
    AddressMode.MIRROR: MIRROR,
    AddressMode.REFLECT: REFLECT,
    AddressMode.SPHERE: SPHERE,
}
