"""Pictures to image files, each written completely or not at all.

Pixels are as `decode` makes them. 16-bit PNG is encoded by imagecodecs, and TIFF by `tiff`, since Pillow would reduce
16-bit color to 8 bits. JPEG is encoded by imagecodecs, which runs the same codec, since Pillow holds Python's lock
while it encodes.
"""

import io
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from PIL import Image

from ...warp.sized.mappings import Size
from ..options import Options, Subsampling
from ..process import UserError, describe
from .containers import add_to_jpeg, add_to_png
from .inputs import format_of
from .metadata import Picture, enumerate_names, fit, fit_profile
from .replace import opened_target
from .tiff import encode_tiff

FORMATS_OF_16_BITS = ("PNG", "TIFF")
JPEG_QUALITY = 95


def write_picture(path: Path, picture: Picture, options: Options, source: Path | None = None) -> tuple[str, ...]:
    """Encodes a picture in the format of the suffix and writes it to `path`, completely or not at all.

    Args:
        path: of the output, or - for standard output.
        picture: its metadata is that of the input.
        source: the input, whose permissions and times the output takes.

    Returns:
        What is lost, each the end of a sentence that begins with the name of the file.
    """
    file_format = format_of(path, options)
    try:
        fitted = fit_picture(picture, file_format, strip=options.strip)
        data = encode(fitted, file_format, options.quality, options.subsampling or "444")
    except Exception as error:  # encoders raise errors of their own, for example for an image that is too large
        raise UserError(f"cannot write {path}: {describe(error)}") from error
    with opened_target(path, source, options.preserve_times) as (stream, notes):
        stream.write(data)
    return (*fitted.notes, *notes)


def fit_picture(picture: Picture, file_format: str, *, strip: bool = False, size: Size | None = None) -> Picture:
    """A picture as a format stores it, without what it cannot store, which further notes name.

    Args:
        picture: its metadata is that of the input.
        file_format: PNG, JPEG, TIFF or WebP.
        strip: whether metadata is dropped, but for what tells the meaning of pixels.
        size: the width and height that metadata states; by default those of the picture.
    """
    pixels, notes = picture.pixels, picture.notes
    height, width, _ = pixels.shape
    if pixels.dtype == np.uint16 and file_format not in FORMATS_OF_16_BITS:
        pixels = np.rint(pixels / 257.0).astype(np.uint8)
        notes += (f"is reduced from 16 to 8 bits, the most that {file_format} can store",)
    if pixels.shape[-1] in (2, 4) and file_format == "JPEG":
        pixels = np.rint(pixels[..., :-1] * (pixels[..., -1:] / 255.0)).astype(np.uint8)
        notes += ("is laid over black, since JPEG has no alpha",)
    icc, lost = fit_profile(picture.icc, pixels.shape[-1] <= 2 and file_format != "WebP")
    metadata = picture.metadata.stripped() if strip else picture.metadata
    metadata, others = fit(metadata, file_format, size or (width, height))
    lost += others
    if lost:
        notes += (f"is written as {file_format} without its {enumerate_names(lost)}",)
    return Picture(pixels, icc, notes, metadata)


def encode(picture: Picture, file_format: str, quality: int | None = None, subsampling: Subsampling = "444") -> bytes:
    """Encodes a picture that fits its format; raises whatever the encoder raises.

    Args:
        quality: of JPEG and WebP, 1 to 100; `None` is 95 for JPEG, and WebP without loss.
        subsampling: of the colors of JPEG.
    """
    if file_format == "TIFF":
        return encode_tiff(picture)
    pixels, icc, metadata = picture.bare_pixels, picture.icc, picture.metadata
    if file_format == "JPEG":
        data = bytes(imagecodecs.jpeg8_encode(pixels, level=quality or JPEG_QUALITY, subsampling=subsampling))
        return add_to_jpeg(data, metadata, icc)
    if file_format == "PNG" and pixels.dtype == np.uint16:
        return add_to_png(bytes(imagecodecs.png_encode(pixels)), metadata, icc)
    buffer = io.BytesIO()
    if file_format == "PNG":
        Image.fromarray(pixels).save(buffer, format="PNG")
        return add_to_png(buffer.getvalue(), metadata, icc)
    loss: dict[str, Any] = {"lossless": True, "exact": True} if quality is None else {"quality": quality}
    stored = {"icc_profile": icc, "exif": metadata.exif, "xmp": metadata.xmp}
    given = {name: value for name, value in stored.items() if value}
    Image.fromarray(pixels).save(buffer, format="WebP", **loss, **given)
    return buffer.getvalue()
