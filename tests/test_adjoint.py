"""The adjoint in every form: as kernels (interpreted without a GPU), in blocks, as arrays; and sums in any order."""

import dataclasses
import importlib
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._arguments import as_operands, check_where
from jaxtex._engine import operators, plan, reproducible_sum
from jaxtex._engine.lowering import cpu_adjoint, gpu_kernels, partitioned_adjoint
from jaxtex._engine.lowering.gpu_kernels import policy
from jaxtex._engine.reads import layout_of
from jaxtex._engine.reproducible_sum import Units
from jaxtex.warp.grids import pixel_centres, projective
from tests.tolerances import TOLERANCES

pullback = importlib.import_module("jaxtex._engine.lowering.gpu_kernels.adjoint")
F32 = np.dtype(np.float32)
ON_GPU = jax.default_backend() == "gpu"


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def uniform(*shape):
    return np.random.default_rng(sum(shape)).uniform(-0.3, 1.3, shape).astype(np.float32)


@dataclasses.dataclass
class Case:
    """A texture and coordinates of one shape, to be read with a sampler."""

    texture: jt.Texture
    coords: tuple
    sampler: jt.Sampler = dataclasses.field(default_factory=jt.Sampler)
    more: dict = dataclasses.field(default_factory=dict)

    @property
    def look(self):
        layout = layout_of(self.texture)
        where = as_operands(
            check_where("sample", layout.kind, self.coords, self.more.get("layer"), self.more.get("lod"))
        )
        return plan.only_look(layout, plan.reach(layout, where, self.sampler), self.sampler)

    @property
    def static(self):
        return {"axes": self.look.axes, "grid": self.look.grid, "read_mode": self.sampler.decoding, "dtype": F32}

    @property
    def cotangent(self):
        return normal(*np.broadcast_shapes(*(c.shape for c in self.look.operands)), self.texture.channels)

    @property
    def moving(self):
        return tuple(k for k, axis in enumerate(self.look.axes) if not axis.integer)


@dataclasses.dataclass
class Grid(Case):
    """A texture, and operands of which coordinates are made where they are used."""

    @property
    def look(self):
        return plan.grid_look(layout_of(self.texture), projective, self.coords, self.sampler)


HOMOGRAPHY = np.float32([[0.3, 0.1, -1], [-0.1, 0.4, 1], [0.004, 0.002, 1]]).reshape(9, 1, 1)
LEVELS = np.random.default_rng(0).uniform(-1, 5, (9, 33)).astype(np.float32)
LAYERS = np.random.default_rng(0).integers(-1, 4, (9, 33)).astype(np.int32)
BYTES = np.random.default_rng(0).integers(0, 256, (6, 7, 3)).astype(np.uint8)
CASES = {
    **{
        f"2d, {mode}, {c} channels": Case(
            jt.texture2d(normal(6, 7, c)), tuple(uniform(2, 17, 40)), jt.Sampler(address_mode=mode)
        )
        for mode, c in (("clamp", 1), ("border", 3), ("mirror", 4), ("wrap", 20))
    },
    "cubic": Case(jt.texture2d(normal(6, 7, 2)), tuple(uniform(2, 9, 33)), jt.Sampler(filter_mode="cubic")),
    "1d": Case(jt.texture1d(normal(50, 2)), tuple(uniform(1, 300))),
    "3d": Case(jt.texture3d(normal(5, 6, 7, 2)), tuple(uniform(3, 3, 9, 33))),
    "layers": Case(jt.texture2d_layered(normal(3, 6, 7, 2)), tuple(uniform(2, 9, 33)), more={"layer": LAYERS}),
    "a cube": Case(jt.cubemap(normal(6, 5, 5, 3)), tuple(normal(3, 9, 33))),
    "a mip chain": Case(
        jt.build_mipmaps(jt.texture2d(normal(16, 16, 3))),
        tuple(uniform(2, 9, 33)),
        jt.Sampler(mipmap_filter_mode="linear"),
        {"lod": LEVELS},
    ),
    "a grid of lines": Case(jt.texture2d(normal(6, 7, 3)), (uniform(1, 40), uniform(19, 1))),
    "few samples": Case(jt.texture2d(normal(6, 7, 3)), tuple(uniform(2, 5, 3))),
    "bytes": Case(jt.texture2d(BYTES), tuple(uniform(2, 5, 3)), jt.Sampler(read_mode="normalized_float")),
    "a crowd": Case(jt.texture2d(normal(3, 3, 3)), tuple(uniform(2, 64, 64))),
    "a grid": Grid(
        jt.texture2d(normal(6, 7, 3)),
        (*pixel_centres((17, 40)), *map(jnp.asarray, HOMOGRAPHY)),
        jt.Sampler(address_mode="border", normalized_coords=False),
    ),
}


