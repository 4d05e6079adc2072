"""Surfaces: every kind, type and boundary mode against bytes, the last of many writes, traps, and every derivative."""

import functools
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.oracles import surfaces as surface_oracle
from tests.support.derivatives import assert_derivatives
from tests.support.drawn import given, indices, integers
from tests.support.tolerances import assert_exact, assert_trees_close

MODES = ("trap", "clamp", "zero")
SHAPES = {
    # the axes of the texels, channels left out
    "1d": (7,),
    "2d": (5, 6),
    "3d": (4, 3, 5),
    "1d_layered": (3, 6),
    "2d_layered": (3, 4, 5),
    "cubemap": (6, 4, 4),
    "cubemap_layered": (2, 6, 3, 3),
}
# How many axes of each kind are counted unsigned: layers, then faces.
UNSIGNED = {"1d_layered": 1, "2d_layered": 1, "cubemap": 1, "cubemap_layered": 2}
TYPES = (("uint8", 4), ("int16", 3), ("uint32", 1), ("float16", 2), ("float32", 4), ("bfloat16", 1))
EXTREMES = (-(2**31), -(2**31) + 1, -65536, 65536, 2**30, 2**31 - 2, 2**31 - 1)
REDUCTIONS = {"add": jt.surface_add, "min": jt.surface_min, "max": jt.surface_max}


def make(kind):
    return getattr(jt, kind if kind.startswith("cubemap") else f"texture{kind}")


def draw_texels(kind, dtype, channels, seed=0):
    """Random bits; those of floats without NaN, whose bits a conversion may change."""
    rng = np.random.default_rng(seed)
    shape = (*SHAPES[kind], channels)
    if jnp.issubdtype(dtype, jnp.floating):
        return rng.normal(size=shape).astype(jnp.dtype(dtype))
    return rng.integers(0, 256, (*shape[:-1], channels * jnp.dtype(dtype).itemsize), np.uint8).view(dtype)


def draw_places(kind, n=48, seed=1):
    """Indices for each axis, slowest first: most near the surface, many on one texel, some far outside."""
    rng = np.random.default_rng(seed)
    places = [rng.integers(-2, size + 2, n, np.int64) for size in SHAPES[kind]]
    far = rng.random((len(places), n)) < 0.06
    return [np.where(f, rng.choice(EXTREMES, n), p).astype(np.int32) for f, p in zip(far, places)]


def arguments(kind, places):
    """The places as the functions take them."""
    outer = UNSIGNED.get(kind, 0)
    given = dict(zip([name for name in ("layer", "face") if f"{name[:4]}" in NAMES_OF[kind]], places[:outer]))
    return tuple(places[outer:][::-1]), given


NAMES_OF = {"1d_layered": ("laye",), "2d_layered": ("laye",), "cubemap": ("face",), "cubemap_layered": ("laye", "face")}
NAMES_OF |= {kind: () for kind in SHAPES if kind not in NAMES_OF}


def as_bytes(texels):
    texels = np.ascontiguousarray(texels)
    return texels.view(np.uint8).reshape(*texels.shape[:-2], -1)


def located(kind, texels, places):
    """The same places for the oracle: x in bytes, the other axes, and which of them are unsigned."""
    size = texels.shape[-1] * texels.itemsize
    outer = len(places) - 1
    unsigned = [k < UNSIGNED.get(kind, 0) for k in range(outer)]
    return size, places[-1].astype(np.int64) * size, places[:-1], unsigned


# ---------------------------------------------------------------------------------------------------- values


