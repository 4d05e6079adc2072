"""Every pair of features of a read, against plain reads of an oracle that are composed, or refused in a sentence.

A feature is a row of `FEATURES`; the test makes all pairs of them. Each pair that is read has the value of the
composition, and the gradients in texels, color, coordinates, weights, level of detail and footprint that it has along
one line.
"""

import contextlib
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._checks.texels import chain_shapes
from jaxtex._engine.describe.plan import ResolvedLevel, SizedTexture, layout_of
from jaxtex._engine.float_arithmetic import FLOAT, plan_read
from jaxtex._jax.indexing import placed_like
from jaxtex._reads import calls
from jaxtex.modes import TextureKind
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close

# The options of a sampler that a feature sets; most features are arguments of the call.
FEATURES = {
    "limit": {"filter_mode": "cubic", "limit": "taps"},
    "key": {"filter_mode": "cubic"},
    "weights": {},
    "border": {"address_mode": "border"},
    "sizes": {},
    "levels": {"mipmap_filter_mode": "linear"},
    "footprint": {"max_anisotropy": 2},
    "deterministic": {"deterministic": True},
    "hardware": {"arithmetic": "hardware", "filter_mode": "linear"},
    "half": {},
    "batch": {},
    "sharding": {},
}
REFUSED = {
    ("limit", "key"): r"sample: key is given with limit='taps'",
    ("limit", "hardware"): r"Sampler: arithmetic='hardware' is given with limit='taps'",
    ("key", "hardware"): r"sample: key is given with arithmetic='hardware'",
    ("key", "weights"): r"sample_weighted: there is no argument 'key'",
    ("weights", "footprint"): r"sample_weighted: there is no argument 'ddx'",
}
# Callers do not make textures whose sizes are operands. The library reads them for warps, which know none of these.
NOWHERE = {("key", "sizes"), ("weights", "sizes"), ("sizes", "footprint")}
PAIRS = [pair for pair in itertools.combinations(FEATURES, 2) if pair not in {*REFUSED, *NOWHERE}]
# Pairs in two dimensions; the others have one, which costs a fraction.
OF_IMAGES = {("limit", "border"), ("weights", "border"), ("weights", "half"), ("border", "half")}
# With these, devices cut the texels too, not the samples alone, which costs a multiple.
CUT = {"limit", "border"}
SAMPLES, DRAWS, CAPACITY = 16, 400, 300
KEY = jax.random.key(3)
# So many standard deviations of a mean lie between it and its expectation in one of 10^8 cases.
SIGMAS = 6


def sampler_of(on):
    options = {"address_mode": "wrap"} | {k: v for name in on for k, v in FEATURES[name].items()}
    return jt.Sampler(**options)


def sizes_of(on):
    """The texels of each level: as many as devices along the axis that they cut."""
    finest = (8, 16) if on in OF_IMAGES else (16,)
    kind = TextureKind.TEXTURE2D if len(finest) == 2 else TextureKind.TEXTURE1D
    return kind, [s[:-1] for s in chain_shapes(kind, (*finest, 2), None, "")] if "levels" in on else [finest]


