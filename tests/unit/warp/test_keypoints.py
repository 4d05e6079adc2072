"""Points and boxes that follow a warp: against NumPy and SciPy, and against where images show them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.ndimage import map_coordinates, zoom

import jaxtex as jt
from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.host_kernels import noted_kernels
from tests.support.tolerances import assert_cases_close, assert_close, assert_exact, named

SIZES = {2: (30, 40), 3: (20, 24, 28)}
SMOOTH = jt.Sampler(filter_mode="cubic")


def swirl(x, y, turn, radius):
    dx, dy = x - 20, y - 15
    angle = turn * jnp.exp(-(dx * dx + dy * dy) / (radius * radius))
    return 20 + jnp.cos(angle) * dx - jnp.sin(angle) * dy, 15 + jnp.sin(angle) * dx + jnp.cos(angle) * dy


def bend(x, y, z, height):
    return x + height * jnp.sin(y / 6), y, z + height * jnp.cos(x / 7)


def parabola(x, y):
    return x + 0.1 * (y - 4) ** 2, y


def square(x, y):
    return x * x / 8, y


def of_numpy(transform, points):
    """One transform of points (P, n), output to image, in float64."""
    ndim = points.shape[-1]
    if isinstance(transform, tuple):
        function, *parameters = transform
        if function is swirl:
            away = points - [20, 15]
            angle = parameters[0] * np.exp(-(away**2).sum(-1) / parameters[1] ** 2)
            turned = (away[:, 0] + 1j * away[:, 1]) * np.exp(1j * angle)
            return np.stack([20 + turned.real, 15 + turned.imag], -1)
        x, y, z = points.T
        return np.stack([x + parameters[0] * np.sin(y / 6), y, z + parameters[0] * np.cos(x / 7)], -1)
    transform = np.float64(transform)
    if transform.ndim > 2:
        at = (points - 0.5).T[::-1]
        return points + np.stack(
            [map_coordinates(transform[..., k], at, order=1, mode="nearest") for k in range(ndim)], -1
        )
    mapped = np.column_stack([points, np.ones(len(points))]) @ transform.T
    return mapped[:, :ndim] / (mapped[:, ndim:] if len(transform) > ndim else 1)


def to_image(chain, points):
    for transform in chain:
        points = of_numpy(transform, points)
    return points


def drawn(ndim, count=50):
    """A chain of a homography, a flow on its own grid, an affine map and a function, and points inside."""
    rng = np.random.default_rng(ndim)
    sizes = np.float64(SIZES[ndim][::-1])
    near = lambda rows, scale: scale * np.eye(rows, ndim + 1) + 0.02 * rng.normal(size=(rows, ndim + 1))
    tilt = near(ndim + 1, 1.0)
    tilt[-1, :-1] = 3e-4
    tilt[-1, -1] = 1.2
    into, out = np.eye(ndim, ndim + 1) / 4, 4.0 * near(ndim, 1.0)
    flow = 0.2 * rng.normal(size=(*(n // 4 for n in SIZES[ndim]), ndim))
    function = (swirl, 0.6, 12.0) if ndim == 2 else (bend, 1.5)
    chain = [tilt, into, flow, out, function]
    cast = lambda t: t if isinstance(t, tuple) else t.astype(np.float32)
    return [*map(cast, chain)], (rng.uniform(0.1, 0.9, (count, ndim)) * sizes).astype(np.float32)


def test_points_of_a_chain_are_those_of_numpy():
    """To the image where NumPy leads, and to the output, from where NumPy leads back; outside, too."""

    for ndim in (2, 3):
        chain, points = drawn(ndim)
        points[:3] = -8, *(50, 3.5)[: ndim - 1]
        run = jax.jit(lambda p: [warp.warp_points(p, chain, to=place) for place in ("image", "output")])  # noqa: B023
        forward, back = jax.device_get(run(points))
        with named(ndim):
            assert forward.dtype == np.float32
            assert_close("float32", forward, to_image(chain, np.float64(points)), 32)
            assert_close("float32", to_image(chain, np.float64(back)), points, 128)


def blob(shape, center, width=3.0):
    away = sum((c - q) ** 2 for c, q in zip(np.indices(shape)[::-1], center - 0.5))
    return np.exp(-away / (2 * width**2)).astype(np.float32)[..., None]


def peak_of(picture, reach=1):
    """Where the parabola through the logarithms around the brightest pixel is highest: the peak of a Gaussian."""
    brightest = np.array(np.unravel_index(picture[..., 0].argmax(), picture.shape[:-1]))
    around = tuple(slice(k - reach, k + reach + 1) for k in brightest)
    values = np.log(np.float64(picture[..., 0][around])).ravel()
    steps = np.indices([2 * reach + 1] * len(brightest)).reshape(len(brightest), -1) - reach
    first, second = np.triu_indices(len(brightest))
    terms = np.linalg.lstsq(np.stack([values**0, *steps, *steps[first] * steps[second]], -1), values, None)[0]
    gradient, curvature = terms[1 : 1 + len(brightest)], np.zeros([len(brightest)] * 2)
    curvature[first, second] = terms[1 + len(brightest) :]
    return (brightest + np.linalg.solve(curvature + curvature.T, -gradient))[::-1] + 0.5


def test_a_bright_blob_is_seen_where_its_center_goes():
    """In images and volumes, through matrices, a flow and a function; also after a flip and a crop."""

    @jax.jit
    def run(image, center, chain, more):
        chain = chain if more.size == 0 else [more, *chain]
        size = image.shape[:-1]
        return warp.warp_chain(image, chain, size, filter_mode="cubic"), warp.warp_points(center, chain, size)

    for ndim in (2, 3):
        size = SIZES[ndim]
        center = np.float32([0.45, 0.55, 0.5][:ndim]) * np.float32(size[::-1])
        coarse = 0.2 * np.random.default_rng(5).normal(size=(*[3] * ndim, ndim))
        flow = zoom(coarse, (*(n / 3 for n in size), 1), order=3, mode="nearest", grid_mode=True).astype(np.float32)
        flip = np.eye(ndim, ndim + 1, dtype=np.float32)
        flip[0, 0], flip[0, -1] = -1, size[-1] - 6
        turned = np.eye(ndim, ndim + 1, dtype=np.float32) * 1.1
        turned[:2, :2] += np.float32([[0, 0.2], [-0.2, 0]])
        turned[:, -1] = center - turned[:, :-1] @ (center + 1)
        for chain, more in (([flow], flip), ([turned, flow], flip[:, :0])):
            picture, moved = jax.device_get(run(blob(size, center), center, chain, more))
            with named((ndim, len(chain))):
                assert np.abs(moved - center).max() > 0.5
                assert_close("peak of a blob", peak_of(picture), moved, 1)


def test_a_function_shows_a_blob_where_its_center_goes():
    """A function with parameters, a number for each image."""
    center, turns = np.float32([[14.2, 12.3]]), np.float32([0.4, -0.5])

    @jax.jit
    def run(image, turns):
        chain = [(swirl, turns, 30.0)]
        alone = jax.vmap(lambda turn: warp.warp_points(center, [(swirl, turn, 30.0)]))(turns)
        return warp.warp_chain(image, chain, SIZES[2], filter_mode="cubic"), warp.warp_points(center, chain), alone

    pictures, moved, alone = jax.device_get(run(blob(SIZES[2], center[0]), turns))
    assert moved.shape == (2, 1, 2)
    assert np.abs(moved[0] - moved[1]).max() > 1
    assert_close("reordered", alone, moved, 32)
    for picture, point in zip(pictures, moved):
        assert_close("peak of a blob", peak_of(picture), point[0], 1)


def test_batches_tuples_and_single_points():
    """Points for each image, or the same for all; x and y as a tuple; one point; none."""
    chain, points = drawn(2, 6)
    matrices = np.stack([chain[0], 1.1 * chain[0] + np.eye(3, dtype=np.float32)])
    flows = np.stack([chain[2], -chain[2]])

    @jax.jit
    def run(matrices, flows, points):
        chains = [[m, *chain[1:2], f, *chain[3:]] for m, f in zip(matrices, flows)]
        together = [matrices, chain[1], flows, *chain[3:]]
        both = jnp.stack([points, points + 1])
        at, of_tuple = (points[:, 0], points[0, 1]), points.at[:, 1].set(points[0, 1])
        to = lambda points: warp.warp_points(points, chains[0], to="image")
        return {
            "own points": (warp.warp_points(both, together), [*map(warp.warp_points, both, chains)]),
            "shared": (warp.warp_points(points, together), [warp.warp_points(points, c) for c in chains]),
            "a tuple": (jnp.stack(to(at), -1), to(of_tuple)),
            "one": (warp.warp_points(points[0], together), [warp.warp_points(points[:1], c)[0] for c in chains]),
            "one, a tuple": (jnp.stack(to(tuple(points[0]))), to(points)[0]),
            "none": (warp.warp_points(points[:0], together), jnp.zeros((2, 0, 2))),
        }

    for name, (found, expected) in jax.device_get(run(matrices, flows, points)).items():
        with named(name):
            assert_close("float32", found, np.stack(expected) if isinstance(expected, list) else expected, 32)


def test_points_that_have_no_place_are_nan_and_have_no_gradient():
    """A singular matrix, the line that goes to infinity, a fold, a gap of a flow; and points that are NaN."""
    singular = np.float32([[1, 2, 0], [2, 4, 1]])
    horizon = np.float32([[1, 0, 0], [0, 1, 0], [0.5, 0, 1]])  # x / (x / 2 + 1) never is 2
    x = np.arange(16, dtype=np.float32) + 0.5
    gap = np.broadcast_to(np.where(x < 8, -20, 20), (16, 16)).astype(np.float32)
    gap = np.stack([gap, 0 * gap], -1)
    points = np.float32([[2, 1], [np.nan, 1], [3, 1]])
    shift = np.float32([[1, 0, 1], [0, 1, 2]])

    cases = {"singular": [singular], "horizon": [horizon], "fold": [square], "gap": [gap]}
    mirrored = {"fold": -points}

    @jax.jit
    def run(shift, points):
        def moved(shift, name):
            how = jt.Sampler(filter_mode="point") if name == "gap" else None
            found = warp.warp_points(mirrored.get(name, points), [shift, *cases[name]], flow_sampler=how)
            return jnp.nansum(found), found

        return {name: jax.value_and_grad(moved, has_aux=True)(shift, name) for name in cases}

    found = jax.device_get(run(shift, points))
    missing = {"singular": [1, 1, 1], "horizon": [1, 1, 0], "fold": [1, 1, 1], "gap": [1, 1, 1]}
    for name, ((_, result), gradient) in found.items():
        with named(name):
            assert_exact(np.isnan(result).all(-1), np.bool_(missing[name]))
            assert_exact(np.isnan(result).any(-1), np.bool_(missing[name]))
            assert np.isfinite(gradient).all()
            assert gradient.any() == (0 in missing[name])
    # x / (x / 2 + 1) = 3 is -6, of which the shift leaves -7; and y / (-2) = 1 is -2, which leaves -4.
    assert_close("float32", found["horizon"][0][1][2], np.float32([-7, -4]), 8)


def test_an_inverse_of_a_steep_flow_and_of_a_map_that_is_far_from_the_identity():
    """Where a fixed-point iteration would not converge."""
    offset = np.broadcast_to(np.arange(24, dtype=np.float32) - 11.5, (3, 24))
    flow = 3 * np.stack([offset, 0 * offset], -1)  # x goes to 4 x about the middle
    away = lambda x, y: (2000 - 18 * x, 300 + 25 * y + 0.01 * x * x)
    points = np.float32([[9, 1.5], [13, 1.2]])

    @jax.jit
    def run(points):
        far = warp.warp_points(100 * points, [away])
        return warp.warp_points(points, [flow]), far, warp.warp_points(far, [away], to="image")

    steep, far, back = jax.device_get(run(points))
    assert_close("float32", steep, np.stack([12 + (points[:, 0] - 12) / 4, points[:, 1]], -1), 32)
    x = (2000 - 100 * points[:, 0].astype(np.float64)) / 18
    assert_close("float32", far, np.stack([x, (100 * points[:, 1] - 300 - 0.01 * x * x) / 25], -1), 128)
    assert_close("float32", back, 100 * points, 4096)


def test_which_sampler_reads_a_flow():
    """A flow of the output's shape that comes first is linear; others are read by `flow_sampler`."""
    flow = np.zeros((4, 4, 2), np.float32)
    flow[1, 1, 0] = 1
    points = np.float32([[1.9, 1.5]])
    still, nearest = np.eye(2, 3, dtype=np.float32), jt.Sampler(filter_mode="point")

    @jax.jit
    def run(flow):
        move = lambda chain, *shape: warp.warp_points(points, chain, *shape, to="image", flow_sampler=nearest)[0, 0]
        return jnp.stack([move([flow, 0 * flow]), move([flow, 0 * flow], (5, 5)), move([still, flow])])

    assert_close("float32", run(flow), np.float32([2.5, 2.9, 2.9]), 4)


