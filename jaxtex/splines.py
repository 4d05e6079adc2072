"""The prefilter of B-splines: it computes the coefficients of the spline that passes through the texels."""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ._checks.calls import public
from ._checks.words import listing
from ._engine.compute.texel_value import decode
from ._engine.describe.plan import Layout
from ._engine.rules.filters import convolve
from ._jax.calls import typed_jit
from ._reads.arguments import check_texture
from ._reads.complex_parts import by_parts
from ._tables.address_rules import SPHERE, WRAP, AddressRule
from ._tables.filter_kernels import FilterKernel, Polynomials, evaluate
from ._tables.storage_formats import is_complex, sum_dtype
from .modes import FilterMode
from .sampler import Sampler, check_modes
from .texture import Texture

__all__ = ["spline_filter"]
__dir__ = listing(__all__)

Matrix = np.ndarray[Any, np.dtype[Any]]
# The inverse filter is truncated where its weights fall to this share of the largest, by the dtype of the sums.
NEGLIGIBLE = {"float32": 2.0**-30, "float64": 2.0**-56}
# The number of texels that shows how the inverse decays.
PERIOD = 256


@public
def spline_filter(texture: Texture, sampler: Sampler) -> Texture:
    """Returns the coefficients of the spline that passes through the texels, so that a read of them interpolates.

    A read with ``filter_mode="bspline"`` smooths the texels. If the texture holds these coefficients in place of its
    texels, the same read returns the texels at their centers, and a smooth curve between them.

    Args:
        texture: a `Texture` of one level, not a cubemap. Layers are filtered one by one.
        sampler: the sampler of the read, with ``filter_mode="bspline"``: its `spline_order` and its address modes
            determine the coefficients, and its `read_mode` determines which numbers integer texels stand for.

    Returns:
        A `Texture` of the same kind, shape and border color, in float32, or in float64 if the texels are float64;
        complex texels stay complex. Read it with the same address modes and order, and with ``read_mode="element"``.

    Gradients: with respect to texels and border color, in which the coefficients are linear, in forward and reverse
        mode.

    Precision: sums are computed in the dtype of the result. Coefficients are larger than texels, by a factor that grows
        with the order: up to 7.5 along each axis for order 5.

    Raises:
        ValueError: if the sampler has another filter, the texture has several levels, or it is a cubemap.
        TypeError: if arguments have the wrong type.

    Source: M. Unser, A. Aldroubi and M. Eden, "B-spline signal processing", 1993.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> sampler = jt.Sampler(filter_mode="bspline", normalized_coords=False)
        >>> texture = jt.texture1d(np.array([1.0, 4.0, 2.0])[:, None])
        >>> coefficients = jt.spline_filter(texture, sampler)
        >>> jt.sample(coefficients, (np.array([0.5, 1.5, 2.5]),), sampler)[:, 0].round(5)
        Array([1., 4., 2.], dtype=float32)
    """
    name = "spline_filter"
    check_texture(name, texture)
    if sampler.filter is not FilterMode.BSPLINE:
        raise ValueError(
            f"{name}: sampler has filter_mode={str(sampler.filter)!r}, expected 'bspline', the only filter that "
            f"has a prefilter; read the texture without spline_filter, or use filter_mode='bspline'."
        )
    if texture.kind.is_cube or texture.num_levels > 1:
        what = "a cubemap" if texture.kind.is_cube else f"a chain of {texture.num_levels} levels"
        raise ValueError(f"{name}: texture is {what}, expected one level of a 1D, 2D or 3D texture, layered or not.")
    check_modes(name, sampler, texture.kind.texel_ndim, texture.shape[-2])
    return _filtered(texture, sampler=sampler)


@typed_jit("sampler")
def _filtered(texture: Texture, *, sampler: Sampler) -> Texture:
    if is_complex(texture.dtype):
        return by_parts(_filtered, texture, sampler=sampler)
    dtype = sum_dtype(texture.dtype)
    texels, axes = decode(texture.texels, sampler.decoding, dtype), Layout.of(texture).axes(sampler)
    # Weights sum to one: the color, subtracted everywhere, leaves zero outside, and is added again afterwards.
    color = texture.border_color
    if color is None or not any(axis.address.has_outside for axis in axes):
        color = jnp.zeros((), dtype)
    color = jnp.broadcast_to(color.astype(dtype), (texture.num_channels,)).reshape(*[1] * (texels.ndim - 1), -1)
    texels = texels - color
    on_sphere = axes[-1].address is SPHERE
    if on_sphere:
        texels = filtered_on_sphere(texels, sampler.kernel)
    for k, axis in enumerate(reversed(axes)):
        if not on_sphere or k >= SPHERE.num_axes:
            texels = filtered_along(texels, texels.ndim - 2 - k, axis.kernel, axis.address)
    return Texture(texels + color, texture.border_color, texture.kind)


