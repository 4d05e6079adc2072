"""Gathers the four texels that a linear read would blend: `tex2Dgather`, its order, and the positions where it jumps.

The four values are in counter-clockwise order from the lower left, with y pointing down. If (i, j) is the upper left
texel, they are the texels (i, j + 1), (i + 1, j + 1), (i + 1, j) and (i, j).

At x = 2.498 the first tap is texel floor(2.498 - 0.5) = 1. The columns are 1 and 2, and the weight of column 2 is
0.998. A texture unit rounds this weight to 8 bits first. It becomes 1 and carries, so that the unit gathers columns 2
and 3; in a linear read the difference is small. Weights in float32 are not rounded so far: column 3 is first gathered
at x = 2.5.
"""

import argparse

import numpy as np

import jaxtex as jt

PIXELS = jt.Sampler(normalized_coords=False)
# Row j, then row j + 1; each texel is red, green, blue, alpha.
TEXELS = [[[251, 22, 30, 250], [249, 16, 37, 253]], [[253, 20, 31, 255], [250, 25, 29, 254]]]


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(description="Gather texels, and print them.").parse_args(argv)

    texture = jt.texture2d(np.array(TEXELS, np.uint8))
    for component in range(4):
        print(f"component {component}:", *np.asarray(jt.gather(texture, (1.0, 1.0), PIXELS, component=component)))

    columns = jt.texture2d(np.tile(np.arange(4, dtype=np.float32)[:, None], (2, 1, 1)))
    for x in (2.0, 2.498, 2.5):
        _, right, _, left = np.asarray(jt.gather(columns, (x, 1.0), PIXELS))
        blend = jt.sample(columns, (x, 1.0), PIXELS)[0]
        print(f"x = {x}: columns {left:g} and {right:g}, blended {blend:.4f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
