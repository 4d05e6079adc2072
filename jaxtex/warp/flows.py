"""Operations on flows: integrate a velocity, compose two flows, invert a flow, and its Jacobian determinant.

A flow moves a point p to ``p + flow(p)``, in pixels. Between pixels it is interpolated like an image. Outside, it keeps
the value at its edge. If it fell to zero there, the map would fold wherever the flow at an edge is longer than a pixel.
"""

from typing import Any, NamedTuple

import jax
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_integer
from ..modes import AddressMode
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Arrays, displaced
from .fields import field_parameters, stacked
from .images import difference, warp_image
from .inverses import components_of, inverse_vectors, length, with_identity
from .matrices import determinant
from .options import AddressLike, Points, ReadOptions, resolve_sampler


@public(compiled=True)
def integrate_velocity(
    velocity: ArrayLike | Points,
    steps: int = 7,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
) -> jax.Array | Arrays:
    """Integrates a stationary velocity over one unit of time, by scaling and squaring.

    The flow starts as ``velocity / 2^steps`` and is composed with itself `steps` times. A smooth velocity gives a
    diffeomorphism, whose inverse is the flow of the negative velocity.

    Args:
        velocity: ``(..., H, W, 2)``, x before y, or ``(..., D, H, W, 3)``, in pixels; or a tuple of arrays ``(vx, vy)``
            or ``(vx, vy, vz)``. Leading axes are batches.
        steps: how many times the flow is doubled, a Python integer of at least 0. The first step should be shorter than
            half a pixel: choose ``2^steps`` at least twice the greatest speed.
        sampler: a `Sampler`, for options that have no argument here.
        filter_mode: as in `resample`; by default linear.
        address_mode: how a flow continues outside, as in `resample`; by default ``"clamp"``, the value at its edge.

    Returns:
        The flow in the form of `velocity`: one array, or a tuple of arrays.

    Gradients: of any order, in forward and reverse mode, with respect to `velocity`. Reverse mode stores one flow for
        each step.

    Raises:
        ValueError: if shapes do not fit, or `steps` is negative.

    Source: V. Arsigny et al., "A Log-Euclidean Framework for Statistics on Diffeomorphisms", 2006.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> x = np.arange(4.0) - 1.5
        >>> flow = jt.warp.integrate_velocity((0.1 * x[None, :], np.zeros((1, 4))), steps=10)
        >>> (flow[0][0, 2] / x[2]).round(3)  # a distance grows by exp(0.1)
        Array(0.105, dtype=float32)
    """
    name = "integrate_velocity"
    sampler = resolve_sampler(name, sampler, filter_mode, address_mode, AddressMode.CLAMP)
    flow = stacked(name, "velocity", velocity) / 2 ** as_integer(name, "steps", steps, 0)

    def doubled(flow: jax.Array, _: None) -> tuple[jax.Array, None]:
        return flow + moved(name, flow, flow, sampler), None

    # A loop: unrolled, XLA for CPUs would compile every step of reverse mode, and hold the temporaries of all at once.
    # On a GPU, a loop would copy the flow of each step, twice in reverse mode, and kernels have no temporaries.
    on_gpu = jax.default_backend() == "gpu"
    return in_form_of(velocity, jax.lax.scan(doubled, flow, length=steps, unroll=on_gpu)[0])


@public(compiled=True)
def compose_flows(
    first: ArrayLike | Points,
    second: ArrayLike | Points,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
) -> jax.Array | Arrays:
    """Returns the flow that warps an image like two flows in a row.

    ``composed(p) = second(p) + first(p + second(p))``, so that ``warp_flow(image, composed)`` equals
    ``warp_flow(warp_flow(image, first), second)``, but blurs only once. A point p moves to ``p + second(p)``, and from
    there along `first` to a point of the image.

    Args:
        first: the flow of the first warp: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, or a tuple of arrays, in pixels,
            as in `warp_flow`. It is interpolated between its pixels.
        second: the flow of the second warp. Its spatial shape is that of the result.
        sampler, filter_mode, address_mode: as in `integrate_velocity`.

    Returns:
        The composed flow, in the form of `second`: one array, or a tuple of arrays.

    Gradients: of any order, in forward and reverse mode, with respect to both flows.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> x = np.arange(4.0)[None, :]
        >>> jt.warp.compose_flows((10 * x, 0 * x), (np.ones((1, 4)), 0 * x))[0]
        Array([[11., 21., 31., 31.]], dtype=float32)
    """
    name = "compose_flows"
    sampler = resolve_sampler(name, sampler, filter_mode, address_mode, AddressMode.CLAMP)
    inner, outer = stacked(name, "first", first), stacked(name, "second", second)
    if inner.shape[-1] != outer.shape[-1]:
        raise ValueError(
            f"{name}: first has {inner.shape[-1]} components and second has {outer.shape[-1]}; expected two flows of "
            f"images, or two of volumes."
        )
    added = moved(name, inner, outer, sampler, "first")
    return in_form_of(second, jax.lax.broadcast_to_rank(outer, added.ndim) + added)


