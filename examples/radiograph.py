"""Finds the pose of an X-ray camera from one radiograph of a known volume.

The volume is a phantom of a head: a skull with a jaw and teeth, and a spine. A camera has taken a radiograph of it from
an unknown pose, six numbers: a turn about the center, and a shift. Each pixel measures the integral of the volume along
its ray, and noise. Gauss-Newton steps change the pose until the integrals by `jaxtex.rays.line_integral` fit the
radiograph, from a quarter of the resolution up to all of it. A step needs the derivative of each pixel in each number
of the pose, by forward mode, which stores no samples.

Above: the radiograph; how that of the pose from which the search starts differs from it, and that of the pose that it
finds, gray where they are equal. Below, from the pose that is found: the maximum intensity; the surface of the bone,
lit from the camera, by the depth of its first crossing; and emission with absorption, in color.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, difference, save, sheet

import jaxtex as jt

# Center and half axes along x, y and z, in half widths of the volume, and what each ellipsoid adds: x to the right, y
# away from the camera, z up.
ELLIPSOIDS = (
    (0, 0.05, 0.22, 0.60, 0.74, 0.66, 1.0),  # the skull
    (0, 0.05, 0.22, 0.54, 0.68, 0.60, -0.85),
    (0.24, -0.56, 0.18, 0.15, 0.16, 0.13, -0.8),  # the eyes
    (-0.24, -0.56, 0.18, 0.15, 0.16, 0.13, -0.8),
    (0, -0.62, -0.05, 0.09, 0.20, 0.14, -0.7),  # the nose
    (0, -0.34, -0.36, 0.34, 0.36, 0.28, 0.9),  # the jaw
    (0, -0.24, -0.32, 0.28, 0.36, 0.28, -0.9),
    *((0.07 * k, -0.64 + 0.025 * k * k, -0.28, 0.028, 0.05, 0.08, 0.6) for k in (-3, -2, -1, 0, 1, 2, 3)),  # teeth
    *((0, 0.26 + 0.02 * k, -0.42 - 0.15 * k, 0.15, 0.14, 0.06, 0.9) for k in range(4)),  # the spine
    (0.20, 0.10, 0.28, 0.10, 0.20, 0.07, 0.35),  # a bleeding
)
DISTANCE, FOCUS = 4.0, 3.4  # of the camera, in half widths, and its focal length, in half widths of the picture
TRUTH = np.float32([0.16, -0.10, 0.24, 0.08, 0.05, -0.06])  # radians, and half widths
NOISE = 0.01  # of a pixel, of the largest integral
LEVELS, STEPS, DAMPING = (4, 2, 1), 8, 1e-3
BONE = 0.45  # the level of its surface


def phantom(size, finer=2):
    """The volume, (size, size, size, 1): the mean of finer cubes of each texel."""
    line = (np.arange(size * finer, dtype=np.float32) + 0.5) * 2 / (size * finer) - 1
    z, y, x = line[:, None, None], line[None, :, None], line[None, None, :]
    volume = np.zeros([size * finer] * 3, np.float32)
    for cx, cy, cz, a, b, c, value in ELLIPSOIDS:
        volume += value * (((x - cx) / a) ** 2 + ((y - cy) / b) ** 2 + ((z - cz) / c) ** 2 <= 1)
    return np.maximum(volume.reshape(size, finer, size, finer, size, finer).mean((1, 3, 5)), 0)[..., None]


def turned(rotation):
    """The matrix of a rotation about a vector, by its length (Rodrigues)."""
    square = (rotation**2).sum() + 1e-12
    angle = jnp.sqrt(square)
    x, y, z = rotation
    cross = jnp.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return jnp.eye(3) + jnp.sin(angle) / angle * cross + (1 - jnp.cos(angle)) / square * cross @ cross


def rays_of(pose, size, pixels):
    """The rays of the camera through a volume of `size` texels along each axis."""
    axes = turned(pose[:3]) @ jnp.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # to the right, down, and ahead
    place = (pose[3:] - DISTANCE * axes[:, 2] + 1) * size / 2
    focus = FOCUS * pixels / 2
    camera = jnp.array([[focus, 0, pixels / 2], [0, focus, pixels / 2], [0, 0, 1]])
    return jt.rays.camera_rays(camera, jnp.column_stack([axes, place]), (pixels, pixels), far=DISTANCE * size)


def radiograph(volume, pose, pixels):
    """The integral along the ray of each pixel, (pixels, pixels), in widths of the volume."""
    size = len(volume)
    return jt.rays.line_integral(volume, *rays_of(pose, size, pixels), step=1.0, spacing=1 / size)[..., 0]


@functools.partial(jax.jit, static_argnames="pixels")
def improved(volume, measured, pose, pixels):
    """The pose after one damped Gauss-Newton step."""
    rest = lambda pose: (radiograph(volume, pose, pixels) - measured).ravel()
    slopes = jax.jacfwd(rest)(pose)
    normal = slopes.T @ slopes
    return pose - jnp.linalg.solve(normal + DAMPING * jnp.diag(jnp.diag(normal)), slopes.T @ rest(pose))


def registered(volume, measured, pose):
    """The pose that fits a radiograph, from coarse to fine."""
    for level in LEVELS:
        size, pixels = len(volume) // level, len(measured) // level
        coarse = jt.warp.resize(volume, (size, size, size), antialias=True)
        seen = jt.warp.resize(measured[..., None], (pixels, pixels), antialias=True)[..., 0]
        for _ in range(STEPS):
            pose = improved(coarse, seen, pose, pixels)
    return pose


@functools.partial(jax.jit, static_argnames="pixels")
def views(volume, pose, pixels):
    """What an eye sees: the maximum intensity, the shade of the bone's surface, and colors with light from inside."""
    size = len(volume)
    rays = rays_of(pose, size, pixels)
    smooth = jt.Sampler(filter_mode="bspline")
    highest = jt.rays.maximum_intensity(volume, *rays, step=0.5, outside=0.0)[..., 0]
    depth = jt.rays.first_crossing(volume, *rays, BONE, step=0.5, sampler=smooth)[..., 0]
    found = jnp.isfinite(depth)
    along = (rays.end - rays.start) / jnp.linalg.norm(rays.end - rays.start, axis=-1, keepdims=True)
    points = rays.start + jnp.where(found, depth, 0)[..., None] * along
    across, down = (jnp.gradient(points, axis=axis) for axis in (1, 0))
    normal = jnp.cross(across, down)
    light = jnp.abs((normal * along).sum(-1)) / (jnp.linalg.norm(normal, axis=-1) + 1e-6)
    shade = jnp.where(found, 0.15 + 0.85 * light, 0)
    # Soft parts glow red and let light pass; bone is white and dense.
    bone = jnp.clip((volume - 0.3) / 0.4, 0, 1)
    color = (1 - bone) * jnp.array([0.9, 0.25, 0.15]) + bone * jnp.array([1.0, 0.95, 0.85])
    extinction = (1.5 * volume + 18 * bone**2) / size
    seen = jt.rays.composite(
        jnp.concatenate([color, extinction], -1), *rays, step=0.5, min_transmittance=0.003, sampler=smooth
    )
    return highest / highest.max(), shade, seen[..., :3]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="the width of the volume in texels")
    parser.add_argument("--pixels", type=int, default=96, help="the width of the radiograph")
    parser.add_argument("--out", type=Path, default=Path("radiograph.png"))
    args = parser.parse_args(argv)
    volume = jnp.asarray(phantom(args.size))
    exact = radiograph(volume, TRUTH, args.pixels)
    noise = np.random.default_rng(0).normal(size=exact.shape).astype(np.float32)
    measured = exact + NOISE * exact.max() * noise

    def error(pose):
        """The angle between two poses in degrees, and the distance of their shifts in texels."""
        both = np.asarray(turned(jnp.asarray(pose[:3]))).T @ np.asarray(turned(jnp.asarray(TRUTH[:3])))
        angle = np.rad2deg(np.arccos(np.clip((np.trace(both) - 1) / 2, -1, 1)))
        return angle, float(np.linalg.norm(pose[3:] - TRUTH[3:])) * args.size / 2

    start = jnp.zeros(6)
    found = registered(volume, measured, start)
    named = {"start": start, "found": found}
    for name, pose in named.items():
        print("{}: {:.2f} degrees and {:.2f} texels from the truth".format(name, *error(np.asarray(pose))))
    bright = lambda image: np.asarray(image / exact.max())
    above = [Panel("radiograph", bright(measured))]
    for title, pose in zip(("start", "found"), named.values()):
        seen = radiograph(volume, pose, args.pixels)
        note = "off {:.2f}°, {:.2f} texels".format(*error(np.asarray(pose)))
        above.append(Panel(f"{title} - radiograph", difference(bright(seen), bright(measured), 1.5), note))
    titles = "maximum", "first crossing", "emission and absorption"
    below = [Panel(title, np.asarray(image)) for title, image in zip(titles, views(volume, found, 2 * args.pixels))]
    size = (2 * args.pixels,) * 2
    enlarged = lambda image: np.asarray(jt.warp.resize(jnp.asarray(image)[..., None], size, filter_mode="linear"))
    above = [panel._replace(image=enlarged(panel.image)) for panel in above]
    save(sheet([above, below]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
