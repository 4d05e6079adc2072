"""Primitives that equal a function of other primitives, and take their rules from that function.

They stand for what a kernel of a GPU computes in another way, in which fewer arrays are copied, or for what takes a way
that has no transpose, such as through the bits of numbers.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..forms.choice import LOWERINGS
from .binding import Dims, bind, define_evaluation
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


def in_place_of(terms: Callable[..., Any], value: Callable[..., Any], *args: Any) -> Any:
    """``value(*args)``, with the derivatives of `terms`, and its transpose where that is linear in two first arguments.

    Neither function may close over traced arrays.
    """
    leaves, tree = jax.tree.flatten(args)
    flat = lambda function: lambda *leaves: function(*jax.tree.unflatten(tree, leaves))
    return bind(in_place_p, *leaves, terms=flat(terms), value=flat(value))


def terms_of(*args: Any, terms: Callable[..., Any], value: Callable[..., Any]) -> Any:
    del value
    return terms(*args)


def value_of(*args: Any, terms: Callable[..., Any], value: Callable[..., Any]) -> Any:
    del terms
    return value(*args)


def in_place_batched(args: Sequence[jax.Array], dims: Dims, **functions: Callable[..., Any]) -> Any:
    mapped = {name: jax.vmap(function, dims) for name, function in functions.items()}
    return in_place_p.bind(*args, **mapped), 0


in_place_p = by_terms("in_place_of", terms_of, lambda **_: (0, 1), "terms", "value")
mlir.register_lowering(in_place_p, mlir.lower_fun(value_of, multiple_results=False))
batching.primitive_batchers[in_place_p] = in_place_batched
