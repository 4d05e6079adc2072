"""Forward warps against a loop over pixels, what the modes promise, and finite differences."""

import itertools

import jax
import numpy as np

import jaxtex as jt
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named

SIZE = 6, 8
forward_warp = jt.warp.forward_warp


def draw(size=SIZE, seed=0, dtype=np.float64):
    """Image, flow and importance; some pixels leave the image, none lands near the center of another."""
    rng = np.random.default_rng(seed)
    image, importance = rng.normal(size=(*size, 2)), rng.normal(size=size)
    flow = rng.integers(-2, 3, (*size, 2)) + rng.uniform(0.1, 0.9, (*size, 2))
    return tuple(a.astype(dtype) for a in (image, flow, importance))


def reference(image, flow, importance=None, *, mode, shape=None):
    """Each pixel spread over the two by two around it, one after the other: the result, and the coverage."""
    height, width = shape or image.shape[:2]
    score = np.zeros(image.shape[:2]) if importance is None else importance
    weights = {"sum": np.ones_like(score), "average": np.ones_like(score), "linear": score, "softmax": np.exp(score)}
    total, weight, coverage = np.zeros((height, width, image.shape[-1])), *np.zeros((2, height, width))
    for row, column in np.ndindex(*image.shape[:2]):
        x, y = np.array([column, row]) + flow[row, column]
        left, top = np.floor([x, y]).astype(int)
        for i, j in itertools.product((top, top + 1), (left, left + 1)):
            if 0 <= i < height and 0 <= j < width:
                part = (1 - abs(y - i)) * (1 - abs(x - j))
                counts = part * weights[mode][row, column]
                total[i, j] += counts * image[row, column]
                weight[i, j] += counts
                coverage[i, j] += part
    if mode != "sum":
        total = np.where(weight[..., None] > 0, total / np.where(weight > 0, weight, 1)[..., None], 0)
    return total, coverage


@jax.jit
def with_gradients(*given):
    """The result, with reproducible sums as well, and the gradients of its square."""
    again = forward_warp(*given, sampler=jt.Sampler(deterministic=True))
    return forward_warp(*given), again, jax.grad(lambda *given: (forward_warp(*given) ** 2).sum(), (0, 1, 2))(*given)


def test_modes_equal_a_loop_over_pixels():
    image, flow, importance = draw(dtype=np.float32)
    shapes = {"sum": None, "average": (5, 11), "linear": (5, 11), "softmax": None}
    given = {"linear": np.abs(importance), "softmax": importance}
    step = np.full(SIZE, 2.0, np.float32), -1.0

    @jax.jit
    def run(image, flow, given):
        warp = lambda mode: forward_warp(image, flow, given.get(mode), shapes[mode], mode=mode, return_coverage=True)
        around = (
            forward_warp(image, step, address_mode="wrap"),
            forward_warp(image, flow, address_mode="wrap", mode="sum"),
        )
        return {mode: warp(mode) for mode in shapes}, forward_warp(image, step, return_coverage=True), around

    modes, (moved, coverage), (around, total) = jax.device_get(run(image, flow, given))
    for mode, found in modes.items():
        expected, expected_coverage = reference(image, flow, given.get(mode), mode=mode, shape=shapes[mode])
        with named(mode):
            # A mean of few pixels divides by their weight, here 0.01 at least.
            assert_close("point", found[0], expected, 100 * np.abs(image).max())
            assert_close("sum", found[1], expected_coverage, SIZE[0] * SIZE[1])
    # Whole steps are exact and leave holes, and sums are conserved.
    assert_exact(moved, np.pad(image[1:, :-2], ((0, 1), (2, 0), (0, 0))))
    assert_exact(coverage, np.pad(np.ones((SIZE[0] - 1, SIZE[1] - 2)), ((0, 1), (2, 0))))
    assert_exact(around, np.roll(image, (-1, 2), (0, 1)))
    assert_close("sum", total.sum((0, 1)), image.astype(np.float64).sum((0, 1)), np.abs(image).sum())


