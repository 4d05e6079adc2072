"""How samples meet the texels of a texture that is cut over devices: what a caller decides."""

import dataclasses
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Halo:
    """Each device receives the texels beside its own.

    Attributes:
        reach: how many texels on each side, so how far samples may reach from the texels of their device.
    """

    reach: int


@dataclasses.dataclass(frozen=True)
class Routing:
    """Samples travel to the device that stores their texels, and values travel back.

    Attributes:
        slack: the samples that a device sends to another one at once, over those that it would send if all devices were
            sent to equally many. Further rounds send the rest.
    """

    slack: float = 1.25


@dataclasses.dataclass(frozen=True)
class Whole:
    """Each device receives the whole texture."""


Method = Halo | Routing | Whole
# What the caller has chosen, and a list that collects what is done, by what is compared by identity.
METHOD: Any = jax.make_user_context(None)
REPORT: Any = jax.make_user_context(None)
