"""Reads inside models, and sums of weighted reads beside sums of reads. Parity is in test_nn_parity.py."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex.nn.multiresolution import SPREAD
from tests.compiled.field_calls import of_chain, of_pyramid
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close

RANDOM = np.random.default_rng(11)
LEVELS = ((3, 4), (1, 2))
STORED = sum(h * w for h, w in LEVELS)
ZEROS = jt.Sampler(address_mode="border")


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """The numbers that a test draws depend on its name alone, and not on the tests before it."""
    RANDOM.bit_generator.state = np.random.PCG64([*request.node.name.encode()]).state


def normal(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def between(low, high, *shape, dtype=np.float32):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def places(*shape):
    return between(-0.1, 1.1, *shape)


def attend(value, locations, weights, mask=None):
    return jt.nn.deformable_attention(value, LEVELS, locations, weights, mask=mask)


def attention_inputs(batch=1, queries=3, heads=2, width=2, points=2, dtype=np.float32):
    shape = (batch, queries, heads, len(LEVELS), points)
    drawn = normal(batch, STORED, heads, width), between(0.05, 0.95, *shape, 2), between(0, 1, *shape)
    return tuple(a.astype(dtype) for a in drawn)


# Derivatives of second order, in both modes, where torchvision has none of boxes or of derivatives


@pytest.mark.slow
def test_derivatives(x64):
    """All functions of one program each, in float64, away from kinks."""
    inside = lambda *shape: RANDOM.integers(0, 3, shape) + between(0.2, 0.8, *shape, dtype=np.float64)
    assert_derivatives(attend, *attention_inputs(queries=2, heads=1, points=1, dtype=np.float64))
    offsets = inside(1, 2, 2, 2 * 4) - 1
    convolve = lambda x, offsets, kernel, mask: jt.nn.deformable_conv(x, offsets, kernel, mask=mask)
    drawn = normal(1, 3, 3, 2), offsets, normal(2, 2, 2, 1), between(0, 1, 1, 2, 2, 4)
    assert_derivatives(convolve, *(np.float64(a) for a in drawn))
    boxes = np.float64([[1.1, 0.7, 3.3, 3.4], [0.3, 1.2, 2.1, 2.9]])
    pool = lambda features, boxes: jt.nn.roi_align(features, boxes, 2, sampling_ratio=1, aligned=True)
    assert_derivatives(pool, np.float64(normal(1, 4, 4, 1)), boxes)
    look = lambda volume, coords: jt.nn.correlation_lookup([volume], coords, radius=1)
    assert_derivatives(look, np.float64(normal(1, 1, 2, 4, 5)), inside(1, 1, 2, 2))
    grid = jt.nn.MultiresolutionGrid(ndim=3, num_levels=2, base_resolution=2, log2_hashmap_size=4, features_per_level=1)
    assert grid.hashed == (False, True)

    def of_points(points, planes, tables):
        found = jt.nn.triplane(planes, points), jt.nn.k_planes([*planes], points)
        return jnp.concatenate([*found, jt.nn.multiresolution_grid(tables, (points + 1) / 2, grid)], -1)

    tables = [np.float64(normal(size, 1)) for size in grid.table_sizes]
    assert_derivatives(of_points, between(-0.9, 0.9, 4, 3, dtype=np.float64), np.float64(normal(3, 3, 3, 2)), tables)


def test_attention_counts_padding_and_what_lies_outside_as_zero():
    value, locations, weights = attention_inputs()
    mask = np.arange(STORED)[None] % 3 == 0
    poisoned = np.where(mask[..., None, None], np.nan, value)
    cleared = np.where(mask[..., None, None], 0, value)
    run = jax.jit(attend)
    # One program, which sees the same numbers behind the mask.
    assert_exact(run(poisoned, locations, weights, mask), run(cleared, locations, weights, mask))
    assert not run(value, locations + 3, weights).any()


def test_attention_under_transforms():
    """In `shard_map`, and with other dtypes."""
    value, locations, weights = attention_inputs(batch=4)
    short = lambda a: a.astype(jnp.bfloat16)

    run = jax.jit(lambda *args: (attend(*args), attend(short(args[0]), args[1], short(args[2]))))
    whole, half = run(value, locations, weights)
    count = min(jax.device_count(), 4)
    automatic = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((count,), ("b",), devices=jax.devices()[:count], axis_types=automatic)
    spec = jax.sharding.PartitionSpec("b")
    sharded = jax.jit(jax.shard_map(attend, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec))
    assert_close("reordered", sharded(value, locations, weights), whole, 4)
    assert half.dtype == jnp.bfloat16
    # Values and weights are rounded to 8 bits, and their sum.
    assert_close("bfloat16", half.astype(np.float32), whole, 3 * 4)


@jax.default_matmul_precision("highest")
@pytest.mark.parametrize(
    "options", [{"padding": "SAME", "strides": (2, 1)}, {"padding": ((1, 0), (0, 2)), "groups": 2}]
)
def test_convolution_without_offsets_is_a_convolution(options):
    x, kernel = normal(2, 5, 6, 4), normal(2, 3, 4 // options.get("groups", 1), 6)
    convolve = lambda x, kernel: jax.lax.conv_general_dilated(
        x,
        kernel,
        np.broadcast_to(options.get("strides", 1), 2).tolist(),
        options["padding"],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=options.get("groups", 1),
    )
    offsets = np.zeros((*jax.eval_shape(convolve, x, kernel).shape[:3], 2 * 2 * 3 * 2), np.float32)
    ours = lambda x, kernel: jt.nn.deformable_conv(x, offsets, kernel, **options)
    halves = lambda x, kernel: ours(x.astype(jnp.float16), kernel.astype(jnp.float16))
    found, expected, half = jax.jit(lambda *args: [f(*args) for f in (ours, convolve, halves)])(x, kernel)
    assert_close("sum", found, expected, 32)
    assert half.dtype == jnp.float16
    assert_close("float16", half.astype(np.float32), expected, 32)


def test_adaptive_pools_take_what_boxes_need():
    """The default bound is enough for boxes inside; NaN in a box reads nothing, and an index outside the last map."""
    features, boxes = normal(2, 7, 9, 2), np.float32([[0, 0, 9, 7], [2, 1, 5, 6], [np.nan, 1, 2, 3], [1, 2, 4, 4]])
    features[1] = np.round(features[1])  # means of its whole numbers over whole bins are exact
    indices = np.array([0, 1, 1, 7])
    pool = lambda **options: jt.nn.roi_align(features, boxes, (2, 3), batch_indices=indices, **options)
    of_last = lambda: (pool()[3:], jt.nn.roi_align(features[1:], boxes[3:], (2, 3)))
    found, of_nine, last = jax.jit(
        lambda: (pool(sampling_ratio=-1), pool(sampling_ratio=-1, max_sampling_ratio=9), of_last())
    )()
    assert_close("reordered", found, of_nine, 4)
    assert not found[2].any()
    assert_exact(*last)


def interpolated(image, y, x):
    """A read as in torchvision's kernel for CPUs: zero more than a texel outside, else clamped."""
    height, width, channels = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(channels)
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    rows, columns = ((int(at), min(int(at) + 1, size - 1)) for at, size in ((y, height), (x, width)))
    weights = np.outer([1 - y + rows[0], y - rows[0]], [1 - x + columns[0], x - columns[0]])
    return np.einsum("ij,ijc->c", weights, image[np.ix_(rows, columns)])


