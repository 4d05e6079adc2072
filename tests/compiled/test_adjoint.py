"""The adjoint: which form a program gets, large gradients in blocks, sums in any order, and samples that crowd."""

import contextlib
import functools
import itertools
import math
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.compute import texel_sums
from jaxtex._engine.compute.texel_sums import Units
from jaxtex._engine.cuda import adjoint_kernel, fold_adjoint
from jaxtex._engine.cuda.build import launch
from jaxtex._engine.cuda.read import operand_sums
from jaxtex._engine.cuda.scatter import crowds, stored
from jaxtex._engine.cuda.trace import elementwise
from jaxtex._engine.forms import gpu_kernels
from jaxtex._engine.walk import texel_order
from jaxtex._jax import versions
from jaxtex._jax.contexts import is_deterministic
from tests.compiled.field_calls import windows
from tests.support import host_compiler
from tests.support.arrays import normal, uniform
from tests.support.host_kernels import kernels_here, kernels_on_cpu, noted_kernels
from tests.support.tolerances import assert_close, assert_sums_close, assert_trees_close

F32 = np.dtype(np.float32)
ON_GPU = jax.default_backend() == "gpu"

BYTES = np.random.default_rng(0).integers(0, 256, (6, 7, 3)).astype(np.uint8)


def test_a_large_gradient_is_taken_in_blocks():
    """On a CPU, and only in programs of one device; the result is that of small ones, put together."""
    texels, (x, y), share = normal(40, 50, 4), uniform(2, 300, 300), np.abs(normal(300, 300, 1))
    loss = lambda t, x, y, share: (share * jnp.sin(jt.sample(jt.texture2d(t), (x, y)))).sum()
    gradient = jax.jit(jax.grad(loss, (0, 1, 2)))
    whole = gradient(texels, x, y, share)
    if not ON_GPU:
        assert "while" in gradient.lower(texels, x, y, share).as_text()
    parts = [gradient(texels, *(a[k : k + 60] for a in (x, y, share))) for k in range(0, 300, 60)]
    together = (sum(p[0] for p in parts), *(jnp.concatenate([p[k] for p in parts]) for k in (1, 2)))
    assert_close("long sum", whole[0], together[0], 1 + np.abs(together[0]))
    assert_trees_close("reordered", whole[1:], together[1:])


@pytest.mark.slow
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
    (texels, *coords), (expected, *others) = gradient(mapped)(*args), gradient(read)(*args)
    assert_close("long sum", texels, expected, 1 + np.abs(expected))
    assert_trees_close("reordered", coords, others)


@jax.jit
def parts_of(values, count):
    return Units.of(values, 1.0, count).split(values)


@pytest.mark.parametrize(
    ("alike", "count", "scale"), [(False, 1, 1.0), (True, 7, 1e-30), (True, 3000, 1e30), (False, 3000, 1e-30)]
)
def test_sums_by_parts_have_the_same_bits_in_any_order(alike, count, scale):
    """Of terms that differ in size and sign, and of terms that are all nearly as large as the largest."""
    rng = np.random.default_rng(count)
    spread = rng.normal(size=count) * 10.0 ** rng.uniform(-6, 0, count)
    values = ((rng.uniform(0.9, 1, count) if alike else spread) * scale).astype(np.float32)
    parts = parts_of(values, np.int32(count))
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


def test_weighted_sums_on_a_cpu_have_the_same_bits_in_any_order():
    """Also where weights are large: they are factors of the terms. On a GPU they have the same bits in every run."""
    rng = np.random.default_rng(0)
    (x, y), weights = uniform(2, 400), (rng.normal(size=400) * 10.0 ** rng.uniform(-3, 3, 400)).astype(np.float32)
    sampler = jt.Sampler(deterministic=True)
    read = lambda texels, x, y, w: jt.nn.sample_weighted(jt.texture2d(texels), (x, y), w, sampler)
    gradient = jax.jit(jax.grad(lambda *args: read(*args).sum()))
    orders = [np.arange(400), *(rng.permutation(400) for _ in range(5))]
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        found = {np.asarray(gradient(normal(3, 4, 2), x[k], y[k], weights[k])).tobytes() for k in orders}
    assert len(found) == 1


