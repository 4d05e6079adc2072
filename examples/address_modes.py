"""Reads outside a texture under each address mode: a table, and a photograph.

The table reads T = [0, 1, 2, 3] at the texel centers of the indices -7 to 11. A texture unit wraps and mirrors
normalized coordinates only; jaxtex does so in texels too. `reflect`, which CUDA does not have, shows the edge texel
once; `mirror` shows it twice. `sphere` is a mode of two axes, longitude and latitude, and stands in the picture only.

The picture shows the whole photograph in a frame, and point reads around it, with a gray border. Below each panel stand
the reads of T at the indices -4 to 7.
"""

import argparse
from pathlib import Path

import numpy as np
from panels import DATA, Panel, magnified, outlined, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "chelsea.jpg"
MAGNIFY = 2
INDICES = np.arange(-7, 12)
MODES = ("clamp", "border", "wrap", "mirror", "reflect")


def table(mode: str) -> np.ndarray:
    """Point reads of the texels 0, 1, 2 and 3 at the centers of INDICES, inside and outside."""
    sampler = jt.Sampler(address_mode=mode, filter_mode="point", normalized_coords=False)
    texels = np.arange(4, dtype=np.int32)[:, None]
    return np.asarray(jt.sample(jt.texture1d(texels), (np.float32(INDICES + 0.5),), sampler))[:, 0]


def surroundings(mode: str, texels: np.ndarray) -> np.ndarray:
    """Point reads of the texture over [-1, 2] x [-1, 2], one for each texel."""
    u, v = ((np.arange(3 * count, dtype=np.float32) + 0.5) / count - 1 for count in texels.shape[1::-1])
    sampler = jt.Sampler(address_mode=mode, filter_mode="point")
    return np.asarray(jt.sample(jt.texture2d(texels, border_color=0.5), (u[None, :], v[:, None]), sampler))


def panel(mode: str, texels: np.ndarray) -> Panel:
    """The surroundings, with a frame around the texture itself, and the reads of T."""
    image = magnified(surroundings(mode, texels), MAGNIFY)
    third = np.array(image.size) // 3
    image = outlined(image, [third, 2 * third])
    if mode not in MODES:
        return Panel(mode, image, "half a turn beyond a pole")
    values = table(mode)[(INDICES >= -4) & (INDICES < 8)].reshape(3, 4)
    return Panel(mode, image, " | ".join(" ".join(map(str, part)) for part in values.tolist()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print the table of address modes, and draw it.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), default=(48, 32), help="of the texture")
    parser.add_argument("--out", type=Path, default=Path("address_modes.png"))
    args = parser.parse_args(argv)

    print("index  ", *(f"{index:3d}" for index in INDICES))
    for mode in MODES:
        print(f"{mode:7}", *(f"{value:3d}" for value in table(mode)))

    texels = np.asarray(Image.open(args.photograph).convert("RGB").resize(args.size), np.float32) / 255
    panels = [panel(mode, texels) for mode in (*MODES, "sphere")]
    save(sheet([panels[:3], panels[3:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
