"""Compresses a photograph to BC1 and BC4 by gradient descent, and prints how close it stays beside Pillow's encoder.

A block of 4 by 4 texels stores two ends, and for each texel which point on the line between them it takes. To choose a
point is a step, which has no gradient. So a texel takes all points at once, each with a share that falls with its
squared distance to the texel: the loss is a soft minimum of the distances, and becomes the minimum as its temperature
falls. Ends are stored in a few bits. They are rounded where the loss reads them, and the gradient passes the rounding
as if it were not there. The order of the ends says which points there are, so that both orders are fitted, and each
block takes the better one.

In the end `jaxtex.block_compressed` decodes the ends of each block with all indices, as a texture unit does, and each
texel takes the nearest of these points.
"""

import argparse
import functools
import io
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, magnified, save, sheet
from PIL import Image

import jaxtex as jt

FAR = 9.0  # a point that no texel takes
RATE, HOT, COLD = 0.03, 1e-2, 1e-6  # the first rate, and the first and the last temperature
DETAIL, TIMES = (324, 276, 72, 72), 4


class Format(NamedTuple):
    """A block-compressed format.

    Attributes:
        most: the largest code of each channel of an end.
        places: the lowest bit of each channel in an end.
        width: of an end, in bits.
        bits: of an index.
        points: of each order of the ends, shares of the first end and of the last, and what is added to them.
    """

    most: tuple[int, ...]
    places: tuple[int, ...]
    width: int
    bits: int
    points: tuple[np.ndarray, np.ndarray]


def points(count: int, *constants: float) -> np.ndarray:
    """So many points from the first end to the last, in the order of their indices, and constant ones."""
    weights = np.array([0, 1, *np.arange(1, count - 1) / (count - 1)])
    rows = [(1 - w, w, 0) for w in weights] + [(0, 0, constant) for constant in constants]
    return np.array(rows, np.float32)


FORMATS = {
    "bc1": Format((31, 63, 31), (11, 5, 0), 16, 2, (points(4), points(3, FAR))),
    "bc4": Format((255,), (0,), 8, 3, (points(8), points(6, 0, 1))),
}