def splat_by_kernels(size, *several):
    """Sums of values at places x and y, with the same bits in every run: on a card, or with the kernels as C++."""
    sampler = jt.Sampler(deterministic=True, normalized_coords=False)
    splat = jax.jit(lambda values, x, y: jt.splat(values, (x, y), size, sampler).texels)
    with kernels_here():
        return [np.asarray(splat(*args)) for args in several]


@pytest.mark.parametrize(("channels", "scale"), [(2, 1e34), (4, 1.0), (5, 1e-36)])
def test_sums_of_kernels_do_not_depend_on_the_order(channels, scale):
    """Of samples far apart, which are added one by one: most texels get several, some get one."""
    rng, (height, width), count = np.random.default_rng(channels), (150, 170), 700
    values = rng.normal(size=(count, channels)) * 10.0 ** rng.uniform(-6, 0, (count, 1)) * scale
    at = rng.integers(1, height - 1, (2, 160))[:, rng.integers(0, 160, count)] + rng.choice([0.25, 0.5, 1], (2, count))
    values, (x, y) = values.astype(np.float32), at.astype(np.float32)
    orders = [np.arange(count), *(rng.permutation(count) for _ in range(2))]
    found, *others = splat_by_kernels((height, width, channels), *((values[k], x[k], y[k]) for k in orders))
    assert all(other.tobytes() == found.tobytes() for other in others)
    exact, magnitudes, taps = (np.zeros((height, width, channels)) for _ in range(3))
    for v, cx, cy in zip(values.astype(np.float64), x, y):
        i, j = math.floor(cy - 0.5), math.floor(cx - 0.5)
        a, b = cy - 0.5 - i, cx - 0.5 - j
        for k, n in np.ndindex(2, 2):
            term = abs(1 - k - a) * abs(1 - n - b) * v
            for total, more in ((exact, term), (magnitudes, abs(term)), (taps, term != 0)):
                total[i + k, j + n] += more
    assert (taps == 1).sum() > 20 < (taps > 3).sum()
    # One rounding, half a unit a term as documented, and what float32 has left near 1e-38.
    unit = 2.0 ** (math.ceil(math.log2(4 * count)) - 60) * abs(values).max()
    np.testing.assert_array_less(abs(found - exact), 2.0**-23 * magnitudes + taps * (unit / 2 + 2.0**-126) + 2.0**-149)


def tilted(count, side):
    """A square of samples that is turned about the middle of a texture, with corners outside."""
    y, x = np.mgrid[:count, :count] + 0.5 - count / 2
    c, s = math.cos(0.5), math.sin(0.5)
    return np.stack([side / 2 + c * x - s * y, side / 2 + s * x + c * y]).astype(np.float32)


def sum_of_taps(values, x, y, size, address):
    """A splat in float64, and the sum of the magnitudes of its terms."""
    found = np.zeros((2, *size))
    i, j = (np.floor(c - np.float32(0.5)).astype(int) for c in (y, x))
    a, b = y - np.float32(0.5) - i, x - np.float32(0.5) - j
    places = {"clamp": lambda k, n: np.clip(k, 0, n - 1), "wrap": lambda k, n: k % n, "border": lambda k, n: k}[address]
    for k, n in np.ndindex(2, 2):
        term = (np.float64(abs(1 - k - a)) * abs(1 - n - b))[..., None] * values
        at = places(i + k, size[0]), places(j + n, size[1])
        inside = (at[0] >= 0) & (at[0] < size[0]) & (at[1] >= 0) & (at[1] < size[1])
        for total, more in zip(found, (term, abs(term))):
            np.add.at(total, tuple(index[inside] for index in at), more[inside])
    return found


# An address mode; how many tiles of samples, of 16, have no window, and how many lie on few texels; and the room of a
# list. If no list has room, all windows lie on full squares.
STORED = {
    "clamped, and some lie apart": ("clamp", 1, 1, None),
    "wrapped, too many for a list": ("wrap", 0, 0, 3),
    "hardly any in windows": ("border", 9, 0, None),
}


