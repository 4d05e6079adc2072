"""Rules of primitives that read and write arrays at indices, and of `load_row`, which loads from memory.

An index that is a literal costs a thread nothing. At a computed index, a thread reads a table of constants, or chooses
among numbers that it has computed.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn, Primitive
from jax.interpreters import ad
from jax.typing import ArrayLike, DTypeLike

from .numbers import Rule
from .statements import (
    MOST_KEPT,
    Addition,
    Names,
    Number,
    Statements,
    UnknownPrimitive,
    are_known,
    as_array,
    aval_of,
    c_type_of,
    literals,
)

Mode = jax.lax.GatherScatterMode
MODES = (Mode.PROMISE_IN_BOUNDS, Mode.CLIP, Mode.FILL_OR_DROP)
# The elementwise primitives by which scatters combine an old number with a new one.
COMBINED = {f"scatter-{name}": name for name in ("add", "sub", "mul", "min", "max")}
# The largest number of places among which a computed index may choose in a write.
MOST_PLACES = 256
# The most statements of writes that choose among names; with more, the numbers are in memory.
MOST_STATEMENTS = 512
# The most numbers that a thread adds up in variables of its own.
MOST_SUMS = 256


class Index:
    """The index of the first element of a part of an array.

    Attributes:
        known: the literals of the index, by axis, clamped so that the part lies inside.
        computed: the other numbers of the index, by axis, as int expressions.
        last: for each axis, the largest number with which the part lies inside.
        is_inside: whether the part lies inside by the literals alone.
    """

    def __init__(self, statements: Statements, last: Sequence[int], starts: Mapping[int, str], dtype: np.dtype):
        self.last, self.is_inside = last, True
        self.known, self.computed = dict[int, int](), dict[int, str]()
        for axis, start in starts.items():
            if isinstance(start, Number):
                self.known[axis] = min(max(int(start.value), 0), last[axis])
                self.is_inside &= self.known[axis] == start.value
            else:
                self.computed[axis] = statements.converted(as_array(start), dtype, np.dtype(np.int32)).item()

    def clamped(self) -> dict[int, str]:
        """`computed`, clamped so that the part lies inside."""
        return {axis: f"minimum(maximum({name}, 0), {self.last[axis]})" for axis, name in self.computed.items()}

    def lies_inside(self) -> str:
        """A C expression: whether the part lies inside."""
        limits = (f"{name} >= 0 && {name} <= {self.last[axis]}" for axis, name in self.computed.items())
        return " && ".join(limits)


class Part(NamedTuple):
    """A part of an array.

    Attributes:
        names: the names of the array's numbers.
        at: the index of the first element of the part.
        mode: the treatment of indices out of bounds.
    """

    names: Names
    dtype: np.dtype
    at: Index
    mode: Mode

    @property
    def is_left_out(self) -> bool:
        """Whether the part is known to lie outside, so that it is neither read nor written."""
        return self.mode is Mode.FILL_OR_DROP and not self.at.is_inside

    def place(self, offset: Sequence[int]) -> tuple[int, ...]:
        """The place of the number at an offset, as if the computed numbers of the index were 0."""
        return tuple(self.at.known.get(axis, 0) + number for axis, number in enumerate(offset))

    def read(self, statements: Statements, offset: Sequence[int], fill: str) -> str:
        """The number at an offset; `fill` if the part is left out."""
        # What needs no choice: parts outside, and places that are known.
        place, index, names = self.place(offset), self.at, self.names
        if self.is_left_out:
            return fill
        if not index.computed:
            return names[place]
        # Otherwise the numbers become an array in the thread's memory, and the place is computed.
        if not are_known(names.flat):  # constants share one table; other arrays shrink to the numbers in reach
            reach = {axis: slice(place[axis], place[axis] + index.last[axis] + 1) for axis in index.computed}
            names = names[tuple(reach.get(axis, slice(i, i + 1)) for axis, i in enumerate(place))]
            place = (0,) * names.ndim
        strides = [math.prod(names.shape[axis + 1 :]) for axis in range(names.ndim)]
        # An index is clamped unless its mode promises, or the mask below sees to, that it lies inside.
        is_kept = self.mode is not Mode.PROMISE_IN_BOUNDS or statements.keeps_indices
        computed = index.clamped() if is_kept else index.computed
        terms = [name if strides[axis] == 1 else f"{name} * {strides[axis]}" for axis, name in computed.items()]
        first = sum(i * stride for i, stride in zip(place, strides))
        place_in_memory = " + ".join([*terms, *[str(first)] * (first > 0)])
        element = statements.element(self.dtype, names.ravel().tolist(), place_in_memory)
        # A part outside is replaced by the fill value.
        if self.mode is not Mode.FILL_OR_DROP:
            return element
        return statements.define(self.dtype, f"{index.lies_inside()} ? {element} : {fill}")

    @property
    def num_places(self) -> int:
        """The number of places to which a number may be written."""
        return math.prod(self.at.last[axis] + 1 for axis in self.at.computed)

    def write(self, statements: Statements, offset: Sequence[int], new: Callable[[str], str]) -> None:
        """Replaces the number at an offset by ``new(number)``, unless the part is left out."""
        if self.is_left_out:
            return
        place, names = self.place(offset), self.names
        # A thread has no array of names to index, so each place in reach compares its number with the index.
        computed = self.at.clamped() if self.mode is Mode.CLIP else self.at.computed
        counts = [self.at.last[axis] + 1 for axis in computed]
        if self.num_places > MOST_PLACES:
            raise UnknownPrimitive(f"a thread chooses among {MOST_PLACES} places to write to, not {self.num_places}")
        for numbers in itertools.product(*map(range, counts)):
            steps = dict(zip(computed, numbers))
            at = tuple(i + steps.get(axis, 0) for axis, i in enumerate(place))
            value = new(names[at])
            if computed:
                here = " && ".join(f"{name} == {steps[axis]}" for axis, name in computed.items())
                value = statements.define(self.dtype, f"{statements.define(bool, here)} ? {value} : {names[at]}")
            names[at] = value

    def write_to(self, array: str, statements: Statements, offset: Sequence[int], new: Callable[[str], str]) -> None:
        """`write`, if the numbers are in an array in the thread's memory."""
        if self.is_left_out:
            return
        place, shape, index = self.place(offset), self.names.shape, self.at
        factors = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        terms = [f"{name} * {factors[axis]}" for axis, name in index.clamped().items()]
        first = sum(map(operator.mul, place, factors))
        at = f"{array}[{statements.define(np.int32, ' + '.join([*terms, str(first)]))}]"
        # A variable, as the number changes from one write to the next.
        (old,) = statements.variables(self.dtype, np.array([at], object))
        value, checks = new(old), self.mode is not Mode.CLIP and index.computed
        statements.lines.append(f"if ({index.lies_inside()}) {at} = {value};" if checks else f"{at} = {value};")


