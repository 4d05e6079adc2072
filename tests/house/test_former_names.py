"""Arguments by their former names: each call warns once, where it is written, and means the same."""

import inspect
import warnings

import jax
import numpy as np
import pytest

import jaxtex as jt
import jaxtex.layers.equinox
import jaxtex.layers.nnx
from jaxtex import warp
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, EAGER, public_functions
from tests.support.tolerances import assert_close

FUNCTIONS = public_functions()
MODES = {"filter": ("filter_mode", "point"), "address": ("address_mode", "wrap")}
# A sampler has had the names of today from the start.
TAKERS = [
    (name, old)
    for name in FUNCTIONS
    for old, (new, _) in MODES.items()
    if name != "Sampler" and new in parameters_of(FUNCTIONS[name])
]
LAYERS = (jaxtex.layers.equinox.SpatialTransformer, jaxtex.layers.nnx.SpatialTransformer)
IMAGE = np.random.default_rng(0).normal(size=(4, 5, 1)).astype(np.float32)


def made(name, options):
    """What a call makes: its program, or for a class or an iterator the options that it holds."""
    arguments = {key: value for key, value in CALLS[name].items() if key not in ("filter_mode", "address_mode")}
    if inspect.isclass(FUNCTIONS[name]):
        return vars(FUNCTIONS[name](**arguments, **options)).get("read")
    if name in EAGER:
        return [tile.tolist() for _, tile in FUNCTIONS[name](**arguments, **options)]
    arrays = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray | jax.Array)}
    rest = {key: value for key, value in arguments.items() if key not in arrays}
    return str(jax.make_jaxpr(lambda arrays: FUNCTIONS[name](**arrays, **rest, **options))(arrays))


@pytest.mark.parametrize(("name", "old"), TAKERS)
def test_a_former_name_means_the_argument_of_today(name, old):
    new, mode = MODES[old]
    assert old not in inspect.signature(FUNCTIONS[name]).parameters
    called = name.rpartition(".")[2]
    with pytest.warns(DeprecationWarning, match=new) as warned:
        found = made(name, {old: mode})
    assert [str(w.message) for w in warned] == [f"{called}: {old} is now called {new}; pass {new}='{mode}'."]
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found == made(name, {new: mode})
    with pytest.raises(TypeError, match=f"^{called}: {new} is given twice, also by its former name {old}; pass {new}"):
        made(name, {old: mode, new: mode})


def test_all_warps_and_layers_have_a_former_name():
    functions = {name for name, _ in TAKERS}
    assert {"warp.resample", "warp.resize", "warp.SizedWarp", "layers.equinox.SpatialTransformer"} <= functions
    assert len(TAKERS) > 30


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_warn_where_they_are_made(layer):
    with pytest.warns(DeprecationWarning, match="SpatialTransformer: address is now called address_mode") as warned:
        found = layer(lambda image: image.ravel()[:3], 3, (4, 4), address="mirror")
    assert [w.filename for w in warned] == [__file__]
    assert found.sampler == jt.Sampler(address_mode="mirror", filter_mode="linear")


def test_a_call_warns_at_its_line_and_returns_the_same():
    with pytest.warns(DeprecationWarning, match="_mode") as warned:
        found = warp.resize(IMAGE, (2, 3), filter="cubic", address="wrap")
    line = inspect.currentframe().f_lineno - 1
    assert [(w.filename, w.lineno) for w in warned] == [(__file__, line)] * 2
    np.testing.assert_array_equal(found, warp.resize(IMAGE, (2, 3), filter_mode="cubic", address_mode="wrap"))


def test_names_that_were_never_taken_are_refused():
    """Of a filter of projections, of a sampler, and of functions without these options."""
    assert "filter" in inspect.signature(jt.rays.filtered_backprojection).parameters
    with pytest.raises(TypeError, match=r"Sampler: there is no argument 'filter'; pass filter_mode=\.\.\."):
        jt.Sampler(filter="cubic")
    with pytest.raises(TypeError, match=r"sample: there is no argument 'filter'; pass sampler=jaxtex\.Sampler\("):
        jt.sample(jt.texture2d(IMAGE), (0.5, 0.5), filter="cubic")


def test_an_angle_by_position_or_in_degrees_keeps_its_meaning_and_warns():
    turned = warp.rotate(IMAGE, angle=np.float32(np.pi / 9), scale=1.5, address_mode="clamp")
    says = "rotate: degrees is deprecated, also by its position; pass angle=jnp.deg2rad(degrees), in radians."
    by_position = lambda: warp.rotate(IMAGE, 20.0, None, None, scale=1.5, address_mode="clamp")
    by_keyword = lambda: warp.rotate(IMAGE, degrees=20.0, scale=1.5, address_mode="clamp")
    compiled = lambda: jax.jit(lambda *args: warp.rotate(*args, scale=1.5, address_mode="clamp"))(IMAGE, 20.0)
    for call in (by_position, by_keyword, compiled):
        for _ in range(2):  # the second call runs the kept program
            with pytest.warns(DeprecationWarning, match="^rotate: degrees") as warned:
                found = call()
            assert [(str(w.message), w.filename) for w in warned] == [(says, __file__)]
            assert_close("float32", found, turned, 1)


def test_a_function_that_jax_calls_warns_where_it_is_called():
    with pytest.warns(DeprecationWarning, match="^rotate: degrees") as warned:
        jax.eval_shape(warp.rotate, IMAGE, 20.0)
    assert [w.filename for w in warned] == [__file__]


def test_an_angle_is_in_radians():
    """The oracle is the turn by a quarter of NumPy, and the slope in degrees by the chain rule."""
    square = np.arange(9, dtype=np.float32).reshape(3, 3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close("float32", warp.rotate(square, angle=np.float32(np.pi / 2)), np.rot90(square), 8)
    slope = jax.grad(lambda angle: (warp.rotate(IMAGE, angle=angle) ** 2).sum())(np.float32(0.3))
    with pytest.warns(DeprecationWarning, match="^rotate: degrees"):
        by_degrees = jax.grad(lambda degrees: (warp.rotate(IMAGE, degrees) ** 2).sum())(np.float32(np.rad2deg(0.3)))
    assert_close("float32", by_degrees, slope * np.pi / 180, np.abs(IMAGE).max() ** 2)
