"""Learns the texture of a plane from perspective views of it, with and without mipmaps.

A pixel of a view shows the mean of all texels that it covers: many, if the plane is far away or seen at a grazing
angle. A model without mipmaps explains the pixel by the four texels around its center, and makes these as blurred as
the pixel. It never reads the texels between, which keep their initial values. A model that reads a mip chain
anisotropically explains the pixel by all texels of its footprint. The gradient flows back through the levels of
`jaxtex.build_mipmaps` to every texel, and many coarse views from all sides become one fine texture.

With `--levels independent` the texels of each level are parameters of their own, without a link between levels.

The views are rendered with 8 x 8 reads of the true texture per pixel. The program prints how close each model comes to
unseen views and to the true texture. The picture shows two of the views, an unseen view as each model renders it, and
the texture, learned and true. Views are enlarged to the size of the texture by Pillow's bicubic filter.
"""

import argparse
import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from panels import DATA, Panel, save, sheet, to_bytes
from PIL import Image
from tqdm import tqdm

import jaxtex as jt

PHOTOGRAPH = DATA / "chelsea.jpg"
LINEAR = jt.Sampler(address_mode="border")
# Half a level finer than the footprint: a blend of box-filtered levels is blurrier than the mean over a pixel.
ANISOTROPIC = jt.Sampler(address_mode="border", mipmap_filter_mode="linear", max_anisotropy=4, mipmap_level_bias=-0.5)
# The sampler of each model, and its number of levels.
MODELS = {"without mipmaps": (LINEAR, 1), "with mipmaps": (ANISOTROPIC, 5)}
GRAY = 0.5
FINER = 4  # the width of the texture over that of a view
READS = 8  # along each side of a pixel, for the true views
TOGETHER, RATE = 6, 0.03  # the number of views of a step

Texels = tuple[jax.Array, ...]  # the finest level, or all of them


def cameras(random: np.random.Generator, count: int) -> jax.Array:
    """Matrices (count, 3, 3) from points of a view, -1 to 1, to points of the plane, the texture from 0 to 1."""
    rows = []
    for azimuth, slope, far in random.random((count, 3)):
        # All around the plane, 30 to 75 degrees above it, at near and far distances.
        azimuth, slope, far = 2 * np.pi * azimuth, np.radians(30 + 45 * slope), 0.5 * 4**far
        # y points down in the texture, and away from the camera in the plane.
        toward = -np.array([np.cos(azimuth) * np.cos(slope), np.sin(azimuth) * np.cos(slope), np.sin(slope)])
        right = np.array([-np.sin(azimuth), np.cos(azimuth), 0])
        down = np.cross(toward, right)
        eye = -far * toward
        # The ray eye + t (0.7 x right + 0.7 y down + 2 toward) meets z = 0 at t = eye_z / depth.
        ray = np.stack([0.7 * right, 0.7 * down, 2 * toward], axis=1)
        depth = -ray[2]
        meet = np.outer(eye[:2], depth) + eye[2] * ray[:2]
        rows.append(np.stack([depth / 2 + meet[0], depth / 2 - meet[1], depth]))
    return jnp.asarray(np.stack(rows), jnp.float32)


