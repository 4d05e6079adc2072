"""Corrects a photograph that a real lens took, with a chessboard that is held into it.

The photograph is one of OpenCV's samples. As in `chessboard.py`, the Gauss-Newton method finds the coefficients k1 and
k2 of the lens, the homography of the board and the light, by gradients through `jaxtex.warp.undistort` and
`jaxtex.warp.warp_perspective`. It starts without distortion, from the four outer corners of the board, which were read
off the photograph to a pixel. Here the truth is not known: the program prints the coefficients, and the mean squared
difference from the pattern at the start and at the end.

The picture shows the photograph before and after, with straight lines between the ends of the outer rows and columns of
corners, and a part of each, magnified.
"""

import argparse
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from chessboard import camera, gauss_newton, homography_of, mapped, marked, to_unit
from panels import DATA, Panel, magnified, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "chessboard.jpg"
SQUARES = (8, 5)  # between the outer corners, along x and y
# The outer corners in pixels of the photograph, clockwise; the square at the first is black.
CORNERS = np.array([(277, 73), (604, 169), (544, 390), (187, 257)], np.float64)
DARK, PALE = 0.05, 0.95
MAGNIFY = 4
SIDE, STEPS = 24, 12  # the width of a square in the pattern in pixels; steps of Gauss and Newton


def pattern() -> jnp.ndarray:
    """The squares between the outer corners, (H, W, 1)."""
    x, y = ((np.arange(n * SIDE) + 0.5) // SIDE for n in SQUARES)
    return jnp.float32(np.where((x[None, :] + y[:, None]) % 2 == 0, DARK, PALE))[..., None]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find and correct the distortion of a real lens.")
    parser.add_argument("--small", action="store_true", help="use half of the resolution")
    parser.add_argument("--out", type=Path, default=Path("lens.png"))
    args = parser.parse_args(argv)

    image = Image.open(PHOTOGRAPH).convert("L")
    image = image.reduce(2) if args.small else image
    width, height = image.size
    photograph = jnp.asarray(np.asarray(image, np.float32) / 255)[..., None]
    marks = CORNERS / 2 if args.small else CORNERS
    ends = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * np.array(SQUARES, np.float64)
    scale = to_unit(*SQUARES), to_unit(width, height)
    start = homography_of(*(np.stack(mapped(m, *points.T), axis=-1) for m, points in zip(scale, (ends, marks))))
    parameters = {"lens": jnp.zeros(2), "plane": jnp.float32((start / start[2, 2]).ravel()[:8]), "light": jnp.eye(6)[0]}
    parameters, values = gauss_newton(parameters, photograph, pattern(), STEPS)
    k1, k2 = np.asarray(parameters["lens"])
    print(f"lens: k1 {k1:.4f}, k2 {k2:.4f}; mean squared difference {values[0]:.5f}, at the end {values[-1]:.5f}")

    plane = np.linalg.inv(scale[1]) @ np.append(parameters["plane"], 1.0).reshape(3, 3) @ scale[0]
    found = jnp.float32([k1, k2, 0, 0])
    straight = mapped(plane, *np.meshgrid(*(np.arange(n + 1.0) for n in SQUARES)))
    bent = jt.warp.distort_points(tuple(map(jnp.float32, straight)), camera(width, height), found)
    corrected = jt.warp.undistort(photograph, camera(width, height), found)
    left, top = round(0.52 * width), round(0.15 * height)
    rows = [], []
    for title, pixels, corners in (("photographed", photograph, bent), ("corrected by undistort", corrected, straight)):
        drawn = marked(pixels, np.stack(corners, axis=-1))
        part = drawn.crop((left, top, left + width // MAGNIFY, top + height // MAGNIFY // 2))
        rows[0].append(Panel(title, drawn))
        rows[1].append(Panel("", magnified(part, MAGNIFY), f"upper edge x {MAGNIFY}; red: straight"))
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
