"""The segments of JPEG and the chunks of PNG: metadata is read from them, and added to a file that the codec wrote.

Sources: JPEG, ITU-T T.81, annex B; JFIF 1.02; EXIF 2.32; XMP specification, part 3, section 1.1.3; ICC.1, annex B.4;
PNG specification, third edition, section 11.3.
"""

import dataclasses
import struct
import zlib
from collections.abc import Iterator
from fractions import Fraction

from .metadata import (
    CENTIMETERS,
    CREDENTIALS,
    EXIF_HEADER,
    IPTC_RESOURCE,
    JPEG_BODY_BYTES,
    XMP_HEADER,
    Block,
    Metadata,
    without_thumbnails,
)

JPEG_HEADER_BYTES = 20  # SOI and the APP0 of JFIF
JFIF_UNIT_AT = 13  # then two bytes for x, two for y
JFIF_UNITS = {1: Fraction(1), 2: CENTIMETERS}
STANDALONE = (0x01, *range(0xD0, 0xD8))
APP0, APP1, APP2, APP11, APP15, SCAN, END, COMMENT = 0xE0, 0xE1, 0xE2, 0xEB, 0xEF, 0xDA, 0xD9, 0xFE
XMP_EXTENSION_HEADER = b"http://ns.adobe.com/xmp/extension/\0"
PROFILE_HEADER = b"ICC_PROFILE\0"
PHOTOSHOP_HEADER = b"Photoshop 3.0\0"
# Segments that say nothing of the picture: headers of codecs, thumbnails, and indices of pictures that follow.
CODEC_HEADERS = (
    *(b"JFIF\0", b"JFXX\0", b"Adobe", b"Ducky", b"MPF\0", b"FPXR\0"),
    *(PROFILE_HEADER, EXIF_HEADER, XMP_HEADER),  # which are read by themselves
)

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER_BYTES = 33  # signature and IHDR
PNG_COLORS = (b"cICP", b"mDCV", b"cLLI", b"cHRM", b"gAMA", b"sRGB")
PNG_TEXTS = (b"tEXt", b"zTXt", b"iTXt")
# Chunks of the codec, or that a change of the pixels makes untrue.
PNG_STRUCTURE = (
    *(b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"bKGD", b"sBIT", b"hIST", b"sPLT", b"tIME", b"iCCP"),
    *(b"acTL", b"fcTL", b"fdAT"),
)
PNG_PIXELS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
PNG_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by the type of color
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
PNG_XMP = b"XML:com.adobe.xmp"
OLD_EXIF = (b"Raw profile type exif", b"Raw profile type APP1")  # as hexadecimal digits
MAX_TEXT_BYTES = 2**26
DENSITY = b"JFIF density"  # the kind of a block
INCH = Fraction(254, 10000)  # meters


# JPEG


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
    segments = list(jpeg_segments(data))
    exif = b"".join(body[len(EXIF_HEADER) :] for _, body in segments if body.startswith(EXIF_HEADER))
    xmp = next((body[len(XMP_HEADER) :] for _, body in segments if body.startswith(XMP_HEADER)), None)
    metadata = Metadata("JPEG", exif or None, xmp)
    blocks: list[Block] = []
    resolution, dropped = None, ()
    for marker, body in segments:
        kind = bytes((0xFF, marker))
        if body.startswith(b"JFIF\0") and len(body) >= 12:
            unit, *sides = struct.unpack(">BHH", body[7:12])
            x, y = sides[::-1] if metadata.is_turned else sides
            blocks.append(Block(DENSITY, struct.pack(">BHH", unit, x, y)))
            if unit in JFIF_UNITS and x and y:
                resolution = x * JFIF_UNITS[unit], y * JFIF_UNITS[unit]
        elif body.startswith(PHOTOSHOP_HEADER):
            resources = without_thumbnails(body[len(PHOTOSHOP_HEADER) :])
            has_iptc = b"8BIM" + IPTC_RESOURCE.to_bytes(2) in resources
            if resources:
                blocks.append(Block(kind, PHOTOSHOP_HEADER + resources, "IPTC" if has_iptc else "Photoshop data"))
        elif marker == APP11:
            dropped = (CREDENTIALS,)
        elif marker == COMMENT:
            blocks.append(Block(kind, body, "comment"))
        elif body.startswith(XMP_EXTENSION_HEADER):
            blocks.append(Block(kind, body, "the rest of a long XMP"))
        elif APP0 <= marker <= APP15 and not body.startswith(CODEC_HEADERS):
            blocks.append(Block(kind, body, f"APP{marker - APP0} data"))
    return dataclasses.replace(metadata, resolution=resolution, blocks=tuple(blocks), dropped=dropped)


