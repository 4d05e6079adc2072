"""Former names of arguments, which functions still take, with a warning at the line of the user."""

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from .words import shown

# Former names of arguments, which functions with the new name still take.
RENAMED = {"filter": "filter_mode", "address": "address_mode"}
# These call functions, and make layers, in functions of theirs.
FRAMEWORKS = ("jax", "equinox", "flax")


def under_new_names(name: str, renamed: Mapping[str, str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords under the names of today, with a warning for each former name.

    Raises:
        TypeError: if an argument is given by both names.
    """
    given = dict(keywords)
    for old, new in renamed.items():
        if old in given:
            if new in given:
                raise TypeError(f"{name}: {new} is given twice, also by its former name {old}; pass {new} alone.")
            given[new] = given.pop(old)
            message = f"{name}: {old} is now called {new}; pass {new}={shown(given[new])}."
            warnings.warn(message, DeprecationWarning, stacklevel=level_of_caller(3))
    return given


def level_of_caller(level: int) -> int:
    """The stack level of the user's line that called a public function, perhaps by `jax.jit`.

    Args:
        level: of the frame that called the function, which may be a framework's.
    """
    frame = sys._getframe(level)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in FRAMEWORKS:
        frame, level = frame.f_back, level + 1
    return level
