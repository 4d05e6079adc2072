"""The benchmark of several devices: results are compared, bytes counted, and a report made of figures."""

import dataclasses
import importlib
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from tests.house.test_house import default_promotion
from tests.support.tolerances import assert_close

ROOT = Path(__file__).parents[2]
ON_EIGHT = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


@pytest.fixture(autouse=True)
def as_a_reader_runs_them():
    with default_promotion():
        yield


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.scaling.{name}")


@pytest.fixture
def work(module):
    """A work of the small size, with some of its functions."""

    def chosen(name, *functions, **changes):
        (found,) = (work for work in module("works").works("small") if work.name == name)
        functions = {name: found.functions[name] for name in functions}
        return dataclasses.replace(found, functions=functions, **changes)

    return chosen


@pytest.mark.slow
@ON_EIGHT
def test_a_run_compares_times_writes_and_reports(module, work, monkeypatch, capsys, tmp_path):
    main = module("__main__")
    some = [work("rotation", "forward"), work("random", "gradient of texels")]
    monkeypatch.setattr(main, "works", lambda size: some)
    file = tmp_path / "run.json"
    assert main.main(["--size", "small", "--seconds", "0", "--devices", "1", "8", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    found = json.loads(file.read_text())
    assert found["devices"] == jax.device_count()
    assert [(f["work"], f["rows"], f["devices"]) for f in found["rows"]] == [
        *(("rotation", 128, 1), ("rotation", 128, 8), ("rotation", 16, 1)),
        *(("random", 128, 1), ("random", 128, 8)),
    ]
    assert not any(f["problem"] for f in found["rows"])
    for one, all_of_them in (found["rows"][:2], found["rows"][3:]):
        assert_close("reordered", all_of_them["difference"], 0, 1)
        assert all_of_them["results"] * 8 == one["results"]
    # Seven rows go to each neighbor; nothing else does.
    assert found["rows"][1]["sent"] == 2 * 7 * 128 * 4 * 4
    assert "| `rotate` by 3 degrees, 128x128, C=4: forward | 8 |" in shown
    # The file has all that the report needs.
    assert shown.endswith(f"\n{module('report').markdown(found)}\n")


@ON_EIGHT
def test_what_differs_or_fails_is_not_timed(module, work):
    measure = module("measure")

    def wrong_on_several(image, *_):
        cut = any(jax.typeof(image).sharding.spec)
        return image + jnp.where(jnp.arange(len(image)) == 17, jnp.nan if cut else 0.0, 0.0)[:, None, None]

    def impossible(*_):
        raise ValueError("no such\nfunction")

    functions = {"wrong": wrong_on_several, "impossible": impossible}
    changed = dataclasses.replace(work("rotation"), functions=functions, weak=None)
    (one, several), fails = measure.figures(changed, [2], 0.0)
    assert one.milliseconds is not None
    assert several.milliseconds is None
    assert several.problem.startswith("DiffersError: differs from one device by inf")
    assert [figure.problem for figure in fails] == ["ValueError: no such function"] * 2


def test_bytes_of_collectives(module):
    """Started ones return operands and results; branches are not counted; a ring sends a sum twice."""
    text = """
%sent (a: f32[8,4]) -> f32[8,4] {
  ROOT %b = (f32[2,4]{1,0}, f32[2,4]{1,0}, /*index=2*/f32[2,4]{1,0}, f32[2,4]{1,0}) all-to-all(%a, %a, %a, %a)
}

%rarely (a: f32[8,4]) -> f32[8,4] {
  ROOT %c = f32[1024]{0} all-gather(%a)
}

ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %d = ((f32[8,4]{1,0}), f32[8,4]{1,0}) async-start(%p), calls=%sent
  %e = (f16[10]{0}, f16[10]{0}, u32[], u32[]) collective-permute-start(%p), channel_id=1
  %f = ((s8[3]{0}, pred[5]{0}), (s8[12]{0}, pred[20]{0})) all-gather-start(%p, %p), dimensions={0}
  %g = (f32[8]{0}, f32[1]{0}) all-reduce-start(%p, %p), to_apply=%add
  %h = f32[8]{0} all-reduce-done(%g)
  ROOT %i = f32[8,4]{1,0} conditional(%p), branch_computations={%rarely, %never}
}
"""
    sent = module("collectives").bytes_sent(text, 4)
    assert sent == 3 / 4 * 4 * 8 * 4 + 10 * 2 + 3 / 4 * (12 + 20) + 2 * 3 / 4 * 36