def checked(mode: Mode) -> Mode:
    if mode not in MODES:
        raise UnknownPrimitive(f"indices in mode {mode.name} have no rule")
    return mode


def gather(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    (names, indices), numbers, sizes = args, eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    aval, of_index, mode = aval_of(eqn.outvars[0]), aval_of(eqn.invars[1]).dtype, checked(eqn.params["mode"])
    # The axes along which a part extends, and the last index at which it may begin.
    skipped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    axes = [axis for axis in range(names.ndim) if axis not in skipped]
    last, fill = (
        [n - size for n, size in zip(names.shape, sizes)],
        literals(np.asarray(fill_of(aval.dtype, eqn.params["fill_value"])), aval.dtype).item(),
    )
    # Each number of the result is a read of its own; equal ones share statements.
    result = np.empty(aval.shape, object)
    for at in np.ndindex(result.shape):
        batch = tuple(i for axis, i in enumerate(at) if axis not in numbers.offset_dims)
        batching = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims)
        offset = offset_in(names, at, zip(axes, numbers.offset_dims), batch, batching)
        index = Index(statements, last, dict(zip(numbers.start_index_map, indices[batch])), of_index)
        result[at] = Part(names, aval.dtype, index, mode).read(statements, offset, fill)
    return result


def offset_in(
    names: Names,
    at: Sequence[int],
    window: Iterable[tuple[int, int]],
    batch: Sequence[int],
    batching: Iterable[tuple[int, int]],
) -> list[int]:
    """The place of a number of a part in an array, if the part begins at index 0.

    Args:
        at: the place of the number in the result of a gather, or in the updates of a scatter.
        window: pairs of an axis of the array and the axis of `at` that runs along it.
        batch: the numbers of `at` that choose the part.
        batching: pairs of a batch axis of the array and the axis of `batch` that runs along it.
    """
    offset = [0] * names.ndim
    for places, pairs in ((at, window), (batch, batching)):
        for axis, k in pairs:
            offset[axis] = places[k]
    return offset


def fill_of(dtype: DTypeLike, value: ArrayLike | None) -> ArrayLike:
    """The number that a gather returns for parts outside, by JAX's rules."""
    if value is None and jnp.issubdtype(dtype, jnp.inexact):
        value = np.nan
    elif value is None and jnp.issubdtype(dtype, jnp.integer):
        value = jnp.iinfo(dtype).min if jnp.issubdtype(dtype, jnp.signedinteger) else jnp.iinfo(dtype).max
    return True if value is None else value


