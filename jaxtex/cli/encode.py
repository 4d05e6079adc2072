"""From pixel arrays to image files, each written whole or not at all.

Pixels are as `decode` makes them. 16-bit PNG goes through imagecodecs and TIFF through tifffile, since Pillow would cut
16-bit colour to 8 bits. JPEG goes through imagecodecs, the same codec, since Pillow holds Python's lock while it
encodes.
"""

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

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WebP"}
DEEP_FORMATS = ("PNG", "TIFF")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "WebP": {"lossless": True, "exact": True},
}
JPEG_QUALITY = 95
PNG_HEADER_BYTES = 33  # signature and IHDR, after which iCCP may stand
JPEG_HEADER_BYTES = 20  # SOI and the APP0 of JFIF, after which APP2 may stand
JPEG_PROFILE = b"ICC_PROFILE\0"
JPEG_SEGMENT_BYTES = 65535 - 2 - len(JPEG_PROFILE) - 2  # less the lengths of itself, name, number and count


def format_of(path: Path) -> str:
    """The format that a file's suffix asks for.

    Raises:
        UserError: if the suffix is none of `FORMATS`.
    """
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        had = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UserError(f"cannot write {path}: it has {had}, expected one of {', '.join(FORMATS)}") from None


def write_picture(path: Path, picture: Picture) -> tuple[str, ...]:
    """Encodes `picture` in the format of the suffix and puts it at `path`, whole or not at all.

    Returns:
        What the format could not hold, each the end of a sentence that begins with the file's name.

    Raises:
        UserError: if the format is unknown, the encoder refuses the image, or the file cannot be written.
    """
    kind = format_of(path)
    pixels, notes = fitted(picture.pixels, kind)
    try:
        data = encode(pixels, kind, picture.icc)
    except Exception as error:  # as above: encoders raise errors of their own, a too large image among them
        raise UserError(f"cannot write {path}: {one_line(error)}") from error
    replace_file(path, data)
    return notes


def fitted(pixels: np.ndarray, kind: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Reduces pixels to what the format can hold, and says so."""
    notes = ()
    if pixels.dtype == np.uint16 and kind not in DEEP_FORMATS:
        pixels = np.rint(pixels / 257.0).astype(np.uint8)
        notes += (f"is reduced from 16 to 8 bits, all that {kind} can hold",)
    if pixels.shape[-1] in (2, 4) and kind == "JPEG":
        pixels = np.rint(pixels[..., :-1] * (pixels[..., -1:] / 255.0)).astype(np.uint8)
        notes += ("is laid over black, since JPEG has no alpha",)
    return pixels, notes


def encode(pixels: np.ndarray, kind: str, icc: bytes | None) -> bytes:
    """Encodes pixels, losslessly but for JPEG; the profile stays if it fits the channels."""
    grey = pixels.shape[-1] <= 2 and kind != "WebP"
    if icc is not None and icc[16:20] != (b"GRAY" if grey else b"RGB "):
        icc = None
    pixels = np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    if kind == "JPEG":
        return encode_jpeg(pixels, icc)
    if kind == "TIFF":
        return encode_tiff(pixels, icc)
    if pixels.dtype == np.uint16:
        return encode_deep_png(pixels, icc)
    buffer = io.BytesIO()
    profile = {} if icc is None else {"icc_profile": icc}
    Image.fromarray(pixels).save(buffer, format=kind, **SAVE_OPTIONS[kind], **profile)
    return buffer.getvalue()


def encode_deep_png(pixels: np.ndarray, icc: bytes | None) -> bytes:
    """Encodes a 16-bit PNG; the profile becomes an iCCP chunk (PNG specification, 11.3.2.3)."""
    data = bytes(imagecodecs.png_encode(pixels))
    if icc is None:
        return data
    body = b"iCCP" + b"ICC profile\0\0" + zlib.compress(icc)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:PNG_HEADER_BYTES] + chunk + data[PNG_HEADER_BYTES:]


def encode_jpeg(pixels: np.ndarray, icc: bytes | None) -> bytes:
    """Encodes a JPEG without subsampling; the profile is cut in APP2 segments (ICC.1, annex B.4)."""
    data = bytes(imagecodecs.jpeg8_encode(pixels, level=JPEG_QUALITY, subsampling="444"))
    parts = [(icc or b"")[k : k + JPEG_SEGMENT_BYTES] for k in range(0, len(icc or b""), JPEG_SEGMENT_BYTES)]
    bodies = (JPEG_PROFILE + bytes((k, len(parts))) + part for k, part in enumerate(parts, 1))
    segments = (b"\xff\xe2" + struct.pack(">H", len(body) + 2) + body for body in bodies)
    return data[:JPEG_HEADER_BYTES] + b"".join(segments) + data[JPEG_HEADER_BYTES:]


def encode_tiff(pixels: np.ndarray, icc: bytes | None) -> bytes:
    """Encodes a TIFF of 8 or 16 bits, deflated."""
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
    """Puts `data` at `path` by renaming a finished temporary file, which never stays behind."""
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did
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
