"""Registers a photograph that was turned, shifted and scaled, by gradient descent through the read.

The moved photograph is read at s R(angle) x + shift for every pixel x of the original. The gradient of the mean squared
difference with respect to the four parameters flows through the coordinates of this read. It is useful over distances
at which the texture is smooth. The descent therefore starts at an eighth of the resolution and continues at finer ones.

The upper pictures are the original, the moved photograph and the registered photograph. The lower pictures are the loss
of each step, on a logarithmic scale, and the differences from the original before and after, gray where they are zero.
`--animation` also draws the registered photograph and its difference from the original as the steps go by.
"""

import argparse
import functools
import math
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, animate, difference, plot, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "astronaut.jpg"
BORDER = jt.Sampler(address_mode="border")

# The angle in radians, the logarithm of the scale, and the shift (x, y) in half widths of the image. Equal steps in all
# of them move the edge of the image about equally.
Motion = jax.Array
START = (0.0, 0.0, 0.0, 0.0)
WINDOW = 0.75


def grid(size: int) -> tuple[jax.Array, jax.Array]:
    """The centers of size x size pixels, from -1 to 1 across the image."""
    along = (jnp.arange(size) + 0.5) * (2 / size) - 1
    return along[None, :], along[:, None]


def move(motion: Motion, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The points (x, y), turned and scaled about 0, then shifted."""
    angle, log_scale, right, down = motion
    cos, sin = jnp.exp(log_scale) * jnp.cos(angle), jnp.exp(log_scale) * jnp.sin(angle)
    return cos * x - sin * y + right, sin * x + cos * y + down


def move_back(motion: Motion, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The inverse of `move`."""
    angle, log_scale, right, down = motion
    return move(jnp.stack([-angle, -log_scale, jnp.zeros(()), jnp.zeros(())]), x - right, y - down)


@functools.partial(jax.jit, static_argnames="way")
def warp(image: jax.Array, motion: Motion, way: Callable[..., tuple[jax.Array, jax.Array]] = move) -> jax.Array:
    """A square image (N, N, C), read at the points to which `motion` moves its pixels."""
    x, y = way(motion, *grid(len(image)))
    return jt.sample(jt.texture2d(image), ((x + 1) / 2, (y + 1) / 2), BORDER)


def loss(motion: Motion, moved: jax.Array, fixed: jax.Array) -> jax.Array:
    """The mean squared difference, in a round window that fades out before the corners that the move left empty."""
    x, y = grid(len(fixed))
    window = jnp.clip(1 - (x**2 + y**2) / WINDOW**2, 0, 1)[..., None]
    return (window * (warp(moved, motion) - fixed) ** 2).sum() / (3 * window.sum())


@functools.partial(jax.jit, static_argnames="steps")
def descend(motion: Motion, moved: jax.Array, fixed: jax.Array, rate: float, steps: int):
    """Takes `steps` steps of Adam with a rate that falls to zero; also returns loss and motion before each step."""

    def step(state, count):
        motion, mean, square = state
        value, slope = jax.value_and_grad(loss)(motion, moved, fixed)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        ahead = (mean / (1 - 0.9 ** (count + 1))) / (jnp.sqrt(square / (1 - 0.99 ** (count + 1))) + 1e-12)
        return (motion - rate * 0.5 * (1 + jnp.cos(jnp.pi * count / steps)) * ahead, mean, square), (value, motion)

    zero = jnp.zeros_like(motion)
    (motion, _, _), (values, motions) = jax.lax.scan(step, (motion, zero, zero), jnp.arange(steps, dtype=jnp.float32))
    return motion, values, motions


@functools.partial(jax.jit, static_argnames="factor")
def coarser(image: jax.Array, factor: int) -> jax.Array:
    """The means of squares of factor x factor pixels."""
    size = len(image) // factor
    return image.reshape(size, factor, size, factor, -1).mean(axis=(1, 3))


def errors(motion: Motion, truth: Motion, size: int) -> tuple[float, float, float]:
    """The errors of `motion`: in degrees, percent of scale, and pixels of shift."""
    difference = np.asarray(motion, np.float64) - np.asarray(truth, np.float64)
    return math.degrees(abs(difference[0])), 100 * abs(math.expm1(difference[1])), np.hypot(*difference[2:]) * size / 2


def words(degrees: float, percent: float, pixels: float) -> list[str]:
    return [f"{round(number, 3):.2g}{unit}" for number, unit in ((degrees, "°"), (percent, " %"), (pixels, " px"))]


def frame(moved: jax.Array, fixed: jax.Array, motion: Motion, losses: np.ndarray, count: int, size: int) -> Image.Image:
    """The photograph as it is registered after `count` steps, its difference from the original, and the losses."""
    seen = warp(moved, motion)
    limits = (0, len(losses)), (math.floor(np.log10(losses.min())), math.ceil(np.log10(losses.max())))
    curve = {"loss": (np.arange(count + 1), losses[: count + 1])}
    row = [
        Panel(f"step {count}", seen),
        Panel("minus the original", difference(seen, fixed)),
        Panel("loss", plot((size, size), curve, "step", "mean square", True, limits)),
    ]
    return sheet([row])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Register a moved photograph by gradient descent.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--degrees", type=float, default=12.0, help="the angle by which the photograph is turned")
    parser.add_argument("--shift", type=float, nargs=2, default=(0.06, -0.04), help="in half widths")
    parser.add_argument("--scale", type=float, default=1.05)
    parser.add_argument("--small", action="store_true", help="work at a quarter of the resolution; takes seconds")
    parser.add_argument("--animation", type=Path, help="also write an animation to this file, a .webp or a .gif")
    parser.add_argument("--out", type=Path, default=Path("register.png"))
    args = parser.parse_args(argv)

    photograph = Image.open(args.photograph).convert("RGB")
    side, size = min(photograph.size), 96 if args.small else 384
    left, top = (photograph.width - side) // 2, (photograph.height - side) // 2
    box = (left, top, left + side, top + side)
    fixed = jnp.asarray(np.asarray(photograph.resize((size, size), box=box), np.float32) / 255)
    truth = jnp.array([math.radians(args.degrees), math.log(args.scale), *args.shift], jnp.float32)
    moved = warp(fixed, truth, move_back)

    motion, losses, motions = jnp.array(START), [], []
    for factor in (8, 2) if args.small else (32, 16, 8, 4, 2):
        levels = coarser(moved, factor), coarser(fixed, factor)
        motion, values, path = descend(motion, *levels, rate=0.02 * factor * 12 / size, steps=60)
        losses.append(np.asarray(values))
        motions.append(np.asarray(path))
        off = errors(motion, truth, size)
        print(
            f"{size // factor:3d} pixels a side: loss {values[-1]:.6f}, "
            f"off by {off[0]:.4f} degrees, {off[1]:.4f} % of scale, {off[2]:.4f} pixels of {size}"
        )

    final = warp(moved, motion)
    losses, motions = np.concatenate(losses), np.concatenate(motions)
    curve = plot((size, size), {"loss": (np.arange(len(losses)), losses)}, "step", "mean square", True)
    start, end = ("off " + ", ".join(words(*errors(m, truth, size))) for m in (jnp.array(START), motion))
    rows = [
        [Panel("original", fixed), Panel("moved", moved), Panel("registered", final)],
        [
            Panel("loss", curve),
            Panel("moved - original", difference(moved, fixed), start),
            Panel("registered - original", difference(final, fixed), end),
        ],
    ]
    save(sheet(rows), args.out)
    if args.animation:
        small = [coarser(image, 2) for image in (moved, fixed)]
        counts = [*range(0, len(losses) - 60, 6), len(losses) - 1]
        frames = [frame(*small, jnp.asarray(motions[count]), losses, count, size // 2) for count in counts]
        animate(frames, args.animation, 80)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