def on_plane(x: jax.Array, y: jax.Array, matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The point of the plane on the ray through a point of a view."""
    across, along, depth = (row[0] * x + row[1] * y + row[2] for row in matrix)
    return across / depth, along / depth


def textured(texels: Texels, num_levels: int) -> jt.Texture:
    """A texture with all its levels, which are built from the finest if no others are given."""
    if len(texels) > 1:
        return jt.texture2d(texels, border_color=GRAY)
    return jt.build_mipmaps(jt.texture2d(texels[0], border_color=GRAY), num_levels)


def view(texture: jt.Texture, matrix: jax.Array, size: int, sampler: jt.Sampler) -> jax.Array:
    """The view of a camera on the plane: (size, size, 3)."""
    place = lambda i, j: on_plane((i + 0.5) * (2 / size) - 1, (j + 0.5) * (2 / size) - 1, matrix)
    pixels = jnp.arange(size, dtype=jnp.float32)[None, :], jnp.arange(size, dtype=jnp.float32)[:, None]
    ddx, ddy = jt.footprint(place, pixels)
    return jt.sample(texture, place(*pixels), sampler, ddx=ddx, ddy=ddy)


@functools.partial(jax.jit, static_argnames=("size", "model"))
def views(texels: Texels, matrices: jax.Array, size: int, model: str) -> jax.Array:
    """The views of several cameras: (N, size, size, 3)."""
    sampler, num_levels = MODELS[model]
    return jax.vmap(lambda matrix: view(textured(texels, num_levels), matrix, size, sampler))(matrices)


@functools.partial(jax.jit, static_argnames="size")
def true_views(texels: jax.Array, matrices: jax.Array, size: int) -> jax.Array:
    """The means of READS x READS reads per pixel: views that are READS times as large, reduced."""
    fine = jax.lax.map(
        lambda matrix: view(jt.texture2d(texels, border_color=GRAY), matrix, READS * size, LINEAR), matrices
    )
    return fine.reshape(-1, size, READS, size, READS, 3).mean(axis=(2, 4))


@functools.partial(jax.jit, static_argnames="model", donate_argnums=0)
def learn(state, chosen: jax.Array, seen: jax.Array, matrices: jax.Array, rate: float, model: str):
    """Steps of Adam, each on the views `chosen` for it, (steps, TOGETHER)."""
    size, optimizer = seen.shape[1], optax.adam(1.0)

    def step(state, chosen):
        texels, memory = state
        loss = lambda texels: ((views(texels, matrices[chosen], size, model) - seen[chosen]) ** 2).mean()
        value, slopes = jax.value_and_grad(loss)(texels)
        change, memory = optimizer.update(slopes, memory)
        return (jax.tree.map(lambda t, c: jnp.clip(t + rate * c, 0, 1), texels, change), memory), value

    return jax.lax.scan(step, state, chosen)


def psnr(found: np.ndarray, truth: np.ndarray, where: np.ndarray | bool = True) -> float:
    """The peak signal-to-noise ratio in decibels, over the pixels at which `where` is true."""
    return float(-10 * np.log10(((found - truth) ** 2)[where].mean()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Learn the texture of a plane from views of it.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--levels", choices=("built", "independent"), default="built")
    parser.add_argument("--seed", type=int, default=0, help="of the cameras")
    parser.add_argument("--small", action="store_true", help="use views of 24 x 24 pixels; takes seconds")
    parser.add_argument("--out", type=Path, default=Path("learned_texture.png"))
    args = parser.parse_args(argv)

    size, rounds, steps = (24, 2, 50) if args.small else (64, 10, 40)
    photograph = Image.open(args.photograph).convert("RGB")
    side = min(photograph.size)
    left, top = (n // 2 - side // 2 for n in photograph.size)
    square = photograph.resize((FINER * size,) * 2, box=(left, top, left + side, top + side))
    truth = np.asarray(square, np.float32) / 255
    random = np.random.default_rng(args.seed)
    matrices, unseen = cameras(random, 32), cameras(random, 8)
    chosen = np.stack([random.permutation(len(matrices))[:TOGETHER] for _ in range(rounds * steps)])
    seen, expected = (np.asarray(true_views(truth, these, size)) for these in (matrices, unseen))
    # A pixel that a plane of ones fills lies on the plane as a whole.
    whole = np.asarray(true_views(np.full_like(truth, 1 + GRAY), unseen, size))[..., 0] > 1 + 0.9 * GRAY

    textures, renders, ratios = {}, {}, {}
    for name, (_, num_levels) in MODELS.items():
        texels = (jnp.full_like(truth, GRAY),)
        if args.levels == "independent":
            texels = textured(texels, num_levels).levels
        state = texels, optax.adam(1.0).init(texels)
        parts = np.split(chosen, rounds)
        for number, part in enumerate(tqdm(parts, name, unit="round", leave=False, disable=None, file=sys.stderr)):
            rate = RATE * 0.5 * (1 + np.cos(np.pi * number / rounds))
            state, _ = learn(state, part, seen, matrices, rate, name)
        textures[name], renders[name] = map(np.asarray, (state[0][0], views(state[0], unseen, size, name)))
        ratios[name] = psnr(renders[name], expected, whole), psnr(textures[name], truth)
        print(f"{name}: unseen views {ratios[name][0]:.2f} dB, texture {ratios[name][1]:.2f} dB")

    large = lambda image: Image.fromarray(to_bytes(image)).resize((FINER * size,) * 2, Image.Resampling.BICUBIC)
    rows = [
        [
            Panel("true texture", truth, f"{FINER * size} x {FINER * size} texels"),
            *(Panel(name, textures[name], f"learned: {ratios[name][1]:.1f} dB") for name in MODELS),
        ],
        [
            Panel(f"view {number} of {len(seen)}", large(seen[number - 1]), f"{size} x {size} pixels")
            for number in (1, 2, 3)
        ],
        [
            Panel("an unseen view", large(expected[0]), "true"),
            *(Panel(name, large(renders[name][0]), f"rendered: {ratios[name][0]:.1f} dB") for name in MODELS),
        ],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
