"""Side-by-side timing: rounds in which everybody runs once or a few times, and the median over rounds."""

import statistics
import time
from collections.abc import Callable

from tqdm import tqdm

Run = Callable[[], object]
Wait = Callable[[object], object]


def side_by_side(runs: dict[str, tuple[Run, Wait]], seconds: float, title: str) -> dict[str, float]:
    """The median time of each run, in milliseconds.

    Work is queued several times before it is waited for, so that a launch is not what is measured on a GPU; each
    round times every competitor, so that all see the same machine.
    """
    repeats = {}
    for name, (run, wait) in runs.items():
        wait(run())
        start = time.perf_counter()
        wait(run())
        repeats[name] = max(1, min(20, int(0.02 / (time.perf_counter() - start + 1e-9))))
    rounds: dict[str, list[float]] = {name: [] for name in runs}
    start = time.perf_counter()
    with tqdm(desc=title, unit=" rounds", leave=False, disable=None) as progress:
        while len(progress_rounds := next(iter(rounds.values()))) < 5 or (
            time.perf_counter() - start < seconds and len(progress_rounds) < 50
        ):
            for name, (run, wait) in runs.items():
                before, result = time.perf_counter(), None
                for _ in range(repeats[name]):
                    result = run()
                wait(result)
                rounds[name].append((time.perf_counter() - before) / repeats[name] * 1e3)
            progress.update()
    return {name: statistics.median(times) for name, times in rounds.items()}
