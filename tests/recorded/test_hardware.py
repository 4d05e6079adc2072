"""`arithmetic="hardware"` equals what a texture unit returned (tests/data), bit for bit; and what else it promises.

Anisotropic reads are not exact: they are counted, and the count has a bound.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.recorded.recorded_reads import data, read_all, recorded_cases
from tests.support.arrays import near_ties, normal
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close, named

CASES = recorded_cases()
GROUPS = tuple(dict.fromkeys(case.group for case in CASES))

# How many values of a group may differ from the recorded ones; the table of tolerances says how far. Every group that
# is missing here has none.
KNOWN = {"aniso": 5745}
# Of 4,096 values each: sums of texels that differ much in exponent.
EXPONENTS = [f"val{n}d_{kind}" for n in (1, 2, 3) for kind in ("n", "mixed")]

FLOAT16_PATTERNS = np.arange(2**16, dtype=np.uint16).view(np.float16)


def HARDWARE(address_mode="clamp", filter_mode="linear", **options):
    """A sampler in hardware arithmetic."""
    return jt.Sampler(address_mode=address_mode, filter_mode=filter_mode, arithmetic="hardware", **options)


def as_recorded(values, out):
    """The library's values in the dtype of the record, which holds float16 as float32 and short integers as long."""
    return np.asarray(values).astype(out.dtype)


def unlike(values, expected):
    """Where bits differ; NaN is like NaN."""
    assert values.dtype == expected.dtype
    assert values.shape == expected.shape
    raw = np.dtype(f"u{expected.itemsize}")
    differ = np.ascontiguousarray(values).view(raw) != np.ascontiguousarray(expected).view(raw)
    return differ & ~(np.isnan(values) & np.isnan(expected))


def assert_same(values, expected):
    assert not unlike(np.asarray(values), np.asarray(expected)).any()


# Recorded reads


# Groups that are read by default: of each kind of textures, of levels and of texels. The others differ in degree. Small
# ones share a program.
SMALL = ("huge", "ties", "formatlayered", "element", "special_texels", "signed_zero", "denormal", "srgb", "srgbmip")
QUICK = ("1d", "cubelayered", "lod_special", "grad", "format", "formatgather_element", *SMALL)


@functools.cache
def read_groups(groups):
    """Of each of these groups its cases, and what the library returns for them, by one program."""
    cases, found = [case for case in CASES if case.group in groups], {group: [] for group in groups}
    for case, values in zip(cases, read_all(cases, "hardware")):
        found[case.group].append((case, as_recorded(values, case.out)))
    return found


@pytest.mark.parametrize("group", [pytest.param(g, marks=[pytest.mark.slow] * (g not in QUICK)) for g in GROUPS])
def test_recorded_reads(group):
    """Sign of zero included; of those that are not equal, at most as many as are known."""
    total, lines = 0, []
    for case, values in read_groups(SMALL if group in SMALL else (group,))[group]:
        differ = unlike(values, case.out)
        total += int(differ.sum())
        if differ.any():
            k = tuple(np.argwhere(differ)[0])
            where = tuple(float(c[k[0]]) for c in case.coords)
            lines.append(f"{case}: {differ.sum()} of {differ.size}; {k} at {where}: {values[k]} for {case.out[k]}")
        if group in KNOWN:
            contrast, error = np.ptp(case.texels), np.abs(values - case.out)
            assert_close("texture unit footprint", error, np.zeros_like(error), contrast)
            assert_close("texture unit footprint on average", error.mean(), 0, contrast)
    assert total <= KNOWN.get(group, 0), "\n".join(lines)


def test_what_was_recorded():
    assert (len(CASES), sum(len(case.out) for case in CASES)) == (548, 121_888)
    assert {*KNOWN, *QUICK} <= set(GROUPS)


def test_levels_of_an_anisotropic_sampler():
    """An explicit level is sharpened; the texels of level k are k, so their filter does not matter."""
    levels = tuple(np.full((256 >> k, 256 >> k, 1), k, np.float32) for k in range(9))
    sampler = functools.partial(HARDWARE, filter_mode="point", mipmap_filter_mode="linear")
    read = lambda lod, **more: jt.sample(jt.texture2d(levels), (0.5, 0.5), sampler(**more), lod=lod)[:, 0]
    of = lambda lod, n: jnp.stack([read(lod, max_anisotropy=n, mipmap_level_bias=bias) for bias in (0.0, 0.3, -0.7)])
    for k, values in jax.jit(lambda lod: {n: of(lod, n) for n in (3, 16)})(data()["sharpened_lod"]).items():
        assert_same(values, data()[f"sharpened_{k}"])


