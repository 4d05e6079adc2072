"""What a process loads: the packages and modules behind `import jaxtex`, and behind a first call on a CPU."""

import json
import os
import subprocess
import sys

import pytest

# On top of `import jax`, `import jaxtex` loads only these packages and Python's own, without the modules below.
IMPORTED = ("jaxtex", "jax", "jaxlib", "ml_dtypes", "numpy")
NOT_IMPORTED = ("jax.experimental.pallas", "jaxtex.cli", "jaxtex.cuda", "jaxtex.layers")
# What a program of one CPU never runs.
KERNELS = ("jaxtex._engine.cuda", "jaxtex._engine.forms.gpu_kernels")
SHARDED = ("jaxtex._engine.sharded", "jaxtex.sharded")
# The modules of jaxtex behind a first `jaxtex.sample`, packages included.
MOST_MODULES = 74
MAKE_TEXTURE = "import numpy; texture = jaxtex.texture2d(numpy.ones((4, 4, 1), numpy.float32))"
CALLS = {
    "sample": "jaxtex.sample(texture, (0.5, 0.5))",
    "a gradient": "jax.grad(lambda x: jaxtex.sample(texture, (x, 0.5))[0])(0.4)",
    "a surface": "jaxtex.surface_write(texture, 1.0, (0, 1))",
    "mipmaps": "jaxtex.build_mipmaps(texture)",
    "a spline filter": "jaxtex.spline_filter(texture, jaxtex.Sampler(filter_mode='bspline'))",
    "a texture unit": "jaxtex.sample(texture, (0.5, 0.5), jaxtex.Sampler(arithmetic='hardware'))",
    "a warp": "jaxtex.warp.rotate(texture.texels, 20.0)",
    "ndimage": "jaxtex.ndimage.shift(texture.texels[..., 0], 0.5)",
    "a model": "jaxtex.nn.correlation_pyramid(texture.texels[None], texture.texels[None], 2)",
}
# Modules that a call may load while JAX traces it.
LATE = (*KERNELS, *SHARDED, "jaxtex._engine.sharded.read", "jaxtex._engine.sharded.write")
LATE += ("jaxtex._engine.sharded.access", "jaxtex._engine.forms.gpu_adjoint", "jaxtex._hardware")


def printed_by(statements, result, after=""):
    """What a process of its own prints of `result`, in JSON, after some statements."""
    program = "; ".join(filter(None, ("import json, sys, jax", statements, f"print(json.dumps({result}))", after)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def imported_by(statement):
    """The modules that a process of its own loads for `statement` after `import jax`. It fails if a backend starts."""
    # JAX refuses to set the number of CPU devices once a backend has started.
    of_devices = "jax.config.update('jax_num_cpu_devices', 2)"
    return printed_by(f"before = {{*sys.modules}}; {statement}", "sorted({*sys.modules} - before)", of_devices)


def among(modules, rooms):
    """The modules of some rooms."""
    return [name for name in modules if any(name == room or name.startswith(f"{room}.") for room in rooms)]


def test_import_loads_no_other_package_and_starts_no_backend():
    modules = imported_by("import jaxtex; jaxtex.sample")
    assert "jaxtex" in modules
    assert not [name for name in modules if name.split(".")[0] not in {*IMPORTED, *sys.stdlib_module_names}]
    assert not among(modules, NOT_IMPORTED)


def test_a_started_backend_is_found():
    with pytest.raises(AssertionError, match="before backends are initialized"):
        imported_by("jax.devices()")


def test_a_first_sample_on_a_cpu_loads_what_it_runs():
    loaded = printed_by(f"import jaxtex; {MAKE_TEXTURE}; {CALLS['sample']}", "sorted(sys.modules)")
    modules = [name for name in loaded if name.split(".")[0] == "jaxtex"]
    assert "jaxtex.sampling" in modules
    assert not among(modules, (*KERNELS, *SHARDED, "jaxtex._hardware"))
    assert len(modules) <= MOST_MODULES


def test_no_call_on_one_cpu_loads_kernels_or_what_sharded_textures_need():
    statements = "; ".join(("import jaxtex", MAKE_TEXTURE, *CALLS.values()))
    modules = printed_by(statements, "sorted(sys.modules)")
    assert "jaxtex._hardware.read" in modules
    assert not among(modules, (*KERNELS, *SHARDED))


def test_late_modules_start_no_backend_and_make_jax_trace_nothing_again():
    """They may be loaded while JAX traces, where an array would be a tracer."""
    assert not among(imported_by("import jaxtex; jaxtex.sample"), LATE)
    late = f"import importlib; [importlib.import_module(name) for name in {LATE}]"
    imported_by(f"import jaxtex; jaxtex.sample; {late}")
    times = "times = []; f = jax.jit(lambda x: times.append(0) or x); f(0)"
    assert printed_by(f"import jaxtex; jaxtex.texture2d; {times}; jaxtex.sample; {late}; f(0)", "len(times)") == 1
