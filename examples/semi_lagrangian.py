"""A tracer that a wind stirs in a periodic box, cut over devices: each holds some rows, and reads a few of others.

The wind is a vortex that turns back after half of the time, on top of a steady wind that crosses the box once (R. J.
LeVeque, "High-resolution conservative algorithms for advection in incompressible flow", 1996). At the end the tracer
should be where it was at the start, so the error is known. A step is semi-Lagrangian: each texel takes the value that
is where the wind comes from, between texels.

In a step no texel comes from further than the wind blows. So `jaxtex.sharded.Halo` says how many rows neighbors
exchange, and nothing else moves. The program prints this, mass and error for three filters, and how long a step takes.
The picture shows the tracer that is carried by the cubic filter whose values stay between those of the nearest texels.
"""

import argparse
import contextlib
import functools
import math
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from panels import Panel, colored, save, sheet
from PIL import Image

import jaxtex as jt

FILTERS = {
    "linear": jt.Sampler(address_mode="wrap"),
    "cubic": jt.Sampler(address_mode="wrap", filter_mode="cubic"),
    "cubic, limited": jt.Sampler(address_mode="wrap", filter_mode="cubic", limit="taps"),
}
FRAMES = 5
# The greatest speed of the vortex, and of the wind across, in boxes per period.
VORTEX, ACROSS = 2.0, 1.0


def wind(x: jax.Array, y: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """In boxes per period, at a time from 0 to 1. The vortex moves along with the wind across."""
    x = x - ACROSS * t
    turn = VORTEX * jnp.cos(jnp.pi * t)
    u = jnp.sin(jnp.pi * x) ** 2 * jnp.sin(2 * jnp.pi * y)
    v = jnp.sin(jnp.pi * y) ** 2 * jnp.sin(2 * jnp.pi * x)
    return ACROSS + turn * u, -turn * v


def origin(x: jax.Array, y: jax.Array, t: jax.Array, dt: float) -> tuple[jax.Array, jax.Array]:
    """Where the wind was at time `t` that is at (x, y) after `dt`: a step back by Runge and Kutta, of fourth order."""
    moved = lambda slope, part: (x - part * dt * slope[0], y - part * dt * slope[1])
    first = wind(x, y, t + dt)
    second = wind(*moved(first, 0.5), t + 0.5 * dt)
    third = wind(*moved(second, 0.5), t + 0.5 * dt)
    fourth = wind(*moved(third, 1.0), t)
    u, v = ((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(first, second, third, fourth))
    return x - dt * u, y - dt * v


def start(size: int) -> jax.Array:
    """The tracer, (size, size, 1): a cone and a disk with a slot."""
    y, x = (jnp.arange(size) + 0.5)[:, None] / size, (jnp.arange(size) + 0.5)[None] / size
    cone = jnp.clip(1 - jnp.hypot(x - 0.35, y - 0.3) / 0.15, 0, 1)
    from_middle = jnp.hypot(x - 0.5, y - 0.72)
    disk = jnp.clip((0.15 - from_middle) * size * 0.5 + 0.5, 0, 1)
    slot = (jnp.abs(x - 0.5) < 0.03) & (y < 0.77)
    return jnp.maximum(cone, jnp.where(slot, 0, disk))[..., None]


def reach(size: int, steps: int) -> int:
    """How many rows away a texel may come from, with those of the filter."""
    return math.ceil(VORTEX * size / steps) + 3


@functools.partial(jax.jit, static_argnames=("name", "steps", "count"))
def carried(tracer: jax.Array, name: str, steps: int, first: int | jax.Array, count: int) -> jax.Array:
    """The tracer after `count` of `steps`, beginning with step `first`."""
    size = tracer.shape[0]
    rows = jax.lax.broadcasted_iota(jnp.float32, (size, 1), 0, out_sharding=P("rows", None))
    columns = jax.lax.broadcasted_iota(jnp.float32, (1, size), 1)
    x, y = (columns + 0.5) / size, (rows + 0.5) / size

    def step(k: int, tracer: jax.Array) -> jax.Array:
        return jt.sample(jt.texture2d(tracer), origin(x, y, k / steps, 1 / steps), FILTERS[name])

    return jax.lax.fori_loop(first, first + count, step, tracer)


def panel(tracer: jax.Array, title: str, size: int) -> Panel:
    image = Image.fromarray(np.asarray(colored(np.asarray(tracer)[..., 0])))
    return Panel(title, image.resize((size, size), Image.Resampling.BICUBIC))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Stir a tracer in a periodic box, cut over devices.")
    parser.add_argument("--size", type=int, default=256, help="of the box in texels, a multiple of the devices")
    parser.add_argument("--steps", type=int, default=400, help="of one period, a multiple of four")
    parser.add_argument("--devices", type=int, default=4, help="of a CPU, where there is no other platform")
    parser.add_argument("--panel", type=int, default=220, help="the width of each panel of the picture")
    parser.add_argument("--out", type=Path, default=Path("semi_lagrangian.png"))
    args = parser.parse_args(argv)
    with contextlib.suppress(RuntimeError):  # a platform that runs keeps its devices
        jax.config.update("jax_num_cpu_devices", args.devices)
    devices = jax.devices()[: args.devices]
    mesh = jax.make_mesh((len(devices),), ("rows",), axis_types=(AxisType.Explicit,), devices=devices)
    with jax.set_mesh(mesh), jt.sharded.using(jt.sharded.Halo(reach(args.size, args.steps))):
        first = jax.device_put(start(args.size), P("rows"))
        quarter = args.steps // (FRAMES - 1)
        run = functools.partial(carried, steps=args.steps, count=quarter)
        print(f"{args.size} x {args.size} texels on {len(devices)} devices, {args.steps} steps")
        print(jt.sharded.explain(lambda tracer: run(tracer, "cubic", first=0), first))
        frames: dict[str, list[jax.Array]] = {}
        for name in FILTERS:
            states = [first]
            began = time.perf_counter()
            for k in range(FRAMES - 1):
                states.append(run(states[-1], name, first=k * quarter))
            last = jax.block_until_ready(states[-1])
            seconds = (time.perf_counter() - began) / args.steps
            error = float(jnp.sqrt(jnp.mean((last - first) ** 2)) / jnp.sqrt(jnp.mean(first**2)))
            mass, low, high = float(last.sum() / first.sum()), float(last.min()), float(last.max())
            print(
                f"{name:15} mass {mass:.6f} of that at the start, error {error:.4f} in the mean, values from {low:.3f} "
                f"to {high:.3f}, {1e3 * seconds:.2f} ms a step"
            )
            frames[name] = states

    titles = "at the start", "a quarter", "half", "three quarters", "cubic, limited, at the end"
    panels = [panel(state, title, args.panel) for state, title in zip(frames["cubic, limited"], titles)]
    panels.append(panel(frames["linear"][-1], "linear, at the end", args.panel))
    save(sheet([panels[:3], panels[3:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