# Each kind with every second type, and in every boundary mode; each type too is accessed in every mode.
ACCESSED = [
    (kind, *of_texels, MODES[(j + k // 2) % len(MODES)])
    for j, kind in enumerate(SHAPES)
    for k, of_texels in enumerate(TYPES)
    if (j + k) % 2 == 0
]


@pytest.mark.parametrize(("kind", "dtype", "channels", "mode"), ACCESSED)
def test_accesses_equal_the_oracle_byte_for_byte(kind, dtype, channels, mode):
    """Reads, writes and, of signed numbers, add, min and max."""
    texels, places = draw_texels(kind, dtype, channels), draw_places(kind)
    coords, given = arguments(kind, places)
    values = draw_texels(kind, dtype, channels, seed=2).reshape(-1, channels)
    values = np.resize(values, (len(places[0]), channels))
    reductions = REDUCTIONS if dtype == "int16" else {}

    @jax.jit
    def everything(texels, values, coords, given):
        texture, options = make(kind)(texels), {"boundary_mode": mode, **given}
        results = {"read": jt.surface_read(texture, coords, **options)}
        for how, function in {"write": jt.surface_write, **reductions}.items():
            results[how] = function(texture, values, coords, **options).texels
        return results

    size, x, others, unsigned = located(kind, texels, places)
    rows = values.view(np.uint8).reshape(len(values), -1)
    outside = "zero" if mode == "trap" else mode
    for how, result in everything(texels, values, coords, given).items():
        if how == "read":
            expected = surface_oracle.read(as_bytes(texels), size, x, others, unsigned, outside)
        else:
            expected = surface_oracle.change(
                as_bytes(texels), rows, x, others, unsigned, outside, how, jnp.dtype(dtype)
            )
        assert result.dtype == texels.dtype
        assert_exact(np.asarray(result).view(np.uint8).reshape(expected.shape), expected)


FUZZED = 24


@functools.cache
def read_and_write(kind, mode):
    """An access of a surface of a kind as a compiled function."""

    @jax.jit
    def run(texels, values, coords, given):
        texture, options = make(kind)(texels), {"boundary_mode": mode, **given}
        return (
            jt.surface_read(texture, coords, **options),
            jt.surface_write(texture, values, coords, **options).texels,
        )

    return run


@pytest.mark.parametrize("kind", ["2d", "3d", "cubemap_layered"])
@pytest.mark.parametrize("mode", MODES)
@given(places=indices(5, FUZZED, near=(-3, 9), extremes=EXTREMES), values=integers(FUZZED, 4, low=0, high=255))
def test_no_coordinate_touches_a_wrong_texel(kind, mode, places, values):
    texels, places, values = draw_texels(kind, "uint8", 4), [*places[: len(SHAPES[kind])]], values.astype(np.uint8)
    read, written = map(np.asarray, read_and_write(kind, mode)(texels, values, *arguments(kind, places)))
    size, x, others, unsigned = located(kind, texels, places)
    mode = "zero" if mode == "trap" else mode
    assert_exact(read, surface_oracle.read(as_bytes(texels), size, x, others, unsigned, mode))
    assert_exact(as_bytes(written), surface_oracle.change(as_bytes(texels), values, x, others, unsigned, mode))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32"])
def test_indices_of_any_width_saturate(dtype):
    """What int32 does not hold is outside, not some texel that it wraps to."""
    texture = jt.texture1d(np.arange(5, dtype=np.float32)[:, None])
    x = np.array([0, 4, 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    expected = np.where((x >= 0) & (x < 5), x, 0).astype(np.float32)
    assert_exact(jt.surface_read(texture, (x,), boundary_mode="zero")[:, 0], expected)


@pytest.mark.usefixtures("x64")
def test_indices_of_64_bits_saturate():
    texture = jt.texture1d(np.arange(5, dtype=np.float32)[:, None])
    x = np.array([3, 2**32, 2**32 + 2, -(2**32), 2**63 - 1], np.int64)
    assert_exact(jt.surface_read(texture, (x,), boundary_mode="zero")[:, 0], np.float32([3, 0, 0, 0, 0]))
    written = jt.surface_write(texture, np.full((5, 1), 9, np.float32), (x,), boundary_mode="clamp")
    assert_exact(written.texels[:, 0], np.float32([9, 1, 2, 9, 9]))


@pytest.mark.parametrize(
    ("kind", "boundary_mode"), [("1d", "clamp"), ("3d", "zero"), ("2d_layered", "clamp"), ("cubemap", "zero")]
)
def test_one_level_of_a_mip_chain(kind, boundary_mode):
    """A level is a surface of its own size; the others stay as they are."""
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda t: jt.build_mipmaps(make(kind)(t)).levels, draw_texels(kind, "float32", 2))
    levels = tuple(rng.normal(size=shape.shape).astype(np.float32) for shape in shapes)
    places = [[rng.integers(-1, n + 1, 16).astype(np.int32) for n in level.shape[:-1]] for level in levels]
    values = rng.normal(size=(16, 2)).astype(np.float32)
    # Each level is written and read; sums and extremes take turns.
    writes = [(jt.surface_write, (jt.surface_add, jt.surface_max)[level % 2]) for level in range(len(levels))]

    @jax.jit
    def accesses(levels, places, values):
        chain, found = make(kind)(levels), []
        for level, functions in enumerate(writes):
            coords, given = arguments(kind, places[level])
            options = {"boundary_mode": boundary_mode, **given}
            alone = make(kind)(levels[level])
            reads = (
                jt.surface_read(chain, coords, level=level, **options),
                jt.surface_read(alone, coords, **options),
            )
            pairs = [
                (f(chain, values, coords, level=level, **options), f(alone, values, coords, **options).texels)
                for f in functions
            ]
            found.append((reads, pairs))
        return found

    for level, ((got, alone), pairs) in enumerate(accesses(levels, places, values)):
        assert_exact(got, alone)
        for changed, expected in pairs:
            chex.assert_trees_all_equal(changed.levels, (*levels[:level], expected, *levels[level + 1 :]))
            assert changed.level_shapes == tuple(stored.shape for stored in levels)


def test_texels_move_bit_for_bit():
    """NaN with its payload, infinities, -0 and subnormals."""
    bits = np.array([0x7FC12345, 0xFF812345, 0x7F800000, 0x80000000, 1, 0x807FFFFF], np.uint32)
    texture, x = jt.texture1d(bits.view(np.float32)[:, None]), np.arange(6)[::-1]
    read = jt.surface_read(texture, (x,))
    assert_exact(np.asarray(read)[:, 0].view(np.uint32), bits[::-1])
    written = jt.surface_write(jt.texture1d(jnp.zeros((6, 1))), read, (x,))
    assert_exact(np.asarray(written.texels)[:, 0].view(np.uint32), bits)


def test_halves_are_added_in_float32():
    texture = jt.texture1d(jnp.full((1, 1), 2048, jnp.float16))
    added = jt.surface_add(texture, jnp.ones((4, 1), jnp.float16), (np.zeros(4, int),))
    assert_exact(added.texels, np.array([[2052]]), np.float16)


def test_integers_wrap_around_when_added():
    texture = jt.texture1d(np.array([[250]], np.uint8))
    assert_exact(jt.surface_add(texture, 10, (0,)).texels, [[4]], np.uint8)


def test_values_broadcast_and_are_rounded_to_the_texture():
    texture = jt.texture2d(jnp.zeros((3, 4, 2), jnp.bfloat16))
    out = jt.surface_write(texture, np.float32([1 + 2**-9, 3]), (np.arange(4)[None], np.arange(3)[:, None]))
    assert_exact(np.asarray(out.texels, np.float32), np.broadcast_to(np.float32([1, 3]), (3, 4, 2)))
    assert out.dtype == jnp.bfloat16
    assert_exact(jt.surface_write(jt.texture1d(np.zeros((2, 1), np.uint8)), 7, (1,)).texels, [[0], [7]], np.uint8)


def test_the_rest_of_a_texture_is_kept():
    texture = jt.texture2d(jnp.zeros((2, 2, 1)), border_color=0.5)
    out = jt.surface_write(texture, 1.0, (0, 0))
    assert out.kind is texture.kind
    assert out.border_color is not None
    assert_exact(out.border_color, np.float32(0.5))


# --------------------------------------------------------------------------------------- many writes to one texel

# Every way in which the last write is found: by sorting, by numbers for each texel, which samples or texels then look
# up, and by numbers along each axis of a grid.
WAYS = {
    "sorted": ((64, 65), lambda rng: rng.integers(0, 3, (2, 12))),
    "numbered samples": ((16, 17), lambda rng: rng.integers(0, 5, (2, 6, 9))),
    "numbered texels": ((4, 5), lambda rng: rng.integers(-1, 6, (2, 8, 9))),
    "grid": ((4, 5), lambda rng: (rng.integers(-1, 6, (1, 9)), rng.integers(-1, 5, (8, 1)))),
    "grid, x first": ((4, 5), lambda rng: (rng.integers(-1, 6, (9, 1)), rng.integers(-1, 5, (1, 8)))),
    "row": ((1, 5), lambda rng: (rng.integers(-1, 6, 11), np.zeros((), np.int64))),
}


def draw_way(way, seed=0):
    (height, width), draw = WAYS[way]
    rng = np.random.default_rng(seed)
    x, y = (np.asarray(a, np.int32) for a in draw(rng))
    shape = np.broadcast_shapes(x.shape, y.shape)
    return rng.normal(size=(height, width, 2)), rng.normal(size=(*shape, 2)), x, y


def last_writes(texels, values, x, y, mode):
    """The texels after the writes in order, and at each texel the number of the sample that is kept, or -1."""
    shape = values.shape[:-1]
    texels, kept = texels.copy(), np.full(texels.shape[:-1], -1)
    height, width = kept.shape
    for number, at in enumerate(np.ndindex(*shape)):
        column, row = (int(np.broadcast_to(a, shape)[at]) for a in (x, y))
        if mode == "clamp":
            column, row = min(max(column, 0), width - 1), min(max(row, 0), height - 1)
        if 0 <= column < width and 0 <= row < height:
            texels[row, column], kept[row, column] = values[at], number
    return texels, kept


@pytest.mark.parametrize("mode", ["clamp", "zero"])
@pytest.mark.parametrize("way", WAYS)
def test_the_last_write_in_flattened_order_is_kept(way, mode):
    for seed in range(4):
        texels, values, x, y = (np.asarray(a) for a in draw_way(way, seed))
        texels, values = texels.astype(np.float32), values.astype(np.float32)
        got = jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode=mode)
        assert_exact(got.texels, last_writes(texels, values, x, y, mode)[0])


@pytest.mark.parametrize("way", WAYS)
def test_batches_equal_a_loop(way):
    """Each example by itself, whichever of its arguments are batched."""
    draws = [draw_way(way, seed) for seed in range(3)]
    stacked = [np.stack(arrays) for arrays in zip(*draws)]
    write = lambda texels, values, x, y: (
        jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode="zero").texels
    )
    for in_axes in ((0, 0, 0, 0), (None, 0, None, None)):
        args = [stack if axis == 0 else stack[0] for stack, axis in zip(stacked, in_axes)]
        got = jax.jit(jax.vmap(write, in_axes))(*args)
        for k in range(3):
            assert_exact(got[k], write(*(a[k] if axis == 0 else a for a, axis in zip(args, in_axes))))


def test_unique_indices_write_the_same():
    rng = np.random.default_rng(0)
    texels, values = rng.normal(size=(6, 7, 3)).astype(np.float32), rng.normal(size=(60, 3)).astype(np.float32)
    place = rng.permutation(60).astype(np.int32)  # 42 texels, and 18 samples below them
    x, y = place % 7, place // 7
    expected = jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode="zero").texels
    got = jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode="zero", unique_indices=True).texels
    assert_exact(got, expected)
    assert_exact(got, last_writes(texels, values, x, y, "zero")[0])


