"""Records `models_torch.npz.xz`: parts of models in PyTorch, values and gradients. It needs torch and torchvision.

    python tests/data/record_models.py

`deform_conv2d`, `roi_align` and RAFT's `CorrBlock` are torchvision's own. The rest is written here as plain programs of
torch, after the papers and programs that the docstrings of `jaxtex.nn` name. Everything is computed in float64 from
inputs that float32 holds, and rounded to float32 in the end.
"""

import io
import itertools
import json
import lzma
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch.nn.functional import grid_sample
from torchvision.models.optical_flow.raft import CorrBlock
from torchvision.ops import deform_conv2d, roi_align

PATH = Path(__file__).parent / "models_torch.npz.xz"
RANDOM = np.random.default_rng(7)
RECORDS, ARRAYS = [], {}


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def uniform(low, high, *shape):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def record(name, function, program, inputs, wrt, **options):
    """One case: `program` of tensors by name, its value, and its gradients with respect to `wrt`."""
    given = {key: torch.tensor(np.asarray(value)) for key, value in inputs.items()}
    given = {key: value.double() if value.is_floating_point() else value for key, value in given.items()}
    for key in wrt:
        given[key].requires_grad_()
    out = program(**given)
    cotangent = normal(*out.shape)
    slopes = torch.autograd.grad(out, [given[key] for key in wrt], torch.tensor(cotangent).double())
    arrays = {key: np.asarray(value) for key, value in inputs.items()}
    arrays |= {"out": out.detach().numpy().astype(np.float32), "cotangent": cotangent}
    arrays |= {f"gradient/{key}": slope.numpy().astype(np.float32) for key, slope in zip(wrt, slopes)}
    RECORDS.append({"name": name, "function": function, "inputs": [*inputs], "wrt": [*wrt], "options": options})
    ARRAYS.update({f"{name}/{key}": value for key, value in arrays.items()})


def channels_first(array):
    return array.movedim(-1, 1)


def channels_last(array):
    return array.movedim(1, -1)


# Deformable attention


def attention(shapes):
    def program(value, sampling_locations, attention_weights, mask=None):
        batch, _, heads, width = value.shape
        queries, points = sampling_locations.shape[1], sampling_locations.shape[4]
        if mask is not None:
            value = value.masked_fill(mask[..., None, None], 0.0)
        parts = value.split([h * w for h, w in shapes], dim=1)
        total = 0.0
        for k, (part, (h, w)) in enumerate(zip(parts, shapes)):
            images = part.permute(0, 2, 3, 1).reshape(batch * heads, width, h, w)
            grid = 2 * sampling_locations[:, :, :, k].transpose(1, 2).reshape(batch * heads, queries, points, 2) - 1
            read = grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
            weights = attention_weights[:, :, :, k].transpose(1, 2).reshape(batch * heads, 1, queries, points)
            total = total + (read * weights).sum(-1)
        return total.reshape(batch, heads * width, queries).transpose(1, 2)

    return program


def attention_inputs(shapes, batch, heads, width, queries, points):
    weights = np.exp(normal(batch, queries, heads, len(shapes) * points))
    weights /= weights.sum(-1, keepdims=True)
    return {
        "value": normal(batch, sum(h * w for h, w in shapes), heads, width),
        "sampling_locations": uniform(-0.2, 1.2, batch, queries, heads, len(shapes), points, 2),
        "attention_weights": weights.reshape(batch, queries, heads, len(shapes), points),
    }


def record_attention():
    wrt = ("value", "sampling_locations", "attention_weights")
    shapes = ((6, 7), (3, 4), (1, 1))
    inputs = attention_inputs(shapes, 2, 2, 3, 5, 2)
    inputs["mask"] = RANDOM.uniform(size=inputs["value"].shape[:2]) < 0.3
    record("attention", "deformable_attention", attention(shapes), inputs, wrt, spatial_shapes=shapes)
    # At centers and edges of texels, at the edges of the image, and far outside.
    shapes = ((4, 8),)
    inputs = attention_inputs(shapes, 1, 1, 2, 6, 6)
    steps = np.float32([-0.125, 0, 0.125, 0.5, 0.9375, 1.0, 1.0625, 3.0])
    inputs["sampling_locations"] = RANDOM.choice(steps, inputs["sampling_locations"].shape)
    record("attention at kinks", "deformable_attention", attention(shapes), inputs, wrt, spatial_shapes=shapes)


# Deformable convolution


