"""Learns the two widths of a bilateral filter from a noisy and a clean photograph.

A bilateral filter averages the pixels around each one, and gives those the most weight that are near and have a similar
color. So it removes noise and keeps edges, if both widths are right: the spatial one, in pixels, and that of colors.
The filter is one function of one pixel, a loop over a window of 11 x 11, and `jaxtex.fused_map` makes one kernel of it
on a GPU. Nothing but the result is stored.

Gradient descent finds the logarithms of both widths. There are two, so forward mode is right: `jax.jvp` along each of
them, as `jax.jacfwd` does it, through the loop.

The program prints both widths, and how close the photograph comes to the clean one. The picture shows the noisy
photograph, the filter at the start and at the end, the clean photograph, and a part of each, magnified.
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, magnified, outlined, save, sheet, to_image
from PIL import Image
from tqdm import trange

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"
REACH, NOISE = 5, 0.08  # pixels on each side; the standard deviation of the noise, of values from 0 to 1
START = 1.0, 0.1  # the widths from which the descent starts
RATE = 0.3
MAGNIFY, PART = 4, (0.48, 0.45)  # and the left upper corner of the part that is magnified, of the width and height
PIXELS = jt.Sampler(filter_mode="point", normalized_coords=False)


def pixel(y, x, texture, widths):
    """The mean of the colors around a pixel, (3,), by how near and how similar they are."""
    near, similar = widths
    color = lambda dx, dy: jt.sample(texture, (x + dx + 0.5, y + dy + 0.5), PIXELS)
    center = color(0, 0)

    def add(k, sums):
        dx, dy = k % (2 * REACH + 1) - REACH, k // (2 * REACH + 1) - REACH
        value = color(dx, dy)
        far = (dx**2 + dy**2) / near**2 + ((value - center) ** 2).sum() / similar**2
        weight = jnp.exp(-far / 2)
        return sums[0] + weight * value, sums[1] + weight

    total, weights = jax.lax.fori_loop(0, (2 * REACH + 1) ** 2, add, (jnp.zeros(3), jnp.float32(0)))
    return total / weights


@jax.jit
def filtered(image, logarithms):
    return jt.fused_map(pixel, image.shape[:2])(jt.texture2d(image), jnp.exp(logarithms))


@jax.jit
def improved(logarithms, noisy, clean):
    """The logarithms of both widths after a step towards more decibels."""
    loss = lambda logarithms: jnp.log(((filtered(noisy, logarithms) - clean) ** 2).mean())
    return logarithms - RATE * jax.jacfwd(loss)(logarithms)


def psnr(image, clean):
    return float(-10 * np.log10(((image - clean) ** 2).mean()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), default=(240, 160))
    parser.add_argument("--steps", type=int, default=20, help="of the descent")
    parser.add_argument("--out", type=Path, default=Path("bilateral_filter.png"))
    args = parser.parse_args(argv)

    clean = np.asarray(Image.open(args.photograph).convert("RGB").resize(args.size), np.float32) / 255
    noisy = clean + NOISE * np.random.default_rng(0).normal(size=clean.shape).astype(np.float32)
    widths = {"start": np.float32(START)}
    logarithms = np.log(widths["start"])
    for _ in trange(args.steps, desc="learning", leave=False, disable=None, file=sys.stderr):
        logarithms = improved(logarithms, noisy, clean)
    widths["learned"] = np.exp(logarithms)

    images, notes = {"noisy": noisy}, {"noisy": f"{psnr(noisy, clean):.1f} dB", "clean": "the truth"}
    for name, (near, similar) in widths.items():
        images[name] = np.asarray(filtered(noisy, np.log(widths[name])))
        notes[name] = f"{psnr(images[name], clean):.1f} dB"
        print(f"{name}: {near:.2f} pixels, colors {similar:.3f}; {notes[name]}, without a filter {notes['noisy']}")
    images["clean"] = clean

    width, height = args.size
    left, top = round(PART[0] * width), round(PART[1] * height)
    part = np.array([(left, top), (left + width // MAGNIFY, top + height // MAGNIFY)])
    rows = [], []
    for name, image in images.items():
        rows[0].append(Panel(name, outlined(image, part, "white", 1), notes[name]))
        rows[1].append(Panel("", magnified(to_image(image).crop(tuple(part.ravel())), MAGNIFY)))
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
