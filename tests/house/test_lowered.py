"""The comparison of programs finds what differs between two commits, and nothing else."""

from unittest import mock

import jax
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._tables.filter_kernels import FILTER_KERNELS, MITCHELL, Polynomials
from jaxtex.modes import FilterMode
from tests.lowered.__main__ import main
from tests.lowered.programs import Call, texts_of


def read(filter_mode):
    sampler = jt.Sampler(filter_mode=filter_mode)
    args = np.zeros((7, 2), np.float32), np.zeros(9, np.float32)
    return Call(lambda row, x: jt.sample(jt.texture1d(row), (x,), sampler), args, (0, 1), ("value", "reverse"))


REFUSED = Call(jt.texture2d, (np.zeros((7, 2), np.float32),))
CALLS = {
    "reads/mitchell": read("mitchell"),
    "reads/linear": read("linear"),
    "reads/refused": REFUSED._replace(refusable=True),
}


def test_a_changed_weight_is_found_in_programs_and_kernels_of_its_filter(tmp_path, capsys):
    def run(action, calls=CALLS):
        code = main([f"--{action}", str(tmp_path), "--lines", "0"], calls)
        return code, capsys.readouterr().out.splitlines()

    assert run("write") == (0, ["3 calls, 17 texts: no differences"])
    assert run("compare") == (0, ["3 calls, 17 texts: no differences"])
    (first, *rest), *others = MITCHELL.weights.rows
    changed = MITCHELL._replace(weights=Polynomials(((first + 0.01, *rest), *others)))
    with mock.patch.dict(FILTER_KERNELS, {FilterMode.MITCHELL: lambda options: changed}):
        jax.clear_caches()  # JAX keeps programs by the filter's name
        code, lines = run("compare")
    jax.clear_caches()
    texts = ("value/cpu", "value/cuda/kernel 0", "reverse/cpu", "reverse/cuda/kernel 0", "reverse/cuda/kernel 1")
    assert (code, lines[:-1]) == (1, [f"reads/mitchell: {text}: differs" for text in (*texts, "reverse/arrays")])
    code, lines = run("compare", {"reads/linear": REFUSED, "reads/other": CALLS["reads/linear"]})
    assert (code, lines[0][:44]) == (1, "reads/linear: error: ValueError: texture2d: ")
    assert [line.rpartition(": ")[2] for line in lines[1:-1]] == ["new"] * 8 + ["missing"] * 9


@pytest.mark.slow
def test_a_call_of_each_group_is_lowered():
    from tests.lowered.calls import GROUPS

    for group, calls in GROUPS.items():
        if group not in ("sharded", "partitioned") or jax.device_count() >= 8:
            name, call = next(iter(calls.items()))
            assert texts_of(call if group == "reads" else call._replace(ways=("value",))), name