def pooled(image, box, bins, scale, aligned):
    """A box as in that kernel, in whose bins it takes as many reads as ``ceil`` of their size."""
    left, top, right, bottom = (box * np.float32(scale) - np.float32(aligned / 2)).astype(np.float64)
    sides = [max(n, 0 if aligned else 1) for n in (bottom - top, right - left)]
    sizes = [side / n for side, n in zip(sides, bins)]
    counts = [math.ceil(size) for size in sizes]
    out = np.zeros((*bins, image.shape[-1]))
    for i, j in np.ndindex(*bins):
        for k, m in np.ndindex(*counts):
            y, x = top + (i + (k + 0.5) / counts[0]) * sizes[0], left + (j + (m + 0.5) / counts[1]) * sizes[1]
            out[i, j] += interpolated(image, y, x)
    return out / max(math.prod(counts), 1)


def test_adaptive_pools_take_as_many_reads_as_torchvision():
    """Boxes of whole multiples of the output size, whose quotient XLA does not round to a whole number; boxes of any
    size, also smaller than a texel and larger than a feature map."""
    features, bins, scale = normal(1, 22, 44, 1), (7, 14), 0.5
    corners = between(-4, 80, 6, 2)
    boxes = np.concatenate([corners, corners + between(0, 60, 6, 2)], axis=1)
    boxes = np.float32([*boxes, [0, 0, 84, 42], [2, 3, 86, 45], [4, 4, 4.5, 88], [-9, -7, 120, 70], [9, 9, 9, 9]])
    pool = lambda boxes, **options: jt.nn.roi_align(
        features, boxes, bins, spatial_scale=scale, sampling_ratio=-1, **options
    )
    both = lambda boxes: (pool(boxes, max_sampling_ratio=9, aligned=True), pool(boxes, max_sampling_ratio=9))
    found = jax.jit(lambda boxes: (pool(boxes[6:8]), *both(boxes)))(boxes)
    image, most = np.float64(features[0]), 4 * np.abs(features).max()
    aligned, plain = (np.stack([pooled(image, box, bins, scale, a) for box in boxes]) for a in (True, False))
    for actual, expected in zip(found, (plain[6:8], aligned, plain), strict=True):
        assert_close("peer", actual, expected, most)


