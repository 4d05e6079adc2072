"""Warps of label maps, against votes that are counted one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex import Sampler, warp
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_exact

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


@pytest.mark.parametrize(("ndim", "count", "dtype"), [(2, 3, np.int32), (2, 300, np.uint16), (3, 2, np.int8)])
def test_the_label_of_most_weight_wins(ndim, count, dtype):
    labels, coords = drawn(ndim, count, dtype)
    for mode in ("clamp", "border", "wrap", "mirror", "reflect"):
        outside = {"border_label": 1} if mode == "border" else {}
        read = warp.warp_labels(labels, coords=coords, method="partial_volume", address=mode, **outside)
        assert_exact(np.reshape(read, (-1, 2)), expected(labels, coords, mode, outside=1), dtype)


def test_ties_go_to_the_smallest_label_wherever_it_lies():
    labels = np.array([[9, 4], [4, 9]], np.uint8)[..., None]
    middle = np.float32([[1.0]]), np.float32([[1.0]])
    for turned in (labels, labels[::-1], labels + 100):
        found = warp.warp_labels(turned, coords=middle, method="partial_volume")
        assert found.item() == turned.min()


def test_large_numbers_are_kept_to_the_last_bit():
    labels = (2**31 - 1 - np.arange(12, dtype=np.int32)).reshape(3, 4, 1)
    for method in ("nearest", "partial_volume"):
        shifted = warp.warp_labels(labels, [np.float32([[1, 0, 1.125], [0, 1, 0]])], method=method, border_label=-5)
        assert_exact(shifted[:, :3], np.concatenate([labels[:, 1:], np.full((3, 1, 1), -5)], 1)[:, :3], np.int32)
        assert_exact(shifted[:, 3], np.full((3, 1), -5), np.int32)


def test_64_bits(x64):
    labels = np.int64(2) ** 60 + np.arange(4).reshape(1, 4, 1)
    for method in ("nearest", "partial_volume"):
        assert_exact(warp.warp_labels(labels, [np.eye(2, 3)], method=method), labels, np.int64)


def test_masks_and_nearest_labels():
    labels, coords = drawn(3, 200, np.uint8)
    inside = lambda c, n: np.clip(np.floor(c), 0, n - 1).astype(int)
    x, y, z = (inside(np.ravel(c), n) for c, n in zip(coords, SIZES[3][::-1]))
    found = warp.warp_labels(labels, coords=coords, address="clamp")
    assert_exact(np.reshape(found, (-1, 2)), labels[z, y, x])
    mask = warp.warp_labels(labels > 100, coords=coords, address="clamp", method="partial_volume")
    assert mask.dtype == bool
    assert_exact(np.uint8(mask).reshape(-1, 2), expected(np.uint8(labels > 100), coords, "clamp"))


def test_transforms_batches_and_gradients():
    labels, _ = drawn(3, 5)
    flow = 0.7 * np.random.default_rng(0).normal(size=(*SIZES[3], 3)).astype(np.float32)
    matrices = np.stack([np.eye(3, 4), 0.8 * np.eye(3, 4)]).astype(np.float32)
    run = jax.jit(lambda *chain: warp.warp_labels(labels, chain, SIZES[3], method="partial_volume"))
    both = run(matrices, flow)
    assert both.shape == (2, *labels.shape)
    points = np.moveaxis(np.indices(SIZES[3])[::-1] + np.float32(0.5), 0, -1) + flow
    at = tuple(np.moveaxis(points.astype(np.float32), -1, 0))
    assert_exact(both[0], warp.warp_labels(labels, coords=at, method="partial_volume"))
    stack = warp.warp_labels(np.stack([labels, labels[::-1]]), [matrices, flow], SIZES[3], method="partial_volume")
    assert_exact(stack[0], both[0])
    assert not jax.grad(lambda f: run(matrices, f).astype(jnp.float32).sum())(flow).any()


def test_memory_does_not_grow_with_the_number_of_labels():
    at = tuple(np.zeros((3, 8, 8, 8), np.float32))
    read = lambda labels: warp.warp_labels(labels, coords=at, method="partial_volume")
    labels = np.arange(512, dtype=np.int32).reshape(8, 8, 8, 1)
    text = str(jax.make_jaxpr(read)(labels))
    assert text.count("texture_read[") == 1
    assert "8,8,8,2]" not in text, "a channel for each label"


def test_errors():
    labels = np.zeros((4, 4, 1), np.int32)
    with pytest.raises(ValueError, match="warp_labels: method is 'mean', expected one of 'nearest', 'partial_volume'"):
        warp.warp_labels(labels, [np.eye(2, 3)], method="mean")
    with pytest.raises(ValueError, match="flow_sampler is given, but coords are not interpolated; leave flow_sampler"):
        warp.warp_labels(labels, coords=np.ones((1, 1, 2)), flow_sampler=Sampler())
    with pytest.raises(ValueError, match="expected either transforms or coords, but neither is given"):
        warp.warp_labels(labels)
    with pytest.raises(TypeError, match="warp_labels: labels has dtype float32, expected integers or bool"):
        warp.warp_labels(labels.astype(np.float32), [np.eye(2, 3)])
    with pytest.raises(ValueError, match=r"labels has shape \(4, 4\), expected .* add an axis for a single channel"):
        warp.warp_labels(labels[..., 0], [np.eye(2, 3)], (4, 4))
    with pytest.raises(ValueError, match=r"labels.*9223372036854775807"):
        warp.warp_labels(np.full((2, 2, 1), 2**63 - 1), [np.eye(2, 3)])
