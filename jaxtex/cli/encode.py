"""Arrays of pixels to image files, each written completely or not at all.

Pixels are as `decode` makes them. 16-bit PNG is encoded by imagecodecs and TIFF by tifffile, since Pillow would reduce
16-bit color to 8 bits. JPEG is encoded by imagecodecs, which runs the same codec, since Pillow holds Python's lock
while it encodes.
"""

# pyright: strict, reportUnknownMemberType=false

import contextlib
import io
import os
import secrets
import struct
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

from .decode import Picture
from .errors import UserError, one_line
from .mappings import Array
from .writing import DEFAULT_WRITE, STREAM, WriteOptions, write_stdout

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WebP"}
FORMATS_OF_16_BITS = ("PNG", "TIFF")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "WebP": {"lossless": True, "exact": True},
}
JPEG_QUALITY = 95
PNG_HEADER_BYTES = 33  # signature and IHDR; iCCP may follow
JPEG_HEADER_BYTES = 20  # SOI and the APP0 of JFIF; APP2 may follow
JPEG_PROFILE = b"ICC_PROFILE\0"
JPEG_SEGMENT_BYTES = 65535 - 2 - len(JPEG_PROFILE) - 2  # without the fields for length, name, number and count


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


def write_picture(path: Path, picture: Picture, options: WriteOptions = DEFAULT_WRITE) -> tuple[str, ...]:
    """Encodes a picture in the format of the suffix and writes it to `path`, completely or not at all.

    Returns:
        What the format cannot store, each the end of a sentence that begins with the name of the file.

    Raises:
        UserError: if the format is unknown, the encoder refuses the image, or the file cannot be written.
    """
    file_format = find_format(options.named(path))
    pixels, notes = fit_to_format(picture.pixels, file_format)
    try:
        data = encode(pixels, file_format, picture.icc, options)
    except Exception as error:  # encoders raise errors of their own, for example for an image that is too large
        raise UserError(f"cannot write {path}: {one_line(error)}") from error
    (write_stdout if path == STREAM else replace_file)(path, data)
    return notes


def fit_to_format(pixels: Array, file_format: str) -> tuple[Array, tuple[str, ...]]:
    """Reduces pixels to what the format can store; returns them, and notes on what was lost."""
    notes = ()
    if pixels.dtype == np.uint16 and file_format not in FORMATS_OF_16_BITS:
        pixels = np.rint(pixels / 257.0).astype(np.uint8)
        notes += (f"is reduced from 16 to 8 bits, the most that {file_format} can store",)
    if pixels.shape[-1] in (2, 4) and file_format == "JPEG":
        pixels = np.rint(pixels[..., :-1] * (pixels[..., -1:] / 255.0)).astype(np.uint8)
        notes += ("is laid over black, since JPEG has no alpha",)
    return pixels, notes


def encode(pixels: Array, file_format: str, icc: bytes | None, options: WriteOptions = DEFAULT_WRITE) -> bytes:
    """Encodes pixels, without loss except as JPEG; keeps the profile if it fits the channels."""
    is_gray = pixels.shape[-1] <= 2 and file_format != "WebP"
    if icc is not None and icc[16:20] != (b"GRAY" if is_gray else b"RGB "):
        icc = None
    pixels = np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    if file_format == "JPEG":
        return encode_jpeg(pixels, icc, options)
    if file_format == "TIFF":
        return encode_tiff(pixels, icc)
    if pixels.dtype == np.uint16:
        return encode_16_bit_png(pixels, icc)
    buffer = io.BytesIO()
    profile = {} if icc is None else {"icc_profile": icc}
    saved = SAVE_OPTIONS[file_format]
    if file_format == "WebP" and options.quality is not None:
        saved = {"quality": options.quality}
    Image.fromarray(pixels).save(buffer, format=file_format, **saved, **profile)
    return buffer.getvalue()


def encode_16_bit_png(pixels: Array, icc: bytes | None) -> bytes:
    """Encodes a 16-bit PNG; the profile becomes an iCCP chunk (PNG specification, 11.3.2.3)."""
    data = bytes(imagecodecs.png_encode(pixels))
    if icc is None:
        return data
    body = b"iCCP" + b"ICC profile\0\0" + zlib.compress(icc)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:PNG_HEADER_BYTES] + chunk + data[PNG_HEADER_BYTES:]


def encode_jpeg(pixels: Array, icc: bytes | None, options: WriteOptions = DEFAULT_WRITE) -> bytes:
    """Encodes a JPEG; the profile is split into APP2 segments (ICC.1, annex B.4)."""
    data = bytes(
        imagecodecs.jpeg8_encode(pixels, level=options.quality or JPEG_QUALITY, subsampling=options.subsampling)
    )
    parts = [(icc or b"")[k : k + JPEG_SEGMENT_BYTES] for k in range(0, len(icc or b""), JPEG_SEGMENT_BYTES)]
    bodies = (JPEG_PROFILE + bytes((k, len(parts))) + part for k, part in enumerate(parts, 1))
    segments = (b"\xff\xe2" + struct.pack(">H", len(body) + 2) + body for body in bodies)
    return data[:JPEG_HEADER_BYTES] + b"".join(segments) + data[JPEG_HEADER_BYTES:]


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


def replace_file(path: Path, data: bytes) -> None:
    """Writes `data` to a temporary file beside `path` and renames it; the temporary file never stays.

    Raises:
        UserError: if the file cannot be written.
    """
    target = Path(os.path.realpath(path))  # so that a link stays a link
    partial = target.with_name(f".jaxtex-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        partial.write_bytes(data)
        os.replace(partial, target)
    except BaseException as error:  # an interrupt too
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error
        raise
