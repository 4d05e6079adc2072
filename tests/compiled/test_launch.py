"""How kernels become part of a program: for which GPUs they are compiled, who launches them, and what if nobody can."""

import os
import threading
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.cuda.build import launch, nvrtc
from jaxtex._engine.cuda.build.launch import Kernel
from jaxtex._engine.cuda.build.nvrtc import CompilationFailed, CompilerUnavailable
from jaxtex._engine.forms import choice
from jaxtex._jax import versions
from tests.support.tolerances import assert_exact

# Adds two arrays and counts what it has added, in a result that is an argument as well.
SOURCE = """
extern "C" __global__ void add(const float* a, const float* b, const int* before, float* out, int* after) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  out[k] = a[k] + b[k];
  atomicAdd(after, 1);
}
"""
KERNEL = Kernel(SOURCE, "add", 4, 64)
LAUNCH = launch.run
LAUNCHES = {"xla": launch.launch_by_xla, "triton": launch.launch_by_triton}
ARGS = np.arange(256, dtype=np.float32), np.full(256, 0.5, np.float32), np.int32(7)
RESULTS = [jax.ShapeDtypeStruct((256,), np.float32), jax.ShapeDtypeStruct((), np.int32)]


def read(texels, x):
    return jt.sample(jt.texture1d(texels), (x,))


def read_args(width=5):
    return np.ones((width, 2), np.float32), np.linspace(0, 1, 9, dtype=np.float32)


def for_cuda(f, *args):
    """The text of a new program."""
    return jax.jit(lambda *args: f(*args)).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


class FakeTriton:
    """What jaxlib's module has with a plugin for CUDA; a launch is its arguments in text."""

    create_array_parameter = staticmethod(lambda num_zeros, alignment: (num_zeros, alignment))
    TritonKernel = staticmethod(lambda *args: args)

    class TritonKernelCall:
        def __init__(self, *args):
            self.args = args

        def to_proto(self, name, metadata):
            return repr((name, metadata, self.args)).encode()


@pytest.fixture
def gpu(monkeypatch):
    """A process that sees a GPU and has a compiler; a list of the capabilities for which it compiles."""
    compiled = []
    monkeypatch.setattr(launch, "local_capability", lambda: (9, 0))
    monkeypatch.setattr(launch, "compile_to_ptx", lambda source, capability: compiled.append(capability) or "PTX")
    return compiled


def test_xla_launches_on_the_installed_jax(gpu):
    text = for_cuda(read, *read_args())
    assert text.count(f"@{launch.TARGET}(") == 1
    assert launch.TRITON_TARGET not in text
    assert 'kernel_data = "PTX"' in text
    assert gpu == [(9, 0)]


@pytest.mark.parametrize(("version", "known"), [("0.10.2", True), ("0.12.0.1", True), ("0.13.0.dev20270101", False)])
def test_a_newer_xla_is_not_known_to_launch(version, known, monkeypatch):
    monkeypatch.setattr(versions.importlib.metadata, "version", lambda name: version)
    assert versions.has_ptx_call() is known


def test_jaxlib_launches_where_xla_is_not_known_to(gpu, monkeypatch):
    monkeypatch.setattr(launch, "has_ptx_call", lambda: False)
    monkeypatch.setattr(launch, "triton_launcher", lambda: FakeTriton)
    text = for_cuda(read, *read_args())
    assert text.count(f"@{launch.TRITON_TARGET}(") == 1
    assert launch.TARGET not in text


def test_what_jaxlib_launches(gpu, monkeypatch):
    """The kernel in warps, for this capability; aligned arrays of arguments and results; nothing to set to zero."""
    monkeypatch.setattr(launch, "triton_launcher", lambda: FakeTriton)
    protos = []
    monkeypatch.setattr(launch.zlib, "compress", lambda proto: protos.append(proto.decode()) or proto)
    monkeypatch.setattr(launch, "chosen_launch", lambda: launch.launch_by_triton)
    run = lambda *args: launch.run(KERNEL, args, RESULTS, {2: 1})
    text = for_cuda(run, *ARGS)
    assert "output_tuple_indices = [1], operand_index = 2" in text
    image = ("add", 2, 1, 0, "PTX", "", 90)
    assert protos == [repr(("add", b"", (image, 4, 1, 1, [(0, 16)] * 5)))]
    odd = Kernel(SOURCE, "add", 1, 48)
    with pytest.raises(CompilerUnavailable, match="48 threads"):
        launch.run(odd, ARGS, RESULTS, {})