# Recorded precision


def test_texels_that_differ_in_exponent():
    """Coordinates in texels, clamp, linear."""
    sampler = HARDWARE(normalized_coords=False)
    build = {"1": jt.texture1d, "2": jt.texture2d, "3": jt.texture3d}
    read = jax.jit(
        lambda arrays: {
            name: jt.sample(build[name[3]](texels), coords, sampler) for name, (texels, coords) in arrays.items()
        }
    )
    found = read({n: (data()[f"{n}/texels"], tuple(data()[f"{n}/coords"].T)) for n in EXPONENTS})
    for name, values in found.items():
        assert not unlike(np.asarray(values), data()[f"{name}/out"]).any(), name


def test_coordinates_in_texels_are_rounded_exactly():
    """To 1/256, halves up; between -1/2 and 0, too, where a fraction has more bits than a float."""
    x, ramp = near_ties(), 256 * np.arange(1.0, 6.0, dtype=np.float32)[:, None]
    values = jt.sample(jt.texture1d(ramp), (x,), HARDWARE("border", normalized_coords=False))[:, 0]
    inside = x > -0.5 + 1 / 256
    assert_same(values[inside], (np.floor(x.astype(np.float64) * 256 + 0.5) + 128).astype(np.float32)[inside])


def test_srgb_table():
    """All codes, read alone, and blends of neighbors in the table."""
    codes = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None], (256, 4))
    sampler = functools.partial(HARDWARE, read_mode="normalized_float", srgb=True, normalized_coords=False)

    @jax.jit
    def read(centers, between):
        texture = jt.texture1d(codes)
        return jt.sample(texture, (centers,), sampler(filter_mode="point")), jt.sample(texture, (between,), sampler())

    single, blended = map(np.asarray, read(np.arange(256) + np.float32(0.5), data()["srgb_linear/coords"][:, 0]))
    assert_exact(single[:, :3], np.repeat(data()["srgb_table"][:, None] / 65536, 3, axis=1), np.float32)
    assert_exact(single[:, 3], quotient(np.arange(256), 255), np.float32)
    assert_exact(blended, data()["srgb_linear/out"])


def test_levels_of_detail_of_footprints():
    """Level k of the texture is k throughout, so that a read returns the level of detail, whatever its filter."""
    sides = [tuple(data()[f"grad_lod_aniso0/{side}"].T) for side in ("ddx", "ddy")]
    levels = tuple(np.full((64 >> k, 64 >> k, 1), k, np.float32) for k in range(7))
    sampler = HARDWARE(filter_mode="point", mipmap_filter_mode="linear")
    lod = jax.jit(lambda x, y: jt.sample(jt.texture2d(levels), (0.5, 0.5), sampler, ddx=x, ddy=y)[:, 0])(*sides)
    assert_exact(lod, data()["grad_lod_aniso0/lod"])


# Every code


def quotient(code, divisor):
    """code / divisor, rounded correctly to float32, in integers. The divisor is odd, so there are no ties."""
    code = np.asarray(code, np.int64)
    magnitude = np.abs(code)
    shift = 24 - np.frexp(magnitude / divisor)[1].astype(np.int64)
    whole, rest = np.divmod(magnitude << shift, divisor)
    rounded = np.ldexp((whole + (2 * rest > divisor)).astype(np.float64), -shift)
    return (np.sign(code) * rounded).astype(np.float32)