def assert_close(got, expected, name="sum"):
    """Within the rounding of sums, of the largest value."""
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=4 * TOLERANCES[name] * (1 + abs(np.asarray(b)).max()))


def wanted_by(case):
    floating = jnp.issubdtype(case.texture.dtype, jnp.floating)
    return [(-1, *case.moving), case.moving] if floating else [case.moving]


@pytest.mark.parametrize("name", CASES)
def test_kernels_say_what_arrays_say(name, monkeypatch):
    monkeypatch.setattr(pullback, "BUSY", 2**6)  # so that threads take several samples of few
    case = CASES[name]
    texels, operands, interpret = case.texture.texels, case.look.operands, not ON_GPU
    expected = operators.read(texels, *operands, **case.static)
    got = jax.jit(lambda t, *c: gpu_kernels.read(t, *c, **case.static, batch=0, interpret=interpret))(texels, *operands)
    assert_close([got], [expected])
    for wanted in wanted_by(case):
        static = {**case.static, "wanted": wanted, "deterministic": False}
        expected = operators.pullback(case.cotangent, texels, *operands, **static)
        run = jax.jit(lambda g, t, *c, s=static: gpu_kernels.pullback(g, t, *c, **s, batch=0, interpret=interpret))
        assert_close(run(case.cotangent, texels, *operands), expected)


@pytest.mark.parametrize("name", ["2d, mirror, 4 channels", "a mip chain", "a crowd"])
def test_kernels_add_exactly(name):
    case = CASES[name]
    static = {"axes": case.look.axes, "dtype": F32, "deterministic": True}
    expected = operators.splat(case.cotangent, *case.look.operands, **static)
    got = gpu_kernels.splat(case.cotangent, *case.look.operands, **static, batch=0, interpret=not ON_GPU)
    assert_close([got], [expected])


@pytest.mark.parametrize("shared", ["texture", "coordinates", "nothing"])
def test_batches_of_kernels_and_blocks(shared, monkeypatch):
    """Batch axes of size 1 are shared; the sum over a shared texture is not the kernel's business."""
    monkeypatch.setattr(cpu_adjoint, "BLOCK", 128)
    monkeypatch.setattr(cpu_adjoint, "FEWEST_SAMPLES", 16)
    n, m = (1 if shared == "texture" else 3), (1 if shared == "coordinates" else 3)
    texels, x, y = map(jnp.asarray, (normal(n, 6, 7, 3), uniform(m, 9, 33), uniform(m, 9, 1)))
    axes = Case(jt.texture2d(texels[0]), (x[0], y[0])).look.axes
    read = {"axes": axes, "read_mode": jt.Sampler().decoding, "dtype": F32}
    one = jax.vmap(lambda t, x, y: operators.read(t, y, x, **read), (0 if n > 1 else None, *[0 if m > 1 else None] * 2))
    squeeze = lambda a, n: a if n > 1 else a[0]
    expected = one(squeeze(texels, n), squeeze(x, m), squeeze(y, m))
    assert_close([gpu_kernels.read(texels, y, x, **read, batch=1, interpret=not ON_GPU)], [expected])
    static = {**read, "wanted": (-1, 0, 1), "deterministic": False}
    g = normal(3, 9, 33, 3)
    one = jax.vmap(lambda g, t, y, x: operators.pullback(g, t, y, x, **static))
    wide = lambda a: np.broadcast_to(a, (3, *a.shape[1:]))
    expected = one(g, *map(wide, (texels, y, x)))
    assert_close(gpu_kernels.pullback(g, texels, y, x, **static, batch=1, interpret=not ON_GPU), expected)
    assert_close(cpu_adjoint.pullback(g, texels, y, x, **static, batch=1), expected)


