"""The chunks of PNG: metadata is read from them, and added to a file that the codec wrote.

Source: PNG specification, third edition, section 11.3. IPTC is a text of hexadecimal digits, as ImageMagick stores it.
"""

# pyright: strict

import struct
import zlib
from collections.abc import Iterator
from fractions import Fraction

from . import exif as tiff
from .kept import CREDENTIALS, EXIF_HEADER, XMP_HEADER, Chunk, Metadata, make_resolution, resolution_of
from .photoshop import IPTC_MARKER, IPTC_RESOURCE, iptc_resource, photoshop_resources, split

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
                    iptc = photoshop_resources(profile).get(IPTC_RESOURCE) if profile[:1] == b"8" else profile
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
