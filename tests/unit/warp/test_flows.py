"""Velocities, composed and inverted flows, Jacobians: against SciPy, exact solutions and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import map_coordinates, zoom

from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_cases_close, assert_close, assert_exact, named

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
    return tuple(jnp.moveaxis(flow, -1, 0))


@pytest.mark.parametrize("ndim", [2, 3])
def test_flows_are_those_of_scipy(ndim):
    """Integrated, composed, inverted, and their Jacobians; as arrays, as tuples of components, and several at once."""
    velocity, flow = drawn(ndim), drawn(ndim, 0.4)
    first, second = drawn(ndim, 0.5, seed=1), drawn(ndim, 0.5, seed=2)

    @jax.jit
    def run(velocity, first, second, flow):
        results = {
            "integrated": warp.integrate_velocity(velocity, 4),
            "composed, a tuple": jnp.stack(warp.compose_flows(first, as_tuple(second)), -1),
            "inverse": warp.invert_flow(flow, 60),
            "determinant": warp.jacobian_determinant(velocity)[..., None],
        }
        if ndim == 3:
            return results
        several = warp.integrate_velocity(as_tuple(jnp.stack([velocity, -velocity])), 4)
        return results | {
            "integrated, several": jnp.stack(several, -1)[0],
            "no steps": warp.integrate_velocity(velocity, 0),
            "there and back": warp.compose_flows(flow, results["inverse"]),
        }

    found = jax.device_get(run(velocity, first, second, flow))
    integrated = velocity.astype(np.float64) / 16
    for _ in range(4):
        integrated = integrated + moved(integrated, integrated)
    # x is the last axis.
    slopes = [np.stack(np.gradient(velocity[..., k])[::-1], -1) for k in range(ndim)]
    expected = {
        "integrated": integrated,
        "no steps": velocity,
        "composed": second + moved(first.astype(np.float64), second),
        "there and back": 0 * flow,
        "inverse": -moved(flow.astype(np.float64), np.float64(found["inverse"])),
        "determinant": np.linalg.det(np.stack(slopes, -2).astype(np.float64) + np.eye(ndim))[..., None],
    }
    assert_cases_close("float32", found, {name: expected[name.split(",")[0]] for name in found}, 4)


def test_reverse_mode_keeps_less_than_steps_by_hand():
    def by_hand(velocity):
        flow = velocity / 2**4
        for _ in range(4):
            flow = flow + warp.warp_flow(flow, flow, address_mode="clamp")
        return flow

    def kept(function):
        pull = jax.eval_shape(lambda v: jax.vjp(function, v)[1], np.zeros((96, 96, 2), np.float32))
        return sum(leaf.size for leaf in jax.tree.leaves(pull))

    assert kept(lambda v: warp.integrate_velocity(v, 4)) <= kept(by_hand)


def test_an_inverse_of_a_steep_flow():
    """x goes to (1 + c) x about the middle, exact between the pixels; where p + inverse is inside, and of any order.

    Of a flow that is not steep, each step looks once more.
    """
    offset = np.broadcast_to(np.arange(24, dtype=np.float32) - 11.5, (3, 24))
    tangent = np.stack([offset, 0 * offset], -1)

    @jax.jit
    def run(flow):
        inverse, change = jax.jvp(warp.invert_flow, (flow,), (tangent,))
        return inverse, change, warp.compose_flows(flow, inverse), warp.invert_flow(0.25 * tangent, 3)

    for factor in (-0.8, 0.95, 1.5, 6.0):
        flow = factor * tangent
        inverse, change, back, third = jax.device_get(run(flow))
        expected = -factor / (1 + factor) * offset
        inside = np.abs(offset + expected) < 11.5
        # c + dc moves the inverse by -dc / (1 + c)^2 of the offset.
        inner = np.abs(offset) < (9 if factor > 0 else 1.5)
        with named(factor):
            assert inside.any()
            assert_exact(third[..., 0], -0.25 * (1 - 0.25 * (1 - 0.25)) * offset)
            assert_close("float32", inverse[inside, 0], expected[inside], 64)
            assert_close("float32", back, 0 * flow, 64)
            assert_close("float32", change[inner, 0], -(offset / (1 + factor) ** 2)[inner], 512)


def test_an_inverse_of_a_flow_that_stretches():
    """The flow of a fast velocity, whose derivative is above 1: it leads back, or the inverse is NaN and says so."""

    @jax.jit
    def run(velocity):
        flow = warp.integrate_velocity(velocity, 8)
        inverse = warp.invert_flow(flow)
        iterated = jax.lax.fori_loop(0, 20, lambda _, v: -warp.warp_flow(flow, v, address_mode="clamp"), -flow)
        return warp.compose_flows(flow, inverse), inverse, warp.compose_flows(flow, iterated)

    back, inverse, of_iterated = map(np.asarray, run(drawn(2, 4.0, seed=4)))
    found = np.isfinite(inverse).all(-1)
    assert found.mean() > 0.97
    assert_close("float32", back[found], 0 * back[found], 128)
    assert np.abs(of_iterated).max() > 1


def test_an_inverse_that_does_not_exist_is_nan_and_has_no_gradient():
    """The pixels of a flow that is NaN, and of one under which all points leave a part of the image."""
    x = np.arange(16, dtype=np.float32) + 0.5
    gap = np.broadcast_to(np.where(x < 8, -20, 20), (4, 16)).astype(np.float32)
    broken = drawn(2, 0.4)
    broken[2, 3] = np.nan

    @jax.jit
    def run(flow, broken):
        of_finite = lambda f: (lambda inverse: (jnp.nansum(inverse), inverse))(warp.invert_flow(f))
        return warp.invert_flow(flow, filter_mode="point"), jax.value_and_grad(of_finite, has_aux=True)(broken)

    everywhere, ((_, inverse), gradient) = jax.device_get(run(np.stack([gap, 0 * gap], -1), broken))
    assert np.isnan(everywhere).all()
    assert 0 < np.isnan(inverse).any(-1).sum() < 20
    assert np.isfinite(gradient[5:, 6:]).all()


@pytest.mark.slow
def test_derivatives_of_every_order(x64):
    """Of all functions at once."""
    velocity = drawn(2, 0.5, np.float64)[:4, :5]
    flow = drawn(2, 0.2, np.float64, seed=3)[:4, :5] + 0.11

    def functions(velocity, flow):
        found = (
            warp.integrate_velocity(velocity, 2),
            warp.compose_flows(flow, velocity + 0.21),
            warp.invert_flow(flow, 60, filter_mode="cubic"),
            warp.jacobian_determinant(flow),
        )
        return jnp.concatenate([a.ravel() for a in found])

    assert_derivatives(functions, velocity, flow)


def test_the_gradient_of_an_inverse_is_that_of_many_iterations():
    flow, cotangent, tangent = drawn(3, 0.4), drawn(3, seed=5), drawn(3, seed=6)

    def iterated(flow):
        inverse = jax.lax.fori_loop(0, 60, lambda _, v: -warp.warp_flow(flow, v, address_mode="clamp"), -flow)
        return jnp.vdot(cotangent, inverse)

    ours = lambda flow: jnp.vdot(cotangent, warp.invert_flow(flow, 60))
    run = jax.jit(lambda flow: (jax.jvp(iterated, (flow,), (tangent,))[1], jax.grad(ours)(flow)))
    by_hand, gradient = map(np.asarray, run(flow))
    assert_close("sum", np.vdot(gradient, tangent), by_hand, np.abs(gradient).sum())


def test_jacobian_determinants_of_a_mirror_and_of_one_pixel():
    """An axis of one pixel has no slope."""
    mirrored = -2 * centers((4, 4), np.float32)[..., :1] * np.float32([1, 0])
    assert_exact(warp.jacobian_determinant(mirrored), np.full((4, 4), -1, np.float32))
    assert_exact(warp.jacobian_determinant(np.ones((1, 1, 2), np.float32)), np.ones((1, 1), np.float32))
