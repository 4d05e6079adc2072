"""Parts of published models, in jaxtex, in PyTorch and in libraries of kernels, with inputs of the papers' sizes."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from .peers import with_dcnv4, with_jitfields, with_monai, with_nanodrr, with_raft, with_tinycudann

Arrays = tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class Workload:
    """A part of a model.

    Attributes:
        sizes: as in the paper, and in small, as arguments of the three functions.
        inputs: draws the arrays, of which the first `wrt` have gradients; 0 stands for one of each level.
        ours: the result, by jaxtex.
        theirs: the same, by PyTorch, whose module is its first argument; None if PyTorch has no function for it.
        needs: the package that `theirs` needs.
        kernels: the same, by libraries for PyTorch that have kernels for it, by the name that is imported.
        axes: the order of the axes that PyTorch has an argument in, by the argument's number, and the result, as -1,
            where it is another one than ours. They are transposed outside of what is timed.
    """

    name: str
    sizes: dict[str, Any]
    small: dict[str, Any]
    inputs: Callable[..., Arrays]
    ours: Callable[..., jax.Array]
    theirs: Callable[..., Any] | None
    wrt: int
    needs: str = "torch"
    kernels: dict[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    axes: dict[int, tuple[int, ...]] = dataclasses.field(default_factory=dict)


CHANNELS_FIRST = (0, 3, 1, 2)


def normal(key: jax.Array, *shape: int) -> jax.Array:
    return jax.random.normal(key, shape)


def uniform(key: jax.Array, *shape: int) -> jax.Array:
    return jax.random.uniform(key, shape)


# Deformable attention: Zhu et al., "Deformable DETR", 2021; the encoder's, of an image of 800x1066 pixels, and of one
# of 512x512


def attention_inputs(key: jax.Array, batch: int, heads: int, width: int, levels: Any, points: int) -> Arrays:
    keys = jax.random.split(key, 3)
    queries = sum(h * w for h, w in levels)
    places = uniform(keys[1], batch, queries, heads, len(levels), points, 2)
    weights = jax.nn.softmax(normal(keys[2], batch, queries, heads, len(levels) * points), -1)
    return normal(keys[0], batch, queries, heads, width), places, weights.reshape(places.shape[:-1])


def attention(values: jax.Array, places: jax.Array, weights: jax.Array, *, levels: Any, **_: Any) -> jax.Array:
    return jt.nn.deformable_attention(values, levels, places, weights)


def torch_attention(torch: Any, values: Any, places: Any, weights: Any, *, levels: Any, points: int, **_: Any) -> Any:
    batch, queries, heads, width = values.shape
    grid, found = places * 2 - 1, []
    ends = np.cumsum([0, *(h * w for h, w in levels)])
    for k, ((start, end), (h, w)) in enumerate(zip(itertools.pairwise(ends), levels)):
        images = values[:, start:end].flatten(2).transpose(1, 2).reshape(batch * heads, width, h, w)
        at = grid[:, :, :, k].transpose(1, 2).flatten(0, 1)
        found.append(torch.nn.functional.grid_sample(images, at, align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(levels) * points)
    out = (torch.stack(found, -2).flatten(-2) * weights).sum(-1)
    return out.view(batch, heads * width, queries).transpose(1, 2)


ATTENTION = attention_inputs, attention, torch_attention


# The same from what a linear layer gives for each query and head, the places of all points and then numbers whose
# softmax is their weights: Xiong et al., "Efficient Deformable ConvNets", 2024


def packed_attention_inputs(key: jax.Array, levels: Any, dtype: Any = "float32", **sizes: Any) -> Arrays:
    values, places, weights = attention_inputs(key, levels=levels, **sizes)
    front = *weights.shape[:3], -1
    packed = jnp.concatenate([places.reshape(front), normal(key, *weights.shape).reshape(front)], -1)
    return values.astype(dtype), packed.astype(dtype)


def packed_attention(values: jax.Array, packed: jax.Array, *, levels: Any, points: int, **_: Any) -> jax.Array:
    front, count = packed.shape[:3], len(levels) * points
    places = packed[..., : 2 * count].reshape(*front, len(levels), points, 2)
    weights = jax.nn.softmax(packed[..., 2 * count :].astype(jnp.float32), -1).reshape(places.shape[:-1])
    return attention(values, places, weights, levels=levels)


def torch_packed_attention(torch: Any, values: Any, packed: Any, *, levels: Any, points: int, **_: Any) -> Any:
    front, count = packed.shape[:3], len(levels) * points
    places = packed[..., : 2 * count].reshape(*front, len(levels), points, 2)
    weights = packed[..., 2 * count :].softmax(-1).reshape(places.shape[:-1])
    return torch_attention(torch, values, places, weights, levels=levels, points=points)


PACKED_ATTENTION = packed_attention_inputs, packed_attention, torch_packed_attention
BY_DCNV4 = {"DCNv4": with_dcnv4.attention}
COCO = ((100, 134), (50, 67), (25, 34), (13, 17))
SQUARES = ((64, 64), (32, 32), (16, 16), (8, 8))
# DCNv4 takes up to 64 queries in a block, and lets a block end in the next image where their number does not divide.
SMALL_LEVELS = ((6, 7), (3, 4), (2, 4), (1, 2))


# DCNv4's convolution of each group of channels, as in InternImage: for a pixel the places of nine taps, then their
# weights, which are not normalized, group by group


TAPS, ZERO_PADDED = 3, jt.Sampler(address_mode="border", normalized_coords=False)


def grouped_inputs(
    key: jax.Array, batch: int, side: int, groups: int, width: int, spread: float, dtype: Any = "float32"
) -> Arrays:
    keys, numbers = jax.random.split(key, 3), 3 * TAPS**2
    shape = batch, side, side, groups
    offsets, masks = spread * normal(keys[0], *shape, 2 * TAPS**2), normal(keys[1], *shape, TAPS**2)
    packed = jnp.concatenate([offsets, masks], -1).reshape(batch, side, side, groups * numbers)
    # A multiple of eight numbers, for its linear layer.
    packed = jnp.pad(packed, [(0, 0)] * 3 + [(0, -groups * numbers % 8)])
    return normal(keys[2], batch, side, side, groups * width).astype(dtype), packed.astype(dtype)


def grouped_convolution(x: jax.Array, packed: jax.Array, *, groups: int, **_: Any) -> jax.Array:
    batch, side = x.shape[:2]
    numbers, taps = 3 * TAPS**2, TAPS**2
    packed = packed[..., : groups * numbers].reshape(batch, side * side, groups, numbers)
    row, column = jnp.mgrid[:side, :side].reshape(2, -1, 1, 1)
    # The first taps are those on the left.
    across, down = jnp.mgrid[:TAPS, :TAPS].reshape(2, -1) - TAPS // 2
    # Three arrays of one shape, which XLA takes out of `packed` in one pass.
    across = packed[..., : 2 * taps : 2] + (column + across) + 0.5
    down = packed[..., 1 : 2 * taps : 2] + (row + down) + 0.5
    weights, group = packed[..., 2 * taps :], jnp.arange(groups)[:, None]

    def of_image(image: jax.Array, across: jax.Array, down: jax.Array, weights: jax.Array) -> jax.Array:
        texture, how = jt.texture2d(image), {"head": group, "num_heads": groups}
        return jt.nn.sample_weighted(texture, (across, down), weights, ZERO_PADDED, **how)

    return jax.vmap(of_image)(x, across, down, weights).reshape(x.shape)


def torch_grouped_convolution(torch: Any, x: Any, packed: Any, *, groups: int, **_: Any) -> Any:
    batch, side = x.shape[:2]
    numbers, taps = 3 * TAPS**2, TAPS**2
    packed = packed[..., : groups * numbers].reshape(batch, side * side, groups, numbers)
    offsets = packed[..., : 2 * taps].reshape(batch, side * side, groups, 1, taps, 2)
    row, column = (
        a.reshape(1, -1, 1, 1, 1) for a in torch.meshgrid(*[torch.arange(side, device=x.device)] * 2, indexing="ij")
    )
    near = torch.arange(TAPS, device=x.device) - TAPS // 2
    across, down = (a.reshape(-1) for a in torch.meshgrid(near, near, indexing="ij"))
    places = (offsets + torch.stack([column + across, row + down], -1) + 0.5) / side
    weights, levels = packed[..., None, 2 * taps :], ((side, side),)
    values = x.reshape(batch, side * side, groups, -1)
    return torch_attention(torch, values, places.to(x.dtype), weights, levels=levels, points=taps).reshape(x.shape)


GROUPED = grouped_inputs, grouped_convolution, torch_grouped_convolution


# RAFT: Teed and Deng, 2020; the lookup in its pyramid of correlations, of an image of 440x1024 pixels


def correlation_inputs(key: jax.Array, batch: int, height: int, width: int, levels: int, radius: int) -> Arrays:
    keys, front = jax.random.split(key, levels + 1), (batch, height, width)
    y, x = jnp.mgrid[:height, :width].astype(jnp.float32)
    volumes = (normal(keys[k], *front, height >> k, width >> k) for k in range(levels))
    return *volumes, jnp.stack([x, y], -1) + 4 * normal(keys[-1], *front, 2)


def correlation(*args: jax.Array, radius: int, **_: Any) -> jax.Array:
    *volumes, coords = args
    return jt.nn.correlation_lookup(volumes, coords, radius)


def torch_correlation(torch: Any, *args: Any, radius: int, **_: Any) -> Any:
    *volumes, coords = args
    near, found = torch.arange(-radius, radius + 1.0, device=coords.device), []
    offsets = torch.stack(torch.meshgrid(near, near, indexing="ij"), -1)
    for k, volume in enumerate(volumes):
        sizes = torch.tensor(volume.shape[:-3:-1], device=coords.device)
        at = coords.reshape(-1, 1, 1, 2) / 2**k + offsets
        grid = 2 * at / (sizes - 1) - 1
        read = torch.nn.functional.grid_sample(volume.flatten(0, 2)[:, None], grid, align_corners=True)
        found.append(read.reshape(*coords.shape[:3], -1))
    return torch.cat(found, -1)


CORRELATION = correlation_inputs, correlation, torch_correlation


# The pyramid too, from the maps of features of the two images


def map_pair_inputs(key: jax.Array, batch: int, height: int, width: int, channels: int, **sizes: Any) -> Arrays:
    keys = jax.random.split(key, 3)
    y, x = jnp.mgrid[:height, :width].astype(jnp.float32)
    coords = jnp.stack([x, y], -1) + 4 * normal(keys[2], batch, height, width, 2)
    return *(normal(k, batch, height, width, channels) for k in keys[:2]), coords


def correlated(first: jax.Array, second: jax.Array, coords: jax.Array, *, levels: int, radius: int, **_: Any):
    return jt.nn.correlation_lookup(jt.nn.correlation_pyramid(first, second, levels), coords, radius)


def torch_correlated(torch: Any, first: Any, second: Any, coords: Any, *, levels: int, radius: int, **_: Any) -> Any:
    batch, height, width, channels = first.shape
    volume = torch.einsum("bhwc,bijc->bhwij", first, second) / channels**0.5
    volumes = [volume]
    for _level in range(1, levels):
        halved = torch.nn.functional.avg_pool2d(volumes[-1].flatten(0, 2)[:, None], 2, stride=2)
        volumes.append(halved[:, 0].unflatten(0, (batch, height, width)))
    return torch_correlation(torch, *volumes, coords, radius=radius)


CORRELATED = map_pair_inputs, correlated, torch_correlated


# Splines of volumes, as in nitorch and MONAI; their coefficients are given


def spline_inputs(key: jax.Array, shape: tuple[int, int, int], order: int) -> Arrays:
    keys = jax.random.split(key)
    places = jnp.stack(jnp.meshgrid(*(jnp.arange(float(n)) for n in shape), indexing="ij"))
    return normal(keys[0], *shape), places + normal(keys[1], *places.shape)


def spline(volume: jax.Array, places: jax.Array, *, order: int, **_: Any) -> jax.Array:
    return jt.ndimage.map_coordinates(volume, places, order=order, mode="grid-constant", prefilter=False)


def torch_spline(torch: Any, volume: Any, places: Any, **_: Any) -> Any:
    sizes = torch.tensor(volume.shape[::-1], device=volume.device)
    grid = 2 * places.flip(-1) / (sizes - 1) - 1
    return torch.nn.functional.grid_sample(volume[None, None], grid[None], align_corners=True)[0, 0]


def spline_workload(order: int) -> Workload:
    return Workload(
        f"volume 160x192x224, spline of order {order}",
        {"shape": (160, 192, 224), "order": order},
        {"shape": (6, 7, 9), "order": order},
        *(spline_inputs, spline, torch_spline if order == 1 else None),
        wrt=2,
        kernels={"monai": with_monai.pull, "jitfields": with_jitfields.pull},
        axes={1: (1, 2, 3, 0)},
    )


# VoxelMorph: Balakrishnan et al., 2019; a velocity is integrated by scaling and squaring, and moves an image


SMOOTH = 16  # voxels from one value of the velocity to the next


def volume_inputs(key: jax.Array, shape: tuple[int, int, int], steps: int) -> Arrays:
    keys = jax.random.split(key)
    velocity = 20 * normal(keys[0], *(n // SMOOTH + 2 for n in shape), 3)
    return jax.image.resize(velocity, (*shape, 3), "linear"), normal(keys[1], *shape, 1)


def scaling_and_squaring(velocity: jax.Array, image: jax.Array, *, steps: int, **_: Any) -> jax.Array:
    # Zero outside, as `grid_sample` reads.
    return jt.warp.warp_flow(image, jt.warp.integrate_velocity(velocity, steps, address_mode="border"))


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


# Rays: a radiograph whose pose is to be found, and the renderings of volumes; as many samples as texels along an axis


def ray_inputs(key: jax.Array, side: int, pixels: int, channels: int, **_: Any) -> Arrays:
    """A pose, a volume, whose last channel is thin, and segments from near its first slice to near its last one."""
    line = (jnp.arange(pixels) + 0.5) * (side / pixels)
    y, x = jnp.meshgrid(line, line, indexing="ij")
    source = jnp.stack([x, y, jnp.full_like(x, 0.013 * side)], -1)
    target = jnp.stack([0.9 * x + 0.04 * side, 0.9 * y + 0.06 * side, jnp.full_like(x, 0.981 * side)], -1)
    volume = uniform(key, side, side, side, channels) * jnp.float32([1] * (channels - 1) + [4 / side])
    return jnp.eye(3, 4), volume, source, target


def moved_by(pose: Any, points: Any) -> Any:
    """Points in another place; a product of matrices may be less precise."""
    return pose[:, 3] + sum(pose[:, k] * points[..., k : k + 1] for k in range(3))


def radiograph(
    pose: jax.Array, volume: jax.Array, source: jax.Array, target: jax.Array, *, samples: int, **_: Any
) -> jax.Array:
    start, end = moved_by(pose, source), moved_by(pose, target)
    integrals = jt.rays.line_integral(volume, start, end, num_samples=samples)
    return integrals / jnp.linalg.norm(end - start, axis=-1, keepdims=True)


def largest(
    pose: jax.Array, volume: jax.Array, source: jax.Array, target: jax.Array, *, samples: int, **_: Any
) -> jax.Array:
    start, end = moved_by(pose, source), moved_by(pose, target)
    return jt.rays.maximum_intensity(volume, start, end, num_samples=samples, outside=0.0)  # as PyTorch's padding


def rendering(
    pose: jax.Array, volume: jax.Array, source: jax.Array, target: jax.Array, *, samples: int, **_: Any
) -> jax.Array:
    return jt.rays.composite(volume, moved_by(pose, source), moved_by(pose, target), num_samples=samples)


RAY_PARTS = 8  # in which PyTorch takes the rays: it stores the samples


def torch_along_rays(fold: Callable[..., Any]) -> Callable[..., Any]:
    """`fold(torch, values, length)` of samples, (rays, samples, C), by `grid_sample`."""

    def run(torch: Any, pose: Any, volume: Any, source: Any, target: Any, *, samples: int, **_: Any) -> Any:
        side = volume.shape[0]
        share = ((torch.arange(samples, device=volume.device) + 0.5) / samples)[:, None]
        texels, found = volume.movedim(-1, 0)[None], []
        for ends in zip(source.chunk(RAY_PARTS), target.chunk(RAY_PARTS)):
            start, end = (moved_by(pose, a).flatten(0, 1)[:, None] for a in ends)
            grid = (start + (end - start) * share) * (2 / side) - 1
            values = torch.nn.functional.grid_sample(texels, grid[None, :, :, None], align_corners=False)
            length = (end - start).norm(dim=-1) / samples
            found.append(fold(torch, values[0, ..., 0].movedim(0, -1), length).reshape(*ends[0].shape[:2], -1))
        return torch.cat(found)

    return run


def torch_composited(torch: Any, values: Any, length: Any) -> Any:
    depth = values[..., -1:] * length[..., None]
    light = torch.exp(depth - depth.cumsum(1))
    color = (light * (1 - torch.exp(-depth)) * values[..., :-1]).sum(1)
    return torch.cat([color, 1 - torch.exp(-depth.sum(1))], -1)


RADIOGRAPH = ray_inputs, radiograph, torch_along_rays(lambda torch, values, length: values.mean(1))
LARGEST = ray_inputs, largest, torch_along_rays(lambda torch, values, length: values.amax(1))
RENDERING = ray_inputs, rendering, torch_along_rays(torch_composited)
BY_NANODRR = {"nanodrr": with_nanodrr.radiograph}


# Triplanes: Chan et al., "Efficient Geometry-aware 3D Generative Adversarial Networks", 2022


def triplane_inputs(key: jax.Array, batch: int, side: int, channels: int, points: int) -> Arrays:
    keys = jax.random.split(key)
    return normal(keys[0], batch, 3, side, side, channels), 2 * uniform(keys[1], batch, points, 3) - 1


def triplane(planes: jax.Array, at: jax.Array, **_: Any) -> jax.Array:
    return jt.nn.triplane(planes, at)


def torch_triplane(torch: Any, planes: Any, at: Any, **_: Any) -> Any:
    batch, _, channels = planes.shape[:3]
    grid = torch.stack([at[..., pair] for pair in ([0, 1], [0, 2], [2, 1])], 1)
    read = torch.nn.functional.grid_sample(planes.flatten(0, 1), grid.flatten(0, 1)[:, None], align_corners=False)
    return read.reshape(batch, 3, channels, -1).mean(1).movedim(1, -1)


TRIPLANE = triplane_inputs, triplane, torch_triplane
TRIPLANE_AXES = {0: (0, 1, 4, 2, 3)}


# A multiresolution grid: Müller et al., "Instant Neural Graphics Primitives", 2022. A level with more vertices than the
# table of a level holds is hashed

PRIMES = (1, 2654435761, 805459861)


def grid_of(
    levels: int, coarsest: int, finest: int, log2_rows: int, features: int, **_: Any
) -> jt.nn.MultiresolutionGrid:
    return jt.nn.MultiresolutionGrid(
        num_levels=levels,
        base_resolution=coarsest,
        finest_resolution=finest,
        log2_hashmap_size=log2_rows,
        features_per_level=features,
    )


def grid_inputs(key: jax.Array, points: int, by_level: bool, dtype: Any = "float32", **sizes: Any) -> Arrays:
    grid = grid_of(**sizes)
    keys = jax.random.split(key)
    table = normal(keys[0], sum(grid.table_sizes), grid.features_per_level).astype(dtype)
    # Closer to 1, tiny-cuda-nn and jaxtex read the first vertices of the next line in dense levels.
    at = uniform(keys[1], points, 3) * (1 - 1 / grid.base_resolution)
    tables = jnp.split(table, np.cumsum(grid.table_sizes)[:-1]) if by_level else [table]
    return *tables, at


def multiresolution(*args: jax.Array, points: int, by_level: bool, **sizes: Any) -> jax.Array:
    *tables, at = args
    return jt.nn.multiresolution_grid(tables if by_level else tables[0], at, grid_of(**sizes))


def torch_multiresolution(torch: Any, *args: Any, points: int, by_level: bool, **sizes: Any) -> Any:
    (*tables, at), grid, found = args, grid_of(**sizes), []
    tables = tables if by_level else tables[0].split(list(grid.table_sizes))
    for table, scale, n, hashed in zip(tables, grid.scales, grid.resolutions, grid.hashed):
        position = at * scale + 0.5
        table = table.to(at.dtype)
        if not hashed:
            volume = table[: n**3].reshape(n, n, n, -1).movedim(-1, 0)[None]
            place = (position * (2 / (n - 1)) - 1)[None, None, None]
            read = torch.nn.functional.grid_sample(volume, place, align_corners=True)
            found.append(read[0, :, 0, 0].T)
            continue
        low = position.floor()
        fraction, total = position - low, 0.0
        for corner in itertools.product((0, 1), repeat=3):
            vertex = [(low[:, k].long() + up) * PRIMES[k] & 0xFFFFFFFF for k, up in enumerate(corner)]
            weights = [fraction[:, k] if up else 1 - fraction[:, k] for k, up in enumerate(corner)]
            index = (vertex[0] ^ vertex[1] ^ vertex[2]) % len(table)
            total = total + (weights[0] * weights[1] * weights[2])[:, None] * table[index]
        found.append(total)
    return torch.cat(found, -1).to(args[0].dtype)


HASHED = {
    "by_level": False,
    "points": 2**18,
    "levels": 16,
    "coarsest": 16,
    "finest": 2048,
    "log2_rows": 19,
    "features": 2,
}
# It takes points in multiples of 256.
FEW = {"by_level": False, "points": 256, "levels": 4, "coarsest": 4, "finest": 32, "log2_rows": 10, "features": 2}
GRID = grid_inputs, multiresolution, torch_multiresolution


# Deformable convolution: Zhu et al., "Deformable ConvNets v2", 2019, by torchvision


def convolution_inputs(key: jax.Array, batch: int, side: int, channels: int, taps: int) -> Arrays:
    keys, size = jax.random.split(key, 4), (batch, side, side)
    offsets = 2 * normal(keys[1], *size, 2 * taps * taps)
    kernel = normal(keys[2], taps, taps, channels, channels) / (taps * channels**0.5)
    return normal(keys[0], *size, channels), offsets, kernel, uniform(keys[3], *size, taps * taps)


def convolution(x: jax.Array, offsets: jax.Array, kernel: jax.Array, mask: jax.Array, *, taps: int, **_: Any):
    return jt.nn.deformable_conv(x, offsets, kernel, mask=mask, padding=taps // 2)


def torch_convolution(torch: Any, x: Any, offsets: Any, kernel: Any, mask: Any, *, taps: int, **_: Any) -> Any:
    import torchvision

    return torchvision.ops.deform_conv2d(x, offsets, kernel, padding=taps // 2, mask=mask)


CONVOLUTION_AXES = {0: CHANNELS_FIRST, 1: CHANNELS_FIRST, 2: (3, 2, 0, 1), 3: CHANNELS_FIRST, -1: CHANNELS_FIRST}


# Pools of boxes: He et al., "Mask R-CNN", 2017, by torchvision


def pool_inputs(key: jax.Array, batch: int, height: int, width: int, channels: int, boxes: int, bins: int) -> Arrays:
    keys, sizes = jax.random.split(key, 3), jnp.array([width, height], jnp.float32)
    ends = uniform(keys[1], 2, boxes, 2) * sizes
    corners = jnp.concatenate([ends.min(0), ends.max(0)], -1)
    return normal(keys[0], batch, height, width, channels), corners, jax.random.randint(keys[2], (boxes,), 0, batch)


def pool(features: jax.Array, corners: jax.Array, indices: jax.Array, *, bins: int, **_: Any) -> jax.Array:
    return jt.nn.roi_align(features, corners, bins, batch_indices=indices)


def torch_pool(torch: Any, features: Any, corners: Any, indices: Any, *, bins: int, **_: Any) -> Any:
    import torchvision

    rows = torch.cat([indices[:, None].to(corners.dtype), corners], 1)
    return torchvision.ops.roi_align(features, rows, bins, sampling_ratio=2)


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
WORKLOADS = (
    Workload(
        "deformable attention",
        {"batch": 2, "heads": 8, "width": 32, "levels": COCO, "points": 4},
        {"batch": 2, "heads": 2, "width": 3, "levels": ((6, 7), (3, 4)), "points": 2},
        *ATTENTION,
        wrt=3,
    ),
    Workload(
        "deformable attention, 5,440 queries",
        {"batch": 4, "heads": 8, "width": 32, "levels": SQUARES, "points": 4},
        {"batch": 1, "heads": 2, "width": 4, "levels": ((4, 4), (2, 2)), "points": 2},
        *ATTENTION,
        wrt=3,
    ),
    *(
        Workload(
            f"attention with softmax, {title}{kind and ', ' + kind}",
            {"batch": batch, "heads": 8, "width": 32, "levels": levels, "points": 4}
            | ({"dtype": kind} if kind else {}),
            {"batch": 2, "heads": 2, "width": 16, "levels": SMALL_LEVELS, "points": 4}
            | ({"dtype": kind} if kind else {}),
            *PACKED_ATTENTION,
            wrt=2,
            kernels=BY_DCNV4,
        )
        for batch, levels, title in ((2, COCO, "COCO"), (4, SQUARES, "4 x 5,440"))
        for kind in ("", "float16")
    ),
    *(
        Workload(
            f"DCNv4 64x56x56x4x16{kind and ', ' + kind}",
            {"batch": 64, "side": 56, "groups": 4, "width": 16, "spread": 1.0} | ({"dtype": kind} if kind else {}),
            {"batch": 2, "side": 8, "groups": 4, "width": 16, "spread": 1.0} | ({"dtype": kind} if kind else {}),
            *GROUPED,
            wrt=2,
            kernels={"DCNv4": with_dcnv4.convolution},
        )
        for kind in ("", "float16")
    ),
    Workload(
        "RAFT correlation lookup",
        {"batch": 1, "height": 55, "width": 128, "levels": 4, "radius": 4},
        {"batch": 1, "height": 8, "width": 12, "levels": 2, "radius": 2},
        *CORRELATION,
        wrt=0,
    ),
    Workload(
        "RAFT correlation lookup, batch 4",
        {"batch": 4, "height": 55, "width": 128, "levels": 4, "radius": 4},
        {"batch": 2, "height": 4, "width": 6, "levels": 1, "radius": 1},
        *CORRELATION,
        wrt=0,
    ),
    Workload(
        "RAFT from maps of features",
        {"batch": 1, "height": 55, "width": 128, "channels": 256, "levels": 4, "radius": 4},
        {"batch": 2, "height": 8, "width": 12, "channels": 32, "levels": 2, "radius": 2},
        *CORRELATED,
        wrt=2,
        kernels={"alt_cuda_corr": with_raft.correlation},
    ),
    *map(spline_workload, (1, 3, 5)),
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
        *TRIPLANE,
        wrt=1,
        axes=TRIPLANE_AXES,
    ),
    Workload(
        "triplane 512x512x32, 2M points",
        {"batch": 1, "side": 512, "channels": 32, "points": 2**21},
        {"batch": 1, "side": 5, "channels": 4, "points": 30},
        *TRIPLANE,
        wrt=1,
        axes=TRIPLANE_AXES,
    ),
    *(
        Workload(
            f"multiresolution grid, hashed{title}{kind and ', ' + kind}",
            HASHED | {"points": points} | ({"dtype": kind} if kind else {}),
            FEW | ({"dtype": kind} if kind else {}),
            *GRID,
            wrt=1,
            kernels={"tinycudann": with_tinycudann.hash_grid},
        )
        for points, title in ((2**18, ""), (2**21, ", 2M points"))
        for kind in ("", "float16")
    ),
    Workload(
        "multiresolution grid, dense",
        {"by_level": False, "points": 2**18, "levels": 5, "coarsest": 16, "finest": 80, "log2_rows": 20, "features": 2},
        {"by_level": False, "points": 50, "levels": 3, "coarsest": 4, "finest": 8, "log2_rows": 10, "features": 2},
        *GRID,
        wrt=1,
    ),
    Workload(
        "multiresolution grid, dense, 2M points",
        {"by_level": True, "points": 2**21, "levels": 5, "coarsest": 16, "finest": 256, "log2_rows": 24, "features": 2},
        {"by_level": True, "points": 50, "levels": 2, "coarsest": 4, "finest": 8, "log2_rows": 10, "features": 2},
        *GRID,
        wrt=0,
    ),
    *(
        Workload(
            f"{title} of {side}³x{channels}, 1024² rays, {leaves}",
            {"side": side, "pixels": 1024, "channels": channels, "samples": side},
            {"side": 9, "pixels": 8, "channels": channels, "samples": 9},
            *how,
            wrt=count,
            kernels=kernels,
        )
        for title, how, side, channels, kernels in (
            ("radiograph", RADIOGRAPH, 512, 1, BY_NANODRR),
            ("maximum intensity", LARGEST, 512, 1, {}),
            ("emission and absorption", RENDERING, 512, 1, {}),
            ("emission and absorption", RENDERING, 256, 4, {}),
        )
        for leaves, count in (("pose", 1), ("pose and volume", 2))
    ),
    Workload(
        "deformable convolution 8x64x64x256",
        {"batch": 8, "side": 64, "channels": 256, "taps": 3},
        {"batch": 2, "side": 5, "channels": 4, "taps": 3},
        *(convolution_inputs, convolution, torch_convolution),
        wrt=4,
        needs="torchvision",
        axes=CONVOLUTION_AXES,
    ),
    Workload(
        "roi_align, 1,000 boxes of 2x200x304x256",
        {"batch": 2, "height": 200, "width": 304, "channels": 256, "boxes": 1000, "bins": 7},
        {"batch": 2, "height": 9, "width": 8, "channels": 4, "boxes": 20, "bins": 3},
        *(pool_inputs, pool, torch_pool),
        wrt=1,
        needs="torchvision",
        axes={0: CHANNELS_FIRST, -1: CHANNELS_FIRST},
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
