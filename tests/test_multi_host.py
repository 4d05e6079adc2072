"""Two processes train together; one is killed, the other ends and says so, and all goes on from the last checkpoint.

What is claimed of bits holds for the same number of processes. Processes take seconds to start, so each run here shows
as much as it can.
"""

import importlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from compiling import HOST_DEVICES
from tolerances import assert_close

ocp = pytest.importorskip("orbax.checkpoint")
for package in ("flax", "optax", "sklearn"):
    pytest.importorskip(package)

EXAMPLES = Path(__file__).parent.parent / "examples"
# A process that hangs is killed at last; nothing else depends on how long anything takes.
HUNG = 600
# Runs the example, and kills its process after a step, when the checkpoint before it is complete.
KILLED = """
import os, signal, sys
import multi_host

last = int(sys.argv[1])
manager = multi_host.ocp.CheckpointManager
reached_preemption = manager.reached_preemption

def after(self, step):
    if step == last:
        self.wait_until_finished()
        os.kill(os.getpid(), signal.SIGKILL)
    return reached_preemption(self, step)

manager.reached_preemption = after
multi_host.main(sys.argv[2:])
"""


def environment():
    """One device for each process, and one thread."""
    flags = re.sub(rf"--{HOST_DEVICES}=\d+", "", os.environ.get("XLA_FLAGS", ""))
    path = os.pathsep.join([str(EXAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "NPROC": "1"}


def start(*arguments, killed_after=None):
    program = [EXAMPLES / "multi_host.py"] if killed_after is None else ["-c", KILLED, killed_after]
    command = [sys.executable, *map(str, (*program, *arguments))]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(*processes):
    """Exit code, standard output and standard error of each."""
    try:
        output = [process.communicate(timeout=HUNG) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *streams) for process, streams in zip(processes, output)]


def run_two(killed, after, *arguments):
    """Two processes, of which one is killed after a step."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = "--coordinator", f"127.0.0.1:{free.getsockname()[1]}", "--processes", 2
    return ended(
        *(start(*place, "--process", k, *arguments, killed_after=after if k == killed else None) for k in range(2))
    )


def losses(output):
    """From step to the mean loss since the line before, with all digits of a float32."""
    return dict(re.findall(r"^step (\d+): loss (\S+),", output, re.MULTILINE))


def begun(output):
    return int(re.search(r"; going on after step (\d+),", output)[1])


def assert_ended_early(result, process):
    code, _, error = result
    assert code not in (0, None), error
    # JAX, which ends the process too, may write a line after it.
    said = f"multi_host.py: process {process} of 2 ended early: "
    assert sum(line.startswith(said) for line in error.splitlines()) == 1, error


def assert_cut(checkpoint):
    """All matrices are cut over the devices of both processes, and both have written."""
    with ocp.StandardCheckpointer() as checkpointer:
        state = checkpointer.metadata(checkpoint).item_metadata.tree
    leaves = jax.tree.leaves(state, is_leaf=lambda leaf: hasattr(leaf, "sharding"))
    matrices = [leaf for leaf in leaves if len(leaf.shape) == 2]
    assert len(matrices) == 3 * 6
    assert {leaf.sharding.partition_spec for leaf in matrices} == {("devices",)}
    written = [sum(file.stat().st_size for file in checkpoint.glob(f"ocdbt.process_{k}/d/*")) for k in range(2)]
    assert min(written) > 0.4 * sum(written)


def test_a_run_that_is_killed_twice_goes_on_with_the_same_losses(tmp_path):
    arguments = "--steps", 7, "--every", 2, "--checkpoints"
    ((code, whole, error),) = ended(start(*arguments, tmp_path / "whole"))
    assert code == 0, error
    expected = losses(whole)
    assert list(expected) == ["2", "4", "6", "7"]
    assert len(set(expected.values())) == 4
    assert "2 processes, 2 devices; from the start" in whole
    assert_cut(tmp_path / "whole" / "7" / "default")

    # The other process waits in a sum over both.
    arguments = *arguments, tmp_path / "interrupted"
    first, second = run_two(1, 5, *arguments)
    assert second[0] == -9, second[2]
    assert_ended_early(first, 0)
    assert losses(first[1]) == {step: expected[step] for step in "24"}

    # Process 0 connects the others.
    first, second = run_two(0, 7, *arguments)
    assert first[0] == -9, first[2]
    assert_ended_early(second, 1)
    assert begun(first[1]) == 4
    assert losses(first[1]) == {"6": expected["6"]}

    # One process sums in another order.
    ((code, alone, error),) = ended(start("--processes", 1, *arguments))
    assert code == 0, error
    assert "1 processes, 1 devices" in alone
    assert begun(alone) == 6
    assert list(losses(alone)) == ["7"]
    assert_close("sum", np.float32(losses(alone)["7"]), np.float32(expected["7"]), 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--process", "1"), "need each other"),
        (("--coordinator", "localhost:1234", "--process", "1"), "need each other"),
        (("--every", "0"), "at least 1"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, said, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    with pytest.raises(SystemExit):
        importlib.import_module("multi_host").main(arguments)
    assert said in capsys.readouterr().err
