"""Address modes: the texel that a tap reads, on one axis, or on several that are addressed together."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from .._jax.calls import typed_jit
from ..modes import AddressMode

# A size is a number, or an array where every sample chooses its mip level.
Size = int | jax.Array
# An index within the axis, and whether the tap was inside; None where every tap reads a texel.
Addressed = tuple[jax.Array, jax.Array | None]


class StoredTap(NamedTuple):
    """What one tap on each of several axes reads.

    Attributes:
        texel: the stored indices.
        inside: whether the tap is a texel; `None` where every tap is.
        missing: whether there is no texel, and the others share the weight; `None` where there always is one.
    """

    texel: tuple[jax.Array, ...]
    inside: jax.Array | None = None
    missing: jax.Array | None = None


# The taps side by side on each of several axes.
TapsOfAxes = Sequence[Sequence[jax.Array]]


class JointRule(Protocol):
    """Where the taps on several axes are stored that are addressed together."""

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> Sequence[StoredTap]:
        """What each combination of a tap on each axis reads, those on the last axis one after the other.

        Axes and indices are in stored order.
        """
        ...

    def rows_of(self, level: int) -> Size | None:
        """How many texels a level stores as one row after the other; `None` if they have the sizes of the axes."""
        ...

    def in_level(self, level: jax.Array) -> "JointRule":
        """The rule in the level of each sample."""
        ...


@dataclasses.dataclass(frozen=True)
class SameInEveryLevel:
    """A joint rule that is a function, of texels that have the sizes of the axes."""

    function: Callable[[TapsOfAxes, Sequence[Size]], Sequence[StoredTap]]

    def __call__(self, taps: TapsOfAxes, sizes: Sequence[Size]) -> Sequence[StoredTap]:
        return self.function(taps, sizes)

    def rows_of(self, level: int) -> None:
        del level

    def in_level(self, level: jax.Array) -> "SameInEveryLevel":
        del level
        return self


class AddressRule(NamedTuple):
    """One address mode.

    Attributes:
        name: for messages.
        apply: ``apply(tap, size)`` is the index that a tap reads, and whether the tap is inside. `None` where several
            axes are addressed together.
        apply_together: of a rule that addresses several axes, what their taps read.
        num_axes: how many axes, which stand side by side and all have the rule, it addresses together.
        has_outside: whether `apply` returns a mask: some taps read the border, not a texel.
        saturates: whether all taps below 0 read the same, and all taps from the size on read the same. Then an infinite
            coordinate has a value, and positions far outside may be moved to just outside.
        repeats: whether the texture repeats with a period of one or two sizes, so that a normalized coordinate can be
            reduced modulo 2 without a rounding.
        multiplicity: how many taps of equal offset, of one sample, can read the same texel; `None` if unknown.
        neighbors_stay_adjacent: whether two taps side by side read texels side by side, or the same texel.
        cyclic: whether the texel after the last one is the first, for rules whose neighbors stay adjacent otherwise.
        drops_outside: whether a tap inside reads its own texel, and a tap outside none.
        folds: whether a tap inside reads its own texel, and it takes a division to find that of a tap outside.
        even_width: whether the width, the size of its last axis, must be even.
        within: whether coordinates are known to be finite, and within the axis.
        on_hardware: whether texture units have it.
    """

    name: str
    apply: Callable[[jax.Array, Size], Addressed] | None
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

    def in_level(self, level: jax.Array) -> "AddressRule":
        """The rule in the level of each sample."""
        together = self.apply_together
        return self if together is None else self._replace(apply_together=together.in_level(level))

    def rows_of(self, level: int) -> Size | None:
        """The number of rows in a known level, where texels are stored as one row after the other."""
        return None if self.apply_together is None else self.apply_together.rows_of(level)


def is_inside(tap: jax.Array, size: Size) -> jax.Array:
    """Whether `tap` is a texel of an axis of `size`. Without a sign, a negative number is a large one."""
    return tap.astype(jnp.uint32) < jnp.asarray(size, jnp.uint32)


def clamp(tap: jax.Array, size: Size) -> Addressed:
    return jnp.clip(tap, 0, size - 1), None


def border(tap: jax.Array, size: Size) -> Addressed:
    inside = is_inside(tap, size)
    return jnp.where(inside, tap, 0), inside


def wrap(tap: jax.Array, size: Size) -> Addressed:
    return jnp.mod(tap, size), None


def mirror(tap: jax.Array, size: Size) -> Addressed:
    phase = jnp.mod(tap, 2 * size)
    return jnp.minimum(phase, 2 * size - 1 - phase), None


def reflect(tap: jax.Array, size: Size) -> Addressed:
    period = jnp.maximum(2 * (size - 1), 1) if isinstance(size, jax.Array) else max(2 * (size - 1), 1)
    phase = jnp.mod(tap, period)
    return jnp.minimum(phase, period - phase), None


def last(tap: jax.Array, size: Size) -> Addressed:
    return jnp.where(is_inside(tap, size), tap, size - 1), None


def sphere(taps: TapsOfAxes, sizes: Sequence[Size]) -> list[StoredTap]:
    """Rows of latitudes and columns of longitudes. Beyond a pole a meridian goes on half a turn away.

    A meridian and the one across are a circle of twice the height. Half a turn of an odd width, which the coarser
    levels of a chain may have, is rounded down.
    """
    (rows, columns), (height, width) = taps, sizes
    half, found = width // 2, list[StoredTap]()
    here = [jnp.mod(x, width) for x in columns]
    across = [jnp.where(x < width - half, x + half, x + half - width) for x in here]
    for y in rows:
        phase = jnp.mod(y, 2 * height)
        beyond = phase >= height
        row = jnp.where(beyond, 2 * height - 1 - phase, phase)
        found += [StoredTap((row, jnp.where(beyond, *x))) for x in zip(across, here)]
    return found


@typed_jit("rule")
def addressed(rule: AddressRule, tap: jax.Array, size: Size) -> Addressed:
    """What a rule of one axis returns, by one program for all sizes."""
    assert rule.apply is not None
    return rule.apply(tap, jnp.asarray(size, jnp.int32))


# Of each offset one tap reads a texel, neighbors stay adjacent, and texture units have the mode.
_PLAIN = AddressRule("", None, False, multiplicity=1, neighbors_stay_adjacent=True, on_hardware=True)
CLAMP = _PLAIN._replace(name="clamp", apply=clamp, saturates=True)
BORDER = _PLAIN._replace(name="border", apply=border, has_outside=True, saturates=True, drops_outside=True)
WRAP = _PLAIN._replace(name="wrap", apply=wrap, repeats=True, cyclic=True, folds=True)
MIRROR = _PLAIN._replace(name="mirror", apply=mirror, repeats=True, multiplicity=2, folds=True)
REFLECT = _PLAIN._replace(name="reflect", apply=reflect, multiplicity=2, folds=True, on_hardware=False)
# The rule of layers: an index out of range, negative ones too, reads the last layer.
LAST = _PLAIN._replace(name="last", apply=last)
SPHERE = AddressRule(
    "sphere", None, False, apply_together=SameInEveryLevel(sphere), num_axes=2, repeats=True, even_width=True
)

ADDRESS_RULES = {
    AddressMode.CLAMP: CLAMP,
    AddressMode.BORDER: BORDER,
    AddressMode.WRAP: WRAP,
    AddressMode.MIRROR: MIRROR,
    AddressMode.REFLECT: REFLECT,
    AddressMode.SPHERE: SPHERE,
}
