"""A table lookup, TL(x) = tex((N - 1) / R x + 0.5): a piecewise linear function on [0, R], given by N values.

The scale and the half texel map x = 0 to the center of the first texel and x = R to the center of the last: TL(0) =
T[0] and TL(R) = T[N - 1], as in the CUDA C++ Programming Guide, "Table Lookup". Outside [0, R] the address mode clamp
returns the values at the ends.

The picture shows a table as a color map: a 1D texture of seven colors, applied to a gray photograph.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, save, sheet
from PIL import Image

import jaxtex as jt

PHOTOGRAPH = DATA / "rocket.jpg"
PIXELS = jt.Sampler(address_mode="clamp", filter_mode="linear", normalized_coords=False)
# From dark blue through purple and orange to pale yellow, with increasing lightness.
COLORS = ("#0d0a2b", "#3b1470", "#7a1f7d", "#bb3865", "#ee6a3c", "#fbb034", "#fcfbbf")


def table_lookup(table: jt.Texture, x: jax.Array, largest: float) -> jax.Array:
    """The function that takes the values of `table` (N, C) at N equal steps from 0 to `largest`."""
    count = table.shape[0]
    return jt.sample(table, ((count - 1) / largest * x + 0.5,), PIXELS)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Look values up in a table, and color a photograph by it.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--out", type=Path, default=Path("table_lookup.png"))
    args = parser.parse_args(argv)

    table, largest = jt.texture1d(jnp.array([[1.0], [3.0], [2.0], [5.0]])), 6.0
    for x in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        print(f"TL({x:g}) = {table_lookup(table, jnp.asarray(x), largest)[0]:g}")

    photograph = Image.open(args.photograph)
    gray = jnp.asarray(np.asarray(photograph.convert("L")))
    colors = [[int(color[start : start + 2], 16) for start in (1, 3, 5)] for color in COLORS]
    colored = table_lookup(jt.texture1d(jnp.array(colors, jnp.float32)), gray.astype(jnp.float32), 255.0)
    texels = Image.fromarray(np.uint8(colors)[None]).resize((gray.shape[1], 40), Image.Resampling.NEAREST)
    levels = jnp.linspace(0, 255, gray.shape[1])
    read = np.broadcast_to(
        table_lookup(jt.texture1d(jnp.array(colors, jnp.float32)), levels, 255.0), (40, len(levels), 3)
    )
    rows = [
        [
            Panel("gray, 0 to 255", np.asarray(gray)),
            Panel("the same levels, looked up in the table", np.uint8(np.asarray(colored) + 0.5)),
        ],
        [
            Panel("the table: a 1D texture of 7 texels", texels),
            Panel("the table read at 0 to 255", np.uint8(np.asarray(read) + 0.5)),
        ],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
