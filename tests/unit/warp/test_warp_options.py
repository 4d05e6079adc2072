"""The options that warps share: one filter, one address mode, and what they are when nobody sets them."""

import functools

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex.modes import AddressMode, FilterMode
from jaxtex.warp.options import resolve_sampler
from tests.support.tolerances import assert_exact

IMAGE = np.random.default_rng(0).normal(size=(4, 5, 2)).astype(np.float32)
IDENTITY = np.eye(2, 3, dtype=np.float32)
POINTS = np.float32([[0, 0], [4, 0], [0, 5], [3, 3]])
CAMERA, LENS = np.float32([[5, 0, 2], [0, 5, 2], [0, 0, 1]]), np.float32([-0.2, 0, 0, 0])
FLOW = (np.float32(1.5), np.zeros((4, 5), np.float32))

# A call of each warp, and the address mode that it has by default.
WARPS = {
    "resample": (lambda **o: jt.warp.resample(IMAGE, lambda x, y: (x + 1.5, y), **o), "border"),
    "warp_affine": (functools.partial(jt.warp.warp_affine, IMAGE, IDENTITY), "border"),
    "warp_perspective": (functools.partial(jt.warp.warp_perspective, IMAGE, np.eye(3, dtype=np.float32)), "border"),
    "spatial_transform": (
        functools.partial(jt.warp.spatial_transform, IMAGE, IDENTITY),
        "border",
    ),
    "rotate": (functools.partial(jt.warp.rotate, IMAGE, np.float32(20)), "border"),
    "resize": (functools.partial(jt.warp.resize, IMAGE, (7, 9)), "clamp"),
    "remap": (functools.partial(jt.warp.remap, IMAGE, FLOW), "border"),
    "warp_flow": (functools.partial(jt.warp.warp_flow, IMAGE, FLOW), "border"),
    "thin_plate_spline": (functools.partial(jt.warp.thin_plate_spline, IMAGE, POINTS, POINTS), "border"),
    "undistort": (functools.partial(jt.warp.undistort, IMAGE, CAMERA, LENS), "border"),
    "distort": (functools.partial(jt.warp.distort, IMAGE, CAMERA, LENS), "border"),
    "forward_warp": (functools.partial(jt.warp.forward_warp, IMAGE, FLOW), "border"),
}
PANORAMAS = {
    "equirectangular_to_cubemap": functools.partial(jt.warp.equirectangular_to_cubemap, IMAGE, 3),
    "cubemap_to_equirectangular": functools.partial(
        jt.warp.cubemap_to_equirectangular, np.ones((6, 2, 2, 1), np.float32), (3, 4)
    ),
}


def program(call, **options):
    """What a call computes, without computing it."""
    return str(jax.make_jaxpr(functools.partial(call, **options))())


@pytest.mark.parametrize("name", WARPS)
def test_a_filter_leaves_the_address_mode_alone(name):
    call, default = WARPS[name]
    other = "point" if name == "forward_warp" else "cubic"
    assert program(call) == program(call, sampler=jt.Sampler(address_mode=default))
    by_sampler = program(call, sampler=jt.Sampler(filter_mode=other, address_mode=default))
    assert program(call, filter=other) == by_sampler
    assert program(call, filter=other) != program(call)


@pytest.mark.parametrize("name", WARPS)
def test_an_address_mode_leaves_the_filter_alone(name):
    call, default = WARPS[name]
    for address in ("wrap", "mirror", ("wrap", "border"), ["wrap", "border"]):
        by_sampler = program(call, sampler=jt.Sampler(address_mode=address))
        assert program(call, address=address) == by_sampler != program(call)
    assert program(call, address=default) == program(call)


def test_words_of_other_libraries_are_taken():
    call, _ = WARPS["resize"]
    assert program(call, filter="bicubic", address="repeat") == program(call, filter="cubic", address="wrap")
    assert program(call, filter="nearest", address="zeros") == program(call, filter="point", address="border")


@pytest.mark.parametrize("name", PANORAMAS)
def test_panoramas_take_a_filter(name):
    call = PANORAMAS[name]
    point = program(call, sampler=jt.Sampler(filter_mode="point"))
    assert program(call, filter="point") == point != program(call)


