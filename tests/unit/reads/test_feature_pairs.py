"""Every pair of features of a read, against plain reads of an oracle that are composed, or refused in a sentence.

A feature is a row of `FEATURES`; `SETS` holds all pairs of them, and the page of features shows which are refused.
Each set that is read has the value of the composition, and the gradients in texels, color, coordinates, weights, level
of detail and footprint that it has along one line.
"""

import contextlib
import functools
import itertools
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._engine.arithmetic import FLOAT
from jaxtex._engine.describe.plan import Layout, ReadArguments, SizedTexture, sizes_of
from jaxtex._engine.walk.drawn_taps import DrawnTaps
from jaxtex._jax.indexing import placed_like
from jaxtex._reads import calls
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close


class Feature(NamedTuple):
    """A feature of a read.

    Attributes:
        words: what it is, and what asks for it.
        keyword: the argument that asks for it, if there is one.
        options: of a sampler, where these ask for it.
    """

    words: str
    keyword: str | None = None
    options: dict | None = None


FEATURES = {
    "limit": Feature(
        'within its nearest taps: `Sampler(limit="taps")`', "sampler", {"filter_mode": "cubic", "limit": "taps"}
    ),
    "key": Feature("one drawn tap: `sample(key=...)`", "key", {"filter_mode": "cubic"}),
    "weights": Feature("times weights: `nn.sample_weighted(axis=())`", "weights"),
    "sum": Feature("a sum of reads: `nn.sample_weighted(axis=-1)`", "axis"),
    "derivatives": Feature("with its slopes: `sample_with_derivatives`", "order"),
    "border": Feature("a border color: `texture2d(border_color=...)`", "border_color", {"address_mode": "border"}),
    "sizes": Feature("sizes are operands: warps of images of many sizes", "sizes"),
    "window": Feature("a window of the texels is stored: `warp.resample_tiles`", "window"),
    "halo": Feature("each device stores a part and a halo: `sharded.using(Halo(...))`"),
    "hashed": Feature("vertices share rows: `nn.multiresolution_grid`"),
    "levels": Feature("a mip chain: `sample(lod=...)`", "lod", {"mipmap_filter_mode": "linear"}),
    "footprint": Feature("several reads: `Sampler(max_anisotropy=...)`", "ddx", {"max_anisotropy": 2}),
    "deterministic": Feature("reproducible sums: `Sampler(deterministic=True)`", "sampler", {"deterministic": True}),
    "hardware": Feature(
        'fixed point: `Sampler(arithmetic="hardware")`', "sampler", {"arithmetic": "hardware", "filter_mode": "linear"}
    ),
    "half": Feature("rounded to 16 bits: texels of float16"),
    "complex": Feature("of real and imaginary parts: texels of complex64"),
    "batch": Feature("a batch: `jax.vmap`"),
    "sharding": Feature("samples are sharded over devices"),
}
SIZED = {"sizes", "window"}
SUMS = {"weights", "sum"}
REFUSED = {
    ("limit", "key"): r"sample: key is given with limit='taps'",
    ("limit", "hardware"): r"Sampler: arithmetic='hardware' is given with limit='taps'",
    ("key", "hardware"): r"sample: key is given with arithmetic='hardware'",
    ("key", "derivatives"): r"sample_with_derivatives: there is no argument 'key'",
    ("weights", "derivatives"): r"sample_weighted: there is no argument 'order'",
    ("sum", "derivatives"): r"sample_weighted: there is no argument 'order'",
    ("derivatives", "sizes"): r"sample_with_derivatives: texture is a SizedTexture",
    ("derivatives", "window"): r"sample_with_derivatives: texture is a SizedTexture",
    ("key", "sizes"): r"taps are not drawn from texels whose sizes are operands",
    ("key", "window"): r"taps are not drawn from texels whose sizes are operands",
    ("weights", "sizes"): r"texels whose sizes are operands have no weights",
    ("weights", "window"): r"texels whose sizes are operands have no weights",
    ("sum", "sizes"): r"texels whose sizes are operands have no weights",
    ("sum", "window"): r"texels whose sizes are operands have no weights",
    ("limit", "complex"): r"sample: limit='taps' is given for complex64 texels, and complex numbers have no order",
    ("sizes", "complex"): r"SizedResize: image is .*, expected an array \(H, W, C\) of",
    ("window", "complex"): r"resample_tiles: image has dtype complex64, expected floating numbers",
    ("hashed", "complex"): r"multiresolution_grid: tables has dtype complex64, expected floating numbers",
    ("hardware", "complex"): r"sample: arithmetic='hardware' is given for complex64 texels",
    ("half", "complex"): r"sample: dtype is float16, which does not hold the complex64 values",
    ("window", "levels"): r"a window holds texels of one level",
}
ALL_PAIRS = [*itertools.combinations(FEATURES, 2)]
REFUSED |= {
    pair: rf"multiresolution_grid: there is no argument '{FEATURES[name].keyword}'"
    for pair, name in itertools.product(ALL_PAIRS, FEATURES)
    if {*pair} == {name, "hashed"} and FEATURES[name].keyword
}
# What is read at once, a program each: every pair that is not refused is part of one of them.
SETS = [
    ("limit", "weights", "sum", "deterministic", "half", "batch"),
    ("limit", "derivatives", "halo"),
    ("limit", "border", "sharding"),
    ("limit", "sizes", "window", "deterministic", "half"),
    ("limit", "levels", "footprint"),
    ("key", "border", "halo", "complex"),
    ("key", "levels", "deterministic", "half", "batch"),
    ("key", "footprint", "sharding"),
    ("key", "weights", "sum", "footprint"),
    ("weights", "sum", "footprint", "half", "batch"),
    ("weights", "sum", "border", "halo", "batch"),
    ("weights", "sum", "levels", "complex", "sharding"),
    ("weights", "levels", "hardware"),
    ("halo", "levels"),
    ("sum", "halo", "deterministic", "hardware", "half"),
    ("derivatives", "border", "deterministic", "half", "batch"),
    ("derivatives", "border", "levels", "complex"),
    ("derivatives", "footprint", "hardware"),
    ("derivatives", "deterministic", "hardware", "half", "sharding"),
    ("border", "sizes", "window", "hardware", "batch"),
    ("border", "footprint", "deterministic", "complex", "batch"),
    ("sizes", "window", "halo", "footprint", "half"),
    ("sizes", "window", "sharding"),
    ("sizes", "levels"),
    ("halo", "hashed", "half", "batch", "sharding"),
]
# These have two dimensions; the others have one, which costs a fraction.
OF_IMAGES = {("derivatives", "border", "deterministic", "half", "batch")}
# With these, samples that are sharded travel to texels that are, too, which costs a multiple.
CUT = {"limit", "border"}
# With these, each device gets the whole texture, whatever halo is asked for.
WHOLE = {"key", "sizes", "window", "hashed"}
GRID = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=4, log2_hashmap_size=5)
SAMPLES, DRAWS, CAPACITY, REACH = 16, 400, 304, 6
# A window of so many texels of 24, which goes on with the first ones.
START, COUNT = 15, 16
KEY = jax.random.key(3)
# Of a central difference, in the unit of coordinates.
STEP = 1e-5
# So many standard deviations of a mean lie between it and its expectation in one of 10^8 cases.
SIGMAS = 6
MAKE = {1: jt.texture1d, 2: jt.texture2d}