def add_to_jpeg(data: bytes, metadata: Metadata, profile: bytes | None) -> bytes:
    """A JPEG, as the codec writes it, with metadata and a profile."""
    density = metadata.block(DENSITY)
    if density is None:
        stated = metadata.resolution
        sides = [min(max(round(side), 1), 65535) for side in stated] if stated else [1, 1]
        density = struct.pack(">BHH", 1 if stated else 0, *sides)
    bodies = [(APP1, EXIF_HEADER + metadata.exif)] if metadata.exif else []
    bodies += [(APP1, XMP_HEADER + metadata.xmp)] if metadata.xmp else []
    length, profile = JPEG_BODY_BYTES - len(PROFILE_HEADER) - 2, profile or b""
    parts = [profile[k : k + length] for k in range(0, len(profile), length)]
    bodies += [(APP2, PROFILE_HEADER + bytes((k, len(parts))) + part) for k, part in enumerate(parts, 1)]
    bodies += [(block.kind[1], block.body) for block in metadata.blocks if block.kind != DENSITY]
    segments = [struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body for marker, body in bodies]
    header = data[:JFIF_UNIT_AT] + density + data[JFIF_UNIT_AT + 5 : JPEG_HEADER_BYTES]
    return b"".join((header, *segments, memoryview(data)[JPEG_HEADER_BYTES:]))


# PNG


