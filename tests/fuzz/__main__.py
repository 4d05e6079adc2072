"""`python -m tests.fuzz`: random calls of the public interface, by kernels and by the operations on arrays of a CPU.

On a GPU (`--kernels gpu`) a call runs there and on the CPU; without one (`--kernels host`), the sources of the kernels
are compiled as C++. Each call is compared in its value and its gradients or its tangent. A seed draws a kind of call,
and then a call of it; `--calls sample`, or another kind, draws calls of this kind alone, and a new kind changes none.

`--what cli` draws command lines (`cli.py`), and `--what surfaces` and the like accesses of single texels, copies,
descriptors and gradients (`memory.py`), which are compared with oracles.
"""

import argparse
import contextlib
import math
import os
import subprocess
import sys
import time
import traceback
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz import functions, knots, memory, rays, reads, sums, warps
from tests.fuzz.cases import SUMS, case_of, seeds_for
from tests.fuzz.draws import naming, pick
from tests.support import compiling
from tests.support.tolerances import TOLERANCES

CHILD = "JAXTEX_FUZZ"
PROGRESS = 25
# The kinds of calls: what draws one, and how often.
KINDS = {"sample": (reads.draw_read, 6), "limit": (reads.draw_limited, 1), "key": (reads.draw_drawn, 1)}
KINDS |= {"derivatives": (reads.draw_derivatives, 2), "complex": (reads.draw_complex, 2)}
KINDS |= {"gather": (reads.draw_gather, 1), "lagrange": (knots.draw_lagrange, 1), "knots": (knots.draw_knots, 3)}
KINDS |= {"splat": (sums.draw_splat, 2), "sample_weighted": (sums.draw_sum, 3), "warp": (warps.draw_warp, 3)}
KINDS |= {"mips": (warps.draw_mips, 1), "rays": (rays.draw_rays, 3), "function": (functions.draw_function, 3)}


def kind_of(seed):
    return pick(np.random.default_rng(seed), [kind for kind, (_, share) in KINDS.items() for _ in range(share)])


def program(case):
    """The value of a call, then its tangent or its gradients, as a function that JAX has not seen yet."""

    def run(inputs, cotangent, tangents):
        rest = {k: v for k, v in inputs.items() if k not in case.wrt}
        f = lambda some: case.function(**rest, **some)
        some = {k: inputs[k] for k in case.wrt}
        out = f(some) if not case.wrt else None
        if out is not None or not jnp.issubdtype(jax.eval_shape(f, some).dtype, jnp.floating):
            return {"value": f(some)}
        if case.forward:
            out, tangent = jax.jvp(f, (some,), (tangents,))
            return {"value": out, "tangent": tangent}
        out, pullback = jax.vjp(f, some)
        return {"value": out, **pullback(cotangent)[0]}

    return jax.jit(run)


def compare(case, name, found, expected, steps=1):
    """Raises if results differ by more than roundings explain, each in so many steps."""
    assert found.dtype == expected.dtype, f"{name}: {found.dtype} for {expected.dtype}"
    assert found.shape == expected.shape, f"{name}: shape {found.shape} for {expected.shape}"
    if name == "value" and (case.exact or not jnp.issubdtype(found.dtype, jnp.floating)):
        bits = f"u{found.itemsize}"
        nan = np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64))
        wrong, bound = ~((found.view(bits) == expected.view(bits)) | nan), 0.0
    else:
        row = found.dtype.name
        a, b = found.astype(np.float64), expected.astype(np.float64)
        largest = np.abs(b[np.isfinite(b)]).max(initial=case.floors.get(name, 1.0))
        roundings = case.reach if name == "value" and not case.sums else SUMS * case.reach
        # Both results of 16 bits are rounded: each lies within the row's bound of what was summed.
        halves = 2 * max(1.0, case.reach / 64)
        bound = steps * TOLERANCES[row] * largest * (roundings if row == "float32" else halves)
        with np.errstate(invalid="ignore"):
            wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound))
    # Where a rounding may move a sample to other texels, it moves few: rows of channels, or coordinates.
    rows = wrong.any(-1) if wrong.ndim > 1 and name in ("value", "tangent", "texels", "image", "values") else wrong
    allowed = 0 if case.steady or (case.exact and name == "value") else rows.size // 64 + 2 * (rows.size > 8)
    if rows.sum() > allowed:
        k = tuple(np.argwhere(wrong)[0])
        raise AssertionError(
            f"{name}: {wrong.sum()} of {wrong.size} differ; {k}: {found[k]} for {expected[k]}, bound {bound:.3g}"
        )


