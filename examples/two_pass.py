"""Normalizes an array in two passes over one texture: pass 1 reduces it to its mean, pass 2 updates every texel.

A CUDA program that updates in place needs two kernels, because one kernel may not read and write a texture. In JAX both
passes are in one function: pass 2 makes new texels, and pass 1 reads the old ones.

[2, 4, 6] becomes [-2, 0, 2]. The picture shows the photograph, and the photograph with the mean of each channel moved
to medium gray, which removes the color cast of the wood.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = Path(__file__).parent / "data" / "coffee.png"


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
    parser.add_argument("--out", type=Path, default=Path("two_pass.png"))
    args = parser.parse_args(argv)

    values = jnp.array([2.0, 4.0, 6.0])
    print(np.asarray(values), "->", np.asarray(subtract_mean(jt.texture2d(values[None, :, None])).texels[0, :, 0]))

    photograph = np.asarray(Image.open(args.photograph).convert("RGB"))
    normalized = np.asarray(subtract_mean(jt.texture2d(np.float32(photograph) / 255)).texels)
    print("mean before:", *(f"{mean:.4f}" for mean in photograph.mean((0, 1)) / 255))
    print("mean after: ", *(f"{abs(mean):.4f}" for mean in normalized.mean((0, 1), dtype=np.float64)))
    balanced = np.uint8(np.clip(normalized + 0.5, 0, 1) * 255 + 0.5)
    Image.fromarray(np.concatenate([photograph, balanced], axis=1)).save(args.out)
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
