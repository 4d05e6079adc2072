"""How many small faults the tests find: `python -m tests.faults [--count N] [--seed S] [--only NAME...]`.

Faults are drawn from the places of `places.py`. Each is put into a copy of the tree. Of the tests that are not slow,
those run first whose words are most like those of the function and of its module, and of these those whose file names
the module or lies in its room, until one fails or the time is over. Results are written to a file as they come, and a
run that was stopped goes on from there.
"""

import argparse
import ast
import collections
import concurrent.futures
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from pathlib import Path

from tests.faults import limit
from tests.faults.places import Fault, Places
from tests.support import compiling

ROOT = Path(__file__).parents[2]
ENGINE = ("_engine/walk", "_engine/rules", "_engine/compute")
ROOMS = ("_tables", *ENGINE, "_hardware", "warp", "nn", "rays", "ndimage")
# Folders of tests that start programs or read texts: they take long, or cannot tell.
LEFT_OUT = {"cli", "devices", "docs", "faults", "house"}
# The sentences of errors are in a file beside their test.
ERRORS, ROWS = Path("tests/house/test_wording.py"), Path("tests/data/errors.txt")
# Folders of tests that have another name than the room which they test.
ROOM_OF = {"compiled": "engine", "recorded": "hardware"}
MOST_TESTS = 60
PASSED, NO_TESTS = 0, 5  # exit codes of pytest
PYTEST = ["-m", "pytest", "-n", "0", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", "tests.faults.limit"]
WORD = re.compile(r"[A-Za-z]\w+")
# What a test imports of this package: the modules, and the names of their contents.
IMPORT = re.compile(r"^from (jaxtex[\w.]*) import ([\w, ]+)", re.MULTILINE)
# What a function that refuses an argument has.
CHECKED = re.compile(r"\bcheck|Error\b")
FOUND, NOT_FOUND = "found", "NOT FOUND"


def places_in(tree: Path) -> dict[str, Places]:
    """The places of each file of the rooms."""
    paths = [path for room in ROOMS for path in sorted((tree / "jaxtex" / room).rglob("*.py"))]
    return {name: Places(name, (tree / name).read_text()) for name in (str(path.relative_to(tree)) for path in paths)}


def drawn(faults: list[Fault], only: list[str], count: int, seed: int) -> list[Fault]:
    """The faults that are named, in full or in part, or some that the seed chooses."""
    if not only:
        return random.Random(seed).sample(faults, min(count, len(faults)))
    named = {name: [f for f in faults if name == f.name] or [f for f in faults if name in f.name] for name in only}
    for name in (name for name in only if not named[name]):
        print(f"not in this tree: {name}")
    return [*{fault.name: fault for found in named.values() for fault in found}.values()]


def words_of(path: str) -> set[str]:
    """The words of a path, without their plurals, and with the room that a folder of tests stands for."""
    parts = Path(path).with_suffix("").parts
    return {word.removesuffix("s") for part in parts for word in (*part.split("_"), ROOM_OF.get(part, "")) if word}


class Likeness:
    """How much the texts of tests are like a text: the cosine of their words, of which rare ones count more."""

    def __init__(self, tree: Path):
        paths = [path.relative_to(tree) for path in sorted(tree.glob("tests/**/test_*.py"))]
        texts = {path: (tree / path).read_text() for path in paths if path.parts[1] not in LEFT_OUT}
        if (tree / ERRORS).exists():
            texts[ERRORS] = (tree / ERRORS).read_text() + (tree / ROWS).read_text()
        imports = {str(path): " ".join(map(" ".join, IMPORT.findall(text))) for path, text in texts.items()}
        self.imports = {path: set(re.findall(r"\w+", text)) for path, text in imports.items()}
        counts = collections.Counter(word for text in texts.values() for word in set(WORD.findall(text)))
        self.weights = {word: math.log(len(texts) / count) for word, count in counts.items()}
        self.files = {str(path): self.vector(text) for path, text in texts.items()}
        self.tests = {
            f"{path}::{node.name}": self.vector(ast.unparse(node))
            for path, text in texts.items()
            for node in ast.walk(ast.parse((tree / path).read_text()))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        # Programs take most of the time of a file.
        budget = tree / "tests" / "budget.toml"
        self.programs = tomllib.loads(budget.read_text())["programs"] if budget.exists() else {}

    def vector(self, text: str) -> dict[str, float]:
        words = collections.Counter(word for word in WORD.findall(text) if word in self.weights)
        values = {word: (1 + math.log(n)) * self.weights[word] for word, n in words.items()}
        length = math.hypot(*values.values()) or 1.0
        return {word: value / length for word, value in values.items()}

    def nearness(self, file: str, path: str) -> int:
        """How many words of the path of a module are in that of a file of tests, and whether the file imports it."""
        words, wanted = words_of(file), words_of(path.removeprefix("jaxtex/"))
        return len(words & wanted) + (Path(path).stem in self.imports[file])

    def most_telling(self, path: str, module: str, function: str) -> list[str]:
        """The tests that are most like a function and its module, file by file."""
        wanted = self.vector(module + 3 * function)
        near = {file: 2 ** self.nearness(file, path) for file in self.files}

        def gain(test):
            file = test.partition("::")[0]
            alike = (
                sum(wanted.get(word, 0.0) * x for word, x in of.items()) for of in (self.files[file], self.tests[test])
            )
            return near[file] * sum(alike) / (1 + self.programs.get(file.removeprefix("tests/"), 0) / 100)

        tests = sorted(self.tests, key=gain, reverse=True)[:MOST_TESTS]
        if CHECKED.search(function):
            tests = [test for test in self.tests if test.startswith(f"{ERRORS}::test_the_error")] + tests
        files = [test.partition("::")[0] for test in tests]
        return sorted(tests, key=lambda test: files.index(test.partition("::")[0]))


def copied(tree: Path, folder: Path) -> Path:
    shutil.copytree(tree, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "_build"))
    shutil.copytree(Path(__file__).parent, folder / "tests" / "faults", dirs_exist_ok=True)  # an older tree lacks them
    return folder


def ended(copy: Path, arguments: list[str], seconds: float, **variables: str) -> tuple[int, float, str]:
    """Runs Python in a copy: its exit code, the seconds of the processors, and what it printed.

    Args:
        seconds: of the processors, after which it is a hang. A busy machine is none, so by the clock it has longer.
        variables: of the environment, besides those of this process.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(copy), **variables}
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, *arguments]
        process = subprocess.Popen(command, cwd=copy, env=environment, stdout=log, stderr=log)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (round(seconds), round(seconds) + 5))
        timer = threading.Timer(10 * seconds, os.kill, (process.pid, signal.SIGXCPU))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        return process.returncode, usage.ru_utime + usage.ru_stime, log.read()


def tried(copy: Path, fault: Fault, tests: list[str], seconds: float) -> list[str]:
    """A row of the results: whether the fault was found, the time, its name, and what found it or what ran."""
    path = copy / fault.path
    source = path.read_text()
    path.write_text(fault.put_in(source))
    try:
        limits = {limit.SECONDS: str(seconds), limit.TESTS: "\n".join(tests)}
        chosen = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
        code, taken, printed = ended(copy, [*PYTEST, "-x", *chosen], 3 * seconds + 60, **limits)
    finally:
        path.write_text(source)
    if code in (PASSED, NO_TESTS):
        outcome, what = NOT_FOUND, re.search(r"^ran\b.*", printed, re.MULTILINE)[0]
    elif code < 0:  # a kernel on the CPU wrote beyond its arrays, for example
        outcome, what = FOUND, "a hang" if code == -signal.SIGXCPU else signal.Signals(-code).name
    else:
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", printed, re.MULTILINE)
        outcome, what = FOUND, failed[1] if failed else "the start of the tests"
    return [outcome, f"{taken:.0f} s", fault.name, fault.change, what]


def summary(rows: dict[str, list[str]]) -> str:
    """The share of the faults that were found, of all, of each kind and of each room; and those that were not."""
    groups = collections.defaultdict(list)
    for name, row in rows.items():
        path, _, kind, _ = name.split(":")
        (room,) = (room for room in ROOMS if path.startswith(f"jaxtex/{room}/"))
        for group in ((0, "all"), (1, kind), (2, room)):
            groups[group].append(row[0] == FOUND)
    lines = [f"{sum(g):5d} of {len(g):4d}, {sum(g) / len(g):4.0%}: {name}" for (_, name), g in sorted(groups.items())]
    return "\n".join([*lines, "", *("\t".join(row) for row in rows.values() if row[0] == NOT_FOUND)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many faults are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of faults, or parts of them")
    parser.add_argument("--list", action="store_true", help="show the faults, and try none")
    parser.add_argument("--seconds", type=float, default=40, help="of the processors, for the tests of a fault")
    parser.add_argument("--jobs", type=int, default=1, help="how many faults are tried at the same time")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree that is copied")
    parser.add_argument(
        "--results", type=Path, default=Path(os.devnull), help="faults in this file are not tried again"
    )
    options = parser.parse_args()

    files = places_in(options.tree)
    faults = drawn([f for file in files.values() for f in file.faults], options.only, options.count, options.seed)
    if options.list:
        print(*(f"{fault.name}\t{fault.change}" for fault in faults), sep="\n")
        return 0
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["XLA_FLAGS"] = compiling.flags()  # found out once, and not in each run
    likeness, local = Likeness(options.tree), threading.local()
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    names = {fault.name for fault in faults}
    rows = {row[2]: row for row in (line.split("\t") for line in lines) if row[2] in names}

    def trial(fault):
        file = files[fault.path]
        tests = likeness.most_telling(fault.path, file.source, file.texts.get(fault.scope, ""))
        return tried(local.copy, fault, tests, options.seconds)

    with tempfile.TemporaryDirectory() as folder, options.results.open("a") as log:
        start = lambda: setattr(local, "copy", copied(options.tree, Path(tempfile.mkdtemp(dir=folder)) / "copy"))
        with concurrent.futures.ThreadPoolExecutor(options.jobs, initializer=start) as pool:
            for row in pool.map(trial, [fault for fault in faults if fault.name not in rows]):
                rows[row[2]] = row
                print(f"[{len(rows)}/{len(faults)}]", *row, sep="\t", flush=True)
                print(*row, sep="\t", file=log, flush=True)
        # A test that fails without a fault, or a file that does not load, finds none.
        finders = sorted({row[-1] for row in rows.values() if row[-1].startswith("tests/")})
        tests, loaded = ([name for name in finders if ("::" in name) is of_tests] for of_tests in (True, False))
        sound = copied(options.tree, Path(folder) / "sound")
        runs = [ended(sound, [*PYTEST, *tests], 3600)] if tests else []
        runs += [ended(sound, [*PYTEST, "--collect-only", *loaded], 3600)] if loaded else []
    print(f"\n{summary(rows)}")
    wrong = [printed for code, _, printed in runs if code != PASSED]
    if wrong:
        print("\nThe figures are wrong, for these fail without a fault, too:", *wrong, sep="\n")
    return len(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
