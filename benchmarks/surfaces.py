"""`python -m benchmarks.surfaces`: copies and writes through surfaces, beside a plain copy and a plain scatter."""

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxtex as jt

from .peers import wait
from .report import Results, parser
from .timing import side_by_side

COPIES = 20


def grid(size: int) -> tuple[jax.Array, jax.Array]:
    return jnp.arange(size, dtype=jnp.int32)[None, :], jnp.arange(size, dtype=jnp.int32)[:, None]


def copied(source: jax.Array, target: jax.Array, x: jax.Array, y: jax.Array, mode: str) -> jax.Array:
    """`target` with the texels of `source`, through surfaces."""
    texels = jt.surface_read(jt.texture2d(source), (x, y), boundary_mode=mode)
    return jt.surface_write(jt.texture2d(target), texels, (x, y), boundary_mode=mode).texels


def donated(function: Callable[..., jax.Array], *args: Any) -> Callable[[], jax.Array]:
    """A call that gives its target, the second argument, away and takes the result for the next one."""
    source, target, *others = args
    compiled = jax.jit(function, donate_argnums=1).lower(*args).compile()
    state = [jnp.copy(target)]

    def run() -> jax.Array:
        state[0] = compiled(source, state[0], *others)
        return state[0]

    return run


def chained(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A program of many copies to and fro."""

    def run(source: jax.Array, target: jax.Array, *others: jax.Array) -> jax.Array:
        for _ in range(COPIES // 2):
            target = function(source, target, *others)
            source = function(target, source, *others)
            source, target = jax.lax.optimization_barrier((source, target))
        return target

    return run


def copies(size: int) -> dict[str, Callable[[], Any]]:
    """Copies of an image of four bytes a texel. The plain one sets a byte as well, lest nothing be copied."""
    source = jax.random.randint(jax.random.PRNGKey(0), (size, size, 4), 0, 256).astype(jnp.uint8)
    target, (x, y) = jnp.zeros_like(source), grid(size)
    plain = jax.jit(lambda a: a.at[0, 0, 0].set(0))
    full = [jnp.broadcast_to(a, (size, size)) + 0 for a in (x, y)]
    runs: dict[str, Callable[[], Any]] = {"plain copy": lambda: plain(source)}
    for mode in ("clamp", "zero", "trap"):
        copy = functools.partial(copied, mode=mode)
        runs[f"surfaces, {mode}"] = donated(copy, source, target, x, y)
        runs[f"surfaces, {mode}, x and y in full"] = donated(copy, source, target, *full)
        runs[f"surfaces, {mode}, {COPIES} copies"] = donated(chained(copy), source, target, x, y)
    return runs


def writes(size: int, channels: int, dtype: Any, places: str) -> dict[str, Callable[[], Any]]:
    """Writes of as many samples as texels, against a scatter that keeps any of those that meet."""
    key = jax.random.PRNGKey(0)
    values = jax.random.normal(key, (size, size, channels)).astype(dtype)
    x, y = (jnp.broadcast_to(a, (size, size)) + 0 for a in grid(size))
    if places == "random":
        x, y = jax.random.randint(key, (2, size, size), 0, size)

    def scatter(values: jax.Array, texels: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        flat = texels.reshape(-1, channels).at[y * size + x]
        return flat.set(values, mode="promise_in_bounds", wrap_negative_indices=False).reshape(texels.shape)

    def write(values: jax.Array, texels: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode="clamp").texels

    args = (values, jnp.zeros_like(values), x, y)
    runs = {"any of them": donated(scatter, *args), "the last": donated(write, *args)}
    if places == "grid":
        runs["the last, x (1, W) and y (H, 1)"] = donated(write, *args[:2], *grid(size))
    return runs


def main() -> int:
    arguments = parser("benchmarks.surfaces", __doc__, 3.0)
    arguments.add_argument("--size", type=int, help="texels along a side (default 4096 on a GPU, else 1024)")
    options = arguments.parse_args()
    size = options.size or (4096 if jax.default_backend() == "gpu" else 1024)
    results = Results(options)
    works = {f"copy of uchar4, {size}x{size}": functools.partial(copies, size)}
    for channels, dtype in ((4, jnp.float32), (1, jnp.float32), (4, jnp.uint8)):
        for places in ("grid", "random"):
            name = f"write of {jnp.dtype(dtype).name}, C={channels}, {size}x{size}, {places}"
            works[name] = functools.partial(writes, size, channels, dtype, places)
    for name, runs in works.items():
        if not re.search(options.only, name):
            continue
        ms = side_by_side({label: (run, wait) for label, run in runs().items()}, options.seconds, name)
        ms = {label: each / COPIES if label.endswith("copies") else each for label, each in ms.items()}
        results.add(name, milliseconds=ms)
        first = next(iter(ms.values()))
        print(name)
        for label, each in ms.items():
            print(f"    {label:40s} {each:8.3f} ms {each / first:6.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
