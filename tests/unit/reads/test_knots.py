"""Textures with knots: texels that are not evenly spaced, against the definitions in float64."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import knots as oracle
from tests.support.cases import computed
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close, assert_exact, named

BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
MODES = ("clamp", "border", "wrap", "mirror", "reflect")
FILTERS = ("point", "linear", "lagrange")
SIZES = (5, 6, 4)
IN_TEXELS = jt.Sampler(normalized_coords=False)


def knots_of(size, seed, *, down=False):
    """Knots with both edges, no two of them close."""
    steps = np.random.default_rng(seed).uniform(0.5, 2.0, size + 1)
    found = np.cumsum([-3.0, *steps])
    return found[::-1].copy() if down else found


def even(size, unit):
    """The knots of an axis without knots."""
    return np.array([0.0, *np.arange(size) + 0.5, size]) / unit


def inside_cells(knots, n, seed, turns=2):
    """Coordinates in the axis and beyond both edges, not near a knot, an edge or a middle between them."""
    rng = np.random.default_rng(seed)
    length = knots[-1] - knots[0]
    centers = knots[1:-1]
    mirrored = np.concatenate([centers, 2 * knots[-1] - centers[::-1]])
    ends = np.concatenate([mirrored + 2 * k * length for k in range(-turns, turns)])
    ends = ends if length > 0 else ends[::-1]
    pick = rng.integers(1, len(ends) - 1, n)
    part = rng.choice([0.15, 0.3, 0.7, 0.85], n)
    return ends[pick] + part * (ends[pick + 1] - ends[pick])


def drawn(ndim, dtype=np.float32, n=64, channels=2):
    rng = np.random.default_rng(ndim)
    sizes = SIZES[:ndim]
    texels = rng.normal(size=(*sizes[::-1], channels)).astype(dtype)
    knots = tuple(knots_of(size, 7 * k + ndim, down=k == 1).astype(dtype) for k, size in enumerate(sizes))
    coords = tuple(inside_cells(k, n, 31 * j + ndim).astype(dtype) for j, k in enumerate(knots))
    return texels, knots, coords


def read(texels, knots, coords, modes="clamp", filter_mode="linear", color=None, **options):
    texture = BUILD[texels.ndim - 1](texels, knots=knots, border_color=color)
    return jt.sample(texture, coords, jt.Sampler(address_mode=modes, filter_mode=filter_mode, **options))


def reading(texels, knots, coords, modes="clamp", filter_mode="linear", **options):
    """A call of `read` with the color 0.25."""
    return (lambda t, k, c: read(t, k, c, modes, filter_mode, 0.25, **options), texels, knots, coords)


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_values(filter_mode, x64):
    """In each mode, with some axes that have no knots or knots without edges, on spheres, and within nearest texels."""
    line, image, volume = (drawn(ndim, np.float64) for ndim in (1, 2, 3))
    rows = [(*line, (mode,), {}, line[1:]) for mode in MODES] + [(*image, ("wrap", "mirror"), {}, image[1:])]
    # Only y of a volume has knots; x and z are normalized, or in texels, and repeat.
    texels, (_, knots, _), (x, y, z) = volume
    x, z, some = np.linspace(-1.9, 2.9, 64) + 0.003, np.linspace(-0.4, 1.4, 64) + 0.002, (None, knots, None)
    at, laid = (x * SIZES[0], y, z * SIZES[2]), (even(5, 1), knots, even(4, 1))
    if filter_mode != "lagrange":
        for given, options in (((x, y, z), {}), (at, {"normalized_coords": False})):
            rows.append((texels, some, given, ("wrap", "clamp", "wrap"), options, (laid, at)))
    # Knots without edges have them half a cell beyond.
    rows.append((line[0], (line[1][0][1:-1],), line[2], ("border",), {}, ((line[1][0][1:-1],), line[2])))
    # Longitudes that are even or not, latitudes from pole to pole, and levels.
    places = knots_of(6, 1), knots_of(5, 2, down=True), knots_of(3, 3)
    around = [inside_cells(k, 80, j) for j, k in enumerate(places)]
    texels = np.random.default_rng(0).normal(size=(3, 5, 6, 2))
    if filter_mode == "linear":
        rows.append((texels, places, tuple(around), ("sphere", "sphere", "clamp"), {}, (places, around)))
    turn = ((around[0] - places[0][0]) / (places[0][-1] - places[0][0]), around[1])
    laid = even(6, 6), places[1]
    rows.append((texels[0], (None, places[1]), turn, ("sphere", "sphere"), {}, (laid, turn)))
    if filter_mode == "lagrange":  # limited reads stay between their nearest texels
        rows.append((*image, ("clamp", "clamp"), {"limit": "taps"}, image[1:]))
        # An even axis has taps beyond its ends.
        laid, part = (even(5, 5), image[1][1]), (np.linspace(-0.9, 1.9, 64), image[2][1])
        rows.append((image[0], (None, laid[1]), part, ("border", "border"), {"limit": "taps"}, (laid, part)))
    calls = [reading(t, k, c, "sphere" if "sphere" in m else m, filter_mode, **o) for t, k, c, m, o, _ in rows]
    for (texels, _, _, modes, options, (knots, coords)), found in zip(rows, computed(*calls)):
        with named(modes, texels.shape, options):
            how = {"color": 0.25, "limited": "limit" in options}
            assert_close("float64", found, oracle.sample(texels, coords, knots, modes, filter_mode, **how), 64)


def test_values_in_float32():
    texels, knots, coords = drawn(2)
    wide = [tuple(map(np.float64, arrays)) for arrays in (coords, knots)]
    (found,) = computed(reading(texels, knots, coords, ("wrap", "border"), "lagrange"))
    expected = oracle.sample(np.float64(texels), *wide, ("wrap", "border"), "lagrange", 0.25)
    assert_close("float32", found, expected, 512)


def test_the_polynomial_is_exact_to_the_ends_of_a_clamped_axis(x64):
    """With fewer than four knots it has a lower degree."""
    curves = {1: lambda x: 0 * x + 2, 2: lambda x: 3 * x - 1, 3: lambda x: x * x - x, 7: lambda x: (x - 2) * x * x + 1}
    knots = [knots_of(size, size) for size in curves]
    calls = []
    for k, curve in zip(knots, curves.values()):
        x = np.array([*np.linspace(k[1], k[-2], 33), k[0], k[-1]])
        calls.append(reading(curve(k[1:-1])[:, None], (k,), (x,), filter_mode="lagrange"))
    for (*_, (x,)), k, curve, found in zip(calls, knots, curves.values(), computed(*calls)):
        assert_close("float64", found[:, 0], curve(np.clip(x, k[1], k[-2])), 256)


def test_numbers_that_are_no_coordinates():
    """NaN is the first edge; infinities saturate, or are the first edge where the texture repeats."""
    texels, (knots,), _ = drawn(1)
    special, start = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38]), np.full(5, knots[0], np.float32)
    far = np.float32([knots[0], 1e6, -1e6, 1e6, -1e6])
    x, cases = np.concatenate([special, start, far]), [*itertools.product(MODES, ["linear"]), ("clamp", "lagrange")]
    for (mode, how), found in zip(cases, computed(*(reading(texels, (knots,), (x,), *case) for case in cases))):
        with named(mode, how):
            assert np.isfinite(found).all()
            count, expected = (5, found[10:]) if mode in ("clamp", "border") else (3, found[5:10])
            assert_exact(found[:count], expected[:count], np.float32)


def test_a_jump_between_two_equal_knots():
    """Linear reads see both sides; the texel after the jump is that of the knot itself."""
    texels, knots = np.float32([[0], [1], [5], [6]]), np.float32([0, 1, 1, 2])
    (found,) = computed(reading(texels, (knots,), (np.float32([0.5, 0.9999999, 1.0, 1.5]),)))
    assert_close("float32", found[:, 0], [0.5, 1.0, 5.0, 5.5], 8)


def test_reads_take_positions_in_place_of_knots():
    """Gathers, fetches and drawn taps on knots; the adjoint and derivatives, which take no knots."""
    texels, knots, coords = drawn(2)
    values, key = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32), jax.random.key(1)

    @jax.jit
    def run(texels, knots, coords, values):
        texture, plain = jt.texture2d(texels, knots=knots), jt.texture2d(texels)
        at = jt.positions(texture, coords)
        on_knots = jt.gather(texture, coords), jt.sample(texture, coords), jt.sample(texture, coords, key=key)
        at_positions = jt.gather(plain, at, IN_TEXELS), jt.sample(plain, at, IN_TEXELS)
        spread = jt.splat(values, at, texels.shape, IN_TEXELS).texels
        some = jt.positions(jt.texture2d(texels, knots=(None, knots[1])), (np.float32([0.5, 0.25]), coords[1][:2]))
        drawn_at = jt.sample(plain, at, IN_TEXELS, key=key)
        others = jt.fetch(texture, (1, 2)), jt.sample_with_derivatives(plain, at, IN_TEXELS).value
        return on_knots, (*at_positions, drawn_at), at, some, spread, others

    on_knots, at_positions, at, (x, y), spread, (fetched, again) = run(texels, knots, coords, values)
    for name, found, expected in zip(("gather", "sample", "draw"), on_knots, at_positions):
        with named(name):
            assert_exact(found, expected, np.float32)
    assert_exact(fetched, texels[2, 1], np.float32)
    assert_exact(x, np.float32([2.5, 1.25]), np.float32)
    assert_exact(y, at[1][:2], np.float32)
    assert_close("long sum", np.vdot(np.float64(spread), texels), np.vdot(np.float64(on_knots[1]), values), 64)
    assert_close("float32", again, on_knots[1], 8)


def test_integer_texels():
    codes, (knots, coords) = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8), drawn(2)[1:]
    of = lambda texels, **options: reading(texels, knots, coords, **options)
    expected, of_codes, half = computed(
        of(np.float32(codes) / 255), of(codes, read_mode="normalized_float"), of(np.float16(codes / 255))
    )
    assert_close("float32", of_codes, expected, 8)
    assert half.dtype == np.float16
    assert_close("float16", half, expected, 2)


def test_batches_of_knots():
    """Each texture of a stack has knots of its own."""
    texels, (knots,), coords = drawn(1)
    stack, many = np.stack([texels, 2 * texels]), np.stack([knots, knots + 0.5])
    assert jt.Texture(stack, None, "1d", knots=(many,)).batch_ndim == 1
    one = lambda t, k: read(t, (k,), coords, "wrap", "lagrange")
    batch, apart = computed((jax.vmap(one), stack, many), (lambda t, k: jnp.stack(list(map(one, t, k))), stack, many))
    assert_close("float32", batch, apart, 64)


@pytest.mark.parametrize(
    ("mode", "filter_mode", "limit", "ndim"),
    [
        *(("wrap", "linear", None, 2), ("border", "lagrange", None, 1), ("clamp", "lagrange", "taps", 1)),
        ("sphere", "linear", None, 2),
    ],
)
def test_derivatives(mode, filter_mode, limit, ndim, x64):
    """In texels, knots, coordinates and color."""
    texels, knots, coords = drawn(ndim, np.float64, 12, 1)
    texels = texels if mode != "sphere" else np.concatenate([texels, texels[:, :1] * 0.5 + 0.1], 1)
    knots = knots if mode != "sphere" else (knots_of(6, 2), knots[1])
    function = lambda t, k, c, color: read(t, k, c, mode, filter_mode, color, limit=limit) ** 2
    assert_derivatives(function, texels, knots, coords, np.float64(0.3), step=1e-4)


def test_slopes_at_a_knot_are_those_towards_the_next_texel():
    knots, texels = np.float32([0, 1, 3]), np.float32([[0], [2], [3]])
    slope = jax.vmap(jax.grad(lambda x: read(texels, (knots,), (x,))[0]))
    np.testing.assert_array_equal(*computed((slope, np.float32([-1, 0, 1, 3, 4]))), [0, 2, 0.5, 0, 0])


def test_knots_that_are_no_coordinates_warn_in_programs_where_debugging_is_on(monkeypatch):
    """Knots of a stack, too, each of which may have an order of its own."""
    monkeypatch.setenv("JAXTEX_DEBUG", "1")
    texels, (knots,), (x,) = drawn(1)
    right = np.stack([knots, knots[::-1] + 1])
    stack = jax.jit(lambda many: jax.vmap(lambda one: read(texels, (one,), (x,)))(many))

    def run(knots):
        jax.block_until_ready(stack(knots))
        jax.effects_barrier()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(right)
    with pytest.warns(UserWarning, match="sample: knots of x are .* throughout"):
        run(right[:, [0, 1, 3, 2, 4, 5, 6]])
    with pytest.warns(UserWarning, match="sample: knots of x hold -inf at index 0"):
        run(right * np.inf)
