"""Compares the programs of two commits: `python -m tests.lowered --write FOLDER`, then `--compare FOLDER`.

Calls of the public interface are lowered, for CPUs and for NVIDIA GPUs; nothing is compiled. `--write` keeps the texts
of the programs and of their kernels in a folder. `--compare` makes them anew and shows what differs. Neither locations
nor the names of private functions are part of a text, so a refactoring that changes no program changes no text. In a
checkout of an older commit, copy this folder there first.
"""

import argparse
import difflib
import fnmatch
import gc
import itertools
import json
import lzma
import os
from pathlib import Path

DEVICES = "--xla_force_host_platform_device_count"
ENDING, VERSION = ".json.xz", "jax.txt"
# The lines around a difference; how many lines of each text are compared, and how many of a difference shown; how many
# texts are.
CONTEXT, MOST_COMPARED, MOST_LINES, MOST_SHOWN = 3, 400, 30, 100


def differences(before, after):
    """Of the texts of a call by name, what differs: its name, a word, and the lines of a unified diff."""
    for name in dict.fromkeys((*before, *after)):
        if name not in after or name not in before:
            yield name, "missing" if name not in after else "new", []
        elif before[name] != after[name]:
            yield name, "differs", unified(before[name].splitlines(), after[name].splitlines())


def unified(before, after):
    """Of texts that differ in many places only the first lines are compared."""
    pairs = enumerate(itertools.zip_longest(before, after))
    first = max(0, next(k for k, (a, b) in pairs if a != b) - CONTEXT)
    texts = (lines[first : first + MOST_COMPARED] for lines in (before, after))
    return [f"from line {first + 1}:", *itertools.islice(difflib.unified_diff(*texts, n=CONTEXT, lineterm=""), 2, None)]


def made(call):
    """The texts of a call, or the error that ends it."""
    from tests.lowered.programs import texts_of

    try:
        return texts_of(call), None
    except Exception as error:
        return {}, f"{type(error).__name__}: {error}"


def main():
    import jax

    from tests.lowered.calls import CALLS

    parser = argparse.ArgumentParser(prog="python -m tests.lowered", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FOLDER", help="keep the texts in this folder")
    action.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with the texts in this folder")
    parser.add_argument("--calls", nargs="+", default=["*"], metavar="PATTERN", help="names, such as 'public/warp.*'")
    options = parser.parse_args()
    folder = options.write or options.compare
    if options.compare and (version := (folder / VERSION).read_text()) != jax.__version__:
        parser.error(f"{folder} holds programs of JAX {version}, and this is JAX {jax.__version__}")
    # Also those that are no calls any more.
    kept = sorted(str(path.relative_to(folder)).removesuffix(ENDING) for path in folder.rglob(f"*{ENDING}"))
    names = [n for n in dict.fromkeys((*CALLS, *kept)) if any(fnmatch.fnmatch(n, p) for p in options.calls)]
    wrong = texts = 0
    for name in names:
        found, error = made(CALLS[name]) if name in CALLS else ({}, None)
        texts += len(found)
        path = folder / f"{name}{ENDING}"
        before = json.loads(lzma.decompress(path.read_bytes())) if options.compare and path.exists() else {}
        differ = [*differences(before, found)] if options.compare and not error else []
        for of, word, lines in [("error", error, [])] * bool(error) + differ:
            wrong += 1
            shown = lines[:MOST_LINES] if wrong <= MOST_SHOWN else []
            print(f"{name}: {of}: {word}", *(f"    {line}" for line in shown), sep="\n", flush=True)
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The fastest preset, whose window still holds all texts of most calls.
            path.write_bytes(lzma.compress(json.dumps(found).encode(), preset=0))
            (folder / VERSION).write_text(jax.__version__)
    print(f"{len(names)} calls, {texts} texts: {wrong or 'no'} differences")
    return int(wrong > 0 or not names)


if __name__ == "__main__":
    # XLA reads this when it starts, before JAX is imported: the calls need eight devices, and no GPU.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags if DEVICES in flags else f"{flags} {DEVICES}=8".strip()}
    # JAX keeps most of what tracing makes, so the collector of cycles need not look at it often.
    gc.set_threshold(200_000, 50, 100)
    raise SystemExit(main())
