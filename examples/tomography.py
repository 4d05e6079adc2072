"""Reconstructs a slice of the Shepp-Logan phantom from 60 views, and compares it with filtered backprojection.

A parallel beam of X-rays turns around the slice. Each pixel of the detector measures the integral of the slice along
its ray, which is known in closed form for ellipses, and noise. The reconstruction is the image of numbers of at least 0
whose integrals, by `jaxtex.rays.line_integral`, fit the measurements, with a small cost for differences between
neighbors: accelerated gradient descent, where each step takes a projection and its exact adjoint.

Filtered backprojection, the classic method, filters each view by a ramp and adds it back along its rays:
`jaxtex.rays.filtered_backprojection`. From 60 views it leaves streaks. A window damps the noise, and details.

The panels: the sinogram, one row for each view; the truth; filtered backprojection, by the ramp and by a Hann window;
and the reconstruction. The numbers are root mean square errors, of values from 0 to 1.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, save, sheet

import jaxtex as jt

# Center x and y, half axes, turn in degrees and value of each ellipse, in half widths of the image (Shepp and Logan,
# 1974, with the contrast of Toft, 1996).
ELLIPSES = np.array(
    [
        (0, 0, 0.69, 0.92, 0, 1.0),
        (0, -0.0184, 0.6624, 0.874, 0, -0.8),
        (0.22, 0, 0.11, 0.31, -18, -0.2),
        (-0.22, 0, 0.16, 0.41, 18, -0.2),
        (0, 0.35, 0.21, 0.25, 0, 0.1),
        (0, 0.1, 0.046, 0.046, 0, 0.1),
        (0, -0.1, 0.046, 0.046, 0, 0.1),
        (-0.08, -0.605, 0.046, 0.023, 0, 0.1),
        (0, -0.605, 0.023, 0.023, 0, 0.1),
        (0.06, -0.605, 0.023, 0.046, 0, 0.1),
    ]
)
NOISE = 0.003  # of a measurement, in widths of the image
SMOOTH, EDGE = 5e-4, 0.02  # the cost of a difference between neighbors, and from where on it grows no faster


def in_ellipse(points, ellipse):
    """Points, (..., 2) in texels of an image as wide as `points` is, in the frame where the ellipse is a unit disk."""
    x0, y0, a, b, degrees, _ = ellipse
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    x, y = points[..., 0] - x0, -points[..., 1] - y0  # the phantom's y points up
    return np.stack([(c * x + s * y) / a, (c * y - s * x) / b], -1)


def phantom(size, finer=4):
    """The image, (size, size, 1): the mean of finer squares of each texel."""
    line = (np.arange(size * finer) + 0.5) * 2 / (size * finer) - 1
    points = np.stack(np.meshgrid(line, line), -1)
    image = sum(e[5] * ((in_ellipse(points, e) ** 2).sum(-1) <= 1) for e in ELLIPSES)
    return image.reshape(size, finer, size, finer).mean((1, 3))[..., None].astype(np.float32)


def exact_integrals(rays, size):
    """The integral of the ellipses along each ray, in texels of the image."""
    start, end = (np.asarray(a, np.float64) * 2 / size - 1 for a in rays)
    length, total = np.linalg.norm(end - start, axis=-1) * size / 2, 0
    for ellipse in ELLIPSES:
        first = in_ellipse(start, ellipse)
        step = in_ellipse(end, ellipse) - first
        a, b, c = (step * step).sum(-1), (first * step).sum(-1), (first * first).sum(-1) - 1
        total = total + ellipse[5] * length * 2 * np.sqrt(np.maximum(b * b - a * c, 0)) / a
    return total[..., None].astype(np.float32)


def reconstructed(project, views, shape, steps):
    """The image that fits the views, by Nesterov's accelerated gradient descent on images of at least 0."""

    def loss(image):
        down, right = jnp.diff(image, axis=0), jnp.diff(image, axis=1)
        cost = sum((EDGE * (jnp.sqrt(d * d + EDGE * EDGE) - EDGE)).sum() for d in (down, right))
        return 0.5 * ((project(image) - views) ** 2).sum() + weight * cost

    def normal(image, _):
        image = jax.vjp(project, image)[1](project(image))[0]
        return image / jnp.linalg.norm(image), jnp.linalg.norm(image)

    # The largest eigenvalue of the projection times its adjoint bounds the step.
    largest = jax.lax.scan(normal, jnp.ones(shape) / np.sqrt(np.prod(shape)), None, 20)[1][-1]
    weight = SMOOTH * largest / EDGE
    rate = 1 / (largest + 8 * weight)

    def step(state, k):
        image, ahead = state
        following = jnp.maximum(ahead - rate * jax.grad(loss)(ahead), 0)
        return (following, following + k / (k + 3) * (following - image)), None

    start = jnp.zeros(shape)
    return jax.lax.scan(step, (start, start), jnp.arange(float(steps)))[0][0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="the width of the image in texels")
    parser.add_argument("--views", type=int, default=60)
    parser.add_argument("--steps", type=int, default=200, help="of the descent")
    parser.add_argument("--out", type=Path, default=Path("tomography.png"))
    args = parser.parse_args(argv)
    shape = (args.size, args.size, 1)
    truth = phantom(args.size)
    angles = np.arange(args.views) * np.pi / args.views
    rays = jt.rays.parallel_beam(shape[:2], angles, (args.size,))
    noise = np.random.default_rng(0).normal(size=(args.views, args.size, 1)).astype(np.float32)
    views = exact_integrals(rays, args.size) + NOISE * args.size * noise

    def project(image):
        return jt.rays.line_integral(image, *rays, step=1.0)

    error = lambda image: float(np.sqrt(((image - truth) ** 2).mean()))
    exact = float(np.abs(project(truth) - exact_integrals(rays, args.size)).mean() / args.size)
    print(f"projection: {exact:.5f} widths from the closed form, on average")
    back, smooth = (jt.rays.filtered_backprojection(views, shape[:2], angles, filter=f) for f in ("ramp", "hann"))
    print(f"filtered backprojection: error {error(back):.4f}, with a Hann window {error(smooth):.4f}")
    found = jax.jit(lambda views: reconstructed(project, views, shape, args.steps))(views)
    print(f"reconstruction: error {error(found):.4f}")
    sinogram = np.asarray(jax.image.resize(views / views.max(), shape, "nearest"))
    panels = [
        Panel("sinogram", sinogram, f"{args.views} views"),
        Panel("truth", truth),
        Panel("filtered backprojection", back, f"error {error(back):.3f}"),
        Panel("with a Hann window", smooth, f"error {error(smooth):.3f}"),
        Panel("reconstruction", found, f"error {error(found):.3f}"),
    ]
    save(sheet([panels[:2], panels[2:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
