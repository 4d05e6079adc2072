"""Bars of a run: `python -m benchmarks.picture results.json bars.png`, or `--picture` of the run itself."""

import argparse
import functools
import importlib
import importlib.util
import io
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from PIL import Image

from .measure import OURS
from .peers import PEERS

WIDTH, DPI = 1200, 100  # pixels, and pixels an inch
LINE = 13  # pixels a bar
GAP = 0.7  # of a bar, between rows
TOP, BOTTOM = 50, 22  # pixels around the bars
LEFT = 0.37  # of the width, for names
LONGEST = 4.0  # times jaxtex; a longer bar is cut, its number is not
COLOURS = ("#1f4e79", "#8c8c8c", "#c9c9c9", "#d95f02", "#7570b3", "#1b9e77", "#e6ab02", "#a6761d", "#e7298a")
PALETTE = 16


def available() -> bool:
    """Whether there is something to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(rows: Sequence[dict[str, Any]], file: pathlib.Path) -> None:
    """Each row as a group of bars, as long as the time over jaxtex's."""
    figures, patches = (importlib.import_module(f"matplotlib.{name}") for name in ("figure", "patches"))
    colours = dict(zip(PEERS, COLOURS))
    timed = [row for row in rows if OURS in row["milliseconds"]]
    titles = len({row["section"] for row in timed})
    lines = titles + sum(len(row["milliseconds"]) + GAP for row in timed)
    height = LINE * lines + TOP + BOTTOM
    figure = figures.Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((LEFT, BOTTOM / height, 0.98 - LEFT, 1 - (TOP + BOTTOM) / height))
    label = functools.partial(axes.text, ha="right", va="center")
    top, section = 0.0, None
    for row in timed:
        if row["section"] != section:
            section = row["section"]
            label(-0.03, top, section, fontsize=9, fontweight="bold")
            top += 1
        times = row["milliseconds"]
        label(-0.03, top + (len(times) - 1) / 2, row["name"], fontsize=8)
        for name, ms in times.items():
            length = min(ms / times[OURS], LONGEST)
            axes.barh(top, length, height=0.9, color=colours[name])
            axes.text(length + 0.02, top, f"{ms:.3g} ms" if name == OURS else f"{ms:.3g}", va="center", fontsize=7)
            top += 1
        top += GAP
    axes.axvline(1, color="#a0a0a0", linewidth=0.6, zorder=0)
    axes.set(xlim=(0, LONGEST + 0.35), ylim=(top - GAP - 0.4, -0.8), yticks=[])
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    seen = [name for name in PEERS if any(name in row["milliseconds"] for row in timed)]
    figure.legend(
        handles=[patches.Patch(color=colours[name], label=name) for name in seen],
        ncols=len(seen),
        loc="upper center",
        fontsize=8,
        frameon=False,
        title="time over jaxtex's (longer is slower); milliseconds at the bars",
        title_fontsize=9,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    image = Image.open(buffer).convert("RGB")
    image.quantize(PALETTE, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__)
    parser.add_argument("results", type=pathlib.Path, help="what --json wrote")
    parser.add_argument("picture", type=pathlib.Path, help="the PNG file to write")
    options = parser.parse_args()
    if not available():
        raise SystemExit("this needs matplotlib, which is not installed; it comes with the extra bench")
    draw(json.loads(options.results.read_text())["rows"], options.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
