"""Times of a run as dots: `python -m benchmarks.picture results.json times.png`, or `--picture` of the run itself.

That of docs/benchmarks.md is drawn by `python -m benchmarks.page`.
"""

import argparse
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

WIDTH, DPI = 1000, 100  # pixels, and pixels an inch
ROW = 42  # pixels a row
TOP, BOTTOM = 96, 48  # pixels around the rows
LEFT = 0.47  # of the width, for names
TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
INK, RULE = "#1f4e79", "#dddddd"
# A shape and a color for each library, so that the picture can be read without colors.
MARKS = {
    "by default": ("P", "#1f4e79"),
    "copy": ("|", "#8c8c8c"),
    "texture unit": ("D", "#d95f02"),
    "Warp": ("<", "#66a61e"),
    "cuCIM": ("*", "#666666"),
    "nvdiffrast": ("o", "#7570b3"),
    "Dr.Jit": ("s", "#1b9e77"),
    "torch": ("^", "#e6ab02"),
    "OpenCV": ("v", "#a6761d"),
    "map_coordinates": ("X", "#e7298a"),
}
# Names for those who have not read the tables.
LABELS = {
    "by default": "jaxtex with its default options",
    "copy": "a copy of the output",
    "texture unit": "texture unit (CuPy)",
    "torch": "PyTorch",
    "map_coordinates": "JAX's map_coordinates",
}
PEERS_APART = 0.45  # of a row: equal times do not cover each other
PALETTE = 64


def available() -> bool:
    """Whether there is something to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(rows: Sequence[dict[str, Any]], file: pathlib.Path, device: str = "") -> None:
    """Each row as dots on a line: the time of each other library over jaxtex's, on a logarithmic axis."""
    figures, ticker = (importlib.import_module(f"matplotlib.{name}") for name in ("figure", "ticker"))
    timed = [row for row in rows if len(others(row)) and OURS in row["milliseconds"]]
    height = ROW * len(timed) + TOP + BOTTOM
    figure = figures.Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((LEFT, BOTTOM / height, 0.97 - LEFT, 1 - (TOP + BOTTOM) / height))
    ratios = [ms / row["milliseconds"][OURS] for row in timed for ms in others(row).values()]
    low, high = min(0.5, min(ratios) / 1.3), max(2.0, max(ratios) * 1.3)
    axes.axvline(1, color=INK, linewidth=2)
    for place, row in enumerate(timed):
        axes.axhline(place, color=RULE, linewidth=1, zorder=0)
        ours = row["milliseconds"][OURS]
        words = f"{row['name']}\n"
        axes.text(low * 0.95, place, words, ha="right", va="center", fontsize=10.5)
        axes.text(low * 0.95, place, f"\njaxtex {ours:.3f} ms", ha="right", va="center", fontsize=10.5, color=INK)
    seen = [name for name in PEERS if name != OURS and any(name in others(row) for row in timed)]
    for name in seen:
        found = [(row["milliseconds"][OURS], place, others(row).get(name)) for place, row in enumerate(timed)]
        aside = (PEERS_APART * (seen.index(name) - (len(seen) - 1) / 2)) / max(len(seen) - 1, 1)
        xs, ys = zip(*((ms / ours, place + aside) for ours, place, ms in found if ms is not None))
        mark, color = MARKS[name]
        axes.plot(xs, ys, mark, color=color, markersize=8, alpha=0.9, label=LABELS.get(name, name), clip_on=False)
    axes.set(xscale="log", xlim=(low, high), ylim=(len(timed) - 0.4, -0.6), yticks=[])
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g} ×" for tick in ticks], fontsize=10.5)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("left of the line is faster than jaxtex, right of it slower", fontsize=10.5)
    figure.text(
        0.5,
        1 - 18 / height,
        f"Time of each library over jaxtex's{f', on one {device}' if device else ''}",
        fontsize=13,
        ha="center",
    )
    box = (0.5, 1 - 28 / height)
    figure.legend(ncols=4, loc="upper center", bbox_to_anchor=box, fontsize=10.5, frameon=False, handletextpad=0.2)
    save(figure, file)


def save(figure: Any, file: pathlib.Path) -> None:
    """Writes a figure as a PNG file of few colors."""
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
    results = json.loads(options.results.read_text())
    rows = {row["name"]: row for row in results["rows"]}
    chosen = [row for name, row in rows.items() if re.search(options.only, name)]
    draw(chosen, options.picture, results["environment"]["device"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