def record_convolution(name, size, channels, outputs, taps, offset_groups, moved, masked, **options):
    stride, padding, dilation = (
        options.get(key, default) for key, default in zip(("strides", "padding", "dilation"), (1, 0, 1))
    )
    groups = options.get("groups", 1)
    pairs = [n if isinstance(n, tuple) else (n, n) for n in (stride, padding, dilation)]
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size[1:], taps, *pairs)]
    count = offset_groups * taps[0] * taps[1]
    inputs = {
        "x": normal(*size, channels),
        "offsets": moved * normal(size[0], *out, 2 * count),
        "kernel": normal(*taps, channels // groups, outputs),
    }
    if masked:
        inputs |= {"mask": uniform(0, 1, size[0], *out, count), "bias": normal(outputs)}

    def program(x, offsets, kernel, mask=None, bias=None):
        found = deform_conv2d(
            channels_first(x),
            channels_first(offsets),
            kernel.permute(3, 2, 0, 1),
            bias,
            stride,
            padding,
            dilation,
            None if mask is None else channels_first(mask),
        )
        return channels_last(found)

    record(name, "deformable_conv", program, inputs, tuple(inputs), **options)


def record_convolutions():
    more = {"strides": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    record_convolution("convolution", (2, 6, 7), 4, 6, (3, 3), 2, 1.0, True, **more)
    record_convolution("convolution at kinks", (1, 5, 4), 2, 3, (2, 3), 1, 0.0, False, padding=1)
    record_convolution("convolution of a texel", (2, 1, 1), 3, 2, (3, 3), 3, 2.0, True, padding=2)


# Pools of boxes


BOXES = np.float32(
    [
        [1, 1, 4, 5],  # inside
        [0.25, 0.5, 8.75, 6.5],
        [-3, -2, 4, 3],  # partly outside
        [6, 4, 13, 9.5],
        [20, 30, 25, 33],  # outside
        [-9, -9, -4, -5],
        [3, 3, 3, 3],  # empty
        [5, 4, 2, 1],  # upside down
        [-1, -1, 0, 0],  # about a texel outside
        [8, 6, 10, 8],
        [2.5, 1.5, 2.75, 5.5],  # thin
        [-4, -5, 14, 13],  # larger than the feature map
    ]
)


def record_pools():
    inputs = {
        "features": normal(2, 7, 9, 3),
        "boxes": BOXES,
        "batch_indices": np.arange(len(BOXES), dtype=np.int32) % 2,
    }
    for name, ratio, aligned, scale, size, most in (
        ("pool", 2, False, 1.0, (2, 3), None),
        ("pool, aligned", 3, True, 1.0, (3, 2), None),
        ("pool, adaptive", -1, False, 1.0, (2, 3), (9, 6)),
        ("pool, adaptive and aligned", -1, True, 0.5, (2, 2), (5, 5)),
    ):

        def program(features, boxes, batch_indices, size=size, scale=scale, ratio=ratio, aligned=aligned):
            boxes = torch.cat([batch_indices[:, None].double(), boxes], dim=1)
            return channels_last(roi_align(channels_first(features), boxes, size, scale, ratio, aligned))

        options = {"output_size": size, "spatial_scale": scale, "sampling_ratio": ratio, "aligned": aligned}
        if most is not None:
            options["max_sampling_ratio"] = most
        record(name, "roi_align", program, inputs, ("features",), **options)


# Correlations


def record_correlation():
    batch, height, width, channels, levels, radius = 1, 8, 9, 4, 3, 2
    y, x = np.mgrid[:height, :width].astype(np.float32)
    inputs = {
        "first": normal(batch, height, width, channels),
        "second": normal(batch, height, width, channels),
        "coords": (np.stack([x, y], -1) + 3 * normal(batch, height, width, 2)).astype(np.float32),
    }

    def program(first, second, coords):
        block = CorrBlock(num_levels=levels, radius=radius)
        block.build_pyramid(channels_first(first), channels_first(second))
        return channels_last(block.index_pyramid(channels_first(coords)))

    record("correlation", "correlation", program, inputs, ("first", "second", "coords"), levels=levels, radius=radius)


# Planes

# Rows are the vectors along the axes of a plane, and its normal.
EG3D_PLANES = {
    "xy": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "xz": [[1, 0, 0], [0, 0, 1], [0, 1, 0]],
    "zx": [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    "zy": [[0, 0, 1], [0, 1, 0], [1, 0, 0]],
}


def record_triplane(name, axes, reduce):
    inputs = {"planes": normal(2, 3, 5, 6, 4), "points": uniform(-1.3, 1.3, 2, 20, 3)}

    def program(planes, points):
        total = 0.0
        for k, pair in enumerate(axes):
            inverse = torch.linalg.inv(torch.tensor(EG3D_PLANES[pair]).double())
            grid = (points @ inverse)[:, None, :, :2]
            read = grid_sample(channels_first(planes[:, k]), grid, padding_mode="zeros", align_corners=False)
            total = total + read[:, :, 0].transpose(1, 2)
        return total / len(axes) if reduce == "mean" else total

    record(name, "triplane", program, inputs, ("planes", "points"), plane_axes=axes, reduce=reduce)


def record_k_planes():
    sizes = [(int(h), int(w)) for h, w in RANDOM.integers(1, 7, (6, 2))]
    inputs = {f"planes/{k}": uniform(0.5, 1.5, 2, h, w, 3) for k, (h, w) in enumerate(sizes)}
    inputs["points"] = uniform(-1.2, 1.2, 2, 9, 4)

    def program(points, **planes):
        product = 1.0
        for image, pair in zip(planes.values(), itertools.combinations(range(4), 2)):
            grid = points[:, None, :, list(pair)]
            read = grid_sample(channels_first(image), grid, padding_mode="border", align_corners=True)
            product = product * read[:, :, 0].transpose(1, 2)
        return product

    record("k-planes", "k_planes", program, inputs, tuple(inputs))


# Multiresolution grids, after `encodings/grid.h` and `common_device.h` of tiny-cuda-nn

PRIMES = (1, 2654435761, 805459861)


def grid_levels(ndim, num_levels, base_resolution, per_level_scale, log2_hashmap_size, **_):
    """(scale, resolution, rows) of each level."""
    logarithm = np.log2(np.float32(per_level_scale))
    for level in range(num_levels):
        scale = np.exp2(np.float32(level) * logarithm) * np.float32(base_resolution) - np.float32(1)
        resolution = int(np.ceil(scale)) + 1
        rows = -(-(resolution**ndim) // 8) * 8
        yield float(scale), resolution, min(rows, 2**log2_hashmap_size)


def row_of(vertex, resolution, rows):
    stride, index = 1, torch.zeros_like(vertex[0])
    for place in vertex:
        if stride > rows:
            break
        index = index + place * stride
        stride *= resolution
    if rows < stride:
        index = torch.zeros_like(index)
        for place, prime in zip(vertex, PRIMES):
            index = index ^ ((place * prime) & 0xFFFFFFFF)
    return (index & 0xFFFFFFFF) % rows


def record_grid(name, **options):
    levels = list(grid_levels(**options))
    ndim, features = options["ndim"], options["features_per_level"]
    points = uniform(0, 1, 60, ndim)
    points[:8] = RANDOM.choice(np.float32([0.0, 1.0, 0.96875]), (8, ndim))
    inputs = {f"tables/{k}": normal(rows, features) for k, (_, _, rows) in enumerate(levels)}
    inputs["points"] = points

    def program(points, **tables):
        found = []
        for table, (scale, resolution, rows) in zip(tables.values(), levels):
            position = points * scale + 0.5
            low = position.detach().floor()
            fraction, total = position - low, 0.0
            for corner in itertools.product((0, 1), repeat=ndim):
                weights = [fraction[:, k] if up else 1 - fraction[:, k] for k, up in enumerate(corner)]
                weight = torch.stack(weights).prod(0)
                vertex = [low[:, k].long() + up for k, up in enumerate(corner)]
                total = total + weight[:, None] * table[row_of(vertex, resolution, rows)]
            found.append(total)
        return torch.cat(found, -1)

    record(name, "multiresolution_grid", program, inputs, tuple(inputs), **options)


def main():
    record_attention()
    record_convolutions()
    record_pools()
    record_correlation()
    record_triplane("triplane", ("xy", "xz", "zy"), "mean")
    record_triplane("triplane as released", ("xy", "xz", "zx"), "sum")
    record_k_planes()
    sizes = {"base_resolution": 4, "features_per_level": 2}
    record_grid("grid", ndim=3, num_levels=4, per_level_scale=2.0, log2_hashmap_size=9, **sizes)
    record_grid("grid of two axes", ndim=2, num_levels=5, per_level_scale=1.5, log2_hashmap_size=7, **sizes)
    versions = {"torch": torch.__version__, "torchvision": torchvision.__version__}
    ARRAYS["index"] = np.frombuffer(json.dumps({"versions": versions, "cases": RECORDS}).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **ARRAYS)
    PATH.write_bytes(lzma.compress(file.getvalue(), preset=9))
    print(f"{len(RECORDS)} cases, {PATH.stat().st_size} bytes, {versions}")


if __name__ == "__main__":
    main()
