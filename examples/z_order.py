"""Stores an image in Z-order (Morton order) in a 1D texture, and reads it back by fetch.

The index interleaves the bits of x, y (and z), with x lowest. Texels that are close in the plane are then close in
memory, a layout that suits the caches of texture units. (5, 3) is at 27 and (1, 2, 3) at 53.

The picture shows the first indices along their curve, and the 1D texture in the order of memory, in rows of equal
width.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from panels import COLORS, DATA, INK, Panel, font, save, sheet
from PIL import Image, ImageDraw

import jaxtex as jt

PHOTOGRAPH = DATA / "chelsea.jpg"
LINE = 32


@jax.jit
def z_order(*indices: ArrayLike) -> jax.Array:
    """The index in Z-order of texels given by ``(x,)``, ``(x, y)`` or ``(x, y, z)``, each of 10 bits."""
    count = len(indices)
    places = [
        (jnp.asarray(index) >> bit & 1) << (count * bit + axis)
        for axis, index in enumerate(indices)
        for bit in range(10)
    ]
    return sum(places[1:], places[0])


@jax.jit
def stored(texels: jax.Array, index: jax.Array) -> jax.Array:
    """Memory with each texel at its index."""
    return jnp.zeros((index.size, texels.shape[-1]), texels.dtype).at[index].set(texels)


def curve(size: int) -> Image.Image:
    """The indices of 8 x 8 texels, and a line through the texels in the order of memory."""
    along = np.arange(8)
    order = np.asarray(z_order(along[None, :], along[:, None]))
    rows, columns = np.divmod(np.argsort(order, axis=None), 8)
    picture = Image.new("RGB", (size, size), "#f3f5f8")
    pen, cell = ImageDraw.Draw(picture), size / 8
    pen.line([((x + 0.5) * cell, (y + 0.5) * cell) for x, y in zip(columns, rows)], COLORS[1], 2)
    for (y, x), index in np.ndenumerate(order):
        place = (x + 0.5) * cell, (y + 0.5) * cell
        pen.text(place, str(index), INK, font(cell * 0.5), anchor="mm", stroke_width=3, stroke_fill="#f3f5f8")
    return picture


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Store a photograph in Z-order, and read it back.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, default=256, help="the width of the image in pixels, a power of two")
    parser.add_argument("--out", type=Path, default=Path("z_order.png"))
    args = parser.parse_args(argv)
    if args.size & (args.size - 1) or not 8 <= args.size <= 1024:
        parser.error(f"--size is {args.size}, expected a power of two from 8 to 1024")

    four = np.arange(4)
    for row in np.asarray(z_order(four[None, :], four[:, None])):
        print(*(f"{index:2d}" for index in row))
    print(f"(5, 3) -> {z_order(5, 3)}, (1, 2, 3) -> {z_order(1, 2, 3)}")

    image = Image.open(args.photograph).convert("RGB")
    left, top = (image.width - image.height) // 2, 0
    square = image.crop((left, top, left + image.height, top + image.height)).resize((args.size, args.size))
    texels = np.asarray(square)

    along = np.arange(args.size)
    index = z_order(along[None, :], along[:, None])
    memory = stored(texels, index)
    restored = jt.fetch(jt.texture1d(memory), (index,))
    equal = np.array_equal(restored, texels)
    print(f"read back equal: {equal}")

    rows = along[None, :] + args.size * along[:, None]
    for name, layout in (("row-major order", rows), ("Z-order", index)):
        lines = len(np.unique(np.asarray(layout)[:4, :8] // LINE))
        print(f"a tile of 8 x 4 texels touches {lines} lines of {LINE} texels in {name}")

    row = [
        Panel("order of 8 x 8 texels", curve(args.size)),
        Panel("a cat in memory, in rows", np.asarray(memory).reshape(texels.shape)),
    ]
    save(sheet([row]), args.out)
    return 0 if equal else 1


if __name__ == "__main__":
    raise SystemExit(main())