def test_the_kernels_of_a_program_are_compiled_at_the_same_time(gpu, monkeypatch):
    """Also those in a branch and in a loop; each is traced once, and its errors are met by its own equation."""
    together, traced = threading.Barrier(4, timeout=20), []

    def compile_to_ptx(source, capability):
        together.wait()
        if "texture_splat" in source:
            raise CompilationFailed("not this one")
        return "PTX"

    run = lambda kernel, *args: traced.append(kernel.name) or LAUNCH(kernel, *args)
    monkeypatch.setattr(launch, "compile_to_ptx", compile_to_ptx)
    monkeypatch.setattr(launch, "run", run)

    def f(texels, x):
        gradient = jax.grad(lambda texels: read(texels, x).sum())(texels)
        several = jax.lax.cond(x[0] > 0, lambda: read(texels, x[:5]), lambda: read(texels, x[3:8]))
        return gradient, read(texels, x), several, jax.lax.map(lambda x: read(texels, x[None]), x)

    with pytest.warns(UserWarning, match="not this one"):
        text = for_cuda(f, *read_args())
    assert text.count(f"@{launch.TARGET}(") == 4
    assert sorted(traced) == [*["texture_read"] * 3, "texture_splat"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_gpu_runs_what_is_launched(name, monkeypatch):
    monkeypatch.setattr(launch, "chosen_launch", lambda: LAUNCHES[name])
    run = lambda *args: launch.run(KERNEL, args, RESULTS, {2: 1})
    total, count = jax.jit(run)(*ARGS)
    assert_exact(total, ARGS[0] + ARGS[1])
    assert int(count) == 7 + 256

    def step(carry, _):
        return tuple(run(carry[0], ARGS[1], carry[1])), None

    (total, count), _ = jax.jit(lambda *args: jax.lax.scan(step, args, length=3))(ARGS[0], ARGS[2])
    assert_exact(total, ARGS[0] + 3 * ARGS[1])
    assert int(count) == 7 + 3 * 256


# Where kernels cannot be had


def no_launcher(monkeypatch):
    monkeypatch.setattr(launch, "has_ptx_call", lambda: False)
    monkeypatch.setattr(launch, "triton_launcher", lambda: None)


def no_compiler(monkeypatch):
    monkeypatch.setattr(launch, "compile_to_ptx", nvrtc.compile_to_ptx)
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter(()))


def old_compiler(monkeypatch):
    monkeypatch.setattr(launch, "compile_to_ptx", nvrtc.compile_to_ptx)
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter(["older", "oldest"]))
    monkeypatch.setattr(nvrtc.ctypes, "PyDLL", lambda name: name)
    monkeypatch.setattr(nvrtc, "version_of", lambda found: (11, 8) if found == "older" else (10, 2))


def refusing_compiler(monkeypatch):
    def refuse(source, capability):
        raise CompilationFailed("NVRTC 12.9 refuses a kernel: a line of its log")

    monkeypatch.setattr(launch, "compile_to_ptx", refuse)


REASONS = {
    no_launcher: "this jaxlib is not known to launch PTX; install a jaxlib",
    no_compiler: r"NVRTC is missing; install jax\[cuda12\] or jax\[cuda13\], or the CUDA toolkit",
    old_compiler: r"NVRTC 11.8 is too old, kernels need 12.1 or newer; install jax\[cuda12\]",
    refusing_compiler: "NVRTC 12.9 refuses a kernel: a line of its log",
}


@pytest.fixture
def no_library():
    nvrtc.library.cache_clear()
    nvrtc.compile_to_ptx.cache_clear()
    yield
    nvrtc.library.cache_clear()
    nvrtc.compile_to_ptx.cache_clear()


@pytest.mark.parametrize("fault", REASONS)
def test_arrays_take_the_place_of_kernels_and_one_warning_says_why(fault, gpu, no_library, monkeypatch):
    """With Python's own filter, one for each reason in a process: of several programs, shapes and primitives."""
    fault(monkeypatch)
    gradient = jax.grad(lambda *args: read(*args).sum())
    monkeypatch.delitem(vars(choice), "__warningregistry__", raising=False)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for width in (5, 6):
            for f in (read, gradient):
                text = for_cuda(f, *read_args(width))
                assert launch.TARGET not in text
                assert launch.TRITON_TARGET not in text
    (one,) = [warning for warning in shown if "XLA's forms" in str(warning.message)]
    with pytest.raises(UserWarning, match=REASONS[fault]):
        raise one.message


# What NVRTC compiles for


class FakeLibrary:
    def __init__(self, version, architectures):
        self.version, self.architectures = version, architectures

    def nvrtcVersion(self, major, minor):
        major._obj.value, minor._obj.value = self.version

    def nvrtcGetNumSupportedArchs(self, count):
        count._obj.value = len(self.architectures)

    def nvrtcGetSupportedArchs(self, numbers):
        numbers[:] = self.architectures


