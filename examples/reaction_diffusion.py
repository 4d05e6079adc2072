"""A pattern that grows by itself: the reaction and diffusion of Gray and Scott, each step a read and a write.

Two substances are on a periodic plane. U is fed everywhere and V decays; where they meet, U + 2 V becomes 3 V. Both
diffuse, U twice as fast. Spots of V grow into rings, which break up into corals (J. E. Pearson, "Complex Patterns in a
Simple System", Science 261, 1993).

Diffusion follows the difference between a texel and its surroundings, which four linear reads return: one at each
corner of the texel. A step writes all texels to a surface, which the next step reads as a texture. The steps run in a
compiled loop whose state is donated: the last state uses the memory of the first.

The program compares the reads with a sum over neighbors. The picture shows V at three times.
"""

import argparse
import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import Panel, save, sheet
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

FEED, DECAY = 0.04, 0.06
SPREAD = (0.3, 0.15)  # of U and V, in squared texels per step
CORNERS = [(dx, dy) for dx in (-0.5, 0.5) for dy in (-0.5, 0.5)]
STENCIL = np.array([[1, 2, 1], [2, -12, 2], [1, 2, 1]]) / 4
WRAP = jt.Sampler(address_mode="wrap")
RADIUS = 6  # of the spots of V at the start, in texels
FRAMES = 3
# From no V to the largest amount.
COLORS = ("#10152e", "#15476b", "#1f8a8c", "#8fc98b", "#f6edc0", "#fff9ee")
MOST = 0.4


def grid(texture: jt.Texture) -> tuple[jax.Array, jax.Array]:
    """The columns (1, W) and the rows (H, 1), which broadcast to all texels."""
    height, width, _ = texture.shape
    return jnp.arange(width)[None, :], jnp.arange(height)[:, None]


@jax.jit
def laplacian(texture: jt.Texture) -> jax.Array:
    """The sum of second derivatives along x and y of a texture (H, W, C), from linear reads."""
    # A linear read at a corner, half a texel from the center along both axes, is the mean of the four texels that meet
    # there. The mean of the reads at all four corners contains the texel itself four times, a neighbor at an edge twice
    # and a neighbor at a corner once: [1 2 1; 2 4 2; 1 2 1] / 16. For x^2 + y^2, whose Laplacian is 4, this mean is 1
    # above the texel. Four times the difference is therefore the Laplacian: [1 2 1; 2 -12 2; 1 2 1] / 4.
    height, width, _ = texture.shape
    x, y = grid(texture)
    reads = (jt.sample(texture, ((x + 0.5 + dx) / width, (y + 0.5 + dy) / height), WRAP) for dx, dy in CORNERS)
    mean = sum(reads, jnp.zeros(())) / 4
    return 4 * (mean - jt.surface_read(texture, (x, y)))


def step(texture: jt.Texture) -> jt.Texture:
    """The state (H, W, 2) of U and V, one unit of time later."""
    place = grid(texture)
    now = jt.surface_read(texture, place)
    u, v = now[..., 0], now[..., 1]
    reaction = u * v**2
    change = jnp.stack([FEED * (1 - u) - reaction, reaction - (FEED + DECAY) * v], axis=-1)
    return jt.surface_write(texture, now + jnp.array(SPREAD) * laplacian(texture) + change, place)


@functools.partial(jax.jit, donate_argnums=0)
def run(texture: jt.Texture, steps: int) -> jt.Texture:
    """The state after `steps` steps, in the memory of `texture`, which is invalid afterwards."""
    return jax.lax.fori_loop(0, steps, lambda _, state: step(state), texture)


@functools.partial(jax.jit, static_argnames=("size", "spots"))
def start(size: int, spots: int) -> jt.Texture:
    """U everywhere, and round spots of V at random positions."""
    along = jnp.arange(size)
    centers = jax.random.uniform(jax.random.key(0), (spots, 2)) * size
    away = lambda center: jnp.abs((along - center + size / 2) % size - size / 2)
    inside = jax.vmap(lambda at: away(at[0])[None, :] ** 2 + away(at[1])[:, None] ** 2 < RADIUS**2)(centers).any(axis=0)
    return jt.texture2d(jnp.where(inside[..., None], jnp.array((0.5, 0.25)), jnp.array((1.0, 0.0))))


def stencil(texels: np.ndarray) -> np.ndarray:
    """The same as `laplacian`, as a sum over neighbors (H, W, C)."""
    total = np.zeros_like(texels)
    for (row, column), weight in np.ndenumerate(STENCIL):
        total += weight * np.roll(texels, (row - 1, column - 1), axis=(0, 1))
    return total


def paint(texture: jt.Texture) -> np.ndarray:
    """V as colors, looked up in a 1D texture."""
    colors = np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in COLORS], np.float32)
    v = np.asarray(texture.texels)[..., 1]
    return (np.asarray(jt.sample(jt.texture1d(colors), (v / MOST,))) + 0.5).astype(np.uint8)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Let a pattern grow by reaction and diffusion.")
    parser.add_argument("--size", type=int, default=512, help="the width of the plane in texels")
    parser.add_argument("--steps", type=int, default=3000, help="in three equal parts, each of which ends with a frame")
    parser.add_argument("--spots", type=int, default=24, help="the number of spots of V at the start")
    parser.add_argument("--out", type=Path, default=Path("reaction_diffusion.png"))
    args = parser.parse_args(argv)

    texture = start(args.size, args.spots)
    part, frames = args.steps // FRAMES, []
    compiled = run.lower(texture, part).compile()
    memory = compiled.memory_analysis()
    print(f"{memory.alias_size_in_bytes if memory else 'unknown'} of {texture.texels.nbytes} bytes of the state reused")
    for number in tqdm(range(FRAMES), unit="frame", leave=False, disable=None, file=sys.stderr):
        texture = compiled(texture, part)
        frames.append(Panel(f"step {(number + 1) * part}", Image.fromarray(paint(texture)).reduce(2)))
        v = np.asarray(texture.texels)[..., 1]
        tqdm.write(f"step {(number + 1) * part}: V above {MOST / 2} on {(v > MOST / 2).mean():.1%} of the plane")
    error = np.abs(laplacian(texture) - stencil(np.asarray(texture.texels, np.float64))).max()
    print(f"four linear reads against nine weights: largest difference {error:.7f}")

    save(sheet([frames]).quantize(32, dither=Image.Dither.NONE), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