def test_pool_of_one_texel():
    texel = np.full((1, 1, 1, 1), 3, np.float32)
    boxes = np.float32([[0, 0, 1, 1], [-0.5, -0.5, 0.5, 0.5], [3, 3, 4, 4]])
    assert jax.jit(lambda boxes: jt.nn.roi_align(texel, boxes, 1))(boxes)[:, 0, 0, 0].tolist() == [3, 3, 0]


def test_lookup_at_one_pixel_and_outside():
    volume = normal(1, 1, 1, 1, 1)
    look = jax.jit(lambda coords: jt.nn.correlation_lookup([volume, volume], coords, radius=1))
    found = look(np.zeros((1, 1, 1, 2), np.float32))
    expected = np.zeros(18, np.float32)
    expected[[4, 13]] = volume.item()
    assert_exact(found[0, 0, 0], expected)
    assert not look(np.full((1, 1, 1, 2), -9.0, np.float32)).any()


@jax.default_matmul_precision("highest")
def test_pyramid_is_of_means():
    first, second = normal(1, 2, 3, 4), normal(1, 5, 4, 4)
    pyramid = jax.jit(lambda *images: jt.nn.correlation_pyramid(*images, levels=2))(first, second)
    products = np.einsum("bhwc,bijc->bhwij", first.astype(np.float64), second) / 2
    assert_close("sum", pyramid[0], products, 8)
    means = products[:, :, :, :4].reshape(1, 2, 3, 2, 2, 2, 2).mean((4, 6))
    assert_close("sum", pyramid[1], means, 8)


def test_grid_has_the_sizes_of_instant_ngp():
    """16 levels from 16 to 2048, as in the paper, and the doubling of tiny-cuda-nn's default."""
    grid = jt.nn.MultiresolutionGrid(finest_resolution=2048)
    assert grid.resolutions == (16, 23, 31, 43, 59, 81, 112, 154, 213, 295, 407, 562, 777, 1073, 1483, 2048)
    assert grid.hashed == (False,) * 5 + (True,) * 11
    assert grid.table_sizes[:3] == (4096, 12168, 29792)
    default = jt.nn.MultiresolutionGrid(num_levels=4, ndim=2)
    assert default.scales == (15, 31, 63, 127)
    assert default.table_sizes == (256, 1024, 4096, 16384)
    assert hash(grid) == hash(jt.nn.MultiresolutionGrid(finest_resolution=2048))
    assert jax.tree.leaves(grid) == []


