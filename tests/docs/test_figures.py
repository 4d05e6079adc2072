"""Figures on pages: those of the run in `benchmarks/h100.json`, and the same number everywhere."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.page")


def test_pages_have_the_figures_of_the_run(page):
    run = json.loads(page.RUN.read_text())
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in page.pages()}
    wrong = [name for name, text in texts.items() if page.written(name, text, run) != text]
    assert not wrong, f"run `python -m benchmarks.page`, which writes the figures of {wrong} anew"