@pytest.mark.parametrize("arithmetic", ["float", "hardware"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_every_code_is_one_correctly_rounded_quotient(dtype, arithmetic):
    codes, values = every_code()[arithmetic, np.dtype(dtype).name]
    expected = np.maximum(quotient(codes, np.iinfo(dtype).max), np.float32(-1))
    assert_exact(values, expected, np.float32)


@pytest.mark.parametrize("arithmetic", ["float", "hardware"])
def test_every_float16_is_returned_as_it_is(arithmetic):
    codes, values = every_code()[arithmetic, "float16"]
    assert_same(values, codes)


@functools.cache
def every_code():
    """All values of the short formats, and what a read of the texel that holds one returns, by arithmetic and dtype."""
    codes = {np.dtype(d).name: np.arange(np.iinfo(d).min, np.iinfo(d).max + 1).astype(d) for d in "BbHh"}
    codes["float16"] = FLOAT16_PATTERNS

    @jax.jit
    def read(codes):
        values, plain = {}, {"address_mode": "clamp", "filter_mode": "point", "normalized_coords": False}
        for arithmetic, (name, texels) in itertools.product(("float", "hardware"), codes.items()):
            mode = "element" if name == "float16" else "normalized_float"
            sampler = jt.Sampler(**plain, read_mode=mode, arithmetic=arithmetic)
            x = jnp.arange(texels.size, dtype=jnp.float32) + 0.5
            values[arithmetic, name] = jt.sample(jt.texture1d(texels[:, None]), (x,), sampler)[:, 0]
        return values

    return {(how, name): (codes[name], values) for (how, name), values in jax.device_get(read(codes)).items()}


# Transforms


def pick(group, **fields):
    """The first case of a group whose record has these fields."""
    return next(c for c in CASES if c.group == group and all(c.record[k] == v for k, v in fields.items()))


PROGRAMS = {
    "2d, wrap": pick("2d", filter=1, addr0=0, normalized=1),
    "float16, border": pick("format1d", fmt=5, addr0=3),
    "cubemap": pick("cube", filter=1, seamless=1, w=8),
    "sRGB": pick("srgb2d", filter=1),
    "levels of int8": pick("formatmip", fmt=2, filter=0),
    "gather": pick("formatgather", fmt=4),
}


def read_by_name(operands, in_axes=None):
    """The reads of all these cases, of operands by name, in one program."""
    found = {}
    for name, case in PROGRAMS.items():
        read = functools.partial(case.read, arithmetic="hardware")
        for axes in in_axes or ():
            read = jax.vmap(read, axes)
        found[name] = read(*operands[name])
    return found


def test_every_transform_returns_the_same_bits():
    """Over batches of coordinates and of textures, and with 64-bit types: as above, in a program of other reads."""
    operands = {name: case.operands() for name, case in PROGRAMS.items()}
    batches = {}
    for name, (levels, color, *where) in operands.items():
        halves = jax.tree.map(lambda a: a.reshape(2, -1, *a.shape[1:]), where)
        batches[name] = jax.tree.map(lambda a: np.stack([np.zeros_like(a), a]), levels), color, *halves
    over_both = jax.jit(lambda given: read_by_name(given, ((None, None, 0, 0), (0, None, None, None))))
    over_both = jax.device_get(over_both(batches))
    with jax.enable_x64(True):
        wide = jax.device_get(jax.jit(read_by_name)(operands))
    for name, case in PROGRAMS.items():
        for found in (over_both[name][1].reshape(case.out.shape), wide[name]):
            with named(name):
                assert_same(as_recorded(found, case.out), case.out)


def test_operation_by_operation_returns_the_same_bits():
    """Without a compiler that fuses, or that multiplies and adds at once."""
    case = pick("1d", filter=1, addr0=1, normalized=0)
    with jax.disable_jit():
        assert_same(as_recorded(case.read(*case.operands(), "hardware"), case.out), case.out)


# Gradients


draw = functools.partial(normal, seed=0)


def places(dimension, seed=1):
    """Coordinates, some of them outside."""
    return tuple(np.random.default_rng(seed).uniform(-0.2, 1.2, (dimension, 33)).astype(np.float32))


LEVELS = tuple(draw(n, 2) for n in (8, 4, 2, 1))
CHAIN = {"address_mode": "wrap", "mipmap_filter_mode": "linear"}
# Functions of a kind of sampler and of what has derivatives, and these: texels, colors, coordinates, levels, sides.
READS = {
    "levels": (
        lambda make, levels, at, lod: jt.sample(
            jt.texture1d(levels), at, make(mipmap_level_bias=0.3, **CHAIN), lod=lod
        ),
        (LEVELS, places(1), np.linspace(-1, 4, 33, dtype=np.float32)),
    ),
    "footprints": (
        lambda make, levels, at, ddx, ddy: jt.sample(jt.texture1d(levels), at, make(**CHAIN), ddx=ddx, ddy=ddy),
        (LEVELS, places(1), places(1, 2), places(1, 3)),
    ),
    "a cubemap": (lambda make, t, at: jt.sample(jt.cubemap(t), at, make()), (draw(6, 4, 4, 2), tuple(draw(3, 33)))),
    "a gather": (
        lambda make, t, color: jt.gather(jt.texture2d(t, border_color=color), places(2), make(address_mode="border")),
        (draw(5, 7, 1), draw(1, seed=1)),
    ),
    "an image": (
        lambda make, t, color, at: jt.sample(
            jt.texture2d(t, border_color=color), at, make(address_mode=("border", "mirror"))
        ),
        (draw(5, 7, 3), draw(3, seed=1), places(2)),
    ),
}


def test_derivatives_are_those_of_the_float_read():
    """Straight through, to every argument; of an image also in forward mode, and forward over reverse."""

    def derivatives(name, arithmetic, primals):
        read = functools.partial(READS[name][0], functools.partial(jt.Sampler, arithmetic=arithmetic))
        cotangent = draw(*jax.eval_shape(read, *primals).shape, seed=2)
        gradient = jax.grad(lambda *args: jnp.vdot(cotangent, read(*args)), tuple(range(len(primals))))
        if name != "an image":
            return gradient(*primals)
        tangents = jax.tree.map(lambda a: draw(*a.shape, seed=3), primals)
        return jax.jvp(read, primals, tangents)[1], jax.jvp(gradient, primals, tangents)

    both = lambda name, primals: [derivatives(name, arithmetic, primals) for arithmetic in ("hardware", "float")]
    run = jax.jit(lambda given: {name: both(name, primals) for name, primals in given.items()})
    found = jax.device_get(run({name: primals for name, (_, primals) in READS.items()}))
    for name, (hardware, smooth) in found.items():
        with named(name):
            assert all(np.any(leaf) for leaf in jax.tree.leaves(smooth))
            assert_trees_close("reordered", hardware, smooth)


def test_integer_texels_have_no_gradient_and_their_coordinates_do():
    texels = np.random.default_rng(0).integers(0, 256, (5, 7, 1), np.uint8)

    def gradient(texels, x, arithmetic):
        sampler = jt.Sampler(read_mode="normalized_float", arithmetic=arithmetic)
        read = lambda t, x: jt.sample(jt.texture2d(t), (x, 0.4), sampler).sum()
        return jax.grad(read, (0, 1), allow_int=True)(texels, x)

    both = jax.jit(lambda *args: [gradient(*args, arithmetic) for arithmetic in ("hardware", "float")])
    (of_texels, of_x), (_, smooth) = jax.device_get(both(texels, np.linspace(0.1, 0.9, 9, dtype=np.float32)))
    assert of_texels.dtype == jax.dtypes.float0
    assert_exact(of_x, smooth)
    assert np.any(of_x)


# Types and errors


@pytest.mark.parametrize(
    ("stored", "read_mode", "filter_mode", "expected"),
    [
        ("float32", "element", "linear", "float32"),
        ("float16", "element", "linear", "float16"),
        ("uint8", "normalized_float", "linear", "float32"),
        ("int16", "normalized_float", "linear", "float32"),
        ("int8", "element", "point", "int8"),
        ("uint32", "element", "point", "uint32"),
    ],
)
def test_result_dtype(stored, read_mode, filter_mode, expected):
    texture = jt.texture1d(np.ones((4, 1), stored))
    read = functools.partial(jt.sample, texture, (0.5,), HARDWARE("clamp", filter_mode, read_mode=read_mode))
    assert jax.eval_shape(read).dtype == expected
    assert jax.eval_shape(functools.partial(read, dtype=jnp.float16)).dtype == jnp.float16


@pytest.mark.usefixtures("x64")
def test_coordinates_in_float64_are_cast_to_float32():
    texture = jt.texture1d(draw(7, 2))
    wide = np.random.default_rng(1).uniform(-1, 2, 256)
    read = jax.jit(lambda *coords: [jt.sample(texture, (x,), HARDWARE("wrap")) for x in coords])
    from_wide, from_narrow = read(wide, wide.astype(np.float32))
    assert from_wide.dtype == np.float32
    assert_exact(from_wide, from_narrow)


def test_a_gather_outside_returns_the_border_color_of_a_read():
    color, outside = np.float32([1.0, -0.5, 0.25, 2.0]), np.float32(-3.0)
    dtypes = ("float32", "float16", "uint8", "uint16", "int8", "int16")

    def read_and_gather(texels, color, x, y):
        read_mode = "element" if texels.dtype.kind == "f" else "normalized_float"
        sampler = jt.Sampler(address_mode="border", read_mode=read_mode, arithmetic="hardware")
        texture = jt.texture2d(texels, border_color=color)
        # The components that may lie outside of the range of the format.
        gathered = {k: jt.gather(texture, (x, y), sampler, component=k) for k in (1, 3)}
        return jt.sample(texture, (x, y), sampler), gathered

    run = jax.jit(lambda textures, *args: [read_and_gather(texels, *args) for texels in textures])
    found = run([np.zeros((2, 2, 4), dtype) for dtype in dtypes], color, outside, outside)
    for dtype, (values, gathered) in zip(dtypes, jax.device_get(found), strict=True):
        with named(dtype):
            assert_exact(values[0], 1.0, dtype=values.dtype)
            for component, of_component in gathered.items():
                assert_exact(of_component, np.full(4, values[component]))


def test_a_border_color_of_float16_is_cut_toward_zero():
    """What is too large becomes the largest finite number, and what is too small a subnormal one."""
    color = np.float32([1e6, -np.inf, 1 + 1.9 * 2.0**-10, -1.9 * 2.0**-24])
    read = lambda texels, color: jt.sample(jt.texture2d(texels, border_color=color), (-3.0, -3.0), HARDWARE("border"))
    found = jax.jit(read)(np.zeros((1, 1, 4), np.float16), color)
    assert_exact(found, [65504, -65504, 1 + 2.0**-10, -(2.0**-24)], np.float16)


def test_a_gather_of_signed_bytes_returns_the_codes_of_a_linear_read():
    """Of all 256: codes of 16 bits."""
    y, x = np.mgrid[:16, :16].astype(np.float32)
    sampler = HARDWARE(read_mode="normalized_float", normalized_coords=False)

    @jax.jit
    def both(texels, x, y):
        gathered = jt.gather(jt.texture2d(texels), (x + 1, y + 1), sampler)
        return gathered[..., 3], jt.sample(jt.texture2d(texels), (x + 0.5, y + 0.5), sampler)[..., 0]

    assert_exact(*both(np.arange(-128, 128).astype(np.int8).reshape(16, 16, 1), x, y))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["sample", "gather"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_texels_that_no_texture_unit_has(dtype, name):
    texture = jt.texture2d(np.ones((2, 2, 1), dtype))
    with pytest.raises(ValueError, match=f"for {dtype} texels, which no texture unit has"):
        getattr(jt, name)(texture, (0.5, 0.5), HARDWARE())


# Sums

# Texels of a volume of two slices, of as many columns, and the value half between all of them.
TINY = 2.0**-126
WIDE = 1 + 2.0**-23
LARGEST_FLOAT = float(np.finfo(np.float32).max)
SUMS = {
    "slices that cancel, of 26 bits each": ([[3 * WIDE, WIDE / 4], [-3 * WIDE, -WIDE / 4]], 0.0),
    "zeros of both signs": ([[-0.0, -0.0], [-0.0, 0.0]], 0.0),
    "zeros below": ([[-0.0, -0.0], [-0.0, -0.0]], -0.0),
    "subnormal numbers": ([[1e-40, 1e-40], [-1e-45, 1e-45]], 0.0),
    "subnormal numbers below": ([[-1e-40, -1e-45], [-0.0, -1e-40]], -0.0),
    "just not subnormal": ([[3 * TINY, -TINY], [3 * TINY, -TINY]], TINY),
    "just subnormal": ([[3 * TINY, -TINY * WIDE], [3 * TINY, -TINY * WIDE]], 0.0),
    "just subnormal, below": ([[-3 * TINY, TINY * WIDE], [-3 * TINY, TINY * WIDE]], -0.0),
    "a tie": ([[1.0, WIDE], [1.0, WIDE]], WIDE),
    "a tie below": ([[-1.0, -WIDE], [-1.0, -WIDE]], -WIDE),
    "large numbers and infinity": ([[LARGEST_FLOAT, LARGEST_FLOAT], [-np.inf, 0.0]], -np.inf),
    "infinities": ([[np.inf, 1.0], [np.inf, LARGEST_FLOAT]], np.inf),
    "infinities of both signs": ([[np.inf, 1.0], [-np.inf, 1.0]], np.nan),
    "not a number": ([[np.nan, 1.0], [np.inf, 1.0]], np.nan),
}


def test_sums_of_special_texels():
    texels = np.float32([texels for texels, _ in SUMS.values()])
    coords = np.float32([[1.0], [0.5], [1.0]])
    read = jax.jit(jax.vmap(lambda t: jt.sample(jt.texture3d(t), tuple(coords), HARDWARE(normalized_coords=False))))
    found = np.asarray(read(texels[:, :, None, :, None])).ravel()
    expected = np.float32([value for _, value in SUMS.values()])
    assert dict(zip(SUMS, unlike(found, expected))) == dict.fromkeys(SUMS, False)


SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 1.5)
# Parts in 1/256 whose products, the weights, are often rounded to zero.
PARTS = (0, 1, 2, 3, 8, 16, 100, 127, 128, 129, 240, 253, 254, 255)


def split(total, part, half=128):
    far = (total * part + half) // 256
    return total - far, far


def looked_at(texels, position, total):
    """The texels, of (depth, height, width), whose part is above zero on every axis, and their weights."""
    places = (np.clip(p - 128, 0, 256 * (size - 1)) for p, size in zip(position, texels.shape))
    (z, slices), (y, rows), (x, columns) = (divmod(int(p), 256) for p in places)
    for k, of_slice in enumerate(split(total, slices)):
        for i, of_column in enumerate(split(of_slice, columns)):
            for j, weight in enumerate(split(of_column, rows, 128 if i else 127)):
                if slices >= k and rows >= j and columns >= i:
                    yield float(texels[z + k, y + j, x + i]), weight


def sum_of(taps):
    """What infinities and NaN make of a sum does not depend on weights. A zero is -0 if all texels are negative, and
    those without weight -0."""
    total = sum(value * weight if np.isfinite(value) else value for value, weight in taps)
    return total / 256 if total else np.copysign(0.0, -all(np.signbit(v) and (w > 0 or v == 0) for v, w in taps))


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float16, marks=pytest.mark.slow)])
def test_texels_whose_weight_is_rounded_to_zero(dtype):
    """Volumes, images, and images of two levels, as volumes of one slice; positions in 1/256 of a texel."""
    rng, count = np.random.default_rng(0), 800
    finite = 4 * SPECIAL[3:] + SPECIAL
    volume, image, coarse = (rng.choice(finite, (2, 3, 3, 4)), *(rng.choice(finite, (1, n, n, 4)) for n in (4, 2)))
    volume, image, coarse = (texels.astype(dtype) for texels in (volume, image, coarse))
    places = 128 + 256 * rng.integers(3, size=(count, 3)) + rng.choice(PARTS, (count, 3))
    lods = rng.choice(PARTS, count)

    @jax.jit
    def read(volume, image, coarse, places, lod):
        z, y, x = places.T / 256
        in_texels, levels = HARDWARE(normalized_coords=False), HARDWARE(mipmap_filter_mode="linear")
        return (
            jt.sample(jt.texture3d(volume), (x, y, z), in_texels),
            jt.sample(jt.texture2d(image), (x, y), in_texels),
            jt.sample(jt.texture2d((image, coarse)), (x / 4, y / 4), levels, lod=lod),
        )

    found = read(volume, image[0], coarse[0], places.astype(np.float32), (lods / 256).astype(np.float32))
    expected = np.empty((3, count, 4))
    for n, c in np.ndindex(count, 4):
        # Of half a 256th the upper one.
        below = [looked_at(coarse[..., c], (places[n] + 1) // 2, int(lods[n]))] if lods[n] else []
        fine = looked_at(image[..., c], places[n], 256 - int(lods[n]))
        expected[0, n, c] = sum_of(list(looked_at(volume[..., c], places[n], 256)))
        expected[1, n, c] = sum_of(list(looked_at(image[..., c], places[n], 256)))
        expected[2, n, c] = sum_of([tap for taps in (fine, *below) for tap in taps])
    for values, exact in zip(found, expected.astype(dtype)):
        assert_same(values, exact)


# Laws
