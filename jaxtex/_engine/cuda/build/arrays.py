"""The arrays that a kernel reads and writes, by role: its parameters in CUDA C++, its arguments and results in JAX."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...describe.storage import Shaped, Sliced, WithHalo
from ..trace.elementwise import C_TYPES


class ArrayRole(enum.StrEnum):
    """The role of an array in a kernel. The value of a member is the array's name in CUDA C++."""

    TEXELS = "texels"
    COLOR = "color"
    VALUES = "values"
    OPERAND = "operand"
    CHAIN = "chain"
    COARSE = "coarse"
    UNIT = "unit"
    VIEWS = "views"
    FIRST_ROW = "first_row"
    WINDOWS = "windows"
    CROWDS = "crowds"
    BOXES = "boxes"
    LISTS = "lists"
    MARKS = "marks"
    NOTED = "noted"
    RESULT = "result"
    DERIVATIVE = "derivative"
    NOTES = "notes"
    TOTALS = "totals"
    COTANGENT = "cotangent"
    TILE_SUMS = "tile_sums"


# Roles that several arrays of a kernel may have; these are numbered.
NUMBERED = (ArrayRole.OPERAND, ArrayRole.DERIVATIVE, ArrayRole.COTANGENT)


class KernelArray(NamedTuple):
    """An array of a kernel.

    Attributes:
        array: the array, or the shape and dtype of a result. A `WithHalo` is three arrays; a `Sliced` is a slice of a
            larger array.
        number: the number among arrays of one role.
        start: the initial contents of a result; `None` if they do not matter.
    """

    role: ArrayRole
    array: Shaped
    number: int = 0
    start: jax.Array | WithHalo | None = None

    @property
    def name(self) -> str:
        return f"{self.role}_{self.number}" if self.role in NUMBERED else str(self.role)

    @property
    def c_type(self) -> str:
        return C_TYPES[np.dtype(self.array.dtype).name]

    def field_type(self, *, const: bool = False) -> str:
        """The type of the array's field in the struct `Arrays`."""
        c_type = f"const {self.c_type}" if const else self.c_type
        return f"WithHalo<{c_type}>" if isinstance(self.array, WithHalo) else f"{c_type}*"

    def parts(self) -> list[tuple[str, Any]]:
        """The names and the arrays of its parts: three for a `WithHalo`, otherwise one."""
        return (
            [*self.array.arrays(self.name).items()] if isinstance(self.array, WithHalo) else [(self.name, self.array)]
        )

    def starts(self) -> list[Any]:
        """The arrays of initial contents, one for each part; none if contents do not matter."""
        if self.start is None:
            return []
        return [*self.start.arrays(self.name).values()] if isinstance(self.start, WithHalo) else [self.start]


# The results of a kernel by role and number: each is an array or a `WithHalo`.
Filled = dict[tuple[ArrayRole, int], Any]


def operands_of(operands: Iterable[Shaped]) -> list[KernelArray]:
    """The operands of a read as arrays of a kernel."""
    return [KernelArray(ArrayRole.OPERAND, a, k) for k, a in enumerate(operands)]


class KernelArrays:
    """All arrays of a kernel.

    The parameters of a kernel are the arrays that it reads, the initial contents of its results, and its results. Its
    functions get a struct `arrays` with a field for each array.

    Attributes:
        given, results: the arrays that the kernel reads, and its results, in the order of the parameters.
        absent: the types of the arrays that the kernel names but does not have; their fields are null pointers.
    """

    def __init__(
        self,
        given: Sequence[KernelArray],
        results: Sequence[KernelArray],
        absent: Mapping[ArrayRole, str] | None = None,
    ):
        self.given, self.results = [*given], [*results]
        names = {array.role for array in (*given, *results)}
        self.absent = {role: c_type for role, c_type in (absent or {}).items() if role not in names}

    def __contains__(self, role: ArrayRole) -> bool:
        return any(array.role is role for array in (*self.given, *self.results))

    def __getitem__(self, role: ArrayRole) -> Shaped:
        """The only array of a role."""
        return self.find(role).array

    def find(self, role: ArrayRole) -> KernelArray:
        (only,) = (array for array in (*self.given, *self.results) if array.role is role)
        return only

    @property
    def operands(self) -> list[Shaped]:
        """The operands of the read, in order."""
        return [array.array for array in self.given if array.role is ArrayRole.OPERAND]

    # In C++

    def type_of(self, role: ArrayRole) -> str:
        """The type of a result's field; the result may be absent."""
        return f"{self.absent[role]}*" if role in self.absent else self.find(role).field_type()

    def declared(self) -> str:
        """The declaration of the struct `Arrays`."""
        fields = [f"{a.field_type(const=True)} {a.name};" for a in self.given]
        fields += [f"{a.field_type()} {a.name};" for a in self.results]
        fields += [f"{c_type}* {role};" for role, c_type in self.absent.items()]
        return "// What the kernel reads and writes.\nstruct Arrays {\n" + "".join(f"  {f}\n" for f in fields) + "};\n"

    def entry(self, name: str, bounds: str) -> str:
        """The kernel `name`, which calls `run`."""
        read = [f"const {a.c_type}* __restrict__ {part}" for a in self.given for part, _ in a.parts()]
        started = [f"const {a.c_type}*" for a in self.results for _ in a.starts()]
        written = [f"{a.c_type}* __restrict__ {part}" for a in self.results for part, _ in a.parts()]
        values = ", ".join([*map(field_value, (*self.given, *self.results)), *("nullptr" for _ in self.absent)])
        parameters = ", ".join((*read, *started, *written))
        return (
            "// The kernel.\nDEVICE void run(const Arrays& arrays);\n"
            f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({parameters}) {{\n'
            f"  run(Arrays{{{values}}});\n}}\n"
        )

    # In a program

    @property
    def arguments(self) -> list[Any]:
        """The arrays that the kernel gets."""
        given = [part.whole if isinstance(part, Sliced) else part for a in self.given for _, part in a.parts()]
        return [*given, *(start for a in self.results for start in a.starts())]

    @property
    def shapes(self) -> list[jax.ShapeDtypeStruct]:
        """The shapes and dtypes of the arrays that the kernel fills."""
        return [jax.ShapeDtypeStruct(part.shape, part.dtype) for a in self.results for _, part in a.parts()]

    @property
    def aliases(self) -> dict[int, int]:
        """For each argument that holds initial contents, its position and the number of the result that it becomes."""
        starts = [start for a in self.results for _, start in zip(a.parts(), a.starts() or [None] * len(a.parts()))]
        first = sum(len(a.parts()) for a in self.given)
        started = [n for n, start in enumerate(starts) if start is not None]
        return {first + k: n for k, n in enumerate(started)}

    def collected(self, filled: Sequence[jax.Array]) -> Filled:
        """The results of the kernel by role and number, from the arrays that it filled."""
        rest = iter(filled)

        def whole(array: KernelArray) -> Any:
            parts = {name: next(rest) for name, _ in array.parts()}
            if not isinstance(array.array, WithHalo):
                return parts[array.name]
            return WithHalo(*(parts[f"{array.name}_{part}"] for part in WithHalo._fields))

        return {(array.role, array.number): whole(array) for array in self.results}


def field_value(array: KernelArray) -> str:
    if not isinstance(array.array, WithHalo):
        return array.name
    names = [name for name, _ in array.parts()]
    return f"{{{', '.join((*names, *(f'{end}ll' for end in array.array.ends)))}}}"
