"""Reads handwritten digits that were turned, scaled and shifted, with a spatial transformer before the classifier.

The digits are scikit-learn's, 8 x 8 pixels, drawn twice as large on a canvas of 28 x 28. A warp distorts every batch
anew. Two networks learn from the same digits in the same number of steps: a classifier with two hidden layers, and the
same classifier behind a spatial transformer. The first has a wider hidden layer, so that it has no fewer parameters.
The program prints the accuracy of each on a distorted test set, for several seeds of the split, the initial weights and
the distortions.

The picture shows digits before and after the layer, with the answers of the networks, wrong ones in red. Below are the
means of each digit over the test set, before and after the layer. `--animation` draws the same digits and the accuracy,
as the first network with the layer learns.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from panels import ACCENT, INK, Panel, animate, font, magnified, plot, save, sheet
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits
from tqdm import tqdm

import jaxtex as jt
from jaxtex.layers.nnx import SpatialTransformer

SIZE = 28
ENLARGED, SCALES, DEGREES, SHIFT = 2.0, (0.7, 1.3), 60.0, 6.0
TESTED, POSES = 500, 4  # the number of test digits, and of distortions of each
BATCH, RATE = 64, 3e-3
HIDDEN, WIDER = 128, 192  # the first hidden layer with and without a spatial transformer
LOCALIZATION = (64, 32)
ZOOM, LINE = 3, 28  # of the picture

Digits = tuple[jax.Array, jax.Array]  # images (N, H, W, 1) and which digit each shows


def load(seed: int) -> tuple[Digits, Digits]:
    """Digits of 8 x 8 pixels with values from 0 to 1, to train and to test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images, labels = np.float32(digits.images[order, ..., None] / 16), np.int32(digits.target[order])
    return tuple((jnp.asarray(images[part]), jnp.asarray(labels[part])) for part in np.s_[TESTED:, :TESTED])


def distort(images: jax.Array, key: jax.Array) -> jax.Array:
    """Images (N, 8, 8, 1) on canvases (N, 28, 28, 1), each turned, scaled and shifted at random."""
    turn, stretch, move = jax.random.split(key, 3)
    count, size = images.shape[:2]
    angle = jnp.deg2rad(jax.random.uniform(turn, (count,), minval=-DEGREES, maxval=DEGREES))
    scale = ENLARGED * jax.random.uniform(stretch, (count,), minval=SCALES[0], maxval=SCALES[1])
    shift = jax.random.uniform(move, (count, 2), minval=-SHIFT, maxval=SHIFT)
    center = size / 2 + shift / scale[:, None]
    return jt.warp.rotate(images, output_shape=(SIZE, SIZE), angle=angle, scale=scale, center=center)


def flatten(images: jax.Array) -> jax.Array:
    return images.reshape(len(images), -1)


def hidden_layers(*widths: int, rngs: nnx.Rngs) -> list[Any]:
    pairs = itertools.pairwise((SIZE * SIZE, *widths))
    return [flatten, *(layer for sizes in pairs for layer in (nnx.Linear(*sizes, rngs=rngs), nnx.relu))]


def plain_network(rngs: nnx.Rngs, hidden: int = WIDER) -> nnx.Sequential:
    return nnx.Sequential(*hidden_layers(hidden, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs))


def transformed_network(rngs: nnx.Rngs) -> nnx.Sequential:
    localization = nnx.Sequential(*hidden_layers(*LOCALIZATION, rngs=rngs))
    layer = SpatialTransformer(localization, LOCALIZATION[-1], (SIZE, SIZE), "similarity")
    return nnx.Sequential(layer, plain_network(rngs, HIDDEN))


