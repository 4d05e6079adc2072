"""The segments of JPEG, the chunks of PNG and the directories of TIFF: metadata is read from them and added to them.

The codecs write pixels alone. Pillow reads and writes the metadata of WebP.

Sources: JPEG, ITU-T T.81, annex B; XMP specification, part 3, section 1.1.3; ICC.1, annex B.4; PNG specification, third
edition, section 11.3; Photoshop file formats, image resource blocks.
"""

# pyright: strict

import struct
import zlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from . import exif as tiff
from .exif import Directory, Entry
from .metadata import (
    EXIF_HEADER,
    INCH,
    JPEG_BODY_BYTES,
    XMP_HEADER,
    Chunk,
    Metadata,
    Resolution,
    make_resolution,
    resolution_entries,
    resolution_of,
)

JPEG_HEADER_BYTES = 20  # SOI and the APP0 of JFIF
JFIF_UNIT_AT = 13  # then two bytes for x, two for y
JFIF_UNITS = {1: INCH, 2: Fraction(1, 100)}
STANDALONE = (0x01, *range(0xD0, 0xD8))
SCAN, END, COMMENT = 0xDA, 0xD9, 0xFE
XMP_EXTENSION_HEADER = b"http://ns.adobe.com/xmp/extension/\0"
PROFILE_HEADER = b"ICC_PROFILE\0"
PHOTOSHOP_HEADER = b"Photoshop 3.0\0"
IPTC_RESOURCE, IPTC_MARKER = 0x0404, b"\x1c"
# Segments that say nothing of the picture: headers of codecs, and indices of pictures that follow.
CODEC_HEADERS = (b"JFIF\0", b"JFXX\0", b"Adobe", b"Ducky", b"MPF\0", b"FPXR\0", PROFILE_HEADER)

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER_BYTES = 33  # signature and IHDR
PNG_COLORS = (b"cICP", b"mDCV", b"cLLI", b"cHRM", b"gAMA", b"sRGB")
PNG_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
# Chunks of the codec, or that a change of the pixels makes untrue.
PNG_STRUCTURE = (
    *(b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"bKGD", b"sBIT", b"hIST", b"sPLT", b"tIME", b"iCCP"),
    *(b"acTL", b"fcTL", b"fdAT"),
)
PNG_XMP = b"XML:com.adobe.xmp"
PNG_RAW_PROFILE = b"Raw profile type "
RAW_PROFILES = (b"exif", b"APP1", b"iptc", b"8bim")
PNG_COMMENT = b"Comment"
MAX_TEXT_BYTES = 2**26
CREDENTIALS = "content credentials"

# What tells how a TIFF was made, not what it shows, by the beginning of its description.
MACHINE_DESCRIPTIONS = (b"ImageJ=", b"<?xml", b"<OME")
SHAPE_DESCRIPTION = b'{"shape"'  # of tifffile, which says nothing else
DROPPED_TAGS = {
    34377: "Photoshop resources",
    37724: "Photoshop layers",
    50255: "Photoshop annotations",
    33550: "georeference",
    33922: "georeference",
    34264: "georeference",
    34735: "georeference",
    34736: "georeference",
    34737: "georeference",
    42112: "GDAL metadata",
    50838: "ImageJ metadata",
    50839: "ImageJ metadata",
}
RESOLUTION_TAGS = {tiff.X_RESOLUTION, tiff.Y_RESOLUTION, tiff.RESOLUTION_UNIT}
DESCRIPTION_WORDS = "machine-written description"


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
    return Metadata(
        exif=exif or None,
        xmp=xmp,
        xmp_extension=tuple(extension),
        iptc=photoshop_resource(photoshop, IPTC_RESOURCE),
        comments=tuple(comment for comment in comments if comment),
        resolution=resolution or resolution_of(tiff.read_first(exif)),
        dropped=tuple(dict.fromkeys(dropped)),
    )


def photoshop_resource(data: bytes, number: int) -> bytes | None:
    """The resource of Photoshop with this number."""
    at = 0
    while data[at : at + 4] == b"8BIM" and at + 12 <= len(data):
        name_end = at + 7 + data[at + 6]
        name_end += (name_end - at) % 2
        size = int.from_bytes(data[name_end : name_end + 4])
        start = name_end + 4
        if int.from_bytes(data[at + 4 : at + 6]) == number:
            return data[start : start + size] or None
        at = start + size + size % 2
    return None


