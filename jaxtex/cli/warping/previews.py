"""What is done to whole pictures beside the warp: an alpha channel, and a size to look at."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses

import numpy as np

from ...sampler import Sampler
from ..environment.devices import Device
from ..pictures.limits import Size
from ..pictures.picture import Array, Picture
from ..transforms.resizing import Resize
from .programs import ReadOptions
from .warp import warp

# Width and height of each half of a preview, at most.
PREVIEW: Size = (480, 480)


def with_alpha(picture: Picture) -> Picture:
    """A picture with an opaque alpha channel, if it has none."""
    pixels = picture.pixels
    if pixels.shape[-1] in (2, 4):
        return picture
    opaque = np.full_like(pixels[..., :1], np.iinfo(pixels.dtype).max)
    return dataclasses.replace(picture, pixels=np.concatenate([pixels, opaque], axis=-1))


def shrunk(pixels: Array, device: Device) -> Array:
    """A picture made so small that it fits half of a preview; a small one stays as it is."""
    source = pixels.shape[1], pixels.shape[0]
    if source[0] <= PREVIEW[0] and source[1] <= PREVIEW[1]:
        return pixels
    resize = Resize(fit=PREVIEW)
    size = resize.output_size(source)
    read = ReadOptions(Sampler(address_mode="clamp"), antialias=True)
    border = np.zeros(pixels.shape[-1], pixels.dtype)
    result = warp(pixels, resize.mapping(source, size), border, size=size, read=read, device=device)
    return result.pixels()
