"""Finds the bright lines in a photograph, finer than its pixels, from slopes and curvatures of a smooth read.

Across a line the brightness has a maximum: along the direction of the strongest bend, the slope is zero (C. Steger,
"An Unbiased Detector of Curvilinear Structures", 1998). `jaxtex.sample_with_derivatives` returns brightness, gradient
and Hessian of a B-spline at every point, from one look at the pixels around it. One step of Newton's method along that
direction leads from a point to the maximum; a point belongs to a line if the step stays within half of its own pixel.

The panels show a part of the photograph, enlarged; the slope; the strongest bend; and the lines.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA, Panel, save, sheet
from PIL import Image

import jaxtex as jt

SPLINE = jt.Sampler(filter_mode="bspline", spline_order=4, normalized_coords=False)
WEAKEST = 0.25  # bend of a line, as a share of that of one point in a hundred


@jax.jit
def analyzed(texture, x, y):
    """Brightness, slope, how strongly it bends down, and the step to the maximum along that bend, at each point."""
    found = jt.sample_with_derivatives(texture, (x, y), SPLINE, order=2)
    gx, gy = (a[..., 0] for a in found.gradient)
    xx, xy, yy = found.hessian[0][0][..., 0], found.hessian[0][1][..., 0], found.hessian[1][1][..., 0]
    mean, half = (xx + yy) / 2, jnp.hypot((xx - yy) / 2, xy)
    bend, turn = half - mean, jnp.arctan2(xy, (xx - yy) / 2) / 2 + np.pi / 2  # of the smaller eigenvalue
    along = gx * jnp.cos(turn) + gy * jnp.sin(turn)
    return found.value[..., 0], jnp.hypot(gx, gy), bend, jnp.where(bend > 0, along / bend, jnp.inf)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="pixels of the part of the photograph along each side")
    parser.add_argument("--finer", type=int, default=5, help="points along each side of a pixel")
    parser.add_argument("--out", type=Path, default=Path("ridges.png"))
    args = parser.parse_args(argv)
    photograph = np.asarray(Image.open(DATA / "brick.png").convert("L").resize((256, 256)), np.float32) / 255
    line = (np.arange(args.size * args.finer, dtype=np.float32) + 0.5) / args.finer
    left, top = 20, 60
    texture = jt.texture2d(photograph[..., None])
    value, slope, bend, step = map(np.asarray, analyzed(texture, line + left, line[:, None] + top))
    strongest = np.quantile(bend, 0.99)
    lines = (np.abs(step) < 0.5 / args.finer) & (bend > WEAKEST * strongest)
    print(f"{lines.mean():.3f} of all points are on a line; their mean brightness is {value[lines].mean():.3f}")
    print(f"the mean brightness of all points is {value.mean():.3f}")
    shown = np.stack([value] * 3, -1)
    shown[(np.abs(step) < 1 / args.finer) & (bend > WEAKEST * strongest)] = (1, 0.2, 0.1)
    rows = [
        [Panel("brightness", value), Panel("slope", slope / np.quantile(slope, 0.99))],
        [Panel("bend", bend / strongest), Panel("lines", shown)],
    ]
    save(sheet(rows), args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
