"""The kernels of bound textures: which instruction of the texture unit they have, and what they get."""

import collections
import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.host_kernels import noted_kernels
from tests.support.tolerances import named

pytestmark = pytest.mark.usefixtures("on_a_cpu")

HARDWARE = jt.Sampler(arithmetic="hardware")
POINT = jt.Sampler(arithmetic="hardware", filter_mode="point")
LONG = jt.Sampler(arithmetic="hardware", max_anisotropy=4)
MIPMAPS = jt.Sampler(arithmetic="hardware", mipmap_filter_mode="linear")
SAMPLES = 5
A, B, C = (np.linspace(0.1, 0.9, SAMPLES, dtype=np.float32) + np.float32(k / 16) for k in range(3))
LAYER = {"layer": np.int32([0, 1, 1, 0, 5])}
LOD = {"lod": A}


def texels(*shape, dtype=np.float32):
    """On a CPU, also where there is a GPU, so that textures are bound there."""
    return jax.device_put(np.arange(np.prod(shape)).reshape(shape).astype(dtype), jax.devices("cpu")[0])


def footprint(ndim):
    return {"ddx": (A, B, C)[:ndim], "ddy": (C, A, B)[:ndim]}


IMAGE, CUBE = jt.texture2d(texels(4, 6, 2)), jt.cubemap(texels(6, 4, 4, 1))
CHAIN, CUBE_CHAIN = jt.build_mipmaps(IMAGE), jt.build_mipmaps(CUBE)
LINE_CHAIN = jt.build_mipmaps(jt.texture1d(texels(6, 1)))
LAYERED_CHAIN = jt.build_mipmaps(jt.texture2d_layered(texels(2, 4, 6, 1)))
VOLUME_CHAIN = jt.build_mipmaps(jt.texture3d(texels(4, 4, 6, 1)))
BYTES, SHORTS = texels(4, 6, 1, dtype=np.uint8), texels(2, 4, 6, 1, dtype=np.int16)
# Of each read: the texture, the sampler, how many coordinates, the options, and the instruction behind its results,
# with the operands behind the texture object. Numbers come in the order of `sample`, from the fifth register on.
READS = {
    "1d": (jt.texture1d(texels(6, 2)), HARDWARE, 1, {}, "level.1d.v4.f32 {%5}, 0f00000000"),
    "2d": (IMAGE, HARDWARE, 2, {}, "level.2d.v4.f32 {%5, %6}, 0f00000000"),
    "3d": (jt.texture3d(texels(3, 4, 6, 1)), HARDWARE, 3, {}, "level.3d.v4.f32 {%5, %6, %7, %7}, 0f00000000"),
    "1d_layered": (
        jt.texture1d_layered(texels(2, 6, 2)),
        HARDWARE,
        1,
        LAYER,
        "level.a1d.v4.f32 {%6, %5}, 0f00000000",
    ),
    "2d_layered": (
        jt.texture2d_layered(texels(2, 4, 6, 1)),
        HARDWARE,
        2,
        LAYER,
        "level.a2d.v4.f32 {%7, %5, %6, %6}, 0f00000000",
    ),
    "cubemap": (CUBE, HARDWARE, 3, {}, "level.cube.v4.f32 {%5, %6, %7, %7}, 0f00000000"),
    "cubemap_layered": (
        jt.cubemap_layered(texels(2, 6, 4, 4, 1)),
        HARDWARE,
        3,
        LAYER,
        "level.acube.v4.f32 {%8, %5, %6, %7}, 0f00000000",
    ),
    "unsigned": (jt.texture2d(BYTES), POINT, 2, {}, "level.2d.v4.u32 {%5, %6}, 0f00000000"),
    "signed": (jt.texture3d(SHORTS), POINT, 3, {}, "level.3d.v4.s32 {%5, %6, %7, %7}, 0f00000000"),
    "fractions": (
        jt.texture2d(BYTES),
        dataclasses.replace(HARDWARE, read_mode="normalized_float"),
        2,
        {},
        "level.2d.v4.f32 {%5, %6}, 0f00000000",
    ),
    "chain, no level": (CHAIN, MIPMAPS, 2, {}, "2d.v4.f32 {%5, %6}"),
    "chain, level": (CHAIN, MIPMAPS, 2, LOD, "level.2d.v4.f32 {%5, %6}, %7"),
    "chain of layers, level": (LAYERED_CHAIN, MIPMAPS, 2, LAYER | LOD, "level.a2d.v4.f32 {%7, %5, %6, %6}, %8"),
    "chain, footprint": (CHAIN, MIPMAPS, 2, footprint(2), "grad.2d.v4.f32 {%5, %6}, {%7, %8}, {%9, %10}"),
    "chain of layers, footprint": (
        LAYERED_CHAIN,
        MIPMAPS,
        2,
        LAYER | footprint(2),
        "grad.a2d.v4.f32 {%7, %5, %6, %6}, {%8, %9}, {%10, %11}",
    ),
    "chain of a line, footprint": (LINE_CHAIN, MIPMAPS, 1, footprint(1), "grad.1d.v4.f32 {%5}, {%6}, {%7}"),
    "chain of a volume, footprint": (
        VOLUME_CHAIN,
        MIPMAPS,
        3,
        footprint(3),
        "grad.3d.v4.f32 {%5, %6, %7, %7}, {%8, %9, %10, %10}, {%11, %12, %13, %13}",
    ),
    "chain of a cube, level": (CUBE_CHAIN, MIPMAPS, 3, LOD, "level.cube.v4.f32 {%5, %6, %7, %7}, %8"),
    "chain of a cube, footprint": (
        CUBE_CHAIN,
        MIPMAPS,
        3,
        footprint(3),
        "grad.cube.v4.f32 {%5, %6, %7, %7}, {%8, %9, %10, %10}, {%11, %12, %13, %13}",
    ),
    "long footprint": (IMAGE, LONG, 2, footprint(2), "grad.2d.v4.f32 {%5, %6}, {%7, %8}, {%9, %10}"),
    # With one level and one read there is nothing to choose.
    "one level, level": (IMAGE, HARDWARE, 2, LOD, "level.2d.v4.f32 {%5, %6}, 0f00000000"),
    "one level, footprint": (IMAGE, HARDWARE, 2, footprint(2), "level.2d.v4.f32 {%5, %6}, 0f00000000"),
}