def iptc_resource(iptc: bytes) -> bytes:
    """IPTC as a resource of Photoshop."""
    return b"8BIM" + struct.pack(">HHI", IPTC_RESOURCE, 0, len(iptc)) + iptc + bytes(len(iptc) % 2)


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


def split(data: bytes, length: int) -> list[bytes]:
    """Data in parts of at most `length` bytes."""
    return [data[k : k + length] for k in range(0, len(data), length)]


def png_chunks(data: bytes) -> Iterator[Chunk]:
    """The chunks of a PNG, without the bodies of its pixels."""
    at = len(PNG_SIGNATURE)
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        yield Chunk(name, b"" if name == b"IDAT" else data[at + 8 : at + 8 + length])
        at += 12 + length


def read_png(data: bytes) -> Metadata:
    """The metadata of a PNG, without its profile."""
    exif, xmp, iptc, resolution = None, None, None, None
    texts: list[Chunk] = []
    comments: list[bytes] = []
    colors: list[Chunk] = []
    dropped: list[str] = []
    for chunk in png_chunks(data):
        name, body = chunk
        if name in PNG_TEXTS:
            keyword = body.split(b"\0", 1)[0]
            if keyword == PNG_XMP:
                xmp = text_of(chunk)
            elif keyword.startswith(PNG_RAW_PROFILE) and keyword.split()[-1] in RAW_PROFILES:
                profile = raw_profile(text_of(chunk))
                if profile.startswith(EXIF_HEADER):
                    exif = exif or profile[len(EXIF_HEADER) :]
                elif profile.startswith(XMP_HEADER):
                    xmp = xmp or profile[len(XMP_HEADER) :]
                elif profile.startswith((b"8BIM", IPTC_MARKER)):
                    iptc = photoshop_resource(profile, IPTC_RESOURCE) if profile[:1] == b"8" else profile
            elif keyword == PNG_COMMENT:
                comments.append(text_of(chunk))
            else:
                texts.append(chunk)
        elif name == b"eXIf":
            exif = body.removeprefix(EXIF_HEADER)
        elif name == b"pHYs" and len(body) == 9:
            x, y, unit = struct.unpack(">IIB", body)
            resolution = make_resolution(Fraction(x), Fraction(y), Fraction(1) if unit == 1 else None)
        elif name in PNG_COLORS:
            colors.append(chunk)
        elif name not in PNG_STRUCTURE:
            dropped.append(CREDENTIALS if name == b"caBX" else f"PNG chunk {name.decode('latin-1')}")
    return Metadata(
        exif=exif,
        xmp=xmp,
        iptc=iptc,
        comments=tuple(comments),
        resolution=resolution or resolution_of(tiff.read_first(exif or b"")),
        texts=tuple(texts),
        colors=tuple(colors),
        dropped=tuple(dict.fromkeys(dropped)),
    )


def text_of(chunk: Chunk) -> bytes:
    """The text of a chunk, as it is encoded."""
    _, _, rest = chunk.body.partition(b"\0")
    is_compressed = chunk.name == b"zTXt"
    if chunk.name == b"zTXt":
        rest = rest[1:]
    elif chunk.name == b"iTXt":
        is_compressed = rest[:1] == b"\1"
        rest = b"\0".join(rest[2:].split(b"\0", 2)[2:])
    if not is_compressed:
        return rest
    try:
        return zlib.decompressobj().decompress(rest, MAX_TEXT_BYTES)
    except zlib.error:
        return b""


def raw_profile(text: bytes) -> bytes:
    """The bytes of ImageMagick's profile in a text: a name, a length, and hexadecimal digits."""
    try:
        return bytes.fromhex("".join(text.decode("ascii").split()[2:]))
    except ValueError:
        return b""


def add_to_png(data: bytes, metadata: Metadata, profile: bytes | None) -> bytes:
    """A PNG, as the codec writes it, with metadata and a profile."""
    chunks = [chunk for chunk in metadata.colors if not (profile and chunk.name == b"sRGB")]
    if profile:
        chunks.append(Chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(profile)))
    if metadata.resolution:
        x, y, has_unit = metadata.resolution
        if not has_unit:
            x, y = (Fraction(side) for side in (x / y).limit_denominator(2**16).as_integer_ratio())
        chunks.append(Chunk(b"pHYs", struct.pack(">IIB", round(x), round(y), has_unit)))
    if metadata.exif:
        chunks.append(Chunk(b"eXIf", metadata.exif))
    if metadata.xmp:
        chunks.append(Chunk(b"iTXt", PNG_XMP + bytes(5) + metadata.xmp))
    if metadata.iptc:
        resource = iptc_resource(metadata.iptc)
        digits = "\n".join(part.hex() for part in split(resource, 36))
        text = f"\niptc\n{len(resource):8}\n{digits}\n".encode()
        chunks.append(Chunk(b"zTXt", PNG_RAW_PROFILE + b"iptc\0\0" + zlib.compress(text)))
    chunks += [comment_chunk(comment) for comment in metadata.comments]
    chunks += metadata.texts
    written = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    ]
    return b"".join((data[:PNG_HEADER_BYTES], *written, memoryview(data)[PNG_HEADER_BYTES:]))


