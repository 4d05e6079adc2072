"""The public interface: dtypes, wrong kinds of arguments, words of other libraries, stacks, and types."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._tables.storage_formats import STORAGE_FORMATS
from tests.support.cases import computed
from tests.support.tolerances import assert_close, assert_exact, named

# Dtypes of results: without one, floats of each size, and integers.
RESULTS = (None, "float32", "bfloat16", "uint8", "int16", "bool", "complex64")
ELEMENT, FRACTION = {"read_mode": "element"}, {"read_mode": "normalized_float"}
SRGB = FRACTION | {"srgb": True}
IMAGE = np.zeros((4, 6, 3), np.float32)
XY = (0.5, 0.5)


def texels_of(name):
    codes = np.arange(12).reshape(12, 1) * 9 + 3
    return (codes % 2 if name == "bool" else codes).astype(jnp.dtype(name))


def is_read(row, options, filter_mode):
    """Whether a row of the table can be read so."""
    if options["read_mode"] == "element":
        return filter_mode == "point" or row.floating or row.blended_as is not None
    return row.fraction_bits is not None and (row.srgb or not options.get("srgb"))


def own_dtype(row, options, filter_mode):
    if options["read_mode"] == "normalized_float":
        return np.dtype(np.float32)
    return np.dtype(row.blended_as if row.blended_as and filter_mode != "point" else row.name)


def holds(result, own):
    """Whether a result of a dtype keeps the values of a read: floats in floats, integers in those at least as wide."""
    if own.kind == "c" or result.kind == "c":
        return own.kind == result.kind
    if jnp.issubdtype(result, jnp.floating):
        return True
    return not jnp.issubdtype(own, jnp.floating) and np.can_cast(own, result)


@pytest.mark.parametrize("filter_mode", ["point", "linear"])
@pytest.mark.parametrize("name", [name for name in STORAGE_FORMATS if name not in ("float64", "complex128")])
def test_dtypes_of_texels_reads_and_results(name, filter_mode):
    """Every combination of stored dtype, read mode, sRGB and result is traced, or refused before it runs."""
    row, texture = STORAGE_FORMATS[name], jt.texture1d(texels_of(name))
    for options, result in itertools.product((ELEMENT, FRACTION, SRGB), RESULTS):
        sampler = jt.Sampler(filter_mode=filter_mode, **options)
        read = lambda d, s=sampler: jt.sample(texture, (np.float32(0.4),), s, dtype=d)
        own = own_dtype(row, options, filter_mode)
        if is_read(row, options, filter_mode) and (result is None or holds(jnp.dtype(result), own)):
            assert jax.eval_shape(lambda d=result, r=read: r(d)).dtype == (own if result is None else jnp.dtype(result))
        else:
            with pytest.raises(ValueError, match=r"^(sample|Sampler): "):
                read(result)


def test_a_result_is_rounded_once():
    """From the float32 in which a read is summed to the dtype that is asked for."""
    cases = ("float32", ELEMENT, "bfloat16"), ("uint8", FRACTION, "float16"), ("int16", FRACTION, "bfloat16")

    def both(options, *dtypes):
        sampler = jt.Sampler(**options)
        return lambda t: [jt.sample(jt.texture1d(t), (np.float32(0.4),), sampler, dtype=dtype) for dtype in dtypes]

    calls = [(both(options, result, "float32"), texels_of(name)) for name, options, result in cases]
    for (*case, result), (found, wide) in zip(cases, computed(*calls)):
        with named(*case):
            assert_exact(found, wide, jnp.dtype(result))


def test_masks_are_blended_as_zeros_and_ones():
    texels, point = np.array([[False], [True]]), jt.Sampler(filter_mode="point")

    @jax.jit
    def run(texels):
        mask = jt.texture1d(texels)
        stored = jt.sample(mask, (0.75,), point), jt.fetch(mask, (1,)), jt.surface_write(mask, True, (0,)).texels
        return jt.sample(mask, (0.5,)), *stored

    blended, *stored = run(texels)
    assert_exact(blended, [0.5], np.float32)
    for found in stored:
        assert found.dtype == bool
        assert found.all()


ALIASES = {
    "address_mode": "edge clamp replicate clamp zeros border constant border repeat wrap symmetric mirror",
    "filter_mode": "nearest point bilinear linear trilinear linear bicubic cubic",
}


@pytest.mark.parametrize("option", ALIASES)
def test_words_of_other_libraries(option):
    enum, words = {"address_mode": jt.AddressMode, "filter_mode": jt.FilterMode}[option], ALIASES[option].split()
    for alias, word in zip(words[::2], words[1::2]):
        sampler = jt.Sampler(**{option: alias})
        assert sampler == jt.Sampler(**{option: word})
        assert getattr(sampler, option) is enum(word)
        assert f'``"{alias}"``' in enum.__doc__


def test_a_filter_that_is_set_is_told_from_the_default():
    assert jt.Sampler().filter is jt.Sampler(filter_mode="bilinear").filter is jt.FilterMode.LINEAR
    assert jt.Sampler() != jt.Sampler(filter_mode="linear")


def test_numbers_of_numpy_are_options():
    sampler = jt.Sampler(max_anisotropy=np.int64(4), srgb=np.bool_(False), mipmap_level_bias=np.float32(0.5))
    assert sampler == jt.Sampler(max_anisotropy=4, mipmap_level_bias=0.5)

    def run():
        chain = jt.build_mipmaps(jt.texture2d(IMAGE), np.int64(2))
        assert chain.num_levels == 2
        return jt.fetch(chain, (0, 0), level=np.int64(1)), jt.splat(np.ones(3), XY, np.array(IMAGE.shape)).texels

    assert [a.shape for a in jax.eval_shape(run)] == [(3,), IMAGE.shape]


KINDS = {
    "1d": (jt.texture1d, (5, 2), None),
    "2d": (jt.texture2d, (4, 6, 2), None),
    "3d": (jt.texture3d, (4, 6, 8, 2), None),
    "1d_layered": (jt.texture1d_layered, (3, 6, 2), 3),
    "2d_layered": (jt.texture2d_layered, (3, 4, 6, 2), 3),
    "cubemap": (jt.cubemap, (6, 4, 4, 2), None),
    "cubemap_layered": (jt.cubemap_layered, (3, 6, 4, 4, 2), 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_answers_as_one_of_its_textures(kind):
    build, shape, layers = KINDS[kind]

    def both():
        texture = build(np.zeros(shape, np.float32), border_color=np.zeros(2, np.float32))
        assert jax.tree.structure(jt.Texture(texture.texels, texture.border_color, kind)) == jax.tree.structure(texture)
        return [(t, t.levels) for t in (texture, jt.build_mipmaps(texture))]

    for (texture, levels), batch in itertools.product(jax.eval_shape(both), ((), (7, 9))):
        assert jax.tree.map(lambda _: None, texture).kind == kind
        stack = jax.tree.map(lambda leaf, n=batch: np.zeros((*n, *leaf.shape), leaf.dtype), texture)
        found = stack.batch_ndim, stack.shape, stack.num_channels, stack.num_layers, stack.num_levels
        assert found == (len(batch), shape, 2, layers, len(levels))
        of_stack = jax.eval_shape(lambda stack: stack.levels, stack)
        assert [level.shape for level in of_stack] == [(*batch, *level.shape) for level in levels]
        if batch:
            with pytest.raises(ValueError, match=r"a stack of textures.*jax\.vmap"):
                jt.surface_read(stack, (0,) * texture.kind.texel_ndim)


def test_a_texture_without_arrays_refuses_to_answer():
    bare = jax.tree.map(lambda _: None, jt.texture2d(IMAGE))
    assert bare.num_levels == 1
    for name in ("shape", "num_channels", "batch_ndim"):
        with pytest.raises(ValueError, match="expected at least 3 axes"):
            getattr(bare, name)


def test_a_footprint_of_three_sides():
    """The longest decides the level, or with anisotropic reads the next one, and reads lie along the longest."""
    texels = np.random.default_rng(0).normal(size=(8, 8, 8, 1)).astype(np.float32)
    center, zero, side = np.float32([0.4, 0.5, 0.6]), (0.0, 0.0, 0.0), (0.0, 0.5, 0.0)  # four texels: level 2
    nearest, trilinear = jt.Sampler(), jt.Sampler(mipmap_filter_mode="linear")
    anisotropic = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=16)
    # Of 4 texels, 1.25 and 0.5, at most 1.25 are covered by a read: 4 / 1.25 of them, rounded up.
    several = side, (0.15625, 0.0, 0.0), (0.0, 0.0, 0.0625)

    @jax.jit
    def run(texels):
        volume = jt.build_mipmaps(jt.texture3d(texels))
        read = lambda sides, how: jt.sample(volume, tuple(center), how, **dict(zip(("ddx", "ddy", "ddz"), sides)))
        at = lambda place, lod, how: jt.sample(volume, tuple(place), how, lod=lod)
        longest = [read(sides, nearest) for sides in ((side, zero, zero), (zero, zero, side))]
        of_several = [read(sides, anisotropic) for sides in (several, several[1:] + several[:1])]
        places = [center + np.float32((k / 5 - 0.5) * np.array(side)) for k in (1, 2, 3, 4)]
        along = sum(at(place, np.float32(np.log2(1.25)), trilinear) for place in places) / 4
        slope = jax.grad(lambda z: read((zero, zero, (0.0, z, 0.0)), trilinear)[0])(0.3)
        return longest, at(center, 2.0, nearest), of_several, along, slope

    longest, expected, of_several, along, slope = run(texels)
    for found in longest:
        assert_exact(found, expected)
    for found in of_several:
        assert_close("sum", found, along, 64)
    assert slope != 0


def test_packages_are_listed_and_others_are_named():
    packages = ["cuda", "layers", "ndimage", "nn", "rays", "sharded", "unit", "warp"]
    assert dir(jt) == sorted(["__version__", *jt.__all__, *packages])
    for package in packages[1:]:  # CUDA's names have a test of their own
        assert dir(getattr(jt, package)) == sorted(getattr(jt, package).__all__), package
    with pytest.raises(AttributeError, match="no attribute 'textures'"):
        jt.textures  # noqa: B018


def test_a_texture_keeps_its_texels_when_an_array_of_numpy_changes():
    for size in range(64, 84):  # whose memory JAX can share, and whose not
        texels = np.zeros((256, size, 1), np.float32)
        texture = jt.texture2d(texels)
        texels[:] = 1
        assert not np.asarray(texture.texels).any()