def test_no_samples_change_nothing():
    texture, none = jt.texture2d(jnp.ones((2, 3, 1))), (np.zeros((0, 4), int), np.zeros((1, 4), int))
    for function in (jt.surface_write, *REDUCTIONS.values()):
        assert_exact(function(texture, jnp.zeros((0, 4, 1)), none).texels, np.ones((2, 3, 1), np.float32))
    assert jt.surface_read(texture, none).shape == (0, 4, 1)


def test_a_texture_of_more_than_two_to_the_31_texels():
    """Traced only: two flat indices, and a sort by both."""
    texture = jax.eval_shape(lambda: jt.texture2d(jnp.zeros((65537, 32769, 1), jnp.uint8)))
    write = lambda t, v, x, y: jt.surface_write(t, v, (x, y), boundary_mode="zero")
    x = jax.ShapeDtypeStruct((5,), jnp.int32)
    out = jax.eval_shape(write, texture, jax.ShapeDtypeStruct((5, 1), jnp.uint8), x, x)
    assert out.shape == (65537, 32769, 1)


# ------------------------------------------------------------------------------------------------------- memory


WRITES_IN_PLACE = {
    "write": lambda t, v, x, y: jt.surface_write(t, v, (x, y)),
    "unique": lambda t, v, x, y: jt.surface_write(t, v, (x, y), unique_indices=True),
    "add": lambda t, v, x, y: jt.surface_add(t, v, (x, y)),
    "max": lambda t, v, x, y: jt.surface_max(t, v, (x, y)),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(("write", way) for way in WAYS if way != "row"),
        *((name, "numbered texels") for name in WRITES_IN_PLACE if name != "write"),
    ],
)
def test_a_donated_texture_is_written_in_place(name, way):
    """The result lies in the memory of the argument, and the program copies no texels."""
    texels, values, x, y = draw_way(way)
    texels, values = texels.astype(np.float32), values.astype(np.float32)
    write = jax.jit(WRITES_IN_PLACE[name], donate_argnums=0)
    compiled = write.lower(jt.texture2d(texels), values, x, y).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == texels.nbytes
    shape = ",".join(map(str, texels.shape))
    assert not re.search(rf"f32\[{shape}\]\S* copy\(", compiled.as_text())


