"""Reads of bound textures have the bits of hardware arithmetic: by a texture unit on a card, and elsewhere as well."""

import copy
import dataclasses
import pickle
import types
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex import cuda
from tests.recorded.block_sets import SIZES, image_blocks
from tests.support.tolerances import assert_exact, named

RNG = np.random.default_rng(11)
SAMPLES = 40
HARDWARE = jt.Sampler(arithmetic="hardware")
FRACTION = {"read_mode": "normalized_float"}
ON_CARD = jax.default_backend() == "gpu"
LAYER = {"layer": RNG.integers(-1, 4, SAMPLES).astype(np.int32)}
LOD = {"lod": RNG.uniform(-1, 5, SAMPLES).astype(np.float32)}


def sampler(**options):
    return dataclasses.replace(HARDWARE, **options)


def texels(*shape, dtype=np.float32):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return RNG.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def numbers(count, low=-1.0, high=2.0):
    return tuple(RNG.uniform(low, high, (count, SAMPLES)).astype(np.float32))


def footprint(ndim):
    return {side: tuple(RNG.normal(size=(ndim, SAMPLES)).astype(np.float32) * 0.2) for side in ("ddx", "ddy")}


def chain(make, *shape, dtype=np.float32, axes=2, **how):
    """Levels that do not follow from one another."""
    front, sizes, channels = shape[: -1 - axes], shape[-1 - axes : -1], shape[-1]
    levels = [shape]
    while max(sizes) > 1:
        sizes = tuple(max(1, n // 2) for n in sizes)
        levels.append((*front, *sizes, channels))
    return make(tuple(texels(*level, dtype=dtype) for level in levels), **how)


class Case(NamedTuple):
    """A texture, its sampler, coordinates, and options of a read."""

    texture: jt.Texture
    sampler: jt.Sampler
    coords: tuple
    options: Mapping = types.MappingProxyType({})


COLOR = np.float32([0.3, -0.7, 1.6, 0.45])
TRILINEAR = {"mipmap_filter_mode": "linear"}
CUBES = {"seams": {}, "faces": {"seamless_cubemap": False, "address_mode": ("wrap", "border")}}
CASES = {
    "1d": Case(jt.texture1d(texels(13, 1)), sampler(address_mode="mirror"), numbers(1)),
    "2d": Case(jt.texture2d(texels(9, 14, 3)), sampler(address_mode=("wrap", "border")), numbers(2)),
    "3d": Case(jt.texture3d(texels(5, 6, 7, 2)), sampler(address_mode=("clamp", "wrap", "mirror")), numbers(3)),
    "1d_layered": Case(jt.texture1d_layered(texels(3, 9, 4)), sampler(address_mode="wrap"), numbers(1), LAYER),
    "2d_layered": Case(jt.texture2d_layered(texels(3, 9, 8, 1)), HARDWARE, numbers(2), LAYER),
    "in texels": Case(
        jt.texture2d(texels(9, 14, 2), border_color=COLOR[:2]),
        sampler(normalized_coords=False, address_mode=("border", "clamp")),
        numbers(2, -2, 16),
    ),
    "cubemap_layered": Case(jt.cubemap_layered(texels(3, 6, 4, 4, 2)), HARDWARE, numbers(3), LAYER),
    **{
        f"cubemap, {name}": Case(jt.cubemap(texels(6, 5, 5, 1), border_color=0.5), sampler(**how), numbers(3))
        for name, how in CUBES.items()
    },
    **{
        f"{np.dtype(dtype)} as fractions": Case(
            jt.texture2d(texels(8, 6, channels, dtype=dtype), border_color=COLOR[:channels]),
            sampler(**FRACTION, address_mode="border"),
            numbers(2),
        )
        for channels, dtype in ((4, np.uint8), (3, np.int8), (2, np.uint16), (1, np.int16))
    },
    **{
        f"{np.dtype(dtype)} as stored": Case(
            jt.texture2d(texels(8, 6, channels, dtype=dtype), border_color=np.array(7, dtype)),
            sampler(filter_mode="point", address_mode="border"),
            numbers(2),
        )
        for channels, dtype in ((3, np.uint8), (1, np.int16), (4, np.int32), (2, np.uint32))
    },
    "float16": Case(jt.texture3d(texels(4, 8, 6, 3, dtype=np.float16)), sampler(address_mode="border"), numbers(3)),
    "sRGB": Case(jt.texture2d(texels(8, 6, 4, dtype=np.uint8)), sampler(**FRACTION, srgb=True), numbers(2)),
    "chain, no level": Case(chain(jt.texture2d, 8, 6, 2), sampler(**TRILINEAR, mipmap_level_bias=0.75), numbers(2)),
    "chain, level": Case(
        chain(jt.texture2d, 8, 16, 2, dtype=np.uint8),
        sampler(**FRACTION, **TRILINEAR, mipmap_level_bias=-0.3, min_mipmap_level_clamp=0.5),
        numbers(2),
        LOD,
    ),
    "chain of layers, nearest level": Case(
        chain(jt.texture2d_layered, 2, 8, 6, 1), sampler(max_mipmap_level_clamp=1.7), numbers(2), LAYER | LOD
    ),
    "chain, footprint": Case(chain(jt.texture2d, 16, 16, 1), sampler(**TRILINEAR), numbers(2), footprint(2)),
    "chain of a volume, level": Case(
        chain(jt.texture3d, 4, 6, 5, 1, dtype=np.float16, axes=3), sampler(**TRILINEAR), numbers(3), LOD
    ),
    "chain of a line, footprint": Case(
        chain(jt.texture1d, 32, 1, axes=1), sampler(**TRILINEAR, address_mode="wrap"), numbers(1), footprint(1)
    ),
    "chain of a cube, level": Case(chain(jt.cubemap, 6, 8, 8, 1), sampler(**TRILINEAR), numbers(3), LOD),
}
# Footprints of cubes and volumes have formulas of their own, whose programs take long to compile.
MORE = {
    "chain of a cube, footprint": Case(chain(jt.cubemap, 6, 8, 8, 1), sampler(**TRILINEAR), numbers(3), footprint(3)),
    "chain of a volume, footprint": Case(
        chain(jt.texture3d, 8, 8, 8, 1, axes=3), sampler(**TRILINEAR), numbers(3), footprint(3)
    ),
    "chain of layered cubes, level": Case(
        chain(jt.cubemap_layered, 2, 6, 8, 8, 1), sampler(**TRILINEAR), numbers(3), LAYER | LOD
    ),
    **{
        f"{kind}, {np.dtype(dtype)}, {channels} channels": Case(
            make(texels(*shape, channels, dtype=dtype)),
            sampler(**(FRACTION if np.dtype(dtype).itemsize < 4 and np.dtype(dtype).kind in "iu" else {})),
            numbers(len(shape) - (kind == "1d_layered")),
            LAYER if kind == "1d_layered" else {},
        )
        for kind, make, shape in (
            ("1d", jt.texture1d, (9,)),
            ("3d", jt.texture3d, (4, 5, 6)),
            ("1d_layered", jt.texture1d_layered, (3, 9)),
        )
        for channels, dtype in enumerate((np.uint8, np.int16, np.float16, np.float32), 1)
    },
}
# A texture unit reads along long footprints by rules that hardware arithmetic follows closely, not to the last bit.
LONG = {
    "long footprint": Case(
        chain(jt.texture2d, 16, 16, 1), sampler(**TRILINEAR, max_anisotropy=4), numbers(2), footprint(2)
    ),
}
USUAL = ("2d", "3d", "2d_layered", "in texels", "cubemap, seams", "int8 as fractions", "uint8 as stored", "sRGB")
USUAL += ("chain, level", "chain, footprint")
GROUPS = [pytest.param({name: CASES[name] for name in USUAL}, id="usual")]
MORE |= {name: case for name, case in CASES.items() if name not in USUAL} | ({} if ON_CARD else LONG)
GROUPS += [pytest.param(MORE, id="more", marks=pytest.mark.slow)]


@jax.jit
def same_read(textures, arguments):
    """The reads of textures by the samplers that they are bound with."""
    return [jt.sample(t, coords, **options) for t, (coords, options) in zip(textures, arguments, strict=True)]


@pytest.mark.parametrize("cases", GROUPS)
def test_values_are_those_of_hardware_arithmetic(cases):
    bound = [jt.unit.bind(case.texture, case.sampler) for case in cases.values()]
    arguments = [(case.coords, dict(case.options)) for case in cases.values()]

    @jax.jit
    def run(textures, arguments):
        each = zip(cases.values(), textures, arguments, strict=True)
        return [jt.sample(t, coords, case.sampler, **options) for case, t, (coords, options) in each]

    expected = run([case.texture for case in cases.values()], arguments)
    for (name, case), one, found, value in zip(
        cases.items(), bound, same_read(bound, arguments), expected, strict=True
    ):
        with named(name):
            assert (one.shape, one.dtype, one.kind) == (case.texture.shape, case.texture.dtype, case.texture.kind)
            assert one.num_levels == case.texture.num_levels
            assert_exact(found, value, value.dtype)


@pytest.mark.parametrize(
    "names", [("bc1", "bc5_signed", "bc6h"), pytest.param(tuple(SIZES), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_blocks_are_read_as_their_texels(names):
    """Also in sRGB, and in layers with mip levels; without a sampler as fractions, but for floats."""
    border, coords = {"address_mode": "border"}, numbers(2)
    how = {name: sampler(**border, **({} if "6h" in name else FRACTION)) for name in names}
    given = {name: ((image_blocks(name), name, (61, 62)), {"border_color": 0.25}) for name in names}
    srgb, chained = sampler(**FRACTION, srgb=True), sampler(**FRACTION, **TRILINEAR)
    how |= {"sRGB": srgb, "no sampler": sampler(**FRACTION), "floats, no sampler": HARDWARE, "layers": chained}
    given["sRGB"] = given["no sampler"] = (image_blocks("bc1"), "bc1", (64, 64)), {}
    given["floats, no sampler"] = (image_blocks("bc6h"), "bc6h", (64, 64)), {}
    levels = [image_blocks("bc1")[start : start + count] for start, count in ((0, 12), (12, 2), (14, 2))]
    given["layers"] = (levels, "bc1", (2, 9, 5)), {"kind": "2d_layered"}
    decoded = {name: jt.block_compressed(*args, **options) for name, (args, options) in given.items()}
    bound = {
        name: jt.unit.bind_compressed(*args, **options, sampler=None if "no sampler" in name else how[name])
        for name, (args, options) in given.items()
    }

    @jax.jit
    def run(textures):
        more = lambda name: LAYER | LOD if name == "layers" else {}
        return {name: jt.sample(t, coords, how[name], **more(name)) for name, t in textures.items()}

    found, expected = run(bound), run(decoded)
    for name, value in expected.items():
        with named(name):
            assert bound[name].sampler == how[name]
            assert (bound[name].shape, bound[name].dtype) == (decoded[name].shape, decoded[name].dtype)
            assert_exact(found[name], value, value.dtype)


def test_other_reads():
    """Gathers, fetches, and reads by other samplers, of the texels that are kept; in functions of one sample."""
    image, other = jt.texture2d(texels(9, 14, 3)), jt.Sampler(address_mode="mirror")
    codes = jt.texture2d(texels(8, 6, 2, dtype=np.uint8))
    unit, nearest = sampler(address_mode="wrap"), sampler(filter_mode="point")
    (x, y), (i, j) = numbers(2), RNG.integers(-1, 15, (2, SAMPLES)).astype(np.int32)

    @jax.jit
    def run(image, codes, x, y):
        pixel = lambda x, y, t: jt.sample(t, (x, y), unit) * 2 + jt.sample(t, (y, x), unit)
        return {
            "gather": [jt.gather(image, (x, y), unit, component=k) for k in range(3)],
            "gather of integers": jt.gather(codes, (x, y), nearest, component=1),
            "gather by another sampler": jt.gather(image, (x, y), other),
            "fetch": jt.fetch(image, (i, j)),
            "other sampler": jt.sample(image, (x, y), other),
            "default sampler": jt.sample(image, (x, y), jt.Sampler()),
            "other dtype": jt.sample(image, (x, y), unit, dtype=np.float16),
            "fused_vmap": jt.fused_vmap(pixel, (0, 0, None))(x, y, image),
            "fused_map": jt.fused_map(lambda j, i: jt.sample(image, (x[i] + y[j], y[i]), unit), (3, 5))(),
            "vmap": jax.vmap(pixel, (0, 0, None))(x, y, image),
        }

    bound = jt.unit.bind(image, unit), jt.unit.bind(codes, nearest)
    expected = run(image, codes, x, y)
    for name, value in run(*bound, x, y).items():
        with named(name):
            jax.tree.map(assert_exact, value, expected[name])

    # Without a sampler, by the one that it is bound with.
    @jax.jit
    def by_default(image, x, y):
        return jt.sample(image, (x, y)), jt.gather(image, (x, y))

    sampled, gathered = by_default(bound[0], x, y)
    assert_exact(gathered, expected["gather"][0])
    assert_exact(sampled, jax.jit(lambda t: jt.sample(t, (x, y), unit))(image))


def test_transformed_programs():
    """A loop that carries the texture, maps over samples and layers, and gradients: in coordinates and levels those of
    hardware arithmetic, in the texels that are kept, too."""
    layered = chain(jt.texture2d_layered, 3, 9, 8, 2)
    unit = sampler(address_mode="wrap", **TRILINEAR)
    (x, y), layers, lod = numbers(2), np.arange(3, dtype=np.int32), LOD["lod"]

    @jax.jit
    def run(texture, x, y, lod):
        read = lambda x, layer, lod: jt.sample(texture, (x, y[0]), unit, layer=layer, lod=lod)

        def turn(carry, step):
            texture, total = carry
            value = jt.sample(texture, (x + 0.1 * step, y), unit, layer=2, lod=lod)
            return (texture, total + value), value.sum()

        def loss(x, y, lod, texels):
            kept = dataclasses.replace(texture, texels=texels)
            return (jt.sample(kept, (x, y), unit, layer=1, lod=lod) ** 2).sum()

        (kept, total), sums = jax.lax.scan(turn, (texture, jnp.zeros((SAMPLES, 2))), jnp.arange(4.0))
        results = {
            "scan": (total, sums),
            "maps": jax.vmap(jax.vmap(read, (0, None, 0)), (None, 0, None))(x, layers, lod),
            "gradients": jax.value_and_grad(loss, (0, 1, 2, 3))(x, y, lod, texture.texels),
            "tangent": jax.jvp(lambda x: read(x, 1, lod).sum(), (x,), (y,)),
        }
        return kept, results

    bound = jt.unit.bind(layered, unit)
    (carried, found), (_, expected) = run(bound, x, y, lod), run(layered, x, y, lod)
    assert_exact(carried.handle, bound.handle)
    for name, value in expected.items():
        with named(name):
            jax.tree.map(assert_exact, found[name], value)
    assert all(np.any(slope) for slope in jax.tree.leaves(expected["gradients"]))


def test_coordinates_of_64_bits(x64):
    """They are read as float32, and have gradients of their own dtype. Texels of 64 bits are refused."""
    texture = jt.texture2d(texels(8, 6, 2))
    x, y = (c.astype(np.float64) for c in numbers(2))

    @jax.jit
    def run(texture, x, y):
        loss = lambda x: jt.sample(texture, (x, y), HARDWARE).sum()
        return jt.sample(texture, (x, y), HARDWARE), *jax.value_and_grad(loss)(x)

    for found, value in zip(run(jt.unit.bind(texture, HARDWARE), x, y), run(texture, x, y), strict=True):
        assert_exact(found, value, value.dtype)
    wide = jt.texture2d(np.zeros((4, 4, 1)))
    with pytest.raises(ValueError, match=r"bind: .* float64 texels, which no texture unit has"):
        jt.unit.bind(wide)


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_meshes_of_devices():
    """Each device reads its samples: in `jax.shard_map`, and in programs that XLA partitions."""
    count = 2 if jax.device_count() < 8 else 8
    texture, (x, y) = jt.texture2d(texels(8, 6, 2)), numbers(2)
    unit = sampler(address_mode="wrap")
    loss = lambda t, x, y: jt.sample(t, (x, y), unit).sum()
    both = lambda t, x, y: (jt.sample(t, (x, y), unit), jax.grad(loss, (1, 2))(t, x, y))
    value, slopes = jax.jit(both)(texture, x, y)
    for kind in (AxisType.Explicit, AxisType.Auto):
        mesh = jax.make_mesh((count,), ("a",), axis_types=(kind,))
        whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("a"))
        bound = jt.unit.bind(jax.device_put(texture, whole), unit)
        given = [jax.device_put(a, cut) for a in (x, y)]
        with named(kind), jax.set_mesh(mesh):
            runs = [jax.jit(both)]
            if kind is AxisType.Explicit:
                assert jax.typeof(jax.eval_shape(both, bound, *given)[0]).sharding.spec == P("a", None)
                of_parts = jax.shard_map(both, in_specs=(P(), P("a"), P("a")), out_specs=(P("a"), P("a")))
                runs.append(jax.jit(of_parts))
            for run in runs:
                found, found_slopes = run(bound, *given)
                assert found.sharding.is_equivalent_to(cut, 2)
                assert_exact(found, value)
                jax.tree.map(assert_exact, found_slopes, slopes)


def test_texture_objects_of_cuda():
    """With a texture unit they read the same, and are released."""
    array = cuda.mallocArray(cuda.createChannelDesc("float2"), 14, 9)
    array = cuda.memcpy2DToArray(array, 0, 0, texels(9, 14, 2), 14 * 8, 14 * 8, 9)
    resource = cuda.ResourceDesc.Array(array)
    desc = cuda.TextureDesc(cuda.AddressMode.Wrap, cuda.FilterMode.Linear, normalizedCoords=1)
    objects = [cuda.createTextureObject(resource, desc, unit=unit) for unit in (False, True)]
    coords = numbers(2)
    read = jax.jit(lambda t: cuda.tex2D(t, *coords, T="float2"))
    assert_exact(read(objects[1]), read(objects[0]))
    bound = objects[1].texture
    assert bound.sampler is not None
    cuda.destroyTextureObject(objects[1])
    assert bound.handle.is_deleted()
    with pytest.raises(cuda.CudaError, match="destroyTextureObject has released"):
        cuda.tex2D(objects[1], 0.5, 0.5, T="float2")
    with pytest.raises(cuda.CudaError, match="destroyTextureObject has released"):
        cuda.destroyTextureObject(objects[1])


def test_what_a_bound_texture_is():
    """A pytree whose handle is a leaf, and of which the texture that was bound can be had again; it is not copied."""
    texture = jt.texture2d(jnp.asarray(texels(8, 6, 2)), border_color=0.5)
    bound = jt.unit.bind(texture, sampler(address_mode="border"))
    assert (bound.handle.shape, bound.handle.dtype) == ((3,), np.uint32)
    assert len(jax.tree.leaves(bound)) == len(jax.tree.leaves(texture)) + 1
    assert type(bound.bound) is jt.Texture
    assert bound.bound.texels is texture.texels
    assert_exact(bound.bound.border_color, texture.border_color)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"texture object is of this process alone; copy the texture that was"):
            copied(bound)
    of_many = jax.vmap(lambda handle: jt.sample(dataclasses.replace(bound, handle=handle), (0.5, 0.5)))
    handles = jnp.stack([bound.handle] * 2)
    with pytest.raises(NotImplementedError, match=r"bind a layered texture, and map its layer"):
        of_many(handles)
    with bound as entered:
        assert entered is bound
    assert bound.handle.is_deleted()
    bound.destroy()


def test_texels_that_are_given_up():
    """As on a card: a read by another sampler, or of the texels themselves, says what to do."""
    bound = jt.unit.bind(jt.texture2d(texels(8, 6, 2)), HARDWARE)
    given_up = dataclasses.replace(bound, texels=None)
    assert (given_up.shape, given_up.dtype, given_up.num_channels) == ((8, 6, 2), np.float32, 2)
    reads = [
        ("sample", lambda t: jt.sample(t, (0.5, 0.5), jt.Sampler())),
        ("gather", lambda t: jt.gather(t, (0.5, 0.5), jt.Sampler())),
        ("fetch", lambda t: jt.fetch(t, (1, 1))),
        ("build_mipmaps", jt.build_mipmaps),
    ]
    for name, read in reads:
        with pytest.raises(ValueError, match=f"^{name}: texture was bound with keep_texels=False.*bind it with keep"):
            read(given_up)
    derivative = jax.grad(lambda x, t: jt.sample(t, (x, 0.5)).sum())
    with pytest.raises(ValueError, match=r"keep_texels=False.*computes a derivative"):
        derivative(0.5, given_up)
    if not ON_CARD:
        with pytest.raises(ValueError, match=r"keep_texels=False.*a device without a texture unit"):
            jt.sample(given_up, (0.5, 0.5))
