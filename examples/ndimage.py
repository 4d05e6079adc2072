"""A photograph turned all the way around in many steps, and a detail of it enlarged, by splines of four orders.

`jaxtex.ndimage` has SciPy's names and arguments. Each step of `rotate` reads the result of the one before, so that what
a spline loses adds up: order 0 moves whole pixels and frays the edges, order 1 blurs. Splines of orders 3 and 5 pass
through the pixels too, but keep most of the detail, as the prefilter undoes what their weights would smooth. Below,
`zoom` enlarges a part. The numbers are signal-to-noise ratios of the turned photograph, in decibels.

The angle has a gradient: the program looks for the angle by which a copy was turned, by Newton's method.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, save, sheet
from PIL import Image

from jaxtex import ndimage

PHOTOGRAPH = DATA / "coffee.png"
ORDERS = (0, 1, 3, 5)
TURNED = 7.0  # degrees
GUESS = 6.2
NEWTON_STEPS = 6
FACTOR = 8


@functools.partial(jax.jit, static_argnames=("order", "steps"))
def turned_around(image: jax.Array, order: int, steps: int) -> jax.Array:
    """An image, (H, W, C), turned by 360 degrees in so many steps."""
    turn = lambda _, image: ndimage.rotate(image, 360 / steps, reshape=False, order=order, mode="mirror")
    return jax.lax.fori_loop(0, steps, turn, image)


@functools.partial(jax.jit, static_argnames="order")
def zoomed(image: jax.Array, order: int) -> jax.Array:
    """An image, (H, W, C), enlarged; each pixel is a square of the same size."""
    return ndimage.zoom(image, (FACTOR, FACTOR, 1), order=order, mode="reflect", grid_mode=True)


def disk(height: int, width: int) -> np.ndarray:
    """The pixels that stay within the image when it is turned, (H, W)."""
    y, x = np.mgrid[:height, :width] - np.reshape([(height - 1) / 2, (width - 1) / 2], (2, 1, 1))
    return np.hypot(x, y) < min(height, width) / 2 - 2


def decibels(image: np.ndarray, expected: np.ndarray, inside: np.ndarray) -> float:
    """The peak signal-to-noise ratio of the pixels inside."""
    return float(-10 * np.log10(np.mean((image - expected)[inside] ** 2)))


@jax.jit
def newton_step(
    angle: jax.Array, image: jax.Array, target: jax.Array, inside: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A better angle, and the mean squared error at the one before."""

    def difference(angle: jax.Array) -> jax.Array:
        return (ndimage.rotate(image, angle, reshape=False, order=3, mode="mirror") - target) * inside[..., None]

    found, slope = jax.jvp(difference, (angle,), (jnp.ones_like(angle),))
    return angle - jnp.vdot(slope, found) / jnp.vdot(slope, slope), jnp.mean(found**2)


def window(y: int, x: int, side: int) -> tuple[slice, slice]:
    """The rows and columns of a square about a pixel."""
    return slice(y - side // 2, y - side // 2 + side), slice(x - side // 2, x - side // 2 + side)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Turn and enlarge a photograph by splines.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--steps", type=int, default=24, help="of one turn around")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    parser.add_argument("--out", type=Path, default=Path("ndimage.png"))
    args = parser.parse_args(argv)

    image = Image.open(args.photograph).convert("RGB")
    photograph = np.asarray(image.resize(args.size) if args.size else image, np.float32) / 255
    height, width, _ = photograph.shape
    inside = disk(height, width)
    side = height // 2
    detail, small = window(height // 2, width // 2, side), window(7 * height // 10, 3 * width // 5, side // FACTOR)

    around, enlarged = [], []
    for order in ORDERS:
        found = np.asarray(turned_around(photograph, order, args.steps))
        ratio = decibels(found, photograph, inside)
        print(f"order {order}: {ratio:.1f} dB after {args.steps} turns by {360 / args.steps:g} degrees")
        around.append(Panel(f"order {order}: {ratio:.1f} dB", found[detail]))
        enlarged.append(Panel(f"order {order}, x {FACTOR}", zoomed(photograph[small], order)))
    save(sheet([around, enlarged]), args.out)

    target = ndimage.rotate(photograph, TURNED, reshape=False, order=5, mode="mirror")
    angle = jnp.float32(GUESS)
    for _ in range(NEWTON_STEPS):
        angle, loss = newton_step(angle, photograph, target, inside)
        print(f"mean squared error {loss:.2e}, next angle {angle:.4f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