@pytest.mark.parametrize("channels", [1, 3])
def test_a_loop_writes_in_place(channels):
    """The texture that a loop carries is not copied in its turns: the program needs no second one."""

    def step(texture, k):
        texture = jt.surface_write(texture, jnp.full((2, channels), 2.0), (jnp.arange(2), k % 64))
        return jt.surface_add(texture, jnp.ones((2, channels)), (jnp.arange(2), k % 64)), None

    run = jax.jit(lambda t: jax.lax.scan(step, t, jnp.arange(100))[0], donate_argnums=0)
    texture = jt.texture2d(jnp.zeros((64, 512, channels)))
    memory = run.lower(texture).compile().memory_analysis()
    assert memory.temp_size_in_bytes < texture.texels.nbytes / 2
    assert_exact(run(texture).texels[:, :3, 0], np.broadcast_to(np.float32([3, 3, 0]), (64, 3)))


def test_a_donated_argument_is_consumed():
    write = jax.jit(lambda t: jt.surface_write(t, 1.0, (0,)), donate_argnums=0)
    texture = jt.texture1d(jnp.zeros((1024, 1)))
    out = write(texture)
    assert texture.texels.is_deleted()
    assert np.asarray(out.texels)[0, 0] == 1


# -------------------------------------------------------------------------------------------------------- traps


