"""Rotates a photograph about its center by one compiled, linear, wrapped read: CUDA's `transformKernel`.

The CUDA program reads pixel x at the normalized coordinate x / W, which is the left edge of texel x; its center is at
(x + 0.5) / W. Therefore theta = 0 does not return the photograph: a read at a corner is the mean of the four texels
that meet there, a blur and a shift by half a texel. With `center=0.5`, theta = 0 is the identity: to the last bit if W
and H are powers of two, otherwise up to the rounding of (x + 0.5) / W.

The picture shows the photograph turned counter-clockwise, and a magnified detail at theta = 0: of the photograph
itself, read without the half texel, and read with it. The photograph appears again in the corners, because the texture
repeats.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, magnified, save, sheet, to_bytes
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "chelsea.jpg"
MAGNIFY = 8
WRAP = jt.Sampler(address_mode="wrap")


@functools.partial(jax.jit, static_argnames="center")
def rotate(texture: jt.Texture, theta: float | jax.Array, center: float = 0.5) -> jax.Array:
    """The texture (H, W, C) turned by `theta` radians; pixel (x, y) is read at x + center, y + center.

    Lengths are in texels, not in widths and heights. Otherwise a texture that is not square would be sheared.
    """
    height, width, _ = texture.shape
    u = (jnp.arange(width) + center)[None, :] / width - 0.5
    v = (jnp.arange(height) + center)[:, None] / height - 0.5
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    return jt.sample(
        texture,
        (u * cos - v * (height / width) * sin + 0.5, v * cos + u * (width / height) * sin + 0.5),
        WRAP,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rotate a photograph through one read.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--theta", type=float, default=0.5, help="the angle in radians")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    parser.add_argument("--out", type=Path, default=Path("rotate.png"))
    args = parser.parse_args(argv)

    image = Image.open(args.photograph).convert("RGB")
    photograph = np.asarray(image.resize(args.size) if args.size else image, np.float32) / 255
    texture = jt.texture2d(photograph)
    for center in (0.0, 0.5):
        error = np.abs(np.asarray(rotate(texture, 0.0, center)) - photograph)
        print(f"theta = 0 read at x + {center}: mean difference {error.mean():.6f}, largest {error.max():.6f}")

    height, width, _ = photograph.shape
    detail = np.s_[height // 4 :, width // 5 :]
    cut = lambda image: magnified(to_bytes(image)[detail][: height // MAGNIFY, : width // MAGNIFY], MAGNIFY)
    rows = [
        [
            Panel("the photograph", photograph),
            Panel(f"turned by {args.theta:g} rad, wrapped", rotate(texture, args.theta)),
        ],
        [
            Panel("theta = 0, at (x + 0.5) / W", cut(rotate(texture, 0.0)), "equal to the photograph"),
            Panel("theta = 0, at x / W", cut(rotate(texture, 0.0, 0.0)), "blurred, and shifted by half a texel"),
        ],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
