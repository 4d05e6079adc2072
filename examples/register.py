"""Registers a photograph that was turned, shifted and scaled, by gradient descent through the read.

The moved photograph is read at s R(angle) x + shift for every pixel x of the original. The gradient of the mean squared
difference with respect to the four parameters flows through the coordinates of this read. It is useful over distances
at which the texture is smooth. The descent therefore starts at an eighth of the resolution and continues at finer ones.

The upper pictures are the original, the moved photograph and the registered photograph. The lower pictures are the
differences from the original at the start and at the end, gray where they are zero, and the loss of each step, on a
logarithmic scale.
"""

import argparse
import functools
import math
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

import jaxtex as jt

PHOTOGRAPH = Path(__file__).parent / "data" / "coffee.png"
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
def descend(motion: Motion, moved: jax.Array, fixed: jax.Array, rate: float, steps: int) -> tuple[Motion, jax.Array]:
    """Takes `steps` steps of Adam with a rate that falls to zero; also returns the loss before each step."""

    def step(state, count):
        motion, mean, square = state
        value, slope = jax.value_and_grad(loss)(motion, moved, fixed)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        ahead = (mean / (1 - 0.9 ** (count + 1))) / (jnp.sqrt(square / (1 - 0.99 ** (count + 1))) + 1e-12)
        return (motion - rate * 0.5 * (1 + jnp.cos(jnp.pi * count / steps)) * ahead, mean, square), value

    zero = jnp.zeros_like(motion)
    (motion, _, _), values = jax.lax.scan(step, (motion, zero, zero), jnp.arange(steps, dtype=jnp.float32))
    return motion, values


@functools.partial(jax.jit, static_argnames="factor")
def coarser(image: jax.Array, factor: int) -> jax.Array:
    """The means of squares of factor x factor pixels."""
    size = len(image) // factor
    return image.reshape(size, factor, size, factor, -1).mean(axis=(1, 3))


def errors(motion: Motion, truth: Motion, size: int) -> tuple[float, float, float]:
    """The errors of `motion`: in degrees, percent of scale, and pixels of shift."""
    difference = np.asarray(motion, np.float64) - np.asarray(truth, np.float64)
    return math.degrees(abs(difference[0])), 100 * abs(math.expm1(difference[1])), np.hypot(*difference[2:]) * size / 2


def curve(losses: np.ndarray, size: int) -> np.ndarray:
    """The loss of each step, on a logarithmic scale."""
    image = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(image)
    log = np.log10(losses)
    low, high = np.floor(log.min()), np.ceil(log.max())
    xs, ys = np.linspace(4, size - 4, len(log)), 4 + (high - log) / (high - low) * (size - 8)
    for decade in np.arange(low, high + 1):
        y = 4 + (high - decade) / (high - low) * (size - 8)
        draw.line((0, y, size, y), fill="lightgray")
        draw.text((4, y if decade > low else y - 12), f"1e{decade:.0f}", fill="black", font_size=11)
    draw.line(list(zip(xs.tolist(), ys.tolist())), fill="firebrick", width=2)
    return np.asarray(image)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Register a moved photograph by gradient descent.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--degrees", type=float, default=12.0, help="the angle by which the photograph is turned")
    parser.add_argument("--shift", type=float, nargs=2, default=(0.06, -0.04), help="in half widths")
    parser.add_argument("--scale", type=float, default=1.05)
    parser.add_argument("--small", action="store_true", help="work at a quarter of the resolution; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("register.png"))
    args = parser.parse_args(argv)

    photograph = Image.open(args.photograph).convert("RGB")
    side, size = min(photograph.size), 96 if args.small else 384
    left, top = (photograph.width - side) // 2, (photograph.height - side) // 2
    box = (left, top, left + side, top + side)
    fixed = jnp.asarray(np.asarray(photograph.resize((size, size), box=box), np.float32) / 255)
    truth = jnp.array([math.radians(args.degrees), math.log(args.scale), *args.shift], jnp.float32)
    moved = warp(fixed, truth, move_back)

    motion, losses = jnp.array(START), []
    for factor in (8, 2) if args.small else (32, 16, 8, 4, 2):
        levels = coarser(moved, factor), coarser(fixed, factor)
        motion, values = descend(motion, *levels, rate=0.02 * factor * 12 / size, steps=60)
        losses.append(np.asarray(values))
        off = errors(motion, truth, size)
        print(
            f"{size // factor:3d} pixels a side: loss {values[-1]:.6f}, "
            f"off by {off[0]:.4f} degrees, {off[1]:.4f} % of scale, {off[2]:.4f} pixels of {size}"
        )

    final = warp(moved, motion)
    panels = [fixed, moved, final, 0.5 + moved - fixed, 0.5 + final - fixed]
    panels = [np.uint8(np.clip(np.asarray(panel), 0, 1) * 255 + 0.5) for panel in panels]
    panels.append(curve(np.concatenate(losses), size))
    rows = [np.concatenate(panels[row : row + 3], axis=1) for row in (0, 3)]
    Image.fromarray(np.concatenate(rows)).save(args.out)
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
