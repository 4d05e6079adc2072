"""Learns the transfer function of a volume renderer from three small pictures.

A transfer function says which color each density of a volume has, and how much light it stops. It is usually painted by
hand. Here it is a table, a texture of one dimension, and the renderer is one function of one pixel: it follows a ray,
reads a density, looks it up in the table, and adds up light from front to back. `jaxtex.fused_map` makes one kernel of
it on a GPU.

- For a picture, each ray ends by itself when almost no light passes any more, by `jax.lax.while_loop`.
- For gradients, all rays take as many steps, by `jax.lax.scan`. With `jax.checkpoint` around a step, a ray keeps four
  numbers of each.

The volume is a knot: a density that falls off with the distance from a curve. The picture shows it from a side that the
renderer did not see while it learned: with the true table, with the one that the descent starts from, and with the
learned one. Below is each table: the light that a tenth of the volume's width sends out, and what it stops.
"""

import argparse
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import Panel, plot, save, sheet
from tqdm import trange

import jaxtex as jt

SIZE, WIDTH = 48, 0.22  # texels along a side of the volume; the width of the knot's rope, in half widths of the volume
TABLE, DENSEST = 16, 30.0  # texels of the table; the most that it stops, along the width of the volume
SIDES = (0.3, 0.6), (1.5, -0.5), (2.6, 0.2)  # the turns of the pictures that are given, in radians
NEW_SIDE = (0.0, 0.25)
SEEN = 1.25  # the width of what a camera sees, in widths of the volume
START = jnp.zeros(3), jnp.float32(1)  # of a ray: the light so far, and the share that still passes
OUTSIDE = jt.Sampler(address_mode="border")
RATE = 0.1


def knot() -> np.ndarray:
    """The densities of a trefoil knot, from 0 to 1: (SIZE, SIZE, SIZE, 1)."""
    t = np.linspace(0, 2 * np.pi, 240, endpoint=False)
    curve = 0.25 * np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -1.2 * np.sin(3 * t)])
    z, y, x = np.ogrid[:SIZE, :SIZE, :SIZE]
    place = lambda k: (k + 0.5) * 2 / SIZE - 1
    squares = ((place(x) - a) ** 2 + (place(y) - b) ** 2 + (place(z) - c) ** 2 for a, b, c in curve.T)
    return np.exp(-functools.reduce(np.minimum, squares) / WIDTH**2).astype(np.float32)[..., None]


def true_table() -> np.ndarray:
    """A glassy blue skin, a thin orange one inside, and a white core: (TABLE, 4), colors and the share of DENSEST."""
    density = np.linspace(0, 1, TABLE)[:, None]
    middles, widths, amounts = np.array([0.25, 0.6, 1.0]), np.array([0.08, 0.06, 0.12]), np.array([0.12, 0.5, 1.0])
    colors = np.array([(0.05, 0.4, 0.9), (0.9, 0.3, 0.05), (0.95, 0.9, 0.75)])
    shares = amounts * np.exp(-(((density - middles) / widths) ** 2))
    stops = shares.sum(axis=1, keepdims=True)
    return np.concatenate([shares @ colors / stops, stops], axis=1).astype(np.float32)


def cameras(sides: Sequence[tuple[float, float]]) -> jax.Array:
    """Rotations by a first angle about the upright axis, and a second one about the one to the right: (N, 3, 3)."""
    (c, d), (s, t) = (function(np.array(sides)).T for function in (np.cos, np.sin))
    zero = 0 * c
    rows = [c, s * t, s * d], [zero, d, -t], [-s, c * t, c * d]
    return jnp.moveaxis(jnp.float32(rows), -1, 0)


def advance(state, step, y, x, size, steps, camera, volume, table):
    """The light so far and the share that still passes, (3,) and (), after a step of the ray of pixel (y, x)."""
    light, passes = state
    place = jnp.stack([(x + 0.5) / size, (y + 0.5) / size, (step + 0.5) / steps]) - 0.5
    (density,) = jt.sample(volume, tuple(SEEN * camera @ place + 0.5), OUTSIDE)
    *color, stops = jt.sample(table, ((density * (TABLE - 1) + 0.5) / TABLE,))
    stopped = 1 - jnp.exp(-stops * DENSEST * SEEN / steps)
    return light + passes * stopped * jnp.stack(color), passes * (1 - stopped)