@pytest.mark.parametrize("name", STORED)
def test_sums_of_windows_do_not_depend_on_the_order(name, monkeypatch):
    """The order in which blocks run. On a CPU they run one after the other, forward or backward."""
    (address, alone, near, room), side, rng = STORED[name], 72, np.random.default_rng(0)
    monkeypatch.setattr(stored, "MOST_WINDOWS", room or stored.MOST_WINDOWS)
    coords, values = tilted(64, side), rng.normal(size=(64, 64, 3)).astype(np.float32)
    for tile in range(alone + near):
        part = (slice(None), *(slice(16 * k, 16 * k + 16) for k in divmod(tile, 4)))
        coords[part] = rng.uniform(*((0, side) if tile < alone else (30, 33)), (2, 16, 16))
    sampler = jt.Sampler(deterministic=True, normalized_coords=False, address_mode=address)

    def sums():
        splat = jax.jit(lambda v, x, y: jt.splat(v, (x, y), (side, side, 3), sampler).texels)
        with kernels_here():
            return np.asarray(splat(values, *coords))

    found = sums()
    forward = "blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++"
    assert host_compiler.RUN.count(forward) == 1
    backward = "blockIdx.x = blocks - 1; blockIdx.x >= 0; blockIdx.x--"
    monkeypatch.setattr(host_compiler, "RUN", host_compiler.RUN.replace(forward, backward))
    assert sums().tobytes() == found.tobytes()
    exact, magnitudes = sum_of_taps(values, *coords, (side, side, 3), address)
    # The sums of samples and of windows round, and weights are multiples of 2^-25.
    np.testing.assert_array_less(abs(found - exact), 2.0**-20 * magnitudes + 2.0**-24)


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float16, marks=pytest.mark.slow)])
def test_stored_windows_of_a_batch_are_the_gradients(dtype):
    """Of textures and coordinates; some samples are not finite, and some lie on few texels of the second texture."""
    rng, (x, y), side = np.random.default_rng(1), tilted(64, 60), 60
    x, y = np.stack([x, y - 3]), np.stack([y + 5, x])
    x[1, :16, :16], y[1, :16, :16] = rng.uniform(20, 23, (2, 16, 16))
    texels, values = (rng.normal(size=(2, n, n, 2)).astype(dtype) for n in (side, 64))
    values[0, 20, 30], values[0, 21, 30, 0], values[1, 40, 41] = np.inf, -np.inf, np.nan

    def gradients(deterministic):
        sampler = jt.Sampler(deterministic=deterministic, normalized_coords=False)
        read = jax.vmap(lambda t, x, y: jt.sample(jt.texture2d(t), (x, y), sampler))
        with kernels_here():
            return jax.jit(lambda v, *args: jax.vjp(read, *args)[1](v))(values, texels, x, y)

    found, expected = (tuple(map(np.asarray, gradients(deterministic))) for deterministic in (True, False))
    assert not np.isfinite(found[0].astype(np.float32)).all()
    for a, b in zip(found, expected):
        finite = np.isfinite(b.astype(np.float32))
        np.testing.assert_array_equal(np.where(finite, 0, a), np.where(finite, 0, b))
        a, b = np.where(finite, a, 0), np.where(finite, b, 0)
        assert_close("sum" if a.dtype == F32 else a.dtype.name, a, b, 64 if a.dtype == F32 else 0.25 + 2 * np.abs(b))


def test_sums_of_kernels_do_not_overflow():
    """All samples fall on one texel, and have the largest value."""
    count, value = 2**12 - 1, np.float32(-(2 - 2.0**-23))
    x, y = np.full(count, 7.5, np.float32), np.full(count, 3.5, np.float32)
    (texels,) = splat_by_kernels((9, 300, 1), (np.full((count, 1), value), x, y))
    assert texels[3, 7, 0] == np.float32(count * np.float64(value))
    assert np.count_nonzero(texels) == 1


def test_sums_of_kernels_keep_what_is_not_finite():
    """Alone, with numbers, and with the other infinity, whichever comes first."""
    inf, nan = np.inf, np.nan
    terms = [[inf], [inf, 1], [1, -inf], [inf, -inf], [-inf, 2, -inf], [nan, 1], [1, nan, 2], [1, 2], [inf, 1, inf]]
    expected = [inf, inf, -inf, nan, -inf, nan, nan, 3, inf]
    values = np.float32([[v, 1] for some in terms for v in some])
    at = np.float32([40 * k + 0.5 for k, some in enumerate(terms) for _ in some])
    (texels,) = splat_by_kernels((400, 400, 2), (values, at, at))
    places = 40 * np.arange(len(terms))
    # A weight of zero makes no number of an infinity, so only the texels at the samples' centers are looked at.
    np.testing.assert_array_equal(texels[places, places, 0], np.float32(expected))
    np.testing.assert_array_equal(texels[places, places, 1], [len(some) for some in terms])


