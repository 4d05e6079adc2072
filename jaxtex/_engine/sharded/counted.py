"""Counts that a program carries beside its values: the samples of a read that need texels beyond their halo.

A traced function cannot return a count that its caller does not expect. So the count is the second argument of an
identity primitive, and `total_of` evaluates the program again and adds up these counts.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun, jaxprs_in_params

from ..._jax.calls import called
from ..._jax.indexing import everywhere
from ..._jax.primitives import define
from ..._jax.versions import sizes_of_scan


def with_count(values: jax.Array, count: jax.Array) -> jax.Array:
    """`values`, with a count beside them in the program."""
    return cast(jax.Array, beside_p.bind(values, count))


def batched(args: Sequence[jax.Array], dims: Sequence[int | None]) -> tuple[jax.Array, int | None]:
    """The batching rule: the counts of all examples are added up."""
    (values, count), (dim, counts) = args, dims
    return with_count(values, count if counts is None else jnp.sum(count, counts, dtype=count.dtype)), dim


def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    return with_count(*primals), tangents[0]


beside_p = define("texture_beside", lambda values, count: values, jvp=jvp, batch=batched)


# The sum of all counts


def total_of(function: Callable[..., Any], *args: Any) -> jax.Array:
    """The sum of all counts in the program of ``function(*args)``, int32."""

    def total(*args: Any) -> jax.Array:
        return walked(jax.make_jaxpr(function)(*args), jax.tree.leaves(args))[-1]

    return jax.jit(total)(*args)


def walked(program: ClosedJaxpr, args: Sequence[jax.Array]) -> list[jax.Array]:
    """The results of a program, followed by the sum of its counts."""
    jaxpr = program.jaxpr
    known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*program.consts, *args)))
    value_of = lambda a: a.val if isinstance(a, Literal) else known[a]
    total = jnp.int32(0)
    for eqn in jaxpr.eqns:
        *results, count = walked_equation(jaxpr, eqn, [value_of(a) for a in eqn.invars])
        known.update(zip(eqn.outvars, results))
        total = total + count
    return [*map(value_of, jaxpr.outvars), total]


def walked_equation(jaxpr: Jaxpr, eqn: JaxprEqn, values: list[jax.Array]) -> list[Any]:
    """The results of an equation, followed by the sum of the counts in it."""
    name, params = eqn.primitive.name, eqn.params
    # A count, which stands beside a value.
    if eqn.primitive is beside_p:
        return [values[0], everywhere(values[1])]
    # No count inside: the equation as it is.
    if not any(map(holds_count, jaxprs_in_params(params))):
        known = {a: value for a, value in zip(eqn.invars, values) if not isinstance(a, Literal)}
        alone = jaxpr.replace(
            constvars=[],
            invars=[*known],
            outvars=eqn.outvars,
            eqns=[eqn],
            effects=eqn.effects,
            debug_info=jaxpr.debug_info.with_unknown_names(),
        )
        return [*jaxpr_as_fun(ClosedJaxpr(alone, ()))(*known.values()), 0]
    # Calls that hold counts: branches, loops, and calls of one program.
    if name == "cond":
        number, *operands = values
        branches = [
            functools.partial(lambda branch, *args: walked(branch, args), branch) for branch in params["branches"]
        ]
        return jax.lax.switch(number, branches, *operands)
    if name == "scan":
        return walked_scan(params, values)
    inner = called(eqn)
    if inner is None:
        raise NotImplementedError(
            f"count_beyond: a read stands in {name!r}, in which samples cannot be counted; count those of the function "
            f"inside."
        )
    return walked(inner, values)


def walked_scan(params: dict[str, Any], values: list[jax.Array]) -> list[jax.Array]:
    """The results of a scan, followed by the sum of the counts in all of its iterations."""
    first, carried = sizes_of_scan(params)
    last = first + carried

    def turn(carry: Any, x: Any) -> Any:
        *results, count = walked(params["jaxpr"], [*values[:first], *carry, *x])
        return results[: last - first], (results[last - first :], count)

    options = {"length": params["length"], "reverse": params["reverse"]}
    carry, (ys, counts) = jax.lax.scan(turn, values[first:last], values[last:], **options)
    return [*carry, *ys, jnp.sum(counts, dtype=jnp.int32)]


def holds_count(jaxpr: Jaxpr) -> bool:
    """Whether a program holds a count."""
    return any(eqn.primitive is beside_p or any(map(holds_count, jaxprs_in_params(eqn.params))) for eqn in jaxpr.eqns)
