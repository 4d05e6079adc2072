"""Reads handwritten digits that lie anywhere on a noisy canvas, by deformable attention: the network chooses points.

The digits are scikit-learn's, 8 x 8 pixels, turned, scaled and moved at random on a canvas of 32 x 32 with noise. Two
layers of filters make a pyramid of features, and a small network that sees a coarse canvas guesses a place and makes
sixteen queries around it. The queries look at the pyramid, twice: each says for every head and level at which points
around its place it reads (`jaxtex.nn.deformable_attention`), and how much each point counts; by what it read it moves
its place. All queries together are classified. Places, points and weights are learned through the coordinates of the
reads, from the labels alone. The same network with points that stay on a regular grid is trained for comparison.
(X. Zhu et al., "Deformable DETR", 2021.)

The program prints how many test digits both read right, for several seeds. The picture shows test digits, and below
each in color where the second look reads, a dot for each point, larger if it counts more, and the answer.
"""

import argparse
import functools
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import Panel, magnified, save, sheet
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits
from tqdm import tqdm

import jaxtex as jt

SIZE, TESTED, BATCH, RATE = 32, 500, 64, 2e-3
DEGREES, SCALES, SHIFT, NOISE = 15.0, (1.5, 2.0), 7.0, 0.05
SIDE, HEADS, WIDTH, POINTS, LOOKS = 4, 2, 32, 2, 2  # queries start as a grid of SIDE x SIDE places
LEVELS = ((16, 16), (8, 8))
QUERIES = SIDE * SIDE
SPREAD, REACH = 0.4, 0.06  # of the places at the start, and of the points around each, in widths of the canvas
ZOOM = 6  # of the picture

Parameters = dict[str, Any]