@pytest.mark.parametrize("name", WARPS)
def test_a_sampler_without_an_address_mode_leaves_it_alone(name):
    call, default = WARPS[name]
    bare = jt.Sampler(deterministic=True)
    full = jt.Sampler(deterministic=True, address_mode=default)
    assert program(call, sampler=bare) == program(call, sampler=full)
    wrapped = jt.Sampler(deterministic=True, address_mode="wrap")
    assert program(call, sampler=bare, address="wrap") == program(call, sampler=wrapped)


def test_a_grid_keeps_its_padding_under_a_sampler_without_an_address_mode():
    grid = np.float32([[[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]]])
    read = functools.partial(
        jt.warp.grid_sample, IMAGE, grid, data_format="NHWC", sampler=jt.Sampler(filter_mode="point")
    )
    assert not np.asarray(read())[:, ::2].any()
    assert_exact(read(padding_mode="border")[0, ::2], IMAGE[2, ::4])


@pytest.mark.parametrize("filter", ["point", "cubic"])
def test_pixels_outside_stay_zero_under_every_filter(filter):
    moved = jt.warp.warp_affine(IMAGE, np.float32([[1, 0, 9], [0, 1, 0]]), filter=filter)
    assert_exact(moved, np.zeros_like(IMAGE))


def test_a_border_color_shows_in_an_enlarged_image():
    large = jt.warp.resize(np.zeros((1, 1, 1), np.float32), (4, 1), address="border", border_color=1.0)
    assert_exact(large[:, 0, 0], np.float32([0.375, 0.125, 0.125, 0.375]))


def test_equal_settings_do_not_contradict():
    sampler = jt.Sampler(filter_mode="cubic", address_mode=("wrap", "mirror"), deterministic=True)
    assert resolve_sampler("resample", sampler, "cubic", ["wrap", "mirror"]) == sampler
    resolved = resolve_sampler("resample", jt.Sampler(address_mode="wrap", max_anisotropy=4), FilterMode.CUBIC, None)
    assert resolved == jt.Sampler(filter_mode="cubic", address_mode="wrap", max_anisotropy=4)
    assert resolve_sampler("resample", None, None, None, AddressMode.CLAMP) == jt.Sampler(
        filter_mode="linear", address_mode="clamp"
    )


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"filter": "cubic", "sampler": jt.Sampler(filter_mode="point")},
            ValueError,
            "filter is 'cubic', but sampler has filter_mode='point'; leave filter out, or make the sampler without "
            "filter_mode",
        ),
        (
            {"filter": "point", "sampler": jt.Sampler(filter_mode="linear")},
            ValueError,
            "filter is 'point', but sampler has filter_mode='linear'; leave filter out, or make the sampler without",
        ),
        (
            {"address": "wrap", "sampler": jt.Sampler(address_mode=("border", "mirror"))},
            ValueError,
            "address is 'wrap', but sampler has address_mode=('border', 'mirror'); leave address out",
        ),
        (
            {"filter": "sharpest"},
            ValueError,
            "filter is 'sharpest', expected one of 'point', 'linear', 'cubic', 'bspline'",
        ),
        ({"address": "outside"}, ValueError, "address is 'outside', expected one of 'clamp', 'border', 'wrap'"),
        ({"address": ("wrap", 3)}, TypeError, "address is 3, expected one of"),
        ({"sampler": "repeat"}, TypeError, "sampler is 'repeat', expected a Sampler; pass address='repeat'"),
        ({"sampler": 3.5}, TypeError, "sampler is 3.5, expected a Sampler; pass jaxtex.Sampler(...)"),
        (
            {"sampler": "cubic"},
            TypeError,
            "sampler is 'cubic', expected a Sampler; pass filter='cubic'",
        ),
    ],
)
def test_errors_say_how_to_mend_them(options, error, words):
    for name in ("warp_affine", "forward_warp", "resize"):
        with pytest.raises(error) as raised:
            WARPS[name][0](**options)
        assert str(raised.value).startswith(f"{name}: {words}")
        assert str(raised.value).endswith(".")
