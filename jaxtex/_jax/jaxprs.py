"""Equations that call a program, such as those of `jax.jit`: which they are, and what they call."""

from typing import Any

from jax.extend.core import ClosedJaxpr

# By the name of a primitive that calls a program once: the parameter that holds the program. JAX 0.10.2 to 0.12: names
# that it does not document.
CALLS = {
    "jit": "jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",  # a checkpoint, in other versions
    "composite": "jaxpr",
    "call": "call_jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
}


def called(eqn: Any) -> ClosedJaxpr | None:
    """The program that an equation calls; `None` if it calls none, or one that it may run never or several times."""
    if eqn.primitive.name not in CALLS:
        return None
    program = eqn.params[CALLS[eqn.primitive.name]]
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())