@pytest.mark.slow
def test_derivatives_of_every_order(x64):
    """In points, matrices, a flow and parameters, to the image and to the output."""
    rng = np.random.default_rng(3)
    tilt = np.eye(3) + 0.05 * rng.normal(size=(3, 3))
    tilt[2] = 0.01, -0.02, 1.1
    flow = 0.1 * rng.normal(size=(4, 5, 2))
    affine = np.eye(2, 3) + 0.1 * rng.normal(size=(2, 3))
    points = np.float64([[2.2, 1.7], [3.1, 2.4], [1.3, 2.8]])

    def both(points, tilt, flow, affine, turn):
        chain = [tilt, flow, affine, (swirl, turn, 30.0)]
        moves = [warp.warp_points(points, chain, to=to, flow_sampler=SMOOTH) for to in ("image", "output")]
        return jnp.concatenate(moves)

    assert_derivatives(both, points, tilt, flow, affine, np.float64(0.3))


def test_boxes_by_hand():
    quarter, half = np.float32([[0, 1, 0], [-1, 0, 8]]), np.float32([[2, 0, 1], [0, 2, 0]])
    boxes = np.float32([[1, 2, 5, 4], [0, 0, 8, 8]])
    volume = np.float32([[1, 2, 3, 4, 6, 8]])
    stretch = np.float32([[2, 0, 0, 0], [0, 1, 0, 1], [0, 0, -1, 0]])
    nothing = np.full((1, 4), np.nan, np.float32)

    @jax.jit
    def run(boxes, volume):
        many = np.stack([quarter, np.eye(2, 3, dtype=np.float32)])
        return {
            "turned": warp.warp_boxes(boxes, [quarter]),
            "turned back": warp.warp_boxes(boxes, [quarter], to="image"),
            "one": warp.warp_boxes(boxes[0], [half]),
            "many": warp.warp_boxes(boxes, [many]),
            "clipped": warp.warp_boxes(boxes, [half], (2, 3), clip=True),
            "bent": warp.warp_boxes(boxes, [parabola], to="image"),
            "bent, corners": warp.warp_boxes(boxes, [parabola], to="image", points_per_edge=2),
            "bent back": warp.warp_boxes(boxes, [parabola], (8, 8), clip=True),
            "volume": warp.warp_boxes(volume, [stretch]),
            "none": warp.warp_boxes(boxes[:0], [quarter]),
            "not known": warp.warp_boxes(boxes.at[0, 1].set(jnp.nan), [quarter])[:1],
        }

    turned = [[4, 1, 6, 5], [0, 0, 8, 8]]
    expected = {
        "turned": turned,
        "turned back": [[2, 3, 4, 7], [0, 0, 8, 8]],
        "one": [0, 1, 2, 2],
        "many": [turned, boxes],
        "clipped": [[0, 1, 2, 2], [0, 0, 3, 2]],
        "bent": [[1, 2, 5.4, 4], [0, 0, 9.6, 8]],
        "bent, corners": [[1, 2, 5.4, 4], [1.6, 0, 9.6, 8]],
        "bent back": [[0.6, 2, 5, 4], [0, 0, 8, 8]],
        "volume": [[0.5, 1, -8, 2, 5, -3]],
        "none": np.zeros((0, 4)),
    }
    found = jax.device_get(run(boxes, volume))
    assert_exact(np.isnan(found.pop("not known")), np.isnan(nothing))
    assert_cases_close("float32", found, {k: np.asarray(v, np.float64) for k, v in expected.items()}, 8)