def filtered_on_sphere(values: jax.Array, kernel: FilterKernel) -> jax.Array:
    """The coefficients of longitudes and latitudes: a meridian and the one half a turn away are a circle."""
    x, y = values.ndim - 2, values.ndim - 3
    circles = circles_of_sphere(filtered_along(values, x, kernel, WRAP))
    return jax.lax.slice_in_dim(filtered_along(circles, y, kernel, WRAP), 0, values.shape[y], axis=y)


def circles_of_sphere(values: jax.Array) -> jax.Array:
    """Longitudes and latitudes, (..., H, W, C), as circles through the poles, (..., 2 H, W, C)."""
    x, y = values.ndim - 2, values.ndim - 3
    across = jnp.flip(jnp.roll(values, values.shape[x] // 2, x), y)
    return jnp.concatenate([values, across], y)


def filtered_along(values: jax.Array, axis: int, kernel: FilterKernel, rule: AddressRule) -> jax.Array:
    """The coefficients along one axis."""
    size, dtype = values.shape[axis], values.dtype
    if kernel.num_taps < 3:
        return values
    inverse = inverse_filter(kernel, NEGLIGIBLE[dtype.name])
    reach = len(inverse) - 1
    edge = 3 * reach
    if size <= 2 * edge:
        return times(np.linalg.inv(interpolation(kernel, rule, size)), values, axis)
    ends = extension(kernel, rule, reach, edge)
    near = [jax.lax.slice_in_dim(values, *span, axis=axis) for span in ((0, edge), (size - edge, size))]
    before, after = (times(end, jnp.concatenate(near, axis), axis) for end in ends)
    extended = jnp.concatenate([before, values, after], axis)
    return convolve(extended, inverse, axis)


def times(matrix: Matrix, values: jax.Array, axis: int) -> jax.Array:
    """A matrix times values along an axis."""
    product = jnp.tensordot(jnp.asarray(matrix, values.dtype), values, (1, axis), precision=jax.lax.Precision.HIGHEST)
    return jnp.moveaxis(product, 0, axis)


class Ends(NamedTuple):
    """The texels beyond both ends, from those near the ends."""

    before: Matrix
    after: Matrix


@functools.lru_cache
def extension(kernel: FilterKernel, rule: AddressRule, reach: int, edge: int) -> Ends:
    """The values of the spline at the centers of texels outside, `reach` of them on each side.

    The address rule extends the coefficients, and so the spline. With its values outside, the inverse filter is right
    up to the edge.
    """
    size = 2 * edge
    coefficients = np.linalg.inv(interpolation(kernel, rule, size))
    outside = (range(-reach, 0), range(size, size + reach))
    return Ends(*(interpolation(kernel, rule, size, np.asarray(rows)) @ coefficients for rows in outside))


def interpolation(kernel: FilterKernel, rule: AddressRule, size: int, rows: Any = None) -> Matrix:
    """The matrix from coefficients to the values at the centers of all texels, or of those in `rows`."""
    centers = np.arange(size) if rows is None else rows
    matrix, weights = np.zeros((len(centers), size)), np.array(center_weights(kernel))
    tap = (centers + kernel.first + np.arange(len(weights))[:, None]).astype(np.int32)
    assert rule.apply is not None
    index, inside = rule.apply(tap, size)
    share = weights[:, None] * (np.ones(tap.shape) if inside is None else inside)
    np.add.at(matrix, (np.broadcast_to(np.arange(len(centers)), tap.shape), index), share)
    return matrix


def center_weights(kernel: FilterKernel) -> list[float]:
    """The weights of a read at the center of a texel."""
    rows = cast(Polynomials, kernel.weights).rows
    return [float(cast(float, evaluate(row, cast(Any, 0.5 - kernel.origin)))) for row in rows]


@functools.lru_cache
def inverse_filter(kernel: FilterKernel, negligible: float) -> tuple[float, ...]:
    """The symmetric filter that inverts a read at the centers of texels, from its middle to one side."""
    weights = np.zeros(PERIOD)
    for k, weight in enumerate(center_weights(kernel)):
        weights[kernel.first + k] = weight
    inverse = np.fft.ifft(1 / np.fft.fft(weights).real).real[: PERIOD // 2]
    return tuple(inverse[: np.flatnonzero(abs(inverse) > negligible * inverse[0])[-1] + 1])
