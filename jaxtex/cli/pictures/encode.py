"""Arrays of pixels to image files, each written completely or not at all.

Pixels are as `decode` makes them. 16-bit PNG is encoded by imagecodecs and TIFF by tifffile, since Pillow would reduce
16-bit color to 8 bits. JPEG is encoded by imagecodecs, which runs the same codec, since Pillow holds Python's lock
while it encodes.
"""

# pyright: strict, reportUnknownMemberType=false

import io
import os
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from ..errors import UserError, describe
from ..grammar.file_options import DEFAULTS, FileOptions
from .limits import Size
from .metadata.jpeg_segments import add_to_jpeg
from .metadata.kept import Metadata, enumerate_names, fit
from .metadata.png_chunks import add_to_png
from .metadata.tiff_tags import add_to_tiff
from .picture import Array, Picture, from_16_bits
from .targets import replace_file
from .writing import DEFAULT_WRITE, STREAM, WriteOptions, write_stdout

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WebP"}
FORMATS_OF_16_BITS = ("PNG", "TIFF")
JPEG_QUALITY = 95
PROFILE_SPACES = {b"GRAY": "gray", b"RGB ": "RGB", b"CMYK": "CMYK", b"Lab ": "Lab"}


def find_format(path: Path) -> str:
    """The format that the suffix of a file stands for.

    Raises:
        UserError: if the suffix is none of `FORMATS`.
    """
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        suffix = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UserError(f"cannot write {path}: it has {suffix}, expected one of {', '.join(FORMATS)}") from None


def write_picture(
    path: Path,
    picture: Picture,
    options: WriteOptions = DEFAULT_WRITE,
    files: FileOptions = DEFAULTS,
    source: Path | None = None,
) -> tuple[str, ...]:
    """Encodes a picture in the format of the suffix and writes it to `path`, completely or not at all.

    Args:
        path: of the output, or - for standard output.
        picture: its metadata is that of the input.
        options: how the picture is encoded.
        files: how files are written.
        source: the input, whose permissions and times the output takes.

    Returns:
        What the format cannot store, each the end of a sentence that begins with the name of the file.

    Raises:
        UserError: if the format is unknown, the encoder refuses the image, or the file cannot be written.
    """
    data, notes = encode_for(path, picture, options, files)
    if path == STREAM:
        write_stdout(data)
        return notes
    return (*notes, *replace_file(path, data, status_of_source(source), files.preserve_times))


def encode_for(
    path: Path, picture: Picture, options: WriteOptions = DEFAULT_WRITE, files: FileOptions = DEFAULTS
) -> tuple[bytes, tuple[str, ...]]:
    """Encodes a picture in the format of the suffix of `path`; returns the file, and what it cannot store.

    Raises:
        UserError: if the format is unknown, or the encoder refuses the image.
    """
    file_format = find_format(options.named(path))
    try:
        return encode_picture(picture, file_format, files.strip, options)
    except Exception as error:  # encoders raise errors of their own, for example for an image that is too large
        raise UserError(f"cannot write {path}: {describe(error)}") from error


def status_of_source(source: Path | None) -> os.stat_result | None:
    """The status of the file that an output is made from, if it is one."""
    return source.stat() if source and os.path.exists(source) else None


