"""Programs of one sample over a grid, by array operations: `jax.vmap` of the program, and the transpose of that."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, jaxprs_in_params

from ..._jax.calls import called
from ..._jax.primitives import at_front
from ..._jax.shapes import broadcast_shapes
from ..describe.operands import Stack
from ..describe.program import Program, bound, is_large, is_look, run_equations, touches_large, traced
from ..describe.unit import UnitRead, unit_read_p

# For each array, the positions of the axes of the grid. The axes of one sample keep their order around them.
Places = tuple[tuple[int, ...], ...]
Sizes = tuple[int, ...]
# Calls that have no rule of their own.
CALLS = ("jit", "closed_call")


# Layouts


def grid_first(x: jax.Array, places: tuple[int, ...]) -> jax.Array:
    """An array with the axes of the grid in front."""
    return jnp.moveaxis(x, places, range(len(places)))


def placed(x: jax.Array, places: tuple[int, ...]) -> jax.Array:
    """An array whose axes of the grid are in front, with these at their places."""
    return jnp.moveaxis(x, range(len(places)), places)


def placed_shape(grid: Sequence[int], shape: Sequence[int], places: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array with the axes `grid` at their places, and those of one sample around them."""
    around = iter(shape)
    at = dict(zip(places, grid))
    return tuple(at[k] if k in at else next(around) for k in range(len(grid) + len(shape)))


