"""Levels of detail that derivatives choose, and places of directions on a cube, against a texture unit (tests/data)."""

import dataclasses
import functools
import zlib

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._hardware.arithmetic import reciprocal, to_face
from tests.support import recordings
from tests.support.tolerances import assert_exact

recorded = functools.partial(recordings.arrays, "derivatives_unit")
SIZE = 8192  # of the cubemap whose texels told where directions meet it
BUILD = {"1d": jt.texture1d, "2d": jt.texture2d, "3d": jt.texture3d, "cube": jt.cubemap}
# Kind, sizes, and an anisotropy; sizes that are powers of two differ in degree.
RECORDED = [
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("2d/64x64", "3d/16x16x16", "1d/64/2")),
    *("1d/64", "1d/100", "2d/100x60", "3d/32x16x8", "cube/64x64", "3d/16x16x16/2", "1d/64/16", "3d/16x16x16/16"),
]
BIASES = {2: 0.25, 16: 0.5}


@pytest.mark.parametrize("name", RECORDED)
def test_levels_of_derivatives(name):
    """Level k of the texture is k throughout, so the filter of texels does not matter.

    Sizes that are no powers of two, NaN and infinities are among them.
    """
    kind, sizes, *anisotropy = name.split("/")
    sizes = tuple(map(int, sizes.split("x")))[::-1]
    faces = (6,) if kind == "cube" else ()
    chain = tuple(
        np.full((*faces, *(max(n >> k, 1) for n in sizes), 1), k, np.float32) for k in range(max(sizes).bit_length())
    )
    sampler = jt.Sampler(address_mode="wrap", filter_mode="point", mipmap_filter_mode="linear", arithmetic="hardware")
    if anisotropy:
        most = int(anisotropy[0])
        sampler = dataclasses.replace(sampler, max_anisotropy=most, mipmap_level_bias=BIASES[most])
    coords, ddx, ddy = (tuple(recorded()[f"{name}/{part}"].T) for part in ("coords", "ddx", "ddy"))
    read = jax.jit(lambda c, x, y: jt.sample(BUILD[kind](chain), c, sampler, ddx=x, ddy=y)[:, 0])
    assert_exact(read(coords, ddx, ddy), recorded()[f"{name}/lod"] / np.float32(256))


def test_where_directions_meet_a_cube():
    """To 1/256 of a texel, under clamp: ties, short and long directions, subnormal numbers, infinities and NaN."""
    face, u, v = map(np.asarray, jax.jit(to_face)(tuple(recorded()["directions/coords"].T)))
    steps = [(np.floor(w.astype(np.float64) * 2**21) * SIZE * 256 + 2**20) // 2**21 - 128 for w in (u, v)]
    place = np.stack([face, *(np.clip(s, 0, 256 * (SIZE - 1)) for s in steps)], axis=1)
    assert_exact(place.astype(np.int32), recorded()["directions/place"])


jitted_reciprocal = jax.jit(reciprocal)


@pytest.mark.slow
def test_reciprocals_of_all_significands():
    """By the checksum of what the GPU returned."""
    numbers = np.arange(127 << 23, 128 << 23, dtype=np.int32).view(np.float32)
    found = np.asarray(jitted_reciprocal(numbers)).view(np.int32)
    assert zlib.crc32(found.astype("<i4").tobytes()) == recorded()["reciprocals/crc32"]


@pytest.mark.parametrize("exponent", [-126, -100, 50, 125])
def test_reciprocals_of_other_exponents(exponent):
    numbers = np.linspace(1, 2, 1000, endpoint=False, dtype=np.float32)
    found = jitted_reciprocal(np.ldexp(numbers, exponent))
    assert_exact(found, np.ldexp(np.asarray(jitted_reciprocal(numbers)), -exponent))
