"""The roofline of a read: its output written once, from an input read once."""

import jax
import jax.numpy as jnp

from ..works import Work
from .protocol import Run
from .with_jaxtex import compiled, program


def copy(work: Work) -> Run | None:
    if work.what != "read":
        return None
    function, args = program(work.plain)
    out = jax.eval_shape(function, *args)
    return compiled(lambda a: a + 1, (jnp.zeros(out.shape, out.dtype),))