def report(function, *args):
    return checkify.checkify(jax.jit(function), errors=checkify.user_checks)(*args)[0].get()


def test_a_trap_names_the_first_place_outside():
    texture = jt.texture2d(jnp.zeros((4, 5, 1)))
    read = lambda x, y: jt.surface_read(texture, (x, y))
    assert report(read, np.array([[0, 4], [2, 1]]), np.array([[3], [0]])) is None
    message = report(read, np.array([[0, 4], [-7, 9]]), np.array([[3], [0]]))
    assert "surface_read: sample 2 is outside the surface: x=-7, y=0." in message


def test_a_trap_names_layer_and_face():
    texture = jt.cubemap_layered(jnp.zeros((2, 6, 3, 3, 1)))
    write = lambda layer, face: jt.surface_write(texture, 1.0, (np.arange(3), 1), layer=layer, face=face)
    assert report(write, 1, 5) is None
    assert "surface_write: sample 0 is outside the surface: x=0, y=1, layer=1, face=6." in report(write, 1, 6)
    assert "layer=-1" in report(write, -1, 0)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_trap(name):
    texture = jt.texture1d(jnp.zeros((4, 1)))
    message = report(lambda x: REDUCTIONS[name](texture, 1.0, (x,)), np.array([0, 4]))
    assert f"surface_{name}: sample 1 is outside the surface: x=4." in message


def test_a_trap_in_one_example_of_a_batch():
    texture = jt.texture1d(jnp.zeros((4, 1)))
    read = jax.vmap(lambda x: jt.surface_read(texture, (x,)))
    assert report(read, np.array([[0, 1], [2, 3]])) is None
    assert "x=9" in report(read, np.array([[0, 1], [2, 9]]))