@functools.cache
def drawn(on):
    """Float32 arrays: texels of all levels, a color, coordinates, weights, a level of detail, and a side."""
    rng, (_, sizes) = np.random.default_rng(len(str(on))), sizes_of(on)
    batch, each = ((2,) if "batch" in on else ()), ((3,) if "weights" in on else ())
    samples = (*batch, SAMPLES, *each)
    # Numbers that float16 holds, and no two equal ones, which would be kinks of a limit.
    texels = lambda *shape: rng.permutation(np.arange(np.prod(shape)) / 64 - 1).reshape(shape)
    # Between the centers of texels, where the weights have kinks.
    cells = rng.integers(-6, 22, (*batch, len(sizes[0]), SAMPLES, *each))
    coords = cells + 0.5 + rng.uniform(0.1, 0.9, cells.shape)
    # A side of 8 to 16 texels, whose other side is a third of it: two reads, and levels between 2 and 3.
    return tuple(
        np.asarray(a, np.float32)
        for a in (
            texels(*batch, sum(map(np.prod, sizes)), 2),
            rng.normal(size=(*batch, 2)),
            coords / 16,
            rng.normal(size=samples),
            rng.uniform(0.1, 2.9, samples),
            rng.uniform(0.55, 0.95, samples),
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
    _, sizes = sizes_of(on)
    ends = np.cumsum([np.prod(size) for size in sizes])[:-1]
    levels = [part.reshape(*size, 2) for part, size in zip(np.split(texels, ends), sizes)]
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
        lod = np.log2(side * sizes[0][-1] / 2)
    step = 0.5 / sizes[0][-1] if "hardware" in on else side / 6
    steps = (-step, step) if "footprint" in on else (0,)
    out = sum(of_levels([coords[0] + step, *coords[1:]], lod) for step in steps) / len(steps)
    return np.sum(out * weights[..., None], -2) if "weights" in on else out


# The read


def texture_of(on, texels, color):
    kind, sizes = sizes_of(on)
    color = color if "border" in on else None
    if "sizes" in on:
        flat = jnp.concatenate([texels, jnp.zeros((CAPACITY - len(texels), 2), texels.dtype)])
        return SizedTexture(flat, tuple(jnp.full((1,), n, jnp.int32) for n in sizes[0]), color, len(sizes))
    if "levels" in on:
        return jt.Texture(texels, color, kind, tuple((*size, 2) for size in sizes))
    return jt.Texture(texels.reshape(*sizes[0], 2), color, kind)


def read(on, texels, color, coords, weights, lod, side):
    """The read with all features, in float32; with a key so many draws in front."""
    if "batch" in on:
        rest = tuple(name for name in on if name != "batch")
        return jax.vmap(functools.partial(read, rest), out_axes=int("key" in on))(
            texels, color, coords, weights, lod, side
        )
    texture, sampler = texture_of(on, texels.astype(np.float16) if "half" in on else texels, color), sampler_of(on)
    coords, options = tuple(coords), {}
    if "footprint" in on:
        options |= {"ddx": (side,), "ddy": (side / 3,)}
    elif "levels" in on:
        options |= {"lod": lod}
    if "key" in on:
        coords, options["key"] = tuple(jnp.broadcast_to(c, (DRAWS, *c.shape)) for c in coords), KEY
    if "weights" in on:
        out = jt.nn.sample_weighted(texture, coords, weights, sampler, **options)
    elif "sizes" in on:
        out = read_sized(texture, coords, options.get("lod"), sampler)
    else:
        out = jt.sample(texture, coords, sampler, **options)
    assert out.dtype == (np.float16 if "half" in on else np.float32)
    return out.astype(np.float32)


def as_they_are(*coords):
    return coords


def read_sized(texture, coords, lod, sampler):
    if lod is None:
        return calls.sample_grid(texture, as_they_are, coords, sampler)
    resolved = ResolvedLevel(coords, None, None, lod=lod, sizes=texture.sizes)
    plan, _ = plan_read(layout_of(texture), resolved, sampler)
    out = FLOAT.read(texture, plan, sampler.decoding, np.dtype(np.float32), sampler.deterministic)
    return out.astype(texture.dtype)


@contextlib.contextmanager
def devices(on, args):
    """Arguments for eight devices, over which samples, and some texels, are cut."""
    if "sharding" not in on:
        yield args
        return
    mesh = jax.make_mesh((min(8, len(jax.devices())),), ("d",), axis_types=(AxisType.Explicit,))
    batch = (None,) * ("batch" in on)
    specs = [P("d") if CUT & {*on} else P(), P(), P(*batch, None, "d"), *[P(*batch, "d")] * 3]
    with jax.set_mesh(mesh):
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


@pytest.mark.parametrize("features", [*PAIRS, ("limit", "weights", "border", "levels")], ids="+".join)
def test_features_are_what_they_compose_to(features):
    assert_composed(features)


@pytest.mark.parametrize("pair", REFUSED, ids="+".join)
def test_a_pair_without_a_meaning_is_refused(pair):
    with pytest.raises((TypeError, ValueError), match=REFUSED[pair]):
        read(pair, *drawn(pair))
