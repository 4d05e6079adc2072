"""`python -m tests.fuzz.memory`: random accesses of single texels, copies, descriptors and gradients, on any device.

Every result is compared, bit for bit, with oracles that share no code with the library: `memory_oracle` and
`descriptor_oracle`. `--accesses` is how many there are of every integer type of coordinates, of each of these kinds:
`surfaces`, by the functions of the core, `cuda`, surfaces by CUDA's names, and `textures`, reads by CUDA's names. Of
other kinds there are cases in proportion.
"""

import argparse
import multiprocessing
import os
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import jax
import numpy as np

from tests.fuzz import blocks as fuzz_blocks
from tests.fuzz import copies as fuzz_copies
from tests.fuzz import cuda as fuzz_cuda
from tests.fuzz import descriptors as fuzz_descriptors
from tests.fuzz import gradients as fuzz_gradients
from tests.fuzz import surfaces as fuzz_surfaces
from tests.fuzz import textures as fuzz_textures
from tests.fuzz import values as fuzz_values
from tests.fuzz.integers import TYPES

# With coordinates of every type.
OF_ACCESSES = {"surfaces": fuzz_surfaces.check, "cuda": fuzz_cuda.check, "textures": fuzz_textures.check}
# With how many accesses of a type there is one case of these.
OTHERS = {
    "copies": (fuzz_copies.check, 1000),
    "descriptors": (fuzz_descriptors.check, 400),
    "gradients": (fuzz_gradients.check, 4000),
    "values": (fuzz_values.check, 1000),
    "blocks": (fuzz_blocks.check, 1000),
}
KINDS = (*OF_ACCESSES, *OTHERS)
PROGRESS = 20  # seconds
CASES_TO_KEEP = 200  # whose programs are kept
SHOWN = 5  # failures of one task that are printed


class Count(NamedTuple):
    """What was done: cases, accesses, values compared, and cases that failed."""

    cases: int = 0
    accesses: int = 0
    values: int = 0
    failed: int = 0

    def __add__(self, other):
        return Count(*(a + b for a, b in zip(self, other)))


def tasks(kinds, types):
    """Names of what cases are of: a kind, or a kind and a type of coordinates."""
    named = [f"{kind}/{name}" for kind in kinds if kind in OF_ACCESSES for name in types]
    return [*named, *(kind for kind in kinds if kind in OTHERS)]


def check(task, number, seed, samples):
    """One case: how many accesses there were, and how many values were compared.

    Raises:
        AssertionError: if the library and the oracle differ.
    """
    kind, _, name = task.partition("/")
    rng = np.random.default_rng([seed, zlib.crc32(task.encode()), number])
    if kind in OF_ACCESSES:
        return OF_ACCESSES[kind](rng, TYPES[name], samples)
    return OTHERS[kind][0](rng, samples)


def goal_of(task, accesses):
    """How many cases of a task are enough, or, with coordinates, None: accesses are counted."""
    return None if task.partition("/")[0] in OF_ACCESSES else max(1, accesses // OTHERS[task][1])


def command(task, number, seed, samples):
    return f"python -m tests.fuzz.memory --case {task}/{number} --seed {seed} --samples {samples}"


def run(task, options, part, parts):
    """Each of `parts` processes takes every so many-th case, until the accesses are made."""
    total, begun, goal, told = Count(), time.perf_counter(), goal_of(task, options.accesses), 0.0
    number, enough = part, options.accesses / parts
    while number < goal if goal is not None else total.accesses < enough:
        try:
            accesses, values = check(task, number, options.seed, options.samples)
            total += Count(1, int(accesses), int(values), 0)
        except AssertionError as error:
            total += Count(1, options.samples if goal is None else 0, 0, 1)
            if total.failed <= SHOWN:
                print(f"FAILED {task}/{number}: {str(error)[:900]}", flush=True)
                print(f"  {command(task, number, options.seed, options.samples)}", flush=True)
        number += parts
        if total.cases % CASES_TO_KEEP == 0:
            jax.clear_caches()
        seconds = time.perf_counter() - begun
        if seconds - told > PROGRESS:
            told = seconds
            print(line(f"{task}, part {part + 1} of {parts}", total, seconds), flush=True)
    return total


def line(name, count, seconds):
    return (
        f"{name}: {count.cases} cases, {count.accesses} accesses, {count.values} values compared, "
        f"{count.failed} failed, {seconds:.0f} s"
    )


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.memory", description=__doc__)
    parser.add_argument("--accesses", type=int, default=20_000, help="of every integer type, in each of three kinds")
    parser.add_argument("--samples", type=int, default=16384, help="accesses of one call")
    parser.add_argument("--seed", type=int, default=0, help="of all cases")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes share the cases")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="the kinds of cases")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=tuple(TYPES), help="the types of coordinates")
    parser.add_argument("--case", help="one case alone, such as surfaces/int64_numpy/3")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = options_of(arguments)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that the processes share a GPU
    if options.case:
        task, _, number = options.case.rpartition("/")
        accesses, values = check(task, int(number), options.seed, options.samples)
        print(f"{options.case}: {accesses} accesses, {values} values agree")
        return 0
    failed, begun = 0, time.perf_counter()
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        started = {
            task: [pool.submit(run, task, options, part, options.jobs) for part in range(options.jobs)]
            for task in tasks(options.only, options.types)
        }
        for task, parts in started.items():
            total = sum((future.result() for future in parts), Count())
            failed += total.failed
            print(line(task, total, time.perf_counter() - begun), flush=True)
    print("all cases agree" if not failed else f"{failed} cases failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