def comment_chunk(comment: bytes) -> Chunk:
    """A comment as a text of PNG: as UTF-8 if it is, else as Latin-1."""
    comment = comment.replace(b"\0", b" ")
    is_utf8 = not comment.isascii() and comment.decode(errors="replace").encode() == comment
    return (
        Chunk(b"iTXt", PNG_COMMENT + bytes(5) + comment) if is_utf8 else Chunk(b"tEXt", PNG_COMMENT + b"\0" + comment)
    )


def read_tiff(data: bytes, at: int) -> Metadata:
    """The metadata of the page of a TIFF whose directory is at `at`, without its profile."""
    directory = tiff.read_directory(data, tiff.layout_of(data), at)
    dropped = [DROPPED_TAGS[tag] for tag in directory if tag in DROPPED_TAGS]
    described = directory.get(tiff.DESCRIPTION)
    if isinstance(described, Entry) and described.value.startswith((SHAPE_DESCRIPTION, *MACHINE_DESCRIPTIONS)):
        del directory[tiff.DESCRIPTION]
        dropped += [] if described.value.startswith(SHAPE_DESCRIPTION) else [DESCRIPTION_WORDS]
    kept: Directory = {
        tag: entry for tag, entry in directory.items() if tag not in tiff.STRUCTURE and tag not in DROPPED_TAGS
    }
    if kept.keys() <= RESOLUTION_TAGS:  # which every TIFF has, and which alone need no EXIF
        kept = {}
    if tiff.ORIENTATION in directory:
        kept[tiff.ORIENTATION] = directory[tiff.ORIENTATION]
    return Metadata(
        exif=tiff.write_stream(kept) if kept else None,
        xmp=value_of(directory, tiff.XMP),
        iptc=iptc_of(directory),
        resolution=resolution_of(directory),
        dropped=tuple(dict.fromkeys(dropped)),
    )


def iptc_of(directory: Directory) -> bytes | None:
    """The records of IPTC, which some writers declare as numbers of four bytes, in either order."""
    iptc = value_of(directory, tiff.IPTC)
    if iptc is None or iptc.startswith(IPTC_MARKER):
        return iptc
    swapped = b"".join(iptc[k : k + 4][::-1] for k in range(0, len(iptc), 4))
    return swapped if swapped.startswith(IPTC_MARKER) else iptc


def value_of(directory: Directory, tag: int) -> bytes | None:
    """The bytes of an entry."""
    entry = directory.get(tag)
    return entry.value if isinstance(entry, Entry) else None


def add_to_tiff(data: bytes, metadata: Metadata) -> bytes:
    """A TIFF, as the codec writes it, with metadata."""
    stored = tiff.read_first(metadata.exif or b"")
    entries: Directory = {tag: entry for tag, entry in stored.items() if tag not in tiff.STRUCTURE}
    if metadata.resolution:
        entries |= resolution_entries(metadata.resolution)
    if metadata.xmp:
        entries[tiff.XMP] = Entry(1, metadata.xmp)
    if metadata.iptc:
        entries[tiff.IPTC] = Entry(tiff.UNDEFINED, metadata.iptc)
    if metadata.comments and tiff.DESCRIPTION not in entries:
        entries[tiff.DESCRIPTION] = Entry(tiff.ASCII, b"\n".join(metadata.comments) + b"\0")
    return tiff.add_entries(data, entries) if entries else data


def read_pillow(info: Mapping[Any, Any]) -> Metadata:
    """The metadata that Pillow found in a file of another format, such as WebP."""
    exif, xmp, comment = (info.get(name) for name in ("exif", "xmp", "comment"))
    exif = exif.removeprefix(EXIF_HEADER) if isinstance(exif, bytes) else None
    return Metadata(
        exif=exif or None,
        xmp=xmp if isinstance(xmp, bytes) else None,
        comments=(comment,) if isinstance(comment, bytes) and comment else (),
        resolution=resolution_of(tiff.read_first(exif or b"")),
    )
