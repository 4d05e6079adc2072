"""Finds the homography between a photograph and a perspective view of it by the Gauss-Newton method.

A homography has eight parameters. The residual is the view, warped by `jaxtex.warp.warp_perspective` with the current
homography, minus the photograph. Few parameters and many residuals suit forward mode: `jax.jacfwd` of the warp returns
eight images, one per parameter. A step solves eight linear equations for the change that minimizes the linearized
residual. A few steps on each level of a mip chain are enough, from coarse to fine.

A warp with `antialias=True` makes the view at twice the resolution, so that the truth is known. The program prints the
error of the corners of the photograph, in pixels of the view. The upper pictures are the photograph, and the view with
the outline of the photograph as it was found. The lower pictures are the differences of the two, before and after the
view is warped back, gray where they are zero.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from chessboard import homography_of
from panels import DATA, Panel, outlined, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "chelsea.jpg"
CORNER_SHIFT = 0.12  # the largest shift of a corner, in widths
STEPS = 15  # on each level


def corners(width: int, height: int) -> np.ndarray:
    """The corners of an image, (4, 2): x, y in pixels."""
    return np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)


def mapped(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (N, 2) mapped by a homography."""
    result = np.c_[points, np.ones(len(points))] @ matrix.T
    return result[:, :2] / result[:, 2:]


def unit(width: int, height: int) -> np.ndarray:
    """The matrix from pixels to coordinates that run from -1 to 1 along the width, with 0 in the center."""
    return np.array([[2 / width, 0, -1], [0, 2 / width, -height / width], [0, 0, 1]])


@functools.partial(jax.jit, static_argnames=("width", "height"))
def in_pixels(parameters: jax.Array, width: int, height: int) -> jax.Array:
    """The homography of eight parameters, which are 0 for the identity: from pixels of the photograph to the view's.

    The parameters are in coordinates from -1 to 1, so that equal steps in all of them move the corners about equally.
    """
    matrix = jnp.eye(3) + jnp.append(parameters, 0.0).reshape(3, 3)
    scale = unit(width, height)
    return jnp.float32(np.linalg.inv(scale)) @ matrix @ jnp.float32(scale)


@jax.jit
def residual(parameters: jax.Array, view: jax.Array, photograph: jax.Array) -> jax.Array:
    """The view, warped onto the photograph, minus the photograph; 0 outside the view."""
    height, width, channels = photograph.shape
    matrix = in_pixels(parameters, width, height)
    # One more channel, of ones, becomes the part of each pixel that lies within the view.
    view = jnp.concatenate([view, jnp.ones((*view.shape[:2], 1))], axis=-1)
    warped = jt.warp.warp_perspective(view, matrix, (height, width), inverse_map=True)
    whole = jax.lax.stop_gradient(warped[..., channels:] > 0.999)
    return jnp.where(whole, warped[..., :channels] - photograph, 0)


@functools.partial(jax.jit, static_argnames="steps")
def gauss_newton(parameters: jax.Array, view: jax.Array, photograph: jax.Array, steps: int):
    """Takes `steps` steps; also returns the mean squared residual before each step."""

    def value_and_itself(parameters):
        value = residual(parameters, view, photograph)
        return value, value

    def step(parameters, _):
        slopes, off = jax.jacfwd(value_and_itself, has_aux=True)(parameters)  # (H, W, C, 8) and (H, W, C)
        normal = jnp.einsum("hwci,hwcj->ij", slopes, slopes)
        toward = jnp.einsum("hwci,hwc->i", slopes, off)
        return parameters - jnp.linalg.solve(normal, toward), (off**2).mean()

    return jax.lax.scan(step, parameters, length=steps)


@functools.partial(jax.jit, static_argnames="num_levels")
def pyramid(image: jax.Array, num_levels: int) -> tuple[jax.Array, ...]:
    """The image and its halves, the means of 2 x 2 pixels of the one before."""
    return jt.build_mipmaps(jt.texture2d(image), num_levels).levels


def corner_error(parameters: jax.Array, truth: np.ndarray, width: int, height: int) -> float:
    """The mean error of the corners, in pixels of the view."""
    ends = corners(width, height)
    found = mapped(np.asarray(in_pixels(parameters, width, height), np.float64), ends)
    return float(np.linalg.norm(found - mapped(truth, ends), axis=1).mean())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find the homography between a photograph and a view of it.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--seed", type=int, default=0, help="of the true homography")
    parser.add_argument("--small", action="store_true", help="work at a third of the resolution; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("homography.png"))
    args = parser.parse_args(argv)

    width, height = (144, 96) if args.small else (432, 288)
    image = Image.open(args.photograph).convert("RGB").resize((2 * width, 2 * height), Image.Resampling.BICUBIC)
    large = jnp.asarray(np.asarray(image, np.float32) / 255)
    ends = corners(width, height)
    shift = np.random.default_rng(args.seed).uniform(-1, 1, (4, 2)) * CORNER_SHIFT * width
    inward = np.sign(corners(1, 1) * -2 + 1)  # the view shows the whole photograph
    truth = homography_of(ends, ends + inward * np.abs(shift))
    doubled = np.diag([2, 2, 1]) @ truth @ np.diag([0.5, 0.5, 1])
    view = jt.warp.warp_perspective(large, jnp.float32(doubled), border_color=0.5, antialias=True)

    num_levels = 3 if args.small else 5
    chains = [pyramid(frame, num_levels + 1)[1:] for frame in (view, large)]
    parameters = jnp.zeros(8)
    start = corner_error(parameters, truth, width, height)
    print(f"corners at the start: off by {start:.3f} pixels of {width}")
    for seen, photograph in [*zip(*chains)][:: -2 if args.small else -1]:
        parameters, values = gauss_newton(parameters, seen, photograph, STEPS)
        error = corner_error(parameters, truth, width, height)
        print(
            f"{photograph.shape[1]:3d} x {photograph.shape[0]:3d}: squares {values[-1]:.6f}, off by {error:.4f} pixels"
        )

    before, after = (residual(p, seen, photograph) for p in (jnp.zeros(8), parameters))
    found = mapped(np.asarray(in_pixels(parameters, width, height)), ends)
    rows = [
        [
            Panel("the photograph", photograph),
            Panel("a view of it, and where it was found", outlined(seen, found, width=3)),
        ],
        [
            Panel("view - photograph, before", 0.5 + before, f"corners off by {start:.1f} pixels"),
            Panel("view - photograph, after", 0.5 + after, f"corners off by {error:.2g} pixels"),
        ],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
