"""The benchmarks measure what they say, in a small run from end to end, and pages have the figures of the last run."""

import functools
import importlib
import json
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[2]
READS = r"2D reads: read 2D, 64x64, C=[14]$"

pytestmark = pytest.mark.usefixtures("default_promotion")


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.slow
def test_a_run_writes_every_row(module, monkeypatch, tmp_path):
    peers, protocol = module("peers"), module("peers.protocol")

    def another(change, work):
        """jaxtex once more, with its results changed."""
        run = peers.PEERS["jaxtex"](work)
        return protocol.Run(run.start, run.wait, lambda result: change(run.arrays(result)))

    def broken(work):
        raise OSError("no such\ndevice")

    for name in ("torch", "OpenCV"):
        monkeypatch.delitem(peers.PEERS, name)
    changes = {"equal": lambda a: a, "wrong": lambda a: a + 0.1, "turned": lambda a: a[None]}
    changes["not a number"] = lambda a: a.at[:2].set(float("nan"))
    more = {name: functools.partial(another, change) for name, change in changes.items()}
    for name, peer in {**more, "broken": broken, "idle": lambda work: None}.items():
        monkeypatch.setitem(peers.PEERS, name, peer)
    file = tmp_path / "results.json"
    arguments = ["--size", "64", "--seconds", "0", "--only", READS, "--json", str(file)]
    assert module("__main__").main(arguments) == 0

    found = json.loads(file.read_text())
    assert found["environment"]["jax"] == jax.__version__
    assert [row["name"] for row in found["rows"]] == ["read 2D, 64x64, C=1", "read 2D, 64x64, C=4"]
    for row, channels in zip(found["rows"], (1, 4), strict=True):
        assert row["bytes"] == 64 * 64 * 4 * (2 * channels + 2)
        assert {"jaxtex", "copy", "map_coordinates", "equal"} <= row["milliseconds"].keys()
        assert min(row["milliseconds"].values()) > 0
        wrong = {*changes} - {"equal"}
        assert not row["milliseconds"].keys() & {*wrong, "broken", "idle"}
        assert row["problems"].keys() == {*wrong, "broken"}
        assert all(row["problems"][name].startswith("differs from jaxtex") for name in wrong)
        assert row["problems"]["broken"] == "OSError: no such device"


def test_pages_have_the_figures_of_the_run(module):
    page = module("page")
    run = json.loads(page.RUN.read_text())
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in page.pages()}
    wrong = [name for name, text in texts.items() if page.written(name, text, run) != text]
    assert not wrong, f"run `python -m benchmarks.page`, which writes the figures of {wrong} anew"
    # A different number is found, in a table and in a sentence.
    for name, figure in (("docs/benchmarks.md", "| read 3D, 256³, C=1 | "), ("README.md", "NVIDIA H100 | ")):
        changed = texts[name].replace(figure, f"{figure}9")
        assert page.written(name, changed, run) == texts[name] != changed
