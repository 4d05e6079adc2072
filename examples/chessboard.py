"""Finds the distortion of a lens from a photograph of a chessboard, and removes it.

A lens bends straight lines. `jaxtex.warp.undistort` makes them straight again, if the coefficients k1 and k2 of the
lens are known. Here they are unknown. Each step corrects the photograph with the current coefficients, cuts the board
out of the result by `jaxtex.warp.warp_perspective`, and compares it with the pattern of a chessboard. Derivatives flow
through both warps to the coefficients, to the eight numbers of the homography of the board, and to six numbers of the
light. The Gauss-Newton method starts at half the resolution, without distortion, from four corners that are marked
inaccurately.

The photograph is not a real one: it is rendered with 5 x 5 samples per pixel, a vignette and noise, so that the truth
is known. `lens.py` corrects a real one. The program prints true and found coefficients, and the distance of the corners
of the squares from straight lines along rows and columns. The upper pictures are the photograph and the corrected
photograph, with straight lines between the ends of the outer rows and columns. The lower pictures show the board as it
is cut out at the start and at the end, with the squares of the pattern in red.
"""

import argparse
import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike
from panels import Panel, outlined, save, sheet, to_image
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

SQUARES = (9, 6)  # along x and y
MARGIN, RIM = 0.5, 0.25  # white paper around the squares, in squares: all of it, and the part that is cut out
CUT = tuple(n + 2 * RIM for n in SQUARES)
DARK, PALE, TABLE = 0.07, 0.85, (0.47, 0.33, 0.22)
FOCAL = 0.8  # in widths
SAMPLES = 5
NOISE, INACCURACY = 0.02, 0.01  # as parts of the range of values; of the width
FACTORS = (2, 1)  # by which the levels are coarser
STEPS = 20
DAMPING = 1e-4  # of a Gauss-Newton step, by Levenberg and Marquardt
FILTER = "cubic"  # a linear read blurs edges between pixels


def camera(width: int, height: int) -> jax.Array:
    """The matrix of a camera that looks through the middle of its picture."""
    return jnp.array([[FOCAL * width, 0, width / 2], [0, FOCAL * width, height / 2], [0, 0, 1]], jnp.float32)


def to_unit(width: float, height: float) -> np.ndarray:
    """The matrix from pixels to coordinates from -1 to 1 along the width, with 0 in the center."""
    return np.array([[2 / width, 0, -1], [0, 2 / width, -height / width], [0, 0, 1]])


