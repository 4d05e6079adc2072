"""Decoded pixels as the picture is shown, by the orientation that its file states (TIFF 6.0, tag 274)."""

# pyright: strict

import dataclasses

import numpy as np

from .limits import Size
from .picture import Array, Picture

SWAPPING = (5, 6, 7, 8)
# EXIF orientations 5 to 8 also swap the axes, after the flip.
FLIPS = {
    2: np.s_[:, ::-1],
    3: np.s_[::-1, ::-1],
    4: np.s_[::-1],
    6: np.s_[::-1],
    7: np.s_[::-1, ::-1],
    8: np.s_[:, ::-1],
}
EXTRA_CHANNEL_NOTE = "has a channel of undeclared meaning, which is dropped"


def upright_size(size: Size, orientation: int) -> Size:
    """Width and height of a picture as it is shown, from those that are stored."""
    return (size[1], size[0]) if orientation in SWAPPING else size


def stored_part(part: tuple[slice, slice], stored: Size, orientation: int) -> tuple[slice, slice]:
    """The rows and columns of the stored picture that are some rows and columns of the upright one.

    Args:
        stored: height and width.
    """
    found = list(part[::-1] if orientation in SWAPPING else part)
    flips = FLIPS.get(orientation, ())
    for axis, flip in enumerate(flips if isinstance(flips, tuple) else (flips,)):
        if flip.step == -1:
            found[axis] = slice(stored[axis] - found[axis].stop, stored[axis] - found[axis].start)
    return found[0], found[1]


def assemble(pixels: Array, orientation: int, picture: Picture, drops_channel: bool) -> Picture:
    """A picture with pixels that have an axis of channels and are upright, and with all notes."""
    notes = (*picture.notes, EXTRA_CHANNEL_NOTE) if drops_channel else picture.notes
    pixels = apply_orientation(pixels.reshape(*pixels.shape[:2], -1), orientation)
    return dataclasses.replace(picture, pixels=np.ascontiguousarray(pixels), notes=notes)


def apply_orientation(pixels: Array, orientation: int) -> Array:
    """Turns stored pixels upright."""
    pixels = pixels[FLIPS.get(orientation, np.s_[:])]
    return pixels.swapaxes(0, 1) if orientation in SWAPPING else pixels
