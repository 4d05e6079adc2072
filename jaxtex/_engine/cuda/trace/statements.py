"""The statements of a thread, and arrays of C expressions in place of arrays of numbers."""

import abc
import contextlib
import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, Self, cast

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike, DTypeLike

from .elementwise import C_TYPES, EXPRESSIONS, KNOWN, ROUNDED, STORED_ONLY, has_conversion, literal

# An array of C expressions, each the name of a scalar or a literal.
Names = np.ndarray
# Up to so many elements of an array, a computed index chooses among registers; otherwise the array is in memory.
MOST_CHOICES = 16
# The largest number of elements of an array in a thread's own memory.
MOST_KEPT = 256
# How many rows are added to memory together, and of how many numbers.
MOST_MERGED = 4, 4
# How many numbers of rows a thread keeps from sample to sample.
MOST_CARRIED = 100
# The name of a constant in C++: whether so little is kept that lanes may move rows besides, which takes registers, too.
FEW_CARRIED = "few_kept"


class UnknownPrimitive(NotImplementedError):
    """A traced function holds a primitive without a translation to C.

    Attributes:
        line: the file and line of the caller's code that holds it, if known.
    """

    line: str | None = None


class PrimitiveOfCaller(UnknownPrimitive):
    """A user's function holds a primitive without a translation to C."""


class RefusedProgram(UnknownPrimitive):
    """A function of one sample of the caller's holds a primitive without a translation to C."""


class Number(str):
    """An expression that is a literal.

    Attributes:
        value: the number, as a NumPy array without axes.
    """

    value: np.ndarray

    def __new__(cls, value: ArrayLike, dtype: DTypeLike) -> Self:
        c_type_of(dtype)
        number = super().__new__(cls, literal(value, np.dtype(dtype)))
        number.value = np.asarray(value, dtype)
        return number


class Typed(NamedTuple):
    """An array of expressions, and its dtype."""

    names: Names
    dtype: DTypeLike


class Addition(NamedTuple):
    """A row of float32 that a thread adds to an array in memory.

    Attributes:
        array: the array, an expression in C++.
        place: the place of the first number of the row, an int expression, or an int64 one if `wide`.
        inside: whether the row is added, a C expression; empty if it always is.
        numbers: of the row.
        aligned: whether places are multiples of the numbers that one load fetches, as for `load_row`.
    """

    array: str
    place: str
    inside: str
    numbers: tuple[str, ...]
    aligned: bool
    wide: bool


class Carried(NamedTuple):
    """Rows that a thread keeps from one of its samples to the next, and adds to an array in memory at the end.

    Attributes:
        name: of the variable.
        count, width: how many rows, and of how many numbers.
    """

    name: str
    array: str
    count: int
    width: int
    aligned: bool

    @property
    def size(self) -> int:
        """The numbers that a thread keeps: places and rows."""
        return self.count * (1 + self.width)

    @property
    def declaration(self) -> str:
        return f"Rows<{self.count}, {self.width}> {self.name} = {{}};"

    @property
    def addition(self) -> str:
        """The statement after the loop over samples."""
        return f"add_kept<{int(self.aligned)}>({self.array}, {self.name});"


