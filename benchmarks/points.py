"""`python -m benchmarks.points`: reads with their derivatives, and particles painted on a grid, beside plain JAX.

Each row compares results with jaxtex's at a small size first, and then times everybody at the whole size. Particles lie
on a lattice and have moved by a few cells, as in a simulation, or are drawn anywhere. Beside `splat` stand additions to
the grid by `Array.at` of JAX, all taps at once and tap by tap, and PyTorch's `index_add_`, tap by tap.
"""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import jaxtex as jt

from .peers.protocol import Run, as_jax, on_gpu, optional
from .peers.with_torch import device, tensor, wait
from .report import Results, parser
from .timing import side_by_side

SMALL, PARTICLES = 16, {"CIC": 1, "TSC": 2, "PCS": 3}
TOLERANCE = 1e-3  # of the largest value: second derivatives are sums of texels times weights of about 4
MOST_UPDATES = 2**28  # of one scatter, whose indices and values take 16 bytes each
Arrays = tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """What is timed: `runs` of the arrays that `inputs` makes for a size; all but the first are compared with it."""

    name: str
    size: int
    inputs: Callable[[int], Arrays]
    runs: dict[str, Callable[..., Any]]
    compared: frozenset[str]
    by_torch: Callable[..., Any] | None = None


# Derivatives

MAKE = {2: jt.texture2d, 3: jt.texture3d}


def read_inputs(ndim: int, channels: int, size: int) -> Arrays:
    """Texels, and a coordinate array for each axis: every texel's center, moved by up to half of a texel."""
    keys = jax.random.split(jax.random.key(0))
    moved = jax.random.uniform(keys[0], (ndim, *[size] * ndim)) - 0.5
    centers = jnp.meshgrid(*[jnp.arange(size) + 0.5] * ndim, indexing="ij")[::-1]
    return jax.random.normal(keys[1], (*[size] * ndim, channels)), *(c + m for c, m in zip(centers, moved))


def derivative_rows() -> Iterator[Row]:
    for (ndim, size), filter_mode, channels in itertools.product(((3, 256), (2, 4096)), ("cubic", "linear"), (1, 4)):
        sampler = jt.Sampler(filter_mode=filter_mode, normalized_coords=False)

        def read(texels: jax.Array, *coords: jax.Array, sampler: jt.Sampler = sampler) -> jax.Array:
            return jt.sample(MAKE[len(coords)](texels), coords, sampler)

        def ours(texels: jax.Array, *coords: jax.Array, order: int, sampler: jt.Sampler = sampler) -> Any:
            found = jt.sample_with_derivatives(MAKE[len(coords)](texels), coords, sampler, order=order)
            halves = () if found.hessian is None else tuple(row[k:] for k, row in enumerate(found.hessian))
            return found.value, found.gradient, halves

        def theirs(texels: jax.Array, *coords: jax.Array, order: int, read: Callable[..., jax.Array] = read) -> Any:
            one = lambda *point: read(texels, *point)
            every = tuple(range(len(coords)))
            found = [one, jax.jacfwd(one, every), jax.hessian(one, every)][: order + 1]
            flat = jax.vmap(lambda *point: [f(*point) for f in found])(*(c.reshape(-1) for c in coords))
            halves = () if order == 1 else tuple(row[k:] for k, row in enumerate(flat[2]))
            back = lambda a: a.reshape(*coords[0].shape, -1)
            return jax.tree.map(back, (flat[0], flat[1], halves))

        for order, name in ((1, "vmap(jacfwd)"), (2, "vmap(hessian)")):
            yield Row(
                f"order {order}, {'x'.join([str(size)] * ndim)}, {filter_mode}, C={channels}",
                size,
                functools.partial(read_inputs, ndim, channels),
                {
                    "jaxtex": functools.partial(ours, order=order),
                    "sample alone": read,
                    name: functools.partial(theirs, order=order),
                },
                frozenset((name,)),
            )


# Particles


def particles(size: int, count: int, scattered: bool) -> Arrays:
    """Positions of particles, x, y and z, in cells of a grid of `size` cells an axis."""
    keys, side = jax.random.split(jax.random.key(1)), round(count ** (1 / 3))
    if scattered or side**3 != count:
        return tuple(jax.random.uniform(keys[0], (3, count), maxval=size))
    lattice = jnp.meshgrid(*[(jnp.arange(side) + 0.5) * size / side] * 3, indexing="ij")[::-1]
    coarse = jax.random.normal(keys[1], (3, *[min(side, 16)] * 3))
    moved = 2 * jax.image.resize(coarse, (3, *[side] * 3), "linear")
    return tuple((c + m).reshape(-1) for c, m in zip(lattice, moved))


def profile(order: int, distance: Any, xp: Any) -> Any:
    """The B-spline of an order, the kernel of CIC, TSC and PCS, at a distance in cells from the center."""
    far = xp.abs(distance)
    if order == 1:
        return 1 - far
    if order == 2:
        return xp.where(far < 0.5, 0.75 - far**2, 0.5 * (1.5 - far) ** 2)
    return xp.where(far < 1, (4 - 6 * far**2 + 3 * far**3) / 6, (2 - far) ** 3 / 6)