def encode_picture(
    picture: Picture,
    file_format: str,
    strip: bool = False,
    options: WriteOptions = DEFAULT_WRITE,
    size: Size | None = None,
) -> tuple[bytes, tuple[str, ...]]:
    """Encodes a picture with its metadata; raises whatever the encoder raises.

    Args:
        picture: its metadata is that of the input.
        file_format: PNG, JPEG, TIFF or WebP.
        strip: whether metadata is dropped, but for what tells the meaning of pixels.
        options: how the picture is encoded.
        size: the width and height that metadata states; by default those of the picture.

    Returns:
        The file, and what the format cannot store, as the ends of sentences.
    """
    pixels, notes = fit_to_format(picture.pixels, file_format)
    height, width, channels = pixels.shape
    is_gray = channels <= 2 and file_format != "WebP"
    icc, lost = picture.icc, ()
    if icc is not None and icc[16:20] != (b"GRAY" if is_gray else b"RGB "):
        lost = (f"color profile, which is for {PROFILE_SPACES.get(icc[16:20], 'other')} images",)
        icc = None
    metadata = picture.metadata.stripped() if strip else picture.metadata
    metadata, dropped = fit(metadata, file_format, size or (width, height), icc is not None)
    lost += dropped
    if lost:
        notes += (f"is written as {file_format} without its {enumerate_names(lost)}",)
    return encode(pixels, file_format, icc, metadata, options), notes


def fit_to_format(pixels: Array, file_format: str) -> tuple[Array, tuple[str, ...]]:
    """Reduces pixels to what the format can store; returns them, and notes on what was lost."""
    notes = ()
    if pixels.dtype == np.uint16 and file_format not in FORMATS_OF_16_BITS:
        pixels = from_16_bits(pixels)
        notes += (f"is reduced from 16 to 8 bits, the most that {file_format} can store",)
    if pixels.shape[-1] in (2, 4) and file_format == "JPEG":
        pixels = np.rint(pixels[..., :-1] * (pixels[..., -1:] / 255.0)).astype(np.uint8)
        notes += ("is laid over black, since JPEG has no alpha",)
    return pixels, notes


def encode(
    pixels: Array, file_format: str, icc: bytes | None, metadata: Metadata, options: WriteOptions = DEFAULT_WRITE
) -> bytes:
    """Encodes pixels, with a profile and metadata that fit the format."""
    pixels = np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    if file_format == "JPEG":
        return add_to_jpeg(encode_jpeg(pixels, options), metadata, icc)
    if file_format == "TIFF":
        return add_to_tiff(encode_tiff(pixels, icc), metadata)
    if file_format == "PNG":
        return add_to_png(encode_png(pixels), metadata, icc)
    return encode_webp(pixels, icc, metadata, options)


def encode_jpeg(pixels: Array, options: WriteOptions = DEFAULT_WRITE) -> bytes:
    """Encodes a JPEG."""
    level = options.quality or JPEG_QUALITY
    return bytes(imagecodecs.jpeg8_encode(pixels, level=level, subsampling=options.subsampling))


def encode_png(pixels: Array) -> bytes:
    """Encodes a PNG of 8 or 16 bits."""
    if pixels.dtype == np.uint16:
        return bytes(imagecodecs.png_encode(pixels))
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def encode_webp(pixels: Array, icc: bytes | None, metadata: Metadata, options: WriteOptions) -> bytes:
    """Encodes a WebP, without loss if no quality is chosen."""
    loss: dict[str, Any] = {"lossless": True, "exact": True}
    if options.quality is not None:
        loss = {"quality": options.quality}
    stored = {"icc_profile": icc, "exif": metadata.exif, "xmp": metadata.xmp}
    buffer = io.BytesIO()
    given = {name: value for name, value in stored.items() if value}
    Image.fromarray(pixels).save(buffer, format="WebP", **loss, **given)
    return buffer.getvalue()


def encode_tiff(pixels: Array, icc: bytes | None) -> bytes:
    """Encodes a TIFF of 8 or 16 bits, compressed by deflate."""
    channels = pixels.shape[-1] if pixels.ndim == 3 else 1
    buffer = io.BytesIO()
    tifffile.imwrite(
        buffer,
        pixels,
        photometric="rgb" if channels >= 3 else "minisblack",
        planarconfig="contig" if channels > 1 else None,
        extrasamples=["unassalpha"] if channels in (2, 4) else None,
        compression="adobe_deflate",
        iccprofile=icc,
        metadata=None,
    )
    return buffer.getvalue()
