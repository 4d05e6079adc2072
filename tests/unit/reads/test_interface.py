"""The public interface: dtypes, wrong kinds of arguments, words of other libraries, stacks, and types."""

import itertools
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.footprint import footprint_level
from jaxtex._tables.storage_formats import STORAGE_FORMATS

# Dtypes of results: without one, floats of each size, and integers.
RESULTS = (None, "float32", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "bool", "complex64")
READS = (
    {"read_mode": "element"},
    {"read_mode": "normalized_float"},
    {"read_mode": "normalized_float", "srgb": True},
)
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
    for options, result in itertools.product(READS, RESULTS):
        sampler = jt.Sampler(filter_mode=filter_mode, **options)
        read = lambda d, s=sampler: jt.sample(texture, (np.float32(0.4),), s, dtype=d)
        own = own_dtype(row, options, filter_mode)
        if is_read(row, options, filter_mode) and (result is None or holds(jnp.dtype(result), own)):
            assert jax.eval_shape(lambda d=result, r=read: r(d)).dtype == (own if result is None else jnp.dtype(result))
        else:
            with pytest.raises(ValueError, match=r"^(sample|Sampler): "):
                read(result)


@pytest.mark.parametrize(
    ("name", "options", "result"),
    [
        ("float16", READS[0], "float32"),
        ("float32", READS[0], "bfloat16"),
        ("uint8", READS[1], "float16"),
        ("uint8", READS[2], "float32"),
        ("int16", READS[1], "float32"),
    ],
)
def test_a_result_is_rounded_once(name, options, result):
    """From the float32 in which a read is summed to the dtype that is asked for."""
    texture, sampler = jt.texture1d(texels_of(name)), jt.Sampler(**options)
    read = lambda dtype: np.asarray(jt.sample(texture, (np.float32(0.4),), sampler, dtype=dtype))
    np.testing.assert_array_equal(read(result), read("float32").astype(jnp.dtype(result)))


def test_masks_are_blended_as_zeros_and_ones():
    mask = jt.texture1d(np.array([[False], [True]]))
    assert jt.sample(mask, (0.75,), jt.Sampler(filter_mode="point")).tolist() == [True]
    blended = jt.sample(mask, (0.5,))
    assert blended.dtype == np.float32
    assert blended.tolist() == [0.5]
    assert jt.fetch(mask, (1,)).dtype == bool
    assert jt.surface_write(mask, True, (0,)).texels[:, 0].tolist() == [True, True]


