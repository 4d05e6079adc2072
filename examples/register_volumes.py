"""Registers two 3D phantoms by a diffeomorphism, by gradient descent on a velocity.

The fixed volume is a phantom of a head: ellipsoids within each other, with folds and a texture. The moving volume is
the same phantom, bent by a smooth random flow, so that the truth is known: the inverse of that flow. The descent looks
for a stationary velocity, which control points on a coarse grid give by cubic B-splines. `integrate_velocity` makes a
flow of it, at half the resolution. `warp_chain` reads the moving volume through three maps at once: into the pixels
of the flow, along the flow, and out of them again. Adam descends along the mean squared difference plus a small cost of
the velocity's changes, from a quarter of the resolution up to all of it.

The panels are slices through the middle. Above: the moving, the registered and the fixed volume, and the regions that
`warp_labels` carried over from the moving volume, with the outlines of the true ones in white. Below: the difference
from the fixed volume before and after, gray where it is zero; where the voxels of a regular grid come from in the
moving volume; and where the map stretches (red) and shrinks (blue), by `jacobian_determinant`.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import Panel, save, sheet, to_image
from PIL import Image, ImageDraw

import jaxtex as jt

# Each region: its center and radii along x, y, z in half widths of the volume, its turn around z in degrees, and the
# brightness that it adds to the regions around it.
REGIONS = (
    ((0, 0, 0), (0.72, 0.88, 0.80), 0, 0.55),  # head
    ((0, 0, 0), (0.66, 0.82, 0.74), 0, -0.42),  # within the skull
    ((0, 0, 0), (0.64, 0.80, 0.72), 0, 0.37),  # brain
    ((-0.16, -0.10, 0.05), (0.08, 0.30, 0.22), 14, -0.38),  # ventricles
    ((0.16, -0.10, 0.05), (0.08, 0.30, 0.22), -14, -0.38),
    ((-0.30, 0.02, 0), (0.09, 0.17, 0.20), 20, 0.22),  # nuclei
    ((0.30, 0.02, 0), (0.09, 0.17, 0.20), -20, 0.22),
    ((0, 0.46, -0.10), (0.22, 0.14, 0.24), 0, 0.16),
    ((0.34, -0.40, 0.05), (0.10, 0.08, 0.12), 30, 0.35),  # a lesion
)
FOLDED = 2  # the number of the region whose edge has folds
BENT = 0.24  # the longest true displacement, in half widths
CONTROLS = 10  # control points along each axis
SMOOTH = 1e-4  # the cost of a difference between control points, of squared half widths
STEPS, RATES = (100, 60, 20), (0.01, 0.005, 0.002)
COLORS = np.array([(28, 28, 40), (90, 90, 110), (60, 90, 150), (80, 160, 200), (240, 200, 70), (240, 200, 70)])
COLORS = np.concatenate([COLORS, [(220, 120, 60), (220, 120, 60), (150, 200, 110), (230, 60, 80)]])
PANEL, LINES = 256, 20

Points = tuple[jax.Array | np.ndarray, ...]


def centers(size: int) -> Points:
    """The centers of the voxels along x, y and z, from -1 to 1."""
    line = (np.arange(size, dtype=np.float32) + 0.5) * (2 / size) - 1
    return line[None, None, :], line[None, :, None], line[:, None, None]


def depths(points: Points) -> list[jax.Array]:
    """How deep points lie in each region: 1 in its middle, 0 at its edge, less outside."""
    found = []
    for number, (center, radii, degrees, _) in enumerate(REGIONS):
        x, y, z = (c - m for c, m in zip(points, center))
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        scaled = (cos * x + sin * y) / radii[0], (cos * y - sin * x) / radii[1], z / radii[2]
        distance = jnp.sqrt(sum(c * c for c in scaled) + 1e-6)
        if number == FOLDED:
            distance += 0.2 * (1 - jnp.abs(jnp.sin(9 * jnp.arctan2(y, x) + 3 * jnp.sin(5 * z)))) ** 3
        found.append(1 - distance)
    return found


@jax.jit
def phantom(points: Points) -> tuple[jax.Array, jax.Array]:
    """Brightness and region at points, (D, H, W, 1) both; region 0 is outside."""
    total, region = 0.0, 0
    for number, (depth, (_, radii, _, brightness)) in enumerate(zip(depths(points), REGIONS), 1):
        total += brightness * jax.nn.sigmoid(depth * min(radii) * 100)
        region = jnp.where(depth > 0, number, region)
    x, y, z = points
    texture = 0.08 * jnp.sin(13 * x + 5 * y) * jnp.sin(11 * y - 4 * z) * jnp.sin(12 * z + 3 * x)
    return (total + jnp.where(region > 0, texture, 0))[..., None], region[..., None].astype(jnp.uint8)


@functools.partial(jax.jit, static_argnames="size")
def random_flow(seed: int, size: int) -> jax.Array:
    """A smooth diffeomorphism of a volume, (D, H, W, 3) in voxels, that leaves its border where it is."""
    velocity = jt.warp.resize(jax.random.normal(jax.random.key(seed), (4, 4, 4, 3)), (size,) * 3, filter_mode="bspline")
    inside = functools.reduce(jnp.multiply, (jnp.clip(1.5 * (1 - c**2), 0, 1) for c in centers(size)))
    velocity = velocity * inside[..., None]
    return jt.warp.integrate_velocity(velocity * (BENT * size / 2 / jnp.linalg.norm(velocity, axis=-1).max()), 6)


@functools.partial(jax.jit, static_argnames="size")
def flow_of(controls: jax.Array, size: int) -> jax.Array:
    """The flow of a velocity at control points, (K, K, K, 3) in half widths: of half of the resolution."""
    velocity = jt.warp.resize(controls * (size / 4), (size // 2,) * 3, filter_mode="bspline")
    return jt.warp.integrate_velocity(velocity, 6)


def maps(flow: jax.Array) -> list[jax.Array | np.ndarray]:
    """From the voxels of a volume to those of a flow of half its resolution, along the flow, and back."""
    halve, double = (np.float32(scale * np.eye(3, 4)) for scale in (0.5, 2.0))
    return [halve, flow, double]


@jax.jit
def warped(moving: jax.Array, flow: jax.Array) -> jax.Array:
    """A volume, moved by a flow of half its resolution, which is read once, as is the volume."""
    return jt.warp.warp_chain(moving, maps(flow), moving.shape[:3], address_mode="clamp")


def loss(controls: jax.Array, moving: jax.Array, fixed: jax.Array) -> jax.Array:
    """The mean squared difference, plus the cost of changes of the velocity."""
    difference = warped(moving, flow_of(controls, len(fixed))) - fixed
    changes = sum((jnp.diff(controls, axis=axis) ** 2).sum() for axis in range(3))
    return (difference**2).mean() + SMOOTH * changes


@functools.partial(jax.jit, static_argnames="steps")
def descend(
    controls: jax.Array, moving: jax.Array, fixed: jax.Array, rate: float, steps: int
) -> tuple[jax.Array, jax.Array]:
    """Takes `steps` steps of Adam, at a rate that falls to zero; also returns the loss before each step."""
    optimizer = optax.adam(lambda count: rate * optax.cosine_decay_schedule(1.0, steps)(count))

    def step(state, _):
        controls, memory = state
        value, slope = jax.value_and_grad(loss)(controls, moving, fixed)
        change, memory = optimizer.update(slope, memory)
        return (optax.apply_updates(controls, change), memory), value

    (controls, _), values = jax.lax.scan(step, (controls, optimizer.init(controls)), length=steps)
    return controls, values


def overlap(found: np.ndarray, truth: np.ndarray) -> float:
    """The mean of Dice's coefficient over the regions."""
    pairs = [(found == k, truth == k) for k in range(1, len(REGIONS) + 1)]
    return float(np.mean([2 * (a & b).sum() / (a.sum() + b.sum()) for a, b in pairs]))