def taps(size: int, order: int, coords: Sequence[Any], xp: Any) -> Iterator[tuple[Any, Any]]:
    """The flat index and the weight of each tap of all particles, on a grid that repeats."""
    first = [xp.floor(c - order % 2 / 2) - order // 2 for c in coords]
    for offset in itertools.product(range(order + 1), repeat=len(coords)):
        cells = [low + k for low, k in zip(first, offset)]
        weight = math.prod(profile(order, c - 0.5 - cell, xp) for c, cell in zip(coords, cells))
        x, y, z = (cell % size for cell in cells)
        yield (z * size + y) * size + x, weight


def by_splat(*coords: jax.Array, size: int, order: int) -> jax.Array:
    spline = jt.Sampler(filter_mode="bspline", spline_order=order, address_mode="wrap", normalized_coords=False)
    mass = jnp.ones((*coords[0].shape, 1))
    return jt.splat(mass, coords, (size, size, size, 1), spline).texels.reshape(-1)


def tap_by_tap(*coords: jax.Array, size: int, order: int) -> jax.Array:
    grid = jnp.zeros(size**3)
    for index, weight in taps(size, order, coords, jnp):
        grid = grid.at[index.astype(jnp.int32)].add(weight)
    return grid


def at_once(*coords: jax.Array, size: int, order: int) -> jax.Array:
    indices, weights = zip(*taps(size, order, coords, jnp))
    return jnp.zeros(size**3).at[jnp.stack(indices, -1).astype(jnp.int32)].add(jnp.stack(weights, -1))


def by_torch(*coords: Any, size: int, order: int) -> Any:
    torch = optional("torch")
    grid = torch.zeros(size**3, device=coords[0].device)
    for index, weight in taps(size, order, coords, torch):
        grid.index_add_(0, index.long(), weight)
    return grid


def particle_rows() -> Iterator[Row]:
    for (name, order), count, scattered in itertools.product(PARTICLES.items(), (2**21, 2**24), (False, True)):
        size = 256

        def inputs(size: int, count: int = count, scattered: bool = scattered) -> Arrays:
            return particles(size, count if size == 256 else count // 2**12, scattered)

        how = {"jaxtex": by_splat, "at[].add, tap by tap": tap_by_tap, "at[].add, at once": at_once}
        if count * (order + 1) ** 3 > MOST_UPDATES:
            del how["at[].add, at once"]
        runs = {key: functools.partial(function, order=order) for key, function in how.items()}
        yield Row(
            f"{name}, {count:,} particles{', anywhere' if scattered else ''}, into {size}x{size}x{size}",
            size,
            inputs,
            runs,
            frozenset(runs),
            functools.partial(by_torch, order=order),
        )


# Rows


def runs_of(row: Row, size: int) -> dict[str, Run]:
    args = row.inputs(size)
    static = {"size": size} if row.by_torch is not None else {}

    def of(function: Callable[..., Any]) -> Run:
        compiled = jax.jit(functools.partial(function, **static))
        return Run(lambda: compiled(*args))

    runs = {name: of(function) for name, function in row.runs.items()}
    if row.by_torch is not None and device():
        theirs, given = functools.partial(row.by_torch, **static), [tensor(a) for a in args]
        runs["torch"] = Run(lambda: theirs(*given), wait, as_jax)
    return runs


def check(row: Row) -> None:
    """Raises where a result at the small size differs from jaxtex's."""
    found = {name: run.arrays(run.wait(run.start())) for name, run in runs_of(row, SMALL).items()}
    ours = jax.tree.leaves(found["jaxtex"])
    for name in found.keys() & {*row.compared, "torch"}:
        for a, b in zip(ours, jax.tree.leaves(found[name]), strict=True):
            error = float(jnp.abs(a - b).max() / jnp.maximum(jnp.abs(a).max(), 1))
            if not error <= TOLERANCE:
                raise ValueError(f"{row.name}: {name} differs by {error:.2g} of the largest value")


def main() -> int:
    arguments = parser("benchmarks.points", __doc__, 1.0)
    arguments.add_argument("--check", action="store_true", help="compare at the small size, and stop")
    options = arguments.parse_args()
    results = Results(options)
    print("milliseconds, and in parentheses jaxtex's time over theirs")
    for row in itertools.chain(derivative_rows(), particle_rows()):
        if not re.search(options.only, row.name):
            continue
        check(row)
        if options.check or not on_gpu():
            print(f"{row.name}: agrees")
            continue
        runs = runs_of(row, row.size)
        ms = side_by_side({name: (run.start, run.wait) for name, run in runs.items()}, options.seconds, row.name)
        results.add(row.name, milliseconds=ms)
        others = (f"{name} {ms[name]:.3f} ({ms['jaxtex'] / ms[name]:.2f})" for name in runs if name != "jaxtex")
        print(f"{row.name:52s} {ms['jaxtex']:8.3f}  {', '.join(others)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
