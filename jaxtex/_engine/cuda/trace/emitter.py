"""The translation of a function that JAX traces to statements in CUDA C, and to a device function of a kernel.

`jax.make_jaxpr` traces a function of arrays, and every number of every array becomes a scalar variable of a thread. So
shapes exist while tracing only: NumPy broadcasts, reshapes and slices arrays of names, at no cost for the thread.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from jax.typing import ArrayLike, DTypeLike

from ...._jax.branches import where_needed_p
from ...._jax.calls import EXACT, OF_CALLER, called
from ...._jax.instructions import INSTRUCTIONS
from ...._jax.versions import expansion, line_of
from .branches import BRANCHES, where_needed
from .elementwise import C_TYPES, EXPRESSIONS
from .indexing import INDEXING
from .meanings import MEANINGS
from .numbers import NUMBERS, Rule
from .statements import Names, PrimitiveOfCaller, Statements, Typed, UnknownPrimitive, as_array, aval_of, literals
from .unit import UNIT

# Primitives that return their operands. They matter to XLA, to derivatives or to devices, but not to a thread.
IDENTITIES = (
    *("copy", "copy_p", "stage", "stop_gradient", "optimization_barrier", "name", "device_put"),
    *("reshard", "pvary", "pcast", "sharding_constraint", "layout_constraint", "materialized"),
)
# Primitives that are translated as another one: `add_any` is the sum of cotangents.
ALIASES = {"add_any": "add"}
# The rules of primitives that need more than an expression in C.
RULES: dict[str, Rule] = NUMBERS | INDEXING | BRANCHES | UNIT


class Emitter(Statements):
    """The statements of a thread, from functions and jaxprs."""

    def call(self, function: Callable[..., Any], *args: tuple[Names, DTypeLike]) -> Any:
        """Emits the statements of `function`.

        Args:
            args: pairs of an array of expressions and its dtype.

        Returns:
            The result of `function`, with arrays of expressions in place of arrays.

        Raises:
            UnknownPrimitive: if `function` holds a primitive that has no rule.
        """
        results = self.typed_call(function, *args)
        return jax.tree.map(lambda typed: typed.names, results, is_leaf=lambda leaf: isinstance(leaf, Typed))

    def typed_call(self, function: Callable[..., Any], *args: tuple[Names, DTypeLike]) -> Any:
        """`call`, with the dtypes of results: arrays of expressions are `Typed`."""
        avals = [jax.ShapeDtypeStruct(np.shape(names), dtype) for names, dtype in args]
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*avals)
        out = self.run(closed.jaxpr, closed.consts, [np.asarray(names, object) for names, _ in args])
        typed = [Typed(names, leaf.dtype) for names, leaf in zip(out, jax.tree.leaves(shape))]
        return jax.tree.unflatten(jax.tree.structure(shape), typed)

    def run(self, jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[Names]) -> list[Names]:
        """Emits a jaxpr, and returns its results."""
        known = dict(zip(jaxpr.invars, args))
        known |= {var: literals(const) for var, const in zip(jaxpr.constvars, consts)}

        def names(atom: Var | Literal) -> Names:
            return literals(atom.val, aval_of(atom).dtype) if isinstance(atom, Literal) else known[atom]

        for eqn in jaxpr.eqns:
            try:
                out = self.equation(eqn, [names(atom) for atom in eqn.invars])
            except UnknownPrimitive as reason:
                reason.line = reason.line or line_of(eqn)
                raise
            known.update(zip(eqn.outvars, map(as_array, out if isinstance(out, list) else [out])))
        return [names(atom) for atom in jaxpr.outvars]

    def run_of_caller(self, jaxpr: Jaxpr, consts: Sequence[ArrayLike], args: Sequence[Names]) -> list[Names]:
        """`run` for a function of the caller's, which may hold any primitive, and indices out of bounds."""
        before, self.keeps_indices = self.keeps_indices, True
        try:
            return self.run(jaxpr, consts, args)
        except UnknownPrimitive as reason:
            raise PrimitiveOfCaller(str(reason)) from reason
        finally:
            self.keeps_indices = before

    def meaning(self, function: Callable[..., Any], eqn: JaxprEqn, args: list[Names]) -> Names | list[Names]:
        """Emits `function`, the meaning of an equation, for the operands `args`."""
        out = self.call(function, *((names, aval_of(var).dtype) for names, var in zip(args, eqn.invars)))
        return jax.tree.leaves(out) if eqn.primitive.multiple_results else out

    def equation(self, eqn: JaxprEqn, args: list[Names]) -> Names | list[Names]:
        name = ALIASES.get(eqn.primitive.name, eqn.primitive.name)
        # Calls: some have a form of their own by their name; all others are entered.
        body = called(eqn)
        if body is not None:
            expression = INSTRUCTIONS.get(eqn.params.get("name", ""))
            if expression is not None and args:  # operands that JAX knows are constants of the body
                return [self.define_each(aval_of(eqn.outvars[0]).dtype, expression.format, *args)]
            if eqn.params.get("name") == EXACT:
                with self.exactly(True):
                    return self.run(body.jaxpr, body.consts, args)
            run = self.run_of_caller if eqn.params.get("name") == OF_CALLER else self.run
            return run(body.jaxpr, body.consts, args)
        if eqn.primitive is where_needed_p:
            return where_needed(self, eqn, args)
        # Primitives that stand for other ones.
        if name in MEANINGS:
            return self.meaning(functools.partial(MEANINGS[name], **eqn.params), eqn, args)
        expand = expansion(eqn)
        if expand is not None:
            return self.meaning(expand, eqn, args)
        # All others: nothing, a rule, or an expression of each number.
        if name in IDENTITIES:
            return args if eqn.primitive.multiple_results else args[0]
        if name in RULES:
            return RULES[name](self, eqn, args)
        if name in EXPRESSIONS:
            return self.elementwise(name, aval_of(eqn.outvars[0]).dtype, aval_of(eqn.invars[0]).dtype, args)
        raise UnknownPrimitive(f"{name} has no rule")