def chunk_places(data: bytes) -> Iterator[tuple[bytes, slice]]:
    """The name of each chunk of a PNG, and where it lies: its length, its name, its body and a checksum."""
    at = len(PNG_SIGNATURE)
    while at + 12 <= len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        yield data[at + 4 : at + 8], slice(at, end)
        at = end


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the body of each chunk of a PNG, without the bodies of its pixels."""
    for name, at in chunk_places(data):
        yield name, b"" if name == b"IDAT" else data[at.start + 8 : at.stop - 4]


def png_of_pixels(data: bytes) -> bytes:
    """A PNG without all that its codec might warn of on standard error."""
    view = memoryview(data)
    return PNG_SIGNATURE + b"".join(view[at] for name, at in chunk_places(data) if name in PNG_PIXELS)


def has_all_rows(data: bytes) -> bool:
    """Whether an interlaced PNG has all of its pixels (PNG specification, section 8.2)."""
    width, height, depth, color = struct.unpack(">IIBB", data[16:26])
    texel_bits, expected = depth * PNG_SAMPLES[color], 0
    for x, y, step_x, step_y in ADAM7:
        across, down = -(-(width - x) // step_x), -(-(height - y) // step_y)
        expected += down * (1 + -(-across * texel_bits // 8)) if min(across, down) > 0 else 0
    stored = b"".join(data[at.start + 8 : at.stop - 4] for name, at in chunk_places(data) if name == b"IDAT")
    return len(zlib.decompressobj().decompress(stored, expected)) == expected


def read_png(data: bytes) -> Metadata:
    """The metadata of a PNG, without its profile."""
    chunks = list(png_chunks(data))
    keywords = dict.fromkeys(body.split(b"\0", 1)[0] for name, body in chunks if name in PNG_TEXTS)
    shown = ", ".join(word.decode("latin-1") for word in keywords if word not in (PNG_XMP, *OLD_EXIF))
    says_srgb = any(name in (b"sRGB", b"iCCP") for name, _ in chunks)  # which gamma and primaries repeat
    exif, xmp, density, dropped = None, None, b"", ()
    blocks: list[Block] = []
    for name, body in chunks:
        keyword = body.split(b"\0", 1)[0]
        if name in PNG_TEXTS and keyword == PNG_XMP:
            xmp = text_of(name, body)
        elif name in PNG_TEXTS and keyword in OLD_EXIF:
            profile = bytes_of_digits(text_of(name, body))
            exif = exif or (profile[len(EXIF_HEADER) :] if profile.startswith(EXIF_HEADER) else None)
        elif name in PNG_TEXTS:
            blocks.append(Block(name, body, f"PNG text ({shown})"))
        elif name == b"eXIf":
            exif = body.removeprefix(EXIF_HEADER)
        elif name == b"pHYs" and len(body) == 9:
            density = body
        elif name in PNG_COLORS:
            repeats = name == b"sRGB" or (says_srgb and name in (b"gAMA", b"cHRM"))
            blocks.append(Block(name, body, "" if repeats else name.decode(), is_color=True))
        elif name == b"caBX":
            dropped = (CREDENTIALS,)
        elif name not in PNG_STRUCTURE:
            blocks.append(Block(name, body, f"PNG chunk {name.decode('latin-1')}"))
    metadata, resolution = Metadata("PNG", exif or None, xmp, dropped=dropped), None
    if density:
        *sides, unit = struct.unpack(">IIB", density)
        x, y = sides[::-1] if metadata.is_turned else sides
        blocks.append(Block(b"pHYs", struct.pack(">IIB", x, y, unit)))
        resolution = (x * INCH, y * INCH) if unit == 1 and x and y else None
    return dataclasses.replace(metadata, resolution=resolution, blocks=tuple(blocks))


def text_of(name: bytes, body: bytes) -> bytes:
    """The text of a chunk, as it is encoded."""
    _, _, rest = body.partition(b"\0")
    is_compressed = name == b"zTXt"
    if name == b"zTXt":
        rest = rest[1:]
    elif name == b"iTXt":
        is_compressed = rest[:1] == b"\1"
        rest = b"\0".join(rest[2:].split(b"\0", 2)[2:])
    if not is_compressed:
        return rest
    try:
        return zlib.decompressobj().decompress(rest, MAX_TEXT_BYTES)
    except zlib.error:
        return b""


def bytes_of_digits(text: bytes) -> bytes:
    """The bytes of a profile that is stored as a text: a name, a length, and hexadecimal digits."""
    try:
        return bytes.fromhex("".join(text.decode("ascii").split()[2:]))
    except ValueError:
        return b""


def add_to_png(data: bytes, metadata: Metadata, profile: bytes | None) -> bytes:
    """A PNG, as the codec writes it, with metadata and a profile."""
    chunks = [(b"iCCP", b"ICC profile\0\0" + zlib.compress(profile))] if profile else []
    chunks += [(block.kind, block.body) for block in metadata.blocks if not (profile and block.kind == b"sRGB")]
    if metadata.resolution and metadata.block(b"pHYs") is None:
        x, y = (min(round(side / INCH), 2**31 - 1) for side in metadata.resolution)
        chunks.append((b"pHYs", struct.pack(">IIB", x, y, 1)))
    if metadata.exif:
        chunks.append((b"eXIf", metadata.exif))
    if metadata.xmp:
        chunks.append((b"iTXt", PNG_XMP + bytes(5) + metadata.xmp))
    written = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    ]
    return b"".join((data[:PNG_HEADER_BYTES], *written, memoryview(data)[PNG_HEADER_BYTES:]))
