"""Reads outside a texture under each address mode: a table, and a photograph.

The table reads T = [0, 1, 2, 3] at the texel centers of the indices -7 to 11. A texture unit wraps and mirrors
normalized coordinates only; jaxtex does so in texels too. `reflect`, which CUDA does not have, shows the edge texel
once; `mirror` shows it twice. `sphere` is a mode of two axes, longitude and latitude, and stands in the picture only.

The picture shows a coarse detail of the photograph in a frame, and point reads around it, with a gray border.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

import jaxtex as jt

PHOTOGRAPH = Path(__file__).parent / "data" / "coffee.png"
MODES = ("clamp", "border", "wrap", "mirror", "reflect")


def table(mode: str, texels: jax.Array, indices: jax.Array) -> jax.Array:
    """Point reads at the centers of the texels `indices`, inside and outside."""
    sampler = jt.Sampler(address_mode=mode, filter_mode="point", normalized_coords=False)
    return jt.sample(jt.texture1d(texels[:, None]), (indices + 0.5,), sampler)[:, 0]


def surroundings(mode: str, detail: np.ndarray, size: int) -> np.ndarray:
    """The texture `detail` over [-1, 2] x [-1, 2], an image of `size` by `size` pixels."""
    u = (jnp.arange(size) + 0.5) * (3 / size) - 1
    sampler = jt.Sampler(address_mode=mode, filter_mode="point")
    return np.asarray(jt.sample(jt.texture2d(detail, border_color=0.5), (u[None, :], u[:, None]), sampler))


def panel(mode: str, detail: np.ndarray, size: int) -> np.ndarray:
    """The surroundings under a line of text, with a frame around the texture itself."""
    image = Image.new("RGB", (size, size + 24), "white")
    image.paste(Image.fromarray(np.uint8(surroundings(mode, detail, size) * 255 + 0.5)), (0, 24))
    draw = ImageDraw.Draw(image)
    draw.text((4, 3), mode, fill="black", font_size=16)
    draw.rectangle((size // 3 - 1, size // 3 + 23, 2 * size // 3, 2 * size // 3 + 24), outline="white")
    return np.asarray(image)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print the table of address modes, and draw it.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, default=240, help="the width of each panel in pixels")
    parser.add_argument("--out", type=Path, default=Path("address_modes.png"))
    args = parser.parse_args(argv)

    indices = jnp.arange(-7, 12)
    print("index  ", *(f"{index:3d}" for index in np.asarray(indices)))
    for mode in MODES:
        print(f"{mode:7}", *(f"{value:3d}" for value in np.asarray(table(mode, jnp.arange(4), indices))))

    photograph = Image.open(args.photograph).convert("RGB")
    detail = np.asarray(photograph.resize((20, 20), box=(190, 180, 350, 340)), np.float32) / 255
    gap = np.full((args.size + 24, 8, 3), 255, np.uint8)
    strips = [strip for mode in (*MODES, "sphere") for strip in (panel(mode, detail, args.size), gap)]
    Image.fromarray(np.concatenate(strips[:-1], axis=1)).save(args.out)
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
