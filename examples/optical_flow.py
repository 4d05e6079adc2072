"""Finds the optical flow between two frames by a warping loss.

A flow leads each pixel of the first frame to its position in the second. With the right flow, the second frame, warped
back by `jaxtex.warp.warp_flow`, looks like the first. The flow therefore minimizes the difference between the two, plus
a small cost of its changes between neighboring pixels, which decides where the photograph has no texture. The gradient
flows through the coordinates of the warp. It sees the image within a texel only. The descent therefore starts at 1/32
of the resolution, on the coarse levels of a mip chain, and each level starts from the flow of the one before.

The second frame is a photograph; the first is the photograph moved by a smooth random flow, at twice the resolution, so
that the truth is known. The picture shows both frames; the second minus the first, before and after it is warped back,
gray where it is zero; and the true flow and the flow found, with its direction as hue and its length as saturation, as
on the wheel.
"""

import argparse
import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import DATA, Panel, save, sheet
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

PHOTOGRAPH = DATA / "coffee.png"
FURTHEST = 0.04  # the longest true flow, in widths
SMOOTH = 0.06  # the cost of a difference of one pixel between neighbors
LEVELS, STEPS, RATE = 6, 300, 0.1

Flow = jax.Array  # (2, H, W): x and y, in pixels


@functools.partial(jax.jit, static_argnames=("height", "width"))
def random_flow(seed: int, height: int, width: int) -> Flow:
    """A smooth flow: random vectors on a coarse grid, with cubic interpolation between them."""
    vectors = jax.random.normal(jax.random.key(seed), (3, 4, 2))
    flow = jt.warp.resize(vectors, (height, width), filter_mode="cubic")
    return jnp.moveaxis(flow * (FURTHEST * width / jnp.linalg.norm(flow, axis=-1).max()), -1, 0)


def inside(flow: Flow) -> jax.Array:
    """1 where the flow ends within the frame, 0 elsewhere: (H, W, 1)."""
    return jt.warp.warp_flow(jnp.ones((*flow.shape[1:], 1)), tuple(flow), filter_mode="point")


def loss(flow: Flow, first: jax.Array, second: jax.Array) -> jax.Array:
    """The difference between the second frame, warped back, and the first, plus the cost of changes of the flow."""
    difference = jt.warp.warp_flow(second, tuple(flow), address_mode="clamp") - first
    photometric = inside(flow) * jnp.sqrt(difference**2 + 1e-4)  # differentiable at zero
    changes = (jnp.diff(flow, axis=1) ** 2).mean() + (jnp.diff(flow, axis=2) ** 2).mean()
    return photometric.mean() + SMOOTH * changes


@functools.partial(jax.jit, static_argnames="steps")
def descend(flow: Flow, first: jax.Array, second: jax.Array, steps: int) -> Flow:
    """Takes `steps` steps of Adam, at a rate that falls to zero."""
    optimizer = optax.adam(optax.cosine_decay_schedule(RATE, steps))

    def step(state, _):
        flow, memory = state
        change, memory = optimizer.update(jax.grad(loss)(flow, first, second), memory)
        return (optax.apply_updates(flow, change), memory), None

    (flow, _), _ = jax.lax.scan(step, (flow, optimizer.init(flow)), length=steps)
    return flow


@functools.partial(jax.jit, static_argnames=("height", "width"))
def finer(flow: Flow, height: int, width: int) -> Flow:
    """The flow of a coarser level, at the pixels of this level and in units of them."""
    unit = jnp.array([width / flow.shape[2], height / flow.shape[1]], jnp.float32)
    return jt.warp.resize(flow[..., None], (height, width))[..., 0] * unit[:, None, None]


def end_point_error(flow: Flow, truth: Flow) -> np.ndarray:
    """The error of the flow's end point at each pixel, in pixels."""
    return np.linalg.norm(np.asarray(flow) - np.asarray(truth), axis=0)


