"""A tracer on a globe that a wind carries over both poles, once around, under the address mode "sphere".

The wind turns the globe as a solid body about an axis in the plane of the equator, the hardest of the tests of D. L.
Williamson et al., "A standard test set for numerical approximations to the shallow water equations in spherical
geometry", 1992. A step is semi-Lagrangian: each texel of a map of longitudes and latitudes takes the value that is
where the wind comes from, between texels. After one turn the tracer should be where it was. What is missing is the
error of the filter: no pole needs a formula of its own.

The program prints this error for three filters; the spline reads coefficients that `spline_filter` makes in each step.
The picture shows the tracer that the spline carries at five times, on the globe from straight above, and on the map;
and at last what the linear filter leaves of it.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, colored, save, sheet
from PIL import Image

import jaxtex as jt

FILTERS = ("linear", "cubic", "bspline")
QUARTERS = 4
# Where the spots of the tracer are at the start, in radians to the right and up, and how wide they are.
SPOTS = [(0.0, 0.0, 0.16), *((0.42 * np.sin(a), 0.42 * np.cos(a), 0.09) for a in np.arange(5) * 2 * np.pi / 5)]
LINE = 0.012  # half the width of the lines of the globe, in radians


def direction(longitude: jax.Array, latitude: jax.Array) -> jax.Array:
    """(3, ...), of length 1: x at longitude 0, y at a quarter turn to the east, z at the north pole."""
    level = jnp.cos(latitude)
    return jnp.stack(jnp.broadcast_arrays(level * jnp.cos(longitude), level * jnp.sin(longitude), jnp.sin(latitude)))


def place(at: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The coordinates of directions on the map, whose upper edge is the north pole."""
    x, y, z = at
    return jnp.arctan2(y, x) / (2 * jnp.pi), jnp.arctan2(jnp.hypot(x, y), z) / jnp.pi


def texels(height: int) -> jax.Array:
    """The directions of the texels of a map, (3, height, 2 height)."""
    longitude = (jnp.arange(2 * height) + 0.5) * (jnp.pi / height)
    latitude = jnp.pi / 2 - (jnp.arange(height)[:, None] + 0.5) * (jnp.pi / height)
    return direction(longitude, latitude)


def turned(at: jax.Array, angle: jax.Array | float) -> jax.Array:
    """Directions turned about the x axis, from y to z: over the north pole."""
    x, y, z = at
    return jnp.stack([x, y * jnp.cos(angle) - z * jnp.sin(angle), y * jnp.sin(angle) + z * jnp.cos(angle)])


@functools.partial(jax.jit, static_argnames="height")
def start(height: int) -> jax.Array:
    """The tracer on the map, (height, 2 height, 1): round spots around the direction y."""
    at = texels(height)
    near = (jnp.exp(((direction(np.pi / 2 + u, v)[:, None, None] * at).sum(0) - 1) / w**2) for u, v, w in SPOTS)
    return sum(near, jnp.zeros(at.shape[1:]))[..., None]


def sampler(name: str) -> jt.Sampler:
    return jt.Sampler(address_mode="sphere", filter_mode=name)


@functools.partial(jax.jit, static_argnames=("name", "steps"))
def carried(tracer: jax.Array, name: str, steps: int, turn: float) -> jax.Array:
    """The tracer after part of a turn, in radians, in so many steps."""
    how = sampler(name)
    origins = place(turned(texels(tracer.shape[0]), -turn / steps))

    def step(_: int, tracer: jax.Array) -> jax.Array:
        texture = jt.texture2d(tracer)
        return jt.sample(jt.spline_filter(texture, how) if name == "bspline" else texture, origins, how)

    return jax.lax.fori_loop(0, steps, step, tracer)


@jax.jit
def errors(found: jax.Array, exact: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The root of the mean square over the sphere, as a share of that of the tracer, and the largest error."""
    height = exact.shape[0]
    area = jnp.cos((jnp.arange(height) + 0.5) * (jnp.pi / height) - jnp.pi / 2)[:, None, None]
    square = lambda values: jnp.sqrt(jnp.sum(area * values**2))
    return square(found - exact) / square(exact), jnp.abs(found - exact).max()


@functools.partial(jax.jit, static_argnames="size")
def globe(tracer: jax.Array, angle: float, size: int) -> jax.Array:
    """The globe from above what a turn by `angle` reaches, with lines every 15 degrees."""
    along = (jnp.arange(size) + 0.5) * (2 / size) - 1
    right, up = along[None, :], -along[:, None]
    square = right**2 + up**2
    out = jnp.sqrt(jnp.maximum(1 - square, 0))
    # At the start east is to the right and north is up.
    at = turned(jnp.stack(jnp.broadcast_arrays(-right, out, up)), angle)
    image = colored(jt.sample(jt.texture2d(tracer), place(at), sampler("cubic"))[..., 0])
    x, y = place(at)
    level = jnp.sin(jnp.pi * y)
    from_line = lambda turns: jnp.abs((turns * 24 + 0.5) % 1 - 0.5) * (2 * jnp.pi / 24)
    lines = (from_line(x) * level < LINE) & (level > 0.25) | (from_line(y / 2) < LINE)
    image = jnp.where(lines[..., None], 0.75 * image + 0.25 * 255, image)
    image = image * (0.35 + 0.65 * out)[..., None]
    edge = jnp.clip((1 - jnp.sqrt(square)) * size / 2, 0, 1)[..., None]
    return jnp.uint8(edge * image + (1 - edge) * 255)


@functools.partial(jax.jit, static_argnames="size")
def chart(tracer: jax.Array, size: int) -> jax.Array:
    """The map, enlarged."""
    across, down = (jnp.arange(size) + 0.5) / size, (jnp.arange(size // 2)[:, None] + 0.5) / (size // 2)
    return colored(jt.sample(jt.texture2d(tracer), (across, down), sampler("cubic"))[..., 0])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Carry a tracer once around a globe, over both poles.")
    parser.add_argument("--height", type=int, default=180, help="of the map in texels; it is twice as wide")
    parser.add_argument("--steps", type=int, default=96, help="of one turn, a multiple of four")
    parser.add_argument("--size", type=int, default=220, help="the width of each globe in pixels")
    parser.add_argument("--out", type=Path, default=Path("tracer.png"))
    args = parser.parse_args(argv)

    first = start(args.height)
    frames: dict[str, list[jax.Array]] = {}
    print(f"{args.height} x {2 * args.height} texels, once around in {args.steps} steps, over both poles")
    for name in FILTERS:
        states = [first]
        for _ in range(QUARTERS):
            states.append(carried(states[-1], name, args.steps // QUARTERS, 2 * np.pi / QUARTERS))
        frames[name] = states
        mean, most = errors(states[-1], first)
        print(f"{name:8} error {mean:9.5f} in the mean, {most:9.5f} at most, of a tracer of up to {first.max():.2f}")

    shown = dict(
        zip(("at the start", "north pole", "half around", "south pole", "bspline, at the end"), frames["bspline"])
    )
    shown["linear, at the end"] = frames["linear"][-1]
    rows = []
    for k, (title, state) in enumerate(shown.items()):
        if k % 3 == 0:
            rows += [[], []]
        rows[-2].append(Panel(title, globe(state, k % 5 * 2 * np.pi / QUARTERS, args.size)))
        rows[-1].append(Panel("", chart(state, args.size)))
    save(sheet(rows).quantize(64, dither=Image.Dither.NONE), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
