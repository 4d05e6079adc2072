"""`python -m benchmarks`: times each work for every competitor that is installed, and prints a table of ratios."""

import argparse
import json
import pathlib
import platform
import subprocess

import jax
import jaxlib

import jaxtex

from .peers import DEFAULT_TOLERANCE, PEERS, TOLERANCES, Work, as_numpy, disagreement, wait
from .timing import side_by_side


def works(size: int) -> list[Work]:
    """The first works: reads and both gradients in 2D."""
    reads = [Work(size, channels) for channels in (1, 3, 4)]
    return reads + [Work(size, channels, gradients=True) for channels in (1, 4)]


def commit() -> str:
    """The commit of the working tree, or 'unknown' outside a repository."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def environment() -> dict[str, str]:
    """What a figure depends on."""
    return {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "jaxtex": jaxtex.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "commit": commit(),
    }


def measure(work: Work, seconds: float) -> dict[str, float]:
    """Milliseconds of each competitor; one whose result differs from ours is an error, not a row."""
    runs = {name: run for name, build in PEERS.items() if (run := build(work)) is not None}
    ours = as_numpy(wait(runs["jaxtex"]()))
    for name, run in runs.items():
        tolerance = TOLERANCES.get(name, DEFAULT_TOLERANCE)
        if tolerance is not None and (far := disagreement(ours, as_numpy(wait(run())))) > tolerance:
            raise SystemExit(f"{work.name}: {name} differs from jaxtex by {far:.2g}, more than {tolerance:.2g}")
    return side_by_side({name: (run, wait) for name, run in runs.items()}, seconds, work.name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", type=int, help="texels and samples along a side (default 4096 on a GPU, else 1024)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each work")
    parser.add_argument("--json", type=pathlib.Path, help="write figures and environment to this file")
    options = parser.parse_args()
    size = options.size or (4096 if jax.default_backend() == "gpu" else 1024)
    about = environment()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    rows = {}
    for work in works(size):
        times = rows[work.name] = measure(work, options.seconds)
        shown = "  ".join(f"{name} {ms:.3f} ({times['jaxtex'] / ms:.2f}x)" for name, ms in times.items())
        print(f"{work.name:36s} {shown}", flush=True)
    print("milliseconds, median; in brackets jaxtex's time over theirs: below 1 jaxtex is faster")
    if options.json:
        options.json.write_text(json.dumps({"environment": about, "milliseconds": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
