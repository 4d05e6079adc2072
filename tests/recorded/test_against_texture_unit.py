"""`arithmetic="hardware"` against the texture unit of the GPU that runs the tests, bit for bit, at fresh random places.

It needs a GPU of compute capability 9.0, whose rules the arithmetic follows, and CuPy with NVRTC. CuPy makes the
textures; neither mip levels, layers nor cubemaps, which it has none of: those are recorded (`test_hardware.py`).
"""

import itertools

import jax
import numpy as np
import pytest

import jaxtex as jt

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

CAPABILITY = "90"
MODES = ("wrap", "clamp", "mirror", "border")  # as CUDA numbers them
FILTERS = ("point", "linear")
GATHER_FLAG = 0x08  # cudaArrayTextureGather
SAMPLES = 4096
BLOCK = 128
BORDER = np.array([0.5, -0.25, 1.5, 0.3], np.float32)
# Texels of which sums are special.
SPECIAL = {
    "zeros of both signs": (0.0, -0.0, 1.0, -1.0, 2.0, -2.0),
    "values that cancel": (1.5, -1.5, 3.0, -3.0, -0.0),
    "values that cancel, far apart": (1.5, -1.5, 3e-5, -3e-5, 1e-20, -1e-20),
    "an infinity": (np.inf, 1.0, -1.0, 0.0, -0.0),
    "infinities": (np.inf, -np.inf, 1.75, -1.75, 0.95),
    "infinities and huge values": (np.inf, -np.inf, 1.76 * 2.0**127, -1.76 * 2.0**127, 1.9 * 2.0**126),
    "huge values of one exponent": (1.76 * 2.0**127, -1.76 * 2.0**127, 1.99 * 2.0**127),
    "not a number": (np.nan, 1.0, np.inf, -0.0),
    "subnormal numbers": (1e-39, -1e-39, 2.0**-126, -(2.0**-126), 2.0**-125, -0.0, 0.0),
    "subnormal numbers of float16": (2.0**-24, -(2.0**-24), 2.0**-15, -(2.0**-14), 2.0**-13, -0.0),
    "small and huge values": (1e-39, 1e30, -1e30, 1.0, -0.0, 2.0**-126),
}
BUILD = {1: jt.texture1d, 2: jt.texture2d, 3: jt.texture3d}

SOURCE = r"""
#define READ(name, type, value)                                                                        \
    extern "C" __global__ void name(cudaTextureObject_t t, const float* c, type* out, int n) {         \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                 \
        if (i < n) out[i] = value;                                                                     \
    }

READ(read_1d_1, float, tex1D<float>(t, c[i]))
READ(read_1d_4, float4, tex1D<float4>(t, c[i]))
READ(read_2d_1, float, tex2D<float>(t, c[2 * i], c[2 * i + 1]))
READ(read_2d_4, float4, tex2D<float4>(t, c[2 * i], c[2 * i + 1]))
READ(read_3d_1, float, tex3D<float>(t, c[3 * i], c[3 * i + 1], c[3 * i + 2]))
READ(read_3d_4, float4, tex3D<float4>(t, c[3 * i], c[3 * i + 1], c[3 * i + 2]))
READ(gather_0, float4, tex2Dgather<float4>(t, c[2 * i], c[2 * i + 1], 0))
READ(gather_1, float4, tex2Dgather<float4>(t, c[2 * i], c[2 * i + 1], 1))
READ(gather_2, float4, tex2Dgather<float4>(t, c[2 * i], c[2 * i + 1], 2))
READ(gather_3, float4, tex2Dgather<float4>(t, c[2 * i], c[2 * i + 1], 3))
"""


@pytest.fixture(scope="module")
def kernels():
    """The functions of SOURCE, by name."""
    found = cupy.cuda.Device().compute_capability
    if found != CAPABILITY:
        pytest.skip(f"the GPU has compute capability {found}; hardware arithmetic is that of {CAPABILITY}")
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:
        pytest.skip(f"needs NVRTC: {error}")
    return cupy.RawModule(code=SOURCE).get_function


