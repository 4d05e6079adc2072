"""A function of one sample that JAX has traced, as a static value: programs of equal equations are equal."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxpr_as_fun, jaxprs_in_params
from jax.interpreters import partial_eval as pe
from jax.sharding import AxisType

from ..._jax.calls import called
from ..._jax.shapes import is_symbolic
from ..._jax.versions import NO_MESH, context_of_now, without_mesh

# The largest number of elements of an array that a thread computes with. Larger ones are whole arrays in memory.
MOST_NUMBERS = 256
# Constants of more numbers are operands of a program; smaller ones are written in it.
MOST_CONSTANTS = 64
# Primitives that exchange numbers between devices or examples.
COLLECTIVES = frozenset(
    (
        *("psum", "psum2", "psum_invariant", "pmax", "pmin", "ppermute", "all_gather", "all_gather_invariant"),
        *("all_to_all", "psum_scatter", "reduce_scatter", "ragged_all_to_all", "axis_index", "pbroadcast"),
    )
)
# Primitives that read an array at computed places, or look at it in another way, and copy nothing.
LOOKS = frozenset(("slice", "squeeze", "reshape", "transpose", "broadcast_in_dim", "rev", "dynamic_slice", "gather"))
READS = frozenset(
    (
        *("texture_read", "texture_unit_read", "texture_pushforward", "texture_pullback", "texture_read_derivatives"),
        *("texture_fold", "texture_fold_pushforward", "concatenated_read", "straight_through", "unit_read"),
    )
)
# Primitives that run programs of their own.
CONTROL = frozenset(("scan", "while", "cond", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"))


class Program:
    """A traced function of one sample.

    Attributes:
        closed: its equations; constants are small arrays of NumPy.
        key: what decides whether two programs are equal.
    """

    def __init__(self, closed: ClosedJaxpr):
        self.closed = closed
        self.key = key_of(closed)
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and (self is other or self.key == other.key)

    def __repr__(self) -> str:
        return f"Program({self._hash:x})"

    @property
    def arguments(self) -> list[ShapedArray]:
        """The types of its arguments for one sample."""
        return self.closed.in_avals

    @property
    def results(self) -> list[ShapedArray]:
        """The types of its results for one sample."""
        return self.closed.out_avals

    def __call__(self, *args: jax.Array) -> list[jax.Array]:
        return list(jaxpr_as_fun(self.closed)(*args))

    @property
    def moving(self) -> tuple[int, ...]:
        """The results that have derivatives: floating and complex numbers."""
        return tuple(k for k, a in enumerate(self.results) if jnp.issubdtype(a.dtype, jnp.inexact))

    def tangent(self, wrt: tuple[int, ...]) -> "Program":
        """The derivative: arguments, then a tangent of each in `wrt`; the results are the tangents of `moving`."""
        return tangent_of(self, wrt)

    def holds(self, name: str) -> bool:
        """Whether an equation of the program, or of a program in it, is of the primitive `name`."""
        return any(eqn.primitive.name == name for eqn in equations(self.closed.jaxpr))

    def with_results(self, which: tuple[int, ...]) -> "Program":
        """The program with some of its results."""
        return self if which == tuple(range(len(self.results))) else some_results(self, which)


@functools.lru_cache(maxsize=1024)
def tangent_of(program: Program, wrt: tuple[int, ...]) -> Program:
    moving = program.moving

    # The tangents of the results that move, from operands and tangents of some of them.
    def derivative(*args: jax.Array) -> list[jax.Array]:
        primals, tangents = args[: len(program.arguments)], args[len(program.arguments) :]

        def of_some(*some: jax.Array) -> list[jax.Array]:
            given = dict(zip(wrt, some))
            results = program(*(given.get(k, a) for k, a in enumerate(primals)))
            return [results[k] for k in moving]

        return jax.jvp(of_some, tuple(primals[k] for k in wrt), tangents)[1]

    given = program.arguments
    return traced(derivative, (*given, *(given[k] for k in wrt)))


@functools.lru_cache(maxsize=1024)
def some_results(program: Program, which: tuple[int, ...]) -> Program:
    run = lambda *args: [program(*args)[k] for k in which]
    return traced(run, program.arguments)


def traced(function: Callable[..., Any], avals: Sequence[Any]) -> Program:
    """A function as a program, without what its results do not need."""
    with jax.sharding.use_abstract_mesh(NO_MESH):
        closed = jax.make_jaxpr(function)(*map(struct, avals))
    jaxpr, _ = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), True)
    return Program(ClosedJaxpr(jaxpr, closed.consts))


def struct(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


# Equality


def key_of(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """A key that is equal for programs of the same equations: variables count by their order alone.

    Functions in the parameters of an equation count by identity; the key keeps them.
    """
    return *key_of_equations(closed.jaxpr), *map(key_of_constant, closed.consts)


def key_of_equations(jaxpr: Jaxpr) -> tuple[Any, ...]:
    numbers: dict[Var, int] = {}

    def new(var: Var) -> tuple[Any, ...]:
        aval: Any = var.aval
        numbers[var] = len(numbers)
        return getattr(aval, "shape", ()), str(getattr(aval, "dtype", aval)), getattr(aval, "weak_type", False)

    def old(atom: Var | Literal) -> Any:
        return key_of_constant(atom.val) if isinstance(atom, Literal) else numbers[atom]

    # A variable's number is its place in the order in which variables appear.
    given = tuple(map(new, (*jaxpr.constvars, *jaxpr.invars)))
    equations = [
        (e.primitive, tuple(map(old, e.invars)), key_of_parameter(e.params), tuple(map(new, e.outvars)))
        for e in jaxpr.eqns
    ]
    return given, tuple(equations), tuple(map(old, jaxpr.outvars))


def key_of_constant(value: Any) -> tuple[Any, ...]:
    array = np.asarray(value)
    return array.shape, str(array.dtype), array.tobytes()


def key_of_parameter(value: Any) -> Any:
    """A hashable stand-in for a parameter of an equation."""
    if isinstance(value, ClosedJaxpr):
        return key_of(value)
    if isinstance(value, Jaxpr):
        return key_of_equations(value)
    if isinstance(value, dict):
        return tuple((str(name), key_of_parameter(value[name])) for name in sorted(value, key=str))
    if isinstance(value, tuple | list):
        return type(value), tuple(map(key_of_parameter, value))
    if isinstance(value, np.ndarray):
        return key_of_constant(value)
    try:
        hash(value)
    except TypeError:
        return id(value), Kept(value)
    return value


class Kept:
    """A value that has no hash, kept alive and compared by identity."""

    def __init__(self, value: Any):
        self.value = value


# Tracing


class Traced(NamedTuple):
    """A function of one sample, traced for some arguments.

    Attributes:
        program: the part that runs for each sample.
        operands: its arguments: arrays that are passed, closed over, or computed from these beforehand.
        results: the place of each result: the number of a result of the program, or an array.
        tree: the structure of the results.
    """

    program: Program | None
    operands: list[jax.Array]
    results: list[Any]
    tree: Any


def trace(function: Callable[..., Any], args: Sequence[jax.Array]) -> Traced:
    """Traces ``function(*args)`` for one sample.

    Operations on whole large arrays, other than reads and looks at a part, are carried out here, once for all samples.

    Raises:
        TypeError: if the function has side effects, or exchanges numbers between devices.
    """
    # A program knows of no mesh: its operands are arrays of one device, or of the part of one. In `jax.shard_map`, what
    # a function closes over has a mesh, until the program is traced.
    mesh = jax.sharding.get_abstract_mesh()
    with jax.sharding.use_abstract_mesh(NO_MESH if AxisType.Explicit in mesh.axis_types else mesh):
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*map(struct, args))
    tree = jax.tree.structure(shape)
    # A program of a thread can do nothing but compute.
    check(closed)
    jaxpr = without_mesh(closed.jaxpr)
    with jax.sharding.use_abstract_mesh(NO_MESH):
        # Calls of large arrays give way to their equations, so that each may be carried out beforehand.
        if any(calls_of_large(eqn) for eqn in jaxpr.eqns):
            inline = lambda *args: run_inline(jaxpr, args[: len(jaxpr.constvars)], args[len(jaxpr.constvars) :])
            inlined = jax.make_jaxpr(inline)(*(struct(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)))
            jaxpr, consts = inlined.jaxpr, inlined.consts
        else:
            consts = []
    return split(jaxpr, [*consts, *closed.consts, *args], tree)


def check(closed: ClosedJaxpr) -> None:
    """Refuses side effects and collectives."""
    for eqn in equations(closed.jaxpr):
        if eqn.primitive.name in COLLECTIVES:
            raise TypeError(
                f"a function of one sample does not exchange numbers between devices, but this one calls "
                f"jax.lax.{eqn.primitive.name}. Call it on the result of fused_vmap, or use jax.vmap."
            )
    if closed.effects:
        names = ", ".join(sorted(str(effect) for effect in closed.effects))
        raise TypeError(
            f"a function of one sample has no side effects, but this one has: {names}. Call jax.debug.print, callbacks "
            "and checks outside of it, read surfaces with boundary_mode='zero' or 'clamp', or use jax.vmap."
        )


def equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """All equations of a program and of the programs in it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from equations(inner)


