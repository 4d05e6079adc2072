"""Figures as Markdown: the section "Measured" of docs/scaling.md."""

import itertools
from collections.abc import Iterable, Sequence

from .comparison import Found, Pair, pairs

MIB = 2.0**20
PLACE = ("device", "jax", "jaxtex", "commit")
FURTHER = (2, 4, 8)  # times as many devices as were measured
STRONG = (
    "A ratio is the time on all devices over the time on one. **Strong**: the same problem on more devices; the ideal "
    "ratio is 1 over their number. **Weak**: as much work for each device as for one device alone; the ideal ratio is "
    "1. Memory is that of the compiled program: arguments + results + temporaries. The bound is the longest of the "
    "times to read arguments and write results once (memory), to send what a device sends (link), and to launch an "
    "empty program."
)
ESTIMATE = "**Estimated** milliseconds on more devices, as [below](#estimate-for-more-devices):"


def markdown(found: Found) -> str:
    strong, weak = (list(pairs(found, scaling)) for scaling in ("strong", "weak"))
    timed = [pair for pair in strong if not pair.problem]
    parts = [about(found), STRONG, times(timed, weak), ESTIMATE, estimates(timed), checks(found)]
    problems = [f"- {pair.name}, {pair.devices} devices: {pair.problem}" for pair in (*strong, *weak) if pair.problem]
    if problems:
        parts += ["Not timed:", "\n".join(dict.fromkeys(problems))]
    return "\n\n".join(parts)


def about(found: Found) -> str:
    """Where it was measured, and against what."""
    environment, rates = found["environment"], found["rates"]
    where = ", ".join(f"{key} {environment[key]}" for key in PLACE if key in environment)
    links = ", ".join(f"{digits(rate)} GB/s on {count} devices" for count, rate in rates["link"].items())
    launches = ", ".join(f"{ms:.3f} ms on {count}" for count, ms in rates["launch"].items())
    return (
        f"Environment: {found['devices']} devices, {where}; size {found['size']}. A copy on one device moves "
        f"{digits(rates['memory'])} GB/s. Where each device sends to the next one, each sends {links}. An empty "
        f"program takes {launches}."
    )


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def times(timed: Iterable[Pair], weak: Iterable[Pair]) -> str:
    """A line for each function, with the figures of each number of devices."""
    grown = {key(pair): f"{pair.ratio:.2f}" for pair in weak if not pair.problem}
    rows = []
    for name, group in itertools.groupby(timed, lambda pair: pair.name):
        some = list(group)
        joined = lambda cell, some=some: " / ".join(filter(None, map(cell, some)))
        rows.append(
            [
                *(name, joined(lambda pair: str(pair.devices)), ms(some[0].one["milliseconds"])),
                joined(lambda pair: ms(pair.several["milliseconds"])),
                joined(lambda pair: f"{pair.ratio:.2f}{aim(pair)}"),
                joined(lambda pair: grown.get(key(pair), "")),
                *(held(some[0].one), joined(lambda pair: held(pair.several))),
                *(joined(lambda pair: mib(pair.several["sent"])), joined(bound)),
            ]
        )
    titles = "case", "devices", "one, ms", "all, ms", "strong", "weak", "MiB on one", "MiB on each", "MiB sent by each"
    return table((*titles, "bound, ms"), rows)


def key(pair: Pair) -> tuple[str, str, int]:
    return pair.work["name"], pair.several["function"], pair.devices


def aim(pair: Pair) -> str:
    if pair.aim is None:
        return ""
    return f" ({'meets' if pair.ratio <= pair.aim else '**misses**'} {pair.aim:g})"


def held(figure: Found) -> str:
    return mib(sum(figure[name] for name in ("arguments", "results", "temporaries")))


def bound(pair: Pair) -> str:
    most, what = pair.bound
    return f"{ms(most)} ({what})"


def estimates(timed: Sequence[Pair]) -> str:
    """From the most devices that were measured."""
    most = max((pair.devices for pair in timed), default=0)
    more = [factor * most for factor in FURTHER]
    rows = [[pair.name, *(ms(pair.estimate(n)) for n in more)] for pair in timed if pair.devices == most]
    return table(("case", *map(str, more)), rows)


def checks(found: Found) -> str:
    """How results were compared."""
    limits = []
    for work in found["works"]:
        some = [f["difference"] for f in found["rows"] if f["work"] == work["name"] and f["difference"] is not None]
        if some:
            limits.append(f"{work['name']} {max(some):.1e} (at most {work['tolerance']:.1e})")
    return (
        "Largest difference from the result of one device, relative to the largest value: "
        f"{', '.join(limits) or 'none'}."
    )


def ms(value: float) -> str:
    return f"{value:.3f}"


def mib(count: int) -> str:
    return digits(count / MIB)


def digits(value: float) -> str:
    """Two digits where it is small, so that what is there is not shown as nothing."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