@pytest.mark.parametrize("name", CASES)
def test_pairs_say_what_arrays_say(name):
    case = CASES[name]
    if not jnp.issubdtype(case.texture.dtype, jnp.floating):
        return
    static = {"axes": case.look.axes, "grid": case.look.grid, "dtype": F32}
    args = case.cotangent, *case.look.operands
    for deterministic in (False, name == "a crowd"):
        expected = operators.splat(*args, **static)
        assert_close([partitioned_adjoint.splat(*args, **static, deterministic=deterministic)], [expected])


@pytest.mark.parametrize("name", CASES)
def test_blocks_say_what_arrays_say(name, monkeypatch):
    """Blocks that divide the samples and blocks that do not."""
    monkeypatch.setattr(cpu_adjoint, "BLOCK", 128)
    monkeypatch.setattr(cpu_adjoint, "FEWEST_SAMPLES", 16)
    case = CASES[name]
    for wanted in wanted_by(case):
        static = {**case.static, "wanted": wanted, "deterministic": False}
        args = case.cotangent, case.texture.texels, *case.look.operands
        assert_close(cpu_adjoint.pullback(*args, **static, batch=0), operators.pullback(*args, **static))
    static = {"axes": case.look.axes, "grid": case.look.grid, "dtype": F32, "deterministic": False}
    values = case.cotangent, *case.look.operands
    assert_close([cpu_adjoint.splat(*values, **static, batch=0)], [operators.splat(*values, **static)])


