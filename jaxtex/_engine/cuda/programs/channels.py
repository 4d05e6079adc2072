"""Channels that do not mix, as one more axis of the grid: adjacent threads compute adjacent channels of a sample.

A thread that computes all channels of a long row keeps hundreds of numbers, and the rows that the threads of a warp
load lie far apart. If a program returns rows, of which each channel depends on that channel of other rows alone, it is
the same program of shorter rows, mapped over one more axis. What it computes once for all channels, such as
coordinates, each of these threads computes.

What has channels is found from the results backward: every variable either has them, along one axis, or is whole. A
program in which they mix, by a sum over channels for instance, stays as it is.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params

from ...._jax.calls import called
from ...._jax.versions import sizes_of_scan
from ...._tables.storage_formats import Decoding
from ...describe.program import LOOKS, READS, Program, bound, run_equations, traced
from ...describe.spec import ReadSpec
from ...describe.storage import PUSHFORWARD, READ, WHOLE, Content
from ..build.launch import LANES
from ..trace.elementwise import EXPRESSIONS
from ..trace.statements import aval_of

# About how many operations the coordinates and the weights of a read cost each thread; a read of a channel costs eight.
READ_COST, CHANNEL_COST = 60, 8
# Each part repeats what is computed once for a sample. All of these repetitions may be at most this many times the
# operations of the channels: a thread that loads whole rows waits longer than that.
MOST_REPEATED = 4
# The turns of a loop whose length is not known.
USUAL_TURNS = 8

# The axis of a variable that holds the channels; `None` for a variable that is whole.
Axis = int | None
# In place of an axis: nothing is known to need the variable.
UNNEEDED = -1
# The operands of an equation that has channels: the axis of each, and a function of narrow operands to its results.
Narrowed = tuple[Sequence[Axis], Callable[[list[Any]], Sequence[Any]]]


class ChannelsMix(Exception):
    """A channel of a result depends on several channels of an operand, or may."""


class Divided(NamedTuple):
    """A program of a part of the channels.

    Attributes:
        program: the program; `constants` are its last arguments.
        count: the number of parts.
        axes, result_axes: the axis of each argument and result of one sample that holds the channels.
        constants: arrays that have channels, whole.
    """

    program: Program
    count: int
    axes: tuple[Axis, ...]
    result_axes: tuple[int, ...]
    constants: tuple[np.ndarray, ...]

    def with_constants(
        self, given: Sequence[tuple[jax.Array, tuple[int, ...]]], rank: int
    ) -> list[tuple[jax.Array, tuple[int, ...]]]:
        """Arrays of a grid of `rank` axes, with the places of these, and the constants, which all samples share."""
        shared = tuple(range(rank))
        return [*given, *((jnp.asarray(a).reshape(*[1] * rank, *a.shape), shared) for a in self.constants)]


def counts_of_parts(channels: int, least: int) -> list[int]:
    """Into how many parts of a multiple of `least` channels these can be divided, most parts first.

    The threads of a sample lie in one warp, in a group of a power of two of lanes, of which a quarter at most is idle.
    """
    possible = range(min(LANES, channels // least), 1, -1)
    return [n for n in possible if channels % (n * least) == 0 and 4 * n >= 3 * lanes_for(n)]


def lanes_for(count: int) -> int:
    """The least power of two of lanes for so many threads."""
    return 1 << (count - 1).bit_length()


@functools.lru_cache(maxsize=1024)
def divided(program: Program, least: int) -> Divided | None:
    """The program of a part of the channels; `None` if channels are few or mix, or most of the work is not theirs.

    Args:
        least: a thread computes a multiple of so many channels.
    """
    results, closed = program.results, program.closed
    channels = {a.shape[-1] if a.ndim else 0 for a in results}
    result_axes = tuple(a.ndim - 1 for a in results)
    for count in counts_of_parts(max(channels), least) if len(channels) == 1 else ():
        plan = Plan(max(channels), max(channels) // count)
        try:
            plan.find(closed.jaxpr, result_axes)
        except ChannelsMix:
            return None
        if (count - 1) * plan.whole_cost <= MOST_REPEATED * plan.channel_cost:
            return of_plan(plan, count, program, result_axes)
    return None


def of_plan(plan: "Plan", count: int, program: Program, result_axes: tuple[int, ...]) -> Divided:
    """The program of a part of the channels, by what is known of its variables."""
    closed = program.closed
    # Arrays that the program closes over and that have channels become operands.
    axes = tuple(plan.axes.get(v) for v in closed.jaxpr.invars)
    with_channels = [k for k, v in enumerate(closed.jaxpr.constvars) if plan.axes.get(v) is not None]
    constants = tuple(np.asarray(closed.consts[k]) for k in with_channels)
    axes += tuple(plan.axes[closed.jaxpr.constvars[k]] for k in with_channels)

    # The program of one part, traced for narrow arrays.
    def function(*args: jax.Array) -> list[Any]:
        known = dict(zip(with_channels, args[len(program.arguments) :]))
        consts = [known.get(k, const) for k, const in enumerate(closed.consts)]
        return plan.run(closed.jaxpr, consts, args[: len(program.arguments)])

    avals = [*program.arguments, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in constants)]
    narrow = [jax.ShapeDtypeStruct(plan.narrow(a.shape, axis), a.dtype) for a, axis in zip(avals, axes)]
    return Divided(traced(function, narrow), count, axes, result_axes, constants)


class Plan:
    """Which variables of a program have channels, and its equations of fewer of them.

    Attributes:
        size, width: the number of channels, and that of a part.
        axes: the axis of each variable.
        runs: for each equation with channels, the function of its narrow operands.
        whole_cost, channel_cost: about how many operations all parts repeat, and how many they divide.
        turns: how often the program in which it looks now is carried out.
    """

    def __init__(self, size: int, width: int):
        self.size, self.width = size, width
        self.axes: dict[Var, Axis] = {}
        self.runs: dict[int, Callable[[list[Any]], Sequence[Any]]] = {}
        self.whole_cost = self.channel_cost = 0
        self.turns = 1

    def narrow(self, shape: Sequence[int], axis: Axis) -> tuple[int, ...]:
        """The shape of an array of one part."""
        return tuple(self.width if k == axis else n for k, n in enumerate(shape))

    def find(self, jaxpr: Jaxpr, axes: Sequence[Axis]) -> None:
        """Finds the axes of all variables from those of the results, the last equation first.

        Raises:
            ChannelsMix: if channels mix.
        """
        for atom, axis in zip(jaxpr.outvars, axes):
            self.needs(atom, axis)
        # An equation that no result needs is left out.
        for eqn in reversed(jaxpr.eqns):
            out = [self.axes.get(v, UNNEEDED) for v in eqn.outvars]
            if {*out} == {UNNEEDED}:
                continue
            # One whose results have no channels is repeated by every part; any other is narrowed.
            if {*out} <= {UNNEEDED, None}:
                given: Sequence[Axis] = [None] * len(eqn.invars)
                self.whole_cost += self.turns * cost_of(eqn)
            else:
                given, self.runs[id(eqn)] = self.rule(eqn, [None if axis == UNNEEDED else axis for axis in out])
                self.channel_cost += self.turns * size_of(eqn)
            for atom, axis in zip(eqn.invars, given, strict=True):
                self.needs(atom, axis)

    def needs(self, atom: Var | Literal, axis: Axis) -> None:
        """Notes that a variable has channels along an axis, or is needed whole."""
        if axis == UNNEEDED:
            return
        shape = getattr(atom.aval, "shape", ())
        if axis is not None and (isinstance(atom, Literal) or shape[axis] != self.size):
            raise ChannelsMix
        if not isinstance(atom, Literal) and self.axes.setdefault(atom, axis) != axis:
            raise ChannelsMix

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The results of a program of one part."""

        def one(eqn: JaxprEqn, args: list[Any]) -> Sequence[Any]:
            if all(v not in self.axes for v in eqn.outvars):  # not needed
                return [None] * len(eqn.outvars)
            narrowed = self.runs.get(id(eqn))
            return bound(eqn, args, jaxpr) if narrowed is None else narrowed(args)

        return run_equations(jaxpr, consts, args, one)

    def rule(self, eqn: JaxprEqn, out: Sequence[Axis]) -> Narrowed:
        """An equation of one part, for results of which some have channels."""
        name = eqn.primitive.name
        # Number by number: operands have channels where the results do.
        if name in ELEMENTWISE:
            (axis,) = set(out)
            of_operand = lambda v: axis if getattr(v.aval, "shape", ()) else None
            return [of_operand(v) for v in eqn.invars], self.with_params(eqn)
        # Calls and loops: the rule of each equation in them.
        body = called(eqn)
        if body is not None:
            return self.call(eqn, body, out)
        if name in BODIES:
            return BODIES[name](self, eqn, out)
        # Equations of one result, with a rule for its axis of channels.
        axis = out[0]
        if name not in RULES or axis is None or len(out) > 1:
            raise ChannelsMix
        return RULES[name](self, eqn, axis)

    def with_params(self, eqn: JaxprEqn, **changes: Any) -> Callable[[list[Any]], Sequence[Any]]:
        """An equation with other parameters."""

        def run(args: list[Any]) -> Sequence[Any]:
            found = eqn.primitive.bind(*args, **{**eqn.params, **changes})
            return found if eqn.primitive.multiple_results else [found]

        return run

    def body(self, closed: ClosedJaxpr, out: Sequence[Axis]) -> list[Axis]:
        """The axes of the arguments of a program in this one; those it does not need are whole."""
        self.find(closed.jaxpr, out)
        if any(self.axes.get(v) is not None for v in closed.jaxpr.constvars):
            raise ChannelsMix
        return [self.axes.get(v) for v in closed.jaxpr.invars]

    def call(self, eqn: JaxprEqn, body: ClosedJaxpr, out: Sequence[Axis]) -> Narrowed:
        given = self.body(body, out)
        function = lambda *args: self.run(body.jaxpr, body.consts, args)
        if eqn.primitive.name in ("checkpoint", "remat2"):
            function = jax.checkpoint(function)
        elif eqn.primitive.name != "jit" and not eqn.primitive.name.startswith("custom_"):
            raise ChannelsMix
        return given, lambda args: function(*args)

    def loop(
        self, eqn: JaxprEqn, body: ClosedJaxpr, rows: Sequence[Axis], before: int
    ) -> tuple[list[Axis], list[Axis]]:
        """The axes of all arguments of the body of a loop, and of what it carries.

        Args:
            rows: the axes of further results of a turn.
            before: the number of arguments before what is carried.
        """
        count = len(body.jaxpr.outvars) - len(rows)
        state: list[Axis] = [self.axes.get(v, UNNEEDED) for v in eqn.outvars[:count]]
        own = body.jaxpr.invars[before : before + count]
        # A turn begins with what the turn before it ends with.
        while True:
            trial = Plan(self.size, self.width)
            trial.find(body.jaxpr, [*state, *rows])
            found = [trial.axes.get(v, UNNEEDED) for v in own]
            if any(UNNEEDED not in (a, b) and a != b for a, b in zip(found, state)):
                raise ChannelsMix
            if all(b == UNNEEDED or a != UNNEEDED for a, b in zip(state, found)):
                break
            state = [b if a == UNNEEDED else a for a, b in zip(state, found)]
        state = [None if axis == UNNEEDED else axis for axis in state]
        before_turns, self.turns = self.turns, self.turns * eqn.params.get("length", USUAL_TURNS)
        given = self.body(body, [*state, *rows])
        self.turns = before_turns
        for v, axis in zip(own, state):
            self.needs(v, axis)
        given[before : before + count] = state
        return given, state