@functools.partial(jax.jit, static_argnames=("graph", "optimizer"))
def train_epoch(graph: Any, optimizer: Any, state: Any, digits: Digits, key: jax.Array) -> Any:
    """Takes a step for each batch of the digits. `key` draws the order and the distortions."""
    images, labels = digits
    count = len(labels) // BATCH
    order, distortions = jax.random.split(key)
    batches = jax.random.permutation(order, len(labels))[: count * BATCH].reshape(count, BATCH)

    def loss(params, images, labels):
        logits = nnx.merge(graph, params)(images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(state, batch):
        params, moments = state
        chosen, key = batch
        slopes = jax.grad(loss)(params, distort(images[chosen], key), labels[chosen])
        updates, moments = optimizer.update(slopes, moments, params)
        return (optax.apply_updates(params, updates), moments), None

    return jax.lax.scan(step, state, (batches, jax.random.split(distortions, count)))[0]


def train(
    network: nnx.Sequential,
    optimizer: Any,
    digits: Digits,
    epochs: int,
    key: jax.Array,
    bar: tqdm,
    watch: Callable[[Any, Any], None] = lambda graph, params: None,
) -> Any:
    """The trained network. `watch` sees its parameters before each epoch."""
    graph, params = nnx.split(network)
    state = params, jax.jit(optimizer.init)(params)
    for epoch in range(epochs):
        watch(graph, state[0])
        state = train_epoch(graph, optimizer, state, digits, jax.random.fold_in(key, epoch))
        jax.block_until_ready(state)
        bar.update()
    return nnx.merge(graph, state[0])


def count_parameters(build: Callable[[nnx.Rngs], nnx.Sequential]) -> int:
    shapes = nnx.eval_shape(lambda: build(nnx.Rngs(0)))
    return sum(array.size for array in jax.tree.leaves(nnx.state(shapes, nnx.Param)))


@nnx.jit
def applied(network: Callable[[jax.Array], jax.Array], images: jax.Array) -> jax.Array:
    """What a network or a layer makes of images."""
    return network(images)


def tiles(images: np.ndarray, answers: np.ndarray | None = None) -> Image.Image:
    """Images (10, H, W) from 0 to 1 in a row, each above the answer to it, red if wrong."""
    row = magnified(np.concatenate(list(np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=1)), axis=1), ZOOM)
    if answers is None:
        return row
    picture, side = Image.new("RGB", (row.width, row.height + LINE), "white"), row.width / 10
    picture.paste(row)
    for digit, answer in enumerate(answers.tolist()):
        place, color = ((digit + 0.5) * side, row.height + LINE / 2), INK if answer == digit else ACCENT
        ImageDraw.Draw(picture).text(place, str(answer), color, font(LINE), anchor="mm")
    return picture


@functools.partial(jax.jit, static_argnames="graph")
def progress(graph: Any, params: Any, images: jax.Array, labels: jax.Array, first: jax.Array) -> Any:
    """What the layer makes of the `first` images, and the percentage of all that are read right."""
    layer, classifier = nnx.merge(graph, params).layers
    seen = layer(images)
    return seen[first][..., 0], 100 * (classifier(seen).argmax(-1) == labels).mean()


