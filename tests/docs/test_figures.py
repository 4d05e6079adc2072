"""Figures on pages: those of the run in `benchmarks/h100.json`, and the same number everywhere."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = """\
| reads, NVIDIA H100 | jaxtex | PyTorch | over PyTorch | MiB of PyTorch | two CPU cores | target: reached |
|---|---|---|---|---|---|---|
| `read` 64², C=1 / 3 | | | | | 7 | |
| model | | | | | | |
"""
FILLED = """\
| reads, NVIDIA H100 | jaxtex | PyTorch | over PyTorch | MiB of PyTorch | two CPU cores | target: reached |
|---|---|---|---|---|---|---|
| `read` 64², C=1 / 3 | 0.500 / 12.3 | 1.000 / – | 0.50 / – |  | 7 | 0.4 × PyTorch: 0.50, **missed** / – |
| model | 1.000 / 2.000 | 2.000 / 3.000 | 0.50 / 0.67 | 100 / 1,200 |  |  |
"""


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.page")


def test_pages_have_the_figures_of_the_run(page):
    run = json.loads(page.RUN.read_text())
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in page.pages()}
    wrong = [name for name, text in texts.items() if page.written(name, text, run) != text]
    assert not wrong, f"run `python -m benchmarks.page`, which writes the figures of {wrong} anew"
    # A different number is found, in a table and in a sentence.
    for name, figure in (("docs/benchmarks.md", r"| read 3D, 256³, C=1 / 4 | "), ("README.md", "NVIDIA H100 | ")):
        assert page.written(name, texts[name].replace(figure, f"{figure}9"), run) == texts[name]


def test_a_table_takes_the_rows_that_its_labels_name(page, tmp_path):
    missed = {"peer": "torch", "ratio": 0.4, "reached": 0.5}
    of_model = lambda what, ms, mib: {
        "name": f"model, {what}",
        "milliseconds": {"jaxtex": ms, "torch": ms + 1},
        "MiB": {"inputs": 1.0, "results": 1.0, "temporary": 1.0, "peak of torch": mib},
    }
    programs = (
        [
            {"name": "read 64x64, C=1", "milliseconds": {"jaxtex": 0.5, "torch": 1.000004}, "targets": [missed]},
            {"name": "read 64x64, C=1", "milliseconds": {"jaxtex": 0.5, "torch": 1.000004}, "targets": []},
        ],
        [
            {"name": "read 64x64, C=3", "milliseconds": {"jaxtex": 12.34}},
            *(of_model("forward", 1.0, 100.0), of_model("gradients", 2.0, 1200.0)),
        ],
    )
    files = [tmp_path / f"{k}.json" for k in range(2)]
    for file, rows in zip(files, programs, strict=True):
        file.write_text(json.dumps({"environment": {"device": "made up"}, "rows": rows}))
    rows = {row["name"]: row for row in page.merged(files)["rows"]}
    assert list(rows) == ["read 64², C=1", "read 64², C=3", "model, forward", "model, gradients"]
    assert rows["read 64², C=1"]["milliseconds"]["torch"] == 1.0
    assert page.filled(TABLE, rows) == FILLED
    with pytest.raises(SystemExit, match="no row 'read 64², C=2, forward'"):
        page.filled(TABLE.replace("1 / 3", "1 / 2"), {"read 64², C=1": {}})
    files[1].write_text(json.dumps({"environment": {"device": "another"}, "rows": []}))
    with pytest.raises(SystemExit, match="of another environment"):
        page.merged(files)


def test_powers_are_short(page):
    assert page.short("splat 2D, 4096x4096 into 64x64, C=4") == "splat 2D, 4096² into 64², C=4"
    assert page.short("zoom 256^3, of 256x256x256") == "zoom 256³, of 256³"
    assert page.short("triplane 512x512x32, 64x56x56x4x16") == "triplane 512x512x32, 64x56x56x4x16"
