"""Subtracts the mean in place: pass 1 reduces a texture to its mean, pass 2 writes to the surface that pass 1 read.

`two_pass.py` makes a new texture in pass 2. Here pass 2 writes the texels back, as CUDA programs do with `surf2Dwrite`,
and the texture is donated: the result uses its memory, and the argument is invalid afterwards. The compiled program
reports how many bytes of its arguments it reuses for its results; intermediate values may use other memory.

[2, 4, 6] becomes [-2, 0, 2]. The program does the same with the channels of a photograph.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"


@functools.partial(jax.jit, donate_argnums=0)
def subtract_mean(texture: jt.Texture) -> jt.Texture:
    """A 2D texture (H, W, C) whose channels have mean zero, in the memory of `texture`, which is invalid afterwards."""
    height, width, _ = texture.shape
    grid = (jnp.arange(width)[None, :], jnp.arange(height)[:, None])
    mean = jt.surface_read(texture, grid).mean(axis=(0, 1))
    return jt.surface_write(texture, jt.surface_read(texture, grid) - mean, grid)


def reused(texture: jt.Texture) -> str:
    """The part of the memory of `texture` that the compiled program reuses for its result."""
    memory = subtract_mean.lower(texture).compile().memory_analysis()
    return f"{memory.alias_size_in_bytes if memory else 'unknown'} of {texture.texels.nbytes} bytes reused"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Subtract the mean, in place.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    args = parser.parse_args(argv)

    small = jt.texture2d(jnp.array([2.0, 4.0, 6.0])[None, :, None])
    before, memory = np.array(small.texels).ravel(), reused(small)
    print(before, "->", np.asarray(subtract_mean(small).texels).ravel(), f"({memory})")

    image = Image.open(args.photograph).convert("RGB")
    photograph = np.asarray(image.resize(args.size) if args.size else image, np.float32) / 255
    texture = jt.texture2d(jnp.array(photograph))
    memory = reused(texture)
    centered = np.asarray(subtract_mean(texture).texels)
    print(f"photograph: {memory}, argument given up: {texture.texels.is_deleted()}")
    print("mean before:", *(f"{mean:.4f}" for mean in photograph.mean((0, 1), dtype=np.float64)))
    print("mean after: ", *(f"{abs(mean):.4f}" for mean in centered.mean((0, 1), dtype=np.float64)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