def load(seed: int) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """Digits (N, 8, 8, 1) from 0 to 1 and what they are, to train and to test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images, labels = np.float32(digits.images[order, ..., None] / 16), np.int32(digits.target[order])
    return tuple((jnp.asarray(images[part]), jnp.asarray(labels[part])) for part in np.s_[TESTED:, :TESTED])


def scattered(images: jax.Array, key: jax.Array) -> jax.Array:
    """Each digit turned, scaled and moved at random on a canvas (N, 32, 32, 1) with noise."""
    turn, stretch, move, noise = jax.random.split(key, 4)
    count, size = images.shape[:2]
    angle = jnp.deg2rad(jax.random.uniform(turn, (count,), minval=-DEGREES, maxval=DEGREES))
    scale = jax.random.uniform(stretch, (count,), minval=SCALES[0], maxval=SCALES[1])
    shift = jax.random.uniform(move, (count, 2), minval=-SHIFT, maxval=SHIFT)
    center = size / 2 + shift / scale[:, None]
    canvas = jt.warp.rotate(images, output_shape=(SIZE, SIZE), angle=angle, scale=scale, center=center)
    return canvas + NOISE * jax.random.normal(noise, canvas.shape)


def start(key: jax.Array) -> Parameters:
    """Weights at the beginning: points of the heads lie on circles around the places."""
    keys = iter(jax.random.split(key, 32))
    dense = lambda m, n, scale=1.0: {
        "w": scale * jax.random.normal(next(keys), (m, n)) * (2 / m) ** 0.5,
        "b": jnp.zeros(n),
    }
    count = HEADS * len(LEVELS) * POINTS
    angles = 2 * np.pi * np.arange(HEADS)[:, None, None] / HEADS
    radii = np.broadcast_to(np.arange(1, POINTS + 1) / POINTS, (HEADS, len(LEVELS), POINTS))
    circle = np.stack([radii * np.cos(angles), radii * np.sin(angles)], -1) / 2
    looks = [
        {
            "offsets": {**dense(WIDTH, 2 * count, 0.01), "b": jnp.asarray(circle, jnp.float32).reshape(-1)},
            "weights": dense(WIDTH, count, 0.01),
            "out": dense(WIDTH, WIDTH, 0.5),
            "hidden": dense(WIDTH, 2 * WIDTH),
            "back": dense(2 * WIDTH, WIDTH, 0.5),
            "place": dense(WIDTH, 2, 0.01),
        }
        for _ in range(LOOKS)
    ]
    line = SPREAD * ((np.arange(SIDE) + 0.5) / SIDE - 0.5)
    return {
        "first": dense(25, WIDTH),
        "second": dense(9 * WIDTH, WIDTH),
        "coarse": dense(64, 2 * WIDTH),
        "queries": dense(2 * WIDTH, QUERIES * WIDTH),
        "guess": dense(2 * WIDTH, 2, 0.1),
        "places": jnp.asarray(np.stack(np.meshgrid(line, line), -1), jnp.float32).reshape(QUERIES, 2),
        "looks": looks,
        "joined": dense(QUERIES * WIDTH, 2 * WIDTH),
        "answer": dense(2 * WIDTH, 10),
    }


def linear(layer: Parameters, values: jax.Array) -> jax.Array:
    return values @ layer["w"] + layer["b"]


def normalized(values: jax.Array) -> jax.Array:
    # The root has a slope where all values are equal, too.
    return (values - values.mean(-1, keepdims=True)) / jnp.sqrt(values.var(-1, keepdims=True) + 1e-4)


def filtered(layer: Parameters, images: jax.Array, taps: int) -> jax.Array:
    """A layer of `taps` x `taps` filters at every other pixel of images (N, H, W, C)."""
    reach, (height, width) = taps // 2, images.shape[1:3]
    padded = jnp.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
    parts = [padded[:, j : j + height : 2, k : k + width : 2] for j in range(taps) for k in range(taps)]
    return jax.nn.relu(linear(layer, jnp.concatenate(parts, -1)))


def looked(
    parameters: Parameters, images: jax.Array, chooses: bool | jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The answers (N, 10), and the points and their weights of the last look.

    Args:
        chooses: whether queries choose their points; otherwise these lie on a regular grid.
    """
    count, per_head = len(images), (QUERIES, HEADS, len(LEVELS), POINTS)
    fine = filtered(parameters["first"], images, 5)
    levels = fine, filtered(parameters["second"], fine, 3)
    value = jnp.concatenate([level.reshape(count, -1, WIDTH) for level in levels], 1)
    value = value.reshape(count, -1, HEADS, WIDTH // HEADS)
    coarse = images.reshape(count, 8, SIZE // 8, 8, SIZE // 8).mean((2, 4)).reshape(count, 64)
    seen = jax.nn.relu(linear(parameters["coarse"], coarse))
    queries = normalized(linear(parameters["queries"], seen).reshape(count, QUERIES, WIDTH))
    guess = jax.nn.sigmoid(linear(parameters["guess"], seen))
    places = parameters["places"] + guess[:, None]
    line = (jnp.arange(2 * SIDE) + 0.5) / (2 * SIDE)
    cells = jnp.stack(jnp.meshgrid(line, line), -1).reshape(SIDE, 2, SIDE, 2, 2).swapaxes(1, 2)
    grid = cells.reshape(QUERIES, HEADS, 1, POINTS, 2)
    for look in parameters["looks"]:
        offsets = 2 * REACH * jnp.tanh(linear(look["offsets"], queries)).reshape(count, *per_head, 2)
        points = places[:, :, None, None, None] + offsets
        points = jnp.where(chooses, points, grid)
        weights = linear(look["weights"], queries).reshape(count, QUERIES, HEADS, -1)
        weights = jax.nn.softmax(weights, -1).reshape(count, *per_head)
        read = jt.nn.deformable_attention(value, LEVELS, points, weights)
        queries = normalized(queries + linear(look["out"], read))
        queries = normalized(queries + linear(look["back"], jax.nn.relu(linear(look["hidden"], queries))))
        places = places + REACH * jnp.tanh(linear(look["place"], queries))
    joined = jax.nn.gelu(linear(parameters["joined"], queries.reshape(count, -1)))
    return linear(parameters["answer"], joined), points, weights


@functools.partial(jax.jit, static_argnames="optimizer")
def train_epoch(state: Any, digits: Any, key: jax.Array, chooses: bool | jax.Array, optimizer: Any) -> Any:
    """Takes a step for each batch of the digits. `key` draws the order and the canvases."""
    images, labels = digits
    count = len(labels) // BATCH
    order, canvases = jax.random.split(key)
    batches = jax.random.permutation(order, len(labels))[: count * BATCH].reshape(count, BATCH)

    def loss(parameters: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
        answers, _, _ = looked(parameters, images, chooses)
        return optax.softmax_cross_entropy_with_integer_labels(answers, labels).mean()

    def step(state: Any, batch: Any) -> Any:
        parameters, memory = state
        chosen, key = batch
        slopes = jax.grad(loss)(parameters, scattered(images[chosen], key), labels[chosen])
        change, memory = optimizer.update(slopes, memory, parameters)
        return (optax.apply_updates(parameters, change), memory), None

    return jax.lax.scan(step, state, (batches, jax.random.split(canvases, count)))[0]


def draw(
    images: np.ndarray, labels: np.ndarray, answers: np.ndarray, points: np.ndarray, weights: np.ndarray
) -> Image.Image:
    """Five digits, and below each the points at which each query reads."""
    rows = [], []
    for k in (np.flatnonzero(labels == digit)[0] for digit in (2, 3, 5, 6, 9)):
        tile = magnified(images[k], ZOOM)
        dotted = tile.copy()
        pen = ImageDraw.Draw(dotted)
        for query, (places, shares) in enumerate(zip(points[k], weights[k])):
            color = f"hsv({query * 360 // QUERIES},85%,95%)"
            for (x, y), share in zip(places.reshape(-1, 2) * SIZE * ZOOM, shares.reshape(-1)):
                pen.circle((x, y), 1 + 3 * float(share), color)
        rows[0].append(Panel(f"a {labels[k]}", tile))
        rows[1].append(Panel("", dotted, f"read as {answers[k]}"))
    return sheet(rows)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Read digits on a noisy canvas by deformable attention.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--small", action="store_true", help="train one seed for four steps")
    parser.add_argument("--out", type=Path, default=Path("digits.png"))
    args = parser.parse_args(argv)

    seeds, epochs = (1, 1) if args.small else (args.seeds, args.epochs)
    count = 4 * BATCH if args.small else None  # of the digits to train
    steps = (len(load(0)[0][1][:count]) // BATCH) * epochs
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(RATE, steps)))
    names = {"chosen points": True, "a regular grid": False}
    right, began = {name: [] for name in names}, time.perf_counter()
    with tqdm(total=seeds * len(names) * epochs, unit="epoch", disable=None, file=sys.stderr) as bar:
        for seed in range(seeds):
            digits, (tested, labels) = load(seed)
            digits = tuple(part[:count] for part in digits)
            order, key = jax.random.split(jax.random.key(seed))
            images, found = jax.jit(scattered)(tested, key), {}
            for name, chooses in names.items():
                parameters = start(jax.random.key(seed))
                state = parameters, jax.jit(optimizer.init)(parameters)
                for epoch in range(epochs):
                    state = train_epoch(state, digits, jax.random.fold_in(order, epoch), chooses, optimizer)
                    bar.update()
                found[name] = jax.jit(looked)(state[0], images, chooses)
                right[name].append(100 * float(np.mean(found[name][0].argmax(-1) == labels)))
            bar.write(f"seed {seed}: " + ", ".join(f"{values[-1]:.1f} % by {name}" for name, values in right.items()))
    for name, values in right.items():
        print(f"{name}: {np.mean(values):.1f} % right on average, {min(values):.1f} to {max(values):.1f} %")
    print(f"{steps} steps of {BATCH} digits, {len(labels)} test digits a seed; {time.perf_counter() - began:.0f} s")
    answers, points, weights = (np.asarray(part) for part in found["chosen points"])
    save(draw(np.asarray(images), np.asarray(labels), answers.argmax(-1), points, weights), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
