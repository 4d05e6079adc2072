"""Blurs a photograph in two passes: the first writes its result to a surface, the second reads that as a texture.

A Gaussian of N x N weights is the product of one along x and one along y, so that two passes of N weights replace N^2
weights. A linear read between two texels fetches both: weights a and b become one read, at b / (a + b) of the distance,
times a + b. Each pass takes (N + 1) / 2 reads per pixel.

A CUDA program needs two kernels, because a kernel may not read a texture that it writes. In JAX the write returns a new
texture, and both passes are in one function. The program compares the result with a plain convolution.
"""

import argparse
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "rocket.jpg"
TEXELS = jt.Sampler(address_mode="clamp", filter_mode="linear", normalized_coords=False)


def gaussian(sigma: float) -> np.ndarray:
    """The weights (N,) of a Gaussian over three standard deviations on each side, with N = 1, 5, 9, ..."""
    radius = 2 * math.ceil(1.5 * sigma)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return weights / weights.sum()


def paired(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The offsets and weights ((N + 1) / 2,) of the reads that replace symmetric weights (N,)."""
    radius = len(weights) // 2
    near, far = weights[radius + 1 :: 2], weights[radius + 2 :: 2]
    offsets, sums = np.arange(1, radius, 2) + far / (near + far), near + far
    return np.concatenate([-offsets, [0], offsets]), np.concatenate([sums, [weights[radius]], sums])


@jax.jit
def blur(texture: jt.Texture, offsets: jax.Array, weights: jax.Array) -> jax.Array:
    """The texture (H, W, C), blurred along x and then along y, by reads at `offsets` texels, times `weights`."""
    height, width, _ = texture.shape
    x, y = jnp.arange(width)[None, :], jnp.arange(height)[:, None]

    def along(texture: jt.Texture, dx: int, dy: int) -> jax.Array:
        def read(total, tap):
            offset, weight = tap
            return total + weight * jt.sample(texture, (x + 0.5 + dx * offset, y + 0.5 + dy * offset), TEXELS), None

        total, _ = jax.lax.scan(read, jnp.zeros(texture.texels.shape), (offsets, weights))
        return total

    surface = jt.texture2d(jnp.zeros_like(texture.texels))
    return along(jt.surface_write(surface, along(texture, 1, 0), (x, y)), 0, 1)


def convolved(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same in double precision, by a convolution along each axis; outside are the pixels at the edge."""
    for axis in (0, 1):
        line = lambda pixels: np.convolve(np.pad(pixels, len(weights) // 2, "edge"), weights, "valid")
        image = np.apply_along_axis(line, axis, image)
    return image


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Blur a photograph in two passes.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--sigma", type=float, default=4.0, help="the standard deviation, in pixels")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    args = parser.parse_args(argv)

    image = Image.open(args.photograph).convert("RGB")
    photograph = np.asarray(image.resize(args.size) if args.size else image, np.float32) / 255
    weights = gaussian(args.sigma)
    offsets, sums = paired(weights)
    blurred = np.asarray(blur(jt.texture2d(photograph), offsets, sums))
    error = np.abs(blurred - convolved(photograph.astype(np.float64), weights)).max()
    print(f"{len(weights)} weights in {len(sums)} reads a pixel and pass")
    print(f"largest difference from a convolution: {error:.7f} of a range of 1")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
