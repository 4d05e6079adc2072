"""Rows of the tables: a made-up address mode, filter and storage dtype take the general walk, or are refused."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._tables.address_rules import ADDRESS_RULES, AddressRule
from jaxtex._tables.filter_kernels import (
    FILTER_KERNELS,
    FilterKernel,
    FilterOptions,
    Polynomials,
    WeightFunction,
    filter_kernel,
)
from jaxtex._tables.storage_formats import STORAGE_FORMATS, StorageFormat
from jaxtex.modes import AddressMode, FilterMode
from tests.oracles import reads as oracle
from tests.support.arrays import normal
from tests.support.tolerances import TOLERANCES, assert_close

SIDE = (5, 7)


def stride(tap, size):
    """Every third texel, around and around: neighbors are never adjacent, and outside nothing is read."""
    return jnp.mod(3 * tap + 1, size), (tap >= -4) & (tap < size + 4)


def window(fraction):
    """A raised cosine, which is no polynomial."""
    sine = jnp.sin(fraction * (math.pi / 2))
    return 1 - sine * sine, sine * sine


MADE_UP_RULE = AddressRule("stride", stride, has_outside=True)
MADE_UP_KERNEL = FilterKernel(0.5, 0, WeightFunction(window, 2, (1.0, math.pi / 2, math.pi**2 / 2)), signed=False)
KERNELS = {mode.value: filter_kernel(mode) for mode in FilterMode}
KERNELS |= {f"bspline {n}": filter_kernel(FilterMode.BSPLINE, FilterOptions(spline_order=n)) for n in range(6)}
UNBOUNDED_KERNEL = MADE_UP_KERNEL._replace(weights=WeightFunction(window, 2))
MADE_UP_FORMAT = StorageFormat("float8_e4m3fn", floating=True)


@pytest.fixture
def own_programs():
    """Compiled programs know the rows that they were traced with."""
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.fixture
def made_up_mode(monkeypatch, own_programs):
    monkeypatch.setitem(ADDRESS_RULES, AddressMode.REFLECT, MADE_UP_RULE)
    return "reflect"


@pytest.fixture
def made_up_filter(monkeypatch, own_programs):
    monkeypatch.setitem(FILTER_KERNELS, FilterMode.CUBIC, lambda _: MADE_UP_KERNEL)
    return "cubic"


@pytest.fixture
def made_up_dtype(monkeypatch, own_programs):
    monkeypatch.setitem(STORAGE_FORMATS, MADE_UP_FORMAT.name, MADE_UP_FORMAT)
    return jnp.float8_e4m3fn


def coords(*shape):
    return tuple(np.random.default_rng(0).uniform(-0.6, 1.6, (2, *shape)).astype(np.float32))


def raised_cosine(texels, x, y, address):
    """The read with the made-up filter, tap by tap in float64. `address` returns an index, or None outside."""
    out = np.zeros((*x.shape, texels.shape[-1]))
    for k in np.ndindex(x.shape):
        positions = [np.float64(c[k]) * n - 0.5 for c, n in zip((y, x), texels.shape)]
        for taps in np.ndindex(2, 2):
            weight, index = 1.0, []
            for position, tap, n in zip(positions, taps, texels.shape):
                fraction = position - math.floor(position)
                weight *= math.cos(math.pi / 2 * (fraction - tap)) ** 2
                index.append(address(math.floor(position) + tap, n))
            if None not in index:
                out[k] += weight * texels[tuple(index)]
    return out


def clamped(tap, size):
    return min(max(tap, 0), size - 1)


def strided(tap, size):
    return (3 * tap + 1) % size if -4 <= tap < size + 4 else None


def test_a_made_up_mode_and_filter_are_read(made_up_mode, made_up_filter):
    """With zero or a border color outside."""
    texels, (x, y), color = normal(*SIDE, 2), coords(40), np.float32([3.0, -2.0])
    samplers = [jt.Sampler(filter_mode=made_up_filter, address_mode=mode) for mode in ("clamp", made_up_mode)]
    read = lambda sampler, color: jt.sample(jt.texture2d(texels, border_color=color), (x, y), sampler)
    found = jax.jit(lambda: [*(read(sampler, None) for sampler in samplers), read(samplers[1], color)])()
    inside, weight = (raised_cosine(a, x, y, strided) for a in (texels, np.ones((*SIDE, 2))))
    expected = raised_cosine(texels, x, y, clamped), inside, inside + (1 - weight) * color
    for a, b in zip(found, expected, strict=True):
        assert_close("float32", a, b, 8.0)


def test_a_made_up_filter_has_derivatives_of_two_orders(made_up_filter, x64):
    sampler = jt.Sampler(filter_mode=made_up_filter)
    texture, y = jt.texture2d(jnp.asarray(normal(*SIDE, 2), jnp.float64)), jnp.float64(0.37)
    f = lambda x: jt.sample(texture, (x, y), sampler).sum()
    run = jax.jit(lambda x: (f(x), jax.grad(f)(x), jax.grad(jax.grad(f))(x)))
    x = jnp.float64(0.41)
    _, *expected = oracle.differences(lambda t: float(run(x + t)[0]))
    for row, derivative, difference in zip(("first differences", "second differences"), run(x)[1:], expected):
        assert_close(row, derivative, difference, abs(difference))


def test_a_filter_without_bounds_has_no_reproducible_sums(monkeypatch):
    monkeypatch.setitem(FILTER_KERNELS, FilterMode.CUBIC, lambda _: UNBOUNDED_KERNEL)
    sampler = jt.Sampler(filter_mode="cubic", deterministic=True)
    with pytest.raises(ValueError, match=r"deterministic=True needs a bound.*add it to its row"):
        jt.splat(np.ones((3, 1), np.float32), (np.zeros(3),), (5, 1), sampler)


def test_hardware_arithmetic_refuses_made_up_rows(made_up_mode, made_up_filter, made_up_dtype):
    for options in ({"filter_mode": made_up_filter}, {"address_mode": made_up_mode}):
        with pytest.raises(ValueError, match="no texture unit has"):
            jt.Sampler(**options, arithmetic="hardware")
    texture = jt.texture2d(jnp.zeros((2, 2, 1), made_up_dtype))
    with pytest.raises(ValueError, match="no texture unit has"):
        jt.sample(texture, (0.5, 0.5), jt.Sampler(arithmetic="hardware"))


def test_a_made_up_dtype_is_read_and_written(made_up_dtype):
    texels, (x, y) = jnp.asarray(normal(*SIDE, 4)).astype(made_up_dtype), coords(40)
    samplers = jt.Sampler(), jt.Sampler(address_mode="wrap", filter_mode="cubic")
    read = lambda t, sampler=samplers[0]: jt.sample(jt.texture2d(t), (x, y), sampler, dtype="float32")
    gradient = jax.grad(lambda t: read(t).sum())

    @jax.jit
    def run(texels):
        texture, numbers = jt.texture2d(texels), texels.astype(jnp.float32)
        reads = [[read(t, sampler) for t in (texels, numbers)] for sampler in samplers]
        by_default = [jt.sample(texture, (x, y), sampler) for sampler in samplers]
        written = jt.surface_write(texture, 1.0, (jnp.int32(3), jnp.int32(2))).texels[2, 3, 0]
        return reads, [gradient(t) for t in (texels, numbers)], [*by_default, written, jt.build_mipmaps(texture).texels]

    reads, (of_texels, of_numbers), stored = run(texels)
    for found, expected in reads:
        assert_close("reordered", found, expected, np.abs(texels.astype(jnp.float32)).max())
    np.testing.assert_array_equal(of_texels, of_numbers.astype(made_up_dtype))
    assert {a.dtype for a in (of_texels, *stored)} == {jnp.dtype(made_up_dtype)}
    assert float(stored[2]) == 1.0


def test_every_option_has_a_row():
    assert set(ADDRESS_RULES) == set(AddressMode)
    assert set(FILTER_KERNELS) == set(FilterMode)
    assert all(name == row.name for name, row in STORAGE_FORMATS.items())


JOINT = [mode for mode, rule in ADDRESS_RULES.items() if rule.num_axes > 1]


def test_rows_of_address_rules_are_true():
    """What a row claims, tap by tap."""
    size = 5
    taps = np.arange(-3 * size, 4 * size)
    rules = {mode: rule for mode, rule in ADDRESS_RULES.items() if mode not in JOINT}
    applied = jax.jit(lambda taps: {str(mode): rule.apply(taps, size) for mode, rule in rules.items()})(taps)
    for mode, rule in rules.items():
        index, inside = jax.tree.map(np.asarray, applied[str(mode)])
        assert rule.has_outside == (inside is not None), mode
        assert index.min() >= 0, mode
        assert index.max() < size, mode
        read = np.where(inside, index, -1) if rule.has_outside else index
        assert rule.saturates == (len(set(read[taps < 0])) == 1 and len(set(read[taps >= size])) == 1), mode
        if rule.repeats:
            np.testing.assert_array_equal(read[: -2 * size], read[2 * size :], str(mode))
        steps = np.abs(np.diff(index[read >= 0]))
        adjacent = (steps <= 1) | (rule.cyclic & (steps == size - 1))
        assert rule.neighbors_stay_adjacent == adjacent.all(), mode


@pytest.mark.parametrize("mode", JOINT)
def test_rows_of_joint_address_rules_are_true(mode):
    """What a row claims of the taps of all axes; it claims nothing that only one axis could keep."""
    rule, sizes = ADDRESS_RULES[mode], (3, 6)
    assert rule.apply is None
    assert (rule.has_outside, rule.saturates, rule.multiplicity, rule.drops_outside) == (False, False, None, False)
    assert not any((rule.neighbors_stay_adjacent, rule.cyclic, rule.on_hardware))
    rows, columns = (np.arange(-3 * n, 4 * n) for n in sizes)
    run = jax.jit(lambda rows, columns: [tap.texel for tap in rule.apply_together([[rows], [columns]], sizes)])
    (texel,) = run(*np.meshgrid(rows, columns, indexing="ij"))
    stored = np.stack(texel, -1)
    assert (stored >= 0).all()
    assert (stored < sizes).all()
    if rule.repeats:
        np.testing.assert_array_equal(stored[: -2 * sizes[0]], stored[2 * sizes[0] :])
        np.testing.assert_array_equal(stored[:, : -2 * sizes[1]], stored[:, 2 * sizes[1] :])


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_rows_of_filters_are_true(kernel, x64):
    """Weights sum to one; a weight is negative only if the row says so; bounds hold, and that of weights is tight."""
    fraction = np.linspace(0, 1, 1000, endpoint=False)
    # Higher derivatives of weights that are no polynomials are large programs. Differences have the same bounds.
    count = 3 if isinstance(kernel.weights, Polynomials) else 2
    found = jax.jit(lambda fraction: [kernel.weights.at(fraction, order) for order in range(count)])(fraction)
    orders = [np.array([np.broadcast_to(w, len(fraction)) for w in of_taps]) for of_taps in found]
    weights = orders[0]
    while len(orders) < 4:
        orders.append(np.diff(orders[-1]) * len(fraction))
    assert_close("reordered", weights.sum(0), np.ones(len(fraction)), 1)
    assert kernel.signed == (weights < -TOLERANCES["float32"]).any()
    for order, derivatives in enumerate(orders):
        assert np.abs(derivatives).max() <= kernel.weights.bound(order) * (1 + TOLERANCES["reordered"])
        assert kernel.weights.vanish(order) == (not derivatives.any())
    # Units of reproducible sums are as much too coarse as this bound is, once for each axis.
    assert kernel.weights.bound(0) <= 1.02 * np.abs(weights).max()
