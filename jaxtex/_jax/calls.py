"""Calls of functions in programs: a typed `jax.jit`, calls that kernels know by name, and the callees of equations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

Function = TypeVar("Function", bound=Callable[..., Any])
Operands = TypeVar("Operands")

# The names of calls for which kernels have rules.
WHERE_NEEDED = "jaxtex_where_needed"
OF_CALLER = "jaxtex_function_of_caller"
EXACT = "jaxtex_exact"

# The primitives that call a program once, and their parameters that hold it. JAX 0.10.2 to 0.12: names that it does not
# document; a checkpoint and the program of a composite have another one in other versions.
CALLS = frozenset(
    (
        *("jit", "checkpoint", "remat2", "composite", "call", "closed_call"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"),
    )
)
PROGRAMS = ("jaxpr", "call_jaxpr", "call")


def typed_jit(*static: str, inline: bool = True) -> Callable[[Function], Function]:
    """A decorator that compiles a function whose arguments named in `static` are static, and keeps its type."""
    return cast(Callable[[Function], Function], functools.partial(jax.jit, static_argnames=static, inline=inline))


def named_call(name: str, *static: str) -> Callable[[Function], Function]:
    """A decorator of a function that is called under this name in programs."""

    def decorated(function: Function) -> Function:
        function.__name__ = name
        return typed_jit(*static, inline=False)(function)

    return decorated


def rounded_up(number: int, digits: int) -> int:
    """`number`, rounded up to `digits` significant binary digits, so that one program serves many sizes."""
    step = 2 ** max(number.bit_length() - digits, 0)
    return -(-number // step) * step


@named_call(WHERE_NEEDED, "function", "branches_differ")
def where_needed(
    condition: jax.Array,
    function: Callable[[Operands], Sequence[jax.Array]],
    operands: Operands,
    otherwise: Sequence[jax.Array],
    *,
    branches_differ: bool = True,
) -> list[jax.Array]:
    """The arrays of ``function(operands)`` where `condition` holds, and of `otherwise` elsewhere.

    Array operations select. A thread of a kernel branches if `condition` holds for any of its numbers; the arrays of
    `otherwise` are the last arguments of the call.

    Args:
        function: static, and hashed; element by element.
        otherwise: as many arrays, of the same dtypes.
        branches_differ: whether the two differ where `condition` does not hold. If not, arrays are not selected.
    """
    if not branches_differ:
        return list(function(operands))
    return [jnp.where(condition, needed, other) for needed, other in zip(function(operands), otherwise)]


@named_call(OF_CALLER, "function")
def of_caller(function: Callable[..., Any], *args: jax.Array) -> Any:
    """The results of a user's function, which may hold any primitive; static and hashed."""
    return function(*args)


@named_call(EXACT, "function")
def exactly(function: Callable[..., Any], *args: jax.Array) -> Any:
    """The results of a function whose products and sums a kernel rounds separately; static and hashed."""
    return function(*args)


def called(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program that an equation calls exactly once; else `None`."""
    if eqn.primitive.name not in CALLS:
        return None
    program = program_of(eqn.params)
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())


def program_of(params: dict[str, Any]) -> ClosedJaxpr | Jaxpr:
    """The program among the parameters of a call."""
    return next(params[name] for name in PROGRAMS if name in params)