def type_on_grid(sizes: Sizes, aval: Any, places: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """The type of an array of which each sample of the grid has one of type `aval`."""
    return jax.ShapeDtypeStruct(placed_shape(sizes, aval.shape, places), aval.dtype)


def with_axis(places: tuple[int, ...], position: int) -> tuple[int, ...]:
    """The places behind a new axis of the grid at `position`, which comes first in the grid."""
    return position, *(p + (p >= position) for p in places)


def batched(x: jax.Array, dim: int | None, places: tuple[int, ...]) -> tuple[jax.Array, tuple[int, ...]]:
    """An array with a new axis of the grid, where it has its batch axis; of size 1 in front where it has none."""
    return (at_front(x, None), with_axis(places, 0)) if dim is None else (x, with_axis(places, dim))


# By array operations


def samples_by_vmap(
    *operands: jax.Array, program: Program, sizes: Sizes, places: Places, result_places: Places, **_: Any
) -> list[jax.Array]:
    given = [grid_first(a, p) for a, p in zip(operands, places)]
    differs = [any(a.shape[n] == size != 1 for n, size in enumerate(sizes)) for a in given]
    function = functools.partial(chosen_branches, program.closed, differs) if program.holds("cond") else program
    return [placed(out, p) for out, p in zip(over_grid(function, sizes, given), result_places)]


def over_grid(function: Callable[..., list[jax.Array]], sizes: Sizes, args: Sequence[jax.Array]) -> list[jax.Array]:
    """`function` over the first axes of arrays, which have these sizes, or size 1 where they are shared."""
    if not sizes:
        return list(function(*args))
    size, *rest = sizes
    mapped = [a.shape[0] == size != 1 for a in args]
    given = [a if m else jnp.squeeze(a, 0) for a, m in zip(args, mapped)]
    inner = lambda *args: over_grid(function, tuple(rest), args)
    if any(mapped):
        return jax.vmap(inner, [0 if m else None for m in mapped])(*given)
    return [jnp.broadcast_to(out[None], (size, *out.shape)) for out in inner(*given)]


# `jax.vmap` makes of a branch that depends on the sample a choice among all branches, and copies whole arrays for each
# sample to keep cotangents of other branches from them. Here the reads of whole arrays keep them.


def chosen_branches(
    closed: ClosedJaxpr, differs: Sequence[bool], *args: jax.Array, taken: jax.Array | None = None
) -> list[jax.Array]:
    """The results of a program of one sample. Its branches that only read whole arrays are all computed.

    Args:
        differs: for each argument, whether it differs among samples.
        taken: in a branch, whether the sample takes it. Otherwise, no cotangent reaches a whole array.
    """
    varying = {v for v, d in zip(closed.jaxpr.invars, differs) if d}

    def one(eqn: JaxprEqn, given: list[Any]) -> Sequence[Any]:
        own = [v for v in eqn.invars if not isinstance(v, Literal) and v in varying]
        varying.update(eqn.outvars if own else ())
        whole = touches_large(eqn)
        if whole and eqn.primitive.name == "cond" and (taken is not None or eqn.invars[0] in own) and only_reads(eqn):
            return all_branches(eqn.params["branches"], *given, taken=taken)
        if taken is None or not whole:
            return bound(eqn, given, closed.jaxpr)
        if eqn.primitive.name in CALLS and (body := called(eqn)):
            return chosen_branches(body, (), *given, taken=taken)
        # Zeros, because a cotangent of zero times a number that is not finite were NaN.
        safe = [a if is_large(a) else where(taken, a, jnp.zeros_like(a)) for a in given]
        return [x if is_large(x) else where(taken, x, jax.lax.stop_gradient(x)) for x in bound(eqn, safe, closed.jaxpr)]

    return run_equations(closed.jaxpr, closed.consts, args, one)


def all_branches(
    branches: Sequence[ClosedJaxpr], number: jax.Array, *operands: jax.Array, taken: jax.Array | None
) -> list[jax.Array]:
    """The results of the branch of a number, of which a branch around them may be taken."""
    results = []
    for k, branch in enumerate(branches):
        here = number == k if taken is None else taken & (number == k)
        given = [a if is_large(a) else where(here, a, jax.lax.stop_gradient(a)) for a in operands]
        results.append(chosen_branches(branch, (), *given, taken=here))
    return [jax.lax.select_n(number, *cases) for cases in zip(*results, strict=True)]


def where(mask: jax.Array, a: jax.Array, other: jax.Array) -> jax.Array:
    """A choice of numbers that have derivatives; others stay."""
    return jnp.where(mask, a, other) if jnp.issubdtype(a.dtype, jnp.inexact) else a


def only_reads(eqn: JaxprEqn) -> bool:
    """Whether an equation makes no whole array but a look at one, and hands none to a loop or a rule of its own."""
    if not touches_large(eqn):
        return True
    if eqn.primitive.name in ("cond", *CALLS) and "branches_platforms" not in eqn.params:
        return all(only_reads(e) for inner in jaxprs_in_params(eqn.params) for e in inner.eqns)
    return not any(jaxprs_in_params(eqn.params)) and (is_look(eqn) or not any(is_large(v.aval) for v in eqn.outvars))


def adjoint_by_vmap(
    *args: jax.Array,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    linear: tuple[int, ...],
    shapes: tuple[tuple[int, ...], ...],
) -> list[jax.Array]:
    """The transpose of `samples_by_vmap` in the operands `linear`, which have these shapes."""
    count = len(places) - len(linear)
    others, cotangents = args[:count], args[count:]

    def of_linear(*moving: jax.Array) -> list[jax.Array]:
        operands = merged(linear, moving, others)
        return samples_by_vmap(*operands, program=program, sizes=sizes, places=places, result_places=result_places)

    moving = [jax.ShapeDtypeStruct(shape, program.arguments[k].dtype) for k, shape in zip(linear, shapes)]
    whole = [
        jnp.broadcast_to(v, placed_shape(sizes, r.shape, p))
        for v, r, p in zip(cotangents, program.results, result_places)
    ]
    if program.holds("cond"):
        # The batching of a branch is a choice whose derivative alone is linear.
        return list(jax.vjp(of_linear, *(jnp.zeros(a.shape, a.dtype) for a in moving))[1](whole))
    return list(jax.linear_transpose(of_linear, *moving)(whole))


def merged(places: Sequence[int], some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """A list with `some` at `places`, and `others` in order at the other places."""
    at, rest = dict(zip(places, some)), iter(others)
    return [at[k] if k in at else next(rest) for k in range(len(some) + len(others))]


def of_one_sample(
    handle: jax.Array, numbers: Sequence[jax.Array], read: UnitRead
) -> tuple[list[jax.Array], dict[str, Any]]:
    """A read by a texture unit as a program of one sample: its operands, and its parameters."""
    one = lambda *args: [unit_read_p.bind(*args, read=read)]
    return over_samples(one, (handle, *numbers), (0,), (None,) * (1 + len(numbers)), 0)


def over_samples(
    one: Callable[..., Sequence[jax.Array]],
    args: Sequence[jax.Array],
    shared: Sequence[int],
    stacks: Sequence[Stack | None],
    batch: int,
) -> tuple[list[jax.Array], dict[str, Any]]:
    """A function of one sample as a program over all samples: its operands, and its parameters.

    Args:
        one: ``one(*args)`` returns the results of one sample.
        args: arrays with `batch` axes in front, then axes of samples, all of one rank, and sizes that broadcast.
        shared: the positions of the arrays that all samples share, such as a texture, which have no axes of samples.
        stacks: for each of `args`, the stack of an array that holds several numbers of each sample.
    """

    def axes_of(k: int, a: jax.Array) -> tuple[int, ...]:
        """The axes of an array that are axes of the grid."""
        stack = stacks[k]
        return tuple(n for n in range(a.ndim) if stack is None or n != a.ndim + stack.axis)

    samples = [[a.shape[n] for n in axes_of(k, a)] for k, a in enumerate(args) if k not in shared]
    rank = len(samples[0])
    fronts = [(*args[k].shape[:batch], *[1] * (rank - batch)) for k in shared]
    sizes = broadcast_shapes(*map(tuple, samples), *fronts)
    given = [jnp.expand_dims(a, range(batch, rank)) if k in shared else a for k, a in enumerate(args)]
    places = tuple(tuple(range(rank)) if k in shared else axes_of(k, a) for k, a in enumerate(args))
    types = [
        jax.ShapeDtypeStruct([n for k, n in enumerate(a.shape) if k not in p], a.dtype) for a, p in zip(given, places)
    ]
    program = traced(one, types)
    result_places = (tuple(range(rank)),) * len(program.results)
    return given, {"program": program, "sizes": sizes, "places": places, "result_places": result_places}


def stacks_of_one(stacks: Sequence[Stack | None]) -> tuple[Stack | None, ...]:
    """The stacks of one sample, whose numbers lie along the only axis."""
    return tuple(stack and stack._replace(axis=-1) for stack in stacks)
