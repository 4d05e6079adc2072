"""How many programs each file of tests may compile: `python -m tests.budget --write` counts them anew.

XLA's compilation takes most of the suite's time, and a count of programs does not depend on how busy a machine is. A
file that compiles more than its line in `budget.toml` allows fails: whoever adds tests merges others into one program,
or raises the line and says why in the commit.
"""

import argparse
import collections
import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent
TABLE = FOLDER / "budget.toml"
# Where a run writes what it has counted, a line for each file of tests.
VARIABLE = "JAXTEX_COUNT_PROGRAMS"
# So far a count may lie above its line: what other files have left in the caches of a process changes it a little.
SHARE, PROGRAMS = 0.05, 40
HEADER = """\
# Programs that each file of tests may compile, with the version of JAX below and on a CPU; see budget.py.
"""


def read():
    """The version of JAX that the counts are for, and the count of each file."""
    table = tomllib.loads(TABLE.read_text())
    return table["jax"], table["programs"]


def allowed(count):
    """The programs that a file may compile which compiled `count` when its line was written."""
    return math.ceil(count * (1 + SHARE)) + PROGRAMS


def fault(name, count, counts):
    """What is wrong with a file that compiled `count` programs; `None` if nothing is."""
    if name not in counts:
        return f"{name} has no line in tests/budget.toml; run python -m tests.budget --write {name}"
    if count > allowed(counts[name]):
        return (
            f"{name} compiled {count} programs, and tests/budget.toml allows {allowed(counts[name])}; let tests share "
            f"programs, or run python -m tests.budget --write {name} and say in the commit why"
        )
    return None


def counted(files, log):
    """How many programs the files compile."""
    environment = {**os.environ, VARIABLE: str(log)}
    subprocess.run([sys.executable, "-m", "pytest", "-m", "", *files], cwd=FOLDER.parent, env=environment, check=False)
    counts = collections.Counter()
    for line in log.read_text().splitlines():
        name, count = line.split()
        counts[name] += int(count)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", nargs="*", required=True, metavar="FILE", help="files of tests; by default all")
    files = parser.parse_args().write
    import jax

    log = FOLDER / "budget.log"
    log.unlink(missing_ok=True)
    counts = counted([f"tests/{name}" for name in files], log)
    log.unlink(missing_ok=True)
    # Files that are skipped here, for lack of what they need, keep their lines.
    counts = {**{name: count for name, count in read()[1].items() if (FOLDER / name).exists()}, **counts}
    lines = [f'"{name}" = {count}' for name, count in sorted(counts.items())]
    TABLE.write_text(f'{HEADER}jax = "{jax.__version__}"\n\n[programs]\n' + "\n".join(lines) + "\n")
    print(f"{sum(counts.values())} programs in {len(counts)} files")


if __name__ == "__main__":
    main()
