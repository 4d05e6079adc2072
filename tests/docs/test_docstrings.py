"""Public docstrings as `help()` shows them: their sections, and every argument under Args."""

import enum
import importlib.util
import inspect
import pydoc
import re

import jaxtex
from jaxtex._checks import signatures
from tests.house.test_house import OPTIONAL
from tests.house.test_house import PUBLIC as CONTRACTS

SECTIONS = ("Args", "Attributes", "Returns", "Gradients", "Precision", "Raises", "Source", "Example")
# Under these stand items, each with a label and a text; under the others stands prose or code.
ITEMIZED = ("Args", "Attributes", "Raises")
ROOMS = ("unit", "warp", "nn", "ndimage", "rays", "layers", "layers.nnx", "layers.equinox", "cuda")
MODULES = ("jaxtex", *(f"jaxtex.{room}" for room in ROOMS))
INDENT = 4

HEADING = re.compile(r"([A-Z][a-z]+):(?: (.*))?")
ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: (.*))?")
MARKER = re.compile(r"\{\w*\}|\{\{|\}\}|%\(\w+\)|%[sd]\b|\bTODO\b|\bFIXME\b|\bXXX\b|^\s*:", re.MULTILINE)


def members_of(cls):
    """The public methods and properties that a class has from this package."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("jaxtex")]
    found = {name: value for base in reversed(own) for name, value in vars(base).items() if not name.startswith("_")}
    kinds = property | classmethod | staticmethod
    return {n: getattr(cls, n) for n, value in found.items() if inspect.isfunction(value) or isinstance(value, kinds)}


def public_values():
    """Every public function and class by its full name, and the public members of a class."""
    values = {}
    for module_name in MODULES:
        optional = OPTIONAL.get(module_name.removeprefix("jaxtex."))
        if optional and not importlib.util.find_spec(optional):
            continue
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ["SpatialTransformer"]):
            value = getattr(module, name)
            if not callable(value):
                continue
            values[f"{module_name}.{name}"] = value
            if inspect.isclass(value):
                values |= {f"{module_name}.{name}.{member}": found for member, found in members_of(value).items()}
    return values


PUBLIC = public_values()


def sections_of(text):
    """The sections of a docstring, as a list of (heading, text on its line, lines below it).

    What stands before the first section has the heading "".
    """
    sections = [("", "", [])]
    for line in text.splitlines():
        heading = HEADING.fullmatch(line)
        if heading and (heading[1] in SECTIONS or not heading[2]):
            sections.append((heading[1], heading[2] or "", []))
        else:
            sections[-1][2].append(line)
    return sections


def items_of(lines):
    """The items of a section, as a dictionary from each name to its text; a group gives every name the same text."""
    items, names = {}, ()
    for line in lines:
        item = ITEM.match(line[INDENT:]) if indent_of(line) == INDENT else None
        if item:
            names = tuple(name.lstrip("*") for name in item[1].split(", "))
            items |= dict.fromkeys(names, item[2] or "")
        else:
            for name in names:
                items[name] += line.strip()
    return items


def needed_by(value):
    """The sections that a docstring must have; a name in a group stands for the others."""
    if inspect.isclass(value):
        return () if issubclass(value, enum.Enum) else (("Args", "Attributes"), ("Example",))
    return ("Args",), ("Returns",), ("Gradients",), ("Raises",), ("Example",)


def indent_of(line):
    return len(line) - len(line.lstrip())


def parameters_of(value):
    """The names of the arguments that a caller may pass."""
    is_enum = inspect.isclass(value) and issubclass(value, enum.Enum)
    if isinstance(value, property) or is_enum:
        return []
    # Frameworks give their modules a general signature; what a caller passes is that of __init__.
    function = value.__init__ if "__init__" in getattr(value, "__dict__", {}) else value
    return [name for name in inspect.signature(function).parameters if name != "self"]


def faults_of(value):
    """What is wrong with the docstring of a public value, as sentences."""
    text = pydoc.getdoc(value)
    if not text:
        return ["has no docstring"]
    summary, *sections = sections_of(text)
    faults = []
    if not summary[2] or not summary[2][0].endswith("."):
        faults.append("the first line is not a sentence")
    names = [name for name, _, _ in sections]
    faults += [f"{name} is no section" for name in names if name not in SECTIONS]
    known = [name for name in names if name in SECTIONS]
    if known != sorted(set(known), key=SECTIONS.index):
        faults.append(f"the sections are {', '.join(known)}")
    described = {}
    for name, inline, lines in sections:
        filled = [line for line in lines if line.strip()]
        if not inline and not filled:
            faults.append(f"{name} is empty")
        if name in ITEMIZED:
            items = items_of(lines)
            faults += [f"{name} has no text for {label}" for label, words in items.items() if not words]
            if not items or not ITEM.match(filled[0].strip()):
                faults.append(f"{name} has text without a label")
            described |= items if name != "Raises" else {}
            if name == "Args":
                extra = [label for label in items if label not in parameters_of(value)]
                faults += [f"Args has {label}, which is no argument" for label in extra]
    faults += [f"{name} is not described" for name in parameters_of(value) if name not in described]
    left = MARKER.finditer(text.partition("\nExample:")[0])
    return [*faults, *(f"{found[0].strip()!r} is left of a template" for found in left)]


def test_docstrings_have_their_sections():
    found = {name: [*faults_of(value), *missing_in(name, value)] for name, value in PUBLIC.items()}
    assert not {name: faults for name, faults in found.items() if faults}


def missing_in(name, value):
    """The sections that a docstring must have, and has not."""
    needed, text = needed_by(value) if name.removeprefix("jaxtex.") in CONTRACTS else (), pydoc.getdoc(value)
    found = {section for section, _, _ in sections_of(text)}
    missing = [f"has no {' or '.join(group)}" for group in needed if not found & set(group)]
    return missing if ">>> " in text or not needed else [*missing, "its example shows no call"]


def test_help_begins_with_a_short_signature():
    """Annotations are those of the source, not the unions that they name; CUDA's names have declarations besides."""
    assert "lod: ArrayLike | None = None" in pydoc.render_doc(jaxtex.sample, renderer=pydoc.plaintext)
    functions = {n: v for n, v in PUBLIC.items() if inspect.isfunction(v) and not n.startswith("jaxtex.cuda.")}
    lengths = {name: len(str(inspect.signature(function))) for name, function in functions.items()}
    assert not {name: length for name, length in lengths.items() if length > 800}


def test_a_signature_without_a_source_shows_what_annotations_mean():
    scope = {"Any": object}
    exec("def function(x: Any, y=2) -> int: ...", scope)
    shown = signatures.AsWritten.of(inspect.signature(scope["function"]), scope["function"])
    assert str(shown) == "(x: object, y=2) -> int"
    assert shown.bind(1).arguments == {"x": 1}
