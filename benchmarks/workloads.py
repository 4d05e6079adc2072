"""`python -m benchmarks.workloads`: parts of published models as they stand, in jaxtex and in PyTorch's `grid_sample`.

Each is computed in both ways from the same arrays, forward alone and with its gradients for a given cotangent. The two
are compared at a small size first; `--check` stops there. Below each time stands the memory that a call takes.
"""

import argparse
import dataclasses
import itertools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from .environment import environment
from .peers.protocol import Run, as_jax, on_gpu, optional
from .peers.with_torch import device, tensor, wait
from .timing import side_by_side

ZEROS = jt.Sampler(address_mode="border")
PIXELS = jt.Sampler(address_mode="border", normalized_coords=False)
# Positions and sums in another order, of the largest value; and the share of numbers that may be on another side of a
# texel's center, where slopes jump.
TOLERANCE, KINKS = 2e-3, 1e-2
Arrays = tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class Workload:
    """A part of a model.

    Attributes:
        sizes: as in the paper, and in small, as arguments of the three functions.
        inputs: draws the arrays, of which the first `wrt` have gradients; 0 stands for one of each level.
        ours: the result, by jaxtex.
        theirs: the same, by PyTorch, whose module is its first argument.
    """

    name: str
    sizes: dict[str, Any]
    small: dict[str, Any]
    inputs: Callable[..., Arrays]
    ours: Callable[..., jax.Array]
    theirs: Callable[..., Any]
    wrt: int


def normal(key: jax.Array, *shape: int) -> jax.Array:
    return jax.random.normal(key, shape)


def uniform(key: jax.Array, *shape: int) -> jax.Array:
    return jax.random.uniform(key, shape)


def grid_of(torch: Any, x: Any, y: Any) -> Any:
    """Coordinates from 0 to 1 as `grid_sample` takes them."""
    return torch.stack([x, y], -1) * 2 - 1


# Deformable attention: Zhu et al., "Deformable DETR", 2021; the encoder's, of an image of 800x1066 pixels


def attention_inputs(key: jax.Array, batch: int, heads: int, width: int, levels: Any, points: int) -> Arrays:
    keys = jax.random.split(key, 3)
    queries = sum(h * w for h, w in levels)
    places = uniform(keys[1], 2, batch, queries, heads, len(levels), points)
    weights = jax.nn.softmax(normal(keys[2], batch, queries, heads, len(levels) * points), -1)
    return normal(keys[0], batch, queries, heads, width), places, weights


def level_parts(values: Any, levels: Any) -> list[Any]:
    ends = np.cumsum([0, *(h * w for h, w in levels)])
    return [values[:, a:b] for a, b in itertools.pairwise(ends)]


def attention(values: jax.Array, places: jax.Array, weights: jax.Array, *, levels: Any, points: int, **_: Any):
    read = jax.vmap(jax.vmap(lambda image, x, y: jt.sample(jt.texture2d(image), (x, y), ZEROS)))
    batch, _, heads, width = values.shape
    weights, found = weights.reshape(places.shape[1:]), 0.0
    for k, (part, (h, w)) in enumerate(zip(level_parts(values, levels), levels)):
        images = jnp.moveaxis(part.reshape(batch, h, w, heads, width), 3, 1)
        at = jnp.moveaxis(places[:, :, :, :, k], 3, 2)
        found += jnp.einsum("bmqpd,bqmp->bqmd", read(images, at[0], at[1]), weights[:, :, :, k])
    return found


