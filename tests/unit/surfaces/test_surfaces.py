"""Surfaces: every kind, type and boundary mode against bytes, the last of many writes, traps, and every derivative."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.oracles import memory as oracle
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close

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
# The axes of each kind that are counted unsigned.
OUTER = {"1d_layered": ("layer",), "2d_layered": ("layer",), "cubemap": ("face",), "cubemap_layered": ("layer", "face")}
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
    outer = OUTER.get(kind, ())
    return tuple(places[len(outer) :][::-1]), dict(zip(outer, places))


def accesses(kind, mode, texels, values, places):
    """Reads, writes and, of signed numbers, sums and extremes."""
    (coords, given), texture = arguments(kind, places), make(kind)(texels)
    changes = {"write": jt.surface_write, **(REDUCTIONS if texels.dtype == np.int16 else {})}
    read = jt.surface_read(texture, coords, boundary_mode=mode, **given)
    return {"read": read} | {
        how: change(texture, values, coords, boundary_mode=mode, **given).texels for how, change in changes.items()
    }


def assert_accesses(results, case, texels, values, places):
    """Every bit is that of the oracle."""
    kind, *_, mode = case
    indices, where = list(map(oracle.exact, places)), "clamp" if mode == "clamp" else "zero"
    flat, inside = oracle.place(indices, SHAPES[kind], where, len(OUTER.get(kind, ())))
    rows, joined = texels.reshape(-1, texels.shape[-1]), {"write": oracle.write, "add": oracle.add}
    joined |= {rule: functools.partial(oracle.extreme, rule=rule) for rule in ("min", "max")}
    for how, result in results.items():
        expected = oracle.read(rows, flat, inside) if how == "read" else joined[how](rows, values, flat, inside)
        assert result.dtype == texels.dtype
        found, expected = (bits(a).reshape(expected.shape) for a in (result, expected))
        np.testing.assert_array_equal(found, expected, err_msg=f"{how} of {case}")


def bits(array):
    return np.asarray(array).view(f"u{array.dtype.itemsize}")


# ---------------------------------------------------------------------------------------------------- values


# Each kind with every third type, and types and kinds in several boundary modes.
ACCESSED = [
    (kind, *of_texels, MODES[(j // 3 + k // 3) % len(MODES)])
    for j, kind in enumerate(SHAPES)
    for k, of_texels in enumerate(TYPES)
    if (j + k) % 3 == 0
]


def test_accesses_equal_the_oracle_byte_for_byte():
    given = {}
    for kind, dtype, channels, mode in ACCESSED:
        texels, places = draw_texels(kind, dtype, channels), draw_places(kind)
        values = draw_texels(kind, dtype, channels, seed=2).reshape(-1, channels)
        given[kind, dtype, mode] = texels, np.resize(values, (len(places[0]), channels)), places
    run = jax.jit(lambda given: {case: accesses(case[0], case[-1], *arrays) for case, arrays in given.items()})
    for case, results in run(given).items():
        assert_accesses(results, case, *given[case])


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


def in_float32(arrays):
    """What `draw_way` returns, with texels and values as most textures hold them."""
    return [np.asarray(a, np.float32 if a.dtype == float else a.dtype) for a in arrays]


def test_the_last_write_in_flattened_order_is_kept():
    @jax.jit
    def writes(given):
        return {
            (way, mode): jt.surface_write(jt.texture2d(texels), values, where, boundary_mode=mode).texels
            for way, (texels, values, *where) in given.items()
            for mode in ("clamp", "zero")
        }

    for seed in range(4):
        given = {way: in_float32(draw_way(way, seed)) for way in WAYS}
        for (way, mode), found in writes(given).items():
            np.testing.assert_array_equal(found, last_writes(*given[way], mode)[0], err_msg=f"{way}, {mode}, {seed}")


def test_batches_equal_a_loop():
    """Each example by itself, whichever of its arguments are batched."""
    ways = "sorted", "numbered samples", "numbered texels", "grid"
    given = {way: [in_float32(draw_way(way, seed)) for seed in range(3)] for way in ways}
    write = lambda texels, values, *where: (
        jt.surface_write(jt.texture2d(texels), values, where, boundary_mode="zero").texels
    )

    @jax.jit
    def batches(stacks):
        return {
            way: (
                jax.vmap(write)(*stacked),
                jax.vmap(write, (None, 0, None, None))(stacked[0][0], stacked[1], stacked[2][0], stacked[3][0]),
            )
            for way, stacked in stacks.items()
        }

    stacks = {way: [np.stack(arrays) for arrays in zip(*draws)] for way, draws in given.items()}
    for way, (of_all, of_values) in jax.device_get(batches(stacks)).items():
        texels, _, *where = given[way][0]
        for k, example in enumerate(given[way]):
            np.testing.assert_array_equal(of_all[k], last_writes(*example, "zero")[0], err_msg=way)
            expected = last_writes(texels, example[1], *where, "zero")[0]
            np.testing.assert_array_equal(of_values[k], expected, err_msg=way)


def test_unique_indices_write_the_same():
    """And have its gradients."""
    rng = np.random.default_rng(0)
    texels, values = rng.normal(size=(6, 7, 3)).astype(np.float32), rng.normal(size=(60, 3)).astype(np.float32)
    place = rng.permutation(60).astype(np.int32)  # 42 texels, and 18 samples below them
    options = {"boundary_mode": "zero", "unique_indices": True}
    x, y = place % 7, place // 7
    write = lambda t, v: jt.surface_write(jt.texture2d(t), v, (x, y), **options).texels
    found, pulled = jax.jit(lambda t, v: (write(t, v), jax.vjp(write, t, v)[1](t)))(texels, values)
    expected, kept = last_writes(texels, values, x, y, "zero")
    assert_exact(found, expected)
    of_values = np.zeros_like(values)
    of_values[kept[kept >= 0]] = texels[kept >= 0]
    jax.tree.map(np.testing.assert_array_equal, pulled, (np.where(kept[..., None] < 0, texels, 0), of_values))


def test_no_samples_change_nothing():
    """Of floats and codes; nor do writes of no channels."""
    none = np.zeros((0, 4), int), np.zeros((1, 4), int)

    @jax.jit
    def run(textures):
        adding = [jt.surface_write, *REDUCTIONS.values()]
        empty = [jnp.zeros((0, 4, t.num_channels), t.dtype) for t in textures]
        changed = [[f(t, v, none).texels for f in adding] for t, v in zip(textures, empty)]
        return changed, jt.surface_read(textures[0], none)

    textures = jt.texture2d(jnp.ones((2, 3, 1))), jt.texture2d(jnp.ones((2, 3, 2), jnp.int16))
    changed, read = run((*textures, jt.texture2d(jnp.ones((2, 3, 0)))))
    for texture, of_all in zip(textures, changed):
        for texels in of_all:
            assert_exact(texels, np.ones(texture.shape, texture.dtype))
    assert read.shape == (0, 4, 1)


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


def test_a_donated_texture_is_written_in_place():
    """The results lie in the memory of the arguments, and the program copies no texels."""
    ways = {("write", way): draw_way(way) for way in WAYS if way != "row"}
    ways |= {(name, "numbered texels"): draw_way("numbered texels") for name in WRITES_IN_PLACE if name != "write"}
    given = {case: in_float32(arrays)[1:] for case, arrays in ways.items()}
    textures = {case: jt.texture2d(in_float32(arrays)[0]) for case, arrays in ways.items()}
    write = jax.jit(
        lambda textures, given: {case: WRITES_IN_PLACE[case[0]](textures[case], *given[case]) for case in given},
        donate_argnums=0,
    )
    compiled = write.lower(textures, given).compile()
    texels = [texture.texels for texture in textures.values()]
    assert compiled.memory_analysis().alias_size_in_bytes == sum(a.nbytes for a in texels)
    shapes = "|".join(",".join(map(str, a.shape)) for a in texels)
    assert not re.search(rf"f32\[({shapes})\]\S* copy\(", compiled.as_text())


def test_a_loop_writes_in_place():
    """The texture that a loop carries is not copied in its turns: the program needs no second one."""

    def step(texture, k):
        texture = jt.surface_write(texture, jnp.full((2, 3), 2.0), (jnp.arange(2), k % 64))
        return jt.surface_add(texture, jnp.ones((2, 3)), (jnp.arange(2), k % 64)), None

    run = jax.jit(lambda t: jax.lax.scan(step, t, jnp.arange(100))[0], donate_argnums=0)
    texture = jt.texture2d(jnp.zeros((64, 512, 3)))
    memory = run.lower(texture).compile().memory_analysis()
    assert memory.temp_size_in_bytes < texture.texels.nbytes / 2
    assert_exact(run(texture).texels[:, :3, 0], np.broadcast_to(np.float32([3, 3, 0]), (64, 3)))


# -------------------------------------------------------------------------------------------------------- traps


def reports(cases):
    """The messages of functions, each with its arguments: one program for all."""
    check = functools.partial(checkify.checkify, errors=checkify.user_checks)
    run = jax.jit(lambda args: {name: check(cases[name][0])(*args[name])[0] for name in args})
    return {name: error.get() for name, error in run({name: args for name, (_, *args) in cases.items()}).items()}


def test_a_trap_names_the_first_place_outside():
    texture, line = jt.texture2d(jnp.zeros((4, 5, 1))), jt.texture1d(jnp.zeros((4, 1)))
    cube = jt.cubemap_layered(jnp.zeros((2, 6, 3, 3, 1)))
    read = lambda x, y: jt.surface_read(texture, (x, y))
    of_faces = lambda layer, face: jt.surface_write(cube, 1.0, (np.arange(3), 1), layer=layer, face=face)
    of_line = lambda mode: lambda x: jt.surface_read(line, (x,), boundary_mode=mode)
    column = np.array([[3], [0]])
    found = reports(
        {
            "inside": (read, np.array([[0, 4], [2, 1]]), column),
            "surface_read: sample 2 is outside the surface: x=-7, y=0.": (read, np.array([[0, 4], [-7, 9]]), column),
            "inside a face": (of_faces, 1, 5),
            "surface_write: sample 0 is outside the surface: x=0, y=1, layer=1, face=6.": (of_faces, 1, 6),
            "layer=-1": (of_faces, -1, 0),
            "surface_max: sample 1 is outside the surface: x=4.": (
                lambda x: jt.surface_max(line, 1.0, (x,)),
                np.array([0, 4]),
            ),
            "inside a batch": (jax.vmap(of_line("trap")), np.array([[0, 1], [2, 3]])),
            "inside when clamped": (of_line("clamp"), np.array([-1, 4])),
            "inside when zero": (of_line("zero"), np.array([-1, 4])),
        }
    )
    for said, message in found.items():
        assert message is None if said.startswith("inside") else said in message, said


def test_a_trap_names_the_first_example_of_a_batch():
    """Of several examples that fail the first, at its own first sample, however they are batched."""
    texture = jt.texture2d(jnp.zeros((4, 5, 1)))
    read = lambda x, y: jt.surface_read(texture, (x, y))
    x, y = np.array([[0, 1, 2], [3, 9, 8], [7, 0, 0], [11, 12, 13]]), np.zeros(3, np.int32)
    ways = {
        "rows": (9, jax.vmap(read, (0, None)), x, y),
        "twice, other way": (7, jax.vmap(jax.vmap(read, (0, None)), (1, None)), x.reshape(2, 2, 3), 0),
        "of y": (6, jax.vmap(read, (None, 0)), np.array([0, 6]), y),
        "gradients": (9, jax.grad(lambda c, x, y: c * jax.vmap(read, (0, None))(x, y).sum()), 1.0, x, y),
    }
    for name, message in reports({name: case for name, (_, *case) in ways.items()}).items():
        assert f" is outside the surface: x={ways[name][0]}, y=0." in message, name


# ---------------------------------------------------------------------------------------------------- gradients


def test_gradients_of_a_write():
    """To the values that are kept, and to the texels that are not written; nothing else."""
    given, modes = {}, dict(zip(WAYS, ["clamp", "trap"] * 3))
    for way in WAYS:
        texels, values, *where = in_float32(draw_way(way))
        cotangent = np.arange(1.0, texels.size + 1, dtype=np.float32).reshape(texels.shape)
        given[way] = (texels, values), (np.sin(texels), np.cos(values)), cotangent, where

    @jax.jit
    def derivatives(given):
        results = {}
        for way, (primals, tangents, cotangent, where) in given.items():
            write = lambda texels, values, where=where, mode=modes[way]: (
                jt.surface_write(jt.texture2d(texels), values, where, boundary_mode=mode).texels
            )
            results[way] = jax.vjp(write, *primals)[1](cotangent), jax.jvp(write, primals, tangents)[1]
        return results

    for way, ((to_texels, to_values), pushed) in jax.device_get(derivatives(given)).items():
        _, tangents, cotangent, where = given[way]
        written, kept = last_writes(*tangents, *where, "clamp" if modes[way] == "clamp" else "zero")
        expected = np.zeros((to_values[..., 0].size, 2), np.float32)
        expected[kept[kept >= 0]] = cotangent[kept >= 0]
        check = functools.partial(np.testing.assert_array_equal, err_msg=way)
        check(to_texels, np.where(kept[..., None] < 0, cotangent, 0))
        check(to_values, expected.reshape(to_values.shape))
        check(pushed, written)


def test_writes_and_sums_have_a_transpose():
    """In the values and the texels together, of each example of a batch; whatever way the bits of numbers take."""
    texels, values, x, y = draw_way("numbered texels")
    mapped = [
        jax.vmap(lambda t, v, f=f: f(jt.texture2d(t), v, (x, y), boundary_mode="zero").texels)
        for f in (jt.surface_write, jt.surface_add)
    ]
    avals = [jax.ShapeDtypeStruct((1, *a.shape), jnp.bfloat16) for a in (texels, values)]
    whole = np.arange(1.0, texels.size + 1).reshape(1, *texels.shape)  # numbers that are kept exactly
    transposed = jax.jit(lambda cotangent: [jax.linear_transpose(f, *avals)(cotangent) for f in mapped])
    of_write, of_sum = transposed(whole.astype(jnp.bfloat16))
    _, kept = last_writes(texels, values, x, y, "zero")
    height, width = kept.shape
    inside = ((x >= 0) & (x < width) & (y >= 0) & (y < height))[..., None]
    landed = np.where(inside, whole[0][np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)], 0)
    last = np.isin(np.arange(x.size), kept).reshape(x.shape)[..., None]
    assert_exact(of_write[0][0], np.where(kept[..., None] < 0, whole[0], 0), jnp.bfloat16)
    assert_exact(of_sum[0], whole, jnp.bfloat16)
    assert_exact(of_sum[1][0], landed, jnp.bfloat16)
    assert_exact(of_write[1][0], np.where(last, landed, 0), jnp.bfloat16)


def flat(arrays):
    return jnp.concatenate([array.ravel() for array in arrays])


def test_second_order_of_a_write(x64):
    given = {way: draw_way(way) for way in ("sorted", "numbered samples", "grid")}

    def f(texels, values):
        out = [
            jt.surface_write(jt.texture2d(texels[way]), values[way], where, boundary_mode="zero").texels
            for way, (_, _, *where) in given.items()
        ]
        return flat([jnp.sin(texels) * texels[::-1] for texels in out])

    texels, values = ({way: arrays[k] for way, arrays in given.items()} for k in (0, 1))
    assert_derivatives(f, {way: a[:16] for way, a in texels.items()}, values)


def test_gradients_of_reads_and_sums(x64):
    """And of extremes to the second order: their numbers are apart."""
    texels, values, *where = draw_way("numbered texels")
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 6, 40)
    apart = rng.permutation(15).reshape(5, 3) + 0.4, rng.permutation(120).reshape(40, 3) / 4

    def f(texels, values, line, of_line):
        reads = [jt.surface_read(jt.texture2d(texels), where, boundary_mode=mode) for mode in ("clamp", "trap")]
        added = jt.surface_add(jt.texture2d(texels), values, where, boundary_mode="clamp").texels
        lowest = jt.surface_min(jt.texture1d(line), of_line, (x,), boundary_mode="zero").texels
        return flat([jnp.sin(array) for array in (*reads, added, lowest)])

    assert_derivatives(f, texels, values, *apart)


def test_gradients_of_extremes(x64):
    """To the winner alone; of a tie to the texel itself, then to the first sample. Small integers tie often."""
    rng = np.random.default_rng(0)
    texels, values = rng.integers(0, 4, (5, 3)).astype(float), rng.integers(-1, 5, (40, 3)).astype(float)
    x = rng.integers(-1, 6, 40)
    tangents, cotangent = (np.sin(texels), np.cos(values)), np.arange(1.0, texels.size + 1).reshape(texels.shape)

    @jax.jit
    def derivatives(primals, tangents, cotangent):
        results = {}
        for name, mode in (("min", "clamp"), ("max", "zero")):
            function = lambda t, v, n=name, m=mode: REDUCTIONS[n](jt.texture1d(t), v, (x,), boundary_mode=m).texels
            out, pull = jax.vjp(function, *primals)
            results[name, mode] = out, pull(cotangent), jax.jvp(function, primals, tangents)[1]
        return results

    for (name, mode), (out, (to_texels, to_values), pushed) in derivatives(
        (texels, values), tangents, cotangent
    ).items():
        where = oracle.place([x], [len(texels)], mode)
        check = functools.partial(np.testing.assert_array_equal, err_msg=f"{name}, {mode}")
        check(out, oracle.extreme(texels, values, *where, name))
        pulled = oracle.cotangents_of_extreme(texels, values, cotangent, *where, name)
        check(to_texels, pulled[0])
        check(to_values, pulled[1])
        assert_close("float64", np.vdot(cotangent, pushed), sum(map(np.vdot, pulled, tangents)), cotangent.sum())


def test_integers_have_no_gradient_and_a_write_keeps_the_border_color():
    texture = jt.texture1d(np.arange(4, dtype=np.int32)[:, None])
    f = lambda scale: (jt.surface_read(texture, (np.arange(4),)).astype(jnp.float32) * scale).sum()
    assert jax.jit(jax.grad(f))(2.0) == 6
    assert float(jt.surface_write(jt.texture1d(jnp.zeros((2, 1)), border_color=0.5), 1.0, (0,)).border_color) == 0.5


# --------------------------------------------------------------------------------------------------- transforms


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_batch_sharded_writes_need_no_collective():
    ways = ("numbered samples", "numbered texels", "grid")
    args = [[np.stack(arrays) for arrays in zip(*(in_float32(draw_way(way, k)) for k in range(8)))] for way in ways]
    run = jax.vmap(lambda texels, values, *where: jt.surface_write(jt.texture2d(texels), values, where).texels)
    gradient = jax.grad(lambda *args: jnp.sin(run(*args)).sum(), (0, 1))
    both = jax.jit(lambda args: [(run(*way), gradient(*way)) for way in args])
    expected = both(args)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Explicit,))
    placed = jax.device_put(args, NamedSharding(mesh, P("b")))
    with jax.set_mesh(mesh):
        compiled = both.lower(placed).compile()
        assert not re.search("all-gather|all-reduce|all-to-all|collective-permute", compiled.as_text())
        assert_trees_close("reordered", compiled(placed), expected)


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_shard_map_gradients_and_exports():
    """Each device writes its part of the values into the shared texture; `check_vma=True` sums what comes back."""
    rng = np.random.default_rng(0)
    args = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(size=(8, 5, 2)).astype(np.float32)
    x, mesh = rng.integers(-1, 7, (8, 5)).astype(np.int32), jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    specs = {"in_specs": (P(), P("b"), P("b")), "out_specs": P("b")}

    def gradients(function, is_sharded):
        write = lambda texels, values, x: function(jt.texture1d(texels), values, (x,)).texels
        local = lambda texels, values, x: write(texels, values[0], x[0])[None]
        run = jax.shard_map(local, mesh=mesh, check_vma=True, **specs) if is_sharded else jax.vmap(write, (None, 0, 0))
        return jax.value_and_grad(lambda *args: jnp.sin(run(*args, x)).sum(), (0, 1))

    both = lambda *args: [
        [gradients(f, way)(*args) for f in (jt.surface_write, jt.surface_max)] for way in (True, False)
    ]
    sharded, batched = jax.jit(both)(*args)
    assert_trees_close("reordered", sharded, batched)
    write = jax.jit(gradients(jt.surface_write, False))
    assert_trees_close("reordered", jax.export.export(write)(*args).call(*args), batched[0])
