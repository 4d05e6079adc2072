"""Floors: a copy, which writes the output once, from an input read once; and a program that adds two numbers."""

import jax
import jax.numpy as jnp

from ..works import LAUNCH, Work
from .protocol import Run
from .with_jaxtex import compiled, program


def copy(work: Work) -> Run | None:
    if work.what != "read":
        return None
    function, args = program(work.plain)
    out = jax.eval_shape(function, *args)
    return compiled(lambda a: a + 1, (jnp.zeros(out.shape, out.dtype),))


def addition(work: Work) -> Run | None:
    """What a program takes that does next to nothing, beside works that are hardly more than a launch."""
    return compiled(lambda a: a + 1, (jnp.zeros(()),)) if work.samples == LAUNCH and work.kind == "2d" else None
