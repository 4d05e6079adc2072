"""How files store their pixels, which an output in the format of its input keeps, and the codecs of TIFF.

Sources: TIFF 6.0, tag 259, and the values that Adobe and libtiff add; RFC 1950, section 2.2; WebP container
specification.
"""

import functools
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import imagecodecs
import numpy as np
from PIL import Image, JpegImagePlugin

from ...warp.sized.mappings import Array
from ..options import COMPRESSIONS, Options

QUALITY = 95  # of JPEG, and of WebP with loss
DEFAULTS = {"TIFF": "deflate", "PNG": "6", "WebP": "lossless"}
# The levels of zlib that the two bits of its header stand for.
PNG_LEVELS = ("1", "3", "6", "9")
SUBSAMPLINGS = {0: "444", 1: "422", 2: "420"}


class Compression(NamedTuple):
    """How pixels are compressed.

    Attributes:
        kind: a word of `--compression`; `None` if it is not known, or the format has no such words.
        quality: of JPEG, and of WebP with loss, 1 to 100.
        subsampling: of the colors of JPEG.
    """

    kind: str | None = None
    quality: int | None = None
    subsampling: str | None = None


UNKNOWN = Compression()


def chosen(options: Options, kept: Compression, file_format: str) -> Compression:
    """How an output is compressed: as the options say, or else like the input, or by default.

    Args:
        kept: how an input of the same format is compressed.
    """
    kind = options.compression if options.compression in COMPRESSIONS[file_format] else None
    if file_format == "WebP" and options.quality is not None:
        kind = "lossy"
    return Compression(
        kind or kept.kind or DEFAULTS.get(file_format),
        options.quality or kept.quality or QUALITY,
        options.subsampling or kept.subsampling or "444",
    )


def of_jpeg(image: Image.Image) -> Compression:
    """Those of a JPEG that Pillow has opened: the quality of the tables that are nearest to its own."""
    tables: dict[int, list[int]] = getattr(image, "quantization", {})
    if not tables:
        return UNKNOWN

    def distance(quality: int) -> int:
        ours = tables_of_quality(quality)
        return sum(int(np.abs(np.subtract(ours[k], table)).sum()) for k, table in tables.items() if k in ours)

    sampling = JpegImagePlugin.get_sampling(image)  # pyright: ignore[reportArgumentType]
    return Compression(None, min(range(100, 0, -1), key=distance), SUBSAMPLINGS.get(sampling))


@functools.cache
def tables_of_quality(quality: int) -> dict[int, list[int]]:
    """The quantization tables with which the codec writes a JPEG."""
    data = bytes(imagecodecs.jpeg8_encode(np.zeros((8, 8, 3), np.uint8), level=quality))
    with Image.open(io.BytesIO(data)) as image:
        return getattr(image, "quantization", {})


def of_heif(image: Image.Image) -> Compression:
    """The subsampling of a HEIF that Pillow has opened."""
    chroma = str(image.info.get("chroma"))
    return Compression(subsampling=chroma) if chroma in SUBSAMPLINGS.values() else UNKNOWN


def of_png(data: bytes) -> Compression:
    """The level that the pixels of a PNG state, which zlib stores in two bits."""
    at = data.find(b"IDAT")
    return Compression(PNG_LEVELS[data[at + 5] >> 6]) if 0 < at < len(data) - 6 else UNKNOWN


def of_webp(data: bytes) -> Compression:
    """Whether the first picture of a WebP is stored without loss."""
    at = 12
    while at + 8 <= len(data):
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name in (b"VP8L", b"VP8 "):
            return Compression("lossless" if name == b"VP8L" else "lossy")
        at += 8 + (16 if name == b"ANMF" else length + length % 2)  # of a frame, the picture is inside
    return UNKNOWN


# TIFF


def packed_rows(pixels: Array) -> bytes:
    """Rows by PackBits, each by itself (TIFF 6.0, section 9)."""
    return b"".join(bytes(imagecodecs.packbits_encode(row.tobytes())) for row in pixels)


# The number of each kind, and what encodes rows of pixels.
TIFF_CODECS: dict[str, tuple[int, Callable[[Array], Any]]] = {
    "none": (1, lambda pixels: pixels.tobytes()),
    "packbits": (32773, packed_rows),
    "lzw": (5, lambda pixels: imagecodecs.lzw_encode(pixels.tobytes())),
    "deflate": (8, lambda pixels: imagecodecs.deflate_encode(pixels.tobytes())),
    "zstd": (50000, lambda pixels: imagecodecs.zstd_encode(pixels.tobytes())),
}
TIFF_NUMBERS = {number: kind for kind, (number, _) in TIFF_CODECS.items()} | {32946: "deflate"}


def of_tiff(number: int) -> Compression:
    """That of a number of TIFF; those that are lossy, or for one bit, are not kept."""
    return Compression(TIFF_NUMBERS.get(number))


def encoded_rows(pixels: Array, compression: Compression) -> bytes:
    """Rows of pixels, contiguous, as a strip or a tile of a TIFF."""
    return bytes(TIFF_CODECS[compression.kind or DEFAULTS["TIFF"]][1](pixels))
