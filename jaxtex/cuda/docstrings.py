"""Adds the sections that many functions share to docstrings; `tex_docstrings` and `surf_docstrings` hold the text."""

# pyright: strict

import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

WIDTH = 112
COORDINATES = ("x", "y", "z")


def coordinates_of(function: Callable[..., Any]) -> list[str]:
    """The names of the coordinates among the parameters of a function."""
    return [name for name in inspect.signature(function).parameters if name in COORDINATES]


def complete(
    function: Function, arguments: dict[str, str], returns: str, gradients: str, raises: dict[str, str], source: str
) -> Function:
    """The function with all sections in its docstring, in front of its example.

    `arguments` holds a text for each parameter; that of x is the text of all coordinates.
    """
    coordinates = coordinates_of(function)
    labels = {"x": ", ".join(coordinates)}
    names = [name for name in inspect.signature(function).parameters if name not in coordinates[1:]]
    sections = {
        "Args": [_item(labels.get(name, name), arguments[name]) for name in names],
        "Returns": [_paragraph(returns)],
        "Gradients": [_paragraph(gradients)],
        "Raises": [_item(error, text) for error, text in raises.items()],
        "Source": [_paragraph(source)],
    }
    summary, example, code = (inspect.getdoc(function) or "").partition("Example:")
    written = [_section(heading, items) for heading, items in sections.items()]
    function.__doc__ = "\n\n".join([summary.rstrip(), *written, *([example + code] if code else [])])
    return function


def _section(heading: str, items: Iterable[str]) -> str:
    return "\n".join([f"{heading}:", *items])


def _item(label: str, text: str) -> str:
    return _paragraph(f"{label}: {text}", hanging=8)


def _paragraph(text: str, hanging: int = 4) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * hanging, break_on_hyphens=False)
