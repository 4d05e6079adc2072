"""A part of a texture in three arrays: kernels, and the forms for other devices, agree with a read of one array."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_kernels import kernels_on_cpu
from tolerances import assert_exact, assert_trees_close

import jaxtex as jt
from jaxtex._arguments import ReadArguments
from jaxtex._engine.axis import Stored, start_axis
from jaxtex._engine.distributed import edged_reads
from jaxtex._engine.distributed.cut import Cut
from jaxtex._engine.float_arithmetic import FLOAT
from jaxtex._engine.grids import Started
from jaxtex._engine.lowering.parts import Edged
from jaxtex._engine.plan import layout_of, plan_of_grid
from jaxtex._reads import plan_of_call
from jaxtex._tables.storage_formats import Decoding
from jaxtex.warp.grids import affine, pixel_centers

# Four devices store eight rows each, of 32, 31 of which are texels. This is the one whose part follows row 8.
CUT, REACH, FIRST = Cut(0, 0, ("rows",), 4, 31), 3, 8 - 3
SAMPLES = 17, 9


def drawn(seed, *shape, low=0.0, high=1.0):
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, shape), np.float32)


def part(sampler, channels=2, dtype=np.float32, shape=(31, 10), decoding=Decoding.ELEMENT):
    """A texture, the part of it in three arrays, the operands of a read of both, and the specs of these reads."""
    texels = (drawn(0, *shape, channels) * (1 if dtype == np.float32 else 255)).astype(dtype)
    texture = (jt.texture2d if len(shape) == 2 else jt.texture3d)(texels)
    # Most samples lie in the part and its edges; they are in texels.
    low, high = FIRST - 1, FIRST + 8 + 2 * REACH + 1
    along = drawn(1, *SAMPLES, low=low, high=high)
    coords = [drawn(2 + k, *SAMPLES, low=-3, high=13) for k in range(len(shape) - 1)]
    given = plan_of_call(FLOAT, layout_of(texture), ReadArguments((*coords, along)), sampler)
    spec = given.spec(decoding, np.dtype("float32"))
    whole, operands = spec, list(given.operands)
    stored, (first, *rest) = Stored(8 + 2 * REACH, CUT.circle), spec.axes
    spec = dataclasses.replace(spec, axes=(start_axis(stored), first._replace(stored=stored), *rest))
    start = jnp.full((1, 1), FIRST, jnp.int32)
    before, own, after = (texels[FIRST:8], texels[8:16], texels[16:19])
    return texels, Edged(own, before, after), [start, *operands], spec, whole


SAMPLERS = {
    "wrap": jt.Sampler(address_mode="wrap", normalized_coords=False),
    "border": jt.Sampler(address_mode="border", filter_mode="cubic", normalized_coords=False),
    "point": jt.Sampler(address_mode="clamp", filter_mode="point", normalized_coords=False),
    "mirror": jt.Sampler(address_mode="mirror", filter_mode="bspline", normalized_coords=False),
}
CASES = {
    "wrap": {"channels": 4},
    "border": {"channels": 1},
    "point": {"channels": 3, "dtype": np.uint8, "decoding": Decoding.FRACTION},
    "mirror": {"channels": 5, "shape": (31, 5, 6)},
}


@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    """Values, marks, tangents, and cotangents of texels and operands, by kernels of a GPU or compiled as C++."""
    texels, edged, operands, spec, whole = part(SAMPLERS[name], **CASES[name])
    held = np.asarray(edged_reads.holds(spec, operands))
    assert 0.2 < held.mean() < 0.95
    moves = texels.dtype == np.float32
    cotangent = drawn(9, *held.shape, texels.shape[-1])

    def run(cotangent, *args):
        given, (start, *coords) = args[:3], args[3:]
        read = lambda given, coords: edged_reads.read(Edged(*given), [start, *coords], spec)
        out, pull = jax.vjp(read, given, coords) if moves else (read(given, coords), None)
        found = {}
        if pull is not None:
            found["both"] = pull(cotangent)
            found["texels"] = jax.vjp(lambda given: read(given, coords), given)[1](cotangent)
            found["coords"] = jax.vjp(lambda coords: read(given, coords), coords)[1](cotangent)
        return out, found

    plain = jax.jit(run)(cotangent, *edged, *operands)
    with kernels_on_cpu():
        program = jax.jit(lambda *args: run(*args)).lower(cotangent, *edged, *operands)
    if jax.default_backend() == "cpu":
        assert program.as_text().count("callback") >= (5 if moves else 2)
    found = program.compile()(cotangent, *edged, *operands)
    out, found = found
    assert_exact(np.isnan(out).all(-1), ~held)
    assert_trees_close("sum", (np.asarray(out)[held], found), (np.asarray(plain[0])[held], plain[1]), 2**6)

    # The same as the whole texture gives, with no cotangent where texels are missing.
    of_whole = jax.jit(lambda t, *coords: edged_reads.bind(edged_reads.read_p, t, *coords, spec=whole, batch=0))
    expected, pull = jax.vjp(of_whole, texels, *operands[1:]) if moves else (of_whole(texels, *operands[1:]), None)
    assert_trees_close("sum", np.asarray(out)[held], np.asarray(expected)[held], 2**6)
    if pull is not None:
        of_texels, *of_coords = pull(jnp.where(held[..., None], cotangent, 0))
        own, before, after = found["both"][0]
        assert_trees_close("sum", jnp.concatenate([before, own, after]), of_texels[FIRST : FIRST + 14], 2**6)
        assert_trees_close("sum", found["both"][1], list(of_coords), 2**6)
        assert_trees_close("sum", found["texels"][0], found["both"][0], 2**6)


# Texels can invert the first, and so find their samples. Windows add those of the second.
MATRICES = {"a turn": [[0.99, -0.12, 0.7], [0.12, 0.99, -1.4]], "a line": [[0.4, 0.0, 2.3], [0.4, 0.0, 9.1]]}


@pytest.mark.parametrize(("name", "number"), [("a turn", 0), ("a turn", 1), ("a turn", 3), ("a line", 1)])
def test_affine_grids(name, number):
    """Texels look for their samples: those of a device, among its own samples. All results of kernels agree."""
    own, reach, sizes, channels = 16, 5, (64, 40), 4
    stored = Stored(own + 2 * reach, 64 + reach)
    texels = jnp.pad(drawn(3, *sizes, channels), [(reach, reach), (0, 0), (0, 0)])
    x, y = pixel_centers((own, sizes[1]))
    matrix = [jnp.full((1, 1), e, jnp.float32) for row in MATRICES[name] for e in row]
    sampler = jt.Sampler(address_mode="border", normalized_coords=False)
    plan = plan_of_grid(layout_of(jt.texture2d(texels)), affine, (x, y, *matrix), sampler, 2)
    spec, first = plan.spec(Decoding.ELEMENT, np.dtype("float32")), number * own
    along, across = spec.axes
    axes = start_axis(stored), along._replace(size=sizes[0], stored=stored), across
    spec = dataclasses.replace(spec, axes=axes, grid=Started(spec.grid, False))
    operands = [jnp.full((1, 1), (first - reach) % stored.circle, jnp.int32), x, y + first, *matrix]
    before, *_ = edged = [
        texels[first : first + reach],
        texels[first + reach :][:own],
        texels[first + reach + own :][:reach],
    ]
    given = edged[1], before, edged[2]
    held, cotangent = np.asarray(edged_reads.holds(spec, operands)), drawn(9, own, sizes[1], channels)
    assert 0.3 < held.mean() <= 1

    def run(cotangent, given, matrix):
        read = lambda given, matrix: edged_reads.read(Edged(*given), [*operands[:3], *matrix], spec)
        out, pull = jax.vjp(read, given, matrix)
        return out, pull(cotangent), jax.vjp(lambda given: read(given, matrix), given)[1](cotangent)

    args = cotangent, given, matrix
    (plain, *expected) = jax.jit(run)(*args)
    with kernels_on_cpu():
        program = jax.jit(lambda *args: run(*args)).lower(*args)
    (out, *found) = program.compile()(*args)
    assert "optimization_barrier" in program.as_text()  # texels look for their samples
    assert_exact(np.isnan(out).all(-1), ~held)
    assert_trees_close("sum", np.asarray(out)[held], np.asarray(plain)[held], 2**6)
    # Those of the matrix are sums over all samples of products with the numbers of pixels.
    assert_trees_close("sum", (found[0][0], found[1]), (expected[0][0], expected[1]), 2**6)
    assert_trees_close("sum", found[0][1], expected[0][1], 2**11)


def test_derivatives_of_second_order_and_batches():
    texels, _, operands, spec, whole = part(SAMPLERS["wrap"])
    start, *coords = operands
    held = lambda coords: edged_reads.holds(spec, [start, *coords])[..., None]

    def of_part(texels, *coords):
        given = Edged(texels[8:16], texels[FIRST:8], texels[16 : FIRST + 14])
        return jnp.where(held(coords), edged_reads.read(given, [start, *coords], spec), 0)

    def of_whole(texels, *coords):
        return jnp.where(held(coords), edged_reads.bind(edged_reads.read_p, texels, *coords, spec=whole, batch=0), 0)

    def second(function):
        gradient = jax.grad(lambda *args: jnp.sum(function(*args) ** 3), (0, 1, 2))
        return jax.jit(lambda *args: jax.jvp(gradient, args, tuple(jnp.flip(a, 0) for a in args)))

    args = texels, *coords
    assert_trees_close("sum", second(of_part)(*args), second(of_whole)(*args), 2**10)
    several = tuple(jnp.stack([a, a * 0.9]) for a in args)
    assert_trees_close("sum", jax.jit(jax.vmap(of_part))(*several), jax.jit(jax.vmap(of_whole))(*several), 2**6)