def test_sums_by_parts_keep_what_is_not_finite():
    values = np.float32([1, np.inf, -2, np.nan])
    np.testing.assert_array_equal(np.sum(parts_of(values, np.int32(4)), 0), values)


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


@pytest.mark.parametrize(("capability", "known"), [("7.5", False), ("8.0", True), ("12.0", True), ("gfx942", False)])
def test_kernels_need_a_gpu_for_which_they_are_written(capability, known, monkeypatch):
    device = types.SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(jax, "local_devices", lambda backend: [device])
    assert gpu_kernels.can_compile_kernels() is known


def kernels_of(function, *shapes):
    """The names of the kernels in a program of arrays of these shapes."""
    with noted_kernels() as kernels:
        jax.jit(lambda *args: function(*args)).lower(*(jax.ShapeDtypeStruct(shape, F32) for shape in shapes))
    return {kernel.name for kernel in kernels}


def reads_of_textures(texels, x, y):
    return jax.vmap(lambda t: a_read(t, x, y))(texels)


@pytest.mark.parametrize(
    ("texels", "samples", "reads", "adds"),
    [
        ((5, 6, 7, 1), (9, 9), True, True),
        ((2**25, 2, 2, 4), (2, 2), True, True),  # elements may be more
        ((2**17, 6, 7, 1), (2**7, 2**7), False, False),
    ],
)
def test_kernels_number_samples_and_texels_in_32_bits(texels, samples, reads, adds):
    """Batch axes included."""
    gradient = lambda t, *xy: jax.grad(lambda t: reads_of_textures(t, *xy).sum())(t)
    assert ("texture_read" in kernels_of(reads_of_textures, texels, samples, samples)) is reads
    assert ("texture_splat" in kernels_of(gradient, texels, samples, samples)) is adds


def test_a_kernel_reads_texels_by_two_indices(monkeypatch):
    """As it does where one of 32 bits cannot number them; it adds none."""
    texels, x, y = normal(2, 6, 7, 5), *uniform(2, 2, 9, 33)
    read = jax.vmap(a_read)
    gradient = lambda t, *xy: jax.grad(lambda t: read(t, *xy).sum())(t)
    expected = read(texels, x, y)
    monkeypatch.setattr(texel_order, "INDEX_LIMIT", 40)
    with noted_kernels() as kernels:
        found = jax.jit(lambda *args: read(*args))(texels, x, y)
    assert [kernel.name for kernel in kernels] == ["texture_read"]
    assert_sums_close([found], [expected])
    assert "texture_splat" not in kernels_of(gradient, texels.shape, x.shape, y.shape)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(40_000, 55_000, 1), (24_000, 24_000, 4)])
def test_a_kernel_reads_more_elements_than_32_bits_count(shape):
    height, width, channels = shape
    assert math.prod(shape) > 2**31
    number = lambda y, x, c: ((y % 251) * (width * channels % 251) + (x % 251) * channels + c) % 251

    @jax.jit
    def make():
        y, x, c = (jax.lax.broadcasted_iota(jnp.int32, shape, k) for k in range(3))
        return number(y, x, c).astype(jnp.uint8)

    rng = np.random.default_rng(0)
    y, x = (rng.integers(0, n, (300, 300)) for n in (height, width))
    y[0], x[0], y[1], x[1] = height - 1, width - 1, 0, 0
    sampler = jt.Sampler(filter_mode="point", normalized_coords=False)
    read = jax.jit(lambda t, x, y: jt.sample(jt.texture2d(t), (x, y), sampler))
    args = make(), *(jnp.asarray(i + 0.5, jnp.float32) for i in (x, y))
    assert launch.TARGET in read.lower(*args).as_text()
    np.testing.assert_array_equal(read(*args), number(y[..., None], x[..., None], np.arange(channels)))