ALIASES = {
    jt.AddressMode: {
        "edge": "clamp",
        "replicate": "clamp",
        "zeros": "border",
        "constant": "border",
        "repeat": "wrap",
        "symmetric": "mirror",
    },
    jt.FilterMode: {"nearest": "point", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"},
}


@pytest.mark.parametrize(("enum", "alias"), [(enum, alias) for enum, names in ALIASES.items() for alias in names])
def test_words_of_other_libraries(enum, alias):
    option = "address_mode" if enum is jt.AddressMode else "filter_mode"
    sampler = jt.Sampler(**{option: alias})
    assert sampler == jt.Sampler(**{option: ALIASES[enum][alias]})
    assert getattr(sampler, option) is enum(ALIASES[enum][alias])
    assert f'``"{alias}"``' in enum.__doc__


def test_a_filter_that_is_set_is_told_from_the_default():
    assert jt.Sampler().filter is jt.Sampler(filter_mode="bilinear").filter is jt.FilterMode.LINEAR
    assert jt.Sampler() != jt.Sampler(filter_mode="linear")


def test_numbers_of_numpy_are_options():
    sampler = jt.Sampler(max_anisotropy=np.int64(4), srgb=np.bool_(False), mipmap_level_bias=np.float32(0.5))
    assert sampler == jt.Sampler(max_anisotropy=4, mipmap_level_bias=0.5)
    chain = jt.build_mipmaps(jt.texture2d(IMAGE), np.int64(2))
    assert chain.num_levels == 2
    assert jt.fetch(chain, (0, 0), level=np.int64(1)).shape == (3,)
    assert jt.splat(np.ones(3, np.float32), XY, np.array(IMAGE.shape)).shape == IMAGE.shape


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
def test_the_class_takes_the_name_of_a_kind(kind):
    build, shape, _ = KINDS[kind]
    named, built = jt.Texture(np.zeros(shape), None, kind), build(np.zeros(shape))
    assert named.kind is built.kind
    assert jax.tree.structure(named) == jax.tree.structure(built)
    assert jax.tree.map(lambda _: None, named).kind is built.kind
    with pytest.raises(ValueError, match=r"^Texture: kind is 'plane', expected one of '1d', "):
        jt.Texture(np.zeros(shape), None, "plane")


@pytest.mark.parametrize("kind", [name for name, (*_, layers) in KINDS.items() if layers or name in ("3d", "cubemap")])
def test_faces_layers_and_slices_are_no_levels(kind):
    build, shape, _ = KINDS[kind]
    message = rf"^{build.__name__}: texels\[0\] has shape {re.escape(str(shape[1:]))}, expected .* jnp.stack\(texels\)"
    for several in (list, tuple):
        with pytest.raises(ValueError, match=message):
            build(several(jnp.zeros(shape)))


@pytest.mark.parametrize("batch", [(), (7,), (7, 9)])
@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_answers_as_one_of_its_textures(kind, chain, batch):
    build, shape, layers = KINDS[kind]

    def one():
        texture = build(np.zeros(shape, np.float32), border_color=np.zeros(2, np.float32))
        texture = jt.build_mipmaps(texture) if chain else texture
        return texture, texture.levels

    texture, levels = jax.eval_shape(one)
    levels = [level.shape for level in levels]
    stack = jax.tree.map(lambda leaf: np.zeros((*batch, *leaf.shape), leaf.dtype), texture)
    assert stack.batch_ndim == len(batch)
    assert stack.shape == shape
    assert stack.num_channels == 2
    assert stack.num_layers == layers
    assert stack.num_levels == len(levels)
    of_stack = jax.eval_shape(lambda stack: stack.levels, stack)
    assert [level.shape for level in of_stack] == [(*batch, *level) for level in levels]
    if batch:
        with pytest.raises(ValueError, match=r"a stack of textures.*jax\.vmap"):
            jt.surface_read(stack, (0,) * texture.kind.texel_ndim)


def test_a_texture_without_arrays_refuses_to_answer():
    bare = jax.tree.map(lambda _: None, jt.texture2d(IMAGE))
    assert bare.num_levels == 1
    for name in ("shape", "num_channels", "batch_ndim"):
        with pytest.raises(ValueError, match="expected at least 3 axes"):
            getattr(bare, name)


def test_a_footprint_of_three_sides_takes_the_longest():
    volume = jt.build_mipmaps(jt.texture3d(np.random.default_rng(0).normal(size=(8, 8, 8, 1)).astype(np.float32)))
    center, zero = (0.4, 0.5, 0.6), (0.0, 0.0, 0.0)
    side = (0.0, 0.5, 0.0)  # four texels: level 2
    for sides in ((side, zero, zero), (zero, side, zero), (zero, zero, side)):
        read = jt.sample(volume, center, jt.Sampler(), **dict(zip(("ddx", "ddy", "ddz"), sides)))
        np.testing.assert_array_equal(read, jt.sample(volume, center, jt.Sampler(), lod=2.0))
    read = lambda z: jt.sample(volume, center, TRILINEAR, ddx=zero, ddy=zero, ddz=(0.0, z, 0.0))[0]
    assert jax.jit(jax.grad(read))(0.3) != 0
    for wrong in ({"ddz": side}, {"lod": 1.0, "ddz": side}):
        with pytest.raises(ValueError, match="ddz is given"):
            jt.sample(volume, center, **wrong)
    with pytest.raises(ValueError, match="ddz is given"):
        jt.sample(jt.texture2d(IMAGE), XY, ddx=XY, ddy=XY, ddz=XY)


def test_of_three_sides_the_longest_and_the_next_one_count():
    lengths = np.array([*itertools.permutations((8.0, 2.5, 1.0)), (2.0, 2.0, 2.0)], np.float32).T
    sides = [(length, 0 * length, 0 * length) for length in lengths]
    level = jax.jit(lambda *sides: footprint_level(sides, sides, 16))(*sides)
    np.testing.assert_array_equal(level.num_reads, [4] * 6 + [1])  # 8 / 2.5 of them, rounded up
    np.testing.assert_array_equal(level.side[0], [8] * 6 + [2])
    np.testing.assert_array_equal(np.exp2(level.lod).round(3), [2.5] * 6 + [2])


TRILINEAR = jt.Sampler(mipmap_filter_mode="linear")


def test_packages_are_loaded_when_they_are_used():
    packages = ("cuda", "layers", "ndimage", "warp")
    assert {*packages} <= set(dir(jt))
    for name in packages:
        assert getattr(jt, name) is sys.modules[f"jaxtex.{name}"]
    with pytest.raises(AttributeError, match="no attribute 'textures'"):
        jt.textures  # noqa: B018


def test_a_texture_keeps_its_texels_when_an_array_of_numpy_changes():
    for size in range(64, 84):  # whose memory JAX can share, and whose not
        texels = np.zeros((256, size, 1), np.float32)
        texture = jt.texture2d(texels)
        texels[:] = 1
        assert not np.asarray(texture.texels).any()
