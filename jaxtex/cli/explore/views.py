"""What the page shows: the values of its controls, and which of them fit together."""

# pyright: strict

import dataclasses
import math
from typing import get_args

import numpy as np

from ..._tables.address_rules import ADDRESS_RULES
from ...modes import AddressMode, Arithmetic, FilterMode
from ...sampler import Sampler
from ..grammar.option_groups import FilterName
from ..pictures.limits import Size
from ..pictures.picture import Array
from ..transforms.affine import rotation

FILTERS: tuple[str, ...] = get_args(FilterName)
ADDRESSES = tuple(mode.value for mode in AddressMode)
ARITHMETICS = tuple(mode.value for mode in Arithmetic)
SMALL_SCALES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SCALES = (*SMALL_SCALES, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
ANISOTROPIES = (1, 2, 4, 8, 16)
# The camera stands this many of the longer sides of the picture in front of its center. From there, no tilt up to the
# largest one brings the horizon into the output.
DISTANCE, LARGEST_TILT = 1.2, 65
DIGITS = 8  # of the elements of a matrix


@dataclasses.dataclass(frozen=True)
class View:
    """The values of the controls.

    Attributes:
        degrees: the rotation, counter-clockwise as seen.
        scale: the factor by which the picture becomes larger.
        tilt: degrees by which the turned picture leans back, 0 to `LARGEST_TILT`.
        level: the level of detail of every pixel, 0 for the picture itself; only without `antialias`.
        anisotropy: the most reads along a long footprint; only with `antialias`.
        filter: a filter mode.
        address: an address mode.
        arithmetic: of the picture that is shown.
        antialias: whether the picture is smoothed as far as it shrinks.
    """

    degrees: float = 20.0
    scale: float = 1.0
    tilt: float = 0.0
    level: float = 0.0
    anisotropy: int = 1
    filter: str = "linear"
    address: str = "border"
    arithmetic: str = "float"
    antialias: bool = False

    @property
    def reads_level(self) -> bool:
        """Whether every pixel reads one level of detail of a mip chain."""
        return not self.antialias and self.level > 0

    def sampler(self, arithmetic: str) -> Sampler:
        """The sampler of the view, in an arithmetic.

        Raises:
            ValueError: if hardware arithmetic has no such mode.
        """
        return Sampler(
            address_mode=AddressMode(self.address),
            filter_mode=FilterMode(self.filter),
            mipmap_filter_mode="linear" if self.reads_level else "point",
            max_anisotropy=self.anisotropy if self.antialias else 1,
            arithmetic=Arithmetic(arithmetic),
        )

    def matrix(self, size: Size) -> Array:
        """The (3, 3) matrix from points of the picture to points of the output, both of this width and height.

        Its elements have as few digits as the page shows, so that the call that it shows makes the same picture.
        """
        turn, distance = math.radians(self.tilt), DISTANCE * max(size)
        middle = np.array(size) / 2.0
        linear = np.eye(3)
        linear[:2, :2] = self.scale * rotation(self.degrees)
        # A point (u, v) of the plane lies v sin(tilt) nearer to the camera than the center.
        lean = np.array([[1, 0, 0], [0, math.cos(turn), 0], [0, -math.sin(turn) / distance, 1]])
        matrix = moved(middle) @ lean @ linear @ moved(-middle)
        return np.array([[float(f"{element:.{DIGITS}g}") for element in row] for row in matrix])


def moved(by: Array) -> Array:
    """The (3, 3) matrix that adds a vector to a point."""
    matrix = np.eye(3)
    matrix[:2, 2] = by
    return matrix


def hardware_problem(view: View) -> str | None:
    """Why no texture unit reads the view, as a sentence; `None` if it does."""
    if not view.sampler("float").kernel.on_hardware:
        return f"No texture unit has the filter {view.filter}."
    if not ADDRESS_RULES[AddressMode(view.address)].on_hardware:
        return f"No texture unit has the address mode {view.address}."
    return None


def disabled(view: View, size: Size) -> dict[str, list[str]]:
    """The values of each control that do not fit the others, or a picture of this width and height.

    A value that is chosen is not among them.
    """
    is_hardware = view.arithmetic == "hardware"
    filters = [name for name in FILTERS if is_hardware and hardware_problem(View(filter=name))]
    addresses = [name for name in ADDRESSES if is_hardware and hardware_problem(View(address=name))]
    if size[0] % 2 and "sphere" not in addresses:
        addresses.append("sphere")
    found = {
        "filter": filters,
        "address": addresses,
        "arithmetic": ["hardware"] if hardware_problem(view) else [],
    }
    return {name: [value for value in values if value != getattr(view, name)] for name, values in found.items()}


def without_effect(view: View) -> dict[str, str]:
    """Each control that changes nothing, and why, as a sentence."""
    found: dict[str, str] = {}
    if view.antialias:
        found["level"] = "Antialias chooses the level of detail of each pixel."
    else:
        found["anisotropy"] = "Anisotropy needs antialias."
    return found
