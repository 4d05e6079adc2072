"""One read per pixel beside an antialiased read: a tiled floor up to the horizon, and a part of it magnified.

Towards the horizon a pixel covers more and more texels. One linear read takes four of them, wherever the center of the
pixel happens to be, and the floor breaks up into patterns that do not exist. The antialiased read takes up to 16
trilinear reads along the footprint of each pixel, from a mip chain. Both are one call of `jaxtex.sample` on the same
texture, with the same coordinates. `textured_plane.py` compares four filters and measures their errors.
"""

import argparse
from pathlib import Path

import numpy as np
from panels import Panel, magnified, outlined, save, sheet
from PIL import Image
from textured_plane import FILTERS, HORIZON, encode, tile, view

import jaxtex as jt

TITLES = {"linear": "one linear read a pixel", "anisotropic, 16": "max_anisotropy=16"}
MAGNIFY = 4


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw a floor with one read per pixel, and antialiased.")
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), default=(480, 320), help="of each view")
    parser.add_argument("--texels", type=int, default=512, help="the width of a tile in texels")
    parser.add_argument("--out", type=Path, default=Path("antialiasing.png"))
    args = parser.parse_args(argv)

    width, height = args.size
    texture = jt.build_mipmaps(jt.texture2d(tile(args.texels)))
    part_width, part_height = width // MAGNIFY, height // (2 * MAGNIFY)
    left, top = (width - part_width) // 2, round(HORIZON * height) + part_height // 2
    rows = [], []
    for name, title in TITLES.items():
        seen = Image.fromarray(encode(np.asarray(view(texture, width, height, FILTERS[name]))))
        part = magnified(seen.crop((left, top, left + part_width, top + part_height)), MAGNIFY)
        frame = (left, top), (left + part_width, top + part_height)
        rows[0].append(Panel(title, outlined(seen, frame, width=3)))
        rows[1].append(Panel("", part, f"the framed part x {MAGNIFY}"))
    save(sheet(rows).quantize(128, dither=Image.Dither.NONE), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
