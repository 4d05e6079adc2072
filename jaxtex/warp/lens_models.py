"""The lens models, by name."""

# pyright: strict

from typing import Literal, NamedTuple

from ..modes import OptionEnum
from . import brown_conrady, kannala_brandt
from .types import GridFunction


class LensModel(OptionEnum):
    """How a lens bends rays."""

    BROWN_CONRADY = "brown_conrady"
    FISHEYE = "fisheye"


LensModelLike = LensModel | Literal["brown_conrady", "fisheye"]


class LensFunctions(NamedTuple):
    """What a model of a lens does.

    Attributes:
        to_distorted, to_ideal: pixels of the ideal image to pixels of the camera with the lens, and back; coordinate
            functions as in `grids`, with the parameters of `cameras`.
        counts: how many coefficients a lens may have.
        names: of the coefficients, for errors.
    """

    to_distorted: GridFunction
    to_ideal: GridFunction
    counts: tuple[int, ...]
    names: str


LENS_MODELS = {
    LensModel.BROWN_CONRADY: LensFunctions(
        brown_conrady.to_distorted, brown_conrady.to_ideal, (4, 5, 8), "k1, k2, p1, p2, then k3, then k4, k5, k6"
    ),
    LensModel.FISHEYE: LensFunctions(kannala_brandt.to_distorted, kannala_brandt.to_ideal, (4,), "k1, k2, k3, k4"),
}
