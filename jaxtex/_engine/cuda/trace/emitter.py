"""From a function that JAX traces to the statements of one thread in CUDA C.

A function of arrays is traced by `jax.make_jaxpr`, and each number of each array becomes one scalar of the thread. So
shapes exist while tracing only. NumPy broadcasts, reshapes and slices arrays of names, which costs a thread nothing.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ...._jax.branches import NAME as WHERE_NEEDED
from ...._jax.versions import expansion
from ...compute.instructions import INSTRUCTIONS
from .elementwise import C_TYPES, EXPRESSIONS, ROUNDED, ROUNDINGS, has_conversion, literal

# An array with an expression of C in place of each number: the name of a scalar, or a literal.
Names = np.ndarray
Rule = Callable[["Emitter", Any, list[Names]], Any]
# Calls, of which only the body counts: the parameter that holds it.
CALLS = {
    "jit": "jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",  # the same, in older versions of JAX
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
# Primitives that return their operands, number by number. They matter to the compiler, to derivatives or to devices.
IDENTITIES = (
    *("copy", "copy_p", "stage", "stop_gradient", "optimization_barrier"),
    *("reshard", "pvary", "pcast", "sharding_constraint"),
)
# Other names of primitives: the sum of cotangents.
ALIASES = {"add_any": "add"}
REDUCTIONS = {"reduce_sum": "add", "reduce_max": "max", "reduce_min": "min", "reduce_and": "and", "reduce_or": "or"}


# How the index of a gather may be kept within its table.
MODES_OF_TABLES = (jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS, jax.lax.GatherScatterMode.CLIP)


class UnknownPrimitive(NotImplementedError):
    """A traced function holds a primitive that this module does not translate to C."""


class Number(str):
    """A literal, among expressions."""

    __slots__ = ()


class Typed(NamedTuple):
    """An array of expressions, and its dtype."""

    names: Names
    dtype: Any


class Emitter:
    """The statements of a thread so far.

    Attributes:
        lines: the statements. Each defines a scalar; equal expressions define one.
        exact: whether the next sums and products of float32 are each rounded by themselves. Otherwise the compiler may
            round a product and the sum that it enters once.
        tables: the tables of constants that statements look into, as statements to be put ahead of the kernel.
    """

    def __init__(self):
        self.lines: list[str] = []
        self.defined: dict[tuple[str, str], str] = {}
        self.branches: dict[tuple[Any, ...], list[Names]] = {}
        self.fresh = (f"v{k}" for k in itertools.count())
        self.exact = False
        self.tables: list[str] = []
        self.names_of_tables: dict[tuple[str, str], str] = {}

    @contextlib.contextmanager
    def scope(self) -> Iterator[list[str]]:
        """Collects the statements of a block in the list that it yields. What they define ends with the block."""
        lines, defined, branches = self.lines, dict(self.defined), dict(self.branches)
        self.lines = []
        yield self.lines
        self.lines, self.defined, self.branches = lines, defined, branches

    @contextlib.contextmanager
    def exactly(self, exact: bool) -> Iterator[None]:
        """Sets `exact` for a while."""
        before, self.exact = self.exact, exact
        yield
        self.exact = before

    def call(self, function: Callable[..., Any], *args: tuple[Names, Any]) -> Any:
        """Emits what `function` computes.

        Args:
            args: arrays of expressions, each with its dtype.

        Returns:
            What `function` returns, with expressions in place of numbers.

        Raises:
            UnknownPrimitive: if `function` holds a primitive that has no rule.
        """
        of_each = self.typed_call(function, *args)
        return jax.tree.map(lambda typed: typed.names, of_each, is_leaf=lambda leaf: isinstance(leaf, Typed))

    def typed_call(self, function: Callable[..., Any], *args: tuple[Names, Any]) -> Any:
        """`call`, with the dtypes of the results."""
        avals = [jax.ShapeDtypeStruct(np.shape(names), dtype) for names, dtype in args]
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*avals)
        out = self.run(closed.jaxpr, closed.consts, [np.asarray(names, object) for names, _ in args])
        typed = [Typed(names, leaf.dtype) for names, leaf in zip(out, jax.tree.leaves(shape))]
        return jax.tree.unflatten(jax.tree.structure(shape), typed)

    def run(self, jaxpr: Any, consts: Sequence[Any], args: list[Names]) -> list[Names]:
        """Emits a jaxpr, and returns its results."""
        found = dict(zip(jaxpr.invars, args))
        found |= {var: literals(const) for var, const in zip(jaxpr.constvars, consts)}

        def names(atom: Any) -> Names:
            if isinstance(atom, Literal):
                return literals(np.asarray(atom.val, cast(Any, atom.aval).dtype))
            return found[atom]

        for eqn in jaxpr.eqns:
            out = self.equation(eqn, [names(atom) for atom in eqn.invars])
            found.update(zip(eqn.outvars, map(as_array, out if eqn.primitive.multiple_results else [out])))
        return [names(atom) for atom in jaxpr.outvars]

    def equation(self, eqn: Any, args: list[Names]) -> Any:
        name = ALIASES.get(eqn.primitive.name, eqn.primitive.name)
        if name in CALLS:
            expression = INSTRUCTIONS.get(eqn.params.get("name", ""))
            if expression is not None:
                return [self.define_each(eqn.outvars[0].aval.dtype, expression.format, *args)]
            body = eqn.params[CALLS[name]]
            if eqn.params.get("name") == WHERE_NEEDED:
                return self.branch(body, args)
            return self.run(getattr(body, "jaxpr", body), getattr(body, "consts", ()), args)
        expand = expansion(eqn)
        if expand is not None:
            return jax.tree.leaves(self.call(expand, *((a, var.aval.dtype) for a, var in zip(args, eqn.invars))))
        if name in IDENTITIES:
            return args if eqn.primitive.multiple_results else args[0]
        if name in RULES:
            return RULES[name](self, eqn, args)
        if name in EXPRESSIONS:
            return self.each(name, eqn.outvars[0].aval.dtype, eqn.invars[0].aval.dtype, args)
        raise UnknownPrimitive(f"{name} has no rule: {eqn}")

    def branch(self, body: Any, args: list[Names]) -> list[Names]:
        """The results of `where_needed`: a branch, taken if any number needs it. Equal ones are computed once."""
        key = body, *((names.shape, *names.flat) for names in args)
        if key not in self.branches:
            condition, count = " || ".join(dict.fromkeys(args[0].flat)), len(body.jaxpr.outvars)
            with self.scope() as lines:
                needed = self.run(body.jaxpr, body.consts, args)
            self.branches[key] = []
            for var, names, other in zip(body.jaxpr.outvars, needed, args[-count:]):
                result = of_each(lambda _: next(self.fresh), [names])
                for name, number, otherwise in zip(result.flat, names.flat, np.broadcast_to(other, names.shape).flat):
                    self.lines.append(f"{C_TYPES[var.aval.dtype.name]} {name} = {otherwise};")
                    lines.append(f"{name} = {number};")
                self.branches[key].append(result)
            self.lines += [f"if ({condition}) {{", *lines, "}"]
        return self.branches[key]

    def define(self, dtype: Any, expression: str) -> str:
        """The name of a scalar with this value."""
        return self.define_typed(C_TYPES[np.dtype(dtype).name], expression)

    def define_typed(self, c_type: str, expression: str) -> str:
        """The name of a constant of a type of C."""
        if (c_type, expression) not in self.defined:
            name = next(self.fresh)
            self.lines.append(f"const {c_type} {name} = {expression};")
            self.defined[c_type, expression] = name
        return self.defined[c_type, expression]

    def define_table(self, dtype: Any, numbers: Sequence[Number]) -> str:
        """The name of a table of constants; equal tables are one."""
        c_type, text = C_TYPES[np.dtype(dtype).name], ", ".join(numbers)
        if (c_type, text) not in self.names_of_tables:
            name = f"table_{len(self.tables)}"
            self.tables.append(f"TABLE {c_type} {name}[{len(numbers)}] = {{{text}}};")
            self.names_of_tables[c_type, text] = name
        return self.names_of_tables[c_type, text]

    def define_each(self, dtype: Any, make: Callable[..., str], *args: Names) -> Names:
        """An array of scalars, each of the expression that `make` makes of one number of each of `args`."""
        return of_each(lambda *numbers: self.define(dtype, make(*numbers)), args)

    def each(self, name: str, dtype: Any, operand: Any, args: Sequence[Names]) -> Names:
        """An elementwise primitive, with results of `dtype` and operands of dtype `operand`."""
        expression = EXPRESSIONS[name].of(operand)
        if expression is None:
            raise UnknownPrimitive(f"{name} of {np.dtype(operand).name} has no expression")
        if self.exact and operand == np.float32:
            expression = ROUNDED.get(name, expression)
        neutral = NEUTRAL[name](operand) if name in NEUTRAL else None

        def one(*numbers: str) -> str:
            if neutral in numbers:
                first, second = numbers
                return second if first == neutral else first
            return self.define(dtype, expression.format(*numbers))

        return of_each(one, args)


def of_each(function: Callable[..., str], args: Sequence[Names]) -> Names:
    """`function` of one number of each of `args`, which broadcast."""
    return as_array(np.frompyfunc(function, len(args), 1)(*map(as_array, args)))


def as_array(names: Any) -> Names:
    """An array of names, also of the one name that NumPy makes of an array without axes."""
    return np.asarray(names, object)


def literals(value: np.ndarray) -> Names:
    """The numbers of an array as literals."""
    value = np.asarray(value)
    found = np.empty(value.shape, object)
    for index, number in np.ndenumerate(value):
        found[index] = Number(literal(number, value.dtype))
    return found


def integer_literal(number: int, dtype: Any) -> str | None:
    return literal(number, dtype) if jnp.issubdtype(dtype, jnp.integer) else None


# A literal that leaves the other operand as it is: not zero for floats, as -0 + 0 is 0.
NEUTRAL = {"add": functools.partial(integer_literal, 0), "mul": lambda dtype: literal(1, dtype)}


# Rules that are no expression of their operands alone


def convert(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if source == target:
        return args[0]
    if jnp.issubdtype(target, jnp.bool):
        return emitter.define_each(bool, lambda a: f"{a} != 0", *args)
    if not has_conversion(source, target):
        raise UnknownPrimitive(f"a conversion of {source.name} to {target.name} has no expression")
    of, to = C_TYPES[source.name], C_TYPES[target.name]
    return emitter.define_each(target, lambda a: f"converted<{to}, {of}>({a})", *args)


def bitcast(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if source.itemsize != target.itemsize:
        raise UnknownPrimitive(f"the bits of {source.name} as {target.name} are of another size")
    return emitter.define_each(target, lambda a: f"bits_as<{C_TYPES[target.name]}>({a})", *args)


def select(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    which, *cases = args
    if eqn.invars[0].aval.dtype != bool:
        raise UnknownPrimitive("select_n has a rule for two cases only")
    return emitter.define_each(eqn.outvars[0].aval.dtype, lambda w, no, yes: f"{w} ? {yes} : {no}", which, *cases)


def integer_pow(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    """By squares, as XLA does it."""
    dtype, exponent = eqn.outvars[0].aval.dtype, eqn.params["y"]
    times = lambda a, b: emitter.each("mul", dtype, dtype, (a, b))
    square, power = args[0], literals(np.ones(args[0].shape, dtype))
    remaining = abs(exponent)
    while remaining:
        power = times(power, square) if remaining & 1 else power
        remaining >>= 1
        square = times(square, square) if remaining else square
    return power if exponent >= 0 else emitter.each("div", dtype, dtype, (literals(np.ones((), dtype)), power))


def rounded(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    return emitter.define_each(eqn.outvars[0].aval.dtype, ROUNDINGS[eqn.params["rounding_method"]].format, *args)


def reduce(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    (numbers,), axes, aval = args, eqn.params["axes"], eqn.outvars[0].aval
    parts = np.moveaxis(numbers, axes, range(len(axes))).reshape(-1, *aval.shape)
    name = REDUCTIONS[eqn.primitive.name]
    if name == "add":  # from 0, which matters to -0
        parts = [literals(np.zeros(aval.shape, aval.dtype)), *parts]
    return functools.reduce(lambda a, b: emitter.each(name, aval.dtype, aval.dtype, (a, b)), parts)


def load_row(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    array, factors, count, aligned = (eqn.params[name] for name in ("array", "factors", "count", "aligned"))
    c_type, function = C_TYPES[eqn.params["dtype"].name], "load_aligned_row" if aligned else "load_row"
    numbers = np.broadcast_arrays(*args)
    rows = np.empty((*numbers[0].shape, count), object)
    for index in np.ndindex(numbers[0].shape):
        terms = (f"(int64){number[index]} * {factor}ll" for number, factor in zip(numbers, factors))
        first = f"{numbers[0][index]}" if factors == (1,) else f"({' + '.join(terms)})"
        row = emitter.define_typed(f"Row<{c_type}, {count}>", f"{function}<{count}>({array} + {first})")
        rows[index] = [f"{row}.v[{k}]" for k in range(count)]
    return rows


def gather(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    """An element of a table of constants for each index."""
    (table, indices), params, out = args, eqn.params, eqn.outvars[0].aval
    one_axis = table.size == len(table) and params["dimension_numbers"].start_index_map == (0,)
    constant = all(isinstance(number, Number) for number in table.flat)
    if not (one_axis and constant and params["mode"] in MODES_OF_TABLES and set(params["slice_sizes"]) == {1}):
        raise UnknownPrimitive(f"gather has a rule for tables of constants only: {eqn}")
    dtype, last, of_index = out.dtype, str(len(table) - 1), eqn.invars[1].aval.dtype
    if of_index != np.int32:
        raise UnknownPrimitive(f"a table is not indexed by {of_index.name}")
    name = emitter.define_table(dtype, table.ravel().tolist())
    clamped = params["mode"] is jax.lax.GatherScatterMode.CLIP
    index = "minimum(maximum({}, 0), " + last + ")" if clamped else "{}"
    return emitter.define_each(dtype, lambda i: f"element_of({name}, {index.format(i)})", indices.reshape(out.shape))


def broadcast(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    del emitter
    shape, sizes = eqn.params["shape"], [1] * len(eqn.params["shape"])
    for size, axis in zip(args[0].shape, eqn.params["broadcast_dimensions"]):
        sizes[axis] = size
    return np.broadcast_to(args[0].reshape(sizes), shape)


def iota(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    del emitter, args
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    numbers = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return literals(np.broadcast_to(numbers, shape).astype(eqn.params["dtype"]))


def sliced(emitter: Emitter, eqn: Any, args: list[Names]) -> Names:
    del emitter
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    return args[0][tuple(map(slice, starts, limits, eqn.params["strides"] or [None] * len(starts)))]


def structural(function: Callable[[list[Names], dict[str, Any], Any], Any]) -> Rule:
    """A rule that moves names about, from a function of names, parameters and the first result's shape and dtype."""
    return lambda emitter, eqn, args: function(args, eqn.params, eqn.outvars[0].aval)


RULES: dict[str, Rule] = {
    "convert_element_type": convert,
    "bitcast_convert_type": bitcast,
    "select_n": select,
    "integer_pow": integer_pow,
    "round": rounded,
    "load_row": load_row,
    "gather": gather,
    "broadcast_in_dim": broadcast,
    "iota": iota,
    "slice": sliced,
    "reshape": structural(lambda args, params, out: args[0].reshape(out.shape)),
    "squeeze": structural(lambda args, params, out: args[0].reshape(out.shape)),
    "transpose": structural(lambda args, params, out: np.transpose(args[0], params["permutation"])),
    "rev": structural(lambda args, params, out: np.flip(args[0], params["dimensions"])),
    "stack": structural(lambda args, params, out: np.stack(args, params["axis"])),
    "concatenate": structural(lambda args, params, out: np.concatenate(args, params["dimension"])),
    "split": structural(lambda args, params, out: np.split(args[0], np.cumsum(params["sizes"])[:-1], params["axis"])),
    **dict.fromkeys(REDUCTIONS, reduce),
}
