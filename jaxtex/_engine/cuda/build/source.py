"""The source of a kernel: a file of CUDA C++ and two generated headers, as the one text that a compiler takes.

Files are read when a kernel is first needed, not at import.
"""

import abc
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..trace.elementwise import literal
from ..trace.emitter import DeviceFunctions
from . import launch
from .arrays import Filled, KernelArrays

# Includes name headers by their path from here.
FOLDER = Path(__file__).parents[1]
INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)
ONCE = "#pragma once\n"
SCALARS = "trace/scalars.cuh"
INT32 = range(-(2**31), 2**31)


@functools.cache
def read_source(name: str) -> str:
    """The text of a file, without what keeps a compiler from including it twice."""
    return (FOLDER / name).read_text().replace(ONCE, "", 1)


def scalars() -> str:
    """The functions that traced functions call. Each program begins with them."""
    return read_source(SCALARS)


def program(name: str, generated: Mapping[str, str]) -> str:
    """The text of a kernel: a file in which the text of each header stands where it is first included.

    Args:
        name: of the file.
        generated: the texts of the headers that are generated for this kernel, by their names.
    """
    included = {SCALARS}

    def text_of(name: str) -> str:
        text = generated[name].replace(ONCE, "", 1) if name in generated else read_source(name)
        return INCLUDE.sub(once, text)

    def once(found: re.Match[str]) -> str:
        if found[1] in included:
            return ""
        included.add(found[1])
        return text_of(found[1])

    return f"{scalars()}\n{text_of(name)}"


class Constant(NamedTuple):
    """A constant of a kernel.

    Attributes:
        value: a truth value, an integer, a float32, or several integers or floats, by their number.
        comment: what it is.
    """

    name: str
    value: bool | int | float | Sequence[bool | int | float]
    comment: str = ""

    def declared(self, scope: str = "") -> str:
        """The declaration of a constant; of several, of a function of their number.

        A compiler of C++ for GPUs refuses arrays of constants beside functions, where an index is no constant.
        """
        if isinstance(self.value, Sequence):
            values, c_type = ", ".join(map(text_of_number, self.value)), type_of_number(self.value[0])
            body = f"constexpr {c_type} all[] = {{{values}}}; return all[k];"
            text = f"{scope}DEVICE constexpr {c_type} {self.name}(int k) {{ {body} }}"
        else:
            text = f"{scope}constexpr {type_of_number(self.value)} {self.name} = {text_of_number(self.value)};"
        return f"{text}  // {self.comment}" if self.comment else text


def type_of_number(value: bool | int | float) -> str:
    if isinstance(value, float):
        return "float"
    return "bool" if isinstance(value, bool) else "int" if value in INT32 else "int64"


def text_of_number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return literal(value, np.dtype(np.float32))
    return str(value) if value in INT32 else f"{value}ll"


def struct_of(name: str, comment: str, constants: Iterable[Constant], *members: str, template: str = "") -> str:
    """A struct of constants, which is an argument of templates.

    Args:
        members: more of it.
        template: what stands in front of a specialization.
    """
    lines = "".join(f"  {line}\n" for line in (*(c.declared("static ") for c in constants), *members))
    return f"// {comment}\n{template}struct {name} {{\n{lines}}};\n"


def header(comment: str, includes: Iterable[str], *blocks: str) -> str:
    """The text of a generated header.

    Args:
        comment: its first line.
        blocks: declarations and functions.
    """
    included = "".join(f'#include "{name}"\n' for name in includes)
    return "\n".join((f"{ONCE}// {comment}", included, *blocks))


def config(made_by: str, constants: Iterable[Constant], *blocks: str) -> str:
    """The header of a kernel's sizes and switches.

    Args:
        made_by: the module that computes them.
        blocks: structs of constants, and names of types.
    """
    lines = "".join(f"{constant.declared()}\n" for constant in constants)
    return header(f"The sizes and switches of one kernel, by {made_by}.", (SCALARS,), lines, *blocks)


class KernelSource(abc.ABC):
    """The source of a kernel. A subclass provides its file, its arrays, its sizes and the functions of a thread.

    Attributes:
        file: that of the kernel.
        room: the folder of its headers, which are generated.
        made_by: the module that computes them.
        arrays: what the kernel reads and writes.
        functions: of a thread.
    """

    file: str
    room: str
    made_by: str
    arrays: KernelArrays

    def __init__(self):
        self.functions = DeviceFunctions()

    @property
    @abc.abstractmethod
    def num_blocks(self) -> int:
        """The blocks of the launch."""

    @property
    @abc.abstractmethod
    def num_threads(self) -> int:
        """The threads of a block."""

    @property
    def bounds(self) -> str:
        """Of the launch: the names of constants."""
        return "threads"

    @abc.abstractmethod
    def constants(self) -> Iterable[Constant]:
        """The sizes and switches of the kernel, beside its threads."""

    def structs(self) -> list[str]:
        """Constants that are arguments of templates, and names of types."""
        return []

    @abc.abstractmethod
    def traced(self, functions: DeviceFunctions) -> list[str]:
        """Adds the functions of a thread, and returns the declarations that stand before them."""

    def includes(self) -> tuple[str, ...]:
        """The headers that traced functions need."""
        return SCALARS, f"{self.room}/config.cuh"

    def headers(self, name: str) -> dict[str, str]:
        """The headers `config.cuh` and `traced.cuh` of the kernel of that name."""
        declarations = self.traced(self.functions)
        blocks = self.arrays.declared(), *declarations, *self.functions.blocks, self.arrays.entry(name, self.bounds)
        constants = [Constant("threads", self.num_threads, "of a block"), *self.constants()]
        return {
            f"{self.room}/config.cuh": config(self.made_by, constants, *self.structs()),
            f"{self.room}/traced.cuh": header(
                f"What a thread of one kernel computes, by {self.made_by}.", self.includes(), *blocks
            ),
        }

    def run(self, name: str) -> Filled:
        """The arrays that the kernel fills, by role and number; it is called `name`."""
        headers, arrays = self.headers(name), self.arrays
        kernel = launch.Kernel(program(self.file, headers), name, self.num_blocks, self.num_threads, headers)
        return arrays.collected(launch.run(kernel, arrays.arguments, arrays.shapes, arrays.aliases))
