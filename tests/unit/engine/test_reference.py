"""The public read, against the read on one screen: values, and gradients in texels, border color and coordinates.

The gradients of `reference.read` are those that JAX finds by itself. Coordinates lie in and around the texture, also on
the edges and centers of texels, where both take the slope on the right, and some are no numbers.
"""

import inspect
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine import reference
from jaxtex._tables.address_rules import ADDRESS_RULES, CLAMP, LAST
from jaxtex._tables.filter_kernels import FILTER_KERNELS, LEVEL_BLEND, NEAREST_LEVEL, POINT
from jaxtex._tables.storage_formats import STORAGE_FORMATS, storage_format, sum_dtype
from tests.support.tolerances import assert_close, assert_exact

MODES = [str(mode) for mode, rule in ADDRESS_RULES.items() if rule.num_axes == 1]
FILTERS = {str(mode): {"filter_mode": mode} for mode in FILTER_KERNELS if mode != "bspline"}
FILTERS |= {f"bspline {order}": {"filter_mode": "bspline", "spline_order": order} for order in range(6)}
MAKE = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LAYERED = {1: jt.texture1d_layered, 2: jt.texture2d_layered}
SIZES = {1: (7,), 2: (5, 6), 3: (3, 4, 5)}  # z, y, x
SPECIALS = np.array([np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 3e38, -3e38, 2.0**24, 0.0, -0.0, 1e-10, -1e-10])
COLOR = np.float32([1.5, -0.5, 0.25])


