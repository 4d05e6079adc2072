"""The texts of all calls, written to a folder or compared with those in it."""

import argparse
import collections
import fnmatch
import time
from pathlib import Path

import jax
from tqdm import tqdm

from tests.lowered import folder as folders
from tests.lowered.programs import texts_of

DESCRIPTION = "Compares the programs of two commits, for CPUs and for NVIDIA GPUs."
# How many lines of a difference are printed, and of how many texts; of others the names are.
MOST_LINES, MOST_SHOWN = 30, 100
# The kinds of differences, and how they are counted.
KINDS = {"differs": "differ", "missing": "missing", "new": "new", "error": "errors"}


def made(call):
    """The texts of a call, or the error that ends it, which no other text equals."""
    try:
        return texts_of(call)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def matching(names, patterns):
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


class Report:
    """Counts texts, and prints those that are not as they should be.

    Attributes:
        counts: of all texts, of kernels among them, of their characters, and of each kind of difference.
    """

    def __init__(self, most_lines):
        self.most_lines, self.shown, self.counts = most_lines, 0, collections.Counter()

    def add(self, name, texts, differences):
        """Of one call."""
        self.counts["texts"] += len(texts)
        self.counts["kernels"] += sum("/kernel " in text for text in texts)
        self.counts["characters"] += sum(map(len, texts.values()))
        for difference in differences:
            self.counts[difference.kind] += 1
            tqdm.write(f"{name}: {difference.name}: {difference.kind}")
            if self.shown < MOST_SHOWN:
                self.show(difference.lines)

    def show(self, lines):
        self.shown += bool(lines)
        for line in lines[: self.most_lines]:
            tqdm.write(f"    {line}")
        if len(lines) > self.most_lines:
            tqdm.write(f"    and {len(lines) - self.most_lines} more lines")

    def is_fine(self):
        return not any(self.counts[kind] for kind in KINDS)

    def summary(self, calls, seconds):
        counts = self.counts
        kinds = [f"{counts[kind]} {word}" for kind, word in KINDS.items() if counts[kind]]
        return (
            f"{calls} calls, {counts['texts']} texts ({counts['kernels']} of kernels, {counts['characters']:,} "
            f"characters) in {seconds:.0f} s: {', '.join(kinds) or 'no difference'}"
        )


def main(arguments=None, calls=None):
    """Runs the command; by default with the calls of the battery."""
    parser = argparse.ArgumentParser(prog="python -m tests.lowered", description=DESCRIPTION)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FOLDER", help="keep the texts in this folder")
    action.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with the texts in this folder")
    parser.add_argument(
        "--calls", nargs="+", default=["*"], metavar="PATTERN", help="names of calls, such as 'warps/*'"
    )
    parser.add_argument("--lines", type=int, default=MOST_LINES, help="how many lines of a difference are printed")
    options = parser.parse_args(arguments)
    folder, start = options.write or options.compare, time.perf_counter()
    if calls is None:
        from tests.lowered.battery import CALLS as calls
    version = folders.version(folder)
    if options.compare and version != jax.__version__:
        parser.error(f"{folder} holds programs of JAX {version}, and this is JAX {jax.__version__}")
    # Also those that are no calls any more.
    names = matching(dict.fromkeys((*calls, *folders.names(folder))), options.calls)
    if not names:
        parser.error(f"no call has a name like {' or '.join(options.calls)}")
    report = Report(options.lines)
    for name in tqdm(names, unit="call", mininterval=1):
        texts = made(calls[name]) if name in calls else {}
        before = folders.read(folder, name) if options.compare else texts
        report.add(name, texts, folders.differences(before, texts))
        if options.write:
            folders.write(folder, name, {} if "error" in texts else texts)
    print(report.summary(len(names), time.perf_counter() - start))
    return 0 if report.is_fine() else 1
