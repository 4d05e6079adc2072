"""Normalizes an array in two passes over one texture: pass 1 reduces it to its mean, pass 2 updates every texel.

A CUDA program that updates in place needs two kernels, because one kernel may not read and write a texture. In JAX both
passes are in one function: pass 2 makes new texels, and pass 1 reads the old ones.

[2, 4, 6] becomes [-2, 0, 2]. Light of two colors is added to the same photograph, as haze does. The mean of each
channel holds all of that light, so that both results are equal, up to rounding.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "astronaut.jpg"
CONTRAST = 0.6
LIGHTS = {"warm": (0.35, 0.2, 0.0), "cold": (0.0, 0.2, 0.35)}


@jax.jit
def subtract_mean(texture: jt.Texture) -> jt.Texture:
    """A 2D texture (H, W, C) whose channels have mean zero."""
    height, width, _ = texture.shape
    grid = (jnp.arange(width)[None, :], jnp.arange(height)[:, None])
    mean = jt.fetch(texture, grid).mean(axis=(0, 1), keepdims=True)
    return jt.texture2d(jt.fetch(texture, grid) - mean)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Subtract the mean, in two passes.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    args = parser.parse_args(argv)

    values = np.float32([2, 4, 6])
    print(values, "->", np.asarray(subtract_mean(jt.texture2d(values[None, :, None])).texels)[0, :, 0])

    photograph = np.asarray(Image.open(args.photograph).convert("RGB").resize((360, 360)), np.float32) / 255
    results = []
    for name, light in LIGHTS.items():
        before = CONTRAST * photograph + np.float32(light)
        after = np.asarray(subtract_mean(jt.texture2d(before)).texels)
        means = [" ".join(f"{mean:.2f}" for mean in image.mean((0, 1), dtype=np.float64)) for image in (before, after)]
        print(f"{name} light: means before {means[0]}, largest mean after {abs(after.mean((0, 1))).max():.7f}")
        results.append(after)
    print(f"largest difference of the results: {np.abs(results[0] - results[1]).max():.7f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