class Statements(abc.ABC):
    """The statements of a thread so far.

    Attributes:
        lines: the statements. Equal expressions define one scalar.
        exact: whether the following sums and products of float32 are rounded separately. Otherwise the compiler may
            fuse a product and a sum, with one rounding.
        keeps_indices: whether an index is clamped even if its mode promises that it lies inside.
        bytes: for the names of bytes of loaded words, and of their values as float32, the expression of the byte as
            float32, divided by 2 to the power of {0}.
        tables: the declarations of the tables of constants that the statements use.
        functions: the device functions that the statements call, by their names.
        together: whether all threads of a warp are at the statements, a C expression.
        carries: whether the statements stand in the loop over the samples of a thread, and in no block in it.
        carried: what such statements keep from sample to sample.
        additions: rows that the thread adds to memory at the end of the block, before its variables change.
        sums: variables, by an array and a place in it, to which the thread adds; the kernel declares them.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.defined: dict[tuple[str, str], str] = {}
        self.branches: dict[tuple[Any, ...], list[Names]] = {}
        self.fresh = (f"v{k}" for k in itertools.count())
        self.exact = self.keeps_indices = False
        self.together, self.carries = "false", False
        self.carried: list[Carried] = []
        self.additions: list[Addition] = []
        self.sums: dict[tuple[str, int], str] = {}
        self.bytes: dict[str, str] = {}
        self.tables: list[str] = []
        self.functions: dict[str, str] = {}
        self.names_of_tables: dict[tuple[str, str], str] = {}

    @abc.abstractmethod
    def run(self, jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[Names]) -> list[Names]:
        """Emits a jaxpr, and returns its results."""

    @abc.abstractmethod
    def meaning(self, function: Callable[..., Any], eqn: JaxprEqn, args: list[Names]) -> Any:
        """Emits a function for the operands of an equation, and returns its results."""

    @contextlib.contextmanager
    def scope(self, diverges: bool = False) -> Generator[list[str]]:
        """Yields a list that collects the statements of a block. Names that they define are not reused after it.

        Args:
            diverges: whether some threads of a warp may be in the block while others are not.
        """
        before = self.lines, dict(self.defined), dict(self.branches), self.additions, self.together, self.carries
        self.lines, self.additions, self.carries = [], [], False
        self.together = "false" if diverges else self.together
        yield self.lines
        self.add_to_memory()
        self.lines, self.defined, self.branches, self.additions, self.together, self.carries = before

    @contextlib.contextmanager
    def exactly(self, exact: bool) -> Generator[None]:
        """Sets `exact` within the context."""
        before, self.exact = self.exact, exact
        yield
        self.exact = before

    def define(self, dtype: DTypeLike, expression: str) -> str:
        """The name of a scalar with the value of an expression; equal expressions share one."""
        return self.define_typed(c_type_of(dtype), expression)

    def define_typed(self, c_type: str, expression: str) -> str:
        """`define`, for any type in C."""
        if (c_type, expression) not in self.defined:
            name = next(self.fresh)
            self.lines.append(f"const {c_type} {name} = {expression};")
            self.defined[c_type, expression] = name
        return self.defined[c_type, expression]

    def define_each(self, dtype: DTypeLike, make: Callable[..., str], *args: Names) -> Names:
        """The names of scalars with the values ``make(*numbers)``; `make` is applied elementwise to `args`."""
        return of_each(lambda *numbers: self.define(dtype, make(*numbers)), args)

    def elementwise(self, name: str, dtype: DTypeLike, operand: DTypeLike, args: Sequence[Names]) -> Names:
        """The results, of `dtype`, of an elementwise primitive with operands of dtype `operand`.

        Numbers of 16 bits are computed in float32, and each result is rounded.
        """
        # Numbers that are only stored in their dtype are computed in float32.
        if np.dtype(operand).name in STORED_ONLY:
            wide = [self.converted(names, operand, np.float32) for names in args]
            found = self.elementwise(name, np.float32 if dtype == operand else dtype, np.float32, wide)
            return self.converted(found, np.float32, dtype) if dtype == operand else found
        # The expression in C, the number that leaves another one as it is, and the value of known integers.
        expression = EXPRESSIONS[name].of(np.dtype(operand))
        if expression is None:
            raise UnknownPrimitive(f"{name} of {np.dtype(operand).name} has no expression")
        if self.exact and operand == np.float32:
            expression = ROUNDED.get(name, expression)
        neutral = NEUTRAL[name](operand) if name in NEUTRAL else None
        known = KNOWN.get(name) if not jnp.issubdtype(operand, jnp.floating) else None

        # Known numbers take no statement, and neither do operations that change nothing.
        def one(*numbers: str) -> str:
            if neutral in numbers:
                first, second = numbers
                return second if first == neutral else first
            if known and are_known(numbers):
                with np.errstate(over="ignore"):
                    return Number(known(*(cast(Number, n).value for n in numbers)), dtype)
            last = numbers[-1]
            if name == "mul" and numbers[0] in self.bytes and isinstance(last, Number) and last.value == 2.0**-8:
                return self.define(dtype, self.bytes[numbers[0]].format(8))  # a code becomes a fraction
            if name == "div" and operand == np.float32 and not self.exact and isinstance(last, Number):
                with np.errstate(divide="ignore"):
                    inverse = 1 / last.value
                if np.finfo(np.float32).tiny <= abs(inverse) < np.inf:  # XLA multiplies, too
                    return self.define(dtype, f"{numbers[0]} * {Number(inverse, dtype)}")
            return self.define(dtype, expression.format(*numbers))

        return of_each(one, args)

    def converted(self, names: Names, source: DTypeLike, target: DTypeLike) -> Names:
        """Numbers, converted from dtype `source` to dtype `target`."""
        # Conversions that need no function.
        if source == target:
            return names
        if are_known(names.flat) and not jnp.issubdtype(source, jnp.floating):
            return literals(np.array([a.value for a in names.flat], source).astype(target).reshape(names.shape), target)
        if jnp.issubdtype(target, jnp.bool):
            return self.define_each(bool, lambda a: f"{a} != 0", names)
        # Two dtypes without a conversion of their own go by float32.
        to, of = c_type_of(target), c_type_of(source)
        if not has_conversion(np.dtype(source), np.dtype(target)):
            if {np.dtype(source).name, np.dtype(target).name} & STORED_ONLY:
                return self.converted(self.converted(names, source, np.float32), np.float32, target)
            raise UnknownPrimitive(f"a conversion of {np.dtype(source)} to {np.dtype(target)} has no expression")

        # A byte of a loaded word has an expression of its own as a float.
        def one(name: str) -> str:
            if target != np.float32 or name not in self.bytes:
                return self.define(target, f"converted<{to}, {of}>({name})")
            wide = self.define(target, self.bytes[name].format(0))
            self.bytes[wide] = self.bytes[name]
            return wide

        return of_each(one, [names])

    # Variables

    def variables(self, dtype: DTypeLike, initial: Names | None = None, shape: tuple[int, ...] = ()) -> Names:
        """The names of new variables with initial values, or undefined variables of a shape."""
        c_type = c_type_of(dtype)
        names = of_each(lambda _: next(self.fresh), [np.empty(shape, object) if initial is None else initial])
        for name, value in zip(names.flat, [None] * names.size if initial is None else initial.flat):
            self.lines.append(f"{c_type} {name};" if value is None else f"{c_type} {name} = {value};")
        return names

    def assign(self, dtypes: Sequence[DTypeLike], variables: Sequence[Names], values: Sequence[Names]) -> None:
        """Assigns values to variables at once; the values may depend on the variables."""
        self.add_to_memory()
        all_names = {name for names in variables for name in names.flat}
        pairs: list[tuple[str, str]] = []
        for dtype, names, new in zip(dtypes, variables, values):
            for name, value in zip(names.flat, np.broadcast_to(new, names.shape).flat):
                if value != name:
                    # A value that is itself a variable is copied, as the variable may be assigned first.
                    pairs.append((name, self.define(dtype, value) if value in all_names else value))
        self.lines.extend(f"{name} = {value};" for name, value in pairs)

    # Arrays in memory

    def add_to_memory(self) -> None:
        """Adds the rows of `additions` to memory. Rows of one array are added together, a few at a time."""
        # Rows of one array and one form stand together.
        additions, self.additions = self.additions, []
        kind = lambda a: (a.array, len(a.numbers), a.aligned, a.wide)
        for (array, count, aligned, wide), alike in itertools.groupby(additions, kind):
            rows, of_row = [*alike], f"Row<float, {count}>"
            number_of = lambda row: f"{{{{{', '.join(map(str, row.numbers))}}}}}"
            # Long rows are added one by one.
            if wide or count > MOST_MERGED[1]:
                for row in rows:
                    guard = f"if ({row.inside}) " if row.inside else ""
                    to = f"{array} + ({row.place})"
                    self.lines.append(f"{guard}add_row_to_memory<{int(aligned)}>({to}, {of_row}{number_of(row)});")
                continue
            # Short ones a few at a time, among which the threads of a warp look for equal places.
            for first in range(0, len(rows), MOST_MERGED[0]):
                some = rows[first : first + MOST_MERGED[0]]
                places = (f"{row.inside} ? {row.place} : -1" if row.inside else row.place for row in some)
                # In a loop over samples, a thread may keep them until the place changes.
                kept = Carried(f"kept_{len(self.carried)}", array, len(some), count, aligned)
                how = self.together
                if self.carries and sum(one.size for one in (*self.carried, kept)) <= MOST_CARRIED:
                    self.carried.append(kept)
                    how = f"{FEW_CARRIED} && {self.together}, {kept.name}"
                numbers = ", ".join(map(number_of, some))
                self.lines += [
                    "{",
                    f"Rows<{len(some)}, {count}> rows = {{{{{', '.join(places)}}}, {{{numbers}}}}};",
                    f"add_rows<{int(aligned)}>({array}, rows, {how});",
                    "}",
                ]

    def define_table(self, dtype: DTypeLike, numbers: Sequence[str]) -> str:
        """The name of a table of constants; equal tables are shared."""
        c_type, text = c_type_of(dtype), ", ".join(numbers)
        if (c_type, text) not in self.names_of_tables:
            name = f"table_{len(self.tables)}"
            self.tables.append(f"TABLE {c_type} {name}[{len(numbers)}] = {{{text}}};")
            self.names_of_tables[c_type, text] = name
        return self.names_of_tables[c_type, text]

    def array(self, dtype: DTypeLike, count: int, numbers: Sequence[str] = ()) -> str:
        """The name of an array of `count` elements in a thread's own memory: of `numbers`, or undefined."""
        if count > MOST_KEPT:
            raise UnknownPrimitive(f"a thread keeps at most {MOST_KEPT} numbers of an array, and here {count}")
        c_type, text = c_type_of(dtype), ", ".join(numbers)
        if numbers and (c_type, f"{{{text}}}") in self.defined:
            return self.defined[c_type, f"{{{text}}}"]
        name = next(self.fresh)
        if numbers:
            self.lines.append(f"const {c_type} {name}[{count}] = {{{text}}};")
            self.defined[c_type, f"{{{text}}}"] = name
        else:
            self.lines.append(f"{c_type} {name}[{count}];")
        return name

    def element(self, dtype: DTypeLike, numbers: Sequence[str], index: str) -> str:
        """The number at an index: an int expression from 0 to below the count of `numbers`."""
        if len(set(numbers)) == 1:
            return numbers[0]
        if are_known(numbers):
            return self.define(dtype, f"element_of({self.define_table(dtype, numbers)}, {index})")
        if len(numbers) > MOST_CHOICES:
            return self.define(dtype, f"{self.array(dtype, len(numbers), numbers)}[{index}]")
        place = self.define(np.int32, index)
        choose = lambda rest, pair: self.define(dtype, f"{place} == {pair[0]} ? {pair[1]} : {rest}")
        *first, last = numbers
        return functools.reduce(choose, enumerate(first), last)


