"""`python -m benchmarks.kernels`: programs around reads as one kernel each, and all their gradients.

Beside `jaxtex.fused_map` stand the same function of a bound texture, the function by `jax.vmap`, a CUDA kernel with
texture objects, a kernel that Dr.Jit traces, kernels of NVIDIA Warp, and a function that `torch.compile` compiles.
Every result is compared with that of `jax.vmap`, or of `fused_map` if it is left out.
"""

import re
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt

from ..peers.protocol import Run
from ..report import Results, parser
from ..timing import side_by_side
from .programs import PROGRAMS, Program
from .with_cuda import cuda
from .with_drjit import drjit
from .with_torch import compiled
from .with_warp import warp

# How far a result may be from what is meant, as a share of its norm. A texture unit blends with 8 bits.
TOLERANCES = {
    "CUDA": 2e-2,
    "Dr.Jit": 2e-2,
    "Warp": 2e-2,
    "torch.compile": 2e-3,
    "fused": 2e-3,
    "bound": 2e-2,
    "library": 2e-3,
}


def jaxtex_run(function: Callable[..., Any], *args: Any) -> Run:
    compiled = jax.jit(function)
    return Run(lambda: compiled(*args))


def runs_of(name: str, program: Program, gradients: bool) -> dict[str, Run]:
    """The program by all who can run it; `jax.vmap` comes last."""
    args = [jax.device_put(a) for a in program.args]
    ways: dict[str, Callable[..., Any]] = {"fused": program.fused}
    if program.library:
        ways["library"] = program.library
    ways["arrays"] = program.by_arrays
    if gradients:
        ones = jax.tree.map(lambda a: jnp.ones(a.shape, a.dtype), jax.eval_shape(program.fused, *args))
        ways = {way: program.gradients(run) for way, run in ways.items()}
        args = [ones, *args]
    runs = {way: jaxtex_run(run, *args) for way, run in ways.items()}
    if program.bound and not gradients:
        texture = jt.unit.bind(jt.texture2d(args[0]), program.bound)
        runs = {"bound": jaxtex_run(program.fused, texture, *args[1:]), **runs}
    others = {
        "CUDA": None if gradients else cuda(name, program),
        "Dr.Jit": drjit(name, program, gradients),
        "Warp": warp(name, program, gradients),
        "torch.compile": compiled(name, program, gradients),
    }
    return {**{peer: run for peer, run in others.items() if run}, **runs}


def difference(found: Any, expected: Any) -> float:
    """The norm of the difference of results, relative to the norm of what is meant: the largest of all arrays.

    A few samples may differ by more than rounding: a ray that ends one step earlier, a slope at a texel's center.
    """
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    norm = lambda a: float(np.linalg.norm(np.ravel(a)))
    wide = lambda a: np.asarray(a, np.float64)
    return max(norm(wide(a) - wide(b)) / max(norm(wide(b)), 1e-30) for a, b in pairs)


def row(title: str, name: str, program: Program, gradients: bool, options: Any, results: Results) -> None:
    runs = {way: run for way, run in runs_of(name, program, gradients).items() if re.search(options.ways, way)}
    first, found, problems = {}, {}, {}
    for way, run in runs.items():
        begun = time.perf_counter()
        try:
            found[way] = run.wait(run.start())
        except Exception as error:  # each library raises its own
            problems[way] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        first[way] = time.perf_counter() - begun
    meant = next(way for way in ("arrays", "fused") if way in found)
    apart = {way: difference(runs[way].arrays(found[way]), found[meant]) for way in found if way != meant}
    for way, far in apart.items():
        if far > TOLERANCES[way]:
            problems[way] = f"differs by {far:.1e} of the norm"
    ms = side_by_side({way: (runs[way].start, runs[way].wait) for way in found}, options.seconds, title)
    results.add(title, milliseconds=ms, first_call_seconds=first, difference=apart, problems=problems)
    cells = [f"{way} {each:.3f} ms (first {first[way]:.2f} s)" for way, each in ms.items()]
    print(f"{title:48s} {', '.join(cells)}", flush=True)
    for way, problem in problems.items():
        print(f"    {way}: {problem}", flush=True)


def main() -> int:
    arguments = parser("benchmarks.kernels", __doc__, 1.0)
    arguments.add_argument("--size", type=int, help="texels along a side (default 2048 on a GPU, else 32)")
    arguments.add_argument(
        "--ways",
        default="",
        help="a regular expression: fused, bound, arrays, library, CUDA, Dr.Jit, Warp, torch.compile",
    )
    arguments.add_argument("--values", action="store_true", help="no gradients")
    options = arguments.parse_args()
    size = options.size or (2048 if jax.default_backend() == "gpu" else 32)
    results = Results(options, size=size)
    for title, make in PROGRAMS.items():
        if not re.search(options.only, title):
            continue
        program = make(size)
        row(title, make.__name__, program, False, options, results)
        if program.wrt and not options.values:
            row(f"{title}: gradients", make.__name__, program, True, options, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
