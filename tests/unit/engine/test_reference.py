"""The public read, against the read on one screen: values, and gradients in texels, border color and coordinates.

The gradients of `reference.read` are those that JAX finds by itself. Coordinates lie in and around the texture, also on
the edges and centers of texels, where both take the slope on the right, and some are no numbers.
"""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine import reference
from jaxtex._engine.compute import programs
from jaxtex._tables.address_rules import ADDRESS_RULES, LAST
from jaxtex._tables.filter_kernels import POINT
from jaxtex._tables.storage_formats import storage_format, sum_dtype
from tests.support.host_kernels import noted_kernels
from tests.support.tolerances import assert_close, assert_exact

MODES = [str(mode) for mode, rule in ADDRESS_RULES.items() if rule.num_axes == 1]
MAKE = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}
LAYERED = {1: jt.texture1d_layered, 2: jt.texture2d_layered}
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


# The scalar oracle meets all filters in all modes; here each mode, kind of weights, number of axes and kind of texels.
FILTERS = "point", "linear", "gaussian", "lagrange", "bspline"
CODES = {"read_mode": "normalized_float", "address_mode": "border", "wrt": (1, 2)}
CASES = {
    f"{name}, {mode}": {"filter_mode": name, "address_mode": mode, "normalized_coords": k % 2 == 0}
    for k, (name, mode) in enumerate(zip(FILTERS, MODES, strict=True))
} | {
    "an image": {"sizes": (5, 6), "address_mode": ("border", "reflect"), "normalized_coords": False},
    "a volume": {"sizes": (3, 4, 5), "address_mode": ("wrap", "border", "mirror")},
    "sizes smaller than the filter": {"sizes": (2,), "address_mode": "reflect", "filter_mode": "cubic"},
    "layers": {"layers": 4, "address_mode": "border"},
    "halves": {"dtype": "float16", "filter_mode": "cubic"},
    "bfloat16": {"dtype": "bfloat16", "filter_mode": "point", "address_mode": "border"},
    "doubles": {"dtype": "float64", "filter_mode": "cubic", "address_mode": "wrap"},
    "complex numbers": {"dtype": "complex64", "address_mode": "border"},
    "stored integers": {"dtype": "int32", "filter_mode": "point", "color": np.int32(7), "wrt": ()},
    "signed codes": {"dtype": "int16", **CODES},
    "sRGB": {"dtype": "uint8", "srgb": True, **CODES},
    "a mask": {"dtype": "bool", "address_mode": "border", "wrt": (1, 2)},
}


def with_gradients(read, sampler, layer, args, wrt):
    def of(*some):
        given = dict(zip(wrt, some))
        return read(sampler, layer, *(given.get(k, a) for k, a in enumerate(args)))

    value, pull = jax.vjp(of, *(args[k] for k in wrt))
    return value, pull(jnp.cos(jnp.arange(value.size, dtype=np.float32)).reshape(value.shape).astype(value.dtype))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    """Values are the same bit for bit where one texel decides; gradients are finite."""
    case = {"sizes": (7,), "dtype": "float32", "layers": 0, "color": COLOR, "wrt": None} | CASES[name]
    sizes, layers, color, wrt = (case.pop(key) for key in ("sizes", "layers", "color", "wrt"))
    dtype = jnp.dtype(case.pop("dtype"))
    with jax.enable_x64(dtype == "float64"):
        sampler, rng = jt.Sampler(**case), np.random.default_rng(0)
        texels = texels_of((*[layers] * (layers > 0), *sizes, 3), dtype)
        coords = coords_of(sizes, sampler.normalized_coords, sum_dtype(dtype))
        layer = rng.integers(-2, layers + 2, coords[0].shape).astype(np.int32) if layers else None
        args = texels, color, *coords
        wrt = range(len(args)) if wrt is None else wrt
        both = lambda *args: [
            with_gradients(read, sampler, layer, args, wrt) for read in (public_read, read_by_reference)
        ]
        (value, slopes), (wanted, wanted_slopes) = jax.tree.map(in_parts, jax.jit(both)(*args))
    assert value.dtype == wanted.dtype
    if sampler.kernel.blends or sampler.srgb:
        largest = 1 if sampler.read_mode == "normalized_float" else np.abs(in_parts(texels).astype(np.float64)).max()
        assert_close(value.dtype.name, value, wanted, max(largest, np.abs(COLOR).max()))
    else:
        assert_exact(value, wanted)
    for a, b in zip(slopes, wanted_slopes, strict=True):
        assert a.dtype == b.dtype
        assert_close("sum" if a.dtype == np.float32 else a.dtype.name, a, b, 4 * (1 + np.abs(b.astype(float)).max()))


PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "architecture.md"


def test_the_architecture_page_shows_its_code():
    source = inspect.getsource(reference)
    for code in (source[source.index("def read(") :], inspect.getsource(programs.over_grid)):
        assert f"```python\n{code}```\n" in PAGE.read_text(), f"{PAGE.name} is to show\n{code}"


def test_the_architecture_page_shows_statements_of_a_kernel_and_of_its_adjoint():
    pixels = jt.fused_map(lambda y, x, image, gain: gain * image[y, 2 * x], (512, 256))
    with noted_kernels() as kernels:
        jax.jit(jax.grad(lambda *args: pixels(*args).sum(), (0, 1))).lower(np.ones((512, 512), np.float32), 2.0)
        jax.jit(pixels).lower(np.ones((512, 512), np.float32), 2.0)
    sources = "".join(kernel.source for kernel in kernels)
    (shown,) = re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert not [line for line in shown.splitlines() if line.strip() not in sources]