def torch_attention(torch: Any, values: Any, places: Any, weights: Any, *, levels: Any, points: int, **_: Any) -> Any:
    batch, queries, heads, width = values.shape
    grid, found = grid_of(torch, places[0], places[1]), []
    for k, (part, (h, w)) in enumerate(zip(level_parts(values, levels), levels)):
        images = part.flatten(2).transpose(1, 2).reshape(batch * heads, width, h, w)
        at = grid[:, :, :, k].transpose(1, 2).flatten(0, 1)
        found.append(torch.nn.functional.grid_sample(images, at, align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(levels) * points)
    out = (torch.stack(found, -2).flatten(-2) * weights).sum(-1)
    return out.view(batch, heads, width, queries).permute(0, 3, 1, 2)


# RAFT: Teed and Deng, 2020; the lookup in its pyramid of correlations, of an image of 440x1024 pixels


def correlation_inputs(key: jax.Array, batch: int, height: int, width: int, levels: int, radius: int) -> Arrays:
    keys, count = jax.random.split(key, levels + 1), batch * height * width
    y, x = jnp.mgrid[:height, :width].astype(jnp.float32)
    shift = 4 * normal(keys[-1], 2, batch, height, width)
    volumes = (normal(keys[k], count, height >> k, width >> k, 1) for k in range(levels))
    return *volumes, x + shift[0], y + shift[1]


def correlation(*args: jax.Array, radius: int, **_: Any) -> jax.Array:
    *volumes, x, y = args
    near = jnp.arange(-radius, radius + 1.0)
    read = jax.vmap(lambda image, x, y: jt.sample(jt.texture2d(image), (x, y), PIXELS))
    found = []
    for k, volume in enumerate(volumes):
        at = lambda c, k=k: c.reshape(-1, 1, 1) / 2**k + 0.5
        # RAFT adds its rows of offsets to x and its columns to y.
        found.append(read(volume, at(x) + near[:, None], at(y) + near).reshape(*x.shape, -1))
    return jnp.concatenate(found, -1)


def torch_correlation(torch: Any, *args: Any, radius: int, **_: Any) -> Any:
    *volumes, x, y = args
    near, found = torch.arange(-radius, radius + 1.0, device=x.device), []
    for k, volume in enumerate(volumes):
        height, width = volume.shape[1:3]
        at_x, at_y = (c.reshape(-1, 1, 1) / 2**k for c in (x, y))
        at_x, at_y = torch.broadcast_tensors(at_x + near[:, None], at_y + near)
        grid = torch.stack([2 * at_x / (width - 1) - 1, 2 * at_y / (height - 1) - 1], -1)
        read = torch.nn.functional.grid_sample(volume.movedim(-1, 1), grid, align_corners=True)
        found.append(read.reshape(*x.shape, -1))
    return torch.cat(found, -1)


# VoxelMorph: Balakrishnan et al., 2019; a velocity is integrated by scaling and squaring, and moves an image


SMOOTH = 16  # voxels from one value of the velocity to the next


def volume_inputs(key: jax.Array, shape: tuple[int, int, int], steps: int) -> Arrays:
    keys = jax.random.split(key)
    velocity = 20 * normal(keys[0], *(n // SMOOTH + 2 for n in shape), 3)
    return jax.image.resize(velocity, (*shape, 3), "linear"), normal(keys[1], *shape, 1)


def scaling_and_squaring(velocity: jax.Array, image: jax.Array, *, steps: int, **_: Any) -> jax.Array:
    # Zero outside, as `grid_sample` reads.
    return jt.warp.warp_flow(image, jt.warp.integrate_velocity(velocity, steps, address="border"))


def torch_moved(torch: Any, volume: Any, flow: Any) -> Any:
    sizes = flow.shape[:3]
    places = torch.meshgrid(*(torch.arange(float(n), device=flow.device) for n in sizes), indexing="ij")
    at = (2 * (c + flow[..., k]) / (n - 1) - 1 for k, (c, n) in enumerate(zip(places[::-1], sizes[::-1])))
    read = torch.nn.functional.grid_sample(
        volume.movedim(-1, 0)[None], torch.stack([*at], -1)[None], align_corners=True
    )
    return read[0].movedim(0, -1)


def torch_scaling_and_squaring(torch: Any, velocity: Any, image: Any, *, steps: int, **_: Any) -> Any:
    flow = velocity / 2**steps
    for _ in range(steps):
        flow = flow + torch_moved(torch, flow, flow)
    return torch_moved(torch, image, flow)


# Triplanes: Chan et al., "Efficient Geometry-aware 3D Generative Adversarial Networks", 2022


def triplane_inputs(key: jax.Array, batch: int, side: int, channels: int, points: int) -> Arrays:
    keys = jax.random.split(key)
    return normal(keys[0], batch, 3, side, side, channels), uniform(keys[1], 3, batch, points)


def triplane(planes: jax.Array, at: jax.Array, **_: Any) -> jax.Array:
    read = jax.vmap(lambda image, x, y: jt.sample(jt.texture2d(image), (x, y), ZEROS))
    x, y, z = at
    return sum(read(planes[:, k], *pair) for k, pair in enumerate(((x, y), (x, z), (z, y)))) / 3


def torch_triplane(torch: Any, planes: Any, at: Any, **_: Any) -> Any:
    batch, _, side, _, channels = planes.shape
    x, y, z = at
    grid = torch.stack([grid_of(torch, *pair) for pair in ((x, y), (x, z), (z, y))], 1)
    images = planes.movedim(-1, 2).reshape(batch * 3, channels, side, side)
    read = torch.nn.functional.grid_sample(images, grid.flatten(0, 1)[:, None], align_corners=False)
    return read.reshape(batch, 3, channels, -1).mean(1).movedim(1, -1)


# A multiresolution grid: Müller et al., "Instant Neural Graphics Primitives", 2022. A level with more vertices than the
# table of a level holds is hashed

PRIMES = (1, 2654435761, 805459861)


def resolutions(levels: int, coarsest: int, finest: int) -> list[int]:
    return [round(coarsest * (finest / coarsest) ** (k / max(levels - 1, 1))) for k in range(levels)]


def dense(n: int, table: int) -> bool:
    return (n + 1) ** 3 <= table


def grid_inputs(
    key: jax.Array, points: int, levels: int, coarsest: int, finest: int, table: int, features: int
) -> Arrays:
    keys, found = jax.random.split(key, levels + 1), []
    for k, n in enumerate(resolutions(levels, coarsest, finest)):
        front = (n + 1,) * 3 if dense(n, table) else (table,)
        found.append(normal(keys[k], *front, features))
    return *found, uniform(keys[-1], 3, points)


def corners(n: int, at: Any, floor: Callable[[Any], Any]) -> Any:
    """The fraction of each coordinate, and the vertex below it."""
    scaled = [c * n for c in at]
    low = [floor(c) for c in scaled]
    return [c - a for c, a in zip(scaled, low)], low


def weight_of(corner: int, fractions: Any) -> Any:
    x, y, z = (f if corner >> k & 1 else 1 - f for k, f in enumerate(fractions))
    return x * y * z


def multiresolution(*args: jax.Array, levels: int, coarsest: int, finest: int, table: int, **_: Any) -> jax.Array:
    *tables, at = args
    found = []
    for n, stored in zip(resolutions(levels, coarsest, finest), tables):
        if dense(n, table):
            coords = tuple(c * n + 0.5 for c in at)
            found.append(jt.sample(jt.texture3d(stored), coords, jt.Sampler(normalized_coords=False)))
            continue
        fractions, low = corners(n, at, jnp.floor)
        total = 0.0
        for corner in range(8):
            vertex = [(a.astype(jnp.uint32) + (corner >> k & 1)) * jnp.uint32(PRIMES[k]) for k, a in enumerate(low)]
            index = ((vertex[0] ^ vertex[1] ^ vertex[2]) % jnp.uint32(table)).astype(jnp.int32)
            total += weight_of(corner, fractions)[:, None] * jt.fetch(jt.texture1d(stored), (index,))
        found.append(total)
    return jnp.concatenate(found, -1)


def torch_multiresolution(torch: Any, *args: Any, levels: int, coarsest: int, finest: int, table: int, **_: Any) -> Any:
    *tables, at = args
    found = []
    for n, stored in zip(resolutions(levels, coarsest, finest), tables):
        if dense(n, table):
            grid = (torch.stack([*at], -1) * 2 - 1)[None, None, None]
            read = torch.nn.functional.grid_sample(stored.movedim(-1, 0)[None], grid, align_corners=True)
            found.append(read[0, :, 0, 0].T)
            continue
        fractions, low = corners(n, at, torch.floor)
        total = 0.0
        for corner in range(8):
            vertex = [(a.long() + (corner >> k & 1)) * PRIMES[k] & 0xFFFFFFFF for k, a in enumerate(low)]
            index = (vertex[0] ^ vertex[1] ^ vertex[2]) % table
            total = total + weight_of(corner, fractions)[:, None] * stored[index]
        found.append(total)
    return torch.cat(found, -1)


# Maps of features, read at random points, as PyTorch lays them out and with channels last


def map_inputs(key: jax.Array, batch: int, side: int, channels: int, channels_last: bool) -> Arrays:
    keys = jax.random.split(key)
    sizes = (side, side, channels) if channels_last else (channels, side, side)
    return normal(keys[0], batch, *sizes), 2 * uniform(keys[1], batch, side, side, 2) - 1


def feature_map(images: jax.Array, grid: jax.Array, *, channels_last: bool, **_: Any) -> jax.Array:
    return jt.warp.grid_sample(images, grid, data_format="NHWC" if channels_last else "NCHW")


def torch_feature_map(torch: Any, images: Any, grid: Any, *, channels_last: bool, **_: Any) -> Any:
    images = images.movedim(-1, 1) if channels_last else images
    out = torch.nn.functional.grid_sample(images, grid, align_corners=False)
    return out.movedim(1, -1) if channels_last else out


MAPS = map_inputs, feature_map, torch_feature_map
COCO = ((100, 134), (50, 67), (25, 34), (13, 17))
WORKLOADS = (
    Workload(
        "deformable attention",
        {"batch": 2, "heads": 8, "width": 32, "levels": COCO, "points": 4},
        {"batch": 2, "heads": 2, "width": 3, "levels": ((6, 7), (3, 4)), "points": 2},
        *(attention_inputs, attention, torch_attention),
        wrt=3,
    ),
    Workload(
        "RAFT correlation lookup",
        {"batch": 1, "height": 55, "width": 128, "levels": 4, "radius": 4},
        {"batch": 1, "height": 8, "width": 12, "levels": 2, "radius": 2},
        *(correlation_inputs, correlation, torch_correlation),
        wrt=0,
    ),
    Workload(
        "VoxelMorph: scaling and squaring",
        {"shape": (160, 192, 224), "steps": 7},
        {"shape": (6, 7, 9), "steps": 3},
        *(volume_inputs, scaling_and_squaring, torch_scaling_and_squaring),
        wrt=2,
    ),
    Workload(
        "triplane",
        {"batch": 4, "side": 256, "channels": 32, "points": 64 * 64 * 96},
        {"batch": 2, "side": 9, "channels": 3, "points": 40},
        *(triplane_inputs, triplane, torch_triplane),
        wrt=1,
    ),
    Workload(
        "multiresolution grid, hashed",
        {"points": 2**18, "levels": 16, "coarsest": 16, "finest": 2048, "table": 2**19, "features": 2},
        {"points": 50, "levels": 4, "coarsest": 4, "finest": 32, "table": 2**10, "features": 2},
        *(grid_inputs, multiresolution, torch_multiresolution),
        wrt=0,
    ),
    Workload(
        "multiresolution grid, dense",
        {"points": 2**18, "levels": 5, "coarsest": 16, "finest": 80, "table": 2**20, "features": 2},
        {"points": 50, "levels": 3, "coarsest": 4, "finest": 8, "table": 2**10, "features": 2},
        *(grid_inputs, multiresolution, torch_multiresolution),
        wrt=0,
    ),
    Workload(
        "feature maps 16x64x128x128",
        {"batch": 16, "side": 128, "channels": 64, "channels_last": False},
        {"batch": 2, "side": 6, "channels": 3, "channels_last": False},
        *MAPS,
        wrt=2,
    ),
    Workload(
        "feature maps 64x32x32x256",
        {"batch": 64, "side": 32, "channels": 256, "channels_last": True},
        {"batch": 2, "side": 6, "channels": 5, "channels_last": True},
        *MAPS,
        wrt=2,
    ),
)


def prepared(work: Workload, sizes: dict[str, Any]) -> tuple[Arrays, jax.Array]:
    """The inputs, and a cotangent of the result."""
    args = jax.jit(lambda key: work.inputs(key, **sizes))(jax.random.PRNGKey(0))
    out = jax.eval_shape(lambda *args: work.ours(*args, **sizes), *args)
    return args, jax.random.normal(jax.random.PRNGKey(1), out.shape)


def wrt(work: Workload, sizes: dict[str, Any]) -> int:
    """How many of the inputs have gradients; of pyramids and grids, as many as there are levels."""
    return work.wrt or sizes["levels"]


def program(work: Workload, sizes: dict[str, Any], what: str) -> Callable[..., Any]:
    """The function of `(cotangent, *args)` that is timed: the result alone, or with its gradients."""
    count = wrt(work, sizes)

    def run(cotangent: jax.Array, *args: jax.Array) -> Any:
        forward = lambda *some: work.ours(*some, *args[count:], **sizes)
        if what == "forward":
            return (forward(*args[:count]),)
        out, pullback = jax.vjp(forward, *args[:count])
        return out, *pullback(cotangent)

    return run


def by_jaxtex(work: Workload, sizes: dict[str, Any], what: str, given: tuple[Arrays, jax.Array]) -> Run:
    args, cotangent = given
    function = jax.jit(program(work, sizes, what))
    return Run(lambda: function(cotangent, *args))


def by_torch(work: Workload, sizes: dict[str, Any], what: str, given: tuple[Arrays, jax.Array]) -> Run | None:
    if not device():
        return None
    torch, (args, cotangent) = optional("torch"), given
    args, cotangent = [tensor(a) for a in args], tensor(cotangent)
    some = args[: wrt(work, sizes)]

    def start() -> Any:
        if what == "forward":
            with torch.no_grad():
                return (work.theirs(torch, *args, **sizes),)
        out = work.theirs(torch, *args, **sizes)
        return out, *torch.autograd.grad(out, some, cotangent)

    if what != "forward":
        for leaf in some:
            leaf.requires_grad_()
    return Run(start, wait, lambda parts: tuple(as_jax(p.detach().contiguous()) for p in parts))


def difference(work: Workload, sizes: dict[str, Any]) -> float | None:
    """The largest share of numbers of a result by which the two differ; None without PyTorch."""
    given = prepared(work, sizes)
    if (theirs := by_torch(work, sizes, "gradients", given)) is None:
        return None
    ours = by_jaxtex(work, sizes, "gradients", given).start()
    found = theirs.arrays(theirs.wait(theirs.start()))
    shapes = [[a.shape for a in parts] for parts in (ours, found)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{work.name}: shapes {shapes[1]} in place of {shapes[0]}")
    beyond = lambda a, b: float(jnp.mean(~(jnp.abs(a - b) <= TOLERANCE * jnp.abs(a).max())))
    return max(map(beyond, ours, found))


def peak(run: Run) -> float:
    """MiB that PyTorch held at most during a call, on a GPU."""
    cuda = optional("torch").cuda
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    run.wait(run.start())
    return cuda.max_memory_allocated() / 2.0**20


def memory(work: Workload, sizes: dict[str, Any], what: str, given: tuple[Arrays, jax.Array]) -> str:
    """MiB of inputs, results and temporaries of our program, and PyTorch's peak."""
    args, cotangent = given
    analysis = jax.jit(program(work, sizes, what)).lower(cotangent, *args).compile().memory_analysis()
    parts = (getattr(analysis, f"{name}_size_in_bytes") / 2.0**20 for name in ("argument", "output", "temp"))
    line = "  MiB: inputs {:.0f}, results {:.0f}, temporary {:.0f}".format(*parts)
    theirs = by_torch(work, sizes, what, given) if on_gpu() else None
    return line + (f"; torch's peak {peak(theirs):.0f}" if theirs else "")


def row(work: Workload, sizes: dict[str, Any], what: str, seconds: float) -> str:
    given = prepared(work, sizes)
    runs = {"jaxtex": by_jaxtex(work, sizes, what, given), "torch": by_torch(work, sizes, what, given)}
    times = side_by_side({k: (run.start, run.wait) for k, run in runs.items() if run}, seconds, work.name)
    theirs = f"{times['torch']:9.3f}  {times['jaxtex'] / times['torch']:5.2f}" if "torch" in times else ""
    return f"{work.name:34s} {what:9s} {times['jaxtex']:9.3f} {theirs}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workloads", description=__doc__)
    parser.add_argument("--only", type=re.compile, help="a regular expression: workloads whose name has it")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each row")
    parser.add_argument("--small", action="store_true", help="small sizes")
    parser.add_argument("--check", action="store_true", help="compare at the small sizes, and stop")
    options = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    failed = False
    print(f"{'milliseconds':44s} {'jaxtex':>9s} {'torch':>9s}  ratio")
    for work in WORKLOADS:
        if options.only and not options.only.search(work.name):
            continue
        share = difference(work, work.small)
        if share is not None and share > KINKS:
            print(f"{work.name}: differs from PyTorch at {share:.2%} of all numbers")
            failed = True
            continue
        if options.check:
            print(f"{work.name}: " + ("nothing to compare with" if share is None else f"agrees, {share:.2%} beyond"))
            continue
        sizes = work.small if options.small else work.sizes
        for what in ("forward", "gradients"):
            print(row(work, sizes, what, options.seconds), flush=True)
            print(memory(work, sizes, what, prepared(work, sizes)), flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