def texels_of(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    if storage_format(dtype).floating:
        turn = 1j * rng.normal(size=shape) if dtype.kind == "c" else 0
        return (rng.normal(size=shape) + turn).astype(dtype)
    codes = rng.integers(0, 256, (*shape, dtype.itemsize)).astype(np.uint8)
    return codes[..., 0] > 99 if dtype.kind == "b" else np.squeeze(codes.view(dtype), -1)


def in_parts(array):
    """An array of NumPy, of the parts of complex numbers."""
    array = np.asarray(array)
    return array.view(array.real.dtype) if array.dtype.kind == "c" else array


def coords_of(sizes, normalized, dtype=np.float32, count=12):
    """Coordinates, slowest axis first: halves of texels, any, and special ones on one axis after the other."""
    rng, found = np.random.default_rng(count), []
    for axis, size in enumerate(sizes):
        halves, anywhere = rng.integers(-4 * size, 6 * size, count) / 2, rng.uniform(-2 * size, 3 * size, count)
        special = np.full((len(sizes), len(SPECIALS)), 0.5 * size + 0.25)
        special[axis] = SPECIALS * (size if normalized else 1)
        found.append((np.concatenate([halves, anywhere, special.ravel()]) / (size if normalized else 1)).astype(dtype))
    return found


def public_read(sampler, layer, texels, color, *coords):
    texture = (MAKE if layer is None else LAYERED)[len(coords)](texels, border_color=color)
    return jt.sample(texture, coords[::-1], sampler, layer=layer)


def read_by_reference(sampler, layer, texels, color, *coords):
    kernels, rules = [sampler.kernel] * len(coords), sampler.address_rules(len(coords))[::-1]
    normalized = [sampler.normalized_coords] * len(coords)
    if layer is not None:
        coords, kernels, rules = (layer.astype(np.float32), *coords), [POINT, *kernels], [LAST, *rules]
        normalized = [False, *normalized]
    row, sums = storage_format(texels.dtype), sum_dtype(texels.dtype, coords[-1].dtype)
    is_stored = sampler.read_mode == "element" and not row.floating and not (row.blends and sampler.kernel.blends)
    dtype = texels.dtype if is_stored or row.parts else sums
    out = reference.read(texels, coords, kernels, rules, normalized, color, sampler.decoding, dtype)
    return out.astype(texels.dtype) if row.floating else out


def assert_equal_reads(sizes, dtype=np.float32, *, layers=0, color=COLOR, wrt=None, **options):
    """Both reads have the same values, bit for bit where one texel decides, and the same gradients, which are finite.

    Args:
        wrt: the numbers of texels, color and coordinates that have gradients, by default all.
    """
    sampler, rng, dtype = jt.Sampler(**options), np.random.default_rng(0), jnp.dtype(dtype)
    texels = texels_of((*[layers] * (layers > 0), *sizes, 3), dtype)
    coords = coords_of(sizes, sampler.normalized_coords, sum_dtype(dtype))
    layer = rng.integers(-2, layers + 2, coords[0].shape).astype(np.int32) if layers else None
    args = texels, color, *coords
    wrt = range(len(args)) if wrt is None else wrt

    def with_gradients(read, args):
        def of(*some):
            given = dict(zip(wrt, some))
            return read(sampler, layer, *(given.get(k, a) for k, a in enumerate(args)))

        value, pull = jax.vjp(of, *(args[k] for k in wrt))
        return value, pull(jnp.cos(jnp.arange(value.size, dtype=np.float32)).reshape(value.shape).astype(value.dtype))

    both = lambda *args: [with_gradients(read, args) for read in (public_read, read_by_reference)]
    found, expected = jax.jit(both)(*args)
    (value, slopes), (wanted, wanted_slopes) = jax.tree.map(in_parts, (found, expected))
    assert value.dtype == wanted.dtype
    if sampler.kernel.blends or sampler.srgb:
        largest = 1 if sampler.read_mode == "normalized_float" else np.abs(in_parts(texels).astype(np.float64)).max()
        assert_close(value.dtype.name, value, wanted, max(largest, np.abs(COLOR).max()))
    else:
        assert_exact(value, wanted)
    for a, b in zip(slopes, wanted_slopes, strict=True):
        assert a.dtype == b.dtype
        assert_close("sum" if a.dtype == np.float32 else a.dtype.name, a, b, 4 * (1 + np.abs(b.astype(float)).max()))


@pytest.mark.parametrize(("name", "mode"), [*itertools.product(FILTERS, MODES)])
def test_each_filter_in_each_address_mode(name, mode):
    number = [*FILTERS].index(name) + MODES.index(mode)
    assert_equal_reads(SIZES[1], address_mode=mode, normalized_coords=number % 2 == 0, **FILTERS[name])


# Two modes each that lie side by side, or apart by two, in a cycle of five: on each pair of axes all ten.
OF_AXES = {
    2: [(a, MODES[(k + step) % len(MODES)]) for step in (1, 2) for k, a in enumerate(MODES)],
    3: [tuple(MODES[(k + step) % len(MODES)] for step in (0, 1, 3)) for k in range(len(MODES))],
}


@pytest.mark.parametrize("modes", OF_AXES[2] + OF_AXES[3], ids="-".join)
def test_modes_of_several_axes(modes):
    number = MODES.index(modes[0])
    names = [*FILTERS] if len(modes) == 2 else ["point", "linear", "bspline 2", "cubic", "linear"]
    options = FILTERS[names[(number + 5 * (modes in OF_AXES[2][5:])) % len(names)]]
    assert_equal_reads(SIZES[len(modes)], address_mode=modes, normalized_coords=number % 2 == 0, **options)


@pytest.mark.parametrize("mode", MODES)
def test_sizes_smaller_than_the_filter(mode):
    assert_equal_reads((2, 1), address_mode=mode, filter_mode="cubic")


@pytest.mark.parametrize("dimension", LAYERED)
def test_a_layer_is_one_more_axis(dimension):
    assert_equal_reads(SIZES[dimension], layers=4, address_mode="border")


@pytest.mark.parametrize("dtype", [row.name for row in STORAGE_FORMATS.values() if row.floating])
@pytest.mark.parametrize("filter_mode", ["point", "cubic"])
def test_texels_of_each_floating_dtype(dtype, filter_mode):
    with jax.enable_x64(dtype in ("float64", "complex128")):
        assert_equal_reads(SIZES[2], dtype, address_mode=("wrap", "border"), filter_mode=filter_mode)


@pytest.mark.parametrize("dtype", [row.name for row in STORAGE_FORMATS.values() if not row.floating])
def test_texels_that_are_read_as_they_are(dtype):
    color = np.zeros((), dtype)
    assert_equal_reads(SIZES[2], dtype, color=color, wrt=(), address_mode=("border", "mirror"), filter_mode="point")


CODES = {row.name: False for row in STORAGE_FORMATS.values() if row.fraction_bits is not None} | {"uint8 sRGB": True}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("filter_mode", ["point", "linear"])
def test_codes(name, filter_mode):
    options = {"read_mode": "normalized_float", "srgb": CODES[name], "filter_mode": filter_mode}
    assert_equal_reads(SIZES[2], name.split()[0], wrt=(1, 2, 3), address_mode=("border", "reflect"), **options)


def test_a_mask_is_blended_as_numbers():
    assert_equal_reads(SIZES[2], "bool", wrt=(1, 2, 3), address_mode="border")


@pytest.mark.parametrize(("filter_mode", "kernel"), [("point", NEAREST_LEVEL), ("linear", LEVEL_BLEND)])
def test_a_level_of_a_chain_is_a_tap_on_the_axis_of_levels(filter_mode, kernel):
    lod = np.float32([0.0, 0.5, 0.49, 1.0, 1.7, 2.0])
    x, texels = coords_of((8,), True)[0][6:12], texels_of((8, 3), jnp.dtype(np.float32))
    sampler = jt.Sampler(mipmap_filter_mode=filter_mode, address_mode="mirror")

    def by_reference(x, lod, *levels):
        reads = [read_by_reference(sampler, None, level, COLOR, x) for level in levels]
        taps = reference.taps_of_axis(lod, len(levels), kernel, CLAMP, False)
        shares = [sum(jnp.where(tap.index == k, tap.weight, 0) for tap in taps) for k in range(len(levels))]
        return sum(share[:, None] * read for share, read in zip(shares, reads))

    @jax.jit
    def both():
        chain = jt.build_mipmaps(jt.texture1d(texels), num_levels=3)
        public = lambda x, lod: jt.sample(chain, (x,), sampler, lod=lod)
        return [
            jax.jvp(public, (x, lod), (x, lod)),
            jax.jvp(lambda *a: by_reference(*a, *chain.levels), (x, lod), (x, lod)),
        ]

    (value, slope), (wanted, wanted_slope) = both()
    assert_close("float32", value, wanted, np.abs(texels).max())
    assert_close("sum", slope, wanted_slope, 4 * (1 + np.abs(wanted_slope).max()))


def test_the_architecture_page_shows_its_code():
    page, source = Path(__file__).parents[3] / "docs" / "contributing" / "architecture.md", inspect.getsource(reference)
    code = source[source.index("def read(") :]
    assert f"```python\n{code}```\n" in page.read_text(), f"{page.name} is to show\n{code}"