@functools.partial(jax.jit, static_argnames="num_levels")
def pyramid(image: jax.Array, num_levels: int) -> tuple[jax.Array, ...]:
    """The image and its halves, the means of 2 x 2 pixels of the one before."""
    return jt.build_mipmaps(jt.texture2d(image), num_levels).levels


def painted(flow: Flow, longest: float) -> np.ndarray:
    """The direction of a flow as hue, its length as saturation."""
    dx, dy = np.asarray(flow)
    hue = (np.arctan2(dy, dx) / (2 * np.pi)) % 1
    saturation = np.clip(np.hypot(dx, dy) / longest, 0, 1)
    hsv = np.uint8(np.stack([hue * 255, saturation * 255, np.full_like(hue, 255)], axis=-1) + 0.5)
    return np.asarray(Image.fromarray(hsv, "HSV").convert("RGB")) / 255


def wheel(size: int) -> np.ndarray:
    """The colors of all directions, white outside."""
    along = (np.arange(size) + 0.5) * (2 / size) - 1
    dx, dy = np.meshgrid(along, along)
    return np.where((np.hypot(dx, dy) <= 1)[..., None], painted(np.stack([dx, dy]), 1), 1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find the flow between two frames through a warping loss.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--seed", type=int, default=0, help="of the true flow")
    parser.add_argument("--small", action="store_true", help="use frames of 96 x 64 pixels; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("optical_flow.png"))
    args = parser.parse_args(argv)

    width, height = (96, 64) if args.small else (300, 200)
    image = Image.open(args.photograph).convert("RGB").resize((2 * width, 2 * height), Image.Resampling.BOX)
    photograph = jnp.asarray(np.asarray(image, np.float32) / 255)
    doubled = random_flow(args.seed, 2 * height, 2 * width)
    first = pyramid(jt.warp.warp_flow(photograph, tuple(doubled), filter_mode="cubic", address_mode="clamp"), 2)[1]
    second = pyramid(photograph, 2)[1]
    truth = jnp.moveaxis(pyramid(jnp.moveaxis(doubled, 0, -1), 2)[1], -1, 0) / 2

    num_levels = LEVELS - 3 if args.small else LEVELS
    chains = [pyramid(frame, num_levels) for frame in (first, second)]
    levels = [*zip(*chains)][:: -2 if args.small else -1]
    flow = jnp.zeros((2, 1, 1))
    for coarse_first, coarse_second in tqdm(levels, "levels", leave=False, disable=None, file=sys.stderr):
        size = coarse_first.shape[:2]
        flow = descend(finer(flow, *size), coarse_first, coarse_second, 100 if args.small else STEPS)
        error = end_point_error(finer(flow, height, width), truth)
        tqdm.write(f"{size[1]:3d} x {size[0]:3d}: off by {error.mean():.3f} of {width} pixels")
    before, after = end_point_error(np.zeros_like(flow), truth), end_point_error(flow, truth)
    for when, error in (("before", before), ("after", after)):
        print(f"end-point error {when}: mean {error.mean():.3f}, 19 of 20 below {np.quantile(error, 0.95):.3f} pixels")
    back = jt.warp.warp_flow(second, tuple(flow), address_mode="clamp")
    first, second, back = map(np.asarray, (first, second, back))
    psnr = [-10 * np.log10(((frame - first) ** 2).mean()) for frame in (second, back)]
    print(f"second frame against the first: {psnr[0]:.1f} dB as it is, {psnr[1]:.1f} dB warped back")

    longest = float(np.linalg.norm(np.asarray(truth), axis=0).max())
    key, colors = height // 2, painted(truth, longest)
    colors[-key:, :key] = wheel(key)
    panels = {
        "first frame": first,
        "second - first": 0.5 + second - first,
        "true flow": colors,
        "second frame": second,
        "warped back - first": 0.5 + back - first,
        "found flow": painted(flow, longest),
    }
    row = [Panel(*panel) for panel in panels.items()]
    row[2] = row[2]._replace(note=f"rim of the wheel: {longest:.0f} px")
    save(sheet([row[:3], row[3:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