def test_a_trap_names_the_first_example_of_a_batch():
    """Of several examples that fail the first, at its own first sample, however they are batched."""
    texture = jt.texture2d(jnp.zeros((4, 5, 1)))
    read = lambda x, y: jt.surface_read(texture, (x, y))
    x, y = np.array([[0, 1, 2], [3, 9, 8], [7, 0, 0], [11, 12, 13]]), np.zeros(3, np.int32)
    ways = {
        "rows": (jax.vmap(read, (0, None)), (x, y), 9),
        "columns": (jax.vmap(read, (1, None)), (x, y[0]), 7),
        "twice": (jax.vmap(jax.vmap(read), (0, None)), (x, y), 9),
        "twice, other way": (jax.vmap(jax.vmap(read, (0, None)), (1, None)), (x.reshape(2, 2, 3), 0), 7),
        "of y": (jax.vmap(read, (None, 0)), (np.array([0, 6]), y), 6),
        "gradients": (jax.grad(lambda c: c * jax.vmap(read, (0, None))(x, y).sum()), (1.0,), 9),
    }
    for name, (function, args, first) in ways.items():
        message = report(function, *args)
        assert f" is outside the surface: x={first}, y=0." in message
        if name in ("rows", "gradients"):
            assert checkify.checkify(function)(*args)[0].get() == message  # operation by operation


@pytest.mark.parametrize("mode", ["clamp", "zero"])
def test_other_modes_do_not_trap(mode):
    texture = jt.texture1d(jnp.zeros((4, 1)))
    assert report(lambda x: jt.surface_read(texture, (x,), boundary_mode=mode), np.array([-1, 4])) is None


# ---------------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("mode", ["clamp", "trap"])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_of_a_write(way, mode):
    """To the values that are kept, and to the texels that are not written; nothing else."""
    texels, values, x, y = draw_way(way)
    texels, values = texels.astype(np.float32), values.astype(np.float32)
    tangents, cotangent = (np.sin(texels), np.cos(values)), np.arange(1.0, texels.size + 1, dtype=np.float32)
    cotangent = cotangent.reshape(texels.shape)

    @jax.jit
    def derivatives(primals, tangents, cotangent):
        write = lambda texels, values: jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode=mode).texels
        return jax.vjp(write, *primals)[1](cotangent), jax.jvp(write, primals, tangents)[1], write(*tangents)

    (to_texels, to_values), pushed, written = derivatives((texels, values), tangents, cotangent)
    _, kept = last_writes(texels, values, x, y, "clamp" if mode == "clamp" else "zero")
    assert_exact(to_texels, np.where(kept[..., None] < 0, cotangent, 0))
    expected = np.zeros((values[..., 0].size, 2), np.float32)
    expected[kept[kept >= 0]] = cotangent[kept >= 0]
    assert_exact(to_values, expected.reshape(values.shape))
    assert_exact(pushed, written)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_writes_and_sums_have_a_transpose(dtype):
    """In the values and the texels together, of each example of a batch; whatever way the bits of numbers take."""
    texels, values, x, y = draw_way("numbered texels")
    avals = [jax.ShapeDtypeStruct((1, *a.shape), dtype) for a in (texels, values)]
    cotangent = np.arange(1.0, texels.size + 1).reshape(1, *texels.shape).astype(dtype)  # whole numbers, kept exactly
    mapped = [
        jax.vmap(lambda t, v, f=f: f(jt.texture2d(t), v, (x, y), boundary_mode="zero").texels)
        for f in (jt.surface_write, jt.surface_add)
    ]
    (of_write, of_sum) = jax.jit(lambda ct: [jax.linear_transpose(f, *avals)(ct) for f in mapped])(cotangent)
    _, kept = last_writes(texels, values, x, y, "zero")
    assert_exact(of_write[0][0], np.where(kept[..., None] < 0, cotangent[0], 0), dtype)
    assert_exact(of_sum[0], cotangent, dtype)
    height, width = kept.shape
    inside = ((x >= 0) & (x < width) & (y >= 0) & (y < height))[..., None]
    landed = np.where(inside, cotangent[0][np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], 0)
    assert_exact(of_sum[1][0], landed, dtype)
    last = np.isin(np.arange(x.size), kept).reshape(x.shape)[..., None]
    assert_exact(of_write[1][0], np.where(last, landed, 0), dtype)


