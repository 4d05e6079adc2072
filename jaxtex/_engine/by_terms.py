"""Primitives that equal a function of other primitives, and take their rules from that function.

They stand for what a kernel of a GPU computes in another way, in which fewer arrays are copied.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .binding import Dims, define_evaluation
from .lowering.choice import LOWERINGS
from .primitives import jvp_by_terms, transpose_by_terms


def by_terms(
    name: str,
    terms: Callable[..., Any],
    linear: Callable[..., Sequence[int]],
    *static: str,
    multiple: bool = False,
) -> Primitive:
    """A primitive that means `terms`, with all rules.

    Args:
        linear: the positions of the arguments in which it is linear together, from its parameters.
        static: the names of its parameters.
        multiple: whether it has several results.
    """
    p = Primitive(name)
    p.multiple_results = multiple

    def batched(args: Sequence[jax.Array], dims: Dims, **params: Any) -> Any:
        out = jax.vmap(functools.partial(terms, **params), dims)(*args)
        return (out, [0] * len(out)) if multiple else (out, 0)

    define_evaluation(p, terms, *static)
    mlir.register_lowering(p, mlir.lower_fun(terms, multiple_results=multiple))
    for row in LOWERINGS.get(name, ()):
        mlir.register_lowering(p, row.rule(terms, multiple_results=multiple), platform=row.platform)
    ad.primitive_jvps[p] = jvp_by_terms(p, terms)
    ad.primitive_transposes[p] = transpose_by_terms(terms, linear)
    batching.primitive_batchers[p] = batched
    return p
