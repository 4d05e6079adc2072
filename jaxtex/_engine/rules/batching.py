"""How the primitives of a read are batched: a new axis joins the samples, or is one more batch axis."""

from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive

from ..._jax.primitives import Dims, at_front, batching_of_meaning, bind
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import WHOLE, Layout


def batching_rule(
    p: Primitive,
    layout: Layout,
    joins: Callable[[Wrt, Dims], bool] = lambda *_: True,
    meaning: Callable[..., Any] | None = None,
):
    """How `p` is batched.

    Where all textures are shared, a new axis of the operands joins the shape of the samples, if it may. Otherwise it
    is one more batch axis.

    Args:
        joins: whether no result is summed over an axis that joins the samples.
        meaning: what it means, which is batched where arrays are not whole; `None` if they always are.
    """

    def rule(args, dims: Dims, *, spec: ReadSpec, batch: int, **params: Any):
        if meaning is not None and params["storage"] != WHOLE:
            return batching_of_meaning(meaning, p.multiple_results)(args, dims, spec=spec, batch=batch, **params)
        wrt = params.get("wrt", ())
        positions = layout.textures(spec, wrt)
        shared = all(dims[k] is None for k in positions) and joins(wrt, dims)
        if shared:
            args = [a if k in positions else at_front(a, d, batch) for k, (a, d) in enumerate(zip(args, dims))]
        else:
            args = [at_front(a, d) for a, d in zip(args, dims)]
        out = bind(p, *args, spec=spec, batch=batch if shared else batch + 1, **params)
        dim = batch if shared else 0
        return (out, [dim] * len(out)) if p.multiple_results else (out, dim)

    return rule


def pushforward_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether operands have the new axis where their tangents do."""
    operands = dims[len(wrt) + 1 :]
    return all((operands[k] is None) == (tangent is None) for k, tangent in zip(wrt, dims) if k != TEXELS)


def pullback_joins(wrt: Wrt, dims: Dims) -> bool:
    """Whether no result is of texels, and all results are of operands that have the new axis."""
    return TEXELS not in wrt and all(dims[2 + k] is not None for k in wrt)
