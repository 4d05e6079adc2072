"""Arguments that no call takes: the error names the function and the argument, and says what was expected."""

import re

import numpy as np
import pytest

import jaxtex as jt
from jaxtex import ndimage, nn, warp
from jaxtex.layers.transforms import constant_color

IMAGE = np.zeros((4, 5, 2), np.float32)
VOLUME = np.zeros((3, 4, 5, 2), np.float32)
LABELS = np.zeros((4, 5, 1), np.int32)
X = np.zeros(3, np.float32)
ROWS = np.zeros((3, 2), np.float32)
MAPS = np.zeros((1, 4, 5, 2), np.float32)
BYTES = jt.Sampler(read_mode="normalized_float")
GRID = nn.MultiresolutionGrid(ndim=2, num_levels=1, base_resolution=2)
CUBE = jt.cubemap(np.zeros((6, 4, 4, 1), np.float32))

SPLATS = {
    "no kind": (lambda: jt.splat(np.zeros((3, 2)), (X,) * 4, (5, 2)), "splat: coords has 4 arrays"),
    "no tuple": (lambda: jt.splat(np.zeros((3, 2)), np.zeros((3, 1)), (5, 2)), "splat: coords is an array"),
    "integers": (lambda: jt.splat(np.zeros((3, 2), np.int32), (X,), (5, 2)), "splat: values has dtype int32"),
    "values": (lambda: jt.splat(ROWS[:2], (X,), (5, 2)), "values has shape (2, 2), expected (3, 2)"),
    "fractions": (lambda: jt.splat(ROWS, (X,), (5, 2), BYTES), "sampler has read_mode='normalized_float'"),
    "axes": (lambda: jt.splat(ROWS, (X,), (5,)), "splat: shape is (5,), expected (W, C)"),
}
READS = {
    "third side": (
        lambda: jt.sample(
            jt.texture3d(VOLUME), (X, X, X), jt.Sampler(arithmetic="hardware"), ddx=(X,) * 3, ddy=(X,) * 3, ddz=(X,) * 3
        ),
        "no texture unit takes a third side",
    ),
    "footprint": (lambda: jt.footprint(lambda x: (x,), (X,)), "footprint: coords is 1 arrays, expected a tuple"),
    "not a number": (lambda: jt.Sampler(mipmap_level_bias=float("nan")), "mipmap_level_bias is NaN"),
    "no bounded weight": (lambda: jt.Sampler(cubic_coefficient=np.inf), "cubic_coefficient is inf, expected a finite"),
    "no level": (lambda: jt.Sampler(mipmap_level_bias=-1e39), "mipmap_level_bias is -1e+39, expected a finite"),
    "three modes of a face": (
        lambda: jt.sample(CUBE, (X,) * 3, jt.Sampler(address_mode=("wrap",) * 3)),
        "sample: there are 3 address modes for 2 filtered axes",
    ),
    "poles of a cube": (
        lambda: jt.sample(CUBE, (X,) * 3, jt.Sampler(address_mode="sphere")),
        "sample: address_mode='sphere' is given for a read across the seams of a cubemap",
    ),
    "bool": (
        lambda: jt.surface_add(jt.texture1d(np.zeros((4, 1), bool)), np.ones((3, 1), bool), (np.arange(3),)),
        "texture holds bool texels, expected numbers",
    ),
    "six faces": (lambda: jt.cubemap([np.zeros((4, 4, 1))] * 6), "jnp.stack(texels) makes one array"),
    "a kind": (lambda: jt.Texture(IMAGE, None, "2D"), "Texture: kind is '2D', expected one of '1d', '2d'"),
    "words": (lambda: warp.rotate(IMAGE, "ten"), "a number or an array; pass one"),
    "no constructor": (lambda: jt.sample(IMAGE, (X,) * 4), "make one with jaxtex.texture2d(array)"),
}
WARPS = {
    "labels at one array": (lambda: warp.warp_labels(LABELS, coords=np.zeros((2, 3))), "coords has shape (2, 3)"),
    "labels of a shape": (
        lambda: warp.warp_labels(LABELS, coords=(np.zeros((2, 3)),) * 2, output_shape=(2, 3)),
        "leave output_shape out",
    ),
    "fields": (lambda: warp.warp_flow(IMAGE, (X,)), "has 1 arrays, expected (x, y) or (x, y, z)"),
    "fields of other shapes": (
        lambda: warp.warp_flow(IMAGE, (np.zeros((4, 5)), np.zeros((3, 5)))),
        "has arrays of shapes (4, 5), (3, 5)",
    ),
    "lens": (lambda: warp.distort_points((X, X, X), np.eye(3), np.zeros(4)), "coords has 3 arrays, expected (x, y)"),
    "tiles of nothing": (
        lambda: list(warp.resample_tiles(IMAGE[:0], lambda x, y: (x, y), (2, 3))),
        "image has shape (0, 5, 2), expected (..., H, W, C) of one pixel or more",
    ),
}
ARRAYS = {
    "words": (lambda: ndimage.shift(np.zeros((4, 5)), ["a", "b"]), "shift: shift"),
    "ragged": (lambda: ndimage.affine_transform(np.zeros((4, 5)), [[1, 0], [1]]), "expected real numbers"),
    "ragged input": (lambda: ndimage.zoom([[0, 1], [2]], 2), "expected an array of numbers or bool"),
    "no axes": (lambda: ndimage.affine_transform(np.zeros(4), [1.0], output_shape=()), "expected sizes of one axis"),
    "angles": (lambda: ndimage.rotate(np.zeros((4, 5)), [1.0, 2.0]), "angle has shape (2,), expected a number"),
}
LAYERS = {
    "dtypes": (
        lambda: nn.correlation_pyramid(MAPS, MAPS.astype(np.float16)),
        "second has dtype float16, expected float32, that of first",
    ),
    "axes": (lambda: nn.correlation_pyramid(MAPS[0], MAPS), "first has shape (4, 5, 2), expected (B, H, W, C)"),
    "planes": (lambda: nn.k_planes((X[:, None],) * 3, np.zeros((2, 3))), "expected floating numbers (..., H, W, C)"),
    "tables": (
        lambda: nn.multiresolution_grid([np.zeros((8, 2), np.int32)], np.zeros((3, 2)), GRID),
        "expected floating numbers",
    ),
    "border": (lambda: constant_color(np.zeros((2, 2))), "border_color has shape (2, 2)"),
}
ALL = {
    f"{group}, {name}": case
    for group, cases in {"splat": SPLATS, "read": READS, "warp": WARPS, "ndimage": ARRAYS, "nn": LAYERS}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_the_error_says_what_was_expected(name):
    call, message = ALL[name]
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()