def lowered_for_cuda(monkeypatch, f, *args):
    """The program that `f` is on a GPU, whether or not there is one."""
    monkeypatch.setattr(gpu_kernels, "can_compile_kernels", lambda: True)
    monkeypatch.setattr(launch, "local_capability", lambda: (9, 0))
    monkeypatch.setattr(launch, "compile_to_ptx", lambda source, capability: "PTX")
    monkeypatch.setattr(launch, "has_ptx_call", lambda: True)
    return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_a_gpu_runs_kernels_where_they_suit(monkeypatch):
    texels, wide, xy = normal(6, 7, 1), normal(6, 7, 1025), tuple(uniform(2, 9, 33))
    gradient = lambda t, *xy: jax.grad(lambda t, *xy: jt.sample(jt.texture2d(t), xy).sum(), (0, 1, 2))(t, *xy)
    assert "texture_pullback" in lowered_for_cuda(monkeypatch, gradient, texels, *xy)
    assert launch.TARGET not in lowered_for_cuda(monkeypatch, gradient, wide, *xy)


def a_read(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y))


def test_a_gpu_reads_with_a_kernel_whatever_the_channels(monkeypatch):
    for channels in (1, 3, 100):
        args = normal(6, 7, channels), *uniform(2, 9, 33)
        assert launch.TARGET in lowered_for_cuda(monkeypatch, lambda *a: a_read(*a), *args)
    monkeypatch.delitem(elementwise.EXPRESSIONS, "floor")  # what cannot be said in CUDA C is left to XLA
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert launch.TARGET not in lowered_for_cuda(monkeypatch, lambda *a: a_read(*a) + 0, *args)
    assert "floor has no rule" in str(caught[0].message)


# Who asks for the same bits in every run

XLA_FLAG = "--xla_gpu_deterministic_ops=true"
ASKS = {
    "a flag": (None, XLA_FLAG, None, True),
    "a block against a flag": (None, XLA_FLAG, False, False),
    "a sampler against a block": (True, "", False, True),
    "a sampler against both": (False, XLA_FLAG, True, False),
}


def gradient_of_texels(sampler, block):
    """The gradient of a read in a block, taken outside of it."""

    def loss(texels, *xy):
        with contextlib.nullcontext() if block is None else jt.deterministic(block):
            return jt.sample(jt.texture2d(texels), xy, sampler).sum()

    return lambda *args: jax.grad(loss)(*args)


@pytest.mark.parametrize("who", ASKS)
def test_who_asks_for_the_same_bits_on_a_gpu(who, monkeypatch):
    deterministic, flags, block, expected = ASKS[who]
    args = normal(6, 7, 1), *uniform(2, 9, 33)
    program = functools.partial(lowered_for_cuda, monkeypatch)
    monkeypatch.setenv("XLA_FLAGS", "")
    asked, plain = (
        program(gradient_of_texels(jt.Sampler(deterministic=choice), None), *args) for choice in (expected, False)
    )
    monkeypatch.setenv("XLA_FLAGS", flags)
    jax.clear_caches()  # XLA reads its flags once a process, and so JAX's cache does not compare them
    run = gradient_of_texels(jt.Sampler(deterministic=deterministic), block)
    assert program(run, *args) == asked
    assert asked.count(launch.TARGET) == plain.count(launch.TARGET) + expected  # one more kernel
    if deterministic is None:  # nothing changes on a CPU
        on_cpu = lambda f: jax.jit(f).trace(*args).lower(lowering_platforms=("cpu",)).as_text()
        assert on_cpu(run) == on_cpu(gradient_of_texels(jt.Sampler(deterministic=False), None))
    jax.clear_caches()


def test_what_flags_ask_for(monkeypatch, tmp_path):
    """They may lie in a file."""
    file = tmp_path / "flags"
    file.write_text(f"--xla_dump_to=there\n{XLA_FLAG}\n")
    asked = {str(file): True, str(tmp_path / "missing"): False, "": False, "--xla_dump_to=a=b": False}
    asked |= {"--xla_gpu_autotune_level=0 --xla_gpu_exclude_nondeterministic_ops": True}
    asked |= {f"{XLA_FLAG} --xla_gpu_deterministic_ops=false": False}
    for value, expected in asked.items():
        monkeypatch.setenv("XLA_FLAGS", value)
        assert is_deterministic() is expected, value