@public(compiled=True)
def invert_flow(
    flow: ArrayLike | Points,
    steps: int = 20,
    sampler: Sampler | None = None,
    *,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
) -> jax.Array | Arrays:
    """Returns the inverse of a flow, ``inverse(p) = -flow(p + inverse(p))``.

    A fixed-point iteration converges where `flow` differs between two points by less than their distance. If its
    derivative is at most c < 1, each step multiplies the error by at most c. Where the steps have not halved the error
    each, up to 30 steps of Newton's method follow, which may be damped. So flows of any derivative have inverses,
    unless they fold; where one folds, several points may be right, and one of them is found, or none. The exact inverse
    of ``integrate_velocity(velocity)`` is ``integrate_velocity(-velocity)``.

    Args:
        flow: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, or a tuple of arrays, in pixels, as in `warp_flow`.
        steps: the number of fixed-point iterations, a Python integer of at least 1.
        sampler, filter_mode, address_mode: as in `integrate_velocity`.

    Returns:
        The inverse, of the shape of `flow` and in its form: one array, or a tuple of arrays. It is NaN where no inverse
        was found: where ``inverse(p) + flow(p + inverse(p))`` is above 1e-4 of the size of the flow's longest axis, in
        float32.

    Gradients: of any order, in forward and reverse mode, with respect to `flow`, by the implicit function theorem. They
        are the derivatives of the fixed point, and store none of the steps. They are zero where the inverse is NaN, and
        not finite where the derivative of ``p + flow(p)`` is singular.

    Raises:
        ValueError: if shapes do not fit, or `steps` is below 1.

    Source: M. Chen et al., "A simple fixed-point approach to invert a deformation field", 2008; J. E. Dennis and R. B.
        Schnabel, "Numerical Methods for Unconstrained Optimization and Nonlinear Equations", 1983.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> x = np.arange(4.0) + 0.5
        >>> flow = 0.25 * x[None, :], np.zeros((1, 4))  # x goes to 1.25 x
        >>> jt.warp.invert_flow(flow)[0][0, 1].round(3)  # 1.2 goes to 1.5
        Array(-0.3, dtype=float32)
    """
    name = "invert_flow"
    sampler, count = (
        resolve_sampler(name, sampler, filter_mode, address_mode, AddressMode.CLAMP),
        as_integer(name, "steps", steps, 1),
    )
    return in_form_of(flow, inverted_flow(stacked(name, "flow", flow), count, sampler))


@public(compiled=True)
def jacobian_determinant(flow: ArrayLike | Points) -> jax.Array:
    """Returns the Jacobian determinant of ``p + flow(p)``: the factor by which this map scales area or volume.

    It is 1 where sizes do not change, and 0 or less where the map folds. Derivatives are central differences of the
    flow, and one-sided differences at the edges.

    Args:
        flow: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, or a tuple of arrays, in pixels, as in `warp_flow`.

    Returns:
        ``(..., H, W)`` or ``(..., D, H, W)``.

    Gradients: of any order, in forward and reverse mode, with respect to `flow`.

    Raises:
        ValueError: if shapes do not fit.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> y, x = np.mgrid[:3, :3]
        >>> jt.warp.jacobian_determinant((0.5 * x, 1.0 * y))[0]
        Array([3., 3., 3.], dtype=float32)
    """
    array = stacked("jacobian_determinant", "flow", flow)
    components = components_of(array)
    slopes = [[difference(c, -1 - k) for k in range(len(components))] for c in components]
    return determinant(with_identity(slopes))


# The maps of flows


def in_form_of(given: Any, flow: jax.Array) -> jax.Array | Arrays:
    """A flow as a tuple of arrays, if `given` is one."""
    return components_of(flow) if isinstance(given, tuple | list) else flow


def moved(name: str, image: jax.Array, flow: jax.Array, sampler: Sampler, argument: str = "flow") -> jax.Array:
    """An image that the caller passed as `argument`, moved by a flow."""
    parameters, shape = field_parameters(name, "flow", flow)
    return warp_image(name, image, displaced, parameters, shape, ReadOptions(sampler), argument=argument)


def inverted_flow(flow: jax.Array, steps: int, sampler: Sampler) -> jax.Array:
    """The inverse of a flow, by `steps` iterations, and then Newton's method where these have not converged."""
    size = max(flow.shape[-1 - flow.shape[-1] : -1]) + length(flow)
    return inverse_vectors(AlongFlow(sampler), steps - 1, -flow, size, (flow,))


class AlongFlow(NamedTuple):
    """The vectors of a flow at the points to which vectors lead from the centers of its pixels."""

    sampler: Sampler

    def __call__(self, vectors: jax.Array, flow: jax.Array) -> jax.Array:
        return moved("invert_flow", flow, vectors, self.sampler)
