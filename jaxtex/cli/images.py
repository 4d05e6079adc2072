"""Image files and pixel arrays: decode, encode, and a write that leaves a whole file or none.

Pixels are (height, width, channels) in uint8 or uint16; 1 to 4 channels are grey, grey and alpha, RGB, RGBA.
Pillow cuts 16-bit colour to 8 bits in silence, so 16-bit PNG goes through imagecodecs and 16-bit TIFF through
tifffile, in both directions; everything else is Pillow's.
"""

import contextlib
import dataclasses
import io
import logging
import os
import secrets
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

from .errors import UserError

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF", ".webp": "WebP"}
DEEP_FORMATS = ("PNG", "TIFF")
SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "JPEG": {"quality": 95, "subsampling": 0},
    "TIFF": {"compression": "tiff_adobe_deflate"},
    "WebP": {"lossless": True, "exact": True},
}
PLAIN_MODES = {
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
ORIENTATION_TAG, ICC_TAG = 274, 34675
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER_BYTES = 33  # signature and IHDR, after which iCCP may stand; the bit depth is byte 24
TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
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

logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # it logs what it then raises


@dataclasses.dataclass(frozen=True)
class Picture:
    """Decoded pixels, upright, with what has to travel along.

    Attributes:
        pixels: (height, width, channels), uint8 or uint16; alpha, if any, is last and straight.
        icc: the embedded colour profile, or `None`.
        notes: what was left out, each the end of a sentence that begins with the file's name.
    """

    pixels: np.ndarray
    icc: bytes | None = None
    notes: tuple[str, ...] = ()


def read_picture(path: Path) -> Picture:
    """Decodes the image file `path`, its first page if there are several.

    Raises:
        UserError: if the file cannot be read, or its contents are no image or one of an unsupported depth.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    try:
        with warnings.catch_warnings(action="ignore"):  # of much memory, of odd metadata
            return decode(data)
    except UnidentifiedImageError as error:
        raise UserError(f"cannot read {path}: it is no image of a known format") from error
    except Exception as error:  # each codec has errors of its own; a broken file can raise any of them
        raise UserError(f"cannot read {path}: {one_line(error)}") from error


def decode(data: bytes) -> Picture:
    """Decodes the bytes of an image file; raises whatever the codec raises."""
    if data[:4] in TIFF_SIGNATURES:
        with tifffile.TiffFile(io.BytesIO(data)) as tiff:
            page = tiff.pages.first
            if page.bitspersample == 16:
                return decode_deep_tiff(page, len(tiff.pages))
    with Image.open(io.BytesIO(data)) as image:
        pages = getattr(image, "n_frames", 1)
        dropped = image.mode == "RGBX"
        icc = image.info.get("icc_profile")
        if data.startswith(PNG_SIGNATURE) and data[24] == 16:
            pixels = imagecodecs.png_decode(data)
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
        else:
            image.load()  # turns a TIFF upright and then forgets its orientation, so ask afterwards
            orientation = image.getexif().get(ORIENTATION_TAG, 1)
            pixels = np.asarray(plain(image))
    return assemble(pixels, orientation, icc, pages, dropped)


def plain(image: Image.Image) -> Image.Image:
    """Converts to 8 bits of grey or RGB, with alpha if the image has any, be it one clear colour."""
    mode = PLAIN_MODES.get(image.mode)
    if mode is None:
        raise ValueError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)


def decode_deep_tiff(page: Any, pages: int) -> Picture:
    """Decodes a 16-bit TIFF page, grey or RGB, with or without alpha."""
    photometric = tifffile.PHOTOMETRIC(page.photometric)
    colours = {"MINISWHITE": 1, "MINISBLACK": 1, "RGB": 3}.get(photometric.name)
    if colours is None or page.dtype != np.uint16:
        raise ValueError(
            f"{page.dtype} {photometric.name} pixels are not supported, only uint16 grey and RGB"
        )
    pixels = page.asarray()
    if page.axes == "SYX":
        pixels = np.moveaxis(pixels, 0, -1)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    if photometric.name == "MINISWHITE":
        pixels = np.concatenate([65535 - pixels[..., :1], pixels[..., 1:]], axis=-1)
    extra = page.extrasamples[0] if page.extrasamples else tifffile.EXTRASAMPLE.UNSPECIFIED
    has_alpha = pixels.shape[-1] > colours and extra != tifffile.EXTRASAMPLE.UNSPECIFIED
    dropped = pixels.shape[-1] > colours + has_alpha
    pixels = pixels[..., : colours + has_alpha]
    if has_alpha and extra == tifffile.EXTRASAMPLE.ASSOCALPHA:
        pixels = unassociated(pixels)
    tags = {code: page.tags[code].value for code in (ORIENTATION_TAG, ICC_TAG) if code in page.tags}
    return assemble(pixels, tags.get(ORIENTATION_TAG, 1), tags.get(ICC_TAG), pages, dropped)


def unassociated(pixels: np.ndarray) -> np.ndarray:
    """Divides 16-bit colours that are stored multiplied by alpha by that alpha."""
    alpha = pixels[..., -1:].astype(np.float64)
    colours = np.minimum(np.rint(pixels[..., :-1] * 65535.0 / np.maximum(alpha, 1)), 65535)
    return np.concatenate([colours.astype(np.uint16), pixels[..., -1:]], axis=-1)


def assemble(pixels: np.ndarray, orientation: int, icc: bytes | None, pages: int, dropped: bool) -> Picture:
    """Gives pixels their channel axis, turns them upright, and collects the notes."""
    notes = (f"has {pages} pages, of which the first is used",) if pages > 1 else ()
    notes += (EXTRA_CHANNEL_NOTE,) if dropped else ()
    pixels = upright(pixels.reshape(*pixels.shape[:2], -1), orientation)
    return Picture(np.ascontiguousarray(pixels), icc, notes)


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Turns stored pixels as an EXIF orientation asks (TIFF 6.0, tag 274)."""
    pixels = pixels[FLIPS.get(orientation, np.s_[:])]
    return pixels.swapaxes(0, 1) if orientation in (5, 6, 7, 8) else pixels


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
    if pixels.dtype == np.uint16:
        return encode_deep_tiff(pixels, icc) if kind == "TIFF" else encode_deep_png(pixels, icc)
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


def encode_deep_tiff(pixels: np.ndarray, icc: bytes | None) -> bytes:
    """Encodes a 16-bit TIFF, deflated."""
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


def one_line(error: BaseException) -> str:
    """The message of an exception on one line, its class if it has none."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
