"""The faults of `table.py` fit the sources, and the runner tells a fault that is found from one that is not."""

import subprocess

import pytest

from tests.faults import __main__ as mutations
from tests.faults.table import FAULTS, Fault


def test_every_fault_has_a_place_and_tests():
    for name, fault in FAULTS.items():
        text = (mutations.ROOT / fault.path).read_text()
        assert text.count(fault.old) == 1, f"{name}: mend the fault, its text occurs {text.count(fault.old)} times"
        assert fault.new != fault.old, name
        assert len([*mutations.ROOT.glob(f"tests/**/{fault.tests}")]) == 1, name


@pytest.fixture
def tree(tmp_path):
    """A package of one line."""
    for folder in ("jaxtex", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "jaxtex" / "one.py").write_text("one = 1\n")
    (tmp_path / "tests" / "test_one.py").touch()
    return tmp_path


ENDS = {
    "found": (1, "F\nFAILED tests/test_one.py::test_one - assert 1\n", "test_one.py::test_one"),
    "crashed": (-11, ".", "SIGSEGV"),
    "not found": (0, ". [100%]\n", None),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_fault_is_found_or_not(tree, monkeypatch, end):
    code, printed, expected = ENDS[end]

    def run(command, cwd, **options):
        assert command[-3:] == ["tests/test_one.py", "-k", "some"]
        assert (cwd / "jaxtex" / "one.py").read_text() == "one = 2\n"
        return subprocess.CompletedProcess(command, code, printed)

    monkeypatch.setattr(mutations.subprocess, "run", run)
    assert mutations.found_by(tree, Fault("jaxtex/one.py", "= 1", "= 2", "test_one.py", "some")) == expected
    assert (tree / "jaxtex" / "one.py").read_text() == "one = 1\n"


def test_a_selection_of_no_test_is_an_error(tree, monkeypatch):
    monkeypatch.setattr(mutations.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 5, ""))
    with pytest.raises(ValueError, match="selects no test"):
        mutations.found_by(tree, Fault("jaxtex/one.py", "= 1", "= 2", "test_one.py", "nothing"))


def test_a_fault_that_fits_no_longer_is_an_error(tree, tmp_path_factory):
    with pytest.raises(ValueError, match="0 times, expected once; mend the fault"):
        mutations.mutated(tree, Fault("jaxtex/one.py", "= 3", "= 2", "test_one.py"), tmp_path_factory.mktemp("copy"))