def bound(texture, sampler=HARDWARE, keep=True):
    """As if there were a texture unit."""
    made = jt.unit.bind(texture, sampler)
    handle = jnp.asarray([64, 0, 1], jnp.uint32)
    return dataclasses.replace(made, handle=handle, texels=made.texels if keep else None)


def kernels_of(function, *args):
    """The kernels of a program, and the types of its results."""
    with noted_kernels() as kernels:
        lowered = jax.jit(function).lower(*args)
    return kernels, lowered.out_info


def instructions(kernel):
    """Without the type of coordinates, the results and the texture object, which are the same in all."""
    found = re.findall(r'asm\("(t(?:ex|ld4).*?);"', kernel.source)
    return [re.sub(r"\.f32 \{%0, %1, %2, %3\}, \[%4, (.*?)\]", r" \1", text) for text in found]


def arguments(kernel):
    declared = re.search(r"__launch_bounds__\(\d+\) \w+\((.*?)\)", kernel.source)[1]
    return [one for one in declared.split(", ") if one.startswith("const ")]


def test_each_read_is_one_instruction_that_gets_no_texels():
    """With and without kept texels, which the kernel does not get: a handle, and the numbers of the samples."""
    sources = []
    for keep in (True, False):
        textures = {name: bound(texture, sampler, keep) for name, (texture, sampler, *_) in READS.items()}

        def run(textures):
            return [jt.sample(textures[name], (A, B, C)[:n], **how) for name, (_, _, n, how, _) in READS.items()]

        kernels, results = kernels_of(run, textures)
        sources.append([kernel.source for kernel in kernels])
    assert sources[0] == sources[1]
    for (name, row), kernel, result in zip(READS.items(), kernels, results, strict=True):
        texture, sampler, ndim, options, instruction = row
        with named(name):
            assert instructions(kernel) == [f"tex.{instruction}"]
            assert kernel.source.count("= texture_object(") == 1
            # A level that nothing depends on is no argument.
            used = {} if name.startswith("one level") else options
            assert len(arguments(kernel)) == 1 + ndim + len(jax.tree.leaves(used))
            declared, called = re.findall(r"\b(?:read_\w+)\((.*?)\)[ ;]", kernel.source)
            assert declared.count(",") == called.count(",") == ndim + len(jax.tree.leaves(used))
            expected = jax.eval_shape(
                lambda t, s=sampler, n=ndim, o=options: jt.sample(t, (A, B, C)[:n], s, **o), texture
            )
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def test_gathers():
    """One instruction for each component; of integers as they are stored, and of float16."""
    integers = bound(jt.texture2d(texels(4, 6, 3, dtype=np.int8)), POINT, keep=False)
    halves = bound(jt.texture2d(texels(4, 6, 4, dtype=np.float16)), keep=False)
    run = lambda a, b: [jt.gather(a, (A, B), component=1), *(jt.gather(b, (A, B), component=k) for k in range(4))]
    kernels, results = kernels_of(run, integers, halves)
    expected = ["g.2d.v4.s32", *(f"{component}.2d.v4.f32" for component in "rgba")]
    assert [instructions(kernel) for kernel in kernels] == [[f"tld4.{name} {{%5, %6}}"] for name in expected]
    assert [(a.shape, a.dtype.name) for a in results] == [((SAMPLES, 4), "int8")] + [((SAMPLES, 4), "float16")] * 4


