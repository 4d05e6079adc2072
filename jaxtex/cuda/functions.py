"""Python functions of CUDA's declarations: their docstrings, errors of wrong calls, and functions made from a table."""

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax

from .._checks.calls import in_native_order
from .._checks.signatures import AsWritten
from .declarations import DECLARATIONS, Declaration
from .enums import MemcpyKind, SurfaceBoundaryMode

P = ParamSpec("P")
R = TypeVar("R")

WIDTH = 112
SECTIONS = ("Args", "Returns", "Gradients", "Raises", "Source", "Example")
HEADING = re.compile(rf"^({'|'.join(SECTIONS)}):$", re.MULTILINE)
ITEM = re.compile(r"^    (\w+(?:, \w+)*): ", re.MULTILINE)
# Defaults of CUDA's declarations.
DEFAULTS = {
    "0": 0,
    "cudaBoundaryModeTrap": SurfaceBoundaryMode.Trap,
    "cudaMemcpyDeviceToDevice": MemcpyKind.DeviceToDevice,
}
MEMORY = "an array of any dtype. Its bytes, in C order, are the memory."
PITCH = "the number of **bytes** from the start of a row of {} to the start of the next."
# The texts of parameters, by their names, or by their types and names, in host functions.
TEXTS = {
    "cudaMemcpyKind kind": "a `MemcpyKind`; it has no effect.",
    "arithmetic": "as in `createTextureObject`.",
    "compute_capability": "the compute capability whose size limits apply, such as 9.0.",
    "void* dst": f"{MEMORY} It is not changed.",
    "const void* src": MEMORY,
    "cudaArray_t dst": "an `Array`. It is not changed.",
    "cudaArray_const_t src": "an `Array`.",
    "dpitch": PITCH.format("`dst`"),
    "spitch": PITCH.format("`src`"),
    "pitch": PITCH.format("`devPtr`"),
    "wOffset": "where the part starts in a row of the array, in **bytes**.",
    "hOffset": "the first row of the part in the array.",
    "wOffsetDst": "where the part starts in a row of `dst`, in **bytes**.",
    "hOffsetDst": "its first row in `dst`.",
    "wOffsetSrc": "where the part starts in a row of `src`, in **bytes**.",
    "hOffsetSrc": "its first row in `src`.",
    "width": "the number of **bytes** in a row.",
    "height": "the number of rows.",
    "count": "the number of **bytes**.",
    "value": "the byte; a larger integer gives its lowest 8 bits.",
    "void* devPtr": f"{MEMORY} It is not changed.",
    "cudaArray_t array": "an `Array`.",
    "cudaArray_const_t array": "an `Array`.",
    "const void* symbol": "a reference, which is its own symbol.",
    "desc": "the format of a texel, from `createChannelDesc`.",
    "error": "an `Error` or its number, such as ``CudaError.code``.",
    "texObject": "a `TextureObject`.",
    "surfObject": "a `SurfaceObject`.",
}


class Text(NamedTuple):
    """The docstring of a function made from a table, without the parts from its declaration."""

    summary: str
    returns: str
    gradients: str
    raises: Mapping[str, str] = {}
    example: str = ""


def cuda_function(function: Callable[P, R]) -> Callable[P, R]:
    """Completes the docstring of a function from its declaration, and names the declaration in errors of wrong calls.
    NumPy arrays are converted to the byte order of the machine.
    """
    declared, signature = DECLARATIONS[function.__name__], inspect.signature(function)
    function.__doc__ = completed(function.__doc__ or "", declared, signature, TEXTS)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        args, kwargs = in_native_order((args, kwargs))
        try:
            return function(*args, **kwargs)
        except TypeError:
            fault = _fault_of(signature, args, kwargs)
            if fault is None:
                raise
        raise wrong_call(declared, signature, fault)

    vars(call)["__signature__"] = AsWritten.of(signature, function)
    return call


