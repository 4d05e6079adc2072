"""The read of several derivatives, such as value, gradient and Hessian, in one walk over the taps."""

from collections.abc import Sequence

import jax
from jax.interpreters import batching

from ..._jax.primitives import bind, define
from ..compute import operators
from ..describe.spec import ReadSpec
from ..describe.storage import READ
from ..describe.storage import bind as bind_read
from ..forms.choice import LOWERINGS
from .primitives import over_batch, read_p, type_of_read
from .transformations import batching_rule


def read_derivatives(
    texels: jax.Array, color: jax.Array | None, operands: Sequence[jax.Array], spec: ReadSpec
) -> list[jax.Array]:
    """The derivatives `spec.derivatives` of a read, S + (C,) each, with derivatives of any order.

    They are derivatives along the axes of the read, whatever its grid is.
    """
    args = operands if color is None else (color, *operands)
    return bind(read_derivatives_p, texels, *args, spec=spec.over(color), batch=0)


def meaning(texels: jax.Array, *args: jax.Array, spec: ReadSpec, batch: int) -> list[jax.Array]:
    """A read for each derivative."""
    return [bind_read(read_p, texels, *args, spec=one, batch=batch) for one in spec.each_derivative()]


def types(*args: jax.Array, spec: ReadSpec, batch: int) -> list[jax.ShapeDtypeStruct]:
    return [type_of_read(*args, spec=spec, batch=batch)] * len(spec.derivatives)


read_derivatives_p = define(
    "texture_read_derivatives",
    meaning,
    static=("spec", "batch"),
    linear_in=lambda *, spec, **_: READ.textures(spec, ()),
    form=over_batch(operators.derivatives, lambda _: (0,)),
    types=types,
    lowerings=LOWERINGS["read_derivatives"],
    multiple_results=True,
)
batching.primitive_batchers[read_derivatives_p] = batching_rule(read_derivatives_p, READ)
