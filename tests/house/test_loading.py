"""What a process loads: the packages and modules behind `import jaxtex`, and behind a first call on a CPU."""

import json
import os
import subprocess
import sys

# On top of `import jax`, `import jaxtex` loads only these packages and Python's own, without the modules below.
IMPORTED = ("jaxtex", "jax", "jaxlib", "ml_dtypes", "numpy")
NOT_IMPORTED = ("jax.experimental.pallas", "jaxtex.cli", "jaxtex.cuda", "jaxtex.layers")
# What a program of one CPU never runs.
KERNELS = ("jaxtex._engine.cuda", "jaxtex._engine.forms.gpu_kernels")
SHARDED = ("jaxtex._engine.sharded", "jaxtex.sharded")
# The modules of jaxtex behind a first `jaxtex.sample`, packages included.
MOST_MODULES = 74
MAKE_TEXTURE = "import numpy; texture = jaxtex.texture2d(numpy.ones((4, 4, 1), numpy.float32))"
# Calls with texels and a coordinate, which are traced and lowered.
CALLS = (
    "jaxtex.sample(texture, (x, 0.5))",
    "jax.grad(lambda x: jaxtex.sample(texture, (x, 0.5))[0])(x)",
    "jaxtex.surface_write(texture, 1.0, (0, 1))",
    "jaxtex.build_mipmaps(texture)",
    "jaxtex.spline_filter(texture, jaxtex.Sampler(filter_mode='bspline'))",
    "jaxtex.sample(texture, (x, 0.5), jaxtex.Sampler(arithmetic='hardware'))",
    "jaxtex.warp.rotate(texture.texels, angle=0.3)",
    "jaxtex.ndimage.shift(texture.texels[..., 0], 0.5)",
    "jaxtex.nn.correlation_pyramid(texture.texels[None], texture.texels[None], 2)",
)
# Modules that a call may load while JAX traces it.
LATE = (*KERNELS, *SHARDED, "jaxtex._engine.sharded.read", "jaxtex._engine.sharded.write")
LATE += ("jaxtex._engine.sharded.access", "jaxtex._engine.forms.gpu_adjoint", "jaxtex._hardware")

LOAD_LATE = f"import importlib; [importlib.import_module(name) for name in {LATE}]"


def printed_by(*statements):
    """What a process of its own leaves in `found`, after `import jax`."""
    program = "; ".join(("import json, sys, jax", "found = {}", *statements, "print(json.dumps(found))"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def among(modules, rooms):
    return [name for name in modules if any(name == room or name.startswith(f"{room}.") for room in rooms)]


def test_imports_load_no_other_package_and_start_no_backend():
    """Late modules, too: they may be loaded while JAX traces, where an array would be a tracer."""
    # JAX refuses to set the number of CPU devices once a backend has started.
    of_devices = "jax.config.update('jax_num_cpu_devices', 2)"
    sample = "before = {*sys.modules}; import jaxtex; jaxtex.sample; found['new'] = sorted({*sys.modules} - before)"
    modules = printed_by(sample, LOAD_LATE, of_devices)["new"]
    assert "jaxtex" in modules
    assert not [name for name in modules if name.split(".")[0] not in {*IMPORTED, *sys.stdlib_module_names}]
    assert not among(modules, (*NOT_IMPORTED, *LATE))


def test_calls_on_one_cpu_load_what_they_run_and_late_modules_make_jax_trace_nothing_again():
    loaded = "found[{!r}] = sorted(name for name in sys.modules if name.split('.')[0] == 'jaxtex')".format
    first, *others = (f"jax.jit(lambda texture, x: {call}).lower(texture, 0.4)" for call in CALLS)
    times = "times = []; f = jax.jit(lambda x: times.append(0) or x); f(0)"
    again = f"{times}; {LOAD_LATE}; f(0); found['times'] = len(times)"
    found = printed_by("import jaxtex", MAKE_TEXTURE, first, loaded("first"), *others, loaded("all"), again)
    assert "jaxtex.sampling" in found["first"]
    assert not among(found["first"], (*KERNELS, *SHARDED, "jaxtex._hardware"))
    assert len(found["first"]) <= MOST_MODULES
    assert "jaxtex._hardware.read" in found["all"]
    assert not among(found["all"], (*KERNELS, *SHARDED))
    assert found["times"] == 1
