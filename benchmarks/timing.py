"""Side-by-side timing: rounds in which everybody runs a few times, and the median over rounds."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

Start = Callable[[], Any]
Wait = Callable[[Any], Any]
MOST_REPEATS = 100
# A round of one competitor lasts about this long, in seconds.
ROUND = 0.02
WARM_UP = 2


def elapsed(start: Start, wait: Wait, repeats: int) -> float:
    """Seconds of one run among `repeats` that are queued together."""
    before, result = time.perf_counter(), None
    for _ in range(repeats):
        result = start()
    wait(result)
    return (time.perf_counter() - before) / repeats


def side_by_side(runs: dict[str, tuple[Start, Wait]], seconds: float, title: str) -> dict[str, float]:
    """The median time of each run, in milliseconds.

    Work is queued many times before it is waited for, 20 times or more if it takes less than a millisecond, so that
    launch and wait are not what is measured on a GPU; each round times every competitor, so that all see the same
    machine.
    """
    repeats = {}
    for name, (start, wait) in runs.items():
        wait(start())
        alone = min(elapsed(start, wait, 1) for _ in range(WARM_UP))
        repeats[name] = max(1, min(MOST_REPEATS, int(ROUND / alone)))
    rounds: dict[str, list[float]] = {name: [] for name in runs}
    begun = time.perf_counter()
    with tqdm(desc=title, unit=" rounds", leave=False, disable=None) as progress:
        while len(progress_rounds := next(iter(rounds.values()))) < 5 or (
            time.perf_counter() - begun < seconds and len(progress_rounds) < 50
        ):
            for name, (start, wait) in runs.items():
                rounds[name].append(elapsed(start, wait, repeats[name]) * 1e3)
            progress.update()
    return {name: statistics.median(times) for name, times in rounds.items()}
