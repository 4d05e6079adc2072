"""Words of callers, and values as messages show them."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

# Longer values are described instead, and so are those that Python prints with an address.
MOST_LETTERS = 80
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def described(value: Any) -> str:
    """The description of a value: by its shape, or else by its class."""
    if value is None:
        return "None"
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def shown(value: Any) -> str:
    """A value as Python spells it, or if that is long, its description."""
    if isinstance(value, Tracer):
        return "a traced array"
    if isinstance(value, jax.Array | np.ndarray):
        return described(value)
    text = repr(value)
    return described(value) if len(text) > MOST_LETTERS or "\n" in text or ADDRESS.search(text) else text


def check_word(name: str, argument: str, value: object, words: Collection[str]) -> None:
    """Raises an error for a value that is not one of the words."""
    if not (isinstance(value, str) and value in words):
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name}: {argument} is {shown(value)}, expected one of {', '.join(map(repr, words))}.")


def nearest(word: str, words: Iterable[str], likeness: float = 0.75) -> str | None:
    """The word that was probably meant by another, or `None` if none is like it. Case does not count.

    Args:
        likeness: how alike both are at least, as `difflib` counts.
    """
    in_lower_case = {option.lower(): option for option in words}
    close = difflib.get_close_matches(word.lower(), in_lower_case, 1, likeness)
    return in_lower_case[close[0]] if close else None


def no_attribute(message: str, name: str) -> AttributeError:
    """The error of an attribute that is not there. Python does not add a suggestion of its own to its message."""
    return AttributeError(message, name=name, obj=None)


def listing(names: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a module that lists its public names alone, not what it imports for them."""
    return lambda: sorted(names)


def check_keywords(
    name: str, keywords: Collection[str], names: Collection[str], remedy: Callable[[str], str | None]
) -> None:
    """Checks that all keywords are among `names`.

    Args:
        remedy: of a keyword, what to pass in its place, or `None` if nothing is like it.

    Raises:
        TypeError: says what to pass, or names all arguments.
    """
    for keyword in keywords:
        if keyword not in names:
            mend = remedy(keyword) or f"the arguments are {', '.join(names)}"
            raise TypeError(f"{name}: there is no argument {keyword!r}; {mend}.")
