"""Pixels of the images that Pillow decodes, by its modes."""

# pyright: strict, reportUnknownMemberType=false

import io
from typing import Any, cast

import numpy as np
from PIL import Image

from ..errors import UserError
from .picture import Array

MODES_8_BIT = {
    "1": "L",
    "L": "L",
    "La": "LA",
    "LA": "LA",
    "P": "RGB",
    "PA": "RGBA",
    "RGB": "RGB",
    "RGBX": "RGB",
    "RGBa": "RGBA",
    "RGBA": "RGBA",
    "CMYK": "RGB",
    "YCbCr": "RGB",
}
WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}


def load_pixels(image: Image.Image, icc: bytes | None) -> tuple[Array, bytes | None, tuple[str, ...]]:
    """The pixels of an image in 8 bits, their color profile, and notes on what was lost.

    Raises:
        UserError: if the image has another depth.
    """
    image.load()
    if image.mode != "CMYK":
        return np.asarray(to_8_bit(image)), icc, ()
    image, notes = cmyk_to_rgb(image, icc)
    return np.asarray(to_8_bit(image)), None, notes


def cmyk_to_rgb(image: Image.Image, icc: bytes | None) -> tuple[Image.Image, tuple[str]]:
    """Ink as light: by the color profile if there is one that can be used, else by plain arithmetic; and a note."""
    converted = convert_by_profile(image, icc) if icc else None
    if converted:
        return converted, ("is converted from CMYK to sRGB by its color profile",)
    dropped = ", and its color profile, which cannot be used, is dropped" if icc else ""
    return image.convert("RGB"), (f"is converted from CMYK to RGB without a color profile{dropped}",)


def convert_by_profile(image: Image.Image, icc: bytes) -> Image.Image | None:
    """An image in sRGB, or `None` if the profile is broken or for something else."""
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow may be built without it
        return None
    try:
        return ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(icc)),
            cast(Any, ImageCms.createProfile("sRGB")),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None


def to_8_bit(image: Image.Image) -> Image.Image:
    """Converts to 8 bits of gray or RGB, with alpha if the image has transparency of any kind.

    Raises:
        UserError: if the image has another depth.
    """
    mode = MODES_8_BIT.get(image.mode)
    if mode is None:
        raise UserError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)
