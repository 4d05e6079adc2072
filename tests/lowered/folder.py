"""Texts in a folder, a compressed file for each call, and what differs between two calls' texts."""

import difflib
import itertools
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax

ENDING = ".json.xz"
VERSION = "jax.txt"
# The lines around a difference, and how many lines of each text are looked at to show one.
CONTEXT, MOST_COMPARED = 3, 400


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}{ENDING}"


def write(folder: Path, name: str, texts: dict[str, str]) -> None:
    """Keeps the texts of a call, in place of those that are there; without texts, removes those."""
    path = path_of(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / VERSION).write_text(jax.__version__)
    if texts:
        # The fastest preset, whose window still holds all texts of most calls.
        path.write_bytes(lzma.compress(json.dumps(texts).encode(), preset=0))
    else:
        path.unlink(missing_ok=True)


def read(folder: Path, name: str) -> dict[str, str]:
    """The texts of a call; none, if it is not there."""
    path = path_of(folder, name)
    return json.loads(lzma.decompress(path.read_bytes())) if path.exists() else {}


def version(folder: Path) -> str | None:
    """The version of JAX that lowered the programs."""
    return (folder / VERSION).read_text() if (folder / VERSION).exists() else None


def names(folder: Path) -> list[str]:
    """The calls that have texts."""
    return sorted(str(path.relative_to(folder)).removesuffix(ENDING) for path in folder.rglob(f"*{ENDING}"))


class Difference(NamedTuple):
    """A text that is not as before.

    Attributes:
        kind: ``"differs"``, ``"missing"``, ``"new"``, or ``"error"``, which ends a call.
    """

    name: str
    kind: str
    lines: list[str]


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[Difference]:
    """What differs between the texts of a call."""
    if "error" in after:
        yield Difference("error", "error", [after["error"]])
        return
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield Difference(name, "missing", [])
        elif name not in before:
            yield Difference(name, "new", [])
        elif before[name] != after[name]:
            yield Difference(name, "differs", unified(before[name].splitlines(), after[name].splitlines()))


def unified(before: list[str], after: list[str]) -> list[str]:
    """The lines of a unified diff. Of texts that differ in many places only the first lines are compared."""
    start = common(before, after)
    end = common(before[start:][::-1], after[start:][::-1])
    first = max(0, start - CONTEXT)
    texts = (lines[first : min(len(lines) - end + CONTEXT, first + MOST_COMPARED)] for lines in (before, after))
    hunks = difflib.unified_diff(*texts, n=CONTEXT, lineterm="")
    return [f"from line {first + 1}:", *itertools.islice(hunks, 2, None)]


def common(before: list[str], after: list[str]) -> int:
    """How many first lines are equal."""
    return next((k for k, (a, b) in enumerate(zip(before, after)) if a != b), min(len(before), len(after)))
