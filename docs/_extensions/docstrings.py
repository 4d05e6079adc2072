"""Docstrings of jaxtex as reStructuredText: each section becomes a field, and an example a block of code.

The sections are those that `tests/docs/test_docstrings.py` allows. Arguments get their types from the source, where
they stand under short names; `docs/api/types.md` explains the names that are not public.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from jaxtex import cuda
from jaxtex._checks.signatures import annotations_in, definition_of

FIELDS = {
    "Args": "Parameters",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Gradients": "Gradients",
    "Precision": "Precision",
    "Raises": "Raises",
    "Source": "Source",
}
ITEMIZED = ("Args", "Attributes", "Raises")
EXAMPLE = "Example"
HEADING = re.compile(rf"({'|'.join((*FIELDS, EXAMPLE))}):(?: (.*))?")
ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: (.*))?")
INDENT = 4


def sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The sections of a docstring, each with its heading and its lines, not indented; the first heading is empty."""
    heading, found = "", []
    for line in lines:
        match = HEADING.fullmatch(line)
        if match:
            yield heading, found
            heading, found = match[1], [match[2]] if match[2] else []
        else:
            found.append(line.removeprefix(" " * INDENT) if heading else line)
    yield heading, found


def items(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The items of a section, each with its label and the lines of its text, not indented."""
    label, found = "", []
    for line in lines:
        match = ITEM.fullmatch(line)
        if match:
            if label:
                yield label, found
            label, found = match[1], [match[2]] if match[2] else []
        else:
            found.append(line.removeprefix(" " * INDENT))
    if label:
        yield label, found


def as_rst(lines: list[str], value: Any) -> Iterator[str]:
    """The lines of a docstring as reStructuredText."""
    types = types_of(value)
    for heading, text in sections(lines):
        if not heading:
            yield from text
        elif heading == EXAMPLE:
            yield from ("", ".. rubric:: Example", "", *text, "")
        else:
            yield f":{FIELDS[heading]}:"
            body = definitions(text, heading, types) if heading in ITEMIZED else text
            yield from (f"    {line}".rstrip() for line in body)
        if heading != EXAMPLE:
            yield ""


def definitions(text: list[str], heading: str, types: dict[str, str]) -> Iterator[str]:
    for label, words in items(text):
        if heading == "Raises":
            yield f":name:`{label}`"
        else:
            names = [name.strip() for name in label.split(",")]
            shown = ", ".join(f"**{name}**" if "*" not in name else name.replace("*", r"\*") for name in names)
            found = ", ".join(dict.fromkeys(types[name] for name in names if name in types))
            yield f"{shown} : :annotation:`{found}`" if found else shown
        yield from (f"    {line}" for line in words)


def types_of(value: Any) -> dict[str, str]:
    """The annotations of the parameters of a function, or of the fields of a class, as the source has them."""
    if not callable(value):
        return {}
    tree = definition_of(inspect.unwrap(value))
    if isinstance(tree, ast.ClassDef):
        made = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
        return annotations_in(tree) or next(map(of_parameters, made), {})
    if isinstance(tree, ast.FunctionDef) and tree.name != value.__name__:  # a table makes it, and a stub declares it
        stub = Path(cuda.__file__).with_suffix(".pyi")
        functions = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.FunctionDef)]
        tree = next((node for node in functions if node.name == value.__name__), tree)
    return of_parameters(tree) if isinstance(tree, ast.FunctionDef) else {}


def of_parameters(function: ast.FunctionDef) -> dict[str, str]:
    return {name: text.lstrip("_") for name, text in annotations_in(function).items()}


def parameters(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set()


def without_own_names(line: str, names: set[str]) -> str:
    """The parameters of a function are no links: they are shown as code."""
    return re.sub(r"(?<![`:\w])`(\w+)`(?!`)", lambda found: f"``{found[1]}``" if found[1] in names else found[0], line)


def process(app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    names = parameters(value) if callable(value) else set()
    lines[:] = [without_own_names(line, names) for line in as_rst(lines, value)]


def sign(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, signature: str | None, returned: str | None
) -> Any:
    """Names in signatures that stand for a value, as a caller would write the value."""
    return (signature.replace("DEFAULT_SAMPLER", "Sampler()"), returned) if signature else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", sign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