def test_grid_at_the_start_and_outside():
    grid = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=4, log2_hashmap_size=5)
    table = jt.nn.multiresolution_grid_init(jax.random.key(3), grid, "bfloat16")
    assert (table.shape, table.dtype) == ((48, 2), jnp.bfloat16)
    assert SPREAD == 1e-4
    assert 0.9 * SPREAD < float(abs(table).max()) <= float(jnp.bfloat16(SPREAD))
    encode = jax.jit(lambda points, table: jt.nn.multiresolution_grid(table, points, grid))
    points = jnp.float32([[9, 0.3], [99, 0.3], [0.3, 0.6], [0.9, 0.1]])
    found = encode(points, table)
    assert found.tolist() == encode(points, np.split(np.asarray(table), [16])).tolist()
    assert found.dtype == jnp.bfloat16
    assert found[0].tolist() == found[1].tolist()


def test_batches_of_planes():
    planes, points = normal(2, 3, 3, 4, 2), between(-1, 1, 2, 5, 3)
    both = lambda planes, points: (
        jt.nn.triplane(planes, points),
        jt.nn.k_planes([planes[..., k, :, :, :] for k in range(3)], points),
    )
    whole = jax.jit(both)(planes, points)
    for k in range(2):
        assert_trees_close("reordered", tuple(a[k] for a in whole), jax.jit(both)(planes[k], points[k]), 8)


def value_and_slopes(function, *args):
    """The value of a function, and its gradients for a fixed cotangent."""
    out, pullback = jax.vjp(function, *args)
    return out, pullback(jnp.cos(jnp.arange(out.size, dtype=np.float32)).reshape(out.shape).astype(out.dtype))


@functools.partial(jax.jit, static_argnums=(0, 1))
def both_values_and_slopes(ours, theirs, *args):
    return value_and_slopes(ours, *args), value_and_slopes(theirs, *args)


def plain(texture, coords, weights, axes, **options):
    read = jt.sample(texture, coords, ZEROS, **options)
    return (read * weights[..., None]).sum(axes)


@pytest.mark.parametrize("axis", [(0, 2), ()])
def test_sum_of_one_texture(axis):
    args = normal(5, 6, 3), places(4, 1, 5), places(2, 1), normal(4, 1, 5)
    ours = lambda t, x, y, w: jt.nn.sample_weighted(jt.texture2d(t), (x, y), w, ZEROS, axis=axis)
    theirs = lambda t, x, y, w: plain(jt.texture2d(t), (x, y[None]), jnp.broadcast_to(w, (4, 2, 5)), axis)
    assert_trees_close("sum", *both_values_and_slopes(ours, theirs, *args))


def test_sum_over_textures_of_several_sizes():
    """The first of `axis` chooses the texture; arrays without that axis are shared by all."""
    levels = [normal(5, 7, 2), normal(1, 1, 2)]
    args = levels, places(4, 2, 2), places(2, 1), normal(4, 2, 1)

    def ours(levels, x, y, w):
        return jt.nn.sample_weighted([jt.texture2d(t) for t in levels], (x, y), w, ZEROS, axis=(1, 2))

    def theirs(levels, x, y, w):
        parts = ((x[:, k], jnp.broadcast_to(y[k], (4, 2)), w[:, k]) for k in range(2))
        terms = (plain(jt.texture2d(t), (x, y), w, (1,)) for t, (x, y, w) in zip(levels, parts))
        return sum(terms)

    assert_trees_close("sum", *both_values_and_slopes(ours, theirs, *args))


def test_batches_and_second_order():
    """Under `vmap` over textures, and twice differentiated."""
    texels, x, w = normal(2, 5, 1), places(2, 4, 3), normal(2, 4, 3)
    cubic = jt.Sampler(filter_mode="cubic", address_mode="wrap")
    ours = lambda t, x, w: jt.nn.sample_weighted(jt.texture1d(t), (x,), w, cubic).sum()
    theirs = lambda t, x, w: (jt.sample(jt.texture1d(t), (x,), cubic)[..., 0] * w).sum()
    whole = lambda function: lambda *args: jax.vmap(function)(*args).sum()
    along = lambda f, *args: jax.jvp(jax.grad(whole(f), (0, 1, 2)), args, args)
    found, expected = jax.jit(lambda *args: [along(f, *args) for f in (ours, theirs)])(texels, x, w)
    assert_trees_close("sum", found, expected)


