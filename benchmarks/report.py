"""What is shown: tables, and rows as plain values for a file."""

import argparse
import dataclasses
import json
import pathlib
import re
from typing import Any

import jax

from .environment import environment
from .measure import OURS, Row
from .peers import PEERS
from .works import Target

SHORTEST = 2  # times the launch of a program that does nothing; what is faster is not told apart from it
LEGEND = (
    "milliseconds, median; in brackets jaxtex's time over theirs: below 1 jaxtex is faster; ~ no more than twice a "
    "launch; GB/s: inputs read once and outputs written once, and its share of what a copy reaches"
)


def parser(module: str, description: str | None, seconds: float | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have. `seconds` is the default of the time for each row, if rows are timed."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", type=re.compile, default="", help="a regular expression: rows whose name has it")
    if seconds is not None:
        parser.add_argument("--seconds", type=float, default=seconds, help="time for each row")
    parser.add_argument("--json", type=pathlib.Path, help="write figures, device, versions and commit to this file")
    return parser


class Results:
    """The figures of a run. The file has them all after each row, so that a run that is cut short leaves what it found.

    A row has a name, `milliseconds` by library or by what is timed, and whatever else was found, as plain values.
    """

    def __init__(self, options: argparse.Namespace, **about: Any):
        self.file: pathlib.Path | None = options.json
        self.found: dict[str, Any] = {"environment": environment(), **about, "rows": []}
        print(", ".join(f"{key} {value}" for key, value in self.found["environment"].items()), flush=True)

    def add(self, name: str, **figures: Any) -> None:
        self.found["rows"].append({"name": name, **figures})
        if self.file:
            self.file.write_text(json.dumps(self.found, indent=1) + "\n")


@dataclasses.dataclass(frozen=True)
class Machine:
    """What rows are measured against: the bandwidth of a copy, and the launch of a program that does nothing."""

    gigabytes_per_second: float
    launch_ms: float


def targets(row: Row) -> tuple[Target, ...]:
    """The aims of the row that are meant for this device."""
    return tuple(t for t in row.work.targets if t.device == jax.default_backend())


def verdict(row: Row, target: Target) -> str:
    ratio = row.over(target.peer)
    state = "not measured" if ratio is None else f"{ratio:.2f}, {'met' if ratio <= target.ratio else 'missed'}"
    return f"{target.ratio:g}x {target.peer}: {state}"


def cell(row: Row, name: str, notes: list[str], machine: Machine) -> str:
    """The time of one competitor, or the number of a note that says why there is none."""
    if name in row.problems:
        note = f"{name}: {row.problems[name]}"
        if note not in notes:
            notes.append(note)
        return f"[{notes.index(note) + 1}]"
    if name not in row.milliseconds:
        return ""
    ms = row.milliseconds[name]
    mark = "~" if ms < SHORTEST * machine.launch_ms else ""
    ratio = "" if name == OURS else f" ({row.over(name):.2f}x)"
    return f"{mark}{ms:.3f}{ratio}"


def table(title: str, rows: list[Row], machine: Machine) -> str:
    """The rows of a section, with a column for each competitor that one of them met."""
    names = [name for name in PEERS if any(name in {**row.milliseconds, **row.problems} for row in rows)]
    notes: list[str] = []
    lines = [[title, *names, "GB/s", "of a copy", "target"]]
    for row in rows:
        speed = row.gigabytes_per_second
        reached = ["", ""] if speed is None else [f"{speed:.0f}", f"{speed / machine.gigabytes_per_second:.0%}"]
        cells = [cell(row, name, notes, machine) for name in names]
        lines.append([row.work.name, *cells, *reached, "; ".join(verdict(row, t) for t in targets(row))])
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = ["  ".join(field.ljust(width) for field, width in zip(line, widths)).rstrip() for line in lines]
    text.insert(1, "-" * len(text[0]))
    return "\n".join([*text, *(f"[{k}] {note}" for k, note in enumerate(notes, 1))])


def plain(row: Row, machine: Machine) -> dict[str, Any]:
    """The row for a JSON file, but for its name."""
    work = {key: value for key, value in dataclasses.asdict(row.work).items() if key not in ("section", "targets")}
    speed = row.gigabytes_per_second
    return {
        "section": row.work.section,
        "work": work,
        "milliseconds": row.milliseconds,
        "problems": row.problems,
        "bytes": row.bytes,
        "gigabytes_per_second": speed,
        "share_of_copy": speed and speed / machine.gigabytes_per_second,
        "targets": [{"peer": t.peer, "ratio": t.ratio, "reached": row.over(t.peer)} for t in targets(row)],
    }
