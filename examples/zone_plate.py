"""Aliasing of a zone plate that is shrunk, rotated and tilted, with and without `antialias=True`.

The rings become finer outwards, until they are finer than the pixels of the output. There the picture should be gray,
but with one read per pixel it shows rings that do not exist. With `antialias=True` a warp reads a mip chain, at the
level of detail of the derivative of its coordinates. If an output shrinks in one direction only, as on a tilted plane,
this blurs the other direction too; `max_anisotropy=16` follows the longer side of each pixel's footprint instead.

Pillow and OpenCV smooth where they resize, but not where they warp. For the upper row they resize and then rotate, each
with its best filter. A tilt has no such two steps: their warps read a few texels per pixel, however many it covers.

The picture shows each method, and the root mean square of its difference from a reference: 16 x 16 reads per pixel,
low-pass filtered to what the pixels of the output can show. A mean over each pixel would not do: it lets through a part
of what is finer than the pixels, and shows faint rings that do not exist.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from panels import Panel, save, sheet
from PIL import Image

import jaxtex as jt

try:
    import cv2
except ImportError:
    cv2 = None

GRAY = 0.5
FINEST = 0.33  # cycles per pixel at the centers of the edges of the zone plate
SHRINK, DEGREES, TILT = 4, 20.0, 0.8
READS, LOBES = 16, 3  # reads along each side of a pixel, and the half width of the low-pass filter in pixels
LONG_FOOTPRINTS = jt.Sampler(max_anisotropy=16)
METHODS = ("one read a pixel", "antialias=True", "max_anisotropy=16", "Pillow", "OpenCV", "reference, low-pass")


def zone_plate(size: int) -> np.ndarray:
    """Rings around the center, (size, size, 1): a cosine of the squared radius."""
    along = np.arange(size) + 0.5 - size / 2
    squared = along[None, :] ** 2 + along[:, None] ** 2
    return np.float32(0.5 + 0.5 * np.cos(2 * np.pi * FINEST * squared / size))[..., None]


def turned(size: int) -> np.ndarray:
    """The homography that shrinks an image of this size and rotates it about its center, from input to output."""
    cos, sin = math.cos(math.radians(DEGREES)) / SHRINK, math.sin(math.radians(DEGREES)) / SHRINK
    middle = size / SHRINK / 2
    linear = np.array([[cos, sin], [-sin, cos]])
    return np.vstack([np.c_[linear, middle - linear @ (size / 2, size / 2)], (0, 0, 1)])


def tilted(size: int) -> np.ndarray:
    """The homography of a plane that leans back: the near edge is as wide as the output, the far edge much narrower."""
    out = size / SHRINK
    # In halves of the size, from the center: (x, y) goes to (x, y') / (1 - TILT y), where y' keeps y = -1 and 1.
    project = np.array([[1 - TILT, 0, 0], [0, 1, -TILT], [0, -TILT, 1]])
    to_unit = np.array([[2 / size, 0, -1], [0, 2 / size, -1], [0, 0, 1]])
    to_pixels = np.array([[out / 2, 0, out / 2], [0, out / 2, out / 2], [0, 0, 1]])
    return to_pixels @ project @ to_unit


def reference(image: np.ndarray, matrix: np.ndarray, out: int) -> np.ndarray:
    """A warp to an output that is READS times as fine, low-pass filtered along both axes at the pixels' centers."""
    margin = np.array([[1, 0, LOBES], [0, 1, LOBES], [0, 0, 1.0]])
    fine, wide = np.diag([READS, READS, 1.0]) @ margin @ matrix, out + 2 * LOBES
    seen = np.asarray(jt.warp.warp_perspective(image, np.float32(fine), (READS * wide,) * 2, border_color=GRAY))[..., 0]
    # Lanczos's filter: a sinc, which passes what is coarser than two pixels, in a window of LOBES pixels on each side.
    away = (np.arange(READS * wide) + 0.5)[None, :] / READS - (np.arange(out) + LOBES + 0.5)[:, None]
    weights = np.where(abs(away) < LOBES, np.sinc(away) * np.sinc(away / LOBES), 0)
    weights /= weights.sum(axis=1, keepdims=True)
    return (weights @ seen @ weights.T)[..., None]


def with_pillow(image: np.ndarray, matrix: np.ndarray, out: int, turns: bool) -> np.ndarray:
    """Resized with the Lanczos filter and then rotated, or warped with a linear filter."""
    picture = Image.fromarray(image[..., 0])
    if turns:
        small = picture.resize((out, out), Image.Resampling.LANCZOS)
        return np.asarray(small.rotate(DEGREES, Image.Resampling.BICUBIC, fillcolor=GRAY))[..., None]
    back = np.linalg.inv(matrix)
    way = (Image.Transform.PERSPECTIVE, (back / back[2, 2]).ravel()[:8].tolist(), Image.Resampling.BILINEAR)
    return np.asarray(picture.transform((out, out), *way, fillcolor=GRAY))[..., None]


def with_opencv(image: np.ndarray, matrix: np.ndarray, out: int, turns: bool) -> np.ndarray | None:
    """Resized with INTER_AREA and then rotated, or warped with INTER_AREA, which is linear there."""
    if cv2 is None:
        return None
    # In OpenCV pixel centers are at whole numbers.
    centered = lambda m: np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]) @ m @ [[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]]
    flags = cv2.INTER_AREA
    if turns:
        image, flags = cv2.resize(image, (out, out), interpolation=cv2.INTER_AREA), cv2.INTER_CUBIC
        matrix = matrix @ np.diag([SHRINK, SHRINK, 1.0])
    return cv2.warpPerspective(
        image, centered(matrix), (out, out), flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=GRAY
    )[..., None]


def ways(image: np.ndarray, matrix: np.ndarray, out: int, turns: bool) -> list[np.ndarray | None]:
    """The warped image, by each of METHODS."""
    warp = lambda sampler, antialias: jt.warp.warp_perspective(
        image, np.float32(matrix), (out, out), sampler, border_color=GRAY, antialias=antialias
    )
    return [
        warp(None, False),
        warp(None, True),
        warp(LONG_FOOTPRINTS, True),
        with_pillow(image, matrix, out, turns),
        with_opencv(image, matrix, out, turns),
        reference(image, matrix, out),
    ]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Shrink, turn and tilt a zone plate, with and without antialiasing.")
    parser.add_argument("--size", type=int, default=800, help="of the zone plate, a multiple of 4")
    parser.add_argument("--small", action="store_true", help="use a zone plate of 128 pixels")
    parser.add_argument("--out", type=Path, default=Path("zone_plate.png"))
    args = parser.parse_args(argv)

    size = 128 if args.small else args.size
    out, image = size // SHRINK, zone_plate(size)
    panels = []
    for title, map_of in {"shrunk and turned": turned, "tilted": tilted}.items():
        found = ways(image, map_of(size), out, turns=map_of is turned)
        for name, seen in zip(METHODS, found):
            if seen is None:
                panels.append(Panel(name, np.ones((out, out)), "not installed"))
                continue
            note = title
            if seen is not found[-1]:
                error = np.sqrt(((np.asarray(seen) - found[-1]) ** 2).mean())
                note = f"off by {error:.3f}"
                print(f"{title}: {name:18} root mean square difference from the reference {error:.4f}")
            panels.append(Panel(name, np.asarray(seen), note))
    save(sheet([panels[start : start + 3] for start in range(0, len(panels), 3)]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
