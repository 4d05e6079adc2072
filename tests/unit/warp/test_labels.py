"""Warps of label maps, against votes that are counted one by one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxtex import warp
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_exact, named

SIZES = {2: (6, 7), 3: (4, 5, 6)}


def drawn(ndim, count, dtype=np.int32, n=80):
    """Labels, and points whose weights are eighths, so that sums and ties are exact."""
    rng = np.random.default_rng(ndim)
    labels = rng.integers(0, count, (*SIZES[ndim], 2)).astype(dtype)
    coords = rng.integers(-16, 72, (ndim, *[1] * (ndim - 1), n)) / 8
    return labels, tuple(coords.astype(np.float32))


def expected(labels, coords, mode, outside=0):
    """The label of most weight; of equal ones the smallest."""
    coords = [np.ravel(c) for c in coords]
    found = np.zeros((coords[0].size, labels.shape[-1]), labels.dtype)
    for sample, channel in np.ndindex(*found.shape):
        weights = {}
        lows = [np.floor(c[sample] - 0.5) for c in coords]
        for corner in np.ndindex(*[2] * len(lows)):
            weight, index, inside = 1.0, [], True
            for c, low, k, size in zip(coords, lows, corner, labels.shape[len(lows) - 1 :: -1]):
                weight *= 1 - abs(c[sample] - 0.5 - low - k)
                at, within = oracle.address(int(low) + k, size, mode)
                index, inside = [int(at), *index], inside and bool(within)
            label = int(labels[(*index, channel)]) if inside else outside
            weights[label] = weights.get(label, 0) + weight
        found[sample, channel] = min(weights, key=lambda label: (-weights[label], label))
    return found


partial_volume = functools.partial(warp.warp_labels, method="partial_volume")


def test_the_label_of_most_weight_wins():
    kinds = [(2, 3, np.int32), (2, 300, np.uint16), (3, 2, np.int8)]
    modes = [("clamp",), ("border",), ("mirror",)]
    given = [drawn(*kind) for kind in kinds]
    read = lambda labels, at, mode: partial_volume(
        labels, coords=at, address_mode=mode, **({"border_label": 1} if mode == "border" else {})
    )
    run = jax.jit(lambda given: {(k, mode): read(*given[k], mode) for k in range(len(given)) for mode in modes[k]})
    for (k, mode), found in jax.device_get(run(given)).items():
        with named((*kinds[k], mode)):
            assert_exact(found.reshape(-1, 2), expected(*given[k], mode, outside=1), kinds[k][2])


def test_ties_large_numbers_masks_and_nearest_labels():
    """Ties go to the smallest label wherever it lies, and large numbers are kept to the last bit."""
    labels, coords = drawn(2, 200, np.uint8)
    square = np.array([[9, 4], [4, 9]], np.uint8)[..., None]
    large = (2**31 - 1 - np.arange(12, dtype=np.int32)).reshape(3, 4, 1)

    @jax.jit
    def run(labels, coords, square, large):
        middle, shift = np.ones((1, 1, 2), np.float32), np.float32([[1, 0, 1.125], [0, 1, 0]])
        return (
            [partial_volume(turned, coords=middle) for turned in (square, square[::-1], square + 100)],
            [read(large, [shift], border_label=-5) for read in (warp.warp_labels, partial_volume)],
            warp.warp_labels(labels, coords=coords, address_mode="clamp"),
            partial_volume(labels > 100, coords=coords, address_mode="clamp"),
        )

    ties, shifted, nearest, mask = jax.device_get(run(labels, coords, square, large))
    assert [label.item() for label in ties] == [4, 4, 104]
    for found in shifted:
        assert_exact(found, np.pad(large[:, 1:], ((0, 0), (0, 1), (0, 0)), constant_values=-5), np.int32)
    inside = lambda c, n: np.clip(np.floor(c), 0, n - 1).astype(int)
    x, y = (inside(np.ravel(c), n) for c, n in zip(coords, SIZES[2][::-1]))
    assert_exact(nearest.reshape(-1, 2), labels[y, x])
    assert_exact(mask.reshape(-1, 2), expected(np.uint8(labels > 100), coords, "clamp") == 1, bool)


def test_64_bits(x64):
    labels = np.int64(2) ** 60 + np.arange(4).reshape(1, 4, 1)
    run = jax.jit(lambda a: [warp.warp_labels(a, [np.eye(2, 3)]), partial_volume(a, [np.eye(2, 3)])])
    for found in run(labels):
        assert_exact(found, labels, np.int64)


def test_transforms_batches_and_gradients():
    labels, _ = drawn(2, 5)
    flow = 0.7 * np.random.default_rng(0).normal(size=(*SIZES[2], 2)).astype(np.float32)
    matrices = np.stack([np.eye(2, 3), 0.8 * np.eye(2, 3)]).astype(np.float32)

    @jax.jit
    def run(labels, matrices, flow):
        of = lambda labels, flow: partial_volume(labels, [matrices, flow], SIZES[2])
        stack = of(jnp.stack([labels, labels[::-1]]), flow)
        return of(labels, flow), stack, jax.grad(lambda flow: of(labels, flow).astype(jnp.float32).sum())(flow)

    both, stack, gradient = jax.device_get(run(labels, matrices, flow))
    at = np.indices(SIZES[2])[::-1] + np.float32(0.5) + np.moveaxis(flow, -1, 0)
    assert_exact(both[0].reshape(-1, 2), expected(labels, at.astype(np.float32), "border"))
    assert both.shape == (2, *labels.shape)
    assert_exact(stack[0], both[0])
    assert not gradient.any()


def test_memory_does_not_grow_with_the_number_of_labels():
    labels, at = np.arange(512, dtype=np.int32).reshape(8, 8, 8, 1), tuple(np.zeros((3, 8, 8, 8), np.float32))
    text = str(jax.make_jaxpr(lambda labels: partial_volume(labels, coords=at))(labels))
    assert text.count("texture_read[") == 1
    assert "8,8,8,2]" not in text, "a channel for each label"