def aval_of(var: Var | Literal) -> ShapedArray:
    """The shape and dtype of an operand or a result of an equation."""
    return cast(ShapedArray, var.aval)


@functools.cache
def c_type_of(dtype: DTypeLike) -> str:
    """The type in C of a dtype; an `UnknownPrimitive` if it has none, such as complex numbers."""
    name = getattr(dtype, "name", None) or np.dtype(dtype).name
    if name not in C_TYPES:
        raise UnknownPrimitive(f"numbers of {name} have no type of C")
    return C_TYPES[name]


def of_each(function: Callable[..., str], args: Sequence[Names]) -> Names:
    """`function`, applied elementwise to `args`, which broadcast."""
    return as_array(np.frompyfunc(function, len(args), 1)(*map(as_array, args)))


def as_array(names: Names | str) -> Names:
    """Names as an array: NumPy makes a single name of an array without axes."""
    return np.asarray(names, object)


def are_known(numbers: Iterable[str]) -> bool:
    """Whether all numbers are literals."""
    return all(isinstance(number, Number) for number in numbers)


def literals(value: ArrayLike, dtype: DTypeLike | None = None) -> Names:
    """The numbers of an array as literals."""
    dtype = jnp.result_type(value) if dtype is None else dtype
    c_type_of(dtype)
    numbers = np.asarray(value, dtype)
    names = np.empty(numbers.shape, object)
    for index, number in np.ndenumerate(numbers):
        names[index] = Number(number, dtype)
    return names


def integer_literal(number: int, dtype: DTypeLike) -> str | None:
    return literal(number, np.dtype(dtype)) if jnp.issubdtype(dtype, jnp.integer) else None


# The neutral literals. For floats, 0 is not neutral, as -0 + 0 is 0.
NEUTRAL = {"add": functools.partial(integer_literal, 0), "mul": lambda dtype: literal(1, dtype)}
