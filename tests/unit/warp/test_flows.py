"""Velocities, composed and inverted flows, Jacobians: against SciPy, exact solutions and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.ndimage import map_coordinates, zoom

from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact

SHAPES = {2: (9, 12), 3: (6, 7, 8)}


def centers(shape, dtype=np.float64):
    """The centers of pixels, x first, behind the spatial axes."""
    return np.stack(np.indices(shape)[::-1], -1).astype(dtype) + 0.5


def drawn(ndim, length=1.0, dtype=np.float32, seed=0):
    """A flow that changes slowly, so that it does not fold."""
    coarse = np.random.default_rng(seed).normal(size=(*[3] * ndim, ndim))
    factors = *(n / 3 for n in SHAPES[ndim]), 1
    return np.asarray(length * zoom(coarse, factors, order=1, mode="nearest", grid_mode=True), dtype)


def moved(image, flow):
    """An image at the points to which a flow leads, by SciPy; outside it goes on as at its edge."""
    at = np.moveaxis(centers(flow.shape[:-1]) + flow - 0.5, -1, 0)[::-1]
    channels = [map_coordinates(image[..., k], at, order=1, mode="nearest") for k in range(image.shape[-1])]
    return np.stack(channels, -1)


def as_tuple(flow):
    return tuple(np.moveaxis(flow, -1, 0))


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_velocity_is_scaled_and_squared(ndim):
    velocity = drawn(ndim)
    expected = velocity.astype(np.float64) / 16
    for _ in range(4):
        expected = expected + moved(expected, expected)
    flow = warp.integrate_velocity(velocity, 4)
    assert_close("float32", flow, expected, 16)
    assert_exact(np.stack(warp.integrate_velocity(as_tuple(velocity), 4), -1), flow)
    several = np.stack([velocity, -velocity])
    assert_exact(np.asarray(warp.integrate_velocity(several, 4))[0], flow)
    assert_exact(np.asarray(jax.jit(jax.vmap(lambda v: warp.integrate_velocity(v, 4)))(several))[0], flow)
    assert_exact(warp.integrate_velocity(velocity, 0), velocity)


def test_a_linear_velocity_has_an_exponential(x64):
    """Where no point leaves the picture: a linear read of a linear field is exact."""
    matrix, middle = np.array([[0.1, -0.3], [0.3, 0.05]]), np.array([16.0, 16.0])
    offset = centers((32, 32)) - middle
    flow = warp.integrate_velocity(offset @ matrix.T, steps=24)
    expected = offset @ (expm(matrix) - np.eye(2)).T
    inside = np.s_[8:24, 8:24]
    # The first step is linear in time: what it neglects is the square of its length.
    assert_close("float32", np.asarray(flow)[inside], expected[inside], 16)


def test_reverse_mode_takes_less_memory_than_steps_by_hand():
    def by_hand(velocity):
        flow = velocity / 2**4
        for _ in range(4):
            flow = flow + warp.warp_flow(flow, flow, address="clamp")
        return flow

    velocity = np.zeros((96, 96, 2), np.float32)

    def temporaries(function):
        pulled = jax.jit(lambda v, c: jax.vjp(function, v)[1](c))
        return pulled.lower(velocity, velocity).compile().memory_analysis().temp_size_in_bytes

    assert temporaries(lambda v: warp.integrate_velocity(v, 4)) <= temporaries(by_hand)


@pytest.mark.parametrize("ndim", [2, 3])
def test_composed_flows_warp_as_two_warps(ndim):
    first, second = drawn(ndim, 0.5, seed=1), drawn(ndim, 0.5, seed=2)
    composed = warp.compose_flows(first, second)
    assert_close("float32", composed, second + moved(first.astype(np.float64), second), 16)
    assert_exact(np.stack(warp.compose_flows(first, as_tuple(second)), -1), composed)
    # A linear read of an image of positions is exact within it.
    image = centers(SHAPES[ndim], np.float32)
    twice = warp.warp_flow(warp.warp_flow(image, first), second)
    inside = tuple(slice(3, -3) for _ in range(ndim)) if ndim == 2 else np.s_[2:-2, 3:-3, 3:-3]
    assert_close("float32", np.asarray(warp.warp_flow(image, composed))[inside], np.asarray(twice)[inside], 16)


@pytest.mark.parametrize("ndim", [2, 3])
def test_an_inverse_leads_back(ndim):
    flow = drawn(ndim, 0.4)
    inverse = warp.invert_flow(flow, 60)
    assert_close("float32", inverse, -moved(flow.astype(np.float64), np.float64(inverse)), 8)
    assert_close("float32", warp.compose_flows(flow, inverse), 0 * flow, 8)
    assert_exact(np.stack(warp.invert_flow(as_tuple(flow), 60), -1), inverse)


@pytest.mark.parametrize("factor", [-0.8, 0.95, 1.5, 6.0])
def test_an_inverse_of_a_steep_flow(factor):
    """x goes to (1 + c) x about the middle, exact between the pixels; where p + inverse is inside, and of any order."""
    offset = np.broadcast_to(np.arange(24, dtype=np.float32) - 11.5, (3, 24))
    flow = np.stack([factor * offset, 0 * offset], -1)
    expected = -factor / (1 + factor) * offset
    inside = np.abs(offset + expected) < 11.5
    inverse = np.asarray(warp.invert_flow(flow))
    assert inside.any()
    assert_close("float32", inverse[inside, 0], expected[inside], 64)
    assert_close("float32", warp.compose_flows(flow, inverse), 0 * flow, 64)
    assert_exact(np.asarray(jax.vmap(warp.invert_flow)(np.stack([flow, 0.1 * flow])))[0], inverse)
    # c + dc moves the inverse by -dc / (1 + c)^2 of the offset.
    tangent = np.stack([offset, 0 * offset], -1)
    change = jax.jvp(warp.invert_flow, (flow,), (tangent,))[1]
    inner = np.abs(offset) < (9 if factor > 0 else 1.5)
    assert_close("float32", change[inner, 0], -(offset / (1 + factor) ** 2)[inner], 512)


@pytest.mark.parametrize("ndim", [2, 3])
def test_an_inverse_of_a_flow_that_stretches(ndim):
    """The flow of a fast velocity, whose derivative is above 1: it leads back, or the inverse is NaN and says so."""
    flow = np.asarray(warp.integrate_velocity(drawn(ndim, 4.0 if ndim == 2 else 2.5, seed=4), 8))
    inverse = np.asarray(warp.invert_flow(flow))
    found = np.isfinite(inverse).all(-1)
    assert found.mean() > 0.97
    assert_close("float32", np.asarray(warp.compose_flows(flow, inverse))[found], 0 * flow[found], 128)
    iterated = jax.lax.fori_loop(0, 20, lambda _, v: -warp.warp_flow(flow, v, address="clamp"), -flow)
    assert np.abs(warp.compose_flows(flow, iterated)).max() > 1


def test_an_inverse_that_does_not_exist_is_nan_and_has_no_gradient():
    """The pixels of a flow that is NaN, and of one under which all points leave a part of the image."""
    x = np.arange(16, dtype=np.float32) + 0.5
    gap = np.broadcast_to(np.where(x < 8, -20, 20), (4, 16)).astype(np.float32)
    flow = np.stack([gap, 0 * gap], -1)
    inverse = np.asarray(warp.invert_flow(flow, filter="point"))
    assert np.isnan(inverse).all()
    broken = drawn(2, 0.4)
    broken[2, 3] = np.nan
    inverse = warp.invert_flow(broken)
    assert 0 < np.isnan(inverse).any(-1).sum() < 20
    gradient = jax.grad(lambda f: jnp.nansum(warp.invert_flow(f)))(broken)
    assert np.isfinite(gradient[5:, 6:]).all()


def test_each_step_of_an_inverse_looks_once_more():
    x = np.broadcast_to(np.arange(8, dtype=np.float32) + 0.5, (3, 8))
    flow = np.stack([0.25 * x, 0 * x], -1)  # exact between the pixels
    inverse = np.float32(0)
    for steps in range(1, 5):
        inverse = -0.25 * (x[1, 1:4] + inverse)
        assert_exact(warp.invert_flow(flow, steps)[1, 1:4, 0], inverse)


@pytest.mark.slow
def test_derivatives_of_every_order(x64):
    """Of all functions at once."""
    velocity = drawn(2, 0.5, np.float64)[:4, :5]
    flow = drawn(2, 0.2, np.float64, seed=3)[:4, :5] + 0.11

    def functions(velocity, flow):
        found = (
            warp.integrate_velocity(velocity, 2),
            warp.compose_flows(flow, velocity + 0.21),
            warp.invert_flow(flow, 60, filter="cubic"),
            warp.jacobian_determinant(flow),
        )
        return jnp.concatenate([a.ravel() for a in found])

    assert_derivatives(functions, velocity, flow)


def test_the_gradient_of_an_inverse_is_that_of_many_iterations():
    flow, cotangent, tangent = drawn(3, 0.4), drawn(3, seed=5), drawn(3, seed=6)

    def iterated(flow):
        inverse = jax.lax.fori_loop(0, 60, lambda _, v: -warp.warp_flow(flow, v, address="clamp"), -flow)
        return jnp.vdot(cotangent, inverse)

    by_hand = jax.jit(jax.jvp, static_argnums=0)(iterated, (flow,), (tangent,))[1]
    gradient = np.asarray(jax.jit(jax.grad(lambda f: jnp.vdot(cotangent, warp.invert_flow(f, 60))))(flow))
    assert_close("sum", np.vdot(gradient, tangent), by_hand, np.abs(gradient).sum())


def test_jacobian_determinants():
    for ndim in (2, 3):
        flow = drawn(ndim)
        # x is the last axis.
        slopes = [np.stack(np.gradient(flow[..., k])[::-1], -1) for k in range(ndim)]
        expected = np.linalg.det(np.stack(slopes, -2).astype(np.float64) + np.eye(ndim))
        assert_close("float32", warp.jacobian_determinant(flow), expected, 4)
        assert_exact(warp.jacobian_determinant(as_tuple(flow)), warp.jacobian_determinant(flow))
    mirrored = -2 * centers((4, 4), np.float32)[..., :1] * np.float32([1, 0])
    assert_exact(warp.jacobian_determinant(mirrored), np.full((4, 4), -1, np.float32))
    # An axis of one pixel has no slope.
    assert_exact(warp.jacobian_determinant(np.ones((1, 1, 2), np.float32)), np.ones((1, 1), np.float32))
