"""Bars: times on several devices over those on one, and what bounds them."""

import importlib
import pathlib

from ..picture import DPI, WIDTH, save
from .comparison import Found, Pair, pairs

LINE = 26  # pixels a bar
TOP, BOTTOM = 70, 46  # pixels around the bars
LEFT = 0.56  # of the width, for names
COLORS = {"strong": "#7ba0c9", "weak": "#8fcdb6"}
MARKS = {"memory": "#d95f02", "link": "#7570b3"}


def draw(found: Found, file: pathlib.Path) -> None:
    """A bar for each work, function and number of devices; strong scaling first."""
    figures, lines, patches = (importlib.import_module(f"matplotlib.{name}") for name in ("figure", "lines", "patches"))
    rows = [(scaling, pair) for scaling in COLORS for pair in pairs(found, scaling) if not pair.problem]
    height = LINE * len(rows) + TOP + BOTTOM
    figure = figures.Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes((LEFT, BOTTOM / height, 0.97 - LEFT, 1 - (TOP + BOTTOM) / height))
    for at, (scaling, pair) in enumerate(rows):
        row(axes, at, scaling, pair)
    axes.axvline(1, color="black", linewidth=0.8)
    most = max((max(pair.ratio, pair.link_ms / pair.one["milliseconds"]) for _, pair in rows), default=1.0)
    names = [f"{pair.name}, on {pair.devices}".replace("`", "") for _, pair in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set(xlim=(0, 1.12 * max(most, 1.0)), ylim=(len(rows) - 0.4, -0.6))
    axes.set_xlabel("time over that on one device", fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    marks = [
        lines.Line2D(
            [],
            [],
            color=color,
            marker="|",
            linestyle="",
            markersize=12,
            markeredgewidth=3,
            label=f"at least, by {name}",
        )
        for name, color in MARKS.items()
    ]
    best = lines.Line2D([], [], color="black", linestyle=":", label="the best that is possible")
    figure.legend(
        handles=[
            *(patches.Patch(color=color, label=f"{name} scaling") for name, color in COLORS.items()),
            best,
            *marks,
        ],
        ncols=5,
        loc="upper center",
        fontsize=8,
        frameon=False,
        title="time on several devices (the number behind a name) over that on one; their milliseconds at the bars",
        title_fontsize=9,
    )
    save(figure, file)


def row(axes, at: int, scaling: str, pair: Pair) -> None:
    """A bar, the ratio of perfect scaling, and the times by memory and by the link, all over the time of one device."""
    one = pair.one["milliseconds"]
    axes.barh(at, pair.ratio, height=0.7, color=COLORS[scaling])
    right = max(pair.ratio, pair.memory_ms / one, pair.link_ms / one)
    axes.text(right, at, f"  {pair.several['milliseconds']:.3g} ms", va="center", fontsize=7)
    ideal = 1 / pair.devices if scaling == "strong" else 1.0
    axes.plot((ideal, ideal), (at - 0.45, at + 0.45), color="black", linestyle=":", linewidth=1)
    for name, value in (("memory", pair.memory_ms), ("link", pair.link_ms)):
        axes.plot((value / one, value / one), (at - 0.35, at + 0.35), color=MARKS[name], linewidth=3)
