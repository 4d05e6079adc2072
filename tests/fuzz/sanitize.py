"""`python -m tests.fuzz.sanitize`: the kernels under compute-sanitizer, on a GPU.

memcheck looks for accesses out of bounds, racecheck for threads that race for shared memory, initcheck for memory
that is read before it is written, and synccheck for barriers that not all threads reach. It runs random calls of
`tests/fuzz/__main__.py`, which also compares their results.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

from tests.fuzz import __main__ as fuzz

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# Where a CUDA toolkit installs it, beside the search path.
FOLDERS = "/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"
# What a tool prints at its end: of errors, or of hazards.
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
# Only kernels of this library: XLA's own are not the question, and each is slow to check.
OURS = ("--kernel-name", "kernel_substring=texture")
OPTIONS = {"memcheck": ["--leak-check", "no"], "racecheck": ["--racecheck-report", "all"]}
SLOWEST = 500  # seconds


def sanitizer():
    """Where compute-sanitizer is, or None."""
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=FOLDERS)


def verdict(tool, code, text):
    """A line about a run, and whether it found nothing."""
    found = [int(n) for n in SUMMARY.findall(text)]
    if not found:
        return f"{tool}: no summary, exit code {code}", False
    lines = "; ".join(line.strip("= ") for line in text.splitlines() if SUMMARY.search(line))
    return f"{tool}: exit code {code}; {lines}", code == 0 and not any(found)


def check(tool, path, cases, seed, seconds, kernels=OURS):
    """Runs the calls under a tool."""
    command = [path, "--tool", tool, "--error-exitcode", "9", *kernels, *OPTIONS.get(tool, [])]
    command += [sys.executable, "-m", "tests.fuzz", "--cases", str(cases), "--seed", str(seed), "--kernels", "gpu"]
    # XLA's allocator would hide the ends of arrays within one large piece of memory.
    surroundings = fuzz.environment() | {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_FLAGS": without_graphs()}
    try:
        done = subprocess.run(
            command,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        print((error.stdout or b"").decode(errors="replace")[-3000:])
        return f"{tool}: not done after {seconds} s; take fewer --cases", False
    line, good = verdict(tool, done.returncode, done.stdout)
    if not good:
        print(done.stdout[-6000:])
    return line, good


def without_graphs():
    """Flags of XLA, and that each kernel is launched by itself, so that tools see its name."""
    return f"{fuzz.environment()['XLA_FLAGS']} --xla_gpu_enable_command_buffer=".strip()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sanitize", description=__doc__)
    parser.add_argument("--cases", type=int, default=30, help="how many calls each tool sees")
    parser.add_argument("--seed", type=int, default=0, help="of the first call")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"])
    parser.add_argument("--every-kernel", action="store_true", help="also those of XLA")
    parser.add_argument("--seconds", type=float, default=SLOWEST, help="the most that a tool may take")
    options = parser.parse_args()
    path = sanitizer()
    if path is None:
        print("compute-sanitizer is not here: it comes with the CUDA toolkit, and nothing was checked.")
        return 2
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    results = []
    for tool in options.tools:
        kernels = () if options.every_kernel else OURS
        results.append(check(tool, path, options.cases, options.seed, options.seconds, kernels))
        print(results[-1][0], flush=True)
    return int(not all(good for _, good in results))


if __name__ == "__main__":
    raise SystemExit(main())
