"""A photograph as features: four small textures and a tiny network, trained on random points of the picture.

`jaxtex.sample` reads the features of a point of the picture from each texture, from coarse to fine; a network of two
small layers maps them to a color. Textures and network are learned together. Multi-resolution feature grids and planes
store images, shapes and radiance fields in this way (T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural
Graphics Primitives with a Multiresolution Hash Encoding", 2022).

A training step reads far more points than there are texels. The gradient with respect to a texel, which is the adjoint
of the read, is therefore a sum of many terms. The program prints the numbers of parameters and pixels and the points
per second of a training step, and compares the fit with the photograph shrunk to as many numbers as there are
parameters. The picture shows a detail of the photograph, of the fit, and of the photograph of as many numbers, and the
features of the three finest textures.
"""

import argparse
import functools
import itertools
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import DATA, Panel, magnified, save, sheet
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"
WIDTHS = (12, 24, 48, 96)  # of the textures, whose aspect ratio is 3 to 2
CHANNELS, HIDDEN = 4, 32
POINTS = 1 << 15
RATES = {"textures": 0.02, "network": 0.005}  # features start near 0 and grow to about 1


def start(key: jax.Array, widths: tuple[int, ...]) -> dict:
    """Textures of small features and a network of random weights."""
    keys = jax.random.split(key, len(widths) + 2)
    textures = [0.01 * jax.random.normal(k, (w * 2 // 3, w, CHANNELS)) for k, w in zip(keys, widths)]
    sizes = (CHANNELS * len(widths), HIDDEN, 3)
    layers = [
        (jax.random.normal(k, shape) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1]))
        for k, shape in zip(keys[-2:], itertools.pairwise(sizes))
    ]
    return {"textures": textures, "network": layers}


def color(parameters: dict, x: jax.Array, y: jax.Array) -> jax.Array:
    """The colors at the points (x, y), in coordinates from 0 to 1 across the picture."""
    features = [jt.sample(jt.texture2d(texels), (x, y)) for texels in parameters["textures"]]
    values = jnp.concatenate(features, axis=-1)
    *inner, (last, bias) = parameters["network"]
    for weights, offset in inner:
        values = jax.nn.relu(values @ weights + offset)
    return values @ last + bias + 0.5


def optimizer(steps: int) -> optax.GradientTransformation:
    """Adam with one rate for the textures and one for the network, which both fall to zero."""
    adams = {name: optax.adam(optax.cosine_decay_schedule(rate, steps)) for name, rate in RATES.items()}
    return optax.multi_transform(adams, {name: name for name in RATES})


@functools.partial(jax.jit, static_argnames=("steps", "total", "points"), donate_argnums=0)
def train(state, photograph: jax.Array, key: jax.Array, steps: int, total: int, points: int):
    """Takes `steps` of `total` steps, each on `points` random points; also returns the loss of each."""

    def step(state, key):
        parameters, memory = state
        x, y = jax.random.uniform(key, (2, points))
        wanted = jt.sample(jt.texture2d(photograph), (x, y))
        loss = lambda parameters: ((color(parameters, x, y) - wanted) ** 2).mean()
        value, slopes = jax.value_and_grad(loss)(parameters)
        change, memory = optimizer(total).update(slopes, memory)
        return (optax.apply_updates(parameters, change), memory), value

    return jax.lax.scan(step, state, jax.random.split(key, steps))


@functools.partial(jax.jit, static_argnames=("height", "width"))
def drawn(parameters: dict, height: int, width: int) -> jax.Array:
    """The whole picture, (height, width, 3)."""
    x, y = (jnp.arange(width) + 0.5) / width, (jnp.arange(height) + 0.5) / height
    return color(parameters, x[None, :], y[:, None])


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """The peak signal-to-noise ratio in decibels."""
    return float(-10 * np.log10(((found - truth) ** 2).mean()))


def shrunk(photograph: Image.Image, numbers: int) -> np.ndarray:
    """The photograph, shrunk to `numbers` numbers and enlarged again, with the Lanczos filter."""
    factor = (numbers / (3 * photograph.width * photograph.height)) ** 0.5
    size = round(photograph.width * factor), round(photograph.height * factor)
    small = photograph.resize(size, Image.Resampling.LANCZOS)
    return np.asarray(small.resize(photograph.size, Image.Resampling.LANCZOS), np.float32) / 255


def spread(texels: jax.Array, height: int, width: int) -> np.ndarray:
    """Three channels of features, enlarged, and scaled so that the values span 0 to 1."""
    low, high = texels.min(axis=(0, 1)), texels.max(axis=(0, 1))
    return np.asarray(jt.warp.resize((texels - low) / (high - low), (height, width), filter_mode="point"))[..., :3]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit a photograph by feature textures and a tiny network.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="use a photograph of 96 x 64 pixels; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("feature_grid.png"))
    args = parser.parse_args(argv)

    width, height, steps, rounds = (96, 64, 200, 4) if args.small else (384, 256, 40, 20)
    widths, points = ((6, 12, 24), 1 << 9) if args.small else (WIDTHS, POINTS)
    image = Image.open(args.photograph).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    photograph = jnp.asarray(np.asarray(image, np.float32) / 255)
    parameters = start(jax.random.key(args.seed), widths)
    count = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    texels = sum(texture.shape[0] * texture.shape[1] for texture in parameters["textures"])
    print(f"{count} parameters for {3 * width * height} numbers of {width} x {height} pixels")
    print(f"{points} points a step on {texels} texels of {len(widths)} textures")

    state = parameters, jax.jit(optimizer(steps * rounds).init)(parameters)
    keys = jax.random.split(jax.random.key(args.seed + 1), rounds)
    compiled = train.lower(state, photograph, keys[0], steps, steps * rounds, points).compile()
    began = time.perf_counter()
    for key in tqdm(keys, unit="round", leave=False, disable=None, file=sys.stderr):
        state, _ = jax.block_until_ready(compiled(state, photograph, key))
    seconds = time.perf_counter() - began
    fit, truth = np.asarray(drawn(state[0], height, width)), np.asarray(photograph)
    print(f"{steps * rounds} steps, {points * steps * rounds / seconds / 1e6:.2f} million points a second")
    print(f"fit {psnr(fit, truth):.2f} dB; as many numbers as pixels {psnr(shrunk(image, count), truth):.2f} dB")

    top, left = int(0.55 * height), width // 2  # the spoon
    detail = lambda image: magnified(image[top:, left:][: height // 4, : width // 4], 4)
    fitted = [Panel("photograph", detail(truth))]
    for title, found in (("fit", fit), ("as many pixels", shrunk(image, count))):
        fitted.append(Panel(f"{title}: {psnr(found, truth):.1f} dB", detail(found)))
    textures = zip(widths[-3:], state[0]["textures"][-3:])
    features = [Panel(f"features, {wide} wide", spread(texture, height, width)) for wide, texture in textures]
    save(sheet([fitted, features]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
