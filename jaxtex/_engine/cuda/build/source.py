"""The source of a kernel: a file of CUDA C++ and two generated headers, joined into one text for the compiler."""

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

# The folder to which the paths in `#include` are relative.
FOLDER = Path(__file__).parents[1]
INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)
ONCE = "#pragma once\n"
SCALARS = "trace/scalars.cuh"
INT32 = range(-(2**31), 2**31)


@functools.cache
def read_source(name: str) -> str:
    """The text of a file, without `#pragma once`."""
    return (FOLDER / name).read_text().replace(ONCE, "", 1)


def scalars() -> str:
    """The device functions that traced functions call; every program begins with them."""
    return read_source(SCALARS)


def program(name: str, generated: Mapping[str, str]) -> str:
    """The text of a kernel: a file, with the text of each header in place of its first include.

    Args:
        name: the path of the file in `FOLDER`.
        generated: the texts of the kernel's generated headers, by their names.
    """
    included = {SCALARS}

    def text_of(name: str) -> str:
        text = generated[name].replace(ONCE, "", 1) if name in generated else read_source(name)
        return INCLUDE.sub(once, text)

    def once(include: re.Match[str]) -> str:
        if include[1] in included:
            return ""
        included.add(include[1])
        return text_of(include[1])

    return f"{scalars()}\n{text_of(name)}"


class Constant(NamedTuple):
    """A constant of a kernel.

    Attributes:
        value: a bool, an int, a float (a float32 in the kernel), or a sequence of these.
    """

    name: str
    value: bool | int | float | Sequence[bool | int | float]
    comment: str = ""

    def declared(self, scope: str = "") -> str:
        """The declaration of a constant; of a sequence, as a function of the index.

        CUDA C++ does not allow device functions to index a global `constexpr` array by a variable.
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
    """The declaration of a struct of constants, for use as a template argument.

    Args:
        template: the template prefix of a specialization, if it is one.
    """
    lines = "".join(f"  {line}\n" for line in (*(c.declared("static ") for c in constants), *members))
    return f"// {comment}\n{template}struct {name} {{\n{lines}}};\n"


def header(comment: str, includes: Iterable[str], *blocks: str) -> str:
    """The text of a generated header."""
    included = "".join(f'#include "{name}"\n' for name in includes)
    return "\n".join((f"{ONCE}// {comment}", included, *blocks))


def config(made_by: str, constants: Iterable[Constant], *blocks: str) -> str:
    """The text of `config.cuh`, with a kernel's sizes and switches.

    Args:
        made_by: the module that computes the constants.
        blocks: structs of constants, and type definitions.
    """
    lines = "".join(f"{constant.declared()}\n" for constant in constants)
    return header(f"The sizes and switches of one kernel, by {made_by}.", (SCALARS,), lines, *blocks)


class KernelSource(abc.ABC):
    """The source of a kernel. A subclass provides its file, its arrays, its sizes and its traced functions.

    Attributes:
        file: the path of the kernel's file.
        room: the folder of its generated headers.
        made_by: the module that generates them.
        functions: the traced functions, which run in one thread.
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
        """The number of blocks."""

    @property
    @abc.abstractmethod
    def num_threads(self) -> int:
        """The number of threads of a block."""

    @property
    def shared_bytes(self) -> int:
        """The shared memory that a launch reserves for a block."""
        return 0

    @property
    def bounds(self) -> str:
        """The launch bounds, as names of constants."""
        return "threads"

    @abc.abstractmethod
    def constants(self) -> Iterable[Constant]:
        """The sizes and switches of the kernel, without `threads`."""

    def structs(self) -> list[str]:
        """Structs of constants, and type definitions."""
        return []

    def traced(self, functions: DeviceFunctions) -> list[str]:
        """Adds the traced functions, if there are any, and returns the declarations that precede them."""
        return []

    def includes(self) -> tuple[str, ...]:
        """The headers that `traced.cuh` includes."""
        return SCALARS, f"{self.room}/config.cuh"

    def headers(self, name: str) -> dict[str, str]:
        """The texts of `config.cuh` and `traced.cuh` for a kernel called `name`, by their paths."""
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
        """The results of the kernel by role and number; the kernel is called `name`."""
        headers, arrays = self.headers(name), self.arrays
        text, sizes = program(self.file, headers), (self.num_blocks, self.num_threads)
        kernel = launch.Kernel(text, name, *sizes, headers, self.shared_bytes)
        return arrays.collected(launch.run(kernel, arrays.arguments, arrays.shapes, arrays.aliases))
