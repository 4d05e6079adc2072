"""What few samples need: a select of arrays, a branch in a kernel."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from .typed_jit import typed_jit

Operands = TypeVar("Operands")
# The name of the call in a jaxpr, by which a kernel knows it. The arrays of `otherwise` are its last arguments.
NAME = "jaxtex_where_needed"


def where_needed(
    condition: jax.Array,
    function: Callable[[Operands], Sequence[jax.Array]],
    operands: Operands,
    otherwise: Sequence[jax.Array],
    *,
    branches_differ: bool = True,
) -> list[jax.Array]:
    """The arrays of ``function(operands)`` where `condition` holds, and of `otherwise` elsewhere.

    A thread of a kernel branches if `condition` holds for any of its numbers.

    Args:
        function: static, and hashed; element by element.
        otherwise: as many arrays, of the same dtypes.
        branches_differ: whether the two differ where `condition` does not hold. If not, arrays are not selected.
    """
    return _where_needed(condition, operands, list(otherwise), function=function, branches_differ=branches_differ)


def selected(
    condition: jax.Array,
    operands: Any,
    otherwise: list[jax.Array],
    *,
    function: Callable[..., Sequence[jax.Array]],
    branches_differ: bool,
) -> list[jax.Array]:
    if not branches_differ:
        return list(function(operands))
    return [jnp.where(condition, needed, other) for needed, other in zip(function(operands), otherwise)]


selected.__name__ = NAME
_where_needed = typed_jit("function", "branches_differ", inline=False)(selected)