@pytest.mark.parametrize(
    ("way", "unique"),
    [
        ("sorted", False),
        ("numbered samples", False),
        ("numbered samples", True),
        ("numbered texels", False),
        ("grid", False),
    ],
)
@pytest.mark.usefixtures("x64")
def test_second_order_of_a_write(way, unique):
    texels, values, x, y = draw_way(way)
    if unique:  # each texel once, all others dropped
        _, kept = last_writes(texels, values, x, y, "zero")
        number = np.arange(values[..., 0].size).reshape(values.shape[:-1])
        x = np.where(np.isin(number, kept), x, -1)
        texels = texels[:16]

    def f(texels, values):
        out = jt.surface_write(jt.texture2d(texels), values, (x, y), boundary_mode="zero", unique_indices=unique)
        return jnp.sin(out.texels) * out.texels[::-1]

    assert_derivatives(f, texels[:16], values)


@pytest.mark.parametrize("mode", ["clamp", "trap"])
@pytest.mark.usefixtures("x64")
def test_gradients_of_reads_and_sums(mode):
    texels, values, x, y = draw_way("numbered texels")
    options = {"boundary_mode": mode}
    read = lambda texels: jnp.sin(jt.surface_read(jt.texture2d(texels), (x, y), **options))
    add = lambda texels, values: jnp.sin(jt.surface_add(jt.texture2d(texels), values, (x, y), **options).texels)
    assert_derivatives(read, texels)
    assert_derivatives(add, texels, values)

    @jax.jit
    def scattered_and_added(texels, cotangent):
        pull = jax.vjp(lambda t: jt.surface_read(jt.texture2d(t), (x, y), **options), texels)[1]
        nothing = jt.texture2d(jnp.zeros_like(texels))
        return *pull(cotangent), jt.surface_add(nothing, cotangent, (x, y), **options).texels

    assert_exact(*scattered_and_added(texels, np.ones_like(values)))


def sources(texels, values, x, mode, better):
    """Where the extreme of each texel comes from: -1 for itself, else the first sample; channel by channel."""
    result, best = np.full(texels.shape, -1), texels.copy()
    for number, column in enumerate(x):
        column = min(max(column, 0), len(texels) - 1) if mode == "clamp" else column
        if 0 <= column < len(texels):
            for c in range(texels.shape[-1]):
                if better(values[number, c], best[column, c]):
                    best[column, c], result[column, c] = values[number, c], number
    return best, result


@pytest.mark.parametrize("mode", ["clamp", "zero"])
@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.usefixtures("x64")
def test_gradients_of_extremes(name, mode):
    """To the winner alone; of a tie to the texel itself, then to the first sample. Small integers tie often."""
    rng = np.random.default_rng(0)
    texels, values = rng.integers(0, 4, (5, 3)).astype(float), rng.integers(-1, 5, (40, 3)).astype(float)
    x = rng.integers(-1, 6, 40)
    better = np.less if name == "min" else np.greater
    function = lambda t, v: REDUCTIONS[name](jt.texture1d(t), v, (x,), boundary_mode=mode).texels
    best, source = sources(texels, values, x, mode, better)
    tangents, cotangent = (np.sin(texels), np.cos(values)), np.arange(1.0, best.size + 1).reshape(best.shape)

    @jax.jit
    def derivatives(primals, tangents, cotangent):
        out, pull = jax.vjp(function, *primals)
        return out, pull(cotangent), jax.jvp(function, primals, tangents)[1]

    out, (to_texels, to_values), pushed = derivatives((texels, values), tangents, cotangent)
    assert_exact(out, best)
    assert_exact(to_texels, np.where(source < 0, cotangent, 0))
    expected = np.zeros_like(values)
    for at in np.argwhere(source >= 0):
        expected[source[tuple(at)], at[1]] += cotangent[tuple(at)]
    assert_exact(to_values, expected)
    picked = np.take_along_axis(tangents[1], np.maximum(source, 0), 0)
    assert_exact(pushed, np.where(source < 0, tangents[0], picked))


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.usefixtures("x64")
def test_second_order_of_extremes(name):
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 6, 40)
    apart = rng.permutation(15).reshape(5, 3) + 0.4, rng.permutation(120).reshape(40, 3) / 4
    function = lambda t, v: jnp.sin(REDUCTIONS[name](jt.texture1d(t), v, (x,), boundary_mode="zero").texels)
    assert_derivatives(function, *apart)


