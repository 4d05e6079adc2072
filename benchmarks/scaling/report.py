"""Figures as Markdown: the section "Measured" of docs/scaling.md."""

from collections.abc import Iterable, Sequence

from .comparison import Found, Pair, pairs

MIB = 2.0**20
FURTHER = (2, 4, 8)  # times as many devices as were measured
STRONG = "**Strong scaling:** the same problem on more devices. The ideal ratio is 1 over the number of devices."
HELD = "Memory is that of the compiled program: arguments + results + temporaries."
BOUNDS = (
    "**Lower bounds on the time:** memory is the time to read the arguments once and write the results once, at the "
    "rate of a copy. Link is the time to send what a device sends, at the rate of the link. Launch is the time of an "
    "empty program. Temporaries are not counted; a training step reads and writes many times as many bytes of them."
)
WEAK = "**Weak scaling:** each device has a problem of the same size as one device alone. The ideal ratio is 1."
ESTIMATE = (
    "**Estimated** milliseconds on more devices, by the formulas [below](#estimate-for-more-devices). Only the first "
    "two columns of times are measured."
)


def markdown(found: Found) -> str:
    strong, weak = (list(pairs(found, scaling)) for scaling in ("strong", "weak"))
    timed = [pair for pair in strong if not pair.problem]
    parts = [about(found), STRONG, times(timed), HELD, BOUNDS, bounds(timed)]
    parts += [WEAK, growth([pair for pair in weak if not pair.problem]), ESTIMATE, estimates(timed), checks(found)]
    problems = [f"- {pair.name}, {pair.devices} devices: {pair.problem}" for pair in (*strong, *weak) if pair.problem]
    if problems:
        parts += ["Not timed:", "\n".join(dict.fromkeys(problems))]
    return "\n\n".join(parts)


def about(found: Found) -> str:
    """Where it was measured, and against what."""
    environment, rates = found["environment"], found["rates"]
    where = ", ".join(f"{key} {value}" for key, value in environment.items())
    links = ", ".join(f"{digits(rate)} GB/s on {count} devices" for count, rate in rates["link"].items())
    launches = ", ".join(f"{ms:.3f} ms on {count}" for count, ms in rates["launch"].items())
    return (
        f"Environment: {where}; size {found['size']}. A copy on one device moves {digits(rates['memory'])} GB/s. Where "
        f"each device sends to the next one, each sends {links}. An empty program takes {launches}."
    )


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def times(timed: Iterable[Pair]) -> str:
    rows = [
        [
            *(pair.name, str(pair.devices), ms(pair.one["milliseconds"]), ms(pair.several["milliseconds"])),
            *(f"{pair.ratio:.2f}", aim(pair), held(pair.one), held(pair.several)),
        ]
        for pair in timed
    ]
    memory = "MiB on one device", "MiB on each of all"
    return table(("case", "devices", "on one device, ms", "on all, ms", "ratio", "target", *memory), rows)


def aim(pair: Pair) -> str:
    if pair.aim is None:
        return ""
    return f"{pair.aim:g}, {'met' if pair.ratio <= pair.aim else '**missed**'}"


def held(figure: Found) -> str:
    arguments, results, temporaries = (mib(figure[name]) for name in ("arguments", "results", "temporaries"))
    return f"{arguments} + {results} + {temporaries}"


def bounds(timed: Iterable[Pair]) -> str:
    rows = []
    for pair in timed:
        most, what = pair.bound
        figures = mib(pair.several["sent"]), ms(pair.memory_ms), ms(pair.link_ms)
        rows.append([pair.name, str(pair.devices), *figures, what, f"{most / pair.several['milliseconds']:.0%}"])
    titles = "sent by each, MiB", "memory, ms", "link, ms", "largest", "share of the measured time"
    return table(("case", "devices", *titles), rows)


def growth(timed: Iterable[Pair]) -> str:
    rows = []
    for pair in timed:
        figures = ms(pair.one["milliseconds"]), ms(pair.several["milliseconds"]), f"{pair.ratio:.2f}"
        rows.append([pair.name, str(pair.devices), *figures])
    return table(("case", "devices", "one device alone, ms", "all together, ms", "ratio"), rows)


def estimates(timed: Sequence[Pair]) -> str:
    """From the most devices that were measured."""
    most = max((pair.devices for pair in timed), default=0)
    more = [factor * most for factor in FURTHER]
    rows = [
        [pair.name, *map(ms, (pair.one["milliseconds"], pair.several["milliseconds"], *map(pair.estimate, more)))]
        for pair in timed
        if pair.devices == most
    ]
    return table(("case", "1 device, measured", f"{most}, measured", *(f"{n}, estimated" for n in more)), rows)


def checks(found: Found) -> str:
    """How results were compared."""
    limits = []
    for work in found["works"]:
        some = [f["difference"] for f in found["figures"] if f["work"] == work["name"] and f["difference"] is not None]
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