def test_what_is_far_hides_what_is_farther():
    """Whatever lies in front elsewhere: of the pixels that meet, the greatest importance is taken off."""
    image, flow, drawn = draw(dtype=np.float32)
    hidden = np.where(np.arange(SIZE[1]) < 4, -1e6, 1e6 + drawn).astype(np.float32)  # and seen where it lands alone
    for importance in (drawn, 300 * drawn, hidden):
        total, weight = np.zeros(image.shape), np.zeros(SIZE)
        for target in np.ndindex(*SIZE):
            y, x = (np.indices(SIZE)[k] + np.float64(flow[..., 1 - k]) - target[k] for k in (0, 1))
            share = np.maximum(1 - abs(y), 0) * np.maximum(1 - abs(x), 0)
            if (share > 0).any():
                part = share * np.exp(np.minimum(np.float64(importance) - importance[share > 0].max(), 0))
                weight[target], total[target] = part.sum(), (part[..., None] * image).sum((0, 1))
        expected = total / np.where(weight > 0, weight, 1)[..., None]
        *found, gradients = with_gradients(image, flow, importance)
        for each in found:
            assert_close("point", each, expected, 1000 * np.abs(image).max())
        assert all(np.isfinite(a).all() for a in gradients)


def test_what_is_not_finite_lands_nowhere():
    image, flow, importance = draw(dtype=np.float32)
    broken, away = flow.copy(), flow.copy()
    broken[2, 3], broken[4, 1, 0], broken[1, 2, 1] = np.inf, np.nan, np.nan
    away[2, 3] = away[4, 1] = away[1, 2] = 1e4
    found, _, (to_image, to_flow, _) = jax.device_get(with_gradients(image, broken, importance))
    assert_exact(found, with_gradients(image, away, importance)[0])
    assert np.isfinite(to_image).all()
    assert np.isfinite(to_flow).all()
    assert_exact(to_flow[2, 3], np.zeros(2))


def test_pixels_on_one_place():
    """As the importance of one grows it hides the other; and one that has just begun to move has no part yet."""
    image = np.float32([[[1.0], [2.0], [5.0]]])
    line = lambda dx, score: forward_warp(image, (dx, np.float32(0)), score)[0, :, 0]
    with_slopes = jax.jit(lambda *given: (line(*given), jax.jacobian(line)(*given)[:, 0]))
    run = lambda dx, score: jax.device_get(with_slopes(np.float32([dx]), np.float32([score])))
    one, two = np.exp([-2, 2])
    for z, expected in ((-1e4, 2), (-2, (one + 2) / (one + 1)), (0, 1.5), (2, (two + 2) / (two + 1)), (1e4, 1)):
        with named(z):
            assert_close("float32", run([1, 0, 0], [z, 0, 0])[0][1], expected, 2)
    # Without a flow a pixel has no part of its neighbor, however important, but the slope of one to the right.
    seen, slopes = run([0, 0, 0], [0, -1, 1])
    assert_close("float32", seen, image[0, :, 0], 8)
    assert_close("float32", slopes, [[0, 0, 0], [-np.exp(1), 0, 0], [0, -3 * np.exp(-2), 0]], 32)
    assert_exact(run([0, 0, 0], [1e9, -1e9, 1e9])[0], image[0, :, 0])
    # An importance that is not finite counts where it lands alone.
    assert_close("float32", run([1, 0, 0], [-np.inf] * 3)[0], [0, 1.5, 5], 5)
    assert_close("float32", run([1, 0, 0], [0, 0, np.nan])[0][:2], [0, 1.5], 2)
    # Under the point filter a pixel lands whole.
    whole = forward_warp(
        image, (np.float32([[0.9, 0, 0]]), np.float32(0)), np.float32([[1, 0, 0]]), filter_mode="point"
    )
    assert_close("float32", whole[0, :, 0], [0, (np.exp(1) + 2) / (np.exp(1) + 1), 5], 5)


def test_batches_broadcast_and_bytes_round():
    images = np.random.default_rng(0).integers(0, 256, (3, 1, *SIZE, 2), np.uint8)
    flows = np.stack([draw(seed=k, dtype=np.float32)[1] for k in range(2)])
    importance = draw(dtype=np.float32)[2]
    one = lambda images, flows: forward_warp(images[2, 0], flows[1], importance, dtype=np.float32)
    run = jax.jit(lambda *given: (forward_warp(*given, importance, return_coverage=True), one(*given)))
    (out, coverage), expected = jax.device_get(run(images, flows))
    assert (out.shape, coverage.shape) == ((3, 2, *SIZE, 2), (3, 2, *SIZE))
    assert_exact(out[2, 1], np.round(expected), np.uint8)


def test_gradients_to_image_flow_and_importance(x64):
    assert_derivatives(forward_warp, *draw((3, 4)))
