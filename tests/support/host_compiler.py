"""Compiles emitted statements as C++ for the CPU, and runs them for each element of arrays, as threads would."""

import ctypes
import functools
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from jaxtex._engine.cuda.build.source import scalars
from jaxtex._engine.cuda.trace.elementwise import C_TYPES
from jaxtex._engine.cuda.trace.emitter import Emitter

ZIG = [sys.executable, "-m", "ziglang", "c++", "-nostdlib++"]
# Zig would build a C++ library first, for most of a minute, and others would read its headers for a third of the time
# that a kernel takes. This is what is used of one: functions of floats.
WITHOUT_LIBRARY = """
#include <math.h>
#define OF_FLOAT(name) inline float name(float a) { return name##f(a); }
#define OF_FLOATS(name) inline float name(float a, float b) { return name##f(a, b); }

// The inverse of erf, which CUDA has and C has not: from a start that is right to two digits, by steps of Halley's.
inline double erfinv(double a) {
  if (!(fabs(a) < 1)) return fabs(a) == 1 ? a * HUGE_VAL : NAN;
  const double part = log((1 - a) * (1 + a)) / 2, sum = 2 / (M_PI * 0.147) + part;
  double x = copysign(sqrt(sqrt(sum * sum - 2 * part / 0.147) - sum), a);
  for (int k = 0; k < 4 && x != 0; k++) {
    const double error = x > 0.5 ? (1 - a) - erfc(x) : x < -0.5 ? erfc(-x) - (1 + a) : erf(x) - a;
    const double step = error * sqrt(M_PI) / 2 * exp(x * x);
    x -= step / (1 + x * step);
  }
  return x;
}
inline float erfinv(float a) { return float(erfinv(double(a))); }
"""
OF_FLOAT = "round rint fabs floor ceil sqrt cbrt exp exp2 log log2 sin cos tan asin acos atan sinh cosh tanh"
OF_FLOAT += " asinh acosh atanh expm1 log1p erf erfc lgamma"
OF_FLOATS = "pow atan2 nextafter"
# A sum of products is rounded twice, as the tests compile JAX's programs.
FLAGS = ["-nostdinc++", "-std=c++17", "-O0", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared"]
# Kernels have functions of one name, whose shared memory a process would otherwise have once for all of them.
FLAGS += ["-fvisibility=hidden"]
EXPORTED = 'extern "C" __attribute__((visibility("default")))'
# Rounded once where the compiler can, as NVRTC does.
CONTRACTING = ["-O1", "-ffp-contract=fast", *(["-mfma"] if platform.machine() == "x86_64" else [])]


@functools.cache
def compiler():
    """The command of a C++ compiler: the system's, or Zig's, which pip installs."""
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    assert importlib.util.find_spec("ziglang"), "install a C++ compiler, or the package ziglang"
    return ZIG


def can_contract():
    """Whether this CPU computes a product and a sum in one rounding."""
    cpu = Path("/proc/cpuinfo")
    return platform.machine() != "x86_64" or (cpu.exists() and " fma " in cpu.read_text())


@functools.cache
def compiled(source, contracting=False):
    """The functions of a source in C++."""
    of_float, of_floats = (
        map(f"{f}({{}})".format, names.split()) for f, names in (("OF_FLOAT", OF_FLOAT), ("OF_FLOATS", OF_FLOATS))
    )
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder) / "emitted.cpp", Path(folder) / "emitted.so"
        path.write_text("\n".join((WITHOUT_LIBRARY, *of_float, *of_floats, source)))
        done = subprocess.run(
            [*compiler(), *FLAGS, *(CONTRACTING if contracting else []), "-o", str(library), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[:4000]
        return ctypes.CDLL(str(library))


class Thread(NamedTuple):
    """The work of one thread.

    Attributes:
        function: maps a number of each array of `inputs`, each of shape (1,), to a tuple of arrays.
        inputs: arrays of one length, an element for each thread.
        memory: arrays that `load_row` reads, by name.
    """

    function: object
    inputs: tuple
    memory: dict = types.MappingProxyType({})


def run_threads(threads, contracting=False):
    """What each thread returns for each element. All are compiled as one source.

    Args:
        contracting: whether the compiler may round a product and the sum that it enters once.
    """
    sources = [source_of(f"run_{k}", thread) for k, thread in enumerate(threads)]
    library = compiled("\n".join([scalars(), *sources]), contracting)
    return [run(library[f"run_{k}"], thread) for k, thread in enumerate(threads)]


def parameters(thread):
    """Name and array of each parameter of a thread's function."""
    return [*((f"in_{k}", a) for k, a in enumerate(thread.inputs)), *thread.memory.items()]


def outputs(thread):
    one = [jax.ShapeDtypeStruct((1,), a.dtype) for a in thread.inputs]
    return jax.tree.leaves(jax.eval_shape(thread.function, *one))


def source_of(name, thread):
    emitter = Emitter()
    args = [(np.array([f"x{k}"], object), a.dtype) for k, a in enumerate(thread.inputs)]
    found = [np.ravel(names) for names in jax.tree.leaves(emitter.call(thread.function, *args))]
    declared = [f"const {C_TYPES[a.dtype.name]}* {parameter}" for parameter, a in parameters(thread)]
    declared += [f"{C_TYPES[out.dtype.name]}* out_{k}" for k, out in enumerate(outputs(thread))]
    loads = [f"const {C_TYPES[a.dtype.name]} x{k} = in_{k}[i];" for k, a in enumerate(thread.inputs)]
    stores = [
        f"out_{k}[i * {len(names)} + {n}] = {value};" for k, names in enumerate(found) for n, value in enumerate(names)
    ]
    body = "\n    ".join([*emitter.tables, *loads, *emitter.lines, *stores])
    head = f"{EXPORTED} void {name}(int n, {', '.join(declared)}) {{"
    return f"{head}\n  for (int i = 0; i < n; i++) {{\n    {body}\n  }}\n}}"


def run(function, thread):
    n = len(thread.inputs[0])
    out = [
        np.zeros((n, *(aval.shape[1:] if aval.shape[:1] == (1,) else aval.shape)), aval.dtype)
        for aval in outputs(thread)
    ]
    given = [np.ascontiguousarray(a) for _, a in parameters(thread)]
    function(n, *(a.ctypes.data_as(ctypes.c_void_p) for a in (*given, *out)))
    return out


# What a kernel needs on a CPU. Its thread and block are global variables, and XLA calls kernels from several threads.
ONE_AT_A_TIME = threading.Lock()
ON_CPU = (Path(__file__).parent / "on_cpu.h").read_text().removeprefix("#pragma once\n")
RUN = """
static void** arguments;
static void run_thread() {{
  {name}({arguments});
  done[threadIdx.x % 32] = true;
}}
static void run_warp(int first) {{
  for (int k = 0; k < 32; k++) {{
    getcontext(&contexts[k]);
    contexts[k].uc_stack.ss_sp = stacks[k], contexts[k].uc_stack.ss_size = sizeof(stacks[k]);
    contexts[k].uc_link = &schedule;
    makecontext(&contexts[k], run_thread, 0);
    done[k] = false, exchanges[k] = exchanges_of_group[k] = 0;
  }}
  for (bool some = true; some;) {{
    some = false;
    for (int k = 0; k < 32; k++) {{
      if (done[k]) continue;
      threadIdx.x = first + k;
      swapcontext(&schedule, &contexts[k]);
      some = some || !done[k];
    }}
  }}
}}
{exported} void run(int blocks, int threads, int together, void** arrays) {{
  arguments = arrays;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {{
    if (together) {{
      for (int first = 0; first < threads; first += 32) run_warp(first);
    }} else {{
      for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) run_thread();
    }}
  }}
}}
"""


def asks_lanes(source):
    """Whether lanes of a warp exchange numbers."""
    return ("any_lane" in source or "lane_xor(r" in source) and "bool in_lines = false" not in source


def fill(kernel, args, results, aliases):
    """The arrays that a kernel fills, as arrays of NumPy."""
    given = [np.ascontiguousarray(a) for a in args]
    out = [np.zeros(r.shape, r.dtype) for r in results]
    for argument, result in aliases.items():
        out[result][:] = given[argument]
    arrays = [*given, *out]
    arguments = ", ".join(f"({C_TYPES[a.dtype.name]}*)arguments[{k}]" for k, a in enumerate(arrays))
    run = RUN.format(name=kernel.name, arguments=arguments, exported=EXPORTED)
    library = compiled("\n".join((ON_CPU, kernel.source, run)))
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    with ONE_AT_A_TIME:
        library.run(kernel.num_blocks, kernel.num_threads, asks_lanes(kernel.source), pointers)
    return out