def until_dark(size, steps, y, x, *given):
    """The light in a pixel, (3,). The ray ends when less than a hundredth of the light passes."""
    goes_on = lambda state: (state[0] < steps) & (state[1][1] > 0.01)
    one = lambda state: (state[0] + 1, advance(state[1], state[0], y, x, size, steps, *given))
    return jax.lax.while_loop(goes_on, one, (0, START))[1][0]


def all_steps(size, steps, y, x, *given):
    """The same, with gradients in reverse mode."""
    one = jax.checkpoint(lambda state, step: (advance(state, step, y, x, size, steps, *given), None))
    return jax.lax.scan(one, START, jnp.arange(steps))[0][0]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def views(pixel, size, steps, cameras, volume, table):
    """What each camera sees: (N, size, size, 3)."""
    view = jt.fused_map(functools.partial(pixel, size, steps), (size, size))
    return jax.vmap(view, (0, None, None))(cameras, jt.texture3d(volume), jt.texture1d(table))


def light_of(table: jax.Array) -> dict[str, np.ndarray]:
    """What a tenth of the volume's width sends out of each color, and what it stops, from 0 to 1."""
    red, green, blue, stops = np.asarray(table).T
    stopped = 1 - np.exp(-stops * DENSEST / 10)
    return {"red": red * stopped, "blue": blue * stopped, "green": green * stopped, "stopped": stopped}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=40, help="the width of the pictures that are given")
    parser.add_argument("--steps", type=int, default=40, help="of a ray")
    parser.add_argument("--rounds", type=int, default=80, help="of the descent")
    parser.add_argument("--panel", type=int, default=240, help="the width of the pictures that are drawn")
    parser.add_argument("--out", type=Path, default=Path("transfer_function.png"))
    args = parser.parse_args(argv)
    volume, truth, around = jnp.asarray(knot()), jnp.asarray(true_table()), cameras(SIDES)
    given = views(until_dark, args.size, args.steps, around, volume, truth)
    optimizer = optax.adam(RATE)

    def loss(numbers):
        seen = views(all_steps, args.size, args.steps, around, volume, jax.nn.sigmoid(numbers))
        return ((seen - given) ** 2).mean()

    @jax.jit
    def improved(numbers, memory):
        value, slopes = jax.value_and_grad(loss)(numbers)
        change, memory = optimizer.update(slopes, memory)
        return numbers + change, memory, value

    # Gray, and the denser, the more is stopped.
    numbers = jnp.zeros((TABLE, 4)).at[:, 3].set(jnp.linspace(-8, 0, TABLE))
    tables, memory, values = {"true": truth, "start": jax.nn.sigmoid(numbers)}, optimizer.init(numbers), []
    for _ in trange(args.rounds, desc="learning", leave=False, disable=None, file=sys.stderr):
        numbers, memory, value = improved(numbers, memory)
        values.append(float(value))
    tables["learned"] = jax.nn.sigmoid(numbers)
    print(f"mean squared difference from the pictures: {values[0]:.5f}, at the end {values[-1]:.5f}")

    new, density, limits = cameras([NEW_SIDE]), np.linspace(0, 1, TABLE), ((0, 1), (0, 1))
    seen = {n: np.asarray(views(until_dark, args.panel, 3 * args.steps, new, volume, t)[0]) for n, t in tables.items()}
    notes = {"true": "a new side"}
    for name in ("start", "learned"):
        notes[name] = f"{-10 * np.log10(((seen[name] - seen['true']) ** 2).mean()):.1f} dB"
        print(f"{name}: {notes[name]} from a new side")
    rows = [Panel(name, seen[name], notes[name]) for name in tables], []
    for table in tables.values():
        curves = {name: (density, light) for name, light in light_of(table).items()}
        rows[1].append(Panel("", plot((args.panel,) * 2, curves, "density", "light", limits=limits, corner="la")))
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