def frames(seen: list[tuple[np.ndarray, float]], inputs: np.ndarray, steps: int) -> list[Image.Image]:
    """The digits behind the layer before each epoch of `steps` steps, and the accuracy up to then."""
    right = np.array([percent for _, percent in seen])
    counts, drawn = steps * np.arange(len(seen)), []
    chosen = sorted({round(len(seen) ** (k / 40)) - 1 for k in range(41)})
    for k in chosen:
        row, limits = tiles(inputs), ((0, max(counts[-1], 1)), (0, 100))
        curve = {"right": (counts[: k + 1], right[: k + 1])}
        rows = [
            [Panel("input", row)],
            [Panel(f"behind the layer, after {counts[k]} steps", tiles(seen[k][0]))],
            [Panel("", plot((row.width, 200), curve, "step", "right, %", limits=limits, columns=1))],
        ]
        picture = sheet(rows)
        drawn.append(picture.resize((2 * picture.width // 3, 2 * picture.height // 3), Image.Resampling.LANCZOS))
    return drawn


def draw(networks: dict[str, nnx.Sequential], images: jax.Array, labels: np.ndarray) -> Image.Image:
    """One image of each digit and the mean of all, before and after the layer."""
    before, after = (np.asarray(part)[..., 0] for part in (images, applied(networks["with"].layers[0], images)))
    first = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
    mean = lambda images: np.stack([images[labels == digit].mean(axis=0) for digit in range(10)])
    brightest = mean(after).max()
    answers = {name: np.asarray(applied(network, images)).argmax(-1)[first] for name, network in networks.items()}
    rows = {
        "input, and how it is read without the layer": tiles(before[first], answers["without"]),
        "behind the layer, and how it is read": tiles(after[first], answers["with"]),
        "means of the input": tiles(mean(before) / brightest),
        "means behind the layer": tiles(mean(after) / brightest),
    }
    return sheet([[Panel(*row)] for row in rows.items()])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train a classifier with and without a spatial transformer.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--longer", type=int, default=1, help="train this many times as long without the layer")
    parser.add_argument("--small", action="store_true", help="train one seed for 12 epochs; takes seconds")
    parser.add_argument("--animation", type=Path, help="also write an animation to this file, a .webp or a .gif")
    parser.add_argument("--out", type=Path, default=Path("spatial_transformer.png"))
    args = parser.parse_args(argv)

    seeds, epochs = (1, 12) if args.small else (args.seeds, args.epochs)
    make = {"with": transformed_network, "without": plain_network}
    lengths = {"with": epochs, "without": epochs * args.longer}
    steps = (load(0)[0][1].size // BATCH) * epochs
    optimizers = {
        name: optax.adam(optax.cosine_decay_schedule(RATE, steps * length // epochs))
        for name, length in lengths.items()
    }
    counts = {name: count_parameters(build) for name, build in make.items()}
    print(f"{counts['with']} parameters with the layer, {counts['without']} without; {steps} steps of {BATCH} digits")

    right, seen = {name: [] for name in make}, []
    start = time.perf_counter()
    with tqdm(total=seeds * sum(lengths.values()), unit="epoch", mininterval=1) as bar:
        for seed in range(seeds):
            digits, (tested, labels) = load(seed)
            order, key = jax.random.split(jax.random.key(seed))
            images, labels = jax.jit(distort)(np.tile(tested, (POSES, 1, 1, 1)), key), np.tile(labels, POSES)
            networks = {}
            first = np.array([np.flatnonzero(labels == digit)[0] for digit in range(10)])
            watch = lambda graph, params: seen.append(
                jax.tree.map(np.asarray, progress(graph, params, images, labels, first))  # noqa: B023
            )
            for name, build in make.items():
                watched = {"watch": watch} if args.animation and seed == 0 and name == "with" else {}
                network = build(nnx.Rngs(seed))
                networks[name] = train(network, optimizers[name], digits, lengths[name], order, bar, **watched)
                right[name].append(100 * np.mean(np.asarray(applied(networks[name], images)).argmax(-1) == labels))
            if seed == 0:
                inputs = np.asarray(images)[first, ..., 0]
            bar.write(f"seed {seed}: {right['with'][-1]:.1f} % with the layer, {right['without'][-1]:.1f} % without")
    for name, values in right.items():
        print(f"{name:7} the layer: {np.mean(values):.1f} % on average, {min(values):.1f} to {max(values):.1f} %")
    margins = np.subtract(right["with"], right["without"])
    print(f"margin: {margins.mean():.1f} points on average, {margins.min():.1f} to {margins.max():.1f}")
    print(f"{len(labels)} distorted test digits a seed; {time.perf_counter() - start:.0f} s")

    save(draw(networks, images, labels), args.out)
    if args.animation:
        animate(frames(seen, inputs, steps // epochs), args.animation, 120)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