def is_large(aval: Any) -> bool:
    return is_symbolic(aval.shape) or int(np.prod(aval.shape)) > MOST_NUMBERS


def calls_of_large(eqn: JaxprEqn) -> bool:
    """Whether an equation only calls a program, with a large array."""
    return eqn.primitive.name in ("jit", "closed_call") and touches_large(eqn)


def touches_large(eqn: JaxprEqn) -> bool:
    return any(is_large(v.aval) for v in (*eqn.invars, *eqn.outvars))


def run_inline(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Runs a program, with the equations of calls of large arrays in place of the calls."""

    def one(eqn: JaxprEqn, given: list[Any]) -> Sequence[Any]:
        if calls_of_large(eqn):
            body = called(eqn)
            assert body is not None
            return run_inline(body.jaxpr, body.consts, given)
        return bound(eqn, given, jaxpr)

    return run_equations(jaxpr, consts, args, one)


def run_equations(
    jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], one: Callable[[JaxprEqn, list[Any]], Sequence[Any]]
) -> list[Any]:
    """The results of a program whose equations ``one(eqn, operands)`` computes."""
    known: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    value = lambda atom: atom.val if isinstance(atom, Literal) else known[atom]
    for eqn in jaxpr.eqns:
        known.update(zip(eqn.outvars, one(eqn, [value(v) for v in eqn.invars])))
    return [value(v) for v in jaxpr.outvars]


def bound(eqn: JaxprEqn, args: Sequence[Any], within: Jaxpr) -> Sequence[Any]:
    """The results of an equation of a program, in its own context, such as its mesh."""
    given = {v: a for v, a in zip(eqn.invars, args) if not isinstance(v, Literal)}
    variables = [*given]
    one = within.replace(constvars=[], invars=variables, outvars=eqn.outvars, eqns=[eqn], effects=eqn.effects)
    return jaxpr_as_fun(ClosedJaxpr(one, ()))(*given.values())


def split(jaxpr: Jaxpr, args: Sequence[Any], tree: Any) -> Traced:
    """Carries out what is computed once, and returns the rest as a program.

    Args:
        args: the constants and the arguments of `jaxpr`.
    """
    # What is the same for all samples is computed here, in the context of the caller.
    beforehand = computed_beforehand(jaxpr)
    known: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
    value = lambda atom: atom.val if isinstance(atom, Literal) else known[atom]
    now = context_of_now() if beforehand else None
    for k in sorted(beforehand):
        eqn = jaxpr.eqns[k].replace(ctx=now)
        known.update(zip(eqn.outvars, bound(eqn, [value(v) for v in eqn.invars], jaxpr)))
    # What the rest needs of what is known becomes an operand, except for small constants.
    rest = [eqn for k, eqn in enumerate(jaxpr.eqns) if k not in beforehand]
    kept = [k for k, v in enumerate(jaxpr.outvars) if not isinstance(v, Literal) and v not in known]
    needed = dict.fromkeys(v for eqn in rest for v in eqn.invars if not isinstance(v, Literal) and v in known)
    constant = {v for v in needed if isinstance(known[v], np.ndarray | np.generic) and known[v].size <= MOST_CONSTANTS}
    given = [v for v in needed if v not in constant]
    results: list[Any] = [kept.index(k) if k in kept else jnp.asarray(value(v)) for k, v in enumerate(jaxpr.outvars)]
    if not kept:
        return Traced(None, [], results, tree)

    outvars, constants = [jaxpr.outvars[k] for k in kept], [v for v in needed if v in constant]
    own = jaxpr.replace(constvars=constants, invars=given, outvars=outvars, eqns=rest)
    run = jaxpr_as_fun(ClosedJaxpr(own, [known[v] for v in constants]))
    # Keys of random numbers are passed by their bits.
    keys = {k: jax.random.key_impl(known[v]) for k, v in enumerate(given) if is_key(v.aval)}
    wrap = lambda k, a: jax.random.wrap_key_data(a, impl=keys[k]) if k in keys else a
    bits = [jax.eval_shape(jax.random.key_data, v.aval) if is_key(v.aval) else v.aval for v in given]
    program = traced(lambda *args: run(*map(wrap, range(len(args)), args)), bits)
    operands = [jax.random.key_data(known[v]) if is_key(v.aval) else jnp.asarray(known[v]) for v in given]
    return Traced(program, operands, results, tree)


def is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def computed_beforehand(jaxpr: Jaxpr) -> set[int]:
    """The numbers of the equations that compute with whole large arrays, and of those on which they depend."""
    made_by = {var: k for k, eqn in enumerate(jaxpr.eqns) for var in eqn.outvars}
    found = set[int]()

    # With an equation come those that it depends on.
    def add(k: int) -> None:
        if k not in found:
            found.add(k)
            for var in jaxpr.eqns[k].invars:
                if not isinstance(var, Literal) and var in made_by:
                    add(made_by[var])

    for k, eqn in enumerate(jaxpr.eqns):
        if touches_large(eqn) and not runs_in_thread(eqn):
            add(k)
    for var in jaxpr.outvars:  # a thread returns numbers, and copies no array
        if not isinstance(var, Literal) and var in made_by and is_look(jaxpr.eqns[made_by[var]]) and is_large(var.aval):
            add(made_by[var])
    return found


def is_look(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name in LOOKS


def runs_in_thread(eqn: JaxprEqn) -> bool:
    """Whether a thread can carry out an equation of large arrays: it reads them, and makes none."""
    name = eqn.primitive.name
    if name in LOOKS:
        return is_large(eqn.invars[0].aval) or name == "gather"
    makes_large = any(is_large(v.aval) for v in eqn.outvars)
    return name in READS | CONTROL and not makes_large
