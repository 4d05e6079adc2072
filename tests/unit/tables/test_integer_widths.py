"""Integers of every width, from Python, NumPy and JAX: they saturate before they are narrowed to 32 bits."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._checks.numbers import on_device
from tests.support.tolerances import assert_exact

ROW = jt.texture1d(np.arange(5, dtype=np.float32)[:, None])
LAYERS = jt.texture1d_layered(np.arange(3, dtype=np.float32)[:, None, None] + np.zeros((3, 4, 1), np.float32))
CUBE = jt.cubemap(np.arange(6, dtype=np.float32)[:, None, None, None] + np.zeros((6, 2, 2, 1), np.float32))
IN_TEXELS = jt.Sampler(normalized_coords=False, filter_mode="point")
MARK = np.float32(9)


def forms(number):
    """One integer in every form in which a host can hold it."""
    dtypes = [dtype for dtype in ("int32", "uint32", "int64", "uint64") if fits(number, dtype)]
    yield from (np.dtype(dtype).type(number) for dtype in dtypes)
    yield from (np.array([number], dtype) for dtype in dtypes)
    yield from (number, [number], np.array([number], object))


def fits(number, dtype):
    return np.iinfo(dtype).min <= number <= np.iinfo(dtype).max


def flat(result):
    return np.asarray(getattr(result, "texels", result)).ravel()


def changed(function, value):
    return lambda x, mode: function(ROW, value, (x,), boundary_mode=mode)


# A function of one index, with its result in mode zero, and in mode clamp, of an index far above and far below.
KEPT = [0, 1, 2, 3, 4]
ACCESSES = {
    "surface_read": (lambda x, mode: jt.surface_read(ROW, (x,), boundary_mode=mode), [0], [4], [0]),
    "surface_write": (changed(jt.surface_write, MARK), KEPT, [0, 1, 2, 3, 9], [9, 1, 2, 3, 4]),
    "surface_add": (changed(jt.surface_add, MARK), KEPT, [0, 1, 2, 3, 13], [9, 1, 2, 3, 4]),
    "surface_min": (changed(jt.surface_min, -MARK), KEPT, [0, 1, 2, 3, -9], [-9, 1, 2, 3, 4]),
    "surface_max": (changed(jt.surface_max, MARK), KEPT, [0, 1, 2, 3, 9], [9, 1, 2, 3, 4]),
    "layer": (lambda k, mode: jt.surface_read(LAYERS, (1,), layer=k, boundary_mode=mode), [0], [2], [2]),
    "face": (lambda k, mode: jt.surface_read(CUBE, (1, 1), face=k, boundary_mode=mode), [0], [5], [5]),
}


@pytest.mark.parametrize("x64", [False, True])
def test_surfaces_take_integers_of_every_width(x64):
    """Numbers of a host, in every form for one access, and in one form for all of them, which share a program."""
    access, outside, above, below = ACCESSES["surface_read"]
    with jax.enable_x64(x64):
        for number in (2**31, 2**32 + 2, 10**400):
            for far, clamped in ((number, above), (-number, below)):
                for index in forms(far):
                    assert_exact(flat(access(index, "zero")), np.float32(outside))
                    assert_exact(flat(access(index, "clamp")), np.float32(clamped))
        of_both = lambda access, far: (access(far, "zero"), access(far, "clamp"))
        found = jax.jit(
            lambda: {name: [of_both(row[0], far) for far in (2**32 + 2, -(2**63))] for name, row in ACCESSES.items()}
        )()
    for name, (_, outside, *clamped) in ACCESSES.items():
        for in_modes, in_clamp in zip(found[name], clamped):
            for result, expected in zip(in_modes, (outside, in_clamp)):
                assert_exact(flat(result), np.float32(expected))


def test_reads_take_integers_of_every_width():
    image, chain, number = jt.texture2d(ROW.texels[:, None]), jax.jit(jt.build_mipmaps)(ROW), 2**32 + 2
    ones, middle = np.ones((1, 1), np.float32), (np.array([0.5]),)
    for index in forms(number):
        assert_exact(flat(jt.fetch(ROW, (index,))), np.float32([0]))
        assert_exact(flat(jt.fetch(LAYERS, (1,), layer=index)), np.float32([2]))
        assert_exact(flat(jt.sample(LAYERS, (0.5,), layer=index)), np.float32([2]))
        assert_exact(flat(jt.splat(ones, middle, (3, 1, 1), layer=index)), [0, 0, 1])
        if not isinstance(index, list):
            assert_exact(flat(jt.sample(ROW, (index,), IN_TEXELS)), np.float32([4]))
            assert_exact(flat(jt.gather(image, (0.5, index), IN_TEXELS)), np.float32([4] * 4))
            assert_exact(flat(jt.sample(chain, (0.1,), lod=index)), flat(chain.levels[-1]))


def test_what_is_no_integer_is_refused():
    for index in (1.0, [1.5], np.array([None]), np.array(["1"]), True, [True], np.array([2**70, 1.5], object)):
        with pytest.raises(TypeError, match=re.escape("coords holds")):
            jt.surface_read(ROW, (index,))


# A dtype of texels, and integers that it does not hold.
TOO_LARGE = (
    *(("int32", 2**32 + 7), ("int32", -(2**40)), ("uint32", -1), ("uint32", 2**32)),
    *(("uint8", 300), ("int8", 128), ("uint16", 10**30)),
)


@pytest.mark.parametrize("x64", [False, True])
def test_values_that_do_not_fit_are_an_error(x64):
    for dtype, number in TOO_LARGE:
        limits = np.iinfo(dtype)
        sentence = f"values holds {number}, expected integers from {limits.min} to {limits.max}, the range of {dtype};"
        values = [number, [number], np.array([0, number], object)[:, None]]
        if fits(number, "int64"):
            values += [np.int64(number), np.array([[0], [number]])]
        with jax.enable_x64(x64):
            texture = jt.texture1d(np.zeros((2, 1), dtype))
            for function, value in itertools.product((jt.surface_write, jt.surface_add), values):
                with pytest.raises(ValueError, match=f"{function.__name__}: {sentence}"):
                    function(texture, value, (np.array([0, 1]),))


def test_texels_and_coordinates_of_64_bits_that_fit_are_taken():
    assert_exact(jt.texture1d(np.array([[1], [-7]])).texels, np.int32([[1], [-7]]))
    image, far = np.arange(12.0, dtype=np.float32).reshape(3, 4, 1), np.full((2, 2), 2**32 + 1)
    assert_exact(jt.warp.remap(image, (far, far), address_mode="clamp"), np.full((2, 2, 1), 11, np.float32))
    flow = np.stack([far, -far], -1)
    assert_exact(jt.warp.warp_flow(image, flow, address_mode="clamp"), np.full((2, 2, 1), 3, np.float32))
    whole = np.arange(12).reshape(3, 4, 1)
    assert_exact(jt.warp.rotate(whole, angle=0.0), whole.astype(np.int32))


def same(x, y):
    return x, y


# Entries that are not compiled as one program: a warp of an image, and of a tile.
ENTRIES = {
    "resample": lambda image, **options: jt.warp.resample(image, same, filter_mode="point", **options),
    "resample_tiles": lambda image, **options: next(
        jt.warp.resample_tiles(image, same, filter_mode="point", **options)
    )[1],
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_that_are_not_compiled_convert_like_the_others(name):
    run, labels = ENTRIES[name], np.array([[[2**32 - 1], [7]]], np.uint64)
    assert_exact(run(labels), labels.astype(np.uint32))
    with pytest.raises(ValueError, match=f"{name}: image holds {2**40}, expected integers from 0 to {2**32 - 1}"):
        run(np.where(labels == 7, np.uint64(2**40), labels))
    assert_exact(run(np.full((1, 2, 1), 0.1)), np.full((1, 2, 1), 0.1), np.float32)


def test_colors_and_parameters_of_64_bits_are_rounded():
    far, beyond, image = np.array(2**40), (lambda x, y: (x - 9, y)), np.zeros((1, 1, 1), np.float32)
    expected = np.full((1, 1, 1), 2.0**40, np.float32)
    assert_exact(jt.warp.resample(image, beyond, border_color=far), expected)
    assert_exact(next(jt.warp.resample_tiles(image, beyond, border_color=far))[1], expected)
    assert_exact(jt.warp.SizedWarp(beyond, border_color=far)(image), expected)
    assert_exact(
        jt.warp.resample(image + 5, lambda x, y, p: (jnp.where(p == 2.0**40, x, 9), y), parameters=(far,)), image + 5
    )
    assert float(jt.texture1d(image[0], border_color=far).border_color) == 2.0**40
    assert float(jt.footprint(lambda x, y: (x * x, y), (far, 0))[0][0]) == 2.0**41
    assert jt.texture1d(image[0], knots=(np.array([-1, 0, 2**40]),)).knots[0].tolist() == [-1, 0, 2.0**40]


FEATURES, FLOW = np.zeros((1, 4, 4, 2), np.float32), np.zeros((1, 2, 2, 2), np.float32)
# Calls of one option that is 1 or 2, and an integer.
OPTIONS = {
    "Sampler": lambda n: jt.sample(ROW, (0.5,), jt.Sampler(max_anisotropy=n), ddx=(0.1,), ddy=(0.1,)),
    "build_mipmaps": lambda n: jt.build_mipmaps(ROW, n).texels,
    "integrate_velocity": lambda n: jt.warp.integrate_velocity(FLOW, n),
    "equirectangular_to_cubemap": lambda n: jt.warp.equirectangular_to_cubemap(FEATURES[0], n),
    "axes": lambda n: jt.ndimage.rotate(FEATURES, 20.0, axes=(n, n - 1), reshape=False),
    "output_shape": lambda n: jt.warp.resize(FEATURES, (n, n)),
    "axis": lambda n: jt.nn.sample_weighted(ROW, (np.zeros((3, 4, 5)),), 1.0, axis=n),
    "num_heads": lambda n: jt.nn.sample_weighted(LAYERS, (np.zeros(3),), 1.0, layer=0, head=0, num_heads=n),
    "strides": lambda n: jt.nn.deformable_conv(FEATURES, FEATURES, np.zeros((1, 1, 2, 2)), strides=(n, 1)),
    "padding": lambda n: jt.nn.deformable_conv(FEATURES, np.zeros((1, 6, 6, 2)), np.zeros((1, 1, 2, 2)), padding=n),
    "groups": lambda n: jt.nn.deformable_conv(FEATURES, np.zeros((1, 4, 4, 2)), np.zeros((1, 1, 2 // n, 2)), groups=n),
    "spatial_shapes": lambda n: jt.nn.deformable_attention(
        np.zeros((1, 1, 1, 2)), ((n, 1),), np.zeros((1, 3, 1, 1, 1, 2)), np.zeros((1, 3, 1, 1, 1))
    ),
    "radius": lambda n: jt.nn.correlation_lookup([np.zeros((1, 2, 2, 4, 4), np.float32)], FLOW, n),
    "levels": lambda n: jt.nn.correlation_pyramid(FEATURES, FEATURES, n),
    "output_size": lambda n: jt.nn.roi_align(FEATURES, np.zeros((3, 4)), n),
    "sampling_ratio": lambda n: jt.nn.roi_align(FEATURES, np.zeros((3, 4)), 2, sampling_ratio=n),
    "log2_hashmap_size": lambda n: jnp.zeros(jt.nn.MultiresolutionGrid(log2_hashmap_size=n, num_levels=n).table_sizes),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_take_integers_of_numpy(name):
    """Of few bits, unsigned too, whose own arithmetic would overflow; and no booleans."""
    traced = lambda n: jax.make_jaxpr(lambda: OPTIONS[name](n))()
    # Before the integers: JAX's cache of compiled functions takes (True, 1) for (1, 1).
    with pytest.raises((ValueError, TypeError), match="True"):
        traced(True)
    assert str(traced(np.uint8(1))) == str(traced(np.int64(1))) == str(traced(1))


def test_an_array_of_numpy_that_changes_later_changes_nothing():
    given = np.zeros(4096, np.float32)
    sent = on_device(given)
    given[:] = 1
    assert not np.asarray(sent).any()
