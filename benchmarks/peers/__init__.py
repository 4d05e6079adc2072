"""The competitors, each in a file of its own, and how far their results may be from jaxtex's."""

import gc

from ..inputs import made
from ..works import Work
from . import with_cupy, with_drjit, with_torch
from .protocol import CannotError, Peer, Run, wait
from .with_copy import addition, copy
from .with_cucim import cucim
from .with_cupy import texture_unit
from .with_drjit import drjit
from .with_jaxtex import by_default, jaxtex
from .with_nvdiffrast import nvdiffrast
from .with_opencv import opencv
from .with_scipy import map_coordinates
from .with_torch import torch
from .with_warp import warp

PEERS: dict[str, Peer] = {
    "jaxtex": jaxtex,
    "by default": by_default,
    "copy": copy,
    "an addition": addition,
    "texture unit": texture_unit,
    "Warp": warp,
    "nvdiffrast": nvdiffrast,
    "Dr.Jit": drjit,
    "cuCIM": cucim,
    "torch": torch,
    "OpenCV": opencv,
    "map_coordinates": map_coordinates,
}
# Positions are computed in another order: a rounding of the coordinate times the slope of noise.
TOLERANCE = 1e-3
# Weights of 8 bits: half a step on each axis, between texels that differ by twice the largest value.
TEXTURE_UNIT = 2.0**-8
# Fractions of 5 bits.
REMAP = 2.0**-5
# One sample of tens of thousands on the other side of a texel's center moves the gradient of a matrix that much.
MATRIX = 2e-2


def tolerance(name: str, work: Work) -> float | None:
    """How far a result may be from jaxtex's, relative to the largest value; None for other work."""
    if name in ("copy", "an addition"):
        return None
    if name in ("texture unit", "Warp") or work.arithmetic == "hardware":
        return TEXTURE_UNIT * (work.dimensions + work.mips)
    if name == "OpenCV":
        return REMAP * work.dimensions
    return MATRIX if work.coordinates == "affine" else TOLERANCE


def kinks(work: Work) -> float:
    """The share of numbers that may be further apart.

    Slopes jump at a texel's center, and a position is rounded to an ulp of the texture's size: about as many samples
    as ulps fit in a texel fall on another side. A texture unit rounds it to 256ths of a texel.
    """
    rounded = 2.0**-8 * work.dimensions if work.what == "slopes" else 0.0
    return 1e-3 + 8 * work.side * 2.0**-24 + rounded


def forget() -> None:
    """Frees what a work held on its device."""
    made.cache_clear()
    gc.collect()
    for peer in (with_cupy, with_drjit, with_torch):
        peer.forget()


__all__ = ["PEERS", "CannotError", "Peer", "Run", "forget", "kinks", "tolerance", "wait"]