# Device functions

# An expression in C++, and its dtype.
Scalar = tuple[str, DTypeLike]
# The results of a traced function: numbers, or lists of these for structs.
Results: TypeAlias = "Typed | Sequence[Results]"


def scalar(number: ArrayLike, dtype: DTypeLike | None = None) -> jax.Array:
    """A number of one thread, as an array of shape (1,)."""
    return jnp.broadcast_to(jnp.asarray(number, dtype), (1,))


def names_of(array: str, count: int, dtype: DTypeLike) -> list[Scalar]:
    """The elements of a C++ array."""
    return [(f"{array}[{k}]", np.dtype(dtype)) for k in range(count)]


class DeviceFunctions:
    """The device functions of one kernel, in order."""

    def __init__(self):
        self.emitter, self.texts = Emitter(), list[str]()

    def add(
        self,
        signature: str,
        comment: str,
        function: Callable[..., Any],
        *args: Scalar,
        exact: bool = False,
    ) -> Any:
        """Adds a traced function, and returns the shapes and dtypes of its results.

        Args:
            signature: its return type, name and parameters in C++.
            function: a function of arrays of shape (1,); it returns arrays, or lists of them for structs.
            args: the arguments of `function`, as expressions of the parameters.
            exact: whether sums and products of float32 are rounded separately.
        """
        self.emitter.fresh = (f"v{k}" for k in itertools.count())
        with self.emitter.scope() as lines, self.emitter.exactly(exact):
            out = self.emitter.typed_call(function, *(Typed(np.array([name], object), dtype) for name, dtype in args))
        self.define(signature, comment, [*lines, f"return {returned(out)};"])
        is_leaf = lambda leaf: isinstance(leaf, Typed)
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a.names), a.dtype), out, is_leaf=is_leaf)

    def define(self, signature: str, comment: str, statements: Sequence[str]) -> None:
        """Adds a function whose body is `statements`."""
        body = "".join(f"  {line}\n" for line in statements)
        self.texts.append(f"// {comment}\nDEVICE {signature} {{\n{body}}}\n")

    @property
    def blocks(self) -> list[str]:
        """The texts of the functions, preceded by the tables of constants that they use."""
        tables = "".join(f"{table}\n" for table in self.emitter.tables)
        return [tables, *self.texts] if tables else self.texts


def returned(out: Results) -> str:
    """A C++ expression for the results of a traced function: a number, or an initializer of a row or a struct."""
    if isinstance(out, Typed):
        names = [str(name) for name in np.ravel(out.names)]
        return names[0] if np.ndim(out.names) < 2 else f"{{{', '.join(names)}}}"
    return f"{{{', '.join(map(returned, out))}}}"


def struct_of_numbers(name: str, comment: str, fields: Sequence[Scalar]) -> str:
    """The declaration of a struct of numbers, from their names and dtypes."""
    lines = "".join(f"  {C_TYPES[np.dtype(dtype).name]} {field};\n" for field, dtype in fields)
    return f"// {comment}\nstruct {name} {{\n{lines}}};\n"
