"""The files of OpenCV's FileStorage, in YAML and JSON: the part of them in which programs write calibrations.

Of YAML that is mappings by indentation, scalars, lists in brackets, lists by dashes of scalars or lists in brackets,
and matrices, which are mappings with rows, cols and data. Anything else is an error that names the line.
"""

# pyright: strict

import json
import re
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..errors import UserError, one_line
from ..pictures.kinds import open_regular

MATRIX_FIELDS = {"rows", "cols", "data"}
KEY = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([A-Za-z_][\w .-]*?)) *:(?: +(.*))?$""")
# What stands before a comment.
COMMENT = re.compile(r"""^((?:[^"'#]|"[^"]*"|'[^']*')*?)(?:(?<!\S)#.*)?$""")
LARGEST_FILE = 2**24  # bytes; a calibration with its views has a few thousand


class Matrix(NamedTuple):
    """A matrix, as its elements by rows."""

    rows: int
    columns: int
    data: tuple[float, ...]


class Line(NamedTuple):
    """A line of YAML without its comment.

    Attributes:
        number: from 1.
        indent: how many spaces stand before the text.
    """

    number: int
    indent: int
    text: str


def read_storage(path: Path) -> dict[str, Any]:
    """The fields of a file: numbers, strings, lists, mappings and matrices.

    Raises:
        UserError: if the file cannot be read, or is neither YAML nor JSON of this kind.
    """
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_FILE + 1)
    except UserError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > LARGEST_FILE:
        raise UserError(f"cannot read {path}: it is too large for a calibration")
    try:
        text = data.decode("utf-8-sig")
        if text.lstrip().startswith("<"):
            raise UserError(f"cannot read {path}: it is XML; write it again with a name that ends in .yml or .json")
        found = json.loads(text) if text.lstrip().startswith("{") else parse_yaml(text)
        return cast(dict[str, Any], with_matrices(found))
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"cannot read {path}: it is not YAML or JSON as OpenCV writes it, {one_line(error)}") from error


def with_matrices(value: Any) -> Any:
    """A value whose mappings with the fields of a matrix are matrices.

    Raises:
        ValueError: if a matrix has another number of elements than its rows and columns.
    """
    if isinstance(value, list):
        return [with_matrices(element) for element in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    if not fields.keys() >= MATRIX_FIELDS:
        return {name: with_matrices(field) for name, field in fields.items()}
    rows, columns, data = (fields[name] for name in ("rows", "cols", "data"))
    elements = tuple(float(element) for element in data)
    if rows * columns != len(elements):
        raise ValueError(f"a matrix of {rows} rows and {columns} columns has {len(elements)} elements")
    return Matrix(rows, columns, elements)


def parse_yaml(text: str) -> dict[str, Any]:
    """The mapping that a document of YAML holds.

    Raises:
        ValueError: names the first line that is not of the part above.
    """
    lines = [line for line in joined_lists(text) if line.text not in ("---", "...") and not line.text.startswith("%")]
    if not lines:
        raise ValueError("it is empty")
    fields, rest = parse_block(lines, lines[0].indent)
    if rest:
        raise ValueError(f"line {rest[0].number} is not understood")
    return fields


def joined_lists(text: str) -> list[Line]:
    """The lines of a text that are not empty; a list in brackets that goes on over several is one line."""
    lines: list[Line] = []
    parts: list[str] = []  # of the last line
    depth = 0
    for number, raw in enumerate(text.splitlines(), 1):
        bare = re.sub(COMMENT, r"\1", raw).rstrip()
        if not bare.strip():
            continue
        if depth <= 0:
            parts = []
            lines.append(Line(number, len(bare) - len(bare.lstrip()), ""))
        parts.append(bare.strip())
        depth = (depth if len(parts) > 1 else 0) + bare.count("[") - bare.count("]")
        if depth <= 0:
            lines[-1] = lines[-1]._replace(text=" ".join(parts))
    if depth > 0:
        lines[-1] = lines[-1]._replace(text=" ".join(parts))
    return lines


def parse_block(lines: list[Line], indent: int) -> tuple[dict[str, Any], list[Line]]:
    """The mapping of the lines with this indentation, and the lines after it."""
    fields: dict[str, Any] = {}
    while lines and lines[0].indent == indent:
        line, *lines = lines
        match = KEY.match(line.text)
        if not match:
            raise ValueError(f"line {line.number} is not NAME: VALUE")
        name = match[1] or match[2] or match[3]
        value = re.sub(r"^!!?[\w-]+ *", "", match[4] or "")
        if value:
            fields[name] = scalar(value, line.number)
        elif lines and lines[0].text.startswith("- ") and lines[0].indent >= indent:
            fields[name], lines = parse_items(lines, lines[0].indent)
        elif lines and lines[0].indent > indent:
            fields[name], lines = parse_block(lines, lines[0].indent)
        else:
            fields[name] = None
    if lines and lines[0].indent > indent:
        raise ValueError(f"line {lines[0].number} is indented and belongs to nothing")
    return fields, lines


def parse_items(lines: list[Line], indent: int) -> tuple[list[Any], list[Line]]:
    """The list of the lines with this indentation and a dash, and the lines after it."""
    items: list[Any] = []
    while lines and lines[0].indent == indent and lines[0].text.startswith("- "):
        line, *lines = lines
        items.append(scalar(line.text[2:].strip(), line.number))
    return items, lines


def scalar(text: str, number: int) -> Any:
    """A number, a string, or a list in brackets.

    Raises:
        ValueError: if brackets do not match.
    """
    if text.startswith("["):
        # A number of OpenCV may end in a point, which JSON has not: a list is taken apart here.
        if text.count("[") != text.count("]") or not text.endswith("]"):
            raise ValueError(f"the list in line {number} does not end")
        return [scalar(part, number) for part in elements(text[1:-1])]
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    special = {".nan": "nan", ".inf": "inf", "-.inf": "-inf"}
    try:
        return float(special.get(text.lower(), text))
    except ValueError:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def elements(text: str) -> list[str]:
    """What stands between the commas of a list, of which those in inner brackets do not count."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