def size_of(eqn: JaxprEqn) -> int:
    """The number of numbers of an equation's results."""
    return sum(math.prod(getattr(v.aval, "shape", ())) for v in eqn.outvars)


def cost_of(eqn: JaxprEqn) -> int:
    """About how many operations an equation takes; looks at arrays and constants take none."""
    inner = sum(cost_of(one) for body in jaxprs_in_params(eqn.params) for one in body.eqns)
    if inner:
        turns = eqn.params.get("length", USUAL_TURNS if eqn.primitive.name == "while" else 1)
        return turns * inner
    name = eqn.primitive.name
    if name in READS:
        return READ_COST + CHANNEL_COST * size_of(eqn)
    if name in LOOKS or all(isinstance(v, Literal) for v in eqn.invars):
        return 0
    if name == "dot_general":
        (summed, _), _ = eqn.params["dimension_numbers"]
        return size_of(eqn) * math.prod(aval_of(eqn.invars[0]).shape[k] for k in summed)
    return size_of(eqn)


# Rules of equations


def broadcast_in_dim(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    dims = eqn.params["broadcast_dimensions"]
    shape = aval_of(eqn.invars[0]).shape
    of_operand = dims.index(axis) if axis in dims and shape[dims.index(axis)] != 1 else None
    return [of_operand], plan.with_params(eqn, shape=plan.narrow(eqn.params["shape"], axis))


def reshape(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    given, made = aval_of(eqn.invars[0]).shape, aval_of(eqn.outvars[0]).shape
    before = math.prod(made[:axis])
    places = (k for k, n in enumerate(given) if n == plan.size and math.prod(given[:k]) == before)
    own = next(places, None)
    if own is None or len(eqn.invars) > 1:
        raise ChannelsMix
    shape = plan.narrow(made, axis)
    return [own], lambda args: [jnp.reshape(args[0], shape)]


def squeeze(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    kept = [k for k in range(aval_of(eqn.invars[0]).ndim) if k not in eqn.params["dimensions"]]
    return [kept[axis]], plan.with_params(eqn)


def transpose(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    return [eqn.params["permutation"][axis]], plan.with_params(eqn)


def whole_slice(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    limits = plan.narrow(eqn.params["limit_indices"], axis)
    return [axis], plan.with_params(eqn, limit_indices=limits)


def dynamic_slice(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    sizes = plan.narrow(eqn.params["slice_sizes"], axis)
    return [axis, *[None] * (len(eqn.invars) - 1)], plan.with_params(eqn, slice_sizes=sizes)


def gather(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    """Rows at computed places, which hold all channels."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    kept = [k for k in range(len(sizes)) if k not in left_out]
    if axis not in numbers.offset_dims:
        raise ChannelsMix
    own = kept[numbers.offset_dims.index(axis)]
    if own in numbers.start_index_map or sizes[own] != plan.size:
        raise ChannelsMix
    return [own, None], plan.with_params(eqn, slice_sizes=plan.narrow(sizes, own))


def concatenate(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    if eqn.params["dimension"] == axis:
        raise ChannelsMix
    return [axis] * len(eqn.invars), plan.with_params(eqn)


def reduction(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    """A reduction along other axes."""
    kept = [k for k in range(aval_of(eqn.invars[0]).ndim) if k not in eqn.params["axes"]]
    return [kept[axis]], plan.with_params(eqn)


def dot_general(plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    """A product whose channels are rows of its first operand, or columns of its second one."""
    summed, batch = eqn.params["dimension_numbers"]
    place = len(batch[0])
    for operand in (0, 1):
        ndim = aval_of(eqn.invars[operand]).ndim
        free = [k for k in range(ndim) if k not in (*summed[operand], *batch[operand])]
        if place <= axis < place + len(free):
            own = free[axis - place]
            return [own, None] if operand == 0 else [None, own], plan.with_params(eqn)
        place += len(free)
    raise ChannelsMix


def of_signature(signature: Any, plan: Plan, eqn: JaxprEqn, axis: int) -> Narrowed:
    """A read of texels, or its derivative: the channels are the last axis of texels and of the result."""
    params = eqn.params
    spec: ReadSpec = params["spec"]
    last = aval_of(eqn.outvars[0]).ndim - 1
    if axis != last or spec.planar or spec.decoding is Decoding.SRGB or params["storage"] != WHOLE:
        raise ChannelsMix
    contents = signature.operands(spec, params.get("wrt", ()))
    plan.whole_cost += plan.turns * READ_COST
    plan.channel_cost += plan.turns * CHANNEL_COST * plan.size
    has_channels = [k < len(contents) and contents[k] is not Content.SAMPLES for k in range(len(eqn.invars))]
    return [aval_of(v).ndim - 1 if some else None for v, some in zip(eqn.invars, has_channels)], plan.with_params(eqn)


def scan(plan: Plan, eqn: JaxprEqn, out: Sequence[Axis]) -> Narrowed:
    params, body = eqn.params, eqn.params["jaxpr"]
    before, count = sizes_of_scan(params)
    if 0 in out[count:]:  # each turn makes a channel
        raise ChannelsMix
    given, _ = plan.loop(eqn, body, [None if axis is None else axis - 1 for axis in out[count:]], before)

    def run(args: list[Any]) -> Sequence[Any]:
        def turn(carry: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
            found = plan.run(body.jaxpr, body.consts, [*args[:before], *carry, *rows])
            return found[:count], found[count:]

        how = {name: params[name] for name in ("length", "reverse", "unroll")}
        carry, stacked = jax.lax.scan(turn, args[before : before + count], args[before + count :], **how)
        return [*carry, *stacked]

    return [*given[: before + count], *(None if a is None else a + 1 for a in given[before + count :])], run


def while_loop(plan: Plan, eqn: JaxprEqn, out: Sequence[Axis]) -> Narrowed:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    of_condition, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    # What is carried has channels or none in every turn, and the condition needs it so, too.
    given, state = plan.loop(eqn, body, (), of_body)
    asked = plan.body(condition, [None])
    for v, axis in zip(condition.jaxpr.invars[of_condition:], state):
        plan.needs(v, axis)

    def run(args: list[Any]) -> Sequence[Any]:
        first, then, carry = args[:of_condition], args[of_condition:][:of_body], args[of_condition + of_body :]
        return jax.lax.while_loop(
            lambda state: plan.run(condition.jaxpr, condition.consts, [*first, *state])[0],
            lambda state: plan.run(body.jaxpr, body.consts, [*then, *state]),
            carry,
        )

    return [*asked[:of_condition], *given], run


def cond(plan: Plan, eqn: JaxprEqn, out: Sequence[Axis]) -> Narrowed:
    branches = eqn.params["branches"]
    given: list[Axis] = [None] * (len(eqn.invars) - 1)
    for branch in branches:
        plan.find(branch.jaxpr, out)
        found = [plan.axes.get(v) for v in branch.jaxpr.invars]
        given = [a if a is not None else b for a, b in zip(given, found)]
    for branch in branches:  # what one branch divides, no other needs whole
        for v, axis in zip(branch.jaxpr.invars, given):
            plan.needs(v, axis)

    def run(args: list[Any]) -> Sequence[Any]:
        which, *operands = args
        functions = [functools.partial(lambda b, *given: plan.run(b.jaxpr, b.consts, given), b) for b in branches]
        return jax.lax.switch(which, functions, *operands)

    return [None, *given], run


# Primitives of arrays of one shape, number by number; operands without axes are the same for all.
ELEMENTWISE = {*EXPRESSIONS, "select_n", "convert_element_type", "integer_pow", "copy", "add_any", "reduce_precision"}
RULES: dict[str, Callable[[Plan, JaxprEqn, int], Narrowed]] = {
    **{f.__name__: f for f in (broadcast_in_dim, reshape, squeeze, transpose, dynamic_slice, gather, concatenate)},
    **{f"reduce_{name}": reduction for name in ("sum", "max", "min", "prod", "and", "or")},
    "dot_general": dot_general,
    "slice": whole_slice,
    "texture_read": functools.partial(of_signature, READ),
    "texture_pushforward": functools.partial(of_signature, PUSHFORWARD),
}
BODIES: dict[str, Callable[[Plan, JaxprEqn, Sequence[Axis]], Narrowed]] = {
    "scan": scan,
    "while": while_loop,
    "cond": cond,
}


# Arrays of the grid


class OnGrid(NamedTuple):
    """The shape of an array of the grid, and the places of the grid's axes in it."""

    shape: tuple[int, ...]
    places: tuple[int, ...]

    def in_parts(self, axis: Axis, count: int) -> "OnGrid":
        """The same with one more axis of the grid, the last one: parts of the channels, or size 1."""
        if axis is None:
            return OnGrid((*self.shape, 1), (*self.places, len(self.shape)))
        at = [k for k in range(len(self.shape)) if k not in self.places][axis]
        shape = (*self.shape[:at], count, self.shape[at] // count, *self.shape[at + 1 :])
        return OnGrid(shape, (*(p + (p > at) for p in self.places), at))


def samples_in_parts(
    kernel: Callable[..., list[jax.Array]],
    parts: Divided,
    operands: Sequence[jax.Array],
    results: Sequence[jax.ShapeDtypeStruct],
    *,
    sizes: tuple[int, ...],
    places: Sequence[tuple[int, ...]],
    result_places: Sequence[tuple[int, ...]],
) -> list[jax.Array]:
    """The results of `kernel`, that of samples, for the program of a part of the channels."""
    given = parts.with_constants([*zip(operands, places)], len(sizes))
    laid = [OnGrid(a.shape, p).in_parts(axis, parts.count) for (a, p), axis in zip(given, parts.axes)]
    of_results = [
        OnGrid(a.shape, p).in_parts(axis, parts.count) for a, p, axis in zip(results, result_places, parts.result_axes)
    ]
    out = kernel(
        *(a.reshape(one.shape) for (a, _), one in zip(given, laid)),
        program=parts.program,
        sizes=(*sizes, parts.count),
        places=tuple(one.places for one in laid),
        result_places=tuple(one.places for one in of_results),
    )
    return [a.reshape(whole.shape) for a, whole in zip(out, results)]


def adjoint_in_parts(
    kernel: Callable[..., list[jax.Array]],
    parts: Divided,
    args: Sequence[jax.Array],
    *,
    sizes: tuple[int, ...],
    places: Sequence[tuple[int, ...]],
    result_places: Sequence[tuple[int, ...]],
    linear: tuple[int, ...],
    shapes: Sequence[tuple[int, ...]],
) -> list[jax.Array]:
    """The results of `kernel`, the adjoint, for the program of a part of the channels."""
    # Where each array has the parts: operands, cotangents of results, and the results of the adjoint.
    others = [k for k in range(len(places)) if k not in linear]
    given = parts.with_constants([(a, places[k]) for k, a in zip(others, args)], len(sizes))
    axes = [*(parts.axes[k] for k in others), *parts.axes[len(places) :]]
    laid = [OnGrid(a.shape, p).in_parts(axis, parts.count) for (a, p), axis in zip(given, axes)]
    cotangents = [(a, p) for a, p in zip(args[len(others) :], result_places)]
    of_results = [OnGrid(a.shape, p).in_parts(axis, parts.count) for (a, p), axis in zip(cotangents, parts.result_axes)]
    of_linear = [OnGrid(s, places[k]).in_parts(parts.axes[k], parts.count) for k, s in zip(linear, shapes)]
    # The kernel takes places by the numbers of the program's arguments.
    of_all = dict(zip(linear, of_linear)) | dict(zip(others, laid))
    of_constants = laid[len(others) :]
    out = kernel(
        *(a.reshape(one.shape) for (a, _), one in zip((*given, *cotangents), (*laid, *of_results))),
        program=parts.program,
        sizes=(*sizes, parts.count),
        places=(*(of_all[k].places for k in range(len(places))), *(one.places for one in of_constants)),
        result_places=tuple(one.places for one in of_results),
        linear=linear,
        shapes=tuple(one.shape for one in of_linear),
    )
    return [a.reshape(shape) for a, shape in zip(out, shapes)]
