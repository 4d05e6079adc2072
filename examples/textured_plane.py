"""A tiled plane up to the horizon, read with four filters: point, linear, trilinear and 16 times anisotropic.

Near the horizon a pixel covers a long strip of many texels. Point and linear reads take one or four of them, and the
picture shows aliasing. A trilinear read chooses the mip level by the longer side of the strip, which is right along the
strip but blurs across it. An anisotropic read chooses the level by the shorter side and takes up to 16 reads along the
longer side.

`jaxtex.footprint` computes the texels that a pixel covers from the derivatives of the map from pixels to the plane. The
program prints the difference between each picture and a picture with 16 x 16 reads per pixel.
"""

import argparse
import functools
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, save, sheet
from PIL import Image

import jaxtex as jt

MIPS = {"address_mode": "wrap", "mipmap_filter_mode": "linear"}
# All get the footprint; without mip levels it has no effect.
FILTERS = {
    "point": jt.Sampler(address_mode="wrap", filter_mode="point", max_mipmap_level_clamp=0),
    "linear": jt.Sampler(address_mode="wrap", max_mipmap_level_clamp=0),
    "trilinear": jt.Sampler(**MIPS),
    "anisotropic, 16": jt.Sampler(**MIPS, max_anisotropy=16),
}
HORIZON = 0.16  # from the top of the picture
TURN = math.radians(25)
TILES = 1.25  # in the width of the lowest row
SKY = (0.62, 0.76, 0.9)
STONES, JOINT, PALE, DARK = (4, (0.16, 0.15, 0.14), (0.88, 0.84, 0.76), (0.42, 0.13, 0.08))


@functools.partial(jax.jit, static_argnames="size")
def tile(size: int) -> jax.Array:
    """A floor of pale and dark stones with thin joints, in linear colors: (size, size, 3)."""
    along = (jnp.arange(size) + 0.5) / size * STONES
    x, y = along[None, :, None], along[:, None, None]
    dark = (jnp.floor(x) + jnp.floor(y)) % 2 == 1
    inside = jnp.maximum(jnp.abs(x % 1 - 0.5), jnp.abs(y % 1 - 0.5))
    stone = jnp.where(dark, jnp.array(DARK), jnp.array(PALE))
    inlay = jnp.where(dark, jnp.array(PALE), jnp.array(DARK))
    ring = jnp.abs(jnp.hypot(x % 1 - 0.5, y % 1 - 0.5) - 0.26) < 0.035
    return jnp.where(inside > 0.47, jnp.array(JOINT), jnp.where(ring, inlay, stone))


def on_plane(x: jax.Array, y: jax.Array, width: int, height: int) -> tuple[jax.Array, jax.Array]:
    """The point of the plane on the ray through the point (x, y) of the picture, in tiles."""
    horizon = HORIZON * height
    depth = (height - horizon) / jnp.maximum(y - horizon, 0.25)
    right, ahead = (x - width / 2) / width * TILES * depth, depth * TILES
    return right * math.cos(TURN) - ahead * math.sin(TURN), right * math.sin(TURN) + ahead * math.cos(TURN)


@functools.partial(jax.jit, static_argnames=("width", "height", "sampler"))
def view(texture: jt.Texture, width: int, height: int, sampler: jt.Sampler, dx=0.0, dy=0.0) -> jax.Array:
    """The picture (height, width, 3) of the plane, pixels shifted by (dx, dy)."""
    x, y = jnp.arange(width)[None, :] + 0.5 + dx, jnp.arange(height)[:, None] + 0.5 + dy
    place = functools.partial(on_plane, width=width, height=height)
    ddx, ddy = jt.footprint(place, (x, y))
    colors = jt.sample(texture, place(x, y), sampler, ddx=ddx, ddy=ddy)
    return jnp.where(y[..., None] > HORIZON * height, colors, jnp.array(SKY))


@functools.partial(jax.jit, static_argnames=("width", "height", "side"))
def truth(texture: jt.Texture, width: int, height: int, side: int) -> jax.Array:
    """The mean of side x side linear reads in each pixel."""
    offsets = (jnp.arange(side) + 0.5) / side - 0.5
    dx, dy = (offset.ravel() for offset in jnp.meshgrid(offsets, offsets))
    one = lambda total, offset: (total + view(texture, width, height, FILTERS["linear"], *offset), None)
    total, _ = jax.lax.scan(one, jnp.zeros((height, width, 3)), (dx, dy))
    return total / side**2


def encode(linear: np.ndarray) -> np.ndarray:
    """Linear colors as sRGB bytes."""
    c = np.clip(linear, 0, 1)
    return np.uint8(np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055) * 255 + 0.5)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw a plane up to the horizon with four filters.")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), default=(232, 300), help="of each panel")
    parser.add_argument("--texels", type=int, default=256, help="the width of a tile in texels")
    parser.add_argument("--out", type=Path, default=Path("textured_plane.png"))
    args = parser.parse_args(argv)

    width, height = args.size
    texture = jt.build_mipmaps(jt.texture2d(tile(args.texels)))
    expected = np.asarray(truth(texture, width, height, side=16))
    panels = []
    for name, sampler in FILTERS.items():
        seen = np.asarray(view(texture, width, height, sampler))
        print(f"{name:15} mean difference from 256 reads a pixel: {np.abs(seen - expected).mean():.4f}")
        panels.append(Panel(name, encode(seen), f"off by {np.abs(seen - expected).mean():.3f}"))
    save(sheet([panels[:2], panels[2:]]).quantize(128, dither=Image.Dither.NONE), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
