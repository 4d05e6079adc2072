"""`python -m benchmarks`: times each work for every competitor that is installed, and prints tables of ratios."""

import argparse
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Sequence

import jax

from . import peers, picture
from .measure import Row, measure, roofline
from .report import LEGEND, Machine, Results, parser, plain, table
from .works import Work, works

COPY_SECONDS = 1.0


def options_of(argv: Sequence[str] | None) -> argparse.Namespace:
    options = parser("benchmarks", __doc__, 3.0)
    options.add_argument("--size", type=int, help="texels and samples along a side (default 4096 on a GPU, else 1024)")
    options.add_argument("--list", action="store_true", help="print the works and stop")
    options.add_argument("--picture", type=pathlib.Path, help="draw the rows to this PNG file")
    return options.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = options_of(argv)
    size = options.size or (4096 if jax.default_backend() == "gpu" else 1024)
    wanted = [w for w in works(size) if re.search(options.only, f"{w.section}: {w.name}")]
    if not wanted:
        raise SystemExit(f"--only {options.only.pattern!r} fits none of the works; --list prints them")
    if options.list:
        print(*(f"{work.section}: {work.name}" for work in wanted), sep="\n")
        return 0
    if options.picture and not picture.available():
        raise SystemExit("--picture needs matplotlib, which is not installed; it comes with the extra bench")
    machine = Machine(*roofline(size, min(options.seconds, COPY_SECONDS)))
    results = Results(options, machine=dataclasses.asdict(machine))
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
            results.add(work.name, **plain(shown[-1], machine))
        print(f"\n{table(title, shown[start:], machine)}", flush=True)
    print(f"\n{LEGEND}")
    if options.picture:
        picture.draw(results.found["rows"], options.picture, jax.devices()[0].device_kind)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