def made(
    name: str,
    body: Callable[[dict[str, Any]], Any],
    text: Text,
    types: Mapping[str, Any],
    texts: Mapping[str, str],
    *,
    result: Any = jax.Array,
    options: Mapping[str, tuple[Any, Any]] = {},
    defaults: Mapping[str, Any] = {},
) -> Callable[..., Any]:
    """The function of a declaration. `body` takes its arguments by name.

    Args:
        name: of the function, a key of `DECLARATIONS`.
        body: its implementation.
        text: its docstring.
        types: the annotations of parameters, by CUDA's types.
        texts: the texts of parameters, by their names, or by their types and names.
        result: the annotation of the result.
        options: keyword-only parameters beyond CUDA's, with annotations and defaults.
        defaults: of parameters that have none in CUDA.
    """
    declared, empty = DECLARATIONS[name], inspect.Parameter.empty
    values = {p.name: DEFAULTS[p.default] for p in declared.parameters if p.default} | {**defaults}
    parameters = [
        inspect.Parameter(
            p.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=values.get(p.name, empty),
            annotation=types[p.type],
        )
        for p in declared.parameters
    ]
    names, values = [p.name for p in parameters], values | {name: default for name, (_, default) in options.items()}
    parameters += [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, (annotation, default) in options.items()
    ]
    signature = inspect.Signature(parameters, return_annotation=result)
    known = signature.parameters.keys()

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = in_native_order((args, kwargs))
        given = {**values, **dict(zip(names, args)), **kwargs}
        if given.keys() != known or len(args) > len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
            raise wrong_call(declared, signature, _fault_of(signature, args, kwargs) or "")
        return body(given)

    sections = {"Returns": text.returns, "Gradients": text.gradients}
    written = [text.summary, *(f"{heading}:\n{_paragraph(words)}" for heading, words in sections.items() if words)]
    if text.raises:
        written.append("\n".join(["Raises:", *(_paragraph(f"{e}: {words}", 8) for e, words in text.raises.items())]))
    if text.example:
        written.append(f"Example:\n{textwrap.indent(inspect.cleandoc(text.example), ' ' * 4)}")
    call.__name__, call.__qualname__, call.__module__ = name, name, str(__package__)  # where pickle finds it
    call.__doc__ = completed("\n\n".join(written), declared, signature, texts)
    call.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": result}
    vars(call)["__signature__"] = signature
    return call


def wrong_call(declared: Declaration, signature: inspect.Signature, fault: str) -> TypeError:
    """The error of a call with a missing or an unexpected argument."""
    return TypeError(
        f"{declared.name}: {fault}; CUDA declares {declared.text}, and its parameters here are "
        f"{', '.join(signature.parameters)}."
    )


def missing(name: str, argument: str) -> TypeError:
    """The error of a missing argument that only some forms of a call leave out."""
    return TypeError(f"{name}: missing a required argument: {argument!r}; CUDA declares {DECLARATIONS[name].text}.")


def _fault_of(signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]) -> str | None:
    """The fault of the arguments of a call, or None if they fit the parameters."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as fault:
        return str(fault)
    return None


def completed(doc: str, declared: Declaration, signature: inspect.Signature, texts: Mapping[str, str]) -> str:
    """A docstring, completed by parameters, result and source."""
    summary, *parts = HEADING.split(inspect.cleandoc(doc))
    sections = dict(zip(parts[::2], (part.strip("\n") for part in parts[1::2])))
    types = {parameter.name: parameter.type for parameter in declared.parameters}
    own = _items(sections.get("Args", ""))
    grouped: list[tuple[list[str], str]] = []
    for name in signature.parameters:
        text = own.get(name) or texts.get(f"{types.get(name)} {name}") or texts.get(name, "")
        if grouped and grouped[-1][1] == text:
            grouped[-1][0].append(name)
        elif text:
            grouped.append(([name], text))
    if grouped:
        sections["Args"] = "\n".join(_labeled(", ".join(labels), text) for labels, text in grouped)
    result = signature.return_annotation
    if getattr(result, "__module__", "").startswith(str(__package__)):
        sections.setdefault(
            "Returns", _paragraph(f"{'An' if result.__name__[0] in 'AEIOU' else 'A'} `{result.__name__}`.")
        )
    sections.setdefault("Source", _paragraph(declared.source))
    ordered = [f"{heading}:\n{sections[heading]}" for heading in SECTIONS if heading in sections]
    return "\n\n".join([summary.strip(), *ordered]) + "\n"


def _items(args: str) -> dict[str, str]:
    """The texts under Args by the name of the parameter, as they are written."""
    _, *parts = ITEM.split(args)
    return {name: text.rstrip() for label, text in zip(parts[::2], parts[1::2]) for name in label.split(", ")}


def _labeled(label: str, text: str) -> str:
    return f"    {label}: {text}" if "\n" in text else _paragraph(f"{label}: {text}", hanging=8)


def _paragraph(text: str, hanging: int = 4) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * hanging, break_on_hyphens=False)