def check(seed, kernels, kind):
    """Runs the call of a seed and a kind by kernels and by arrays, and compares."""
    case = case_of(seed, KINDS[kind][0])
    cotangent, tangents = seeds_for(case, seed)
    args = jax.tree.map(np.asarray, (case.inputs, cotangent, tangents))
    on_host = lambda results: {name: np.asarray(a) for name, a in results.items()}
    with naming(case.text):
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            expected = on_host(program(case)(*args))
            meant = case.meaning and on_host({"value": jax.jit(case.meaning)(**args[0])})
        with by_kernels(kernels), warnings.catch_warnings():
            warnings.filterwarnings("error", message="jaxtex: a function of")
            run = program(case)
            found = on_host(run(*args))
            again = on_host(run(*args)) if case.deterministic else found
        for name, value in expected.items():
            compare(case, name, found[name], value)
            assert again[name].tobytes() == found[name].tobytes(), f"{name}: other bits in a second run"
        if meant:
            value = expected["value"]
            compare(case, "value", value, meant["value"].astype(value.dtype), steps=2)


def by_kernels(kernels):
    """The context in which programs run kernels."""
    if kernels == "gpu":
        return contextlib.nullcontext()
    from tests.support.host_kernels import kernels_on_cpu

    return kernels_on_cpu()


OTHERS = ("cli", *memory.KINDS)


def check_other(what, seed):
    if what != "cli":
        return memory.check_seed(what, seed)
    from tests.fuzz import cli as fuzz_cli

    return fuzz_cli.check(seed)


def run(seeds, check, again, most_seconds=math.inf):
    """How many seeds fail; it prints each of them with how to run it again, and runs no more after so many seconds."""
    failed, begun = 0, time.perf_counter()
    for done, seed in enumerate(seeds, 1):
        try:
            check(seed)
        except Exception as error:
            failed += 1
            cause = error.__cause__ or error
            if not isinstance(cause, AssertionError):
                traceback.print_exception(cause, limit=-4)
            print(
                f"FAILED seed {seed}: {str(error)[:900]}\n  python -m tests.fuzz --cases 1 --seed {seed} {again(seed)}"
            )
        seconds = time.perf_counter() - begun
        if done % PROGRESS == 0 or done == len(seeds) or seconds > most_seconds:
            print(f"seeds {seeds[0]} to {seed}: {done} of them, {failed} failed, {seconds:.0f} s", flush=True)
            jax.clear_caches()
        if seconds > most_seconds:
            break
    return failed


def environment():
    """XLA compiles for the CPU as in tests: without instructions that round a product and a sum once."""
    environment = {**os.environ, CHILD: "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    cheap = [f for f in compiling.flags().split() if f.startswith("--xla_cpu") or compiling.on_cpu()]
    return environment | {"XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *cheap]).strip()}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--what", choices=("calls", *OTHERS), default="calls", help="what is drawn (default: calls)")
    parser.add_argument("--cases", type=int, default=100, help="how many calls")
    parser.add_argument("--seed", type=int, default=0, help="of the first; each has the next one")
    parser.add_argument("--seconds", type=float, default=math.inf, help="make no more calls after so many")
    parser.add_argument("--kernels", choices=("gpu", "host"), help="default: gpu where JAX finds one")
    parser.add_argument("--calls", choices=tuple(KINDS), help="of one kind (default: of all)")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.cases)
    if options.what in OTHERS:
        again = lambda seed: f"--what {options.what}"
        return int(run(seeds, lambda seed: check_other(options.what, seed), again, options.seconds) > 0)
    kind = lambda seed: options.calls or kind_of(seed)
    if os.environ.get(CHILD):
        kernels = options.kernels or ("gpu" if jax.default_backend() == "gpu" else "host")
        if kernels == "gpu" and jax.default_backend() != "gpu":
            raise SystemExit("--kernels gpu: JAX finds no GPU")
        again = lambda seed: f"--kernels {kernels} --calls {kind(seed)}"
        return int(run(seeds, lambda seed: check(seed, kernels, kind(seed)), again, options.seconds) > 0)
    # Flags of XLA are read when it starts, so the calls are made in another process.
    again = [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]]
    failed = subprocess.run(again, env=environment(), check=False).returncode
    print("all calls agree" if not failed else "calls failed")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