def test_a_function_of_one_sample_is_one_kernel():
    """Its reads of a texture share what the handle names: in a loop, too, and at places that follow from reads."""
    first, second = bound(IMAGE, keep=False), bound(CHAIN, MIPMAPS, keep=False)

    def marched(x, y, first, second):
        start = jt.sample(first, (x, y)) + jt.sample(first, (y, x))

        def turn(k, total):
            place = x + 0.01 * total[0] + 0.1 * jnp.float32(k), y
            return total + jt.sample(first, place) + jt.sample(second, place, lod=total[1])

        return jax.lax.fori_loop(0, 100, turn, start)

    (kernel,), result = kernels_of(jt.fused_vmap(marched, (0, 0, None, None)), A, B, first, second)
    assert result.shape == (SAMPLES, 2)
    assert instructions(kernel) == [
        "tex.level.2d.v4.f32 {%5, %6}, 0f00000000",
        "tex.level.2d.v4.f32 {%5, %6}, %7",
    ]
    calls = collections.Counter(re.findall(r"= (texture_object|read_\w+)\(", kernel.source))
    assert calls.pop("texture_object") == 2
    assert sorted(calls.values()) == [1, 3]  # with a level, and of one level
    assert len(arguments(kernel)) == 4

    pixel = lambda j, i, t: jt.sample(t, (0.1 * i.astype(np.float32), 0.1 * j.astype(np.float32)))
    (kernel,), result = kernels_of(jt.fused_map(pixel, (7, 9)), first)
    assert (result.shape, len(arguments(kernel))) == ((7, 9, 2), 3)  # with the numbers of columns and of rows


def test_maps_over_samples_are_one_kernel():
    """By `jax.vmap`, over layers, too; a texture that is read in another way is read from its texels."""
    layers = bound(jt.texture2d_layered(texels(2, 4, 6, 1)), keep=True)
    of_layer = lambda t, layer: jt.sample(t, (A[:, None], B), layer=layer)
    (kernel,), result = kernels_of(jax.vmap(of_layer, (None, 0)), layers, np.arange(2))
    assert (result.shape, len(arguments(kernel))) == ((2, SAMPLES, SAMPLES, 1), 4)
    assert instructions(kernel) == ["tex.level.a2d.v4.f32 {%7, %5, %6, %6}, 0f00000000"]
    other = dataclasses.replace(HARDWARE, address_mode="border")
    kernels, _ = kernels_of(lambda t: jt.sample(t, (A, B), other, layer=0), layers)
    assert not [text for kernel in kernels for text in instructions(kernel)]
