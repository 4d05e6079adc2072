"""Equalizes the histogram of a dark photograph, with one `surface_add` to count and one `surface_read` to apply.

Every pixel adds 1 to the texel of its level, in a 1D texture of 256 counts. No addition to a texel is lost, as with the
atomic adds of CUDA's `histogram256`. The cumulative sum of the counts, scaled to 0 to 255, is a table that maps each
level to its rank: frequent levels move apart, rare levels move together.

The upper pictures are the photograph, darkened and of low contrast, and the equalized photograph. The lower pictures
are their histograms as bars, and the cumulative sums as lines. The second line is almost straight.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"
LEVELS = 256
# The range of gray of the dark photograph: black becomes the first level, white the second.
DARKEST, BRIGHTEST = 16, 96
BARS, CURVE = (96, 112, 136), (178, 34, 34)


@jax.jit
def histogram(gray: jax.Array) -> jt.Texture:
    """The number of pixels of each level in `gray` (H, W), unsigned bytes: a texture of 256 counts."""
    counts = jt.texture1d(jnp.zeros((LEVELS, 1), jnp.int32))
    return jt.surface_add(counts, 1, (gray,))


@jax.jit
def equalize(gray: jax.Array, counts: jt.Texture) -> jax.Array:
    """`gray` with each level mapped to the share of pixels that are darker or equal, and the darkest to 0."""
    below = jnp.cumsum(counts.texels, axis=0)
    darkest = below[gray.min()]
    table = (below - darkest) / jnp.maximum(gray.size - darkest, 1) * (LEVELS - 1)
    return jt.surface_read(jt.texture1d((table + 0.5).astype(jnp.uint8)), (gray,))[..., 0]


def unevenness(counts: np.ndarray) -> float:
    """The largest distance of the cumulative sum from a straight line."""
    return np.abs(np.cumsum(counts) / counts.sum() - np.arange(1, LEVELS + 1) / LEVELS).max()


def bars(counts: np.ndarray, width: int, height: int) -> np.ndarray:
    """The counts as bars, and their cumulative sum as a line."""
    level = np.arange(width) * LEVELS // width
    up = np.arange(height)[::-1, None]
    top = (counts / counts.max() * (height - 1))[level]
    line = (np.cumsum(counts) / counts.sum() * (height - 1))[level]
    before = np.concatenate([[0], line[:-1]])
    picture = np.full((height, width, 3), 255, np.uint8)
    picture[(up < top) & (counts[level] > 0)] = BARS
    picture[(up >= before - 1) & (up <= line + 1)] = CURVE
    return picture


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Equalize the histogram of a dark photograph.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    parser.add_argument("--out", type=Path, default=Path("histogram_equalization.png"))
    args = parser.parse_args(argv)

    image = Image.open(args.photograph).convert("L")
    bright = np.asarray(image.resize(args.size) if args.size else image, np.float32) / 255
    dark = (DARKEST + bright * (BRIGHTEST - DARKEST) + 0.5).astype(np.uint8)
    counts = histogram(jnp.asarray(dark))
    equal = np.array_equal(counts.texels[:, 0], np.bincount(dark.ravel(), minlength=LEVELS))
    print(f"counts equal to numpy.bincount: {equal}")
    light = np.asarray(equalize(jnp.asarray(dark), counts))

    rows = [], []
    for name, gray in (("before", dark), ("after", light)):
        found = np.asarray(histogram(jnp.asarray(gray)).texels)[:, 0]
        print(
            f"{name:6} levels {gray.min()} to {gray.max()}, mean {gray.mean():.1f}, "
            f"cumulative sum off a straight line by {unevenness(found):.3f}"
        )
        height, width = gray.shape
        rows[0].append(Panel(f"{name}: levels {gray.min()} to {gray.max()}", gray))
        rows[1].append(Panel("", bars(found, width, height // 3), "histogram; red: cumulative sum"))
    save(sheet(rows), args.out)
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