def test_a_compiled_function_is_traced_again_in_a_block():
    traces = []

    @jax.jit
    def read(texels):
        traces.append(is_deterministic())
        return texels

    texels = jnp.ones(3)
    for block in (False, True, True, False):
        with jt.deterministic(block):
            read(texels)
    with jt.deterministic(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(is_deterministic).result() is False  # the block is that of its thread
        with jt.deterministic(False):
            read(texels)
        read(texels)
    assert traces == [False, True]


@pytest.mark.parametrize(("dtype", "channels", "fused"), [("u1", 4, True), ("u1", 3, False), ("f4", 3, True)])
def test_xla_fuses_copies_of_single_texels(dtype, channels, fused, monkeypatch):
    """Of one channel, to which bytes are packed, and of 32-bit channels on a grid; x in full, a kernel reads these."""
    image = np.zeros((6, 8, channels), dtype)
    read = lambda image, *xy: jt.surface_read(jt.texture2d(image), xy, boundary_mode="clamp")
    for x, alone in ((np.arange(8)[None], fused), (np.tile(np.arange(8), (6, 1)), channels == 4)):
        text = lowered_for_cuda(monkeypatch, lambda *args: read(*args), image, x, np.arange(6)[:, None])
        assert (launch.TARGET not in text) == alone


# Sums at integer coordinates, and of reads; tests/house/test_every_call.py looks at the gradients of public calls.
SUMS = {
    "sum of reads": lambda t, x, y: jt.nn.sample_weighted(jt.texture2d(t), (x, y), x, axis=(0,)),
    "texels": lambda t, x, y: jt.fetch(jt.texture2d(t), (jnp.int32(7 * x), jnp.int32(6 * y))),
    "surface": lambda t, x, y: jt.surface_read(
        jt.texture2d(t), (jnp.int32(7 * x), jnp.int32(6 * y)), boundary_mode="zero"
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_without_an_option_have_the_same_bits_in_a_block(name, monkeypatch):
    gradient = lambda array, *xy: jax.grad(lambda a: (SUMS[name](a, *xy) ** 2).sum())(array)
    program = lambda: lowered_for_cuda(monkeypatch, lambda *a: gradient(*a), normal(6, 7, 2), *uniform(2, 9, 33))
    with jt.deterministic():
        asked = program()
    assert asked.count(launch.TARGET) == program().count(launch.TARGET) + 1  # one more kernel


ONE_PASS = {
    "a border color": (normal(6, 7, 4), {"address_mode": "border"}, {}),
    "halves": (normal(6, 7, 4).astype(np.float16), {}, {}),
    "srgb": (BYTES, {"read_mode": "normalized_float", "srgb": True}, {}),
    "a footprint": (
        normal(6, 7, 4),
        {"max_anisotropy": 8},
        {side: tuple(uniform(2, 9, 33)) for side in ("ddx", "ddy")},
    ),
}


@pytest.mark.parametrize(("name", "arithmetic"), [*zip(ONE_PASS, 2 * ("float", "hardware"))])
def test_a_gpu_reads_in_one_pass(name, arithmetic, monkeypatch):
    """Nothing of the size of the result happens beside the kernel."""
    texels, options, more = ONE_PASS[name]
    sampler = jt.Sampler(**options, arithmetic=arithmetic)
    color = np.float32(0.5) if name == "a border color" else None
    read = lambda texels, *xy: jt.sample(jt.texture2d(texels, border_color=color), xy, sampler, **more)
    text = lowered_for_cuda(monkeypatch, read, texels, *uniform(2, 9, 33))
    assert text.count(launch.TARGET) == 1
    result = f"tensor<9x33x{texels.shape[-1]}x"
    makers = [
        line for line in text.splitlines() if " = " in line and line.partition("->")[2].strip().startswith(result)
    ]
    assert all("call" in line for line in makers), makers


def test_slow_atomic_additions_are_warned_of(monkeypatch):
    """Where a jaxlib has them and XLA's scatter is used; the warning says what to do."""
    splat = lambda v, x: jt.splat(v, (x,), (2**8, 1100)).texels
    args = normal(50, 1100), uniform(50)
    monkeypatch.setattr(versions, "jaxlib_version", lambda version=None: (0, 11, 0))
    with pytest.warns(UserWarning, match="install jaxlib 0.11.1"):
        jax.jit(splat).trace(*args).lower(lowering_platforms=("cuda",))
    monkeypatch.setattr(versions, "jaxlib_version", lambda version=None: (0, 11, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda v, x: splat(v, x) + 0).trace(*args).lower(lowering_platforms=("cuda",))


@pytest.mark.parametrize("channels", [2, 5])
def test_operands_of_whole_sums(channels):
    """Threads that have all reads of a ray give the cotangents that lanes give together, also in batches."""
    volume, (start, end), values = normal(2, 5, 6, 7, channels), 9 * uniform(2, 2, 3, 9, 3), normal(2, 3, 9, channels)
    run = lambda v, s, e, g: (jt.rays.line_integral(v, s[:, :1], e, num_samples=21) * g).sum()
    gradients = jax.vmap(jax.grad(run, (0, 1, 2)))
    args = volume, start, end, values
    whole, sources = in_kernels(gradients, *args)
    assert any("typedef Row<float, 6> State;" in source for source in sources) == (channels < 5)
    for a, b in zip(whole, in_kernels(gradients, *args, least=2**40)[0]):
        assert_close("sum", a, b, 64)


def in_kernels(function, *args, least=1):
    """The results of a program of kernels, with threads that have whole sums, and the sources of these kernels."""
    with noted_kernels() as kernels, mock.patch.object(operand_sums, "LEAST_SUMS", least):
        found = jax.tree.map(np.asarray, jax.jit(lambda *args: function(*args))(*args))
    return found, [kernel.source for kernel in kernels]


RAYS = np.random.default_rng(5).uniform(-4, 15, (2, 3, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 131),
        pytest.param({"filter_mode": "cubic"}, 128, marks=pytest.mark.slow),
        pytest.param({"address_mode": "clamp"}, 129, marks=pytest.mark.slow),
    ],
)
def test_long_sums_tell_apart_where_taps_lie(options, count):
    """All inside, all outside, or on both sides of an edge: values, and the gradients of the ends; NaN is at 0."""
    volume, (start, end) = normal(9, 14, 11, 1), RAYS
    line = lambda v, s, e: jt.rays.line_integral(v, s, e, num_samples=count, sampler=jt.Sampler(**options))
    run = lambda *args: (line(*args), *jax.grad(lambda *args: (line(*args) ** 2).sum(), (1, 2))(*args))
    found, sources = in_kernels(run, volume, start, end)
    assert all("asks_inside = true" in source for source in sources)
    for a, b in zip(found, jax.jit(run)(volume, start, end), strict=True):
        assert_close("sum", a, b, 64)
    start = start.copy()
    start[0, 0] = [np.nan, 1, 1]
    (special,), _ = in_kernels(lambda *args: [line(*args)], volume, start, end)
    assert_close("sum", special, line(volume, start, end), 64)


def test_sums_share_the_starts_of_addresses():
    """Two images, heads of two parts each, and taps outside."""
    args = normal(2, 35, 2, 8), uniform(2, 6, 2, 1, 3, 2), normal(2, 6, 2, 1, 3)
    attend = lambda *args: [jt.nn.deformable_attention(args[0], ((5, 7),), *args[1:])]
    (found,), (source,) = in_kernels(attend, *args)
    assert "kept(arrays.texels" in source
    assert_close("sum", found, jax.jit(attend)(*args)[0], 64)


def test_cotangents_of_the_operands_of_a_fold():
    """One kernel finds the result again, and one all cotangents of operands: no sample is stored."""
    volume, (start, end) = abs(normal(9, 14, 11, 3)), RAYS
    options = {"num_samples": 150, "min_transmittance": 0.3, "spacing": np.float32(0.3)}
    seen = lambda s, e: jt.rays.composite(volume, s, e, **options)
    run = jax.grad(lambda s, e: (seen(s, e) ** 2).sum(), (0, 1))
    found, sources = in_kernels(run, start, end)
    names = [source.partition("__launch_bounds__")[2].partition("(const")[0].split()[-1] for source in sources]
    assert set(names) == {"texture_fold", "texture_pullback"}
    for a, b in zip(found, jax.jit(run)(start, end), strict=True):
        assert_close("sum", a, b, 64)


@pytest.mark.parametrize("channels", [1, 3])
def test_cotangents_of_the_texels_of_a_fold(channels):
    """Samples come in chunks, the first of which has fewer: their cotangents are stored, and added to the texels."""
    volume, (start, end) = abs(normal(9, 14, 11, channels)), RAYS
    seen = lambda v, s, e: jt.rays.composite(v, s, e, num_samples=44, min_transmittance=0.3, spacing=np.float32(0.3))
    run = jax.grad(lambda v, s, e: (seen(v, s, e) ** 2).sum(), (0, 1, 2))
    with mock.patch.object(fold_adjoint, "CHUNK_BYTES", 4 * channels * 15 * 20):
        found, sources = in_kernels(run, volume, start, end)
    names = [source.partition("__launch_bounds__")[2].partition("(const")[0].split()[-1] for source in sources]
    assert set(names) == {"texture_fold", "texture_pullback", "fused_samples", "texture_splat"}
    for a, b in zip(found, jax.jit(run)(volume, start, end), strict=True):
        assert_close("sum", a, b, 64)


def test_private_copies_are_bounded():
    """In number, in memory, and only where samples crowd."""
    for samples, side, channels in itertools.product((2**10, 2**16, 2**24), (1, 16, 64, 1024), (1, 4, 64)):
        copies = texel_sums.num_private_copies(samples, side * side, channels)
        assert copies & (copies - 1) == 0
        assert 1 <= copies <= texel_sums.MAX_COPIES
        if samples < texel_sums.CROWDED_SAMPLES * side * side:
            assert copies == 1
        memory = 4 * copies * side * side * channels
        assert copies == 1 or memory <= max(texel_sums.COPIES_BYTES, 0.05 * 4 * samples * channels)


def drawn(*shape, scale=1.0):
    return np.float32(scale * np.random.default_rng(sum(shape)).random(shape))


def by_both(function, *args):
    """What a function returns as XLA compiles it, and by kernels."""
    plain = jax.jit(function)(*args)
    with kernels_on_cpu():
        return plain, jax.jit(functools.partial(function))(*args)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_window_of_each_image(channels, monkeypatch):
    """One tile for each image, whose warp sets the gradient of the image to zero."""
    monkeypatch.setattr(crowds, "LEAST_OWN", 3)
    images, places = drawn(4, 11, 7, channels), (drawn(4, 1, 1, scale=7), drawn(4, 1, 2, scale=11)[..., :1])
    cotangent = drawn(4, 9, 9, channels)

    def gradients(*args):
        return jax.vjp(windows, *args)[1](cotangent)

    plain, found = by_both(gradients, images, *places)
    assert_trees_close("sum", found, plain, 81 * 4)


@pytest.mark.parametrize(
    ("address_mode", "shape"), [("border", (6, 7, 4, 2)), ("clamp", (6, 7, 4, 2)), ("clamp", (5, 7, 3, 1))]
)
def test_a_window_of_each_volume(address_mode, shape, monkeypatch):
    """A warp writes a volume of its own once, with its zeros; where taps outside fall on texels, it adds to zeros.

    It sets four numbers to zero at once where a volume has a multiple of them.
    """
    own = []
    monkeypatch.setattr(crowds, "LEAST_OWN", 3)
    monkeypatch.setattr(adjoint_kernel, "has_own_tile", lambda *args: own.append(crowds.has_own_tile(*args)) or own[-1])
    sampler = jt.Sampler(address_mode=address_mode, normalized_coords=False)
    near = np.ogrid[-4:1, -4:1, -4:1]

    def read(volume, point):
        return jt.sample(jt.texture3d(volume), tuple(p + np.float32(n) for p, n in zip(point, near)), sampler)

    def gradients(*args):
        return jax.vjp(jax.vmap(read), *args)[1](cotangent)

    volumes, points, cotangent = drawn(5, *shape), drawn(5, 3, scale=7), drawn(5, 5, 5, 5, shape[-1])
    plain, found = by_both(gradients, volumes, points)
    assert own
    assert all(own)
    assert_trees_close("sum", found, plain, 125 * 8)