def homography_of(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The homography that maps four points to four others, (3, 3)."""
    rows = []
    for (x, y), (u, v) in zip(source, target):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.append(np.linalg.solve(np.array(rows), target.ravel()), 1).reshape(3, 3)


def mapped(matrix: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points mapped by a homography."""
    u, v, w = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return u / w, v / w


def board(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The brightness of the board at points of the part that is cut out, in squares; NaN outside the paper."""
    x, y, columns, rows = x - RIM, y - RIM, *SQUARES
    within = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    paper = (np.abs(x - columns / 2) < columns / 2 + MARGIN) & (np.abs(y - rows / 2) < rows / 2 + MARGIN)
    dark = within & ((np.floor(x) + np.floor(y)) % 2 == 0)
    return np.where(paper, np.where(dark, DARK, PALE), np.nan)


def photographed(
    random: np.random.Generator, lens: np.ndarray, plane: np.ndarray, width: int, height: int
) -> np.ndarray:
    """The board on a table, seen through the lens: (height, width, 3). `plane` maps squares to ideal pixels."""
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES
    x, y = (np.arange(n)[:, None] + offsets for n in (width, height))
    seen = jt.warp.undistort_points(
        (jnp.float32(x.ravel()), jnp.float32(y.ravel())[:, None]), camera(width, height), lens
    )
    values = board(*mapped(np.linalg.inv(plane), *(np.asarray(c, np.float64) for c in seen)))
    grain = jt.warp.resize(random.normal(0, 0.1, (6, 40, 1)).astype(np.float32), values.shape, filter_mode="cubic")
    colors = np.where(np.isnan(values)[..., None], np.array(TABLE) * (1 + np.asarray(grain)), values[..., None])
    colors = colors.reshape(height, SAMPLES, width, SAMPLES, 3).mean(axis=(1, 3))
    x, y = ((np.arange(n) + 0.5 - n / 2) / width for n in (width, height))
    vignette = 1 / (1 + (x[None, :] ** 2 + y[:, None] ** 2) / FOCAL**2) ** 2
    return np.clip(colors * vignette[..., None] + random.normal(0, NOISE, colors.shape), 0, 1).astype(np.float32)


def cut_out(parameters: dict, photograph: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """The squares of the board in the photograph, corrected with the current coefficients, as an image of `shape`."""
    height, width, _ = photograph.shape
    lens = jnp.append(parameters["lens"], jnp.zeros(2))
    corrected = jt.warp.undistort(photograph, camera(width, height), lens, filter_mode=FILTER)
    plane = jnp.append(parameters["plane"], 1.0).reshape(3, 3)
    to_pixels = jnp.float32(np.linalg.inv(to_unit(width, height)))
    matrix = to_pixels @ plane @ jnp.float32(to_unit(*shape[::-1]))
    return jt.warp.warp_perspective(corrected, matrix, shape, filter_mode=FILTER, inverse_map=True)


def residual(parameters: dict, photograph: jax.Array, pattern: jax.Array) -> jax.Array:
    """The part that is cut out, minus the pattern under a light that is a quadratic function of the position."""
    height, width, _ = pattern.shape
    x, y = (jnp.linspace(-1, 1, n, endpoint=False) for n in (width, height))
    x, y = x[None, :, None], y[:, None, None]
    light = sum(part * term for part, term in zip(parameters["light"], (1, x, y, x * x, x * y, y * y)))
    return cut_out(parameters, photograph, (height, width)) - light * pattern


@functools.partial(jax.jit, static_argnames="steps")
def gauss_newton(parameters: dict, photograph: jax.Array, pattern: jax.Array, steps: int) -> tuple[dict, jax.Array]:
    """Takes `steps` steps; also returns the mean squared residual before each step."""
    flat, restore = ravel_pytree(parameters)

    def value_and_itself(flat):
        value = residual(restore(flat), photograph, pattern).ravel()
        return value, value

    def step(flat, _):
        slopes, off = jax.jacfwd(value_and_itself, has_aux=True)(flat)
        normal = slopes.T @ slopes
        change = jnp.linalg.solve(normal + DAMPING * jnp.diag(jnp.diag(normal)), slopes.T @ off)
        return flat - change, (off**2).mean()

    flat, values = jax.lax.scan(step, flat, length=steps)
    return restore(flat), values


def off_line(points: np.ndarray) -> np.ndarray:
    """The distances of points (N, 2) from the straight line that fits them best."""
    centered = points - points.mean(axis=0)
    return np.abs(centered @ np.linalg.svd(centered)[2][1])


def lines(corners: np.ndarray) -> list[np.ndarray]:
    """The rows and the columns of corners (rows, columns, 2)."""
    return [*corners, *corners.swapaxes(0, 1)]


def marked(image: ArrayLike, corners: np.ndarray) -> Image.Image:
    """An image with straight lines between the ends of the outer rows and columns of corners."""
    return outlined(image, corners[[0, 0, -1, -1], [0, -1, -1, 0]])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find and correct the distortion of a lens by a chessboard.")
    parser.add_argument("--seed", type=int, default=0, help="of the lens, the board, the noise and the marks")
    parser.add_argument("--small", action="store_true", help="use a photograph of 216 x 144 pixels; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("chessboard.png"))
    args = parser.parse_args(argv)

    width, height = (216, 144) if args.small else (432, 288)
    random = np.random.default_rng(args.seed)
    truth = np.float32([random.uniform(-0.35, -0.2), random.uniform(0.03, 0.1), 0, 0])
    columns, rows = SQUARES
    ends = RIM + np.array([(0, 0), (columns, 0), (columns, rows), (0, rows)])
    at = np.array([(0.1, 0.12), (0.9, 0.12), (0.9, 0.88), (0.1, 0.88)])
    plane = homography_of(ends, (at + random.uniform(-0.05, 0.05, (4, 2))) * (width, height))
    photograph = photographed(random, truth, plane, width, height)

    through_lens = lambda x, y, way, lens: np.stack(
        way((jnp.float32(x), jnp.float32(y)), camera(width, height), jnp.float32(lens)), axis=-1
    )
    shown = through_lens(*mapped(plane, *ends.T), jt.warp.distort_points, truth)
    hand = shown + random.uniform(-1, 1, (4, 2)) * INACCURACY * width
    scale = to_unit(*CUT), to_unit(width, height)
    start = homography_of(
        *(np.stack(mapped(matrix, *points.T), axis=-1) for matrix, points in zip(scale, (ends, hand)))
    )
    parameters = {"lens": jnp.zeros(2), "plane": jnp.float32((start / start[2, 2]).ravel()[:8]), "light": jnp.eye(6)[0]}

    levels = dict(zip(FACTORS[::-1], jt.build_mipmaps(jt.texture2d(photograph), len(FACTORS)).levels))
    print(f"true lens: k1 {truth[0]:.4f}, k2 {truth[1]:.4f}")
    first = parameters
    for factor in tqdm(FACTORS[1:] if args.small else FACTORS, "levels", leave=False, disable=None, file=sys.stderr):
        side = 32 * width // 432 // factor
        centers = [(np.arange(int(n * side)) + 0.5) / side for n in CUT]
        pattern = jnp.float32(board(*np.meshgrid(*centers)))[..., None]
        seen = levels[factor].mean(axis=-1, keepdims=True)
        parameters, values = gauss_newton(parameters, seen, pattern, STEPS)
        k1, k2 = parameters["lens"]
        tqdm.write(f"at 1/{factor} of the resolution: k1 {k1:.4f}, k2 {k2:.4f}, squares {values[-1]:.5f}")

    grid = np.meshgrid(RIM + np.arange(columns + 1), RIM + np.arange(rows + 1))
    seen = through_lens(*mapped(plane, *grid), jt.warp.distort_points, truth)
    found = np.append(parameters["lens"], (0, 0))
    straight = through_lens(seen[..., 0], seen[..., 1], jt.warp.undistort_points, found)
    for when, corners in (("photograph", seen), ("corrected", straight)):
        off = np.concatenate([off_line(line) for line in lines(np.asarray(corners, np.float64))])
        print(f"{when}: corners off straight lines by {np.sqrt((off**2).mean()):.3f} pixels, at most {off.max():.3f}")

    corrected = np.asarray(jt.warp.undistort(photograph, camera(width, height), jnp.float32(found)))
    cuts, side = [], width / CUT[0]
    for guess in (first, parameters):
        cut = np.asarray(cut_out(guess, photograph, tuple(round(n * side) for n in CUT[::-1])))
        image = to_image(cut)
        for line in lines(np.stack(grid, axis=-1) * side):
            image = outlined(image, line, closed=False)
        cuts.append(image)
    k1, k2 = found[:2]
    rows = [
        [
            Panel("through a lens", marked(photograph, seen), f"true k1 {truth[0]:.3f}, k2 {truth[1]:.3f}"),
            Panel("corrected by undistort", marked(corrected, straight), f"found k1 {k1:.3f}, k2 {k2:.3f}"),
        ],
        [
            Panel("cut out at the start", cuts[0], "red: edges of its pattern"),
            Panel("cut out at the end", cuts[1]),
        ],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