def test_layers():
    layers, layer = normal(3, 4, 4, 2), np.array([0, 2, 1])
    x, w = places(5, 3), normal(5, 3)

    @jax.jit
    def run(layers, x, w):
        found = jt.nn.sample_weighted(jt.texture2d_layered(layers), (x, x), w, ZEROS, layer=layer)
        read = jt.sample(jt.texture2d_layered(layers), (x, x), ZEROS, layer=jnp.broadcast_to(layer, (5, 3)))
        return found, (read * w[..., None]).sum(1)

    assert_close("sum", *run(layers, x, w), 4)


def test_dtypes(x64):
    x, w = np.float32([0.3, 0.6]), np.float32([0.5, 2])
    pairs = [("float16", "float32"), ("float32", "float16"), ("float64", "float32"), ("float32", "float64")]
    read = lambda texels, weights: jt.nn.sample_weighted(jt.texture1d(np.ones((3, 1), texels)), (x,), w.astype(weights))
    point = jt.Sampler(filter_mode="point")
    of_codes = lambda: jt.nn.sample_weighted(jt.texture1d(np.uint8([[3], [5]])), (x,), w, point)
    found, codes = jax.jit(lambda: ([read(*pair) for pair in pairs], of_codes()))()
    for (texels, _), result in zip(pairs, found):
        assert result.dtype == texels
        assert result.tolist() == [2.5]
    assert codes.dtype == np.float32
    assert codes.tolist() == [11.5]


def test_no_samples_and_numbers():
    texture = jt.texture1d(normal(4, 2))
    assert jt.nn.sample_weighted(texture, (jnp.zeros((3, 0)),), 1.0).tolist() == [[0, 0]] * 3
    assert jt.nn.sample_weighted(texture, (jnp.zeros((0, 3)),), 1.0).shape == (0, 2)
    assert jt.nn.sample_weighted(texture, (0.5,), 2, axis=()).shape == (2,)


def levels_of(*shapes):
    return [normal(*shape) for shape in shapes]


def of_pyramid_plain(levels, x, y, w):
    found = []
    for h in range(2):
        parts = [t[..., 4 * h : 4 * h + 4] for t in levels]
        terms = (plain(jt.texture2d(t), (x[:, h, k], y[:, h, k]), w[:, h, k], (1,)) for k, t in enumerate(parts))
        found.append(sum(terms))
    return jnp.stack(found, 1)


def of_chain_plain(texels, color, x, y, w, lod):
    sampler = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")
    texture = jt.build_mipmaps(jt.texture2d(texels, border_color=color))
    return (jt.sample(texture, (x, y), sampler, lod=lod) * w[..., None]).sum(0)


