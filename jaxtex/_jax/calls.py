"""Calls of functions in programs: a typed `jax.jit`, calls that kernels know by name, and the callees of equations."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

Function = TypeVar("Function", bound=Callable[..., Any])

# The names of calls for which kernels have rules.
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


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class StaticFunction:
    """A function that a program takes among arrays: a tree without leaves, which is hashed."""

    function: Callable[..., Any]


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
