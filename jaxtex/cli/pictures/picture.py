"""A picture: pixels, upright, and what its file says of them."""

# pyright: strict

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .metadata.kept import Metadata

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Picture:
    """Decoded pixels, upright, with the metadata that the output keeps.

    Attributes:
        pixels: (height, width, channels), uint8 or uint16; alpha, if any, is last and not premultiplied.
        icc: the embedded color profile, or `None`.
        notes: what was dropped, each the end of a sentence that begins with the name of the file.
        metadata: what else the file says, as it was stored.
    """

    pixels: Array
    icc: bytes | None = None
    notes: tuple[str, ...] = ()
    metadata: Metadata = dataclasses.field(default_factory=Metadata)


def from_16_bits(pixels: Array) -> Array:
    """Pixels of uint16 as the nearest ones of uint8."""
    return np.rint(pixels / 257.0).astype(np.uint8)
