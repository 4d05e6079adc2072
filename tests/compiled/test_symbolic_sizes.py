"""Exported programs of batches, and of samples, of any number: they compute what calls of each number compute.

A program is exported once, with the symbolic size "b", and called with one example and with three. Values and gradients
are compared with those of calls with these sizes. The sweep takes every public function of arrays, as it is where it
takes a batch or samples by itself, and else under `jax.vmap`; it compares tangents too, and lowers for GPUs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex.layers.nnx import SpatialTransformer
from tests.devices.test_meshes import ALL, HELD, SMOOTH, assert_close_by_name, batches, examples, with_gradients
from tests.house.public_calls import C, H, W
from tests.lowered.programs import Call
from tests.support.arrays import drawn

SIZES = 1, 3
pytestmark = pytest.mark.filterwarnings("ignore:jaxtex. this jaxlib adds float32 numbers on a GPU in a slow loop")


# Programs


def forward(function, args, wrt):
    """The tangents of all results that float, along the moving arguments themselves."""

    def run(*moving):
        given = dict(zip(wrt, moving))
        results = jax.tree.leaves(function(*(given.get(k, a) for k, a in enumerate(args))))
        return [a for a in results if jnp.issubdtype(a.dtype, jnp.inexact)]

    moving = [args[k] for k in wrt]
    return jax.jvp(run, moving, moving)[1] if moving else []


def derived(call, sweep):
    """A function that returns values, and gradients, in a sweep with tangents."""

    def run(*args):
        values, gradients = with_gradients(call.function, args, call.wrt)
        return values, [*gradients, *(forward(call.function, args, call.wrt) if sweep else [])]

    return run


def exported(function, args, axes, platforms):
    """The program whose arguments have the symbolic size along their axes; `None` is no axis."""
    (b,) = jax.export.symbolic_shape("b")

    def of_any_size(a, axis):
        return jax.ShapeDtypeStruct([b if k == axis else n for k, n in enumerate(a.shape)], a.dtype)

    return jax.export.export(jax.jit(function), platforms=platforms)(*map(of_any_size, args, axes))


def compare(calls, axes, args_of, *, sweep=True):
    """One program of several calls by name, for any size and for each; `args_of(n)` are the arguments by name."""
    functions = {name: derived(call, sweep) for name, call in calls.items()}
    names, counts = [*calls], [len(call.args) for call in calls.values()]

    def together(*args):
        given = iter(args)
        return [functions[name](*(next(given) for _ in range(count))) for name, count in zip(names, counts)]

    flat = lambda by_name: [a for name in names for a in by_name[name]]
    program = exported(together, flat(args_of(SIZES[0])), flat(axes), ("cpu", "cuda") if sweep else ("cpu",))
    for n in SIZES:
        args = flat(args_of(n))
        found, wanted = (dict(zip(names, run(*args))) for run in (program.call, jax.jit(together)))
        assert_close_by_name(found, wanted)


# One of each kind


class Case(NamedTuple):
    """A function of floating arrays.

    Attributes:
        shapes: of its arguments, in which "b" is the symbolic size.
        ranges: of the numbers of arguments that are not between 0 and 1, by their positions.
    """

    function: Callable
    shapes: tuple
    ranges: dict | None = None

    def args(self, n):
        shapes = [[n if size == "b" else size for size in shape] for shape in self.shapes]
        return [drawn(k, *shape, **(self.ranges or {}).get(k, {})) for k, shape in enumerate(shapes)]

    @property
    def axes(self):
        return [shape.index("b") if "b" in shape else None for shape in self.shapes]


def within(low, high):
    return {"low": low, "high": high}


def footprints(texels, x, y, side):
    chain = jt.build_mipmaps(jt.texture2d(texels))
    sampler = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=2)
    return jt.sample(chain, (x, y), sampler, ddx=(side, 0 * side), ddy=(0 * side, 2 * side))


def written(texels, values, x, y):
    index = [jnp.floor(4 * a).astype(jnp.int32) for a in (x, y)]
    return jt.surface_write(jt.texture2d(texels), values, index).texels


def pooled(features, boxes):
    """Of two boxes in each of a symbolic number of images."""
    number = jnp.arange(boxes.shape[0], dtype=jnp.int32) // 2
    return jt.nn.roi_align(features, boxes, (2, 2), batch_indices=number)


def of_pixels(images, shifts):
    """A grid of as many images as there are, mapped over its first axis."""

    def pixel(image, y, x, texels, shift):
        x, y = (index.astype(jnp.float32) + 0.5 for index in (x, y))
        return jt.sample(jt.texture2d(texels), ((x + shift) / W, y / H))

    run = jt.fused_map(pixel, (images.shape[0], H, W), in_axes=0)
    return run(images[:, None, None], shifts[:, None, None])


def in_a_loop(texels, x, y):
    def one(x, y, texels):
        def step(total, k):
            return total + jt.sample(jt.texture2d(texels), (x, y + 0.1 * k))[0], None

        return jax.lax.scan(step, jnp.zeros((), jnp.float32), jnp.arange(3, dtype=jnp.float32))[0]

    return jt.fused_vmap(one, (0, 0, None))(x, y, texels)


LAYER = SpatialTransformer(lambda images: images.reshape(images.shape[0], -1)[:, :C], C, (3, 3), "affine")
IMAGE, IMAGES, SAMPLES = (H, W, C), ("b", H, W, C), ("b",)
ENDS = {1: within(0, 2), 2: within(3, 5)}
GROUPS = {
    "reads": {
        "sample": Case(lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y)), (IMAGE, SAMPLES, SAMPLES)),
        "splat": Case(lambda values, x, y: jt.splat(values, (x, y), IMAGE).texels, (("b", 5, C), ("b", 5), ("b", 1))),
        "surface_write": Case(written, (IMAGE, ("b", C), SAMPLES, SAMPLES)),
        "composite": Case(lambda *args: jt.rays.composite(*args, num_samples=2), (IMAGE, ("b", 2), ("b", 2)), ENDS),
    },
    "images": {
        "warp_affine": Case(jt.warp.warp_affine, (IMAGES, ("b", 2, 3)), {1: within(-1, 1)}),
        "grid_sample": Case(
            lambda image, grid: jt.warp.grid_sample(image, grid, data_format="NCHW"),
            (("b", C, H, W), ("b", 3, 2, 2)),
            {1: within(-1, 1)},
        ),
        "SpatialTransformer": Case(lambda images: LAYER(images), (IMAGES,)),
        "fused_map": Case(of_pixels, (IMAGES, SAMPLES)),
    },
}


def call_of(case):
    args = case.args(SIZES[0])
    return Call(case.function, tuple(args), tuple(range(len(args))))


def compare_cases(cases, **how):
    calls = {name: call_of(case) for name, case in cases.items()}
    axes = {name: case.axes for name, case in cases.items()}
    compare(calls, axes, lambda n: {name: case.args(n) for name, case in cases.items()}, **how)


@pytest.mark.parametrize("group", GROUPS)
def test_a_program_of_any_size(group):
    compare_cases(GROUPS[group], sweep=False)


# What has a form of its own.


def layers_of(texels, x, y):
    """Reads of a symbolic number of layers."""
    layer = jnp.int32([0, 1, -1, 2])
    sampler = jt.Sampler(address_mode=("wrap", "border"))
    return jt.sample(jt.texture2d_layered(texels, border_color=0.5), (x, y), sampler, layer=layer)


def two_batches(images, matrices):
    return jt.warp.warp_affine(images, matrices, antialias=True)


MORE = {
    "footprints": Case(footprints, (IMAGE, SAMPLES, SAMPLES, SAMPLES)),
    "points": Case(jt.ndimage.map_coordinates, ((H, W), (2, "b", 4)), {1: within(-1, 6)}),
    "blocks of samples": Case(
        lambda *args: jt.rays.composite(*args, num_samples=11), (IMAGE, ("b", 2), ("b", 2)), ENDS
    ),
    "fused_vmap": Case(in_a_loop, (IMAGE, SAMPLES, SAMPLES)),
    "layers": Case(layers_of, (IMAGES, (4,), (4,))),
    "deterministic": Case(
        lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y), jt.Sampler(deterministic=True)),
        (IMAGE, SAMPLES, SAMPLES),
    ),
    "samples of grid_sample": Case(
        lambda image, grid: jt.warp.grid_sample(image, grid, data_format="NHWC"),
        ((1, *IMAGE), (1, "b", 3, 2)),
        {1: within(-1, 1)},
    ),
    "several axes": Case(two_batches, (("b", 2, *IMAGE), ("b", 1, 2, 3)), {1: within(0.5, 2)}),
    "matrices": Case(jt.warp.warp_affine, (IMAGE, ("b", 2, 3)), {1: within(-1, 1)}),
    "a line of points": Case(
        lambda image, y, x: jt.ndimage.map_coordinates(image, [y, x]), ((H, W), ("b", 1), (1, 4)), {1: within(0, 3)}
    ),
    "writes of bytes": Case(
        lambda texels, values, x, y: written((255 * texels).astype(jnp.uint8), (9 * values).astype(jnp.uint8), x, y),
        (IMAGE, ("b", C), SAMPLES, SAMPLES),
    ),
    "writes of batches": Case(
        lambda texels, values, x, y: jax.vmap(written)(texels, values, x, y), (IMAGES, ("b", 4, C), ("b", 4), ("b", 4))
    ),
    "boxes": Case(
        lambda features, boxes: pooled(features, jnp.repeat(boxes, 2, 0)), (IMAGES, ("b", 4)), {1: within(0, 4)}
    ),
    "steps": Case(lambda *args: jt.rays.maximum_intensity(*args, step=0.5), (IMAGE, ("b", 3, 2), (3, 2)), ENDS),
    "queries": Case(
        lambda *args: jt.nn.deformable_attention(args[0], ((2, 3), (1, 2)), *args[1:]),
        ((2, 8, 2, C), (2, "b", 2, 2, 3, 2), (2, "b", 2, 2, 3)),
    ),
    "samples of each head": Case(
        lambda texels, x, y, weights: jt.nn.sample_weighted(jt.texture2d(texels), (x, y), weights),
        (IMAGE, ("b", 4), ("b", 4), ("b", 4)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_a_form_of_its_own(name):
    compare_cases({name: MORE[name]})


# Every public function

# The functions that take samples or parameters of any number by themselves, and the arguments that hold them.
OF_SAMPLES = {
    **dict.fromkeys(("gather", "positions", "sample_with_derivatives", "surface_read", "footprint"), ("coords",)),
    **dict.fromkeys(("surface_write", "surface_add", "surface_min", "surface_max"), ("values", "coords")),
    "fetch": ("indices",),
    "nn.sample_weighted": ("coords", "weights"),
    "nn.multiresolution_grid": ("points",),
    "warp.distort_points": ("coords",),
    "warp.undistort_points": ("coords",),
    "warp.compose_flows": ("first", "second"),
    "warp.integrate_velocity": ("velocity",),
    "warp.flow_from_itk": ("field",),
    **dict.fromkeys(("warp.invert_flow", "warp.jacobian_determinant"), ("flow",)),
    **dict.fromkeys(("warp.matrix_from_opencv", "warp.matrix_from_skimage"), ("matrix",)),
    "warp.matrix_from_torch": ("theta",),
    "layers.theta_of": ("parameters",),
}
DIRECT = HELD | OF_SAMPLES


def resized(array, n):
    """`n` examples, of an array of two."""
    return array[:n] if n <= len(array) else np.concatenate([array, array[: n - len(array)]])


@pytest.mark.slow
@pytest.mark.parametrize("name", DIRECT)
def test_a_function_that_takes_a_batch(name):
    ((_, call, held),) = batches([name], DIRECT)
    args_of = lambda n: {name: [resized(a, n) if h else a for a, h in zip(call.args, held)]}
    compare({name: call}, {name: [0 if h else None for h in held]}, args_of)


# XLA finds no type for bytes of a symbolic number that are repacked into words.
REPACKED = ["block_compressed"]
# The others of a kind are among those that take a batch.
UNDER_VMAP = [name for name in ALL if name not in (*DIRECT, *SMOOTH, *REPACKED)]


@pytest.mark.slow
@pytest.mark.parametrize("name", UNDER_VMAP)
def test_every_other_function_under_vmap(name):
    call = ALL[name]
    mapped = call._replace(function=jax.vmap(lambda *args: jax.tree.leaves(call.function(*args))))
    args_of = lambda n: {name: [examples(a, n) for a in call.args]}
    compare({name: mapped}, {name: [0] * len(call.args)}, args_of)
