"""`python -m benchmarks.page [FILES]`: writes the figures of a run into the pages of the documentation.

FILES, which `--json` of each program wrote on one machine, become `benchmarks/h100.json` first. Three places of a page
have figures: tables whose first title names the device, sentences that docs/figures.toml lists, and the section of
docs/scaling.md that starts with "Environment". In a table, the first column names rows, and titles name libraries.
"""

import argparse
import json
import pathlib
import re
import tomllib
from typing import Any

from . import picture
from .measure import OURS
from .scaling.report import markdown

ROOT = pathlib.Path(__file__).parents[1]
RUN, FIGURES = ROOT / "benchmarks" / "h100.json", ROOT / "docs" / "figures.toml"
PICTURE = ROOT / "docs" / "images" / "benchmarks.png"
DEVICE = "NVIDIA H100"
TABLE = re.compile(rf"^\| [^|\n]*{DEVICE}[^|\n]* \|.*\n\|[-|]+\n(?:\|.*\n)+", re.MULTILINE)
MEASURED = re.compile(r"^Environment: .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
VERSIONS = re.compile(r"^Versions: .*?\n(?=\n)", re.MULTILINE | re.DOTALL)
CHOICES = re.compile(r"[\w²³]+(?:,\d+)*(?: / [\w²³]+(?:,\d+)*)+")
NUMBER = r"(\d[\d,]*(?:\.\d+)?)(?!\d|\.\d)"
KEPT = ("milliseconds", "MiB", "share_of_copy", "targets")
# Titles of columns, and what they are in a run.
NAMES = {
    "`map_coordinates`": "map_coordinates",
    "CuPy": "cupy",
    "MONAI": "monai",
    "PyTorch": "torch",
    "default": "by default",
    "float": "by default",
    "hardware": "jaxtex",
    "at once": "at[].add, at once",
    **{mode: f"surfaces, {mode}" for mode in ("clamp", "zero", "trap")},
    **{f"{mode}, in full": f"surfaces, {mode}, x and y in full" for mode in ("clamp", "zero", "trap")},
    "tap by tap": "at[].add, tap by tap",
    "temporaries": "temporary",
    "the process's peak": "peak",
    "their kernels": "tinycudann|DCNv4|alt_cuda_corr|nanodrr",
    "vmap": "vmap(jacfwd)|vmap(hessian)",
    "with gradients": "gradients",
}
KERNELS = ("MONAI", "jitfields", "their kernels")  # the aim is to be as fast
# The rows of the picture, and what is drawn of them.
DRAWN = re.compile(
    r"^(read|gradients) (2D, 4096²|3D, 256³), C=[14](, random coordinates)?$|^read 2D, 4096², C=4, hardware$"
    r"|^splat 2D, 4096² into 256², C=4$|affine$"
)
Row = dict[str, Any]


def short(name: str) -> str:
    """A name with powers in place of products: 4096² of 4096x4096 or 4096^2."""
    square = re.sub(r"(?<![\dx])(\d+)((?:x\1){1,2})(?![\dx])", lambda m: f"{m[1]}^{1 + m[2].count('x')}", name)
    return square.replace("^2", "²").replace("^3", "³")


def merged(files: list[pathlib.Path]) -> dict[str, Any]:
    """The figures of all programs, with five digits: rows by name, and those of several devices by themselves."""
    found: dict[str, Any] = {}
    rows: dict[str, Row] = {}
    for file in files:
        run = json.loads(file.read_text(), parse_float=lambda number: float(f"{float(number):.5g}"))
        if found.setdefault("environment", run["environment"]) != run["environment"]:
            raise SystemExit(f"{file} is of another environment: {run['environment']}")
        if "works" in run:
            found["scaling"] = run
            continue
        for row in run["rows"]:
            kept = {key: row[key] for key in KEPT if row.get(key)}
            rows[short(row["name"])] = rows.get(short(row["name"]), {}) | kept
    return found | {"rows": [{"name": name, **row} for name, row in rows.items()]}


def chosen(label: str, rows: dict[str, Row]) -> list[Row]:
    """The rows that a label stands for: "C=1 / 4" for two; the name of a model for its result and its gradients."""
    label, choices = label.replace("`", ""), CHOICES.search(label.replace("`", ""))
    names = [label.replace(choices[0], one) for one in choices[0].split(" / ")] if choices else [label]
    both = lambda name: (name,) if name in rows else (f"{name}, forward", f"{name}, gradients")
    names = [each for name in names for each in both(name)]
    if missing := [name for name in names if name not in rows]:
        raise SystemExit(f"the run has no row {missing[0]!r}, which the label {label!r} stands for")
    return [rows[name] for name in names]


def time(row: Row, title: str) -> float | None:
    found = row.get("milliseconds", {})
    return next((found[name] for name in NAMES.get(title, title).split("|") if name in found), None)


def memory(row: Row, what: str) -> str:
    """MiB of a part of our program or of all of it, or at the peak of another library."""
    held = {name.removeprefix("peak of "): mib for name, mib in row.get("MiB", {}).items()}
    if what == OURS:
        return f"{sum(held[part] for part in ('inputs', 'results', 'temporary')):,.0f}"
    found = held.get(NAMES.get(what, what), "")
    return found if isinstance(found, str) else f"{found:,.0f}"


def marked(reached: float, aim: float | None) -> str:
    return f"{reached:.2f}" + (", **missed**" if aim is not None and reached > aim else "")


def figure(row: Row, title: str) -> str:
    """What a row has in a column: a time, a time "over" another one, "MiB" of something, a share of a copy's speed."""
    above, over, below = f" {title}".rpartition(" over ")
    if over:
        a, b = time(row, above.strip() or OURS), time(row, below)
        return marked(a / b, 1 if below in KERNELS else None) if a and b else ""
    if title.startswith("MiB"):
        return memory(row, title.partition(" of ")[2] or OURS)
    if title == "of a copy":
        return f"{row['share_of_copy']:.0%}" if "share_of_copy" in row else ""
    ms = time(row, title)
    return "" if ms is None else f"{ms:,.{3 if ms < 10 else 1 if ms < 100 else 0}f}"


def verdicts(rows: list[Row]) -> str:
    """Each aim and what was reached: 1.2 / 1 × texture unit: 0.88 / 0.92."""
    found = [{t["peer"]: t for t in row.get("targets", ()) if t["reached"] is not None} for row in rows]
    parts = []
    for peer in dict.fromkeys(peer for some in found for peer in some):
        aims = [f"{some[peer]['ratio']:g}" for some in found if peer in some]
        name = next((title for title, key in NAMES.items() if key == peer), peer)
        reached = (marked(some[peer]["reached"], some[peer]["ratio"]) if peer in some else "–" for some in found)
        parts.append(f"{' / '.join(aims if len(set(aims)) > 1 else aims[:1])} × {name}: {' / '.join(reached)}")
    return "; ".join(parts)


def cell(rows: list[Row], title: str) -> str:
    if title == "target: reached":
        return verdicts(rows)
    found = [figure(row, title) for row in rows]
    return " / ".join(one or "–" for one in found) if any(found) else ""


def filled(table: str, rows: dict[str, Row]) -> str:
    """A table with the figures of its rows. Columns of a CPU stay."""
    head, rule, *body = table.splitlines()
    titles = [title.strip() for title in head.split("|")[2:-1]]
    lines = [head, rule]
    for line in body:
        label, *old = (text.strip() for text in line.split("|")[1:-1])
        some = chosen(label, rows)
        new = (was if "CPU" in title else cell(some, title) for title, was in zip(titles, old, strict=True))
        lines.append(f"| {' | '.join([label, *new])} |")
    return "\n".join(lines) + "\n"


def quotes(text: str, pattern: str, number: str) -> str:
    """The text with a number where the pattern has {}."""
    place = re.compile(pattern.replace("{}", NUMBER), re.MULTILINE)
    if not place.search(text):
        raise SystemExit(f"no place {pattern!r}: change it in {FIGURES.name}")
    return place.sub(lambda m: m[0][: m.start(1) - m.start()] + number + m[0][m.end(1) - m.start() :], text)


def written(page: str, text: str, run: dict[str, Any]) -> str:
    """A page, by its path, with the figures of the run."""
    rows = {row["name"]: row for row in run["rows"]}
    versions = ", ".join(f"{name} {version}" for name, version in run["environment"].items())
    text = VERSIONS.sub(lambda _: f"Versions: {versions}.\n", TABLE.sub(lambda m: filled(m[0], rows), text))
    text = MEASURED.sub(lambda _: markdown(run["scaling"]) + "\n\n", text)
    for quoted in tomllib.loads(FIGURES.read_text()).values():
        number = quoted.get("value") or figure(rows[quoted["row"]], quoted.get("column", OURS))
        for place, pattern in quoted["places"]:
            text = quotes(text, pattern, number) if place == page else text
    return text


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="what --json wrote")
    if files := parser.parse_args().files:
        # A row is a line.
        RUN.write_text(re.sub(r' (?=\{"name")', "\n", json.dumps(merged(files), ensure_ascii=False)) + "\n")
    run = json.loads(RUN.read_text())
    for page in pages():
        old = page.read_text()
        if (new := written(str(page.relative_to(ROOT)), old, run)) != old:
            page.write_text(new)
    if files and picture.available():
        others = lambda row: {
            name: ms for name, ms in row["milliseconds"].items() if name not in ("copy", "by default")
        }
        drawn = [row | {"milliseconds": others(row)} for row in run["rows"] if DRAWN.search(row["name"])]
        picture.draw(drawn, PICTURE, run["environment"]["device"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
