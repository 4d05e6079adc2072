"""Modes: how an array continues outside, for indices, for the taps of a filter, and in the prefilter."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._checks.words import check_word
from .._tables.address_rules import BORDER, CLAMP, MIRROR, REFLECT, WRAP, AddressRule

Mode: TypeAlias = Literal[
    "reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap", "wrap"
]
# Maps an index, by the length of its axis, to an index of equal value.
Fold = Callable[[jax.Array, int], jax.Array]
# How many elements SciPy adds at each end before it filters in a mode without a boundary rule.
PADDING = 12


class Extension(NamedTuple):
    """One mode, on one axis.

    Attributes:
        taps: the rule for taps beyond the ends.
        coefficients: the rule by which the prefilter extends its coefficients.
        fold: maps an index before it is read, where the rule for taps is not enough.
        fold_nearest: the same at order 0. It decides which element is read halfway between two.
        stops: whether a sample before the first or after the last element is `cval`, and all others are as if the
            array went on by `taps`.
        padding: how many elements are added at each end before the prefilter.
    """

    taps: AddressRule
    coefficients: AddressRule
    fold: Fold | None = None
    fold_nearest: Fold | None = None
    stops: bool = False
    padding: int = 0

    def fold_of(self, order: int) -> Fold | None:
        """The map of indices at this order."""
        return self.fold_nearest if order == 0 and self.fold_nearest else self.fold


def remainder(index: jax.Array, period: int) -> jax.Array:
    """An index of at least 0, modulo a period. The result is exact, and below the period."""
    rest = index - period * jnp.trunc(index / period)
    rest = jnp.where(rest < 0, rest + period, rest)
    return jnp.where(rest >= period, rest - period, rest)


def wrapped(index: jax.Array, size: int) -> jax.Array:
    """An index with the period ``size - 1``: the last element stands in for the first one of the next period."""
    period = size - 1
    if period == 0:
        return jnp.zeros_like(index)
    below, above = period - remainder(-index, period), remainder(index, period)
    return jnp.where(index < 0, below, jnp.where(index > period, above, index))


def reflected(index: jax.Array, size: int) -> jax.Array:
    """An index reflected about the outer edges of the first and the last element."""
    period = 2 * size
    below, above = remainder(-index, period), remainder(index, period)
    below = jnp.where(below > size, period - below, below - 1)
    above = jnp.where(above >= size, period - 1 - above, above)
    return jnp.where(index < 0, below, jnp.where(index > size - 1, above, index))


def mirrored(index: jax.Array, size: int) -> jax.Array:
    """An index reflected about the centers of the first and the last element."""
    period = 2 * (size - 1)
    if period == 0:
        return jnp.zeros_like(index)
    below, above = remainder(-index, period), remainder(index, period)
    below = jnp.where(below >= size - 1, period - below, below)
    above = jnp.where(above >= size, period - above, above)
    return jnp.where(index < 0, below, jnp.where(index > size - 1, above, index))


_REFLECT = Extension(MIRROR, MIRROR, fold_nearest=reflected)
# Our reflect is SciPy's mirror, and our mirror SciPy's reflect.
EXTENSIONS: dict[str, Extension] = {
    "reflect": _REFLECT,
    "grid-mirror": _REFLECT,
    "constant": Extension(REFLECT, REFLECT, stops=True),
    "grid-constant": Extension(BORDER, REFLECT, padding=PADDING),
    "nearest": Extension(CLAMP, MIRROR, padding=PADDING),
    "mirror": Extension(REFLECT, REFLECT, fold_nearest=mirrored),
    "grid-wrap": Extension(WRAP, WRAP),
    "wrap": Extension(REFLECT, REFLECT, fold=wrapped),
}


def check_mode(name: str, mode: Any) -> str:
    """A mode that SciPy has; a ValueError for others."""
    check_word(name, "mode", mode, EXTENSIONS)
    return mode