def texture_object(texels, modes, filter_mode, read_mode, normalized, color):
    """A CUDA texture of texels, (..., C), on an array of its own."""
    *sizes, channels = texels.shape
    runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
    kind = {
        "f": runtime.cudaChannelFormatKindFloat,
        "u": runtime.cudaChannelFormatKindUnsigned,
        "i": runtime.cudaChannelFormatKindSigned,
    }[texels.dtype.kind]
    bits = [8 * texels.itemsize if k < channels else 0 for k in range(4)]
    # CUDA gathers from arrays that were made for it, which 1D and 3D arrays cannot be.
    flags = GATHER_FLAG if len(sizes) == 2 else 0
    width, height, depth = (*sizes[::-1], 0, 0)[:3]
    array = texture.CUDAarray(texture.ChannelFormatDescriptor(*bits, kind), width, height, depth, flags)
    array.copy_from(np.ascontiguousarray(texels).reshape(*sizes[:-1], sizes[-1] * channels))
    # A linear 1D read looks at the mode of y as well: clamp, unless it has one.
    codes = [MODES.index(mode) for mode in (*modes, "clamp", "clamp")[:3]]
    descriptor = texture.TextureDescriptor(
        codes,
        FILTERS.index(filter_mode),
        runtime.cudaReadModeElementType if read_mode == "element" else runtime.cudaReadModeNormalizedFloat,
        borderColors=[float(value) for value in color],
        normalizedCoords=int(normalized),
    )
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    return texture.TextureObject(resource, descriptor)


