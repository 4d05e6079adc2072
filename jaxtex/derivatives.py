"""Reads with their derivatives along the coordinates."""

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from ._checks.calls import public
from ._checks.numbers import as_integer
from ._checks.words import listing
from ._reads import calls, derivatives
from ._reads.arguments import check_dtype, check_read_arguments, check_texture
from ._reads.derivatives import Derivatives
from .modes import Arithmetic
from .sampler import Sampler, check_sampler
from .sampling import DEFAULT_SAMPLER, Coords, sample
from .texture import Texture

__all__ = ["sample_with_derivatives"]
__dir__ = listing(__all__)


@public
def sample_with_derivatives(
    texture: Texture,
    coords: Coords,
    sampler: Sampler = DEFAULT_SAMPLER,
    *,
    order: int = 1,
    layer: ArrayLike | None = None,
    lod: ArrayLike | None = None,
    ddx: Coords | None = None,
    ddy: Coords | None = None,
    ddz: Coords | None = None,
    dtype: DTypeLike | None = None,
) -> Derivatives:
    """Reads a filtered texture with its derivatives along the coordinates, in one pass over its texels.

    At every position, the results equal ``jax.jacobian`` and ``jax.hessian`` of `sample`, in a fraction of their time:
    each texel is loaded once. Cubemaps, ``limit="taps"`` and sharded texels take a read for each derivative.

    Args:
        texture: a `Texture` of floating or complex texels, or of integers with ``read_mode="normalized_float"``.
        coords: a tuple of arrays, as in `sample`, that broadcast to S.
        sampler: how to read, as in `sample`.
        order: 1 for the gradient, 2 for the Hessian too.
        layer, lod: as in `sample`.
        ddx, ddy, ddz: as in `sample`. Derivatives hold the footprint constant.
        dtype: the floating dtype of all results, complex for complex texels; the default is that of `sample`.

    Returns:
        A tuple ``(value, gradient, hessian)``. `value` is S + (C,), the read of `sample`. `gradient` is a tuple with an
        array for each coordinate, x first, S + (C,): the derivative per unit of that coordinate, so per texel without
        ``sampler.normalized_coords``. With ``order=2`` `hessian` is a tuple of such tuples: ``hessian[i][j]``, S +
        (C,), is the second derivative along coordinates i and j, in the squared unit, and the same array as
        ``hessian[j][i]``; otherwise it is `None`. ``jnp.stack(gradient, -1)`` is S + (C, D).

    Gradients: each result has those of `sample`: of any order, in forward and reverse mode, and at a kink from the
        right. All derivatives of the point filter are zero, and so is the diagonal of the Hessian of a linear read. The
        border color counts: weights of taps outside are differentiated too. In hardware arithmetic the derivatives are
        those of the float read.

    Raises:
        ValueError: if integer texels are read as integers, `dtype` is not floating, or `sample` raises it.
        TypeError: as `sample`.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> square = jt.texture1d((np.arange(8.0)[:, None] + 0.5) ** 2)
        >>> cubic = jt.Sampler(filter_mode="cubic", normalized_coords=False)
        >>> found = jt.sample_with_derivatives(square, (3.25,), cubic, order=2)
        >>> found.value, found.gradient[0], found.hessian[0][0]
        (Array([10.5625], dtype=float32), Array([6.5], dtype=float32), Array([2.], dtype=float32))
    """
    name = "sample_with_derivatives"
    check_texture(name, texture, coords)
    check_sampler(name, texture.kind, texture.dtype, texture.num_levels, texture.shape[-2], sampler)
    highest = as_integer(name, "order", order, 1, 2)
    arguments = check_read_arguments(name, texture.kind, coords, layer, lod, ddx, ddy, ddz)
    own = calls.own_dtype(texture, sampler)
    if not jnp.issubdtype(own, jnp.inexact):
        raise ValueError(
            f"{name}: texture holds {texture.dtype}, and integers have no derivatives; use "
            "read_mode='normalized_float', or convert the texels to float32."
        )
    result = check_dtype(name, dtype, own)
    value = None
    if sampler.arithmetic is Arithmetic.HARDWARE:
        value = sample(texture, coords, sampler, layer=layer, lod=lod, ddx=ddx, ddy=ddy, ddz=ddz, dtype=dtype)
    return derivatives.sample_with_derivatives(
        texture, arguments, sampler=sampler, dtype=result, order=highest, value=value
    )