def test_a_box_goes_where_its_object_does():
    """The box of what is bright in an image lies around what is bright in the output, and hardly farther out."""
    turned = np.float32([[0.9, -0.3, 6], [0.3, 0.9, -4], [2e-3, 1e-3, 1]])
    box = np.float32([12, 10, 24, 20])
    image = np.zeros((*SIZES[2], 1), np.float32)
    image[10:20, 12:24] = 1

    @jax.jit
    def run(image, box):
        moved, slope = jax.value_and_grad(lambda b: warp.warp_boxes(b, [turned])[0])(box)
        return warp.warp_chain(image, [turned]), warp.warp_boxes(box, [turned]), moved, slope

    picture, found, _, slope = jax.device_get(run(image, box))
    y, x = np.nonzero(picture[..., 0] > 0.5)
    assert np.abs(found - [x.min(), y.min(), x.max() + 1, y.max() + 1]).max() < 1
    assert np.isfinite(slope).all()
    assert slope.any()


def pixel(y, x, image, transforms):
    at = (c.astype(np.float32) + 0.5 for c in (x, y))
    place = warp.warp_points(tuple(at), transforms, to="image", flow_sampler=SMOOTH)
    return jt.sample(jt.texture2d(image), place, jt.Sampler(normalized_coords=False, address_mode="border"))


def test_a_kernel_reads_where_points_lead():
    """Inside of one kernel for all images, and as `warp_chain` reads."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(2, 9, 11, 3)).astype(np.float32)
    tilts = np.float32([np.eye(3), [[1.1, 0.1, -0.4], [0, 0.9, 0.3], [0.01, 0.02, 1]]])
    into, out = np.eye(2, 3, dtype=np.float32) / 4, 4 * np.eye(2, 3, dtype=np.float32)
    flows = 0.2 * rng.normal(size=(2, 3, 4, 2)).astype(np.float32)

    def fused(image, tilt, flow):
        return jt.fused_map(pixel, (9, 11))(image, [tilt, into, flow, out])

    chain = jax.jit(lambda: warp.warp_chain(images, [tilts, into, flows, out], flow_sampler=SMOOTH))
    with noted_kernels() as kernels:
        found = jax.jit(jax.vmap(fused))(images, tilts, flows)
    assert len(kernels) == 1
    assert_close("float32", found, chain(), 16)
