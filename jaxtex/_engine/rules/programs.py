"""The two primitives that map programs of one sample over a grid, and their rules.

A program ``f(p)`` is mapped over a grid by `samples_p`. Each array has an axis for each axis of the grid, of its size,
or of size 1 where samples share it. With L(p, t) the derivative of f at p along t, which is linear in t:

    (a) d samples(f)(p)     = samples(L)(p, dp)
    (b) transpose in t of samples(L)(p, t) = adjoint(L, t)(p, v)
    (c) d adjoint(L, t)(p, v) = adjoint(L, t)(p, dv) + adjoint(dL/dp, t)(p, dp, v)
    (d) transpose of adjoint(L, t)(p, v) in v = samples(L)(p, t), and in another linear operand s of L = adjoint(L, s)

So `adjoint` sums over the samples that share an operand. Reverse mode keeps the arguments alone, and computes the
samples again. Programs are differentiated sample by sample, with JAX's own rules, and mapped again.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad
from jax.sharding import PartitionSpec

from ..._jax.indexing import as_varying
from ..._jax.primitives import define, is_nonzero, on_one_device
from ..._jax.versions import on_mesh_of
from ..compute.linearization import summed_to
from ..compute.programs import (
    Places,
    Sizes,
    adjoint_by_vmap,
    batched,
    merged,
    over_samples,
    samples_by_vmap,
    stacks_of_one,
    type_on_grid,
    with_axis,
)
from ..describe.operands import Operand, joined, split
from ..describe.program import Program
from ..forms.choice import LOWERINGS

# For each result, the positions at which `jax.vmap` will want its next axes, the next one first.
Wanted = tuple[tuple[int, ...], ...]

samples_p, adjoint_p = Primitive("fused_samples"), Primitive("fused_adjoint")


def samples(program: Program, operands: Sequence[jax.Array], wanted: Wanted) -> list[jax.Array]:
    """The results of a program of one sample; under `jax.vmap`, of all samples of a grid."""
    static = {"program": program, "sizes": (), "places": ((),) * len(operands), "wanted": wanted}
    return bind(samples_p, *operands, **static, result_places=((),) * len(program.results))


def samples_of(
    one: Callable[..., Sequence[jax.Array]], args: Sequence[Operand], *, shared: Sequence[int], batch: int
) -> list[jax.Array]:
    """The results of ``one(*args)`` of one sample for all samples, by one kernel on a GPU.

    Args:
        args: arrays with `batch` axes in front, then axes of samples, of one rank, whose sizes broadcast.
        shared: the positions of those that all samples share, such as a texture, which have no axes of samples.
    """
    arrays, stacks = split(args)
    stacks = stacks or (None,) * len(arrays)
    of_arrays = lambda *arrays: one(*joined(arrays, stacks_of_one(stacks)))
    given, static = over_samples(of_arrays, arrays, shared, stacks, batch)
    return bind(samples_p, *given, **static, wanted=((),) * len(static["program"].results))


def bind(p: Primitive, *args: jax.Array, **params: Any) -> list[jax.Array]:
    return p.bind(*(as_varying(a, *args) for a in args), **params)


# Types


def types_of_samples(
    *operands: Any, program: Program, sizes: Sizes, result_places: Places, **_: Any
) -> list[jax.ShapeDtypeStruct]:
    return [type_on_grid(sizes, a, p) for a, p in zip(program.results, result_places)]


def types_of_adjoint(
    *args: Any, program: Program, linear: tuple[int, ...], shapes: tuple[tuple[int, ...], ...], **_: Any
) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, program.arguments[k].dtype) for k, shape in zip(linear, shapes)]


# Rules of `samples_p`


def samples_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[Any],
    *,
    program: Program,
    places: Places,
    result_places: Places,
    wanted: Wanted,
    **params: Any,
) -> tuple[list[jax.Array], list[Any]]:
    """Line (a)."""
    static = {"program": program, "places": places, "result_places": result_places, "wanted": wanted}
    if program.holds("custom_vjp_call"):
        # JAX differentiates a function with a rule for reverse mode alone only where it is called.
        function = functools.partial(samples_by_vmap, **static, **params)
        return jax.jvp(lambda *args: function(*args), tuple(primals), tuple(map(ad.instantiate_zeros, tangents)))
    # Results that move have tangents: the program's own jvp, with the tangents as more operands.
    out = bind(samples_p, *primals, **static, **params)
    wrt, moving = tuple(k for k, t in enumerate(tangents) if is_nonzero(t)), program.moving
    of_tangent = {
        "program": program.tangent(wrt),
        "places": (*places, *(places[k] for k in wrt)),
        "result_places": tuple(result_places[k] for k in moving),
        "wanted": tuple(wanted[k] for k in moving),
    }
    changes = iter(bind(samples_p, *primals, *(tangents[k] for k in wrt), **of_tangent, **params) if moving else [])
    return out, [next(changes) if k in moving else no_tangent(x) for k, x in enumerate(out)]


def no_tangent(x: jax.Array) -> ad.Zero:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def samples_transpose(
    cotangents: Sequence[Any],
    *args: Any,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    wanted: Wanted,
) -> list[Any]:
    """Line (b)."""
    del wanted
    # Results without a cotangent are left out of the program that is transposed.
    linear = tuple(k for k, a in enumerate(args) if ad.is_undefined_primal(a))
    which = tuple(k for k, v in enumerate(cotangents) if not isinstance(v, ad.Zero))
    if not which:
        return [ad.Zero(a.aval) if k in linear else None for k, a in enumerate(args)]
    results = bind(
        adjoint_p,
        *(a for k, a in enumerate(args) if k not in linear),
        *(cotangents[k] for k in which),
        program=program.with_results(which),
        sizes=sizes,
        places=places,
        result_places=tuple(result_places[k] for k in which),
        linear=linear,
        shapes=tuple(args[k].aval.shape for k in linear),
    )
    return merged(linear, results, [None] * (len(args) - len(linear)))


def samples_batch(
    args: Sequence[jax.Array],
    dims: Sequence[int | None],
    *,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    wanted: Wanted,
) -> tuple[list[jax.Array], list[int]]:
    """One more axis of the grid."""
    # Operands get the new axis where they have it; results, where the caller wants it.
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    operands, places = zip(*map(batched, args, dims, places))
    positions = [next(iter(w), 0) for w in wanted]
    out = bind(
        samples_p,
        *operands,
        program=program,
        sizes=(size, *sizes),
        places=places,
        result_places=tuple(map(with_axis, result_places, positions)),
        wanted=tuple(w[1:] for w in wanted),
    )
    return out, positions


# Rules of `adjoint_p`


def adjoint_jvp(
    primals: Sequence[jax.Array],
    tangents: Sequence[Any],
    *,
    program: Program,
    places: Places,
    linear: tuple[int, ...],
    **params: Any,
) -> tuple[list[jax.Array], list[Any]]:
    """Line (c)."""
    static = {"program": program, "places": places, "linear": linear, **params}
    out = bind(adjoint_p, *primals, **static)
    # The adjoint is linear in the cotangents of results: their tangents go the same way.
    others = [k for k in range(len(places)) if k not in linear]
    count, terms = len(others), []
    if any(is_nonzero(t) for t in tangents[count:]):
        along = [ad.instantiate_zeros(t) for t in tangents[count:]]
        terms.append(bind(adjoint_p, *primals[:count], *along, **static))
    # In operands that the program is not linear in, the tangent is the adjoint of its jvp.
    moving = [n for n in range(count) if is_nonzero(tangents[n])]
    if moving and program.holds("custom_lin"):  # of a `jax.custom_vjp`, whose derivative only arrays have
        function = functools.partial(adjoint_by_vmap, **static)
        given = [primals[n] for n in moving]
        of_moving = lambda *some: function(*merged(moving, some, [a for n, a in enumerate(primals) if n not in moving]))
        terms.append(jax.jvp(of_moving, tuple(given), tuple(tangents[n] for n in moving))[1])
    elif moving:
        wrt = tuple(others[n] for n in moving)
        changed = program.tangent(wrt)
        terms.append(
            bind(
                adjoint_p,
                *primals[:count],
                *(tangents[n] for n in moving),
                *primals[count:],
                program=changed,
                places=(*places, *(places[k] for k in wrt)),
                linear=linear,
                **params,
            )
        )
    return out, [functools.reduce(jnp.add, parts) for parts in zip(*terms)]


def adjoint_transpose(
    cotangents: Sequence[Any],
    *args: Any,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    linear: tuple[int, ...],
    shapes: tuple[tuple[int, ...], ...],
) -> list[Any]:
    """Line (d)."""
    if all(isinstance(v, ad.Zero) for v in cotangents):
        return [ad.Zero(a.aval) if ad.is_undefined_primal(a) else None for a in args]
    # What is transposed: the cotangents of results, or operands.
    directions = [ad.instantiate_zeros(v) for v in cotangents]
    others = [k for k in range(len(places)) if k not in linear]
    count = len(others)
    undefined = [n for n, a in enumerate(args) if ad.is_undefined_primal(a)]
    if undefined[-1] >= count:  # the values
        assert undefined[0] >= count, "values and operands are not linear together"
        operands = merged(linear, directions, args[:count])
        static = {"program": program, "sizes": sizes, "places": places, "result_places": result_places}
        out = bind(samples_p, *operands, **static, wanted=((),) * len(result_places))
        # A value of size 1 along an axis was shared.
        values = enumerate(args[count:])
        sums = (summed_to(out[k], a.aval.shape) if ad.is_undefined_primal(a) else None for k, a in values)
        return [*[None] * count, *sums]
    # Of operands: the adjoint of the same program, which is linear in them too.
    wrt = tuple(others[n] for n in undefined)
    operands = merged(linear, directions, args[:count])
    results = bind(
        adjoint_p,
        *(a for k, a in enumerate(operands) if k not in wrt),
        *args[count:],
        program=program,
        sizes=sizes,
        places=places,
        result_places=result_places,
        linear=wrt,
        shapes=tuple(args[n].aval.shape for n in undefined),
    )
    return merged(undefined, results, [None] * (len(args) - len(undefined)))


def adjoint_batch(
    args: Sequence[jax.Array],
    dims: Sequence[int | None],
    *,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    linear: tuple[int, ...],
    shapes: tuple[tuple[int, ...], ...],
) -> tuple[list[jax.Array], list[int]]:
    """One more axis of the grid, along which the results are not summed."""
    # The new axis leads in every argument and result.
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    others = [k for k in range(len(places)) if k not in linear]
    given = [*(places[k] for k in others), *result_places]
    operands, moved = zip(*map(batched, args, dims, given))
    out = bind(
        adjoint_p,
        *operands,
        program=program,
        sizes=(size, *sizes),
        places=tuple(merged(linear, [with_axis(places[k], 0) for k in linear], moved[: len(others)])),
        result_places=moved[len(others) :],
        linear=linear,
        shapes=tuple((size, *shape) for shape in shapes),
    )
    return out, [0] * len(out)


def under_meshes(types: Callable[..., Any], placed_results: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The types of results under meshes: they vary as the arguments do, and axes of the grid keep their shardings.

    Args:
        placed_results: the places of the axes of the grid in each argument, and in each result.
    """

    def abstract(*avals: Any, **params: Any) -> list[Any]:
        of_args, of_results = placed_results(**params)
        out = []
        for struct, places in zip(types(*avals, **params), of_results):
            spec: list[Any] = [None] * len(struct.shape)
            for axis, place in enumerate(places):
                if struct.shape[place] not in (0, 1):
                    found = (a.sharding.spec[p[axis]] for a, p in zip(avals, of_args) if a.shape[p[axis]] not in (0, 1))
                    spec[place] = next((name for name in found if name is not None), None)
            out.append(on_mesh_of(avals, struct.shape, struct.dtype, PartitionSpec(*spec)))
        return out

    return abstract


def places_of_samples(*, places: Places, result_places: Places, **_: Any) -> tuple[Places, Places]:
    return places, result_places


def places_of_adjoint(
    *, places: Places, result_places: Places, linear: tuple[int, ...], **_: Any
) -> tuple[Places, Places]:
    others = (p for k, p in enumerate(places) if k not in linear)
    return (*others, *result_places), tuple(places[k] for k in linear)


define(
    samples_p,
    samples_by_vmap,
    static=("program", "sizes", "places", "result_places", "wanted"),
    form=on_one_device(samples_by_vmap),
    jvp=samples_jvp,
    transpose=samples_transpose,
    batch=samples_batch,
    abstract=under_meshes(types_of_samples, places_of_samples),
    lowerings=LOWERINGS["fused_samples"],
    multiple_results=True,
)
define(
    adjoint_p,
    adjoint_by_vmap,
    static=("program", "sizes", "places", "result_places", "linear", "shapes"),
    form=on_one_device(adjoint_by_vmap),
    jvp=adjoint_jvp,
    transpose=adjoint_transpose,
    batch=adjoint_batch,
    abstract=under_meshes(types_of_adjoint, places_of_adjoint),
    lowerings=LOWERINGS["fused_adjoint"],
    multiple_results=True,
)
