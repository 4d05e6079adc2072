"""How the primitives of a read are batched: a new axis joins the samples, or is one more batch axis."""

from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive

from ..._jax.primitives import Dims, at_front, bind
from ..describe.contents import Layout
from ..describe.spec import ReadSpec, Wrt


def batching_rule(p: Primitive, layout: Layout, joins: Callable[[Wrt, Dims], bool] = lambda *_: True):
    """How `p` is batched.

    Where all textures are shared, a new axis of the operands joins the shape of the samples, if it may. Otherwise it
    is one more batch axis.

    Args:
        joins: whether no result is summed over an axis that joins the samples.
    """

    def rule(args, dims: Dims, *, spec: ReadSpec, batch: int, **params: Any):
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
