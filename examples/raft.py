"""Finds the optical flow between two frames by lookups in a pyramid of correlations, as RAFT does, without a network.

Every pixel of the first frame is compared with every pixel of the second: `jaxtex.nn.correlation_pyramid`. A flow
begins at zero. In each round every pixel looks at a window around the place where its flow now ends, in each level of
its own correlations (`jaxtex.nn.correlation_lookup`). RAFT hands what it sees to a trained network. Here a pixel moves
to the mean of the window's places, weighed by how well they match: on the coarse levels at first, which see far, on the
finest later. Between rounds the flow is smoothed, more where no place stood out. (Z. Teed and J. Deng, "RAFT: Recurrent
All-Pairs Field Transforms for Optical Flow", 2020.)

The features are patches of both frames without their mean, of length one. The second frame is a photograph; the first
is the photograph moved by a smooth random flow, so that the truth is known. The program prints how far end points are
off in each round.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"
STRIDE, PATCH = 4, 9  # features stand at every fourth pixel, and are patches of 9 x 9 of them
FURTHEST = 0.05  # the longest true flow, in widths
LEVELS, RADIUS = 3, 3
SHARP, NEAR = 30.0, 0.3  # of the weights: times a correlation of at most 1, and a squared distance in pixels

Flow = jax.Array  # (H, W, 2): x and y


@functools.partial(jax.jit, static_argnames=("height", "width"))
def random_flow(seed: int, height: int, width: int) -> Flow:
    """A smooth flow in pixels: random vectors on a coarse grid, with cubic interpolation between them."""
    vectors = jax.random.normal(jax.random.key(seed), (3, 4, 2))
    flow = jt.warp.resize(vectors, (height, width), filter_mode="cubic")
    return flow * (FURTHEST * width / jnp.linalg.norm(flow, axis=-1).max())


@jax.jit
def features(frame: jax.Array) -> jax.Array:
    """Patches of a frame (H, W, 3), shrunk by the stride, as vectors of length one: (h, w, C)."""
    height, width = (size // STRIDE for size in frame.shape[:2])
    small = jt.warp.resize(frame, (2 * height, 2 * width))
    reach = PATCH // 2
    padded = jnp.pad(small, ((reach, reach), (reach, reach), (0, 0)), mode="reflect")
    shifts = [(j, k) for j in range(PATCH) for k in range(PATCH)]
    parts = [padded[j : j + 2 * height : 2, k : k + 2 * width : 2] for j, k in shifts]
    patches = jnp.stack(parts, -2)
    patches = (patches - patches.mean(-2, keepdims=True)).reshape(height, width, -1)
    return patches / (jnp.linalg.norm(patches, axis=-1, keepdims=True) + 0.05)


def blurred(values: jax.Array, passes: int = 4) -> jax.Array:
    """Means over 5 x 5 pixels, several times."""
    for axis in (0, 1) * passes:
        padded = jnp.pad(values, [(2, 2) if k == axis else (0, 0) for k in range(values.ndim)], mode="edge")
        size = values.shape[axis]
        values = sum(jax.lax.slice_in_dim(padded, k, k + size, axis=axis) for k in range(5)) / 5
    return values


@functools.partial(jax.jit, static_argnames="level")
def moved(pyramid: tuple[jax.Array, ...], flow: Flow, level: int) -> Flow:
    """The flow after a round: each pixel moves to the best places that it sees in a level."""
    side = 2 * RADIUS + 1
    seen = windows(pyramid, flow)[..., level, :, :]
    distance = jnp.hypot(*jnp.meshgrid(*[jnp.arange(side) - RADIUS] * 2, indexing="ij"))
    liked = SHARP * seen - NEAR * distance**2
    weights = jax.nn.softmax(liked.reshape(*seen.shape[:2], -1), axis=-1)
    # Pixel i of a level covers pixels 2^level i to 2^level (i + 1) - 1, whose middle lies behind 2^level i.
    near = (jnp.arange(side) - RADIUS) * 2.0**level + (2.0**level - 1) / 2
    steps = jnp.stack(jnp.meshgrid(near, near, indexing="ij"), -1).reshape(-1, 2)
    step = jnp.einsum("hwk,kc->hwc", weights, steps)
    # A pixel counts in the smoothing by how narrow its weights are.
    spread = jnp.einsum("hwk,hwkc->hw", weights, (steps - step[:, :, None]) ** 2)
    sure = 1 / (0.5 + spread / 4.0**level)[..., None] ** 2
    return blurred(sure * (flow + step)) / blurred(sure)


@jax.jit
def windows(pyramid: tuple[jax.Array, ...], flow: Flow) -> jax.Array:
    """What each pixel sees, (h, w, levels, x, y)."""
    height, width = flow.shape[:2]
    here = jnp.stack(jnp.meshgrid(jnp.arange(width), jnp.arange(height)), -1)
    found = jt.nn.correlation_lookup(pyramid, (here + flow)[None], RADIUS)
    return found.reshape(height, width, LEVELS, 2 * RADIUS + 1, 2 * RADIUS + 1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find the flow between two frames by lookups in correlations.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--seed", type=int, default=0, help="of the true flow")
    parser.add_argument("--small", action="store_true", help="use frames of 144 x 96 pixels")
    args = parser.parse_args(argv)

    width, height = (144, 96) if args.small else (300, 200)
    image = Image.open(args.photograph).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    second = jnp.asarray(np.asarray(image, np.float32) / 255)
    truth = random_flow(args.seed, height, width)
    first = jt.warp.warp_flow(second, truth, filter_mode="cubic", address_mode="clamp")

    one, other = (features(frame)[None] for frame in (first, second))
    # Features have length one, so that the product over the root of their number is made a correlation again.
    pyramid = jt.nn.correlation_pyramid(one * one.shape[-1] ** 0.5, other, LEVELS)
    print(f"{one.shape[2]} x {one.shape[1]} pixels, {sum(level.size for level in pyramid)} correlations")
    coarse_truth = jt.warp.resize(truth, one.shape[1:3]) / STRIDE
    flow = jnp.zeros_like(coarse_truth)
    inside = (
        np.asarray(jt.warp.warp_flow(jnp.ones((*flow.shape[:2], 1)), coarse_truth, filter_mode="point"))[..., 0] > 0
    )
    error = lambda flow: STRIDE * np.linalg.norm(np.asarray(flow - coarse_truth), axis=-1)[inside].mean()
    errors = [error(flow)]
    for level in (1, 1, 1, 0, 0, 0):
        flow = moved(pyramid, flow, level)
        errors.append(error(flow))
        print(f"round {len(errors) - 1}, level {level}: off by {errors[-1]:.2f} pixels, {errors[0]:.2f} at the start")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
