"""The mip chain of texels and its transpose, as a primitive, of which a few kernels compute all levels."""

import jax

from ..._jax.primitives import define_linear
from ..compute.mip_levels import chain_of
from ..forms.choice import LOWERINGS


def mip_chain(texels: jax.Array, ndim: int, num_levels: int) -> jax.Array:
    """The levels of a chain one after the other, (total, C), from the finest one.

    Args:
        ndim: how many axes before the channels are halved.
    """
    return mip_chain_p.bind(texels, shape=texels.shape, ndim=ndim, num_levels=num_levels, adjoint=False)


mip_chain_p = define_linear(
    "mip_chain",
    chain_of,
    lambda _, *, adjoint, **params: {"adjoint": not adjoint, **params},
    lambda **params: params,
    static=("shape", "ndim", "num_levels", "adjoint"),
    lowerings=LOWERINGS["mip_chain"],
)