def read_on_the_card(kernels, texels, coords, *how):
    """What the texture unit returns at coordinates (n, dimensions)."""
    channels, (count, dimension) = texels.shape[-1], coords.shape
    unit, places = texture_object(texels, *how), cupy.asarray(np.ascontiguousarray(coords))
    out = cupy.full((count, channels), np.nan, np.float32)
    kernel = kernels(f"read_{dimension}d_{channels}")
    kernel((-(-count // BLOCK),), (BLOCK,), (unit, places, out, np.int32(count)))
    return cupy.asnumpy(out)


def gathered_on_the_card(kernels, component, texels, coords, *how):
    """The four texels that the texture unit gathers at coordinates (n, 2)."""
    unit, places = texture_object(texels, *how), cupy.asarray(np.ascontiguousarray(coords))
    out = cupy.full((len(coords), 4), np.nan, np.float32)
    kernels(f"gather_{component}")((-(-len(coords) // BLOCK),), (BLOCK,), (unit, places, out, np.int32(len(coords))))
    return cupy.asnumpy(out)


def draw_texels(rng, shape, dtype):
    """Every code of an integer format, its ends often; floats of many exponents but in volumes, which are not exact."""
    if np.dtype(dtype).kind == "f":
        spread = 2.0 ** rng.integers(-6, 7, shape) if len(shape) < 4 else 1
        return (rng.normal(size=shape) * spread).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    texels = rng.integers(low, high, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array([low, high], dtype), shape), texels)


def draw_coords(rng, sizes, normalized):
    """Inside and outside, exact edges and centers of texels, and what is no place at all."""
    coords = rng.uniform(-1.5, 2.5, (SAMPLES, len(sizes)))
    quarter = SAMPLES // 4
    coords[:quarter] = rng.integers(-3 * sizes, 4 * sizes, (quarter, len(sizes))) / (2 * sizes)
    coords[quarter : 2 * quarter] = rng.uniform(0, 1, (quarter, len(sizes)))
    coords = coords.astype(np.float32) if normalized else np.round(coords * sizes * 512).astype(np.float32) / 512
    for k, value in enumerate((np.nan, np.inf, -np.inf, 1e9, -1e9, -0.0, 1e-30, -1e-30)):
        coords[-1 - k, rng.integers(len(sizes))] = value
    return coords.astype(np.float32)


def draw_cases(rng, dimension, dtype):
    """Reads in every address mode, filter and unit: texels, coordinates, and how."""
    read_mode = "element" if np.dtype(dtype).kind == "f" else "normalized_float"
    for k, (mode, filter_mode, normalized) in enumerate(itertools.product(MODES, FILTERS, (True, False))):
        sizes = rng.integers(1, (200, 40, 12)[dimension - 1], dimension)
        channels = (1, 4)[k % 2 ^ k // 4 % 2]
        texels = draw_texels(rng, (*sizes[::-1], channels), dtype)
        modes = (mode, *(str(m) for m in rng.choice(MODES, dimension - 1)))
        yield texels, draw_coords(rng, sizes, normalized), (modes, filter_mode, read_mode, normalized, BORDER)


def draw_special_cases(rng, dimension, dtype):
    """Reads of special texels with weights that are often small: texels, coordinates, and how."""
    for values in SPECIAL.values():
        sizes = rng.integers(2, (50, 20, 9)[dimension - 1], dimension)
        with np.errstate(over="ignore"):  # infinities, as float16
            texels = rng.choice(np.array(values).astype(dtype), (*sizes[::-1], 4))
        parts = rng.choice([-128, -127, -1, 0, 1, 2, 100, 127], (SAMPLES, dimension)) / 256
        coords = (rng.integers(-1, sizes + 1, (SAMPLES, dimension)) + parts).astype(np.float32)
        yield texels, coords, (("clamp",) * dimension, "linear", "element", False, BORDER)


def sampler_of(modes, filter_mode, read_mode, normalized):
    """CUDA reads wrap and mirror as clamp when coordinates are in texels."""
    modes = tuple(m if normalized or m == "border" else "clamp" for m in modes)
    return jt.Sampler(
        address_mode=modes,
        filter_mode=filter_mode,
        read_mode=read_mode,
        normalized_coords=normalized,
        arithmetic="hardware",
    )


def read_all(cases):
    """What the library returns for each case, in one compiled program."""

    @jax.jit
    def program(arrays):
        values = []
        for (texels, coords), (stored, _, (*how, color)) in zip(arrays, cases):
            texture = BUILD[coords.shape[1]](texels, border_color=color[: stored.shape[-1]])
            values.append(jt.sample(texture, tuple(coords.T), sampler_of(*how)))
        return values

    return [np.asarray(v).astype(np.float32) for v in program([case[:2] for case in cases])]


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "uint16", "int8", "int16"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_same_bits_as_the_texture_unit(kernels, dimension, dtype):
    """Sign of zero included; NaN equals NaN."""
    rng = np.random.default_rng([dimension, *dtype.encode()])
    assert_same_bits(kernels, list(draw_cases(rng, dimension, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_same_bits_of_special_texels(kernels, dimension, dtype):
    rng = np.random.default_rng([dimension, *dtype.encode()])
    assert_same_bits(kernels, list(draw_special_cases(rng, dimension, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "uint16", "int8", "int16"])
def test_same_bits_of_a_gather(kernels, dtype):
    """The border color included, which is a texel of the texture's format."""
    rng, lines = np.random.default_rng([*dtype.encode()]), []
    read_mode = "element" if np.dtype(dtype).kind == "f" else "normalized_float"
    for mode, normalized in itertools.product(MODES, (True, False)):
        sizes = rng.integers(1, 40, 2)
        texels, coords = draw_texels(rng, (*sizes[::-1], 4), dtype), draw_coords(rng, sizes, normalized)
        color = rng.choice(np.array([1.0, -1.0, 0.5, -0.5, 0.3, -0.99, 2.0], np.float32), 4)
        how = ((mode, mode), "linear", read_mode, normalized)
        texture = jt.texture2d(texels, border_color=color)
        for component in range(4):
            values = jt.gather(texture, tuple(coords.T), sampler_of(*how), component=component)
            expected = gathered_on_the_card(kernels, component, texels, coords, *how, color)
            case = f"texels {texels.shape}, {how}, color {color}, component {component}"
            lines += difference(np.asarray(values).astype(np.float32), expected, coords, case)
    assert not lines, "\n".join(lines)


def assert_same_bits(kernels, cases):
    lines = []
    for (texels, coords, how), values in zip(cases, read_all(cases)):
        expected = read_on_the_card(kernels, texels, coords, *how)
        lines += difference(values, expected, coords, f"texels {texels.shape}, {how[:-1]}")
    assert not lines, "\n".join(lines)


def difference(values, expected, coords, case):
    """A line that says how many bits differ and where, if any do."""
    assert values.shape == expected.shape
    differ = (values.view(np.uint32) != expected.view(np.uint32)) & ~(np.isnan(values) & np.isnan(expected))
    if not differ.any():
        return []
    k = tuple(np.argwhere(differ)[0])
    place = f"at {coords[k[0]]} number {k[1]}: {values[k]!r}, the card has {expected[k]!r}"
    return [f"{differ.sum()} of {differ.size} differ: {case}; {place}"]