def test_a_large_gradient_is_taken_in_blocks():
    """On a CPU, and only in programs of one device; the result is that of small ones, put together."""
    texels, x, y = normal(40, 50, 4), *uniform(2, 300, 300)
    loss = lambda t, x, y: jnp.sin(jt.sample(jt.texture2d(t), (x, y))).sum()
    gradient = jax.jit(jax.grad(loss, (0, 1, 2)))
    whole = gradient(texels, x, y)
    if not ON_GPU:
        assert "while" in gradient.lower(texels, x, y).as_text()
    parts = [gradient(texels, x[k : k + 60], y[k : k + 60]) for k in range(0, 300, 60)]
    np.testing.assert_allclose(whole[0], sum(np.asarray(p[0]) for p in parts), rtol=1e-4, atol=1e-3)
    for k in (1, 2):
        np.testing.assert_allclose(whole[k], np.concatenate([p[k] for p in parts]), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("check", [True, False])
def test_a_large_gradient_inside_shard_map(check):
    """A device's part of it is a program of one device, in blocks or as a kernel; a shared texture's is summed."""
    devices = jax.device_count()
    mesh = jax.make_mesh((devices,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
    split, whole = jax.sharding.PartitionSpec("b"), jax.sharding.PartitionSpec()
    read = lambda t, x, y: jt.sample(jt.texture2d(t), (x, y), jt.Sampler(address_mode="mirror"))
    mapped = jax.shard_map(read, mesh=mesh, in_specs=(whole, split, split), out_specs=split, check_vma=check)
    args = normal(32, 32, 3), *uniform(2, devices, 200, 150)
    gradient = lambda f: jax.jit(jax.grad(lambda *args: jnp.sin(f(*args)).sum(), (0, 1, 2)))
    for a, b in zip(gradient(mapped)(*args), gradient(read)(*args)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("count", [1, 7, 3000])
def test_sums_by_parts_have_the_same_bits_in_any_order(count, scale):
    rng = np.random.default_rng(count)
    values = (rng.normal(size=count) * 10.0 ** rng.uniform(-6, 0, count) * scale).astype(np.float32)
    parts = Units.of(jnp.asarray(values), 1.0, jnp.int32(count)).split(jnp.asarray(values))
    found = set()
    for _ in range(6):
        order = rng.permutation(count)
        coarse, fine = (np.cumsum(np.asarray(p)[order], dtype=np.float32)[-1] for p in parts)
        found.add(np.float32(coarse + fine).tobytes())
    (bits,) = found
    exact, whole = values.astype(np.float64).sum(), np.abs(values.astype(np.float64)).sum()
    # One rounding; half a fine unit a term, as documented; or what float32 has left near 1e-38.
    terms = max(count, 4)
    bound = 2.0**-24 * whole + count * max(terms**2 * 2.0**-47 * abs(values).max(), 2.0**-126)
    assert abs(float(np.frombuffer(bits, np.float32)[0]) - exact) <= bound


def test_sums_by_parts_keep_what_is_not_finite():
    values = jnp.array([1.0, np.inf, -2.0, np.nan], jnp.float32)
    coarse, fine = Units.of(values, 1.0, jnp.int32(4)).split(values)
    np.testing.assert_array_equal(coarse + fine, values)


DETERMINISTIC = {
    "2d": CASES["2d, mirror, 4 channels"],
    "a cube": CASES["a cube"],
    "a mip chain": CASES["a mip chain"],
}


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_deterministic_gradients_are_the_gradients(name):
    """Also when taken again, and of second order."""
    case = DETERMINISTIC[name]
    exact = dataclasses.replace(case.sampler, deterministic=True)

    def gradients(sampler):
        def loss(texels):
            texture = dataclasses.replace(case.texture, texels=texels)
            return jnp.sin(jt.sample(texture, case.coords, sampler, **case.more)).sum()

        first = jax.grad(loss)
        return jax.jit(lambda t: (first(t), jax.grad(lambda t: (first(t) ** 2).sum())(t)))(case.texture.texels)

    found, again, expected = gradients(exact), gradients(exact), gradients(case.sampler)
    for a, b, c in zip(found, again, expected):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        np.testing.assert_allclose(a, c, rtol=0, atol=2.0**-17 * abs(np.asarray(c)).max())


@pytest.mark.gpu
def test_deterministic_gradients_have_the_same_bits_in_every_run():
    """Many samples in few texels, in every order that the GPU likes; by default the bits do change."""
    texels, x, y = normal(64, 64, 4), *np.random.default_rng(0).uniform(0, 1, (2, 2048, 2048)).astype(np.float32)
    runs = {}
    for deterministic in (True, False):
        sampler = jt.Sampler(deterministic=deterministic)
        gradient = jax.jit(jax.grad(lambda t, s=sampler: (jt.sample(jt.texture2d(t), (x, y), s) ** 2).sum()))
        runs[deterministic] = len({np.asarray(gradient(texels)).tobytes() for _ in range(10)})
    assert runs[True] == 1
    assert runs[False] > 1


def test_private_copies_are_bounded():
    """In number, in memory, and only where samples crowd."""
    for samples in (2**10, 2**16, 2**24):
        for side in (1, 16, 64, 1024):
            for channels in (1, 4, 64):
                copies = reproducible_sum.private_copies(samples, side * side, channels)
                assert copies & (copies - 1) == 0
                assert 1 <= copies <= reproducible_sum.MAX_COPIES
                if samples < reproducible_sum.CROWD * side * side:
                    assert copies == 1
                memory = 4 * copies * side * side * channels
                assert copies == 1 or memory <= max(reproducible_sum.COPIES_BYTES, 0.05 * 4 * samples * channels)


@pytest.mark.parametrize(("capability", "known"), [("7.0", False), ("8.0", True), ("12.0", True)])
def test_kernels_need_a_gpu_that_triton_knows(capability, known, monkeypatch):
    device = types.SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(jax, "local_devices", lambda backend: [device])
    assert policy.can_compile() is known


def test_kernels_count_elements_in_32_bits(monkeypatch):
    """Of every array that they read or make, batch axes included."""
    monkeypatch.setattr(policy, "can_compile", lambda: True)
    case = CASES["2d, clamp, 1 channels"]
    of = lambda *shape, dtype=np.float32: jax.ShapeDtypeStruct(shape, dtype)
    read, splat = {**case.static, "batch": 1}, {"axes": case.look.axes, "dtype": F32, "batch": 1}
    assert policy.suits_read(of(5, 6, 7, 1), of(5, 9, 9), of(1, 9, 9), **read)
    assert not policy.suits_read(of(2**16, 6, 7, 1), of(1, 2**7, 2**7), of(1, 2**7, 2**7), **read)
    assert not policy.suits_read(of(5, 6, 7, 1), of(5, 9, 9, dtype=np.float64), of(1, 9, 9), **read)
    assert policy.suits_splat(of(5, 9, 9, 1), of(1, 9, 9), of(1, 9, 9), **splat)
    assert not policy.suits_splat(of(2**24, 2, 2, 1), of(1, 2, 2), of(1, 2, 2), **splat)
    assert not policy.suits_splat(of(2**24, 2, 2, 0), of(1, 2, 2), of(1, 2, 2), **splat)


def lowered_for_cuda(monkeypatch, f, *args):
    """The program that `f` is on a GPU, whether or not there is one."""
    monkeypatch.setattr(policy, "can_compile", lambda: True)
    return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.skipif(not ON_GPU and jax.__version_info__ >= (0, 11), reason="kernels are lowered only beside a GPU")
def test_a_gpu_runs_kernels_where_they_suit(monkeypatch):
    texels, wide, xy = normal(6, 7, 1), normal(6, 7, 100), tuple(uniform(2, 9, 33))
    gradient = lambda t, *xy: jax.grad(lambda t, *xy: jt.sample(jt.texture2d(t), xy).sum(), (0, 1, 2))(t, *xy)
    assert "triton" in lowered_for_cuda(monkeypatch, gradient, texels, *xy)
    assert "triton" not in lowered_for_cuda(monkeypatch, gradient, wide, *xy)
    few = normal(2, 2, 40)  # many samples a texel
    assert "triton" in lowered_for_cuda(monkeypatch, gradient, few, *xy)


def test_programs_of_several_devices_and_exports_keep_arrays(monkeypatch):
    """XLA cannot cut a kernel in parts, and its format is not one to keep."""
    texels, x, y = normal(6, 7, 1), *uniform(2, 8, 33)
    read = lambda t, x, y: jt.sample(jt.texture2d(t), (x, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exported = jax.export.export(jax.jit(read), platforms=["cpu", "cuda"])(texels, x, y)
    assert "triton" not in exported.mlir_module()
    if jax.device_count() == 8:
        mesh = jax.make_mesh((8,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
        split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("b"))
        x, y = (jax.device_put(a, split) for a in (x, y))
        assert "triton" not in lowered_for_cuda(monkeypatch, read, texels, x, y)


def test_slow_atomic_additions_are_warned_of(monkeypatch):
    """Where a jaxlib has them and XLA's scatter is used; the warning says what to do."""
    splat = lambda v, x: jt.splat(v, (x,), (2**8, 100)).texels
    args = normal(50, 100), uniform(50)
    monkeypatch.setattr(policy, "jaxlib_version", lambda: (0, 11, 0))
    with pytest.warns(UserWarning, match="install jaxlib 0.11.1"):
        jax.jit(splat).trace(*args).lower(lowering_platforms=("cuda",))
    monkeypatch.setattr(policy, "jaxlib_version", lambda: (0, 11, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda v, x: splat(v, x) + 0).trace(*args).lower(lowering_platforms=("cuda",))
