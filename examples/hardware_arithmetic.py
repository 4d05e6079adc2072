"""The steps of a texture unit: one texture, magnified, in float and in hardware arithmetic.

A texture unit rounds the position of a linear read to 1/256 texel, and weights to multiples of 1/256. Between two
texels there are 256 steps. They are invisible until a texel covers more than 256 pixels, or until results are compared
to the last bit. The gradient has no steps: it is that of the float filter.

The picture shows a texture of 4 x 4 texels with a frame around a detail of 1/16 texel; the detail, with more contrast,
in both arithmetics; their difference; and a ramp from one texel to the next.
"""

import argparse
import functools
from pathlib import Path

import jax
import numpy as np
from panels import Panel, difference, outlined, plot, save, sheet
from PIL import Image

import jaxtex as jt

SAMPLERS = {
    arithmetic: jt.Sampler(normalized_coords=False, arithmetic=arithmetic) for arithmetic in ("float", "hardware")
}
# The corner and the width of the detail, in texels.
CORNER, WIDTH = (1.75, 2.125), 1 / 16
STEP = 1 / 256


def square(texels: jax.Array, corner: tuple[float, float], width: float, size: int, arithmetic: str) -> np.ndarray:
    """`size` x `size` reads of a square of the texture. Corner and width are in texels."""
    along = (np.arange(size, dtype=np.float32) + 0.5) * (width / size)
    x, y = corner[0] + along[None, :], corner[1] + along[:, None]
    return np.asarray(jt.sample(jt.texture2d(texels), (x, y), SAMPLERS[arithmetic]))


@functools.partial(jax.jit, static_argnames="arithmetic")
def ramp(x: jax.Array | np.ndarray, arithmetic: str) -> jax.Array:
    """A read of the texels 0 and 1 at the fraction `x` between their centers."""
    return jt.sample(jt.texture1d(np.float32([[0], [1]])), (x + 0.5,), SAMPLERS[arithmetic])[..., 0]


def curves(size: int, steps: int = 6) -> Image.Image:
    """A ramp in both arithmetics, over the first `steps` steps."""
    x = np.linspace(0, steps * STEP, 8 * size, dtype=np.float32)
    lines = {name: (x / STEP, np.asarray(ramp(x, name)) / STEP) for name in SAMPLERS}
    return plot((size, size), lines, "position x 256", "value x 256", limits=((0, steps), (0, steps)))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Show the steps of a texture unit.")
    parser.add_argument("--size", type=int, default=192, help="the width of each panel in pixels")
    parser.add_argument("--out", type=Path, default=Path("hardware_arithmetic.png"))
    args = parser.parse_args(argv)

    print("between texels 0 and 1, at a fraction of k / 1024, x 256:")
    fractions = np.arange(9, dtype=np.float32) / 1024
    print("k       ", *(f"{k:5d}" for k in range(9)))
    for arithmetic in SAMPLERS:
        print(f"{arithmetic:8}", *(f"{value:5.2f}" for value in np.asarray(ramp(fractions, arithmetic)) * 256))
    for arithmetic in SAMPLERS:
        slope = jax.jit(jax.grad(ramp), static_argnums=1)(0.3, arithmetic)
        print(f"slope at 0.3 in {arithmetic} arithmetic: {slope:g}")

    texels = jax.random.uniform(jax.random.key(3), (4, 4, 3))
    smooth, stepped = (square(texels, CORNER, WIDTH, args.size, arithmetic) for arithmetic in SAMPLERS)
    low, high = smooth.min(axis=(0, 1)), smooth.max(axis=(0, 1))
    largest = np.abs(stepped - smooth).max()
    amplify = 2 ** int(np.log2(0.5 / largest))
    print(f"largest difference in the detail: {largest:.6f}, shown times {amplify}")

    whole = square(texels, (0, 0), 4, args.size, "hardware")
    left, top = (round(c / 4 * args.size) for c in CORNER)
    framed = outlined(whole, [(left - 4, top - 4), (left + 6, top + 6)], "white")
    row = [
        Panel("4 x 4 texels", framed, "framed: 1/16 texel"),
        Panel("1/16 texel, float", (smooth - low) / (high - low)),
        Panel("1/16 texel, hardware", (stepped - low) / (high - low)),
        Panel(f"difference x {amplify}", difference(stepped, smooth, amplify)),
        Panel("a ramp", curves(args.size)),
    ]
    save(sheet([row[:3], row[3:]]), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
