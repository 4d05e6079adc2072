"""Bars of a run: `python -m benchmarks.picture results.json bars.png`, or `--picture` of the run itself."""

import argparse
import functools
import importlib
import importlib.util
import io
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from PIL import Image

from .measure import OURS
from .peers import PEERS

WIDTH, DPI = 1200, 100  # pixels, and pixels an inch
LINE = 13  # pixels a bar
GAP = 0.7  # of a bar, between rows
TOP, BOTTOM = 52, 26  # pixels around the bars
LEFT = 0.37  # of the width, for names
TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
COLOURS = ("#1f4e79", "#8c8c8c", "#c9c9c9", "#d95f02", "#7570b3", "#1b9e77", "#e6ab02", "#a6761d", "#e7298a", "#66a61e")
# Names for those who have not read the tables.
LABELS = {
    "by default": "jaxtex with its default options",
    "copy": "a copy of the output",
    "an addition": "one addition",
}
PALETTE = 32


def available() -> bool:
    """Whether there is something to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(rows: Sequence[dict[str, Any]], file: pathlib.Path) -> None:
    """Each row as a group of bars, from jaxtex's time to that of each other library, on a logarithmic axis."""
    figures, patches = (importlib.import_module(f"matplotlib.{name}") for name in ("figure", "patches"))
    colours = dict(zip(PEERS, COLOURS))
    timed = [row for row in rows if len(others(row)) and OURS in row["milliseconds"]]
    lines = sum(len(others(row)) + GAP for row in timed)
    height = LINE * lines + TOP + BOTTOM
    figure = figures.Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((LEFT, BOTTOM / height, 0.96 - LEFT, 1 - (TOP + BOTTOM) / height))
    label = functools.partial(axes.text, ha="right", va="center")
    ratios = [ms / row["milliseconds"][OURS] for row in timed for ms in others(row).values()]
    low, high = min(0.8, min(ratios) / 1.3), max(ratios) * 1.5
    top = 0.0
    for row in timed:
        ours, times = row["milliseconds"][OURS], others(row)
        label(low * 0.97, top + (len(times) - 1) / 2, f"{row['name']}: {ours:.3g} ms", fontsize=8)
        for name, ms in times.items():
            ratio = ms / ours
            axes.barh(top, ratio - 1, left=1, height=0.9, color=colours[name])
            axes.text(max(ratio, 1) * 1.02, top, f"{ms:.3g}", va="center", fontsize=7)
            top += 1
        top += GAP
    axes.axvline(1, color="#1f4e79", linewidth=1)
    axes.set(xscale="log", xlim=(low, high), ylim=(top - GAP - 0.4, -0.8), yticks=[])
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g} x" for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.spines[["top", "right", "left"]].set_visible(False)
    seen = [name for name in PEERS if any(name in others(row) for row in timed)]
    figure.legend(
        handles=[patches.Patch(color=colours[name], label=LABELS.get(name, name)) for name in seen],
        ncols=len(seen),
        loc="upper center",
        fontsize=8,
        frameon=False,
        title="time over jaxtex's, which is the line at 1 x (right is slower); milliseconds at the bars",
        title_fontsize=9,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    image = Image.open(buffer).convert("RGB")
    image.quantize(PALETTE, dither=Image.Dither.NONE).save(file, optimize=True)


def others(row: dict[str, Any]) -> dict[str, float]:
    """The milliseconds of a row, without ours and without what is only there to tell the cost of a launch."""
    return {name: ms for name, ms in row["milliseconds"].items() if name not in (OURS, "an addition")}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("results", type=pathlib.Path, help="what --json wrote")
    parser.add_argument("picture", type=pathlib.Path, help="the PNG file to write")
    parser.add_argument("--only", default="", help="a regular expression: rows whose name has it")
    options = parser.parse_args()
    if not available():
        raise SystemExit("this needs matplotlib, which is not installed; it comes with the extra bench")
    rows = {row["name"]: row for row in json.loads(options.results.read_text())["rows"]}
    draw([row for name, row in rows.items() if re.search(options.only, name)], options.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
