"""Warnings of images whose axes seem to come in another order, or whose axis of channels seems to be missing."""

import warnings
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from . import hints

# Up to so many channels, and from so many rows and columns on, an array looks like an image in another layout.
MOST_COLORS, LEAST_SIDE = 4, 16
# The least side of small pictures that come in batches, such as digits.
LEAST_GRAY = 8
# No usual feature map has this many times as many columns as rows, or as many rows as columns.
THIN, TALL = 4, 2
# Numbers of channels in models are multiples of this.
CHANNELS = 8


def mention_layout(name: str, argument: str, shape: tuple[int, ...], stored: np.dtype[Any]) -> None:
    """Warns of the image of a warp that is read as ``(..., H, W, C)``, but looks as if it were something else."""
    remedies = list[str]()
    if looks_channels_first(shape[-3:]):
        remedies.append(f"If its channels come first, pass jnp.moveaxis({argument}, -3, -1).")
    if len(shape) == 3 and (remedies or looks_like_batch(shape, stored)):
        remedies.append(f"If it is a batch (N, H, W) of images without channels, pass {argument}[..., None].")
    if remedies:
        warnings.warn(
            f"{name}: {argument} has shape {shape}, read as (..., H, W, C): {shape[-3]} rows and {shape[-1]} channels. "
            f"{' '.join(remedies)}",
            stacklevel=3,
        )


def looks_channels_first(shape: Sequence[int]) -> bool:
    """Whether the sizes of an image are rather (C, H, W) than (H, W, C)."""
    return shape[0] <= MOST_COLORS < LEAST_SIDE <= min(shape[1:])


def looks_like_batch(shape: Sequence[int], stored: np.dtype[Any]) -> bool:
    """Whether the sizes of one image are rather (N, H, W), a batch without an axis of channels, than (H, W, C).

    The last two sizes of such a batch are alike, and the first is another number. A feature map of a model may have as
    many channels as columns, too, such as (48, 64, 64). But it is floating, the number of its channels is a multiple
    of 8, and its rows and columns are those of a picture, not four times as wide as high, or twice as high as wide. A
    batch is certain if one of these does not hold; with JAXTEX_DEBUG=1, equal last sizes suffice. Cubes of
    hyperspectral integers and maps of classes have other numbers of channels than columns.
    """
    count, height, width = shape
    short, long = sorted((height, width))
    if count == height or short < LEAST_GRAY or long > 2 * short:
        return False
    if count < height and short < LEAST_SIDE:
        return False  # a few rows of a few pixels
    is_square, is_integer = height == width, not jnp.issubdtype(stored, jnp.inexact)
    if is_square and (is_integer or width % CHANNELS or hints.is_on()):
        return True
    if count < height:
        return THIN * count <= short
    return (is_square and count > TALL * height) or (is_integer and count >= THIN * height)
