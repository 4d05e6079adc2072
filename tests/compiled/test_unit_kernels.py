"""The kernels of bound textures: which instruction of the texture unit they have, and what they get."""

import collections
import dataclasses
import re
import types
from collections.abc import Mapping
from typing import NamedTuple

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


class Read(NamedTuple):
    """A texture, the instruction behind the results of its read with its operands behind the texture object, and how.

    Numbers come in the order of `sample`, from the fifth register on.
    """

    texture: jt.Texture
    instruction: str
    options: Mapping = types.MappingProxyType({})
    sampler: jt.Sampler = HARDWARE

    @property
    def coords(self):
        return (A, B, C)[: 3 if self.texture.kind.is_cube else self.texture.kind.ndim]


READS = {
    "1d": Read(jt.texture1d(texels(6, 2)), "level.1d.v4.f32 {%5}, 0f00000000"),
    "2d": Read(IMAGE, "level.2d.v4.f32 {%5, %6}, 0f00000000"),
    "3d": Read(jt.texture3d(texels(3, 4, 6, 1)), "level.3d.v4.f32 {%5, %6, %7, %7}, 0f00000000"),
    "1d_layered": Read(jt.texture1d_layered(texels(2, 6, 2)), "level.a1d.v4.f32 {%6, %5}, 0f00000000", LAYER),
    "2d_layered": Read(
        jt.texture2d_layered(texels(2, 4, 6, 1)), "level.a2d.v4.f32 {%7, %5, %6, %6}, 0f00000000", LAYER
    ),
    "cubemap": Read(CUBE, "level.cube.v4.f32 {%5, %6, %7, %7}, 0f00000000"),
    "cubemap_layered": Read(
        jt.cubemap_layered(texels(2, 6, 4, 4, 1)), "level.acube.v4.f32 {%8, %5, %6, %7}, 0f00000000", LAYER
    ),
    "unsigned": Read(jt.texture2d(BYTES), "level.2d.v4.u32 {%5, %6}, 0f00000000", sampler=POINT),
    "signed": Read(jt.texture3d(SHORTS), "level.3d.v4.s32 {%5, %6, %7, %7}, 0f00000000", sampler=POINT),
    "fractions": Read(
        jt.texture2d(BYTES),
        "level.2d.v4.f32 {%5, %6}, 0f00000000",
        sampler=dataclasses.replace(HARDWARE, read_mode="normalized_float"),
    ),
    "chain, no level": Read(CHAIN, "2d.v4.f32 {%5, %6}", sampler=MIPMAPS),
    "chain, level": Read(CHAIN, "level.2d.v4.f32 {%5, %6}, %7", LOD, MIPMAPS),
    "chain of layers, level": Read(LAYERED_CHAIN, "level.a2d.v4.f32 {%7, %5, %6, %6}, %8", LAYER | LOD, MIPMAPS),
    "chain, footprint": Read(CHAIN, "grad.2d.v4.f32 {%5, %6}, {%7, %8}, {%9, %10}", footprint(2), MIPMAPS),
    "chain of layers, footprint": Read(
        LAYERED_CHAIN, "grad.a2d.v4.f32 {%7, %5, %6, %6}, {%8, %9}, {%10, %11}", LAYER | footprint(2), MIPMAPS
    ),
    "chain of a line, footprint": Read(LINE_CHAIN, "grad.1d.v4.f32 {%5}, {%6}, {%7}", footprint(1), MIPMAPS),
    "chain of a volume, footprint": Read(
        VOLUME_CHAIN, "grad.3d.v4.f32 {%5, %6, %7, %7}, {%8, %9, %10, %10}, {%11, %12, %13, %13}", footprint(3), MIPMAPS
    ),
    "chain of a cube, level": Read(CUBE_CHAIN, "level.cube.v4.f32 {%5, %6, %7, %7}, %8", LOD, MIPMAPS),
    "chain of a cube, footprint": Read(
        CUBE_CHAIN, "grad.cube.v4.f32 {%5, %6, %7, %7}, {%8, %9, %10, %10}, {%11, %12, %13, %13}", footprint(3), MIPMAPS
    ),
    "long footprint": Read(IMAGE, "grad.2d.v4.f32 {%5, %6}, {%7, %8}, {%9, %10}", footprint(2), LONG),
    # With one level and one read there is nothing to choose.
    "one level, level": Read(IMAGE, "level.2d.v4.f32 {%5, %6}, 0f00000000", LOD),
    "one level, footprint": Read(IMAGE, "level.2d.v4.f32 {%5, %6}, 0f00000000", footprint(2)),
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
        textures = {name: bound(row.texture, row.sampler, keep) for name, row in READS.items()}

        def run(textures):
            return [jt.sample(textures[name], row.coords, **row.options) for name, row in READS.items()]

        kernels, results = kernels_of(run, textures)
        sources.append([kernel.source for kernel in kernels])
    assert sources[0] == sources[1]
    for (name, row), kernel, result in zip(READS.items(), kernels, results, strict=True):
        with named(name):
            assert instructions(kernel) == [f"tex.{row.instruction}"]
            assert kernel.source.count("= texture_object(") == 1
            # A level that nothing depends on is no argument.
            used = () if name.startswith("one level") else (*row.options.values(),)
            assert len(arguments(kernel)) == 1 + len(row.coords) + len(jax.tree.leaves(used))
            declared, called = re.findall(r"\b(?:read_\w+)\((.*?)\)[ ;]", kernel.source)
            assert declared.count(",") == called.count(",") == len(row.coords) + len(jax.tree.leaves(used))
            expected = jax.eval_shape(
                lambda t, row=row: jt.sample(t, row.coords, row.sampler, **row.options), row.texture
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
