"""`python -m benchmarks.knots`: reads on uneven axes beside SciPy's `RegularGridInterpolator`, or CuPy's on a GPU.

The texture is a globe on Gaussian latitudes, four channels, read along a smooth grid. The peer is linear, in float64. A
column is `jax.numpy` as a user would write the linear read: `searchsorted` and four gathers. Last stands what ours
takes with gradients in texels, knots and coordinates.
"""

import functools
import importlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from .peers.protocol import on_gpu, optional, wait
from .report import Results, parser
from .timing import Start, Wait, side_by_side

# Results of float32 and of the peer's float64 may differ by so much of the largest value.
CLOSE = 1e-3
WRAP = ("wrap", "clamp")
SAMPLERS = {
    "even axes, linear": jt.Sampler(address_mode=WRAP),
    "linear": jt.Sampler(address_mode=WRAP),
    "even axes, lagrange": jt.Sampler(address_mode=WRAP, filter_mode="lagrange"),
    "lagrange": jt.Sampler(address_mode=WRAP, filter_mode="lagrange"),
    "lagrange, limited": jt.Sampler(address_mode=WRAP, filter_mode="lagrange", limit="taps"),
    "lagrange, on a sphere": jt.Sampler(address_mode="sphere", filter_mode="lagrange"),
}


def globe(height: int, samples: int) -> tuple[np.ndarray, ...]:
    """Texels (H, 2 H, 4), knots with edges, coordinates (samples, samples): shares of a turn, and latitudes."""
    nodes, _ = np.polynomial.legendre.leggauss(height)
    knots = np.concatenate([[np.pi / 2], np.arcsin(nodes)[::-1], [-np.pi / 2]])
    texels = np.random.default_rng(0).normal(size=(height, 2 * height, 4))
    y, x = np.meshgrid(np.linspace(1.5, -1.5, samples), np.linspace(0, 1, samples), indexing="ij")
    return tuple(np.float32(a) for a in (texels, knots, x + 0.05 * np.sin(3 * y), 0.98 * y + 0.02 * np.cos(9 * x)))


def in_jnp(texels: jax.Array, knots: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """The linear read."""
    height, width, _ = texels.shape
    inner = knots[1:-1]
    row = jnp.clip(jnp.searchsorted(-inner, -y, side="right") - 1, 0, height - 2)
    down = (jnp.clip(y, inner[-1], inner[0]) - inner[row]) / (inner[row + 1] - inner[row])
    place = x * width - 0.5
    column = jnp.floor(place)
    right, column = place - column, column.astype(jnp.int32)
    texel = lambda dy, dx: texels[row + dy, (column + dx) % width]
    across = lambda dy: texel(dy, 0) * (1 - right)[..., None] + texel(dy, 1) * right[..., None]
    return across(0) * (1 - down)[..., None] + across(1) * down[..., None]


def peer(texels: np.ndarray, knots: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[str, Start, Wait] | None:
    """The name of the peer of this device, its linear read, and how to wait for it."""
    name, module, arrays = (
        ("cupy", "cupyx.scipy.interpolate", "cupy") if on_gpu() else ("scipy", "scipy.interpolate", "numpy")
    )
    if optional(name) is None:
        return None
    xp: Any = importlib.import_module(arrays)
    width = texels.shape[1]
    around = np.concatenate([texels[:, -1:], texels, texels[:, :1]], 1)
    longitudes = (np.arange(-1, width + 1) + 0.5) / width
    axes = tuple(xp.asarray(np.float64(a)) for a in (-knots[1:-1], longitudes))
    read = importlib.import_module(module).RegularGridInterpolator(axes, xp.asarray(np.float64(around)))
    inside = np.clip(y, knots[-2], knots[1])
    points = xp.asarray(np.stack([-inside, x % 1], -1).astype(np.float64))
    return name, lambda: read(points), (lambda _: xp.cuda.Device().synchronize()) if on_gpu() else lambda _: None


def runs_of(name: str, args: tuple[np.ndarray, ...]) -> dict[str, tuple[Start, Wait]]:
    """What each library runs for a row. Other linear results are compared with ours first."""
    given = [jnp.asarray(a) for a in args]
    if name.startswith("even"):
        given[3] = (jnp.pi / 2 - given[3]) / jnp.pi

    def ours(texels: jax.Array, knots: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        uneven = None if name.startswith("even") else (None, knots)
        return jt.sample(jt.texture2d(texels, knots=uneven), (x, y), SAMPLERS[name])

    def gradient(*args: jax.Array) -> tuple[jax.Array, ...]:
        out, pullback = jax.vjp(ours, *args)
        return pullback(out)

    forward, backward, plain = jax.jit(ours), jax.jit(gradient), jax.jit(in_jnp)
    runs: dict[str, tuple[Start, Wait]] = {
        "jaxtex": (functools.partial(forward, *given), wait),
        "gradients": (functools.partial(backward, *given), wait),
    }
    if name == "linear":
        runs["jnp"] = (functools.partial(plain, *given), wait)
        if (found := peer(*args)) is not None:
            runs[found[0]] = found[1:]
        expected = np.asarray(forward(*given))
        for other, (start, _) in runs.items():
            if other not in ("jaxtex", "gradients"):
                result = start()
                result = result.get() if other == "cupy" else np.asarray(result)
                assert np.abs(result - expected).max() < CLOSE * np.abs(expected).max(), f"{other} differs"
    return runs


def main() -> int:
    arguments = parser("benchmarks.knots", __doc__, 3.0)
    arguments.add_argument("--height", type=int, default=720, help="of the globe, the number of latitudes")
    arguments.add_argument("--samples", type=int, help="along each axis (default 2048 on a GPU, else 512)")
    options = arguments.parse_args()
    results = Results(options)
    args = globe(options.height, options.samples or (2048 if on_gpu() else 512))
    columns = ("jaxtex", "cupy" if on_gpu() else "scipy", "jnp", "gradients")
    print(f"{'milliseconds':24s}" + "".join(f" {column:>10s}" for column in columns))
    for name in SAMPLERS:
        if not re.search(options.only, name):
            continue
        ms = side_by_side(runs_of(name, args), options.seconds, name)
        results.add(f"globe: {name}", milliseconds=ms)
        cells = "".join(f" {ms[column]:10.3f}" if column in ms else " " * 11 for column in columns)
        print(f"{name:24s}{cells}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
