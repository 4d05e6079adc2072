"""Docstrings of jaxtex as reStructuredText: each section becomes a field, and an example a block of code.

The sections are those that `tests/test_docstrings.py` allows: Args, Attributes, Returns, Gradients, Precision, Raises,
Source and Example.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from sphinx.application import Sphinx

ITEMIZED = {"Args": "param", "Attributes": "param", "Raises": "raises"}
PROSE = {"Returns": "returns", "Gradients": "Gradients", "Precision": "Precision", "Source": "Source"}
HEADING = re.compile(rf"({'|'.join((*ITEMIZED, *PROSE, 'Example'))}):(?: (.*))?")
ITEM = re.compile(r"\*{0,2}(\w+(?:, \*{0,2}\w+)*):(?: (.*))?")
INDENT = 4


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections of a docstring, each with its heading and its lines, not indented; the first heading is empty."""
    heading, found = "", []
    for line in lines:
        match = HEADING.fullmatch(line)
        if match:
            yield heading, found
            heading, found = match[1], [match[2] or ""]
        else:
            found.append(line[INDENT:] if heading and not line[:INDENT].strip() else line)
    yield heading, found


def items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The items of a section, each with its label and the lines of its text, not indented."""
    label, found = "", []
    for line in lines:
        match = ITEM.fullmatch(line)
        if match:
            if label:
                yield label, found
            label, found = match[1].replace("*", ""), [match[2] or ""]
        elif label:
            found.append(line[INDENT:] if not line[:INDENT].strip() else line)
    if label:
        yield label, found


def field(name: str, text: list[str]) -> list[str]:
    first, *more = text or [""]
    while more and not more[-1].strip():
        more.pop()
    return [f":{name}: {first}".rstrip(), *(f"    {line}".rstrip() for line in more)]


def parameters(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set()


def as_rst(lines: list[str], value: Any) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    names = parameters(value)
    result: list[str] = []
    for heading, text in sections(lines):
        if heading in ITEMIZED:
            kind = ITEMIZED[heading]
            if heading == "Attributes" and not names & {label for label, _ in items(text)}:
                kind = "ivar"
            for label, words in items(text):
                result += field(f"{kind} {label}", words)
        elif heading in PROSE:
            result += field(PROSE[heading], text if text[0] else text[1:])
        elif heading == "Example":
            result += ["", ".. rubric:: Example", "", *text[1:], ""]
        else:
            result += [*text, ""]
    return [without_own_names(line, names) for line in result]


def without_own_names(line: str, names: set[str]) -> str:
    """The parameters of a function are no links: they are shown as code."""

    def code(match: re.Match[str]) -> str:
        return f"``{match[1]}``" if match[1] in names else match[0]

    return re.sub(r"(?<![`:\w])`(\w+)`(?!`)", code, line)


def process(app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines, value)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
