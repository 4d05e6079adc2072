"""One row: every competitor's result compared with jaxtex's, then all of them timed side by side."""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from . import peers
from .peers.with_jaxtex import compiled, program
from .timing import side_by_side
from .works import Work

OURS = "jaxtex"


@dataclasses.dataclass
class Row:
    """What was found out about a work.

    Attributes:
        milliseconds: of jaxtex and of each competitor that does the work.
        problems: what kept others from being timed: a result that differs, an error.
        bytes: that must move: each input of jaxtex's read once, each output written once.
    """

    work: Work
    milliseconds: dict[str, float] = dataclasses.field(default_factory=dict)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)
    bytes: int = 0

    @property
    def gigabytes_per_second(self) -> float | None:
        ms = self.milliseconds.get(OURS)
        return self.bytes / ms * 1e-6 if ms else None

    def over(self, peer: str) -> float | None:
        """jaxtex's time over that of `peer`."""
        times = self.milliseconds
        return times[OURS] / times[peer] if OURS in times and peer in times else None


def measure(work: Work, seconds: float, title: str) -> Row:
    """The row of `work`. A competitor that raises, or returns something else, is a problem of the row, not timed."""
    row, runs, ours = Row(work), {}, []

    def first() -> None:
        runs[OURS] = peers.PEERS[OURS](work)
        ours.extend(outcome(runs[OURS]))
        row.bytes = moved(work)

    def other(name: str) -> None:
        if (run := peers.PEERS[name](work)) is not None:
            check(name, run, work, ours)
            runs[name] = run

    if attempt(row, OURS, first):
        for name in peers.PEERS:
            if name != OURS:
                attempt(row, name, functools.partial(other, name))
        ours.clear()
        attempt(row, OURS, lambda: row.milliseconds.update(time(runs, seconds, title)))
    return row


def attempt(row: Row, name: str, action: Callable[[], None]) -> bool:
    """Whether `action` succeeds; if it raises, the row says so under `name`."""
    try:
        action()
        return True
    except Exception as error:  # each library raises its own
        reason = str(error) if isinstance(error, peers.CannotError) else f"{type(error).__name__}: {error}"
        row.problems[name] = " ".join(reason.split())[:300]
        return False


def outcome(run: peers.Run) -> list[jax.Array]:
    return jax.tree.leaves(run.arrays(run.wait(run.start())))


def time(runs: dict[str, peers.Run], seconds: float, title: str) -> dict[str, float]:
    return side_by_side({name: (run.start, run.wait) for name, run in runs.items()}, seconds, title)


def check(name: str, run: peers.Run, work: Work, ours: list[jax.Array]) -> None:
    """Runs it once and raises if its result is not jaxtex's."""
    if (limit := peers.tolerance(name, work)) is None:
        run.wait(run.start())
        return
    theirs = outcome(run)
    shapes = [a.shape for a in ours], [a.shape for a in theirs]
    if shapes[0] != shapes[1]:
        raise peers.CannotError(f"differs from jaxtex: shapes {shapes[1]} in place of {shapes[0]}")
    share = max(float(share_beyond(a, b, limit)) for a, b in zip(ours, theirs))
    if share > peers.kinks(work):
        raise peers.CannotError(
            f"differs from jaxtex by more than {limit:.2g} of the largest value at {share:.2%} of all numbers"
        )


@jax.jit
def share_beyond(ours: jax.Array, theirs: jax.Array, limit: float) -> jax.Array:
    """The share of numbers further from ours than `limit` times the largest, NaN among them."""
    a, b = (v.astype(jnp.float32) for v in (ours, theirs))
    return jnp.mean(~(jnp.abs(a - b) <= limit * jnp.abs(a).max()))


def moved(work: Work) -> int:
    function, args = program(work)
    size = lambda a: math.prod(a.shape) * a.dtype.itemsize
    return sum(map(size, jax.tree.leaves((args, jax.eval_shape(function, *args)))))


def roofline(size: int, seconds: float) -> tuple[float, float]:
    """Gigabytes per second of a copy of an image of four channels, and milliseconds of a program that does nothing."""
    image = jnp.zeros((size, size, 4))
    runs = {
        "copy": compiled(lambda a: a + 1, (image,)),
        "nothing": compiled(lambda a: a + 1, (jnp.zeros(()),)),
    }
    times = time(runs, seconds, "copy")
    return 2 * image.nbytes / times["copy"] * 1e-6, times["nothing"]