def test_an_architecture_that_nvrtc_does_not_know_is_the_newest_before_it(monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: FakeLibrary((12, 9), [75, 80, 86, 90, 100, 121]))
    asked = {(8, 0): (8, 0), (8, 9): (8, 6), (9, 0): (9, 0), (10, 3): (10, 0), (99, 0): (12, 1)}
    assert {capability: nvrtc.known_below(capability) for capability in asked} == asked
    with pytest.raises(CompilerUnavailable, match=r"NVRTC 12.9 does not compile for compute capability 7.0"):
        nvrtc.known_below((7, 0))


def test_ptx_is_kept_where_jax_keeps_programs_or_in_the_cache_folder(no_library, monkeypatch, tmp_path):
    """One file for each source, compiler and GPU; a file that cannot be read or written is as good as none."""
    compiled = []
    monkeypatch.setenv("XDG_CACHE_HOME", "no/absolute/path")
    monkeypatch.setattr(nvrtc, "compiled", lambda source, _: compiled.append(source) or f".version 9.9\n{source}")

    def compile_anew(source, capability=(9, 0), version=(12, 9)):
        monkeypatch.setattr(nvrtc, "library", lambda: FakeLibrary(version, [80, 90]))
        nvrtc.compile_to_ptx.cache_clear()  # as in another process
        return nvrtc.compile_to_ptx(source, capability)

    def keep_in(folder):
        monkeypatch.setattr(nvrtc, "folder_of_programs", lambda: folder and str(folder))

    keep_in(folder := tmp_path / "programs")
    assert compile_anew("a") == compile_anew("a") == ".version 7.8\na"
    assert compile_anew("b") != compile_anew("b", (8, 0)) == compile_anew("b", (8, 0))
    compile_anew("a", version=(13, 0))
    assert compiled == ["a", "b", "b", "a"]
    files = list(folder.iterdir())
    assert len(files) == 4
    for other in ("gs://bucket/programs", None, files[0]):
        keep_in(other)
        assert compile_anew("a") == ".version 7.8\na"
    assert compiled == ["a", "b", "b", "a", *"aaa"]
    assert len(list(tmp_path.rglob("*"))) == 5
    # Without a folder of JAX's: in the user's cache folder, of a size that has a bound, or not at all.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(nvrtc, "keeps_programs", lambda: True)
    keep_in(None)
    assert compile_anew("c") == compile_anew("c") == ".version 7.8\nc"
    (file,) = (tmp_path / "cache" / "jaxtex" / "kernels").iterdir()
    os.utime(file, (1e9, 1e9))
    other = file.with_name("of_others")
    other.write_bytes(bytes(100))
    monkeypatch.setattr(nvrtc, "MOST_BYTES", 20)
    assert compile_anew("d") == ".version 7.8\nd"
    assert compile_anew("c") == ".version 7.8\nc"
    monkeypatch.setattr(nvrtc, "keeps_programs", lambda: False)
    compile_anew("c")
    assert compiled[7:] == ["c", "d", "c", "c"]
    assert other.exists()


def test_nvrtc_compiles_for_a_gpu_that_is_newer_than_it():
    try:
        newest = max(nvrtc.known_capabilities())
    except CompilerUnavailable as error:
        pytest.skip(str(error))
    assert nvrtc.version_of(nvrtc.library()) >= nvrtc.LEAST_VERSION
    ptx = nvrtc.compile_to_ptx(SOURCE, (99, 0))
    assert ptx == nvrtc.compile_to_ptx(SOURCE, newest)
    assert ".target sm_{}{}\n".format(*newest) in ptx
    with pytest.raises(CompilationFailed, match=r"NVRTC \d+\.\d+ refuses a kernel: kernel\.cu"):
        nvrtc.compile_to_ptx("nonsense", (99, 0))


@pytest.mark.parametrize(
    ("capabilities", "least"),
    [(("9.0", "8.6", "12.0"), (8, 6)), (("10.0", "9.0"), (9, 0)), (("gfx942",), None), (("9.0", "gfx942"), None)],
)
def test_kernels_are_compiled_for_the_least_gpu_of_a_process(capabilities, least, monkeypatch):
    devices = [types.SimpleNamespace(compute_capability=c) for c in capabilities]
    monkeypatch.setattr(jax, "local_devices", lambda backend: devices)
    assert launch.local_capability() == least
    assert launch.target_capability() == least


def test_kernels_need_a_gpu_that_is_seen(monkeypatch):
    def none(backend):
        raise RuntimeError("no gpu")

    monkeypatch.setattr(jax, "local_devices", none)
    assert launch.local_capability() is None
    with pytest.raises(CompilerUnavailable, match="sees no NVIDIA GPU"):
        launch.run(KERNEL, [jnp.asarray(a) for a in ARGS], RESULTS, {})
