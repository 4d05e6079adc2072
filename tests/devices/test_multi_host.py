"""Two processes train together; one is killed, the other ends and says so, and all goes on from the last checkpoint.

What is claimed of bits holds for the same number of processes. The example takes seconds to import and to compile, so
all processes are forked from one that has imported it, and share what they compile.
"""

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.support.compiling import HOST_DEVICES
from tests.support.tolerances import assert_close

# They take a second to import, which only those processes need that run the tests.
for package in ("orbax", "flax", "optax", "sklearn"):
    if not importlib.util.find_spec(package):
        pytest.skip(f"needs {package}", allow_module_level=True)

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


def environment(compiled):
    """One device for each process, and one thread; what is compiled is kept in a folder."""
    flags = re.sub(rf"--{HOST_DEVICES}=\d+", "", os.environ.get("XLA_FLAGS", ""))
    path = os.pathsep.join([str(EXAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **os.environ,
        "XLA_FLAGS": flags,
        "PYTHONPATH": path,
        "JAX_PLATFORMS": "cpu",
        "NPROC": "1",
        "JAX_ENABLE_COMPILATION_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def two(*arguments, killed, after):
    """The arguments of two processes, of which one is killed after a step."""
    place = "--coordinator", "{coordinator}", "--processes", 2
    return [((*place, "--process", k, *arguments), after if k == killed else None) for k in range(2)]


def run(compiled, *rounds):
    """Exit code, standard output and standard error of each process of each round; rounds run one after the other."""
    orders = [[([*map(str, arguments)], after) for arguments, after in processes] for processes in rounds]
    program = [sys.executable, HERE / "multi_host_processes.py"]
    result = subprocess.run(
        program, input=json.dumps(orders), env=environment(compiled), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


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
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        state = checkpointer.metadata(checkpoint).item_metadata.tree
    leaves = jax.tree.leaves(state, is_leaf=lambda leaf: hasattr(leaf, "sharding"))
    matrices = [leaf for leaf in leaves if len(leaf.shape) == 2]
    assert len(matrices) == 3 * 6
    assert {leaf.sharding.partition_spec for leaf in matrices} == {("devices",)}
    written = [sum(file.stat().st_size for file in checkpoint.glob(f"ocdbt.process_{k}/d/*")) for k in range(2)]
    assert min(written) > 0.4 * sum(written)


@pytest.mark.slow
def test_a_run_that_is_killed_twice_goes_on_with_the_same_losses(tmp_path):
    arguments = "--steps", 7, "--every", 2, "--checkpoints"
    interrupted = *arguments, tmp_path / "interrupted"
    whole, first_killed, second_killed, alone = run(
        tmp_path / "compiled",
        [((*arguments, tmp_path / "whole"), None)],
        two(*interrupted, killed=1, after=5),
        two(*interrupted, killed=0, after=7),
        [(("--processes", 1, *interrupted), None)],
    )

    ((code, whole, error),) = whole
    assert code == 0, error
    expected = losses(whole)
    assert list(expected) == ["2", "4", "6", "7"]
    assert len(set(expected.values())) == 4
    assert "2 processes, 2 devices; from the start" in whole
    assert_cut(tmp_path / "whole" / "7" / "default")

    # The other process waits in a sum over both.
    first, second = first_killed
    assert second[0] == -9, second[2]
    assert_ended_early(first, 0)
    assert losses(first[1]) == {step: expected[step] for step in "24"}

    # Process 0 connects the others.
    first, second = second_killed
    assert first[0] == -9, first[2]
    assert_ended_early(second, 1)
    assert begun(first[1]) == 4
    assert losses(first[1]) == {"6": expected["6"]}

    # One process sums in another order.
    ((code, alone, error),) = alone
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
