"""A part of a texture in three arrays: kernels, and the forms for other devices, agree with a read of one array."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.arithmetic import FLOAT
from jaxtex._engine.describe.axis import Stored
from jaxtex._engine.describe.plan import Layout, ReadArguments, plan_of_grid
from jaxtex._engine.describe.spec import Read
from jaxtex._engine.describe.storage import WithHalo
from jaxtex._engine.rules import primitives
from jaxtex._engine.rules.primitives import are_available
from jaxtex._reads.calls import plan_of_call
from jaxtex._tables.storage_formats import Decoding
from jaxtex.warp.coordinate_functions import affine, pixel_centers
from tests.support.arrays import drawn, on_host
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_exact, assert_trees_close

# Four devices store eight rows each, of 32, 31 of which are texels. This is the one whose part follows row 8.
PERIOD, REACH, FIRST = 32, 3, 8 - 3
SAMPLES = 17, 9


def part(sampler, channels=2, dtype=np.float32, shape=(31, 10), decoding=Decoding.ELEMENT):
    """A texture, the part of it in three arrays, the operands of a read of both, and the specs of these reads."""
    texels = (drawn(0, *shape, channels) * (1 if dtype == np.float32 else 255)).astype(dtype)
    texture = (jt.texture2d if len(shape) == 2 else jt.texture3d)(texels)
    # Most samples lie in the part and its edges; they are in texels.
    low, high = FIRST - 1, FIRST + 8 + 2 * REACH + 1
    along = drawn(1, *SAMPLES, low=low, high=high)
    coords = [drawn(2 + k, *SAMPLES, low=-3, high=max(13, shape[-1 - k] + 3)) for k in range(len(shape) - 1)]
    given = plan_of_call(FLOAT, Layout.of(texture), ReadArguments((*coords, along)), sampler, np.dtype(np.float32))
    spec = given.replace(decoding=decoding).spec
    whole, operands = spec, list(given.operands)
    stored, (first, *rest) = Stored(8 + 2 * REACH, PERIOD), spec.axes
    spec = dataclasses.replace(spec, axes=(first._replace(stored=stored), *rest))
    start = np.full((1, 1), FIRST, np.int32)
    before, own, after = (texels[FIRST:8], texels[8:16], texels[16:19])
    return texels, WithHalo(own, before, after), [start, *operands], spec, whole


SAMPLERS = {
    "wrap": jt.Sampler(address_mode="wrap", normalized_coords=False),
    "border": jt.Sampler(address_mode="border", filter_mode="cubic", normalized_coords=False),
    "point": jt.Sampler(address_mode="clamp", filter_mode="point", normalized_coords=False),
    "mirror": jt.Sampler(address_mode="mirror", normalized_coords=False),
    "odd rows": jt.Sampler(address_mode="wrap", normalized_coords=False),
}
CASES = {
    "wrap": {"channels": 4},
    "border": {"channels": 1},
    "point": {"channels": 3, "dtype": np.uint8, "decoding": Decoding.FRACTION},
    "mirror": {"channels": 5, "shape": (31, 5, 6)},
    "odd rows": {"channels": 1, "shape": (31, 41)},  # pairs of texels lie in two arrays
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    """Values, marks, tangents, and cotangents of texels and operands, by kernels of a GPU or compiled as C++."""
    texels, in_three, operands, spec, whole = part(SAMPLERS[name], **CASES[name])
    moves, separate = texels.dtype == np.float32, name == "wrap"
    cotangent = drawn(9, *SAMPLES, texels.shape[-1])

    def run(cotangent, *args):
        given, (start, *coords) = args[:3], args[3:]
        read = lambda given, coords: primitives.read(WithHalo(*given), None, Read(spec, (start, *coords)))
        out, pull = jax.vjp(read, given, coords) if moves else (read(given, coords), None)
        found = {}
        if pull is not None:
            found["both"] = pull(cotangent)
        if separate:
            found["texels"] = jax.vjp(lambda given: read(given, coords), given)[1](cotangent)
            found["coords"] = jax.vjp(lambda coords: read(given, coords), coords)[1](cotangent)
            found["tangent"] = jax.jvp(lambda coords: read(given, coords), (coords,), (coords,))[1]
        return out, found, are_available(spec, [start, *coords])

    *plain, held = on_host(jax.jit(run)(cotangent, *in_three, *operands))
    assert 0.2 < held.mean() < 0.95
    with kernels_on_cpu():
        program = jax.jit(lambda *args: run(*args)).lower(cotangent, *in_three, *operands)
    if jax.default_backend() == "cpu":
        assert program.as_text().count("callback") >= (5 if separate else 3 if moves else 2)
    out, found, _ = on_host(program.compile()(cotangent, *in_three, *operands))
    assert_exact(np.isnan(out).all(-1), ~held)
    assert_trees_close("sum", (out[held], found), (plain[0][held], plain[1]), 2**6)

    # The same as the whole texture gives, with no cotangent where texels are missing.
    @jax.jit
    def run_of_whole(cotangent, *args):
        read = lambda texels, *coords: primitives.read(texels, None, Read(whole, coords))
        out, pull = jax.vjp(read, *args) if moves else (read(*args), None)
        return out, pull and pull(cotangent)

    expected, pulled = on_host(run_of_whole(np.where(held[..., None], cotangent, 0), texels, *operands[1:]))
    assert_trees_close("sum", out[held], expected[held], 2**6)
    if moves:
        of_texels, *of_coords = pulled
        own, before, after = found["both"][0]
        assert_trees_close("sum", np.concatenate([before, own, after]), of_texels[FIRST : FIRST + 14], 2**6)
        assert_trees_close("sum", found["both"][1], of_coords, 2**6)
    if separate:
        assert_trees_close("sum", (*found["texels"], *found["coords"]), found["both"], 2**6)
        assert not found["tangent"][~held].any()


# Texels can invert the first, and so find their samples. Windows add those of the second.
MATRICES = {"a turn": [[0.99, -0.12, 0.7], [0.12, 0.99, -1.4]], "a line": [[0.4, 0.0, 2.3], [0.4, 0.0, 9.1]]}

OWN, AROUND, SIZES, CHANNELS = 16, 5, (64, 40), 4  # rows of a device, those of each neighbor, and of all


@functools.cache
def affine_programs():
    """Programs without and with kernels: values, and cotangents of texels and matrices, for any part of the rows.

    Also which samples have all their texels.
    """
    stored, texels = Stored(OWN + 2 * AROUND, SIZES[0] + AROUND), np.zeros((*SIZES, CHANNELS), np.float32)
    x, y = pixel_centers((OWN, SIZES[1]))
    matrix = [np.zeros((1, 1), np.float32)] * 6
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)
    plan = plan_of_grid(Layout.of(jt.texture2d(texels)), affine, (x, y, *matrix), sampler, np.dtype("float32"), 2)
    spec = plan.spec
    along, across = spec.axes
    spec = dataclasses.replace(spec, axes=(along._replace(stored=stored), across))

    def run(cotangent, given, matrix, first):
        start = jnp.full((1, 1), (first - AROUND) % stored.period, jnp.int32)
        operands = lambda matrix: [start, x, y + first.astype(jnp.float32), *matrix]
        read = lambda given, matrix: primitives.read(WithHalo(*given), None, Read(spec, operands(matrix)))
        out, pull = jax.vjp(read, given, matrix)
        cotangents = pull(cotangent), jax.vjp(lambda given: read(given, matrix), given)[1](cotangent)
        return out, are_available(spec, operands(matrix)), *cotangents

    rows = lambda count: np.zeros((count, SIZES[1], CHANNELS), np.float32)
    args = rows(OWN), (rows(OWN), rows(AROUND), rows(AROUND)), matrix, np.int32(0)
    plain = jax.jit(run)
    with kernels_on_cpu():
        program = jax.jit(lambda *args: run(*args)).lower(*args)
    assert "optimization_barrier" in program.as_text()  # texels look for their samples
    return plain, program.compile()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [("a turn", 0), ("a turn", 1), ("a turn", 3), ("a line", 1)])
def test_affine_grids(name, number):
    """Texels look for their samples: those of a device, among its own samples. All results of kernels agree."""
    texels = np.pad(drawn(3, *SIZES, CHANNELS), [(AROUND, AROUND), (0, 0), (0, 0)])
    first = number * OWN
    before, own, after = np.split(texels[first : first + OWN + 2 * AROUND], [AROUND, AROUND + OWN])
    matrix = [np.full((1, 1), e, np.float32) for row in MATRICES[name] for e in row]
    args = drawn(9, OWN, SIZES[1], CHANNELS), (own, before, after), matrix, np.int32(first)
    (plain, held, *expected), (out, _, *found) = (on_host(program(*args)) for program in affine_programs())
    assert 0.3 < held.mean() <= 1
    assert_exact(np.isnan(out).all(-1), ~held)
    assert_trees_close("sum", out[held], plain[held], 2**6)
    # Those of the matrix are sums over all samples of products with the numbers of pixels.
    assert_trees_close("sum", (found[0][0], found[1]), (expected[0][0], expected[1]), 2**6)
    assert_trees_close("sum", found[0][1], expected[0][1], 2**11)