def scatter(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    (names, indices, updates), numbers, name = args, eqn.params["dimension_numbers"], eqn.primitive.name
    aval, mode = aval_of(eqn.outvars[0]), checked(eqn.params["mode"])
    # The axes along which an update extends, and the last index at which it may begin.
    skipped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    axes = [axis for axis in range(names.ndim) if axis not in skipped]
    sizes = dict(zip(axes, (updates.shape[k] for k in numbers.update_window_dims)))
    last = [n - sizes.get(axis, 1) for axis, n in enumerate(names.shape)]
    names, of_index = names.copy(), aval_of(eqn.invars[1]).dtype

    # What a number becomes with an update.
    def combined(old: str, new: str) -> str:
        if name in COMBINED:
            return statements.elementwise(COMBINED[name], aval.dtype, aval.dtype, (as_array(old), as_array(new))).item()
        body = eqn.params["update_jaxpr"]
        if body is None:
            return new
        return statements.run(body, eqn.params["update_consts"], [as_array(old), as_array(new)])[0].item()

    # Each number of the updates is a write to a part.
    writes = list[tuple[Part, list[int], str]]()
    for at in np.ndindex(updates.shape):
        batch = tuple(i for axis, i in enumerate(at) if axis not in numbers.update_window_dims)
        batching = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
        offset = offset_in(names, at, zip(axes, numbers.update_window_dims), batch, batching)
        starts = dict(zip(numbers.scatter_dims_to_operand_dims, indices[batch]))
        part = Part(names, aval.dtype, Index(statements, last, starts, of_index), mode)
        writes.append((part, offset, updates.item(*at)))
    # Few writes choose among names, one after the other; many go to an array in memory.
    array, num_statements = "", sum(part.num_places for part, _, _ in writes)
    if num_statements > MOST_STATEMENTS and names.size <= MOST_KEPT:
        array = statements.array(aval.dtype, names.size)
        statements.lines += [f"{array}[{k}] = {name};" for k, name in enumerate(names.flat)]
    for part, offset, update in writes:
        new = functools.partial(combined, new=update)
        part.write_to(array, statements, offset, new) if array else part.write(statements, offset, new)
    return elements(array, names.shape) if array else names


def elements(array: str, shape: tuple[int, ...], turn: str = "") -> Names:
    """The names of the elements of an array in memory; with `turn`, of its part for an iteration of a loop."""
    names = np.empty(shape, object)
    for k, place in enumerate(np.ndindex(shape)):
        names[place] = f"{array}[{turn} * {names.size} + {k}]" if turn else f"{array}[{k}]"
    return names


load_row_p = Primitive("load_row")
Place = jax.Array | Sequence[tuple[jax.Array, int]]


@load_row_p.def_abstract_eval
def shape_of_row(
    *first: ShapedArray,
    array: str,
    factors: tuple[int, ...],
    count: int,
    dtype: np.dtype,
    function: str,
    num_kept: int,
    is_masked: bool,
    has_token: bool,
    wide: bool,
) -> ShapedArray:
    del array, factors, function, num_kept, is_masked, has_token, wide
    of_row = lambda *first: jnp.zeros((*jnp.broadcast_shapes(*(a.shape for a in first)), count), dtype)
    return jax.make_jaxpr(of_row)(*first).out_avals[0]


def load_row(
    array: str,
    first: Place,
    count: int,
    dtype: np.dtype,
    *,
    aligned: bool = False,
    by_pair: bool = False,
    num_kept: int = 0,
    inside: jax.Array | None = None,
    token: jax.Array | None = None,
    wide: bool = True,
) -> jax.Array:
    """Loads adjacent elements of an array that the kernel does not write.

    Args:
        array: a C++ expression for the array.
        first: the offset of the first element of each row, S; or pairs of a number and a factor, whose sum of products
            is taken in 64 bits, or in 32 bits if not `wide`.
        aligned: whether all rows begin at multiples of their length, or of 16 bytes if they are longer, so that few
            loads fetch a row.
        by_pair: whether a row of three numbers, of 8 or 32 bits, is two loads instead of three, which take more
            registers.
        num_kept: the number of leading pairs of `first` that many rows share: a thread adds them to the address once.
        inside: the mask of the rows to load, S; the others are zeros. `None` loads all.
        token: a number of `dtype` that stands for the array: the load is linear in it, and its transpose adds rows to
            the array.

    Returns:
        S + ``(count,)``.
    """
    numbers, factors = zip(*([(first, 1)] if isinstance(first, jax.Array) else first))
    paired = by_pair and count == 3 and np.dtype(dtype).itemsize in (1, 4)
    function = "load_aligned_row" if aligned else "load_row_by_pair" if paired else "load_row"
    static = {"array": array, "factors": factors, "count": count, "dtype": np.dtype(dtype), "function": function}
    static["num_kept"] = num_kept
    masks, tokens = () if inside is None else (inside,), () if token is None else (token,)
    return load_row_p.bind(
        *numbers, *masks, *tokens, **static, is_masked=bool(masks), has_token=bool(tokens), wide=wide
    )


def terms_of(numbers: Sequence[Any], factors: Sequence[int], wide: bool) -> list[str]:
    """The products whose sum is an offset; 0 and 1 take no instruction."""
    pairs = [*zip(numbers, factors)]
    if wide:
        return [f"(int64){number} * {factor}ll" for number, factor in pairs]
    return [number if factor == 1 else f"{number} * {factor}" for number, factor in pairs]


def load_row_rule(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    array, factors, count, function = (eqn.params[name] for name in ("array", "factors", "count", "function"))
    num_kept = eqn.params["num_kept"]
    c_type = c_type_of(eqn.params["dtype"])
    numbers = np.broadcast_arrays(*(args[:-1] if eqn.params["has_token"] else args))
    # Bytes of a row are loaded as words. Then each has an expression for its value as a float.
    rows, by_words = np.empty((*numbers[0].shape, count), object), c_type == "uint8" and function != "load_row"
    of_row, load = f"Row<{c_type}, {count}>", f"{function}<{count}>"
    if by_words and function == "load_row_by_pair":
        of_row, load = "Row<uint8, 4>", "load_three_bytes"
    # A row: its place, of which the first terms may be kept in a register, and its load.
    for index in np.ndindex(numbers[0].shape):
        terms = terms_of([number[index] for number in numbers], factors, eqn.params["wide"])
        near = f"kept({array} + {' + '.join(terms[:num_kept])})" if num_kept else array
        first = f"{numbers[0][index]}" if factors == (1,) else f"({' + '.join(terms[num_kept:])})"
        inside = f", {numbers[-1][index]}" if eqn.params["is_masked"] else ""
        row = statements.define_typed(of_row, f"{load}({near} + {first}{inside})")
        rows[index] = [f"{row}.v[{k}]" for k in range(count)]
        if by_words and count > 1:
            statements.bytes |= {name: f"float_of_byte<{k}, {{0}}>({row})" for k, name in enumerate(rows[index])}
    return rows


# Additions to rows of memory: the transpose of loads. The result is the cotangent of the token, which is no number.

add_row_p = Primitive("add_row")


@add_row_p.def_abstract_eval
def shape_of_addition(row: ShapedArray, *first: ShapedArray, dtype: np.dtype, **_: Any) -> ShapedArray:
    del row, first
    return ShapedArray((), dtype)


def transpose_of_load(cotangent: Any, *args: Any, has_token: bool, **params: Any) -> list[Any]:
    assert has_token
    assert ad.is_undefined_primal(args[-1])
    given = args[:-1]
    return [*[None] * len(given), add_row_p.bind(cotangent, *given, **params)]


ad.primitive_transposes[load_row_p] = transpose_of_load


def add_row_rule(statements: Statements, eqn: JaxprEqn, args: list[Names]) -> Names:
    """Adds up rows at known places in variables of the thread, and others in memory."""
    row, *args = args
    array, factors, count = (eqn.params[name] for name in ("array", "factors", "count"))
    numbers, row = np.broadcast_arrays(*args), np.reshape(row, (-1, count))
    aligned, wide, is_masked = (eqn.params[name] for name in ("function", "wide", "is_masked"))
    for index, values in zip(np.ndindex(numbers[0].shape), row):
        at = [number[index] for number in numbers]
        inside, terms = (at[-1] if is_masked else ""), at[: len(factors)]
        # Rows whose place is known, and is in reach of a few variables, are added to these.
        known = [number.value for number in at if isinstance(number, Number)]
        if len(known) == len(at) and not wide and (not is_masked or known[-1]):
            first = sum(int(number) * factor for number, factor in zip(known, factors))
            places = [(array, first + k) for k in range(count)]
            if len(statements.sums.keys() | places) <= MOST_SUMS:
                for place, value in zip(places, values):
                    name = statements.sums.setdefault(place, f"sum_{len(statements.sums)}")
                    statements.lines.append(f"{name} += {value};")
                continue
        # All others wait for `add_to_memory`.
        place = " + ".join(terms_of(terms, factors, wide))
        statements.additions.append(
            Addition(array, place, str(inside), tuple(values), aligned == "load_aligned_row", wide)
        )
    return literals(0, eqn.params["dtype"])


INDEXING: dict[str, Rule] = {
    "load_row": load_row_rule,
    "add_row": add_row_rule,
    "gather": gather,
    "scatter": scatter,
    **dict.fromkeys(COMBINED, scatter),
}
