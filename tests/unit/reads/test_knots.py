"""Textures with knots: texels that are not evenly spaced, against the definitions in float64."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import knots as oracle
from tests.oracles import reads as even_oracle
from tests.support.derivatives import assert_derivatives
from tests.support.jaxprs import equations
from tests.support.tolerances import assert_close, assert_exact

BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
MODES = ("clamp", "border", "wrap", "mirror", "reflect")
FILTERS = ("point", "linear", "lagrange")
SIZES = (5, 6, 4)


def knots_of(size, seed, *, down=False):
    """Knots with both edges, no two of them close."""
    steps = np.random.default_rng(seed).uniform(0.5, 2.0, size + 1)
    found = np.cumsum([-3.0, *steps])
    return found[::-1].copy() if down else found


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


# Values


@pytest.mark.parametrize("filter_mode", FILTERS)
@pytest.mark.parametrize("mode", MODES)
def test_values_in_each_mode(mode, filter_mode, x64):
    for ndim in (1, 2):
        texels, knots, coords = drawn(ndim, np.float64)
        expected = oracle.sample(jnp.asarray(texels), coords, knots, (mode,) * ndim, filter_mode, color=0.25)
        found = read(texels, knots, coords, mode, filter_mode, color=0.25)
        assert_close("float64", found, expected, 64)


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_values_in_volumes_in_float32(filter_mode):
    texels, knots, coords = drawn(3)
    modes = ("wrap", "clamp", "border")
    with jax.enable_x64(True):
        wide = [np.float64(a) for a in (texels, *knots, *coords)]
        expected = oracle.sample(jnp.asarray(wide[0]), wide[4:], wide[1:4], modes, filter_mode)
    assert_close("float32", read(texels, knots, coords, modes, filter_mode), np.asarray(expected), 512)


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_axes_without_knots_stay_as_they_are(filter_mode, x64):
    """y has knots and x and z have not; x is normalized, and repeats."""
    texels, knots, coords = drawn(3, np.float64)
    x, y, z = np.linspace(-1.9, 2.9, 64) + 0.003, coords[1], np.linspace(-0.4, 1.4, 64) + 0.002
    even = [np.arange(-1, n + 1) + 0.5 for n in SIZES]
    even = [np.concatenate([[0.0], e[1:-1], [float(n)]]) for e, n in zip(even, SIZES)]
    modes = ("wrap", "clamp", "wrap")
    at = (x * SIZES[0], y, z * SIZES[2])
    expected = oracle.sample(jnp.asarray(texels), at, (even[0], knots[1], even[2]), modes, filter_mode)
    found = read(texels, (None, knots[1], None), (x, y, z), modes, filter_mode)
    assert_close("float64", found, expected, 64)
    found = read(texels, (None, knots[1], None), at, modes, filter_mode, normalized_coords=False)
    assert_close("float64", found, expected, 64)


@pytest.mark.parametrize("mode", ["border", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("filter_mode", FILTERS)
def test_even_knots_are_an_even_axis(mode, filter_mode):
    texels, x = np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32), np.linspace(-20, 30, 97) + 0.01
    x, knots = x.astype(np.float32), np.float32([0, *np.arange(9) + 0.5, 9])
    sampler = jt.Sampler(address_mode=mode, filter_mode=filter_mode, normalized_coords=False)
    expected = jt.sample(jt.texture1d(texels), (x,), sampler)
    assert_close("float32", read(texels, (knots,), (x,), mode, filter_mode), expected, 64)


def test_the_polynomial_is_exact_to_the_ends_of_a_clamped_axis(x64):
    """With fewer than four knots it has a lower degree."""
    curves = {1: lambda x: 0 * x + 2, 2: lambda x: 3 * x - 1, 3: lambda x: x * x - x, 7: lambda x: (x - 2) * x * x + 1}
    for size, curve in curves.items():
        knots = knots_of(size, size)
        x = np.linspace(knots[1], knots[-2], 33)
        found = read(curve(knots[1:-1])[:, None], (knots,), (x,), filter_mode="lagrange")
        assert_close("float64", found[:, 0], curve(x), 256)
        beyond = read(curve(knots[1:-1])[:, None], (knots,), (knots[[0, -1]],), filter_mode="lagrange")
        assert_close("float64", beyond[:, 0], curve(knots[[1, -2]]), 256)


@pytest.mark.parametrize("mode", ["clamp", "border", "wrap"])
def test_a_limited_read_stays_between_its_nearest_texels(mode, x64):
    texels, knots, coords = drawn(2, np.float64, 128)
    for some in (knots, (None, knots[1])):
        at = (coords[0] if some[0] is not None else np.linspace(-0.9, 1.9, 128), coords[1])
        even = np.array([0.0, *(np.arange(SIZES[0]) + 0.5) / SIZES[0], 1.0])
        laid = (even if some[0] is None else some[0], some[1])
        how = {"color": 0.25, "limited": True}
        expected = oracle.sample(jnp.asarray(texels), at, laid, (mode,) * 2, "lagrange", **how)
        if mode == "clamp" and some[0] is None:
            continue  # an even axis has taps beyond its ends
        found = read(texels, some, at, mode, "lagrange", color=0.25, limit="taps")
        assert_close("float64", found, expected, 64)


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_values_on_a_sphere(filter_mode, x64):
    """Longitudes that are even or not, latitudes from pole to pole, and levels."""
    rng, (width, height, levels) = np.random.default_rng(0), (6, 5, 3)
    texels = rng.normal(size=(levels, height, width, 2))
    longitudes, latitudes, pressures = knots_of(width, 1), knots_of(height, 2, down=True), knots_of(levels, 3)
    coords = [inside_cells(k, 80, j) for j, k in enumerate((longitudes, latitudes, pressures))]
    modes = ("sphere", "sphere", "clamp")
    expected = oracle.sample(jnp.asarray(texels), coords, (longitudes, latitudes, pressures), modes, filter_mode)
    found = read(texels, (longitudes, latitudes, pressures), coords, "sphere", filter_mode)
    assert_close("float64", found, expected, 64)
    turn = (coords[0] - longitudes[0]) / (longitudes[-1] - longitudes[0])
    even = np.array([0.0, *(np.arange(width) + 0.5) / width, 1.0])
    expected = oracle.sample(jnp.asarray(texels[0]), (turn, coords[1]), (even, latitudes), modes[:2], filter_mode)
    layered = jt.texture2d_layered(texels, knots=(None, latitudes))
    sampler = jt.Sampler(address_mode="sphere", filter_mode=filter_mode)
    found = jt.sample(layered, (turn, coords[1]), sampler, layer=np.zeros(80, int))
    assert_close("float64", found, expected, 64)


def test_knots_without_edges_have_them_half_a_cell_beyond(x64):
    texels, knots, coords = drawn(1, np.float64)
    inner = knots[0][1:-1]
    edges = [1.5 * inner[0] - 0.5 * inner[1], *inner, 1.5 * inner[-1] - 0.5 * inner[-2]]
    for filter_mode in FILTERS:
        found = read(texels, (inner,), coords, "border", filter_mode)
        assert_close("float64", found, read(texels, (np.array(edges),), coords, "border", filter_mode), 16)


@pytest.mark.parametrize("filter_mode", FILTERS)
def test_numbers_that_are_no_coordinates(filter_mode):
    """NaN is the first edge; infinities saturate, or are the first edge where the texture repeats."""
    texels, (knots,), _ = drawn(1)
    special = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38])
    start = np.full(5, knots[0], np.float32)
    far = np.float32([knots[0], 1e6, -1e6, 1e6, -1e6])
    for mode in MODES:
        found = read(texels, (knots,), (special,), mode, filter_mode)
        assert np.isfinite(found).all()
        saturates = mode in ("clamp", "border")
        expected = read(texels, (knots,), (far if saturates else start,), mode, filter_mode)
        count = 5 if saturates else 3
        assert_exact(found[:count], expected[:count], np.float32)


def test_a_jump_between_two_equal_knots():
    """Linear reads see both sides; the texel after the jump is that of the knot itself."""
    texture = jt.texture1d(np.float32([[0], [1], [5], [6]]), knots=(np.float32([0, 1, 1, 2]),))
    found = jt.sample(texture, (np.float32([0.5, 0.9999999, 1.0, 1.5]),))
    assert_close("float32", found[:, 0], [0.5, 1.0, 5.0, 5.5], 8)


def test_gather_and_fetch_and_positions():
    texels, knots, coords = drawn(2)
    texture = jt.texture2d(texels, knots=knots)
    at = jt.positions(texture, coords)
    in_texels = jt.Sampler(normalized_coords=False)
    plain = jt.texture2d(texels)
    assert_exact(jt.gather(texture, coords), jt.gather(plain, at, in_texels), np.float32)
    assert_exact(jt.sample(texture, coords), jt.sample(plain, at, in_texels), np.float32)
    assert_exact(jt.fetch(texture, (1, 2)), texels[2, 1], np.float32)
    half = jt.texture2d(texels, knots=(None, knots[1]))
    x, y = jt.positions(half, (np.float32([0.5, 0.25]), coords[1][:2]))
    assert_exact(x, np.float32([2.5, 1.25]), np.float32)
    assert_exact(y, at[1][:2], np.float32)


def test_a_stochastic_read_draws_among_the_taps_of_the_position():
    texels, knots, coords = drawn(2)
    key = jax.random.key(1)
    at = jt.positions(jt.texture2d(texels, knots=knots), coords)
    expected = jt.sample(jt.texture2d(texels), at, jt.Sampler(normalized_coords=False), key=key)
    assert_exact(jt.sample(jt.texture2d(texels, knots=knots), coords, key=key), expected, np.float32)


@pytest.mark.parametrize("filter_mode", ["linear", "lagrange"])
def test_integer_texels(filter_mode):
    codes, (knots, coords) = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8), drawn(2)[1:]
    plain = jt.Sampler(filter_mode=filter_mode)
    read = lambda texels, sampler=plain: jt.sample(jt.texture2d(texels, knots=knots), coords, sampler)
    expected = read(np.float32(codes) / 255)
    assert_close("float32", read(codes, dataclasses.replace(plain, read_mode="normalized_float")), expected, 8)
    half = read(np.float16(codes / 255))
    assert half.dtype == np.float16
    assert_close("float16", half, np.asarray(expected), 2)


# Derivatives


@pytest.mark.parametrize(
    ("mode", "filter_mode", "limit", "ndim"),
    [
        *(("clamp", "linear", None, 2), ("border", "lagrange", None, 1), ("clamp", "lagrange", "taps", 1)),
        *(("sphere", "lagrange", None, 2), ("wrap", "linear", None, 2), ("reflect", "lagrange", None, 1)),
    ],
)
def test_derivatives_are_those_of_the_definition(mode, filter_mode, limit, ndim, x64):
    """To the second order, in texels, knots, coordinates and color, along one line, forward and in reverse."""
    texels, knots, coords = drawn(ndim, np.float64, 24, 1)
    texels = texels if mode != "sphere" else np.concatenate([texels, texels[:, :1] * 0.5 + 0.1], 1)
    knots = knots if mode != "sphere" else (knots_of(6, 2), knots[1])
    args = (texels, knots, coords, np.float64(0.3))
    tangents = jax.tree.map(lambda a: np.random.default_rng(np.size(a)).normal(size=np.shape(a)), args)

    def library(texels, knots, coords, color):
        return (read(texels, knots, coords, mode, filter_mode, color=color, limit=limit) ** 2).sum(-1)

    def definition(texels, knots, coords, color):
        how = {"color": color, "limited": limit is not None, "known": args[1:3]}
        return (oracle.sample(texels, coords, knots, (mode,) * ndim, filter_mode, **how) ** 2).sum(-1)

    def both_orders(function):
        gradient = jax.grad(lambda *a: function(*a).sum(), (0, 1, 2, 3))
        return function(*args), *jax.jvp(gradient, args, tangents), jax.jvp(function, args, tangents)[1]

    expected, found = both_orders(definition), jax.jit(lambda: both_orders(library))()
    jax.tree.map(lambda a, b: assert_close("float64", a, b, 2.0**10 * max(1, np.abs(b).max())), found, expected)


@pytest.mark.slow
def test_derivatives_in_a_volume(x64):
    texels, knots, coords = drawn(3, np.float64, 8, 1)
    function = lambda t, k, *c: read(t, k, c, ("wrap", "mirror", "clamp")) ** 2
    assert_derivatives(function, texels, knots, *coords, step=1e-4)


def test_slopes_at_a_knot_are_those_towards_the_next_texel():
    knots, values = jnp.array([0.0, 1.0, 3.0]), jnp.array([[0.0], [2.0], [3.0]])
    at = lambda x: jt.sample(jt.texture1d(values, knots=(knots,)), (x,))[0]
    found = jax.vmap(jax.grad(at))(jnp.array([-1.0, 0.0, 1.0, 3.0, 4.0]))
    np.testing.assert_array_equal(found, [0, 2, 0.5, 0, 0])


@pytest.mark.parametrize("filter_mode", ["linear", "lagrange"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_sums_into_knots_follow_the_option(deterministic, filter_mode):
    texels, knots, coords = drawn(2)
    loss = lambda k: read(texels, k, coords, filter_mode=filter_mode, deterministic=deterministic).sum()
    found = equations(jax.make_jaxpr(jax.grad(loss))(knots).jaxpr)
    splats = [e.params["spec"] for e in found if e.primitive.name == "texture_splat"]
    assert len(splats) == 2
    assert {spec.deterministic for spec in splats} == {deterministic}


def test_batches_of_knots():
    """Each texture of a stack has knots of its own."""
    texels, knots, coords = drawn(1)
    stack, many = np.stack([texels, 2 * texels]), np.stack([knots[0], knots[0] + 0.5])
    for filter_mode in ("linear", "lagrange"):
        one = lambda t, k, how=filter_mode: read(t, (k,), coords, "wrap", how)
        found = jax.vmap(one)(stack, many)
        assert_close("float32", found, np.stack([one(t, k) for t, k in zip(stack, many)]), 64)
        textures = jt.Texture(stack, None, "1d", knots=(many,))
        assert textures.batch_ndim == 1


def test_what_a_pole_reads_is_a_place_like_any_other(x64):
    """Gaussian latitudes: the texel nearest to a pole lies less than half a cell from it."""
    nodes, _ = np.polynomial.legendre.leggauss(16)
    latitudes = np.array([np.pi / 2, *np.arcsin(nodes)[::-1], -np.pi / 2])
    longitudes = (np.arange(32) + 0.5) * 2 * np.pi / 32

    def smooth(x, y):
        return np.cos(y) * np.cos(x) + 0.5 * np.sin(y) - np.cos(y) ** 2 * np.sin(2 * x)

    texels = smooth(longitudes, latitudes[1:-1, None])[..., None]
    texture, sampler = (
        jt.texture2d(texels, knots=(None, latitudes)),
        jt.Sampler(address_mode="sphere", filter_mode="lagrange"),
    )
    at = np.random.default_rng(0).uniform([0, 1.4], [1, np.pi / 2], (200, 2)).T
    found = jt.sample(texture, tuple(at), sampler)[:, 0]
    assert_close("cubic on a sphere", found, smooth(2 * np.pi * at[0], at[1]), (np.pi / 16) ** 2)


# Refusals


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda t, k: jt.texture2d(t, knots=k[:1]),
            r"knots is .*, expected a tuple \(x, y\) of arrays or None",
        ),
        (
            lambda t, k: jt.texture2d(t, knots=k[::-1]),
            r"knots of x have shape \(8,\), expected \(5,\) or \(7,\)",
        ),
        (
            lambda t, k: jt.texture1d(t[:, 0], knots=(np.array([330.0, 340, 350, 0, 10, 20]),)),
            r"texture1d: knots of x are 350 and then 0, at index 2 and 3, .* pass np.unwrap\(knots, period=360\), and",
        ),
        (
            lambda t, k: jt.texture1d(t[:, 0], knots=(jnp.array([0.0, -2, -3, 3, 2, 1]),)),
            r"are -3 and then 3, at index 2 and 3, .* after 2 \* np.pi",
        ),
        (
            lambda t, k: jax.jit(lambda t: jt.texture2d(t, knots=(None, k[1][[0, 2, 1, 3, 4, 5, 6, 7]])))(t),
            "texture2d: knots of y are .*increase or decrease throughout; sort them, and the texels with them",
        ),
        (lambda t, k: jt.texture2d(t, knots=(k[0] * np.nan, None)), "knots of x hold nan at index 0, expected finite"),
        (lambda t, k: jt.texture2d(t, knots=([1.0] * 5, None)), "knots of x are all 1, expected coordinates that inc"),
        (lambda t, k: jt.texture2d((t, t[:3, :2]), knots=k), "texture2d: knots are given for a mip chain of 2 levels"),
        (lambda t, k: jt.texture1d(t[:1, 0], knots=(k[0][:1],)), r"expected \(3,\): the coordinates of the 1 texels"),
        (
            lambda t, k: read(t, k, (0.5, 0.5), filter_mode="cubic"),
            "filter_mode='cubic' is given for a texture",
        ),
        (
            lambda t, k: read(t, k, (0.5, 0.5), arithmetic="hardware"),
            "arithmetic='hardware' is given for a text",
        ),
        (
            lambda t, k: read(t, (k[0][1:-1], k[1]), (0.5, 0.5), "wrap"),
            "sample: the address mode of x is 'wrap', which continues the axis at its edges, and the 5 knots of x have",
        ),
        (
            lambda t, k: jt.sample(jt.texture2d(t, knots=k), (0.5, 0.5), ddx=(0.1, 0.1), ddy=(0.1, 0.1)),
            "sample: ddx is given for a texture with knots",
        ),
        (
            lambda t, k: jt.sample(
                jt.texture2d(t, knots=k), (0.5, 0.5), jt.Sampler(filter_mode="lagrange"), key=jax.random.key(0)
            ),
            "sample: key is given for a texture with knots",
        ),
        (
            lambda t, k: jt.spline_filter(jt.texture2d(t, knots=k), jt.Sampler(filter_mode="bspline")),
            "spline_filter: texture has knots, which spline_filter does not use",
        ),
        (
            lambda t, k: jt.nn.sample_weighted(jt.texture2d(t, knots=k), (np.zeros(2), np.zeros(2)), np.ones(2)),
            "sample_weighted: textures has knots",
        ),
        (
            lambda t, k: jt.positions(jt.cubemap(np.zeros((6, 2, 2, 1))), (1.0, 0.0, 0.0)),
            "texture is a cubemap",
        ),
    ],
)
def test_errors_are_sentences(run, words):
    texels, knots, _ = drawn(2)
    with pytest.raises(ValueError, match=words):
        run(texels, knots)


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


def test_what_needs_no_knots_reads_at_positions():
    """The adjoint, weighted sums and reads with derivatives take positions."""
    texels, knots, coords = drawn(2)
    texture, values = (
        jt.texture2d(texels, knots=knots),
        np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32),
    )
    at, in_texels = jt.positions(texture, coords), jt.Sampler(normalized_coords=False)
    spread = jt.splat(values, at, texels.shape, in_texels).texels
    dots = np.vdot(spread, texels), np.vdot(jt.sample(texture, coords), values)
    assert_close("long sum", *map(np.float64, dots), 64)
    plain = dataclasses.replace(texture, knots=None)
    found = jt.sample_with_derivatives(plain, at, in_texels).value
    assert_close("float32", found, jt.sample(texture, coords), 8)


def test_the_oracle_agrees_with_that_of_even_axes(x64):
    texels, _, _ = drawn(2, np.float64)
    coords = np.random.default_rng(0).uniform(-7, 12, (2, 50))
    even = tuple(np.array([0.0, *(np.arange(n) + 0.5), float(n)]) for n in SIZES[:2])
    for mode in MODES:
        expected = even_oracle.sample(
            texels, coords, address_mode=mode, filter_mode="linear", normalized_coords=False, dtype=np.float64
        )
        assert_close("float64", oracle.sample(jnp.asarray(texels), coords, even, (mode,) * 2, "linear"), expected, 64)
