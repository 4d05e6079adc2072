"""How a message shows what a caller passed, and the message on a word that is none of those expected."""

# pyright: strict, reportUnknownMemberType=false

import re
from collections.abc import Collection
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

# A value that takes more letters is described instead, and so is one that Python knows by its address alone.
MOST_LETTERS = 80
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def described(value: Any) -> str:
    """What a value is: an array of its shape, or else one of its class."""
    if value is None:
        return "None"
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


def shown(value: Any) -> str:
    """A value as it is spelled, if that is short; or else what it is."""
    if isinstance(value, Tracer):
        return "a traced array"
    if isinstance(value, jax.Array | np.ndarray):
        return described(value)
    text = repr(value)
    return described(value) if len(text) > MOST_LETTERS or "\n" in text or ADDRESS.search(text) else text


def check_word(name: str, argument: str, value: object, words: Collection[str]) -> None:
    """Raises an error for a value that is none of some words."""
    if not (isinstance(value, str) and value in words):
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name}: {argument} is {shown(value)}, expected one of {', '.join(map(repr, words))}.")
