"""The segments of JPEG: metadata is read from them, and added to a file that the codec wrote.

Sources: JPEG, ITU-T T.81, annex B; JFIF 1.02; EXIF 2.32; XMP specification, part 3, section 1.1.3; ICC.1, annex B.4.
"""

# pyright: strict

import struct
from collections.abc import Iterator
from fractions import Fraction

from . import exif as tiff
from .kept import (
    CREDENTIALS,
    EXIF_HEADER,
    INCH,
    JPEG_BODY_BYTES,
    XMP_HEADER,
    Metadata,
    Resolution,
    make_resolution,
    resolution_of,
)
from .photoshop import IPTC_RESOURCE, iptc_resource, paths_among, photoshop_resources, split

JPEG_HEADER_BYTES = 20  # SOI and the APP0 of JFIF
JFIF_UNIT_AT = 13  # then two bytes for x, two for y
JFIF_UNITS = {1: INCH, 2: Fraction(1, 100)}
STANDALONE = (0x01, *range(0xD0, 0xD8))
SCAN, END, COMMENT = 0xDA, 0xD9, 0xFE
XMP_EXTENSION_HEADER = b"http://ns.adobe.com/xmp/extension/\0"
PROFILE_HEADER = b"ICC_PROFILE\0"
PHOTOSHOP_HEADER = b"Photoshop 3.0\0"
# Segments that say nothing of the picture: headers of codecs, and indices of pictures that follow.
CODEC_HEADERS = (b"JFIF\0", b"JFXX\0", b"Adobe", b"Ducky", b"MPF\0", b"FPXR\0", PROFILE_HEADER)


def jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The marker and the body of each segment before the first scan."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in (SCAN, END):
            return
        if marker == 0xFF or marker in STANDALONE:
            at += 1 if marker == 0xFF else 2
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4])
        yield marker, data[at + 4 : end]
        at = end


def read_jpeg(data: bytes) -> Metadata:
    """The metadata of a JPEG, without its profile."""
    exif, photoshop, resolution, xmp = b"", b"", None, None
    extension: list[bytes] = []
    comments: list[bytes] = []
    dropped: list[str] = []
    for marker, body in jpeg_segments(data):
        if marker == COMMENT:
            comments.append(body.rstrip(b"\0"))
        elif body.startswith(EXIF_HEADER):
            exif += body[len(EXIF_HEADER) :]
        elif body.startswith(XMP_HEADER):
            xmp = body[len(XMP_HEADER) :]
        elif body.startswith(XMP_EXTENSION_HEADER):
            extension.append(body)
        elif body.startswith(PHOTOSHOP_HEADER):
            photoshop += body[len(PHOTOSHOP_HEADER) :]
        elif body.startswith(b"JFIF\0") and len(body) >= 12:
            unit, x, y = struct.unpack_from(">BHH", body, 7)
            resolution = make_resolution(Fraction(x), Fraction(y), JFIF_UNITS.get(unit))
        elif 0xE0 <= marker <= 0xEF and not body.startswith(CODEC_HEADERS):
            dropped.append(CREDENTIALS if marker == 0xEB else f"APP{marker - 0xE0} data")
    resources = photoshop_resources(photoshop)
    dropped += paths_among(resources)
    return Metadata(
        exif=exif or None,
        xmp=xmp,
        xmp_extension=tuple(extension),
        iptc=resources.get(IPTC_RESOURCE) or None,
        comments=tuple(comment for comment in comments if comment),
        resolution=resolution or resolution_of(tiff.read_first(exif)),
        dropped=tuple(dict.fromkeys(dropped)),
    )


def add_to_jpeg(data: bytes, metadata: Metadata, profile: bytes | None) -> bytes:
    """A JPEG, as the codec writes it, with metadata and a profile."""
    bodies: list[tuple[int, bytes]] = []
    if metadata.exif:
        bodies.append((0xE1, EXIF_HEADER + metadata.exif))
    if metadata.xmp:
        bodies.append((0xE1, XMP_HEADER + metadata.xmp))
    bodies += [(0xE1, body) for body in metadata.xmp_extension]
    if metadata.iptc:
        parts = split(iptc_resource(metadata.iptc), JPEG_BODY_BYTES - len(PHOTOSHOP_HEADER))
        bodies += [(0xED, PHOTOSHOP_HEADER + part) for part in parts]
    parts = split(profile or b"", JPEG_BODY_BYTES - len(PROFILE_HEADER) - 2)
    bodies += [(0xE2, PROFILE_HEADER + bytes((k, len(parts))) + part) for k, part in enumerate(parts, 1)]
    bodies += [(COMMENT, comment) for comment in metadata.comments]
    segments = [struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body for marker, body in bodies]
    header = data[:JFIF_UNIT_AT] + jfif_density(metadata.resolution) + data[JFIF_UNIT_AT + 5 : JPEG_HEADER_BYTES]
    return b"".join((header, *segments, memoryview(data)[JPEG_HEADER_BYTES:]))


def jfif_density(resolution: Resolution | None) -> bytes:
    """Unit, x and y of a JFIF header: in inches, or in centimeters if only these are whole numbers."""
    if resolution is None:
        return struct.pack(">BHH", 0, 1, 1)
    x, y, has_unit = resolution
    unit = 0
    if has_unit:
        near = {
            unit: sum(abs(side * meters - round(side * meters)) for side in (x, y))
            for unit, meters in JFIF_UNITS.items()
        }
        unit = 2 if near[2] == 0 and near[1] > Fraction(1, 50) else 1
        x, y = x * JFIF_UNITS[unit], y * JFIF_UNITS[unit]
    elif x.denominator > 1 or y.denominator > 1:
        ratio = (x / y).limit_denominator(65535)
        x, y = Fraction(ratio.numerator), Fraction(ratio.denominator)
    return struct.pack(">BHH", unit, *(min(max(round(side), 1), 65535) for side in (x, y)))
