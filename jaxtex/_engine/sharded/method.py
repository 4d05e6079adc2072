"""The methods by which a device gets what its samples need of a sharded texture, and the caller's choice of one."""

import dataclasses

from ..._jax.contexts import REPORT


@dataclasses.dataclass(frozen=True)
class Halo:
    """Each device receives the texels next to its own from its neighbors.

    Attributes:
        reach: how many texels on each side. Samples may reach so far beyond the texels of their device.
    """

    reach: int


@dataclasses.dataclass(frozen=True)
class Routing:
    """Samples travel to the device that stores their texels, and values travel back.

    Attributes:
        slack: how many samples a device sends to each other device in one round at most, as a multiple of an equal
            share. Further rounds send the rest.
    """

    slack: float = 1.1


@dataclasses.dataclass(frozen=True)
class Whole:
    """Each device receives the whole texture."""


Method = Halo | Routing | Whole


def report(line: str) -> None:
    """Adds a line to the report that a caller has asked for."""
    if REPORT.value is not None:
        REPORT.value.found.append(line)
