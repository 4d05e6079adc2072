"""The benchmarks measure what they say: a run from end to end, in small."""

import importlib
import json
from pathlib import Path

import jax
import numpy as np
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

    def another(change):
        """jaxtex once more, with its results changed."""

        def peer(work):
            run = peers.PEERS["jaxtex"](work)
            return protocol.Run(run.start, run.wait, lambda result: change(run.arrays(result)))

        return peer

    def broken(work):
        raise OSError("no such\ndevice")

    for name in ("torch", "OpenCV"):
        monkeypatch.delitem(peers.PEERS, name)
    more = {
        "equal": another(lambda a: a),
        "wrong": another(lambda a: a + 0.1),
        "not a number": another(lambda a: a.at[:2].set(float("nan"))),
        "turned": another(lambda a: a[None]),
        "broken": broken,
        "idle": lambda work: None,
    }
    for name, peer in more.items():
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
        assert not row["milliseconds"].keys() & {"wrong", "not a number", "turned", "broken", "idle"}
        problems = row["problems"]
        assert problems.keys() == {"wrong", "not a number", "turned", "broken"}
        assert all(problems[name].startswith("differs from jaxtex") for name in problems if name != "broken")
        assert problems["broken"] == "OSError: no such device"


@pytest.mark.slow
def test_workloads_are_what_they_say(module, capsys, monkeypatch):
    """A lookup by RAFT and a dense grid against the texels themselves; then rows of both."""
    workloads = module("workloads")
    by_name = {work.name: work for work in workloads.WORKLOADS}
    assert len(by_name) == 35
    raft = by_name["RAFT correlation lookup"]
    (*volumes, coords), _ = workloads.prepared(raft, raft.small)
    whole = (*volumes, np.broadcast_to(np.float32([5, 4]), coords.shape))
    found = raft.ours(*whole, **raft.small).reshape(8, 12, 2, 5, 5)
    for k, volume in enumerate(volumes):
        window = np.pad(volume.reshape(96, *volume.shape[3:]), ((0, 0), (8, 8), (8, 8)))
        between = (window[:, 8:13, 8:13] + window[:, 8:13, 9:14]) / 2
        expected = between if k else window[:, 10:15, 11:16]
        # Rows of offsets go to x.
        np.testing.assert_array_equal(found[:, :, k], np.swapaxes(expected, -1, -2).reshape(8, 12, 5, 5))
    monkeypatch.setattr("sys.argv", ["workloads", "--small", "--seconds", "0", "--only", "triplane$|lookup$"])
    assert workloads.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines if " forward " in line or " gradients " in line] == [
        *("RAFT correlation lookup",) * 2,
        *("triplane",) * 2,
    ]


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_partitioned_programs_are_those_of_one_device(module):
    partition = module("partition")
    mesh = jax.make_mesh((2,), ("devices",), devices=jax.devices()[:2], axis_types=(jax.sharding.AxisType.Auto,))
    made = [make() for make in partition.programs(16, 2, 4)]
    assert len({program.name for program in made}) == 8
    found = {made[k].name: partition.figures(made[k], mesh, 0.0) for k in (0, 2)}
    lines = {name: partition.line(name, figures) for name, figures in found.items()}
    assert lines["read 16x16, C=4"].endswith("none")
    assert "all-reduce" in lines["splat 16x16, C=1"]
