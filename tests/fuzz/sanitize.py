"""`python -m tests.fuzz.sanitize`: the kernels under compute-sanitizer, on a GPU.

memcheck looks for accesses out of bounds, racecheck for threads that race for shared memory, initcheck for memory
that is read before it is written, and synccheck for barriers that not all threads reach. It runs random calls of
`tests/fuzz/__main__.py`, which also compares their results.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

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


def started(tool, path, options, printed):
    """The process that runs the calls under a tool, and writes to a file what it prints."""
    kernels = () if options.every_kernel else OURS
    command = [path, "--tool", tool, *COMMON, *kernels, *OPTIONS.get(tool, []), sys.executable, "-m", "tests.fuzz"]
    command += ["--cases", str(options.cases), "--seed", str(options.seed), "--kernels", "gpu"]
    command += ["--seconds", str(options.seconds)]
    # XLA's allocator would hide the ends of arrays within one large piece of memory.
    own = fuzz.environment()
    surroundings = own | {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_FLAGS": f"{own['XLA_FLAGS']} {XLA_FLAGS}"}
    how = {"stdout": printed, "stderr": subprocess.STDOUT, "start_new_session": True}
    return subprocess.Popen(command, env=surroundings, **how)


def ended(tool, process, printed, seconds):
    """A line about a process when it has ended, and whether it found nothing."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    late = process.poll() is None
    if late:
        os.killpg(process.pid, signal.SIGKILL)
    printed.seek(0)
    text = printed.read()
    line, good = verdict(tool, process.wait(), text)
    if late:
        line, good = f"{tool}: its last call is not done after {LAST} s; take other calls with --seed", False
    if not good:
        print(text[-6000:])
    calls = [found for found in text.splitlines() if found.startswith("seeds ")]
    return f"{line}; {calls[-1] if calls else 'no calls'}", good


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sanitize", description=__doc__)
    parser.add_argument("--cases", type=int, default=30, help="how many calls each tool sees at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first call")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"])
    parser.add_argument("--every-kernel", action="store_true", help="also those of XLA")
    parser.add_argument("--seconds", type=float, default=ENOUGH, help="after which a tool sees no more calls")
    options = parser.parse_args()
    path = sanitizer()
    if path is None:
        print("compute-sanitizer is not here: it comes with the CUDA toolkit, and nothing was checked.")
        return 2
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    begun, results = time.monotonic(), []
    with contextlib.ExitStack() as stack:
        files = {tool: stack.enter_context(tempfile.TemporaryFile("w+", errors="replace")) for tool in options.tools}
        processes = {tool: started(tool, path, options, file) for tool, file in files.items()}  # side by side
        for tool, process in processes.items():
            left = begun + options.seconds + LAST - time.monotonic()
            results.append(ended(tool, process, files[tool], max(1.0, left)))
            print(results[-1][0], flush=True)
    return int(not all(good for _, good in results))


if __name__ == "__main__":
    raise SystemExit(main())
