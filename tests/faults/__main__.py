"""Hand-made faults that the tests must find: `python -m tests.faults [--only NAME] [--tree DIR] [--default]`.

Each fault is a small replacement in one file. The runner copies the tree, puts one fault in, runs the tests that are
named for it until the first failure, and prints which test found it. A fault whose text no longer occurs is an error,
and so is one that no test finds. The faults stand in `table.py`.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.table import FAULTS, Fault

ROOT = Path(__file__).parents[2]
COPIED = ("jaxtex", "tests", "pyproject.toml")
NO_TESTS = 5  # the exit code of pytest


def mutated(tree: Path, fault: Fault, target: Path) -> None:
    """A copy of the tree with the fault.

    Raises:
        ValueError: if the text to replace does not occur once.
    """
    for name in COPIED:
        source = tree / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)
    path = target / fault.path
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.path} has {fault.old!r} {text.count(fault.old)} times, expected once; mend the fault")
    path.write_text(text.replace(fault.old, fault.new))


def found_by(tree: Path, fault: Fault, *, default: bool = False) -> str | None:
    """The first test that fails with the fault, or the signal that ended the tests, or None.

    Args:
        default: whether slow tests are left out, as by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        mutated(tree, fault, target)
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", "-p", "no:cacheprovider", "-rfE"]
        command += [] if default else ["-m", ""]
        (file,) = target.glob(f"tests/**/{fault.tests}")
        command += [str(file.relative_to(target)), *(["-k", fault.select] if fault.select else [])]
        result = subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)
    if result.returncode == NO_TESTS and default:
        return None
    if result.returncode == NO_TESTS:
        raise ValueError(f"-k {fault.select!r} selects no test of {fault.tests}; mend the fault")
    if result.returncode < 0:  # a kernel on the CPU wrote beyond its arrays, for example
        return signal.Signals(-result.returncode).name
    failed = re.search(r"^(?:FAILED|ERROR) \S*?(test_\S+)", result.stdout, re.MULTILINE)
    return failed[1] if failed else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the faults")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree that is copied")
    parser.add_argument("--default", action="store_true", help="leave out slow tests")
    options = parser.parse_args()
    lost = 0
    for name, fault in FAULTS.items():
        if options.only in name:
            start = time.perf_counter()
            found = found_by(options.tree, fault, default=options.default)
            lost += found is None
            print(f"{time.perf_counter() - start:5.0f} s  {name}: {found or 'NOT FOUND'}", flush=True)
    return lost


if __name__ == "__main__":
    raise SystemExit(main())
