"""The comparison of programs finds what differs between two commits, and nothing else."""

import contextlib
from unittest import mock

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._tables.filter_kernels import FILTER_KERNELS, MITCHELL, Polynomials
from jaxtex.modes import FilterMode
from tests.lowered import programs
from tests.lowered.comparison import main
from tests.lowered.programs import Call

ROW, PLACES = np.zeros((7, 2), np.float32), np.zeros(9, np.float32)


def read(filter_mode):
    sampler = jt.Sampler(filter_mode=filter_mode)
    return Call(lambda row, x: jt.sample(jt.texture1d(row), (x,), sampler), (ROW, PLACES), (0, 1), ("value", "reverse"))


def refused(row):
    return jt.texture2d(row)


CALLS = {
    "reads/mitchell": read("mitchell"),
    "reads/linear": read("linear"),
    "reads/refused": Call(refused, (ROW,), refusable=True),
}


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command; returns its exit code and what it prints."""

    def run(action, calls, *more):
        code = main([f"--{action}", str(tmp_path), *more], calls)
        return code, capsys.readouterr().out

    return run


@contextlib.contextmanager
def with_another_weight():
    """Meanwhile one coefficient of one tap of a filter is another one. JAX keeps programs by the filter's name."""
    (first, *rest), *others = MITCHELL.weights.rows
    changed = MITCHELL._replace(weights=Polynomials(((first + 0.01, *rest), *others)))
    with mock.patch.dict(FILTER_KERNELS, {FilterMode.MITCHELL: lambda options: changed}):
        jax.clear_caches()
        yield
    jax.clear_caches()


def test_a_changed_weight_is_found(run):
    """In the programs for each device, and in the kernels; the same calls without it have the same texts."""
    code, printed = run("write", CALLS)
    assert code == 0
    assert printed.startswith("3 calls, 17 texts (6 of kernels, ")
    code, printed = run("compare", CALLS)
    assert (code, printed.count("\n")) == (0, 1)
    assert printed.endswith(" s: no difference\n")
    with with_another_weight():
        code, printed = run("compare", CALLS, "--lines", "5")
    assert code == 1
    differing = [line.split(": ")[:2] for line in printed.splitlines() if line.endswith(": differs")]
    texts = ("value/cpu", "value/cuda/kernel 0", "reverse/cpu", "reverse/cuda/kernel 0", "reverse/cuda/kernel 1")
    assert differing == [["reads/mitchell", text] for text in (*texts, "reverse/arrays")]
    assert "    and " in printed
    assert printed.endswith(" s: 6 differ\n")


def test_lost_and_new_calls_and_errors_are_found(run):
    names = ("reads/linear", "reads/refused")
    one, other = ({name: CALLS[name]} for name in names)
    assert run("write", one)[0] == 0
    code, printed = run("compare", other)
    assert code == 1
    assert printed.endswith(": 8 missing, 1 new\n")
    broken = {"reads/linear": Call(refused, (ROW,))}
    assert run("compare", broken)[1].splitlines()[0] == "reads/linear: error: error"
    code, printed = run("write", broken)
    assert (code, printed.splitlines()[-1].rpartition(": ")[2]) == (1, "1 errors")
    assert run("compare", one)[1].endswith(": 8 new\n")


def test_names_of_private_functions_are_no_part_of_a_program():
    text = 'call @{0}(%0) : () call @main() call @{0}_1() {{texture_call = "{1}"}}\n'
    text += 'func.func private @{0}(%0) func.func private @{0}_1(%0) {{backend_config = "{2}", texture_call = "{1}"}}'
    one, other = (programs.without_names(text.format(*names)) for names in (("a", "b1", 123456), ("c.d", "e2", 654321)))
    assert one == other
    assert one.startswith('call @0(%0) : () call @main() call @1() {texture_call = "0"}')


@pytest.mark.slow
def test_a_call_of_each_group_is_lowered():
    from tests.lowered.battery import GROUPS

    for group, calls in GROUPS.items():
        if group not in ("sharded", "automatic") or jax.device_count() >= 8:
            name, call = next(iter(calls.items()))
            assert programs.texts_of(call if group == "reads" else call._replace(ways=("value",))), name
