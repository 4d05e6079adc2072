"""Fits a photograph and a volume by a hash grid and a tiny network, beside a dense grid of as many parameters.

A multiresolution grid keeps features at the vertices of grids of several resolutions. A point reads the features
around it in each of them, and a network of two small layers maps them to a color or a density. In a hash grid the
vertices of a fine level share the rows of a short table, by a hash of their place. So a few numbers reach fine details,
and training leaves the rows to those vertices that need them. A dense grid of as many numbers has a row for each
vertex, and so coarser levels. (T. Müller, A. Evans, C. Schied and A. Keller, "Instant Neural Graphics Primitives with a
Multiresolution Hash Encoding", 2022.)

The volume is a made-up phantom: shells thinner than the vertices of the dense grid lie apart. Each step reads random
points, and moves the features and the network by Adam. The program prints the peak signal-to-noise ratio of both grids
as seconds go by.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import DATA
from PIL import Image
from tqdm import tqdm

import jaxtex as jt
from jaxtex.nn import MultiresolutionGrid

PHOTOGRAPH = DATA / "coffee.png"
HIDDEN = 32
OPTIMIZER = optax.adam(1e-2, b2=0.99, eps=1e-15)  # as instant-ngp
SHELLS, THICKNESS = 4, 0.016  # of the phantom

Points = jax.Array | np.ndarray  # (..., D), from 0 to 1


class Task(NamedTuple):
    """What is fitted.

    Attributes:
        truth: the values (..., C) at points.
        grids: what it is fitted by, by name.
        tested: the points at which fits are compared.
    """

    truth: Callable[[Points], jax.Array]
    grids: dict[str, MultiresolutionGrid]
    tested: Points


def start(key: jax.Array, grid: MultiresolutionGrid, channels: int) -> dict[str, Any]:
    """The features and the weights at the beginning."""
    keys = jax.random.split(key, 4)
    sizes = (grid.num_levels * grid.features_per_level, HIDDEN, HIDDEN, channels)
    shapes = zip(keys[1:], sizes[:-1], sizes[1:])
    layers = [jax.random.normal(k, (m, n)) * (2 / m) ** 0.5 for k, m, n in shapes]
    return {"table": jt.nn.multiresolution_grid_init(keys[0], grid), "layers": layers}


def fitted(parameters: dict[str, Any], points: Points, grid: MultiresolutionGrid) -> jax.Array:
    """The values (..., C) of a fit at points."""
    values = jt.nn.multiresolution_grid(parameters["table"], points, grid)
    *inner, last = parameters["layers"]
    for weights in inner:
        values = jax.nn.relu(values @ weights)
    return values @ last + 0.5


@functools.partial(jax.jit, static_argnames=("truth", "grid", "steps", "points"), donate_argnums=0)
def train(state: Any, key: jax.Array, truth: Any, grid: MultiresolutionGrid, steps: int, points: int) -> Any:
    """Takes `steps` steps, each on `points` random points."""

    def step(state: Any, key: jax.Array) -> Any:
        parameters, memory = state
        places = jax.random.uniform(key, (points, grid.ndim))
        wanted = truth(places)
        slopes = jax.grad(lambda p: ((fitted(p, places, grid) - wanted) ** 2).mean())(parameters)
        change, memory = OPTIMIZER.update(slopes, memory)
        return (optax.apply_updates(parameters, change), memory), None

    return jax.lax.scan(step, state, jax.random.split(key, steps))[0]


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """The peak signal-to-noise ratio in decibels."""
    return float(-10 * np.log10(((found - truth) ** 2).mean()))


def centers(*sizes: int) -> np.ndarray:
    """The centers of the pixels of an image, (H, W, 2), or of voxels, x first."""
    lines = [(np.arange(size, dtype=np.float32) + 0.5) / size for size in sizes]
    return np.stack(np.meshgrid(*lines, indexing="ij")[::-1], -1)


def phantom(points: Points) -> jax.Array:
    """The density of nested shells, each turned a little off the middle of the one before."""
    density, middle = 0.0, jnp.full(3, 0.5)
    for k in range(SHELLS):
        middle = middle + 0.02 * jnp.array([np.cos(2.4 * k), np.sin(2.4 * k), np.sin(1.7 * k)])
        distance = jnp.linalg.norm((points - middle) * jnp.array([1, 1.5, 1]), axis=-1)
        inside = THICKNESS / 2 - jnp.abs(distance - (0.44 - 0.09 * k))
        density += (1 - 0.2 * k) * jax.nn.sigmoid(inside / (THICKNESS / 5))
    return density[..., None]


def tasks(photograph: Image.Image, small: bool) -> dict[str, Task]:
    """The photograph and the volume, with grids of as many parameters."""
    pixels = jnp.asarray(np.asarray(photograph, np.float32) / 255)
    texture = jt.texture2d(pixels)
    read = lambda points: jt.sample(texture, tuple(jnp.unstack(points, axis=-1)))
    side = 24 if small else 48
    flat, deep = (
        {
            "hash grid": MultiresolutionGrid(
                ndim=ndim, num_levels=levels, base_resolution=8, finest_resolution=finest, log2_hashmap_size=log2_rows
            ),
            "dense grid": MultiresolutionGrid(
                ndim=ndim, num_levels=3, base_resolution=8, finest_resolution=dense, log2_hashmap_size=24
            ),
        }
        for ndim, levels, finest, log2_rows, dense in (
            ((2, 5, 64, 9, 38), (3, 4, 32, 11, 17)) if small else ((2, 10, 400, 12, 152), (3, 6, 100, 13, 32))
        )
    )
    return {
        "photograph": Task(read, flat, centers(photograph.height, photograph.width)),
        "volume": Task(phantom, deep, centers(side, side, side)),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fit a photograph and a volume by a hash grid and a dense grid.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="use 96 x 64 pixels and few steps; takes seconds")
    args = parser.parse_args(argv)

    width, height, rounds, steps, points = (96, 64, 4, 25, 1 << 10) if args.small else (300, 200, 20, 40, 1 << 14)
    photograph = Image.open(args.photograph).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    for what, task in tasks(photograph, args.small).items():
        wanted, histories = np.asarray(jax.jit(task.truth)(task.tested)), {}
        for name, grid in task.grids.items():
            key, *keys = jax.random.split(jax.random.key(args.seed), rounds + 1)
            parameters = start(key, grid, wanted.shape[-1])
            count = sum(leaf.size for leaf in jax.tree.leaves(parameters))
            print(f"{what}, {name}: levels of {grid.resolutions} vertices an axis, {count} parameters")
            state = parameters, jax.jit(OPTIMIZER.init)(parameters)
            compiled = train.lower(state, keys[0], task.truth, grid, steps, points).compile()
            evaluate = jax.jit(functools.partial(fitted, grid=grid))
            ratio = lambda parameters: psnr(np.asarray(evaluate(parameters, task.tested)), wanted)  # noqa: B023
            seconds, history = 0.0, [(0.0, ratio(parameters))]
            for key in tqdm(keys, unit="round", leave=False, disable=None, file=sys.stderr):
                began = time.perf_counter()
                state = jax.block_until_ready(compiled(state, key))
                seconds += time.perf_counter() - began
                history.append((seconds, ratio(state[0])))
            histories[name] = history
        for number in sorted({1, rounds // 4, rounds // 2, rounds}):
            told = (
                f"{name} {history[number][1]:.2f} dB after {history[number][0]:.2f} s"
                for name, history in histories.items()
            )
            print(f"{what}, {number * steps} steps: " + ", ".join(told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