def blocks_of(image: np.ndarray) -> np.ndarray:
    """The texels of blocks, (N, 16, C), of an image (H, W, C) whose sides are multiples of 4."""
    height, width, channels = image.shape
    blocks = image.reshape(height // 4, 4, width // 4, 4, channels).swapaxes(1, 2)
    return blocks.reshape(-1, 16, channels)


def first_ends(texels: jax.Array) -> jax.Array:
    """The ends of the texels of each block along the axis on which they vary most, (N, 2, C)."""
    mean = texels.mean(1, keepdims=True)
    axis = jnp.abs(texels - mean).max(1) + 1e-6
    for _ in range(4):  # power iteration
        axis = jnp.einsum("ntc,ntd,nd->nc", texels - mean, texels - mean, axis)
        axis = axis / (jnp.linalg.norm(axis, axis=-1, keepdims=True) + 1e-9)
    along = jnp.einsum("ntc,nc->nt", texels - mean, axis)
    ends = jnp.stack([along.min(1), along.max(1)], 1)[..., None] * axis[:, None] + mean
    return jnp.clip(ends, 0, 1)


def rounded(ends: jax.Array, most: jax.Array) -> jax.Array:
    """Ends as they are stored. The gradient is that of the identity."""
    return ends + jax.lax.stop_gradient(jnp.round(jnp.clip(ends, 0, 1) * most) / most - ends)


@functools.partial(jax.jit, static_argnames=("name", "order", "steps"))
def fit(texels: jax.Array, name: str, order: int, steps: int) -> jax.Array:
    """The codes of the best ends that a descent meets in each block, (N, 2, C)."""
    most, rows = jnp.asarray(FORMATS[name].most, jnp.float32), jnp.asarray(FORMATS[name].points[order])

    def loss(ends: jax.Array, temperature: jax.Array) -> tuple[jax.Array, jax.Array]:
        palette = jnp.einsum("pk,nkc->npc", rows[:, :2], rounded(ends, most)) + rows[:, 2:]
        distance = ((texels[:, :, None] - palette[:, None]) ** 2).sum(-1)
        soft = -temperature * jax.nn.logsumexp(-distance / temperature, axis=-1)
        return soft.sum(), distance.min(-1).sum(-1)

    def step(state, temperature):
        ends, mean, square, best, least = state
        slopes, error = jax.grad(loss, has_aux=True)(ends, temperature)
        better = (error < least)[:, None, None]
        best, least = jnp.where(better, ends, best), jnp.minimum(error, least)
        mean, square = 0.8 * mean + 0.2 * slopes, 0.9 * square + 0.1 * slopes**2
        rate = RATE * (temperature / HOT) ** 0.3
        return (jnp.clip(ends - rate * mean / (jnp.sqrt(square) + 1e-8), 0, 1), mean, square, best, least), None

    ends = first_ends(texels)
    start = (ends, jnp.zeros_like(ends), jnp.zeros_like(ends), ends, jnp.full(len(ends), jnp.inf))
    (_, _, _, best, _), _ = jax.lax.scan(step, start, jnp.geomspace(HOT, COLD, steps))
    return jnp.round(best * most).astype(jnp.int32)


def packed(name: str, ends: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Blocks, (N, 8), of ends, (N, 2), as the numbers that are stored, and of indices, (N, 16)."""
    width, bits = FORMATS[name].width, FORMATS[name].bits
    places = np.array([0, width, *(2 * width + bits * np.arange(16))], np.uint64)
    whole = (np.concatenate([ends, indices.astype(np.uint64)], 1) << places).sum(-1, dtype=np.uint64)
    return whole.astype("<u8").view(np.uint8).reshape(-1, 8)


def texels_of(name: str, blocks: np.ndarray) -> np.ndarray:
    """The texels of blocks in a row, (N, 16, C), from 0 to 1, with alpha if there is one."""
    texels = np.asarray(jt.block_compressed(jnp.asarray(blocks), name, (4, 4 * len(blocks))).texels)
    return blocks_of(np.float32(texels) / np.float32(np.iinfo(texels.dtype).max))


def encode(texels: np.ndarray, name: str, steps: int) -> np.ndarray:
    """The blocks, (N, 8), of their texels, (N, 16, C), from 0 to 1."""
    channels, places, count = texels.shape[-1], np.array(FORMATS[name].places, np.uint64), 2 ** FORMATS[name].bits
    found, least = np.zeros((len(texels), 8), np.uint8), np.full(len(texels), np.inf)
    for order in (0, 1):
        codes = np.asarray(fit(jnp.asarray(texels), name, order, steps)).astype(np.uint64)
        ends = np.sort((codes << places).sum(-1, dtype=np.uint64))
        ends = ends[:, ::-1] if order == 0 else ends  # the larger one is first if all points lie between them
        ramp = np.broadcast_to(np.arange(16) % count, (len(ends), 16))
        palette = texels_of(name, packed(name, ends, ramp))[:, :count]
        distance = ((texels[:, :, None] - palette[:, None, :, :channels]) ** 2).sum(-1)
        if name == "bc1":
            distance = np.where(palette[:, None, :, 3] < 1, np.inf, distance)  # transparent
        error = distance.min(-1).sum(-1)
        blocks = packed(name, ends, distance.argmin(-1))
        found[error < least], least = blocks[error < least], np.minimum(error, least)
    return found


def by_pillow(image: np.ndarray, name: str) -> np.ndarray:
    """The blocks, (N, 8), that Pillow writes of an image (H, W, C) from 0 to 1. Red of its BC5 is BC4."""
    photograph = Image.fromarray(np.uint8(np.broadcast_to(image, (*image.shape[:2], 3)) * 255 + 0.5))
    file, count = io.BytesIO(), image.shape[0] * image.shape[1] // 16
    photograph.save(file, "DDS", pixel_format="DXT1" if name == "bc1" else "BC5")
    size = 8 if name == "bc1" else 16
    return np.frombuffer(file.getvalue()[-size * count :], np.uint8).reshape(-1, size)[:, :8]


def decoded(blocks: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The image (H, W, C) of blocks, from 0 to 1."""
    texels = np.asarray(jt.block_compressed(jnp.asarray(blocks), name, shape[:2]).texels)
    return np.float32(texels)[..., : shape[-1]] / np.float32(np.iinfo(texels.dtype).max)


def psnr(image: np.ndarray, other: np.ndarray) -> float:
    """The peak signal-to-noise ratio in decibels."""
    return float(-10 * np.log10(((image - other) ** 2).mean()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compresses a photograph to BC1 and BC4 by gradient descent.")
    parser.add_argument("--image", type=Path, default=DATA / "coffee.png")
    parser.add_argument("--steps", type=int, default=100, help="steps of the descent")
    parser.add_argument("--out", type=Path, default=Path("block_compression.png"), help="where to write the picture")
    args = parser.parse_args(argv)

    photograph = Image.open(args.image).convert("RGB")
    photograph = photograph.crop((0, 0, photograph.width // 4 * 4, photograph.height // 4 * 4))
    rows = []
    for name, mode in (("bc1", "RGB"), ("bc4", "L")):
        image = np.asarray(photograph.convert(mode), np.float32).reshape(photograph.height, photograph.width, -1) / 255
        results = {
            "Pillow": decoded(by_pillow(image, name), name, image.shape),
            "gradient descent": decoded(encode(blocks_of(image), name, args.steps), name, image.shape),
        }
        for encoder, result in results.items():
            print(f"{name}, {8 * 8 / 16:.0f} bits a texel, {encoder}: {psnr(image, result):.2f} dB")
        rows.append(row(name.upper(), image, results))
    save(sheet(rows), args.out)
    return 0


def row(name: str, image: np.ndarray, results: dict[str, np.ndarray]) -> list[Panel]:
    """Magnified details of an image and of what encoders made of it, with their errors."""
    left, top, width, height = DETAIL
    part = np.s_[top : top + height, left : left + width]
    decoded = [Panel(encoder, magnified(r[part], TIMES), f"{psnr(image, r):.1f} dB") for encoder, r in results.items()]
    return [Panel("original", magnified(image[part], TIMES), f"for {name}"), *decoded]


if __name__ == "__main__":
    sys.exit(main())
