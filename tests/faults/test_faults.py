"""Faults by syntax tree are where a test could tell, keep their names, and are found by the tests that fail."""

import signal

import pytest

from tests.faults import __main__ as runner
from tests.faults.places import Places

SOURCE = '''
"""A text of 3 words."""
SIZE: int = 4
LEAST, MOST = 1, 9
TABLE = {"one": Row(1.0, is_wide=True)}
def read(tap: int | None, size=2):
    """1 + 1."""
    if size and not tap:
        return jnp.where(tap < 0, -tap, tap)
    tap -= 1
    check("size", size)
    return (tap if size else 8) // min(tap, size)
class Taps:
    @cache(maxsize=8)
    def near(self):
        return [abs(x[3]) for x in self.all]
'''
FAULTS = {
    "SIZE:constant:0": "4 -> (5)",
    "LEAST:constant:0": "1 -> (2)",
    "LEAST:constant:1": "9 -> (10)",
    "TABLE:argument:0": "Row(1.0, is_wide=True) -> (Row(1.0))",
    "TABLE:constant:0": "1.0 -> (1.5)",
    "TABLE:constant:1": "True -> (False)",
    "read:constant:0": "2 -> (3)",
    "read:branch:0": "size and (not tap) -> (not (size and (not tap)))",
    "read:condition:0": "size and (not tap) -> (size or not tap)",
    "read:condition:1": "not tap -> (tap)",
    "read:argument:0": "jnp.where(tap < 0, -tap, tap) -> (jnp.where(tap < 0, tap, -tap))",
    "read:comparison:0": "tap < 0 -> (tap <= 0)",
    "read:constant:1": "0 -> (1)",
    "read:sign:0": "-tap -> (tap)",
    "read:operator:0": "tap -= 1 -> tap += 1",
    "read:constant:2": "1 -> (2)",
    "read:statement:0": "check('size', size) -> pass",
    "read:operator:1": "(tap if size else 8) // min(tap, size) -> ((tap if size else 8) * min(tap, size))",
    "read:branch:1": "tap if size else 8 -> (8 if size else tap)",
    "read:constant:3": "8 -> (9)",
    "read:function:0": "min(tap, size) -> (max(tap, size))",
    "Taps.near:function:0": "abs(x[3]) -> (x[3])",
    "Taps.near:constant:0": "3 -> (4)",
}
SILENT = """
__all__ = ["a", "b"[1:]]
Size = int | jax.Array
if TYPE_CHECKING:
    from x import y as z; LEVEL = 3
def read(tap: "Size[2]") -> tuple[int, 3]:
    assert tap > 0, 1 + 2
    number: tuple[3, int] = cast("int | None", tap)
    told = warnings.warn("odd " + str(1), stacklevel=2)
    both = isinstance(tap, int | float), zip(tap, tap, strict=True)
    raise ValueError(f"{tap + 1} " + "is odd", 3)
"""


def test_faults_are_where_a_test_could_tell():
    assert {fault.name: fault.change for fault in Places("x.py", SOURCE).faults} == {
        f"x.py:{name}": change for name, change in FAULTS.items()
    }
    assert Places("x.py", SILENT).faults == []


def test_faults_keep_their_names_where_another_function_changes():
    moved = SOURCE.replace("SIZE: int = 4", "SIZE: int = (4 + 2) * 8 # ü\n\n")
    for old, new in zip(Places("x.py", SOURCE).faults[1:], Places("x.py", moved).faults[5:], strict=True):
        assert (old.name, old.change) == (new.name, new.change)
        assert new.put_in(moved) == old.put_in(SOURCE).replace("SIZE: int = 4", "SIZE: int = (4 + 2) * 8 # ü\n\n")


def test_a_seed_or_names_choose_faults(capsys):
    faults = Places("x.py", SOURCE).faults
    assert runner.drawn(faults, [], 5, 1) == runner.drawn(faults, [], 5, 1) != runner.drawn(faults, [], 5, 2)
    chosen = runner.drawn(faults, ["x.py:read:constant:1", "Taps", "sample"], 5, 0)
    assert [fault.change for fault in chosen] == ["0 -> (1)", "abs(x[3]) -> (x[3])", "3 -> (4)"]
    assert capsys.readouterr().out == "not in this tree: sample\n"


TESTS = {
    "size": "import os\nfrom jaxtex.warp.one import {0}\ndef test_size():\n    assert size() == 1 or os.abort()\n",
    "area": "from jaxtex.warp.one import area\ndef test_area():\n    assert area(2, 3) == 6\n",
    "slow": "import pytest\n@pytest.mark.slow\ndef test_slow():\n    import jaxtex.warp.one as one; one.length()\n",
}
ONE = "def size():\n    return 1\ndef area(height, width):\n    return height * width\ndef length():\n    return 2\n"


@pytest.fixture
def tree(tmp_path):
    """A package of one file, with three files of tests."""
    for folder in ("jaxtex/warp", "tests/unit"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = \"-m 'not slow' -n 2\"\n")
    (tmp_path / "jaxtex" / "__init__.py").touch()
    (tmp_path / "jaxtex" / "warp" / "one.py").write_text(ONE)
    for name, text in TESTS.items():
        (tmp_path / "tests" / "unit" / f"test_{name}.py").write_text(text.replace("{0}", name))
    return tmp_path


@pytest.fixture
def run(tree, tmp_path_factory, monkeypatch):
    """Runs the command; returns its exit code and its file of results, which holds `before` at first."""

    def run(*options, before=""):
        results = tmp_path_factory.mktemp("results") / "rows.txt"
        results.write_text(before)
        monkeypatch.setattr("sys.argv", ["faults", "--tree", str(tree), "--results", str(results), *options])
        return runner.main(), results.read_text()

    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(runner.compiling, "flags", lambda: "")
    return run


def test_faults_are_found_or_not(run, capsys):
    code, results = run("--jobs", "2")
    assert code == 0
    rows = [row.split("\t") for row in results.splitlines()]
    found = {change: (outcome, what) for outcome, _, _, change, what in rows}
    assert found["1 -> (2)"] == ("found", "SIGABRT")
    assert found["height * width -> (height + width)"] == ("found", "tests/unit/test_area.py::test_area")
    outcome, ran = found["2 -> (3)"]
    assert outcome == "NOT FOUND"
    assert ran.startswith("ran 2 of 2 cases: ")
    printed = capsys.readouterr().out
    assert "2 of    3,  67%: all\n" in printed
    assert "1 of    1, 100%: operator\n" in printed


def test_a_run_goes_on_and_tells_which_tests_fail_without_a_fault(tree, run, capsys):
    name, finder = "jaxtex/warp/one.py:area:operator:0", "tests/unit/test_area.py::test_area"
    (tree / "tests" / "unit" / "test_area.py").write_text("def test_area(): raise ValueError\n")
    before = f"found\t1 s\t{name}\theight * width -> (height + width)\t{finder}\n"
    assert run("--only", name, before=before) == (1, before)
    printed = capsys.readouterr().out
    assert "The figures are wrong, for these fail without a fault, too:\n" in printed
    assert f"FAILED {finder}" in printed


def test_a_hang_ends(tmp_path):
    code, seconds, _ = runner.ended(tmp_path, ["-c", "while True: pass"], 1)
    assert code == -signal.SIGXCPU
    assert seconds >= 0.5
