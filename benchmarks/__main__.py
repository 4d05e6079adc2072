"""`python -m benchmarks`: times each work for every competitor that is installed, and prints tables of ratios."""

import argparse
import dataclasses
import itertools
import json
import pathlib
import re
from collections.abc import Sequence

import jax

from . import peers, picture
from .environment import environment
from .measure import Row, measure, roofline
from .report import LEGEND, Machine, plain, table
from .works import Work, works

COPY_SECONDS = 1.0


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", type=int, help="texels and samples along a side (default 4096 on a GPU, else 1024)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time for each work")
    parser.add_argument("--only", type=re.compile, help="a regular expression: works whose section or name has it")
    parser.add_argument("--list", action="store_true", help="print the works and stop")
    parser.add_argument("--json", type=pathlib.Path, help="write figures and environment to this file")
    parser.add_argument("--picture", type=pathlib.Path, help="draw the rows to this PNG file")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
    size = options.size or (4096 if jax.default_backend() == "gpu" else 1024)
    wanted = [w for w in works(size) if not options.only or options.only.search(f"{w.section}: {w.name}")]
    if not wanted:
        raise SystemExit(f"--only {options.only.pattern!r} fits none of the works; --list prints them")
    if options.list:
        print(*(f"{work.section}: {work.name}" for work in wanted), sep="\n")
        return 0
    if options.picture and not picture.available():
        raise SystemExit("--picture needs matplotlib, which is not installed; it comes with the extra bench")
    about = environment()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    machine = Machine(*roofline(size, min(options.seconds, COPY_SECONDS)))
    print(
        f"a copy of {size}x{size}, C=4: {machine.gigabytes_per_second:.0f} GB/s; a launch: {machine.launch_ms:.4f} ms"
    )
    done: dict[Work, Row] = {}
    shown: list[Row] = []
    for title, group in itertools.groupby(wanted, lambda work: work.section):
        start = len(shown)
        for work in group:
            if work not in done:
                done[work] = measure(work, options.seconds, f"[{len(shown) + 1}/{len(wanted)}] {work.name}")
                peers.forget()
            # The same work in another section has other targets.
            shown.append(dataclasses.replace(done[work], work=work))
            if options.json:
                write(options.json, about, machine, shown)
        print(f"\n{table(title, shown[start:], machine)}", flush=True)
    print(f"\n{LEGEND}")
    if options.picture:
        picture.draw([plain(row, machine) for row in shown], options.picture, jax.devices()[0].device_kind)
    return 0


def write(file: pathlib.Path, about: dict[str, str], machine: Machine, rows: list[Row]) -> None:
    """All rows so far: a run that is cut short leaves what it found."""
    found = {"environment": about, "machine": dataclasses.asdict(machine), "rows": [plain(r, machine) for r in rows]}
    file.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
