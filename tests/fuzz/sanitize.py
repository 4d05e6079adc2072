"""`python -m tests.fuzz.sanitize`: the kernels under compute-sanitizer, on a GPU.

memcheck looks for accesses out of bounds, racecheck for threads that race for shared memory, initcheck for memory
that is read before it is written, and synccheck for barriers that not all threads reach. It runs random calls of
`tests/fuzz/__main__.py`, which also compares their results.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import signal
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
# The calls run in the process that is started, and what XLA starts to compile kernels is not checked.
COMMON = ("--error-exitcode", "9", "--target-processes", "application-only")
OPTIONS = {"memcheck": ["--leak-check", "no"], "racecheck": ["--racecheck-report", "all"]}
# Each kernel is launched by itself, so that tools see its name; and XLA tries no kernels of its own.
XLA_FLAGS = "--xla_gpu_enable_command_buffer= --xla_gpu_autotune_level=0"
# Seconds after which a process makes no more calls, and that its last one may take.
ENOUGH, LAST = 360, 180


def checked(tool, path, options):
    """Runs the calls under a tool: a line about it, and whether it found nothing."""
    kernels = () if options.every_kernel else OURS
    command = [path, "--tool", tool, *COMMON, *kernels, *OPTIONS.get(tool, []), sys.executable, "-m", "tests.fuzz"]
    command += ["--cases", str(options.cases), "--seed", str(options.seed), "--kernels", "gpu"]
    command += ["--seconds", str(options.seconds)]
    # XLA's allocator would hide the ends of arrays within one large piece of memory.
    own = fuzz.environment()
    surroundings = own | {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_FLAGS": f"{own['XLA_FLAGS']} {XLA_FLAGS}"}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    process = subprocess.Popen(command, env=surroundings, start_new_session=True, **how)
    late = f"its last call is not done after {LAST} s; take other calls with --seed"
    try:
        text, late = process.communicate(timeout=options.seconds + LAST)[0], ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text = process.communicate()[0]
    found = [int(n) for n in SUMMARY.findall(text)]
    lines = [line.strip("= ") for line in text.splitlines() if SUMMARY.search(line) or line.startswith("seeds ")]
    good = process.returncode == 0 and found and not any(found)
    return f"{tool}: {late or '; '.join([f'exit code {process.returncode}', *lines])}", good, text


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sanitize", description=__doc__)
    parser.add_argument("--cases", type=int, default=30, help="how many calls each tool sees at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first call")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"])
    parser.add_argument("--every-kernel", action="store_true", help="also those of XLA")
    parser.add_argument("--seconds", type=float, default=ENOUGH, help="after which a tool sees no more calls")
    options = parser.parse_args()
    path = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=FOLDERS)
    if path is None:
        print("compute-sanitizer is not here: it comes with the CUDA toolkit, and nothing was checked.")
        return 2
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = [*pool.map(lambda tool: checked(tool, path, options), options.tools)]
    for line, good, text in results:
        print(line if good else f"{text[-6000:]}\n{line}", flush=True)
    return int(not all(good for _, good, _ in results))


if __name__ == "__main__":
    raise SystemExit(main())
