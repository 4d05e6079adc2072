"""The benchmarks measure what they say: a run from end to end, in small."""

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

    def wrong(work):
        """jaxtex once more, with its results changed."""
        run = peers.PEERS["jaxtex"](work)
        return protocol.Run(run.start, run.wait, lambda result: run.arrays(result) + 0.1)

    def broken(work):
        raise OSError("no such\ndevice")

    for name in ("torch", "OpenCV"):
        monkeypatch.delitem(peers.PEERS, name)
    for name, peer in {"wrong": wrong, "broken": broken, "idle": lambda work: None}.items():
        monkeypatch.setitem(peers.PEERS, name, peer)
    file = tmp_path / "results.json"
    arguments = ["--size", "64", "--seconds", "0", "--only", READS, "--json", str(file)]
    assert module("__main__").main(arguments) == 0

    found = json.loads(file.read_text())
    assert found["environment"]["jax"] == jax.__version__
    assert [row["name"] for row in found["rows"]] == ["read 2D, 64x64, C=1", "read 2D, 64x64, C=4"]
    for row, channels in zip(found["rows"], (1, 4), strict=True):
        assert row["bytes"] == 64 * 64 * 4 * (2 * channels + 2)
        assert {"jaxtex", "copy", "map_coordinates"} <= row["milliseconds"].keys()
        assert min(row["milliseconds"].values()) > 0
        assert not row["milliseconds"].keys() & {"wrong", "broken", "idle"}
        assert row["problems"].keys() == {"wrong", "broken"}
        assert row["problems"]["wrong"].startswith("differs from jaxtex")
        assert row["problems"]["broken"] == "OSError: no such device"


@pytest.mark.slow
def test_rows_of_workloads_and_of_partitioned_programs(module, capsys, monkeypatch):
    workloads, partition = module("workloads"), module("partition")
    assert len({work.name for work in workloads.WORKLOADS}) == 35
    monkeypatch.setattr("sys.argv", ["workloads", "--small", "--seconds", "0", "--only", "triplane$|lookup$"])
    assert workloads.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines if " forward " in line or " gradients " in line] == [
        *("RAFT correlation lookup",) * 2,
        *("triplane",) * 2,
    ]
    if jax.device_count() > 1:
        mesh = jax.make_mesh((2,), ("devices",), devices=jax.devices()[:2], axis_types=(jax.sharding.AxisType.Auto,))
        made = [make() for make in partition.programs(16, 2, 4)]
        found = {made[k].name: partition.line(made[k].name, partition.figures(made[k], mesh, 0.0)) for k in (0, 2)}
        assert found["read 16x16, C=4"].endswith("none")
        assert "all-reduce" in found["splat 16x16, C=1"]
