"""`python -m benchmarks.scaling`: the same work on one device and on several, with what bounds it.

Strong scaling: a work of one size, over more devices. Weak scaling: each device has as much as one device had. Before
anything is timed, results are compared with those of one device. To try it on a CPU:
`XLA_FLAGS=--xla_force_host_platform_device_count=8`, `--size small`.
"""

import argparse
import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

import jax

from ..peers.protocol import on_gpu
from ..report import Results, parser
from .measure import figures
from .rates import rates
from .report import markdown
from .works import Work, works


def options_of(argv: Sequence[str] | None) -> argparse.Namespace:
    options = parser("benchmarks.scaling", __doc__, 0.5)
    options.add_argument("--devices", type=int, nargs="+", help="how many, such as 1 2 4 (default: 1, 2, 4, ... all)")
    options.add_argument("--size", choices=("small", "large"), help="of the works (default: large on a GPU)")
    return options.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    print(markdown(run(options_of(argv))))
    return 0


def run(options: argparse.Namespace) -> dict[str, Any]:
    size = options.size or ("large" if on_gpu() else "small")
    wanted = [work for work in works(size) if re.search(options.only, work.name)]
    counts = counted(options.devices, wanted)
    measured = dataclasses.asdict(rates(size, counts, options.seconds))
    devices = jax.device_count()
    results = Results(options, devices=devices, size=size, rates=measured, works=[plain(work) for work in wanted])
    for work in wanted:
        for some in figures(work, counts, options.seconds):
            for figure in some:
                name = f"{figure.work}, {figure.function}, {figure.rows} rows on {figure.devices}"
                results.add(name, **dataclasses.asdict(figure))
                print(f"{name}: {figure.problem or f'{figure.milliseconds:.3f} ms'}", flush=True)
    # As a file has it: its keys are strings.
    return json.loads(json.dumps(results.found))


def counted(devices: Sequence[int] | None, wanted: Sequence[Work]) -> list[int]:
    """The numbers of devices above 1."""
    there = jax.device_count()
    counts = sorted(set(devices or [2**k for k in range(1, there.bit_length())]) - {1})
    if not counts or counts[0] < 1 or counts[-1] > there:
        raise SystemExit(
            f"--devices {' '.join(map(str, devices or []))}: there are {there}; take 1 and more, such as 1 2"
        )
    for work in wanted:
        if any(work.strong % count for count in counts):
            raise SystemExit(f"--devices must divide {work.strong}, the rows of {work.name}; take powers of two")
    return counts


def plain(work: Work) -> dict[str, Any]:
    """What a report needs of a work."""
    names = ("name", "title", "strong", "weak", "exchange", "tolerance")
    return {name: getattr(work, name) for name in names} | {"functions": list(work.functions), "aims": dict(work.aims)}


if __name__ == "__main__":
    raise SystemExit(main())
