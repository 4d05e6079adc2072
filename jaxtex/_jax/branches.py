"""Results that are computed only where they are needed: array operations select, and a thread of a kernel branches."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from .primitives import batching_of_meaning, bind, define, jvp_of_nonzero

Operands = TypeVar("Operands")


def where_needed(
    condition: jax.Array,
    function: Callable[[Operands], Sequence[jax.Array]],
    operands: Operands,
    otherwise: Sequence[jax.Array],
    *,
    branches_differ: bool = True,
) -> list[jax.Array]:
    """The arrays of ``function(operands)`` where `condition` holds, and of `otherwise` elsewhere.

    Array operations select. A thread of a kernel branches if `condition` holds for any of its numbers.

    Args:
        function: static, and hashed; element by element.
        otherwise: as many arrays, of the same dtypes.
        branches_differ: whether the two differ where `condition` does not hold. If not, arrays are not selected.
    """
    given = (condition, operands, list(otherwise))
    leaves, tree = jax.tree.leaves(given), cast(Any, jax.tree.structure(given))
    # Numbers of Python stay as they are, so that they take the dtype of the arrays that they meet.
    known = tuple(None if isinstance(leaf, jax.Array | np.ndarray) else leaf for leaf in leaves)
    arrays = [jnp.asarray(leaf) for leaf, number in zip(leaves, known) if number is None]
    params = {"function": function, "tree": tree, "known": known, "branches_differ": branches_differ}
    return bind(where_needed_p, *arrays, **params)


def meaning(
    *arrays: jax.Array, function: Callable[..., Any], tree: Any, known: tuple[Any, ...], branches_differ: bool
) -> list[jax.Array]:
    rest = iter(arrays)
    leaves = [next(rest) if number is None else number for number in known]
    condition, operands, otherwise = jax.tree.unflatten(tree, leaves)
    if not branches_differ:
        return list(function(operands))
    return [jnp.where(condition, needed, other) for needed, other in zip(function(operands), otherwise)]


def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[jax.Array], list[Any]]:
    out = bind(where_needed_p, *primals, **params)
    found = jvp_of_nonzero(lambda *leaves: meaning(*leaves, **params), primals, tangents)
    for k, t in enumerate(found):
        if t.dtype == jax.dtypes.float0:  # of integers
            found[k] = ad.Zero(jax.typeof(out[k]).to_tangent_aval())
    return out, found


# As a primitive, it keeps all of its operands, whatever JAX leaves out of the programs around it: a branch needs the
# condition and `otherwise`, which array operations may not need.
where_needed_p = define(
    "where_needed",
    meaning,
    static=("function", "tree", "known", "branches_differ"),
    jvp=jvp,
    batch=batching_of_meaning(meaning, multiple_results=True),
    multiple_results=True,
)
