"""Figures as Markdown: the section "Measured" of docs/scaling.md."""

from collections.abc import Iterable, Sequence

from .comparison import Found, Pair, pairs

MIB = 2.0**20
MORE = (2, 4, 8)
STRONG = "**Strong scaling:** the same work on more devices. The best ratio is 1 over the number of devices."
HELD = "MiB: arguments, results and temporaries of the compiled program."
BOUNDS = (
    "**What bounds it:** arguments read once and results written once, at the rate of a copy; what a device sends, at "
    "the rate of the link; a program that does nothing. Temporaries are not counted, of which a training step writes and "
    "reads many times as much."
)
WEAK = "**Weak scaling:** each device has as much as one device alone. The best ratio is 1."
ESTIMATE = (
    "**An estimate** of the milliseconds on more devices, by the formula [below](#more-devices-an-estimate). Only the "
    "first two columns are measured."
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
        f"{where}; size {found['size']}. A copy on one device moves {digits(rates['memory'])} GB/s. Each device sends "
        f"{links}, where all send to the next one. A program that does nothing takes {launches}."
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
    return table(("work", "devices", "one, ms", "all, ms", "ratio", "aim", "on one, MiB", "on each, MiB"), rows)


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
    titles = "sent by each, MiB", "memory, ms", "link, ms", "bound by", "its share of the time"
    return table(("work", "devices", *titles), rows)


def growth(timed: Iterable[Pair]) -> str:
    rows = []
    for pair in timed:
        figures = ms(pair.one["milliseconds"]), ms(pair.several["milliseconds"]), f"{pair.ratio:.2f}"
        rows.append([pair.name, str(pair.devices), *figures])
    return table(("work", "devices", "one with its share, ms", "all, ms", "ratio"), rows)


def estimates(timed: Sequence[Pair]) -> str:
    """From the most devices that were measured."""
    most = max((pair.devices for pair in timed), default=0)
    rows = [
        [pair.name, *map(ms, (pair.one["milliseconds"], pair.several["milliseconds"], *map(pair.estimate, MORE)))]
        for pair in timed
        if pair.devices == most
    ]
    return table(("work", "one, measured", f"{most}, measured", *(f"{n}, estimate" for n in MORE)), rows)


def checks(found: Found) -> str:
    """How results were compared."""
    limits = []
    for work in found["works"]:
        some = [f["difference"] for f in found["figures"] if f["work"] == work["name"] and f["difference"] is not None]
        if some:
            limits.append(f"{work['name']} {max(some):.1e} (at most {work['tolerance']:.1e})")
    return f"Largest difference from one device, as a share of the largest value: {', '.join(limits) or 'none'}."


def ms(value: float) -> str:
    return f"{value:.3f}"


def mib(count: int) -> str:
    return digits(count / MIB)


def digits(value: float) -> str:
    """Two digits where it is small, so that what is there is not shown as nothing."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