def test_integers_have_no_gradient():
    texture = jt.texture1d(np.arange(4, dtype=np.int32)[:, None])
    f = lambda scale: (jt.surface_read(texture, (np.arange(4),)).astype(jnp.float32) * scale).sum()
    assert jax.jit(jax.grad(f))(2.0) == 6


# --------------------------------------------------------------------------------------------------- transforms


def blur_of_writes(texels, values, x, mode):
    """A loop of writes and reads that every transform goes through."""

    def step(texels, value):
        texture = jt.surface_write(jt.texture1d(texels), value, (x,), boundary_mode=mode)
        read = jt.surface_read(texture, (x + 1,), boundary_mode="clamp")
        return jt.surface_add(texture, read, (x,), boundary_mode=mode).texels, None

    return jax.lax.scan(step, texels, values)[0]


def test_transforms():
    rng = np.random.default_rng(0)
    args = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=(3, 4, 2)).astype(np.float32)
    x = np.array([0, 2, 2, 5], np.int32)
    loss = lambda texels, values, mode="trap": jnp.sin(blur_of_writes(texels, values, x, mode)).sum()

    @jax.jit
    def derivatives(*args):
        gradients = [jax.grad(f, (0, 1))(*args) for f in (jax.checkpoint(loss), loss)]
        value, linear = jax.linearize(loss, *args)
        return gradients, value, (linear(*args), jax.jvp(loss, args, args)[1])

    (rematerialized, gradient), value, (linear, pushed) = derivatives(*args)
    assert_trees_close("reordered", rematerialized, gradient)
    assert_trees_close("reordered", linear, pushed)
    assert_trees_close("reordered", jax.export.export(jax.jit(loss))(*args).call(*args), value)
    exported = jax.export.export(jax.jit(functools.partial(loss, mode="zero")))(*args).serialize()
    assert_trees_close("reordered", jax.export.deserialize(exported).call(*args), value)


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
@pytest.mark.parametrize("way", ["numbered samples", "numbered texels", "grid"])
def test_batch_sharded_writes_need_no_collective(way, axis_type):
    texels, values, x, y = (np.stack(arrays) for arrays in zip(*(draw_way(way, seed) for seed in range(8))))
    args = texels.astype(np.float32), values.astype(np.float32), x, y

    def write(texels, values, x, y):
        return jt.surface_write(jt.texture2d(texels), values, (x, y)).texels

    run = jax.vmap(write)
    gradient = jax.grad(lambda *args: jnp.sin(run(*args)).sum(), (0, 1))
    both = jax.jit(lambda *args: (run(*args), gradient(*args)))
    expected = both(*args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(axis_type,))
    placed = [jax.device_put(a, NamedSharding(mesh, P("b"))) for a in args]
    with jax.set_mesh(mesh):
        compiled = both.lower(*placed).compile()
        assert not re.search("all-gather|all-reduce|all-to-all|collective-permute", compiled.as_text())
        assert_trees_close("reordered", compiled(*placed), expected)


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
@pytest.mark.parametrize("name", ["write", *REDUCTIONS])
def test_shard_map_gradients(name):
    """Each device writes its part of the values into the shared texture; `check_vma=True` sums what comes back."""
    function = REDUCTIONS.get(name, jt.surface_write)
    rng = np.random.default_rng(0)
    texels, values = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=(8, 5, 2)).astype(np.float32)
    x = rng.integers(-1, 7, (8, 5)).astype(np.int32)
    write = lambda texels, values, x: function(jt.texture1d(texels), values, (x,)).texels
    batched = jax.vmap(write, (None, 0, 0))
    local = lambda texels, values, x: write(texels, values[0], x[0])[None]
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("b"), P("b")), out_specs=P("b"), check_vma=True)
    loss = lambda run: jax.jit(jax.value_and_grad(lambda *args: jnp.sin(run(*args)).sum(), (0, 1)))
    assert_trees_close("reordered", loss(sharded)(texels, values, x), loss(batched)(texels, values, x))