# The picture


def enlarged(values: np.ndarray, sharp: bool = False) -> np.ndarray:
    """A slice at the size of a panel."""
    how = Image.Resampling.NEAREST if sharp else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(values).resize((PANEL, PANEL), how))


def colored(regions: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Regions as colors, and the outlines of others in white."""
    regions, truth = enlarged(regions, sharp=True), enlarged(truth, sharp=True)
    edges = np.zeros(truth.shape, bool)
    edges[1:] |= truth[1:] != truth[:-1]
    edges[:, 1:] |= truth[:, 1:] != truth[:, :-1]
    return np.where(edges[..., None], 1.0, COLORS[regions] / 255)


def stretched(determinant: np.ndarray) -> np.ndarray:
    """Red above 1, blue below, white at 1; black where the map folds."""
    determinant = enlarged(determinant)
    amount = np.clip(np.log2(np.maximum(determinant, 1e-3)) / 1.5, -1, 1)
    rest = 1 - np.abs(amount)
    color = np.stack([np.where(amount > 0, 1, rest), rest, np.where(amount < 0, 1, rest)], -1)
    return color * (determinant > 0)[..., None]


def grid_on(picture: np.ndarray, flow: np.ndarray) -> Image.Image:
    """A slice, and over it the lines of a regular grid, moved by the two components of a flow in its plane."""
    size, drawn = len(flow), to_image(enlarged(0.6 * picture))
    draw, (y, x) = ImageDraw.Draw(drawn), np.mgrid[:size, :size] + 0.5
    at = np.stack([x + flow[..., 0], y + flow[..., 1]], -1) * (PANEL / size)
    for k in np.linspace(0, size - 1, LINES).round().astype(int):
        for line in (at[k], at[:, k]):
            draw.line([tuple(point) for point in line.tolist()], fill=(255, 190, 60), width=2)
    return drawn


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Register two phantoms of a head by a diffeomorphism.")
    parser.add_argument("--size", type=int, default=64, help="voxels along each axis, a multiple of 8")
    parser.add_argument("--seed", type=int, default=0, help="of the true flow")
    parser.add_argument(
        "--steps", type=int, nargs=3, default=STEPS, help="at a quarter, half and all of the resolution"
    )
    parser.add_argument("--out", type=Path, default=Path("register_volumes.png"))
    args = parser.parse_args(argv)

    size = args.size
    bend, places = random_flow(args.seed, size), np.broadcast_arrays(*centers(size))
    displaced = (c + b * (2 / size) for c, b in zip(places, np.moveaxis(np.asarray(bend), -1, 0)))
    (fixed, fixed_regions), (moving, moving_regions) = (phantom(tuple(points)) for points in (places, displaced))
    truth = jt.warp.invert_flow(bend, 40)

    chains = [jt.build_mipmaps(jt.texture3d(volume), 3).levels for volume in (moving, fixed)]
    controls = jnp.zeros((CONTROLS,) * 3 + (3,))
    for steps, rate, *level in zip(args.steps, RATES, *(chain[::-1] for chain in chains)):
        if not steps:
            continue
        controls, values = descend(controls, *level, rate, steps)
        shown = ", ".join(f"{value:.5f}" for value in values[:: max(1, steps // 4)])
        print(f"{len(level[0]):3d} voxels a side: loss {shown}, {values[-1]:.5f}")

    flow = flow_of(controls, size)
    registered = warped(moving, flow)
    regions = jt.warp.warp_labels(
        moving_regions, maps(flow), (size,) * 3, method="partial_volume", address_mode="clamp"
    )
    found = 2 * jt.warp.warp_chain(flow, [maps(flow)[0]], (size,) * 3, address_mode="clamp")
    determinant = jt.warp.jacobian_determinant(flow)
    head = np.asarray(fixed_regions[..., 0] > 0)
    moving, registered, fixed, determinant = map(np.asarray, (moving, registered, fixed, determinant))
    off = [np.linalg.norm(f - np.asarray(truth), axis=-1)[head].mean() for f in (0, np.asarray(found))]
    errors = [float(((volume - fixed) ** 2).mean()) for volume in (moving, registered)]
    before, after = (overlap(np.asarray(r), np.asarray(fixed_regions)) for r in (moving_regions, regions))
    print(f"mean squared difference: {errors[0]:.5f} before, {errors[1]:.5f} after")
    print(f"overlap of the regions (Dice): {before:.3f} before, {after:.3f} after")
    print(f"off from the true flow: {off[0]:.2f} voxels before, {off[1]:.2f} after")
    folds = "nothing folds" if determinant.min() > 0 else "the map folds"
    print(f"Jacobian determinant: from {determinant.min():.2f} to {determinant.max():.2f}, so {folds}")

    middle = lambda volume, channel=0: np.asarray(volume)[size // 2, ..., channel]
    in_plane = np.stack([middle(found, 0), middle(found, 1)], -1)
    panels = {
        "moving": enlarged(middle(moving)),
        "registered": enlarged(middle(registered)),
        "fixed": enlarged(middle(fixed)),
        "carried regions": colored(middle(regions), middle(fixed_regions)),
        "moving - fixed": enlarged(0.5 + middle(moving - fixed)),
        "registered - fixed": enlarged(0.5 + middle(registered - fixed)),
        "a grid, moved": grid_on(middle(moving), in_plane),
        "Jacobian: blue < 1": stretched(determinant[size // 4]),
    }
    row = [Panel(*panel) for panel in panels.items()]
    save(sheet([row[:4], row[4:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