IN_ONE_PASS = {
    "pyramid of heads": (
        of_pyramid,
        of_pyramid_plain,
        lambda: (levels_of((5, 7, 8), (2, 3, 8), (1, 1, 8)), *(places(6, 2, 3, 2) for _ in "xy"), normal(6, 2, 3, 2)),
    ),
    "chain with a border": (
        of_chain,
        of_chain_plain,
        lambda: (normal(6, 5, 3), normal(3), places(3, 4), places(3, 4), normal(3, 4), 2 * places(3, 4)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", IN_ONE_PASS)
def test_sums_of_every_kind(case):
    ours, plainly, make = IN_ONE_PASS[case]
    args = make()
    # A slope is a difference of texels times the size of a level, up to 7.
    assert_trees_close("sum", *both_values_and_slopes(ours, plainly, *args), 4 * 7)


@pytest.mark.slow
def test_second_order_of_heads():
    args = levels_of((5, 7, 8), (2, 3, 8)), *(places(6, 2, 2, 2) for _ in "xy"), normal(6, 2, 2, 2)
    along = lambda function: jax.jvp(lambda *args: value_and_slopes(function, *args)[1], args, args)[1]
    assert_trees_close("sum", *jax.jit(lambda: (along(of_pyramid), along(of_pyramid_plain)))(), 4 * 7**2)


def test_gradients_of_many_samples():
    """More than a block of samples of a CPU, which share the values of the sum."""
    axis = (1, 2)
    args = normal(9, 8, 4), places(24, 40, 20), places(24, 40, 20), normal(24, 40, 20)
    ours = lambda t, x, y, w: jt.nn.sample_weighted(jt.texture2d(t), (x, y), w, ZEROS, axis=axis)
    theirs = lambda t, x, y, w: plain(jt.texture2d(t), (x, y), w, axis)
    # A thousand terms for each texel.
    assert_trees_close("long sum", *both_values_and_slopes(ours, theirs, *args), 64)


def test_term_by_term():
    """Levels of any sizes in the texture unit's arithmetic; a negative head is the last one."""
    sampler = jt.Sampler(address_mode="border", arithmetic="hardware")
    levels, x, y, w = IN_ONE_PASS["pyramid of heads"][2]()

    @jax.jit
    def run(levels, x, y, w):
        textures, head = [jt.texture2d(t) for t in levels], jnp.array([0, -1])[:, None, None]
        ours = jt.nn.sample_weighted(textures, (x, y), w, sampler, axis=(2, 3), head=head, num_heads=2)
        return ours, of_pyramid_plain(levels, x, y, w)

    # Two axes, whose contrast is seldom more than the largest texel.
    contrast = np.abs(w).sum((2, 3)).max() * max(float(np.abs(t).max()) for t in levels)
    assert_close("texture unit axis", *run(levels, x, y, w), 2 * contrast)


def test_the_gradient_of_a_border_color_of_heads():
    """The color has the weight of the taps outside, a fraction."""
    at, head = (np.float32([-0.3]), np.float32([2.0])), np.array([0])
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)

    def value(color):
        texture = jt.texture2d(normal(4, 4, 2), border_color=color)
        found = jt.nn.sample_weighted(texture, at, np.ones(1, np.float32), sampler, axis=(), head=head, num_heads=2)
        return found[0, 0]

    assert_close("float32", jax.jit(jax.grad(value))(np.float32(5.0)), np.float32(0.8), 1)


def test_a_head_has_its_part_of_a_border_color():
    color = np.float32([1, 2, 3, 4])
    of = lambda head: jt.nn.sample_weighted(
        jt.texture2d(normal(4, 4, 4), border_color=color),
        (np.float32([-3]), np.float32([0])),
        np.ones(1, np.float32),
        jt.Sampler(address_mode="border"),
        axis=(),
        head=np.array([head]),
        num_heads=2,
    )
    np.testing.assert_array_equal(jax.jit(lambda: jnp.concatenate([of(0), of(1)]))(), color.reshape(2, 2))


def test_tangents_of_a_chain_are_its_gradients():
    """At computed levels, forward mode takes sums of weighted derivatives; along one line, both modes agree."""
    args = 0.5 + 0.1 * normal(6, 3), *(0.5 + 0.1 * normal(3, 4) for _ in range(3))
    sampler = jt.Sampler(address_mode="border", mipmap_filter_mode="linear")

    def run(texels, x, weights, lod):
        chain = jt.build_mipmaps(jt.texture1d(texels, border_color=0.5))
        return jt.nn.sample_weighted(chain, (x,), weights, sampler, lod=lod, axis=0)

    tangents, cotangent = tuple(normal(*a.shape) for a in args), normal(4, 3)
    both = jax.jit(lambda *args: (jax.jvp(run, args, tangents)[1], jax.vjp(run, *args)[1](cotangent)))
    tangent, pulled = both(*args)
    expected = sum(np.vdot(a, b) for a, b in zip(pulled, tangents))
    assert_close("sum", np.vdot(cotangent, tangent), expected, 64)
