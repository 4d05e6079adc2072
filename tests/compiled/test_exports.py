"""Exported programs: array operations that run anywhere without jaxtex, and kernels where the caller chooses them."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import exports
from jaxtex._engine.cuda.build import launch, nvrtc
from jaxtex._engine.cuda.build.nvrtc import CompilerUnavailable
from tests.support.arrays import normal, uniform
from tests.support.tolerances import assert_trees_close

LEAST = (8, 0)
# A process that has JAX and NumPy, and exported bytes, arguments and a cotangent in files.
ELSEWHERE = """
import sys
sys.modules["jaxtex"] = None  # whose import fails then
import jax, numpy as np
folder, names = sys.argv[1], sys.argv[2:]
given = np.load(folder + "/given.npz")
args, cotangent = [given[f"arg_{k}"] for k in range(len(given.files) - 1)], given["cotangent"]
for name in names:
    with open(folder + "/" + name, "rb") as file:
        exported = jax.export.deserialize(bytearray(file.read()))
    np.savez(folder + "/" + name, exported.call(*args), *exported.vjp().call(*args, cotangent))
assert not [name for name in sys.modules if name.split(".")[0] == "jaxtex" and sys.modules[name]]
print(jax.default_backend())
"""

ARGS = (normal(6, 7, 3), *uniform(2, 9, 8))


def plain(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y))


def bordered(texels, x, y):
    return jt.sample(jt.texture2d(texels, border_color=0.5), (x, y), jt.Sampler(address_mode=("wrap", "border")))


def on_hardware(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y), jt.Sampler(arithmetic="hardware", address_mode="mirror"))


def anisotropic(texels, x, y):
    chain = jt.build_mipmaps(jt.texture2d(texels))
    sampler = jt.Sampler(max_anisotropy=2, mipmap_filter_mode="linear")
    return jt.sample(chain, (x, y), sampler, ddx=(0.2, 0.1), ddy=(-0.1, 0.3))


def along_rays(texels, x, y):
    start, end = (6 * jax.numpy.stack(pair, -1) for pair in ((x, y), (y, x)))
    return jt.rays.composite(texels, start, end, num_samples=5)


def with_derivatives(texels, x, y):
    found = jt.sample_with_derivatives(jt.texture2d(texels), (x, y), order=2)
    return sum(found.gradient, found.value) + found.hessian[0][1]


def of_complex(texels, x, y):
    read = jt.sample(jt.texture2d(jax.lax.complex(texels, -texels)), (x, y))
    return read.real * read.imag


READS = (plain, bordered, on_hardware, anisotropic, along_rays, with_derivatives, of_complex)


def jitted(f):
    """Of a new function, of which JAX has lowered nothing."""
    return jax.jit(lambda *args: f(*args))


def value_and_gradients(f, args, cotangent, platform):
    """What this process computes on the first device of a platform."""

    @jax.jit
    def run(args, cotangent):
        value, pull = jax.vjp(f, *args)
        return value, *pull(cotangent)

    with jax.default_device(jax.devices(platform)[0]):
        return list(map(np.asarray, run(args, cotangent)))


def run_elsewhere(blobs, args, cotangent, folder, platform):
    """What another process without jaxtex computes: of each program, by its name, the value and the gradients."""
    for name, blob in blobs.items():
        (folder / name).write_bytes(blob)
    np.savez(folder / "given.npz", cotangent=cotangent, **{f"arg_{k}": a for k, a in enumerate(args)})
    platforms = {"gpu": "cuda,cpu"}.get(platform, platform)
    environment = {**os.environ, "JAX_PLATFORMS": platforms, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, "-c", ELSEWHERE, str(folder), *blobs]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == platform
    found = {}
    for name in blobs:
        with np.load(folder / f"{name}.npz") as results:
            found[name] = [results[f"arr_{k}"] for k in range(len(results.files))]
    return found


@pytest.fixture
def compiler(monkeypatch):
    """A compiler that needs no library; a list of the capabilities for which it compiles."""
    compiled = []
    monkeypatch.setattr(launch, "compile_to_ptx", lambda source, capability: compiled.append(capability) or "PTX")
    monkeypatch.setattr(launch, "has_ptx_call", lambda: True)
    monkeypatch.setattr(exports, "has_ptx_call", lambda: True)
    return compiled


@pytest.mark.slow
def test_exported_programs_run_without_jaxtex(tmp_path):
    """By default, for every platform, with their gradients; they hold no call that JAX gives no guarantee for."""
    blobs, cotangent = {}, normal(9, 8, 3)
    for f in READS:
        exported = jax.export.export(jitted(f), platforms=["cpu", "cuda", "tpu"])(*ARGS)
        assert launch.TARGET not in exported.mlir_module(), f.__name__
        blobs[f.__name__] = exported.serialize(vjp_order=1)
        assert launch.TARGET not in jax.export.deserialize(blobs[f.__name__]).vjp().mlir_module(), f.__name__
    expected = {f.__name__: value_and_gradients(f, ARGS, cotangent, "cpu") for f in READS}
    assert_trees_close("reordered", run_elsewhere(blobs, ARGS, cotangent, tmp_path, "cpu"), expected)


@pytest.mark.parametrize("f", READS)
def test_kernels_are_exported_by_choice(f, compiler):
    """With their gradients; JAX refuses them unless the caller passes on the check that need not be made."""
    with jt.kernels_in_exports(LEAST) as checks:
        exported = jax.export.export(jitted(f), platforms=["cuda"], disabled_checks=checks)(*ARGS)
        with pytest.raises(ValueError, match="Cannot serialize code with custom calls"):
            jax.export.export(jitted(f), platforms=["cuda"])(*ARGS)
        blob = exported.serialize(vjp_order=1)
    assert exported.mlir_module().count(f"@{launch.TARGET}(") == 1
    assert f"@{launch.TARGET}(" in jax.export.deserialize(blob).vjp().mlir_module()
    assert set(compiler) == {LEAST}


def test_a_program_for_several_platforms_has_kernels_for_one(compiler):
    """The rest of it runs as by default."""
    with jt.kernels_in_exports(LEAST) as checks:
        exported = jax.export.export(jitted(plain), platforms=["cpu", "cuda"], disabled_checks=checks)(*ARGS)
        blob = exported.serialize(vjp_order=1)
    assert exported.mlir_module().count(f"@{launch.TARGET}(") == 1
    cotangent, restored = normal(9, 8, 3), jax.export.deserialize(blob)
    if jax.default_backend() == "cpu":
        found = list(map(np.asarray, [restored.call(*ARGS), *restored.vjp().call(*ARGS, cotangent)]))
        assert_trees_close("reordered", found, value_and_gradients(plain, ARGS, cotangent, "cpu"))


def test_a_choice_holds_inside_its_context(compiler):
    """For the very function that was exported before, and not for what is serialized after."""
    f = jitted(plain)
    module = lambda *checks: jax.export.export(f, platforms=["cuda"], disabled_checks=checks)(*ARGS)
    assert launch.TARGET not in module().mlir_module()
    with jt.kernels_in_exports(LEAST) as checks:
        exported = module(*checks)
        assert launch.TARGET in exported.mlir_module()
        with jt.kernels_in_exports((9, 0)):
            module(*checks)
    assert launch.TARGET not in module().mlir_module()
    after = jax.export.deserialize(exported.serialize(vjp_order=1))
    assert launch.TARGET in after.mlir_module()
    assert launch.TARGET not in after.vjp().mlir_module()
    assert compiler == [LEAST, (9, 0)]


def test_a_choice_is_for_exports_alone(compiler, monkeypatch):
    """A program that runs here is compiled for the GPU that is here, also by the same function."""
    f = jitted(plain)
    lower = lambda: f.trace(*ARGS).lower(lowering_platforms=("cuda",)).as_text()
    monkeypatch.setattr(launch, "local_capability", lambda: (9, 0))
    with jt.kernels_in_exports(LEAST) as checks:
        jax.export.export(f, platforms=["cuda"], disabled_checks=checks)(*ARGS)
        assert launch.TARGET in lower()
        monkeypatch.setattr(launch, "local_capability", lambda: None)
        assert launch.TARGET not in jitted(plain).trace(*ARGS).lower(lowering_platforms=("cuda",)).as_text()
    assert compiler == [LEAST, (9, 0)]


def test_what_kernels_cannot_do_is_exported_as_arrays(compiler):
    """Sizes that are not known, and programs of several devices; both without a warning."""
    with jt.kernels_in_exports(LEAST):
        (n,) = jax.export.symbolic_shape("n")
        stack, x = (jax.ShapeDtypeStruct((n, *a.shape), np.float32) for a in ARGS[:2])
        exported = jax.export.export(jitted(jax.vmap(plain)), platforms=["cpu", "cuda"])(stack, x, x)
        stacks = [np.stack([a] * 5) for a in ARGS]
        assert exported.call(*stacks).shape == (5, 9, 8, 3)
        if jax.device_count() > 1:
            mesh = jax.make_mesh((2,), ("b",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
            split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("b"))
            several = jax.jit(lambda *args: plain(*args), in_shardings=(None, split, split))
            exported = jax.export.export(several, platforms=["cuda"])(ARGS[0], *uniform(2, 8, 9))
            assert exported.nr_devices == 2
    assert not compiler


def test_an_export_without_a_capability_needs_a_gpu(monkeypatch):
    monkeypatch.setattr(exports, "local_capability", lambda: None)
    message = r"^kernels_in_exports: .*sees no NVIDIA GPU.*such as \(8, 0\)"
    with pytest.raises(ValueError, match=message), jt.kernels_in_exports():
        pass


def test_the_gpu_of_this_process_is_the_default(compiler, monkeypatch):
    monkeypatch.setattr(exports, "local_capability", lambda: (8, 9))
    with jt.kernels_in_exports() as checks:
        jax.export.export(jitted(plain), platforms=["cuda"], disabled_checks=checks)(*ARGS)
    with jt.kernels_in_exports(np.array([10, 0])) as checks:
        jax.export.export(jitted(plain), platforms=["cuda"], disabled_checks=checks)(*ARGS)
    assert compiler == [(8, 9), (10, 0)]


def test_a_jaxlib_that_may_lack_the_call_exports_no_kernels(monkeypatch):
    monkeypatch.setattr(exports, "has_ptx_call", lambda: False)
    with pytest.raises(RuntimeError, match="not known to have the custom call"), jt.kernels_in_exports(LEAST):
        pass


def test_nvrtc_compiles_what_is_exported():
    try:
        nvrtc.library()
    except CompilerUnavailable as error:
        pytest.skip(str(error))
    with jt.kernels_in_exports(LEAST) as checks:
        exported = jax.export.export(jitted(plain), platforms=["cuda"], disabled_checks=checks)(*ARGS)
    assert ".target sm_80" in exported.mlir_module()


@pytest.mark.gpu
@pytest.mark.parametrize("f", READS)
def test_a_gpu_runs_exported_kernels_without_jaxtex(f, tmp_path):
    """Also those for the oldest GPU that there are kernels for."""
    cotangent = normal(9, 8, 3)
    for capability in (None, LEAST):
        with jt.kernels_in_exports(capability) as checks:
            exported = jax.export.export(jitted(f), platforms=["cpu", "cuda"], disabled_checks=checks)(*ARGS)
            blob = exported.serialize(vjp_order=1)
        assert launch.TARGET in exported.mlir_module()
        for platform in ("gpu", "cpu"):
            found = run_elsewhere({"program": blob}, ARGS, cotangent, tmp_path, platform)["program"]
            assert_trees_close("reordered", found, value_and_gradients(f, ARGS, cotangent, platform))
