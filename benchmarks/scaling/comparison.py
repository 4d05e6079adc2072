"""Figures side by side: one device and several, what bounds them, and an estimate for more devices."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

Found = dict[str, Any]  # what --json writes
# What a device sends, by the number of devices, up to a factor. A part has two neighbors, at an end one. Of the samples
# of a device all but one part travel. A ring sends a sum around twice.
SENT: dict[str, Callable[[int], float]] = {
    "halo": lambda n: min(n - 1, 2),
    "routed": lambda n: (n - 1) / n**2,
    "sum": lambda n: (n - 1) / n,
}
OVERLAPPED = ("halo", "forward")  # neighbors send while inner samples are read; gradients are sent when they are there


@dataclasses.dataclass(frozen=True)
class Pair:
    """A function on one device and on several. `one` and `several` are figures as plain values."""

    found: Found
    work: Found
    one: Found
    several: Found

    @property
    def devices(self) -> int:
        return self.several["devices"]

    @property
    def name(self) -> str:
        rows = self.several["rows"]
        return f"{self.work['title'].format(rows)}: {self.several['function']}"

    @property
    def problem(self) -> str:
        return self.one["problem"] or self.several["problem"]

    @property
    def ratio(self) -> float:
        return self.several["milliseconds"] / self.one["milliseconds"]

    @property
    def aim(self) -> float | None:
        """The ratio to reach, on two devices."""
        return self.work["aims"].get(self.several["function"]) if self.devices == 2 else None

    @property
    def rates(self) -> tuple[float, float, float]:
        """Bytes a millisecond of the memory and of the link, and the milliseconds of a program that does nothing."""
        rates, key = self.found["rates"], str(self.devices)
        return rates["memory"] * 1e6, rates["link"][key] * 1e6, rates["launch"][key]

    @property
    def memory_ms(self) -> float:
        """At least: arguments are read once, and results written once."""
        return (self.several["arguments"] + self.several["results"]) / self.rates[0]

    @property
    def link_ms(self) -> float:
        return self.several["sent"] / self.rates[1]

    @property
    def bound(self) -> tuple[float, str]:
        """The longest of the times that it takes at least, and what takes it."""
        return max((self.memory_ms, "memory"), (self.link_ms, "link"), (self.rates[2], "launch"))

    def estimate(self, devices: int) -> float:
        """Milliseconds on so many devices, by the formula of docs/scaling.md."""
        _, link, launch = self.rates
        sent, overlapped = SENT[self.work["exchange"]], (self.work["exchange"], self.several["function"]) == OVERLAPPED
        exchange = self.several["sent"] * sent(devices) / sent(self.devices) / link
        own = self.several["milliseconds"] - launch - (0.0 if overlapped else self.link_ms)
        share = max(own, 0.0) * self.devices / devices
        return launch + (max(share, exchange) if overlapped else share + exchange)


def pairs(found: Found, scaling: str) -> Iterator[Pair]:
    """Of `scaling` "strong" or "weak", in the order of the works."""
    at = {(f["work"], f["function"], f["rows"], f["devices"]): f for f in found["rows"]}
    counts = sorted(int(count) for count in found["rates"]["link"])
    for work in found["works"]:
        rows = work[scaling]
        for function in work["functions"]:
            for count in counts if rows is not None else ():
                one = at.get((work["name"], function, rows, 1))
                several = at.get((work["name"], function, rows * (count if scaling == "weak" else 1), count))
                if one and several:
                    yield Pair(found, work, one, several)