def sampler_of(on):
    options = {"address_mode": "wrap"} | {k: v for name in on for k, v in (FEATURES[name].options or {}).items()}
    return jt.Sampler(**options, normalized_coords=not in_texels(on))


def in_texels(on):
    """Whether coordinates have that unit: that of a footprint where sizes are operands."""
    return "footprint" in on and bool(SIZED & {*on})


def by_halo(on):
    """Whether texels are sharded as they come."""
    return "halo" in on and not SIZED & {*on}


def sizes_of_texels(on):
    """The sizes of the texels, of which devices have equal parts."""
    if "hashed" in on:
        return (sum(GRID.table_sizes),)
    return (8, 16) if on in OF_IMAGES else (64,) if by_halo(on) else (24,) if "window" in on else (16,)


@functools.cache
def drawn(on):
    """Float32 arrays: texels, a color, coordinates, weights, a level of detail, and a side."""
    rng, sizes = np.random.default_rng(len(str(on))), sizes_of_texels(on)
    batch, each = ((2,) if "batch" in on else ()), ((3,) if "sum" in on else ())
    samples, unit = (*batch, SAMPLES, *each), 1 if in_texels(on) else sizes[-1]
    # Numbers that float16 holds, and no two equal ones, which would be kinks of a limit.
    texels = rng.choice(2**11, (*batch, *sizes, 2), replace=False) / 2**10 - 1
    # Between the centers of texels, where the weights have kinks.
    low, high = (18, 26) if "window" in on else (-2, 10) if by_halo(on) else (-6, 22)
    cells = rng.integers(low, high, (*batch, len(sizes), SAMPLES, *each))
    if by_halo(on):  # two samples of each device lie near its texels
        cells = cells + (np.arange(SAMPLES) // 2 * 8).reshape(-1, *[1] * len(each))
    coords = (cells + 0.5 + rng.uniform(0.1, 0.9, cells.shape)) / unit
    if "hashed" in on:  # between the vertices of both levels
        coords = (rng.integers(0, 36, (*batch, 2, SAMPLES)) + rng.uniform(0.1, 0.9, (*batch, 2, SAMPLES))) / 42
    return tuple(
        np.asarray(a, np.float32)
        for a in (
            texels,
            rng.normal(size=(*batch, 2)),
            coords,
            rng.normal(size=samples),
            rng.uniform(0.1, 2.9, samples),
            # 8 to 16 texels, whose other side is a third of it: two reads, and levels between 2 and 3.
            rng.uniform(8.8, 15.2, samples) / unit,
        )
    )


# The composition


def nearest(texels, coords, mode, color):
    """The texels that a linear filter would blend, one after the other."""
    sizes = texels.shape[:-1]
    lows = [np.floor(c * n - 0.5).astype(np.int64) for c, n in zip(coords[::-1], sizes)]
    for corner in np.ndindex(*[2] * len(lows)):
        index, inside = zip(*(oracle.address(low + k, n, mode) for low, k, n in zip(lows, corner, sizes)))
        yield np.where(np.all(inside, 0)[..., None], texels[tuple(index)], color)


def composed(on, texels, color, coords, weights, lod, side):
    """What the features mean, each in terms of the reads without it: in NumPy and float64."""
    if "batch" in on:
        rest = tuple(name for name in on if name != "batch")
        return np.stack([composed(rest, *args) for args in zip(texels, color, coords, weights, lod, side)])
    if "complex" in on:
        rest = tuple(name for name in on if name != "complex")
        return np.concatenate([composed(rest, t, c, coords, weights, lod, side) for t, c in parts(texels, color)], -1)
    if "hashed" in on:
        return np.concatenate([*features_of_levels(texels, coords)], -1)
    if "derivatives" in on:
        plain = tuple(name for name in on if name != "derivatives")
        smooth = tuple(name for name in plain if name != "hardware")
        near = lambda step: composed(smooth, texels, color, [coords[0] + step, *coords[1:]], weights, lod, side)
        value = composed(plain, texels, color, coords, weights, lod, side)
        return np.concatenate([value, (near(STEP) - near(-STEP)) / (2 * STEP)], -1)
    size = texels.shape[-2]
    coords, side = (np.asarray(coords) / size, side / size) if in_texels(on) else (coords, side)
    levels = oracle.mipmaps(texels, texels.ndim - 1) if "levels" in on else [texels]
    options = {"filter_mode": str(sampler_of(on).filter), "address_mode": "border" if "border" in on else "wrap"}

    def of_level(level, coords):
        out = oracle.sample(level, coords, border_color=color, dtype=np.float64, **options)
        if "limit" in on:
            taps = [*nearest(level, coords, options["address_mode"], color)]
            out = np.clip(out, np.min(taps, 0), np.max(taps, 0))
        return out

    def of_levels(coords, lod):
        shares = [np.maximum(0, 1 - np.abs(lod - k))[..., None] for k in range(len(levels))]
        return sum(share * of_level(level, coords) for share, level in zip(shares, levels))

    if "levels" not in on:
        lod = np.zeros(())
    elif "footprint" in on:
        lod = np.log2(side * size / 2)
    step = 0.5 / size if "hardware" in on else side / 6
    steps = (-step, step) if "footprint" in on else (0,)
    out = sum(of_levels([coords[0] + step, *coords[1:]], lod) for step in steps) / len(steps)
    out = out * weights[..., None] if "weights" in on else out
    return np.sum(out, -2) if "sum" in on else out


def parts(*arrays):
    """Arrays as real parts, and with their channels reversed as imaginary parts."""
    return arrays, [a[..., ::-1] for a in arrays]


def features_of_levels(table, points):
    """What each level of a grid of two dimensions holds at points, x first."""
    first, factors = 0, np.array([1, 2654435761])
    for scale, size, rows, is_hashed in zip(GRID.scales, GRID.resolutions, GRID.table_sizes, GRID.hashed):
        place, out = scale * np.moveaxis(points, 0, -1) + 0.5, 0
        for corner in np.ndindex(2, 2):
            vertex = np.floor(place).astype(np.int64) + corner
            row = np.bitwise_xor.reduce(vertex * factors, -1) if is_hashed else vertex @ np.array([1, size])
            out = out + np.prod(1 - np.abs(place - vertex), -1)[..., None] * table[first + row % rows]
        yield out
        first += rows


# The read


def texture_of(on, texels, color):
    texture = MAKE[texels.ndim - 1](texels, border_color=color if "border" in on else None)
    texture = jt.build_mipmaps(texture) if "levels" in on else texture
    if not SIZED & {*on}:
        return texture
    flat, windowed = texture.texels.reshape(-1, 2), "window" in on
    if windowed:
        flat = jnp.roll(flat, -START, 0)[:COUNT]
    else:
        flat = jnp.concatenate([flat, jnp.zeros((CAPACITY - len(flat), 2), texels.dtype)])
    flat = jax.reshard(flat, P("d")) if "halo" in on else flat
    window = {"window": (COUNT,), "starts": (np.int32([START]),)} if windowed else {}
    return SizedTexture(flat, (np.int32(texels.shape[:1]),), texture.border_color, texture.num_levels, **window)


def read(on, texels, color, coords, weights, lod, side):
    """The read with all features, in float32; with a key so many draws in front."""
    if "batch" in on:
        rest = tuple(name for name in on if name != "batch")
        return jax.vmap(functools.partial(read, rest), out_axes=int("key" in on))(
            texels, color, coords, weights, lod, side
        )
    if "complex" in on:
        texels, color = (jax.lax.complex(*both) for both in zip(*parts(texels, color)))
    half = "half" in on and "complex" not in on  # there are no complex numbers of 16 bits
    texels, coords, options = texels.astype(np.float16) if half else texels, tuple(coords), {}
    if "footprint" in on:
        options |= {"ddx": (side,), "ddy": (side / 3,)}
    elif "levels" in on:
        options |= {"lod": lod}
    if "key" in on:
        coords, options["key"] = tuple(jnp.broadcast_to(c, (DRAWS, *c.shape)) for c in coords), KEY
    if "hashed" in on:
        unknown = {FEATURES[name].keyword: None for name in on if FEATURES[name].keyword}
        out = jt.nn.multiresolution_grid(texels, jnp.stack(coords, -1), GRID, **unknown)
    else:
        texture, sampler = texture_of(on, texels, color), sampler_of(on)
        options |= {"order": 1} if "derivatives" in on else {}
        if "derivatives" in on and not SUMS & {*on}:
            found = jt.sample_with_derivatives(texture, coords, sampler, **options)
            out = jnp.concatenate([found.value, found.gradient[0]], -1)
        elif isinstance(texture, SizedTexture) and "complex" in on:
            image = np.asarray(texels)[None]
            out = jt.warp.SizedResize()(image, (4, 4)) if "sizes" in on else jt.warp.resample_tiles(image, as_they_are)
        elif isinstance(texture, SizedTexture):
            out = read_sized(on, texture, coords, weights, sampler, **options)
        elif SUMS & {*on}:
            weights = weights if "weights" in on else jnp.ones_like(weights)
            axis = -1 if "sum" in on else ()
            out = jt.nn.sample_weighted(texture, coords, weights, sampler, axis=axis, **options)
        else:
            dtype = {"dtype": np.float16} if {"half", "complex"} <= {*on} else {}
            out = jt.sample(texture, coords, sampler, **options, **dtype)
    assert out.dtype == (np.float16 if "half" in on else np.complex64 if "complex" in on else np.float32)
    return jnp.concatenate([out.real, out.imag], -1) if "complex" in on else out.astype(np.float32)


def as_they_are(*coords):
    return coords


def read_sized(on, texture, coords, weights, sampler, lod=None, key=None, **sides):
    """A read as the library plans it of textures that callers do not make."""
    if "hardware" in on:
        return calls.sample_grid(texture, as_they_are, coords, sampler)
    resolved = FLOAT.resolve_level(Layout.of(texture), ReadArguments(coords, lod=lod, **sides), sampler)
    resolved = resolved._replace(sizes=sizes_of(texture))
    read = calls.plan_of_call(FLOAT, Layout.of(texture), resolved, sampler, np.dtype(np.float32))
    if SUMS & {*on}:
        read = read.weighted_sum(weights, (-1,) if "sum" in on else ())
    if key is not None:
        taps = DrawnTaps(read.spec.axes, read.spec.grid)
        drawn = read.replace(axes=taps.drawn_axes, grid=taps, expected=read.spec)
        read = drawn._replace(operands=(coords[0], *read.operands))
    return FLOAT.read(texture, read).astype(texture.dtype)


@contextlib.contextmanager
def devices(on, args):
    """Arguments for eight devices, over which samples, and some texels, are sharded."""
    if not {"sharding", "halo"} & {*on}:
        yield args
        return
    mesh = jax.make_mesh((min(8, len(jax.devices())),), ("d",), axis_types=(AxisType.Explicit,))
    batch = (None,) * ("batch" in on)
    is_cut = by_halo(on) or CUT & {*on}
    specs = [P(*batch, "d") if is_cut else P(), P(), P(*batch, None, "d"), *[P(*batch, "d")] * 3]
    halo = jt.sharded.using(jt.sharded.Halo(REACH)) if "halo" in on else contextlib.nullcontext()
    with jax.set_mesh(mesh), halo:
        yield [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(args, specs)]


def value_and_slope(on, primals, tangents, cotangent):
    """The value, and its derivative along the tangents times the cotangent: in reverse mode; of draws each one's."""
    function = functools.partial(read, on)
    if "key" in on:
        out, pushed = jax.jvp(function, primals, tangents)
        return out, jnp.sum(pushed * cotangent[None], tuple(range(1, out.ndim)))
    out, pullback = jax.vjp(function, *primals)
    dots = [jnp.sum(a * b) for a, b in zip(pullback(placed_like(cotangent, out)), tangents)]
    return out, functools.reduce(jnp.add, dots)


def assert_composed(on):
    args = drawn(on)
    rng = np.random.default_rng(1)
    tangents = tuple(rng.normal(size=a.shape).astype(np.float32) for a in args)

    def line(t, on=on):
        return composed(on, *(np.float64(a) + t * np.float64(d) for a, d in zip(args, tangents)))

    # Derivatives are those of float arithmetic.
    smooth = functools.partial(line, on=tuple(name for name in on if name != "hardware"))
    value, slopes = line(0.0), (smooth(1e-6) - smooth(-1e-6)) / 2e-6
    cotangent = rng.normal(size=value.shape).astype(np.float32)
    slope = np.sum(slopes * cotangent)
    with devices(on, args) as placed, devices(on, tangents) as moved:
        if "halo" in on:
            has_halo = "Halo" in jt.sharded.explain(functools.partial(read, on), *placed)
            assert has_halo == (len(jax.devices()) > 1 and not WHOLE & {*on})  # one device has no neighbors
        found = jax.jit(functools.partial(value_and_slope, on))(tuple(placed), tuple(moved), cotangent)
    out, found_slope = (np.asarray(a, np.float64) for a in found)
    if "key" in on:
        for draws, expected in ((out, value), (found_slope, slope)):
            bound = SIGMAS * draws.std(0) / np.sqrt(DRAWS) + SIGMAS**2 * np.ptp(draws) / DRAWS
            assert (np.abs(draws.mean(0) - expected) <= bound).all()
        return
    rows = {"hardware": "texture unit axis", "half": "float16"}
    row = next((rows[name] for name in on if name in rows), "float32")
    assert_close(row, out, value, 4 * np.abs(value).max())
    # The slope of a weight is a read; so is only that of hardware arithmetic.
    row = "float16" if "half" in on else row if "weights" in on else "float32"
    assert_close(row, found_slope, slope, np.sum(np.abs(slopes * cotangent)))


@pytest.mark.parametrize("features", SETS, ids="+".join)
def test_features_are_what_they_compose_to(features):
    assert_composed(features)


def test_every_pair_is_read_or_refused():
    read = {pair for features in SETS for pair in itertools.combinations(features, 2)}
    assert not read & REFUSED.keys()
    assert read | REFUSED.keys() == {*ALL_PAIRS}


@pytest.mark.parametrize("pair", REFUSED, ids="+".join)
def test_a_pair_without_a_meaning_is_refused(pair):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=REFUSED[pair]):
        read(pair, *drawn(pair))


PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "features.md"


def table():
    """The table of the page: each feature, and those with which it is refused."""
    yield "| feature | what it is, and what asks for it | refused with |"
    yield "|---|---|---|"
    for name, feature in FEATURES.items():
        others = [other for other in FEATURES if {(name, other), (other, name)} & REFUSED.keys()]
        yield f"| {name} | {feature.words} | {', '.join(others) or 'none'} |"


def test_the_page_of_features_shows_which_pairs_are_refused():
    expected = "\n".join(table())
    assert expected in PAGE.read_text(), f"the table of 'Features that meet' in {PAGE.name} is now\n{expected}"
