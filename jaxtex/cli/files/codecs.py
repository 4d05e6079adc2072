"""Image files to pictures, and pictures to image files, each written completely or not at all.

Pixels are (height, width, channels) in uint8 or uint16; 1 to 4 channels are gray, gray and alpha, RGB, RGBA. Pillow
decodes and encodes what the other codecs do not:

- PNG: imagecodecs, which keeps 16 bits and refuses a file without all of its rows; it would write a warning of one
  that is interlaced to standard error;
- JPEG: imagecodecs, which runs the same codec, since Pillow holds Python's lock while it decodes and encodes;
- TIFF of 8 and 16 bits: tifffile, since libtiff under Pillow writes to standard error and keeps 8 bits.

Sources: JPEG, ITU-T T.81, annex B; JFIF 1.02; EXIF 2.32; XMP specification, part 3, section 1.1.3; ICC.1, annex B.4;
PNG specification, third edition, section 11.3.
"""

import contextlib
import dataclasses
import io
import re
import struct
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, cast

import imagecodecs
import numpy as np
from PIL import Image

from ...warp.sized.mappings import Array, Size
from ...warp.sized.texels import pixels_with_room
from ..options import Options
from ..process import UserError, describe
from .animations import (
    PNG_SIGNATURE,
    GifTexts,
    add_to_gif,
    animation_of,
    fit_colors,
    has_alpha,
    indexed,
    may_move,
    read_gif,
    writing_options,
)
from .compression import chosen, of_heif, of_jpeg, of_png, of_webp
from .exif import ORIENTATION, upright_size
from .inputs import (
    HEAD_BYTES,
    STREAM,
    Animation,
    Page,
    PictureFile,
    check_kind,
    choose_frame,
    format_of,
    read_errors,
    read_stdin,
)
from .metadata import (
    CENTIMETERS,
    CREDENTIALS,
    EXIF_HEADER,
    IPTC_RESOURCE,
    JPEG_BODY_BYTES,
    XMP_HEADER,
    Block,
    Metadata,
    Picture,
    enumerate_names,
    fit,
    fit_profile,
    without_thumbnails,
)
from .replace import opened_target
from .tiff import SIGNATURES, PageFile, decode_page, encode_tiff, find_pages

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


# The segments of JPEG: metadata is read from them, and added to a file that the codec wrote


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


# The chunks of PNG


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


# Image files to pictures


PNG_DEPTH, PNG_INTERLACE = 24, 28  # bytes
JPEG_END = b"\xff\xd9"
# Bits that a codec takes for pixels where some are missing: ones and zeros in every pattern.
MORE_BITS = bytes(range(1, 250)) * 8
FILLING = 128  # what a codec shows where the pixels of a JPEG are missing
CUT_OFF = "it is broken or cut off: pixels are missing"
MODES_8_BIT = {
    **{"1": "L", "L": "L", "La": "LA", "LA": "LA", "P": "RGB", "PA": "RGBA", "RGB": "RGB", "RGBX": "RGB"},
    **{"RGBa": "RGBA", "RGBA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB"},
}
MODES_16_BIT = ("I;16", "I;16L", "I;16B")
WITH_ALPHA = {"L": "LA", "RGB": "RGBA"}
# Where formats that Pillow reduces to 8 bits state a depth, and the bits that this stands for.
STATED_DEPTHS: dict[str, tuple[bytes, Callable[[bytes], int]]] = {
    "PPM": (
        rb"^P6(?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+(\d+)",
        lambda most: int(most).bit_length(),
    ),
    "JPEG2000": (rb"ihdr.{10}(.)|^\xffO\xffQ.{38}(.)", lambda stored: (stored[0] & 0x7F) + 1),
    "AVIF": (rb"pixi.{5}(.)", lambda stored: stored[0]),
}
HEADER_BYTES = 2**16  # in which they stand
PPM_COMMENT = re.compile(rb"P[1-7][\d\s]*#")

# Raises a `UserError` for a width and a height that are refused.
Accept = Callable[[Size], None]


@contextlib.contextmanager
def silence_codecs() -> Generator[None, None, None]:
    """Ignores the codecs' warnings of large images and odd metadata, in all threads, since they share the filters.

    Pillow's own limit of pixels does not hold: `metadata.check_pixels` is one for all codecs.
    """
    limit = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(PIL|tifffile|imagecodecs)\b")
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def find_picture(path: Path, number: int | None = None) -> PictureFile:
    """A file, with the pages that it has if it is a TIFF.

    Args:
        path: of a regular file, or - for standard input.
        number: of the only page or frame that is used, from 1; `None` for all pages of a TIFF.
    """
    source = PictureFile(path, frame=number)
    with read_errors(source):
        if path == STREAM:
            source = source._replace(data=read_stdin())
        with source.open() as file:
            head = file.read(HEAD_BYTES)
            if head[:4] not in SIGNATURES:
                return find_frames(source, file) if number is None and may_move(head) else source
            check_kind(path.name, head)
            pages, notes = find_pages(file)
        if number is not None:
            pages = [pages[choose_frame(len(pages), number)]]
    return source._replace(pages=tuple(pages), notes=notes)


def find_frames(source: PictureFile, file: io.BufferedIOBase) -> PictureFile:
    """A file with the frames that it has if it is an animation."""
    file.seek(0)
    with Image.open(cast(BinaryIO, file)) as image:
        animation, count = animation_of(image), getattr(image, "n_frames", 1)
        size = upright_size(image.size, read_pillow(image).orientation)
    frames = [Page(number, size, 4) for number in range(count if animation else 0)]
    return source._replace(pages=tuple(frames), animation=animation)


def read_frames(frames: list[PictureFile]) -> Generator[Picture, None, None]:
    """Decodes the frames of an animation, from the first one on, each composed with those before it."""
    with read_errors(frames[0]), frames[0].open() as file:
        data = file.read()
        with Image.open(io.BytesIO(data)) as image:
            metadata, mode = metadata_of(data, image), None
            if image.format == "GIF":  # whose frames may differ in their modes
                mode = "RGBA" if has_alpha(image) else "RGB"
            for number, frame in enumerate(frames):
                with read_errors(frame):
                    image.seek(number)
                    pixels, icc, notes = load_pixels(image)
                    pixels = np.asarray(image.convert(mode)) if mode else pixels
                    if data.startswith(PNG_SIGNATURE) and data[PNG_DEPTH] == 16:
                        pixels = np.rint(pixels / 257.0).astype(np.uint8) if pixels.dtype == np.uint16 else pixels
                        notes += ("is reduced from 16 to 8 bits, since it moves",)
                    picture = Picture.upright(pixels, metadata.orientation, icc, metadata, notes)
                yield dataclasses.replace(picture, duration=image.info.get("duration", 0))


def size_of(source: PictureFile) -> Size:
    """The width and the height of an upright picture, by the header of its file."""
    if source.pages:
        return source.pages[source.position].size
    with read_errors(source), source.open() as file:
        check_kind(source.path.name, file.read(HEAD_BYTES))
        file.seek(0)
        with Image.open(cast(BinaryIO, file)) as image:
            return upright_size(image.size, read_pillow(image).orientation)


def read_picture(source: PictureFile | Path, accept: Accept = lambda _: None) -> Picture:
    """Decodes an image file, or a page of one.

    Args:
        source: as `find_picture` finds it; a path is that of a file with one picture.
        accept: is called with the width and the height of the upright picture before memory is allocated for it, and
            raises a `UserError` to refuse it.
    """
    if isinstance(source, Path):
        source = find_picture(source)
        with read_errors(PictureFile(source.path)):
            choose_frame(len(source.pages), None)
    with read_errors(source), source.open() as file:
        if source.pages:
            page = source.pages[source.position]
            accept(page.size)
            picture = decode_tiff(PageFile(file, page.directory))
            notes = source.notes if len(source.pages) == 1 else ()  # else they are not on this page
            return dataclasses.replace(picture, notes=(*notes, *picture.notes))
        check_kind(source.path.name, file.read(HEAD_BYTES))
        file.seek(0)
        with Image.open(cast(BinaryIO, file)) as image:  # which reads the header
            accept(upright_size(image.size, read_pillow(image).orientation))
            place = file.tell()  # where Pillow goes on
            file.seek(0)
            data = file.read()
            file.seek(place)
            picture = decode(data, image, source.frame)
            return dataclasses.replace(picture, notes=(*source.notes, *picture.notes))


def decode_tiff(file: PageFile) -> Picture:
    """Decodes the first page of a TIFF; raises whatever the codec raises."""
    decoded = decode_page(file)
    if isinstance(decoded, Picture):
        return decoded
    file.seek(0)
    with Image.open(cast(BinaryIO, file)) as image:
        pixels, icc, notes = load_pixels(image)
        # Loading turns the picture upright.
        orientation = image.getexif().get(ORIENTATION, 1)
        return Picture.upright(pixels, orientation, icc, decoded, notes, drops_channel=image.mode == "RGBX")


def decode(data: bytes, image: Image.Image, frame: int | None = None) -> Picture:
    """Decodes an image file that is no TIFF; raises whatever the codec raises.

    Args:
        data: the bytes of the file.
        image: the file as Pillow opens it.
    """
    is_mpo = image.format == "MPO"  # a JPEG followed by others, such as previews and gain maps
    count = getattr(image, "n_frames", 1)
    if not is_mpo or frame:
        image.seek(choose_frame(count, frame))
    drops_channel, icc, notes = image.mode == "RGBX", image.info.get("icc_profile"), ()
    metadata = metadata_of(data, image)
    if data.startswith(PNG_SIGNATURE) and count == 1 and (data[PNG_DEPTH] == 16 or not data[PNG_INTERLACE]):
        pixels = imagecodecs.png_decode(png_of_pixels(data))
    elif image.format == "JPEG" and image.mode in ("L", "RGB"):
        pixels = decode_jpeg(data, image)
    else:
        if data.startswith(PNG_SIGNATURE) and count == 1 and not has_all_rows(data):
            raise UserError(CUT_OFF)
        pixels, icc, notes = load_pixels(image)
        notes += depth_notes(data, image)
    if (sizes := len(image.info.get("sizes", ()))) > 1:  # of an icon
        notes = (f"has {sizes} sizes, of which the largest is used", *notes)
    if is_mpo and frame is None:
        notes = (f"has {count} pictures, of which the first is used", *notes)
    return Picture.upright(pixels, metadata.orientation, icc, metadata, notes, drops_channel=drops_channel)


def metadata_of(data: bytes, image: Image.Image) -> Metadata:
    """The metadata of a file that is no TIFF, arguments as of `decode`."""
    if data.startswith(PNG_SIGNATURE):
        metadata, compression = read_png(data), of_png(data)
    elif image.format in ("JPEG", "MPO"):
        metadata, compression = read_jpeg(data), of_jpeg(image)
    else:
        metadata, compression = read_pillow(image), of_webp(data)
    if image.format == "GIF":
        texts = read_gif(data)
        if texts.profile:
            image.info["icc_profile"] = texts.profile  # where Pillow has those of other formats
        blocks = tuple(Block(b"comment", comment, "comment") for comment in texts.comments)
        metadata = dataclasses.replace(metadata, file_format="GIF", xmp=texts.xmp, blocks=blocks, dropped=())
    if image.format == "HEIF":
        depths = image.info.get("depth_images") or ()
        dropped = (*metadata.dropped, *(("depth image",) if depths else ()))
        metadata = dataclasses.replace(metadata, file_format="HEIF", dropped=dropped)
        compression = of_heif(image)
    if image.format == "PPM" and PPM_COMMENT.match(data):
        metadata = dataclasses.replace(metadata, dropped=("comment",))
    return dataclasses.replace(metadata, compression=compression)


# JPEG: its pixels


def decode_jpeg(data: bytes, image: Image.Image) -> Array:
    """The pixels of a JPEG in gray or RGB; a file with missing pixels is refused."""
    if not data.endswith(JPEG_END) and end_of_jpeg(data) < 0:
        raise UserError(CUT_OFF)
    shape = (image.height, image.width, 3) if image.mode == "RGB" else (image.height, image.width)
    pixels = imagecodecs.jpeg8_decode(data, out=pixels_with_room(shape, np.dtype(np.uint8)))
    if not image.info.get("progressive") and (pixels[-1, -1] != FILLING).any():
        return pixels
    # The codec fills a scan that ends too soon, from bits behind its end if there are any.
    end = end_of_jpeg(data)
    if end < 0 or not np.array_equal(pixels, imagecodecs.jpeg8_decode(data[:end] + MORE_BITS + data[end:])):
        raise UserError(CUT_OFF)
    return pixels


def end_of_jpeg(data: bytes) -> int:
    """Where the first end of an image stands behind the head, which may hold a preview with an end; -1 if nowhere.

    A film may follow.
    """
    return data.find(JPEG_END, 2 + sum(4 + len(body) for _, body in jpeg_segments(data)))


# What Pillow decodes


def read_pillow(image: Image.Image) -> Metadata:
    """The metadata that Pillow found in a file of another format, such as WebP."""
    info: dict[Any, Any] = image.info
    exif, xmp = (value if isinstance(value, bytes) else None for value in (info.get("exif"), info.get("xmp")))
    exif = exif.removeprefix(EXIF_HEADER) if exif else None
    try:
        x, y = (Fraction(float(side)) for side in info["dpi"])
        resolution = (x, y) if min(x, y) > 0 and image.format != "WEBP" else None
    except (KeyError, TypeError, ValueError, OverflowError):
        resolution = None
    texts = (info.get("comment"), info.get("id_section"))  # the second of TGA
    dropped = ("comment",) if any(isinstance(text, bytes) and text for text in texts) else ()
    return Metadata("WebP" if image.format == "WEBP" else None, exif or None, xmp, resolution, dropped=dropped)


def load_pixels(image: Image.Image) -> tuple[Array, bytes | None, tuple[str, ...]]:
    """The pixels of an image, their color profile, and notes on what was lost."""
    icc: bytes | None = image.info.get("icc_profile")
    notes: tuple[str, ...] = ()
    image.load()
    if image.mode == "CMYK":
        image, note = cmyk_to_rgb(image, icc)
        icc, notes = None, (note,)
    if image.mode in MODES_16_BIT or (image.mode == "I" and image.format == "PPM"):
        return np.asarray(image).astype(np.uint16), icc, notes
    mode = MODES_8_BIT.get(image.mode)
    if mode is None:
        raise UserError(f"pixels of mode {image.mode} are not supported, only 8 and 16 bits per channel")
    return np.asarray(image.convert(WITH_ALPHA.get(mode, mode) if image.has_transparency_data else mode)), icc, notes


def depth_notes(data: bytes, image: Image.Image) -> tuple[str, ...]:
    """A note if Pillow reduces the colors of an image to 8 bits."""
    if image.format == "HEIF" and (bits := image.info.get("bit_depth", 8)) > 8:
        return (f"is reduced from {bits} to 8 bits",)
    pattern, bits_of = STATED_DEPTHS.get(image.format or "", (b"", int))
    if not pattern or image.mode in (*MODES_16_BIT, "I"):
        return ()
    match = re.search(pattern, data[:HEADER_BYTES], re.DOTALL)
    bits = bits_of(next(filter(None, match.groups()))) if match else 8
    return (f"is reduced from {bits} to 8 bits",) if bits > 8 else ()


def cmyk_to_rgb(image: Image.Image, icc: bytes | None) -> tuple[Image.Image, str]:
    """Ink as light: by the color profile if there is one that can be used, else by plain arithmetic; and a note."""
    converted = convert_by_profile(image, icc) if icc else None
    if converted:
        return converted, "is converted from CMYK to sRGB by its color profile"
    dropped = ", and its color profile, which cannot be used, is dropped" if icc else ""
    return image.convert("RGB"), f"is converted from CMYK to RGB without a color profile{dropped}"


def convert_by_profile(image: Image.Image, icc: bytes) -> Image.Image | None:
    """An image in sRGB, or `None` if the profile is broken or for something else."""
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow may be built without it
        return None
    try:
        return ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(io.BytesIO(icc)),
            cast(Any, ImageCms.createProfile("sRGB")),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
            outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None


# Pictures to image files


FORMATS_OF_16_BITS = ("PNG", "TIFF")
NO_OPTIONS = Options()


def write_picture(path: Path, picture: Picture, options: Options, source: Path | None = None) -> tuple[str, ...]:
    """Encodes a picture in the format of the suffix and writes it to `path`, completely or not at all.

    Args:
        path: of the output, or - for standard output.
        picture: its metadata is that of the input.
        source: the input, whose permissions and times the output takes.

    Returns:
        What is lost, each the end of a sentence that begins with the name of the file.
    """
    with write_errors(path):
        fitted = fit_picture(picture, format_of(path, options), options)
    return (*fitted.notes, *write_fitted(path, [fitted], None, options, source))


def write_fitted(
    path: Path, pictures: list[Picture], animation: Animation | None, options: Options, source: Path | None
) -> tuple[str, ...]:
    """Writes a picture, or the frames of an animation, that fit the format; the rest as of `write_picture`."""
    with write_errors(path):
        data = encode(pictures[0], format_of(path, options), animation, pictures)
    with opened_target(path, source, options.preserve_times) as (stream, notes):
        stream.write(data)
    return notes


@contextlib.contextmanager
def write_errors(path: Path) -> Generator[None, None, None]:
    """Turns whatever an encoder raises, for example for an image that is too large, into a `UserError`."""
    try:
        yield
    except Exception as error:
        raise UserError(f"cannot write {path}: {describe(error)}") from error


def fit_picture(picture: Picture, file_format: str, options: Options = NO_OPTIONS, size: Size | None = None) -> Picture:
    """A picture as a format stores it, without what it cannot store, which further notes name.

    Args:
        picture: its metadata is that of the input.
        file_format: PNG, JPEG, TIFF, WebP, GIF or HEIF.
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
    icc, lost = fit_profile(picture.icc, pixels.shape[-1] <= 2 and file_format in ("PNG", "JPEG", "TIFF"))
    metadata = picture.metadata.stripped() if options.strip else picture.metadata
    metadata, others = fit(metadata, file_format, size or (width, height))
    lost += others
    if lost:
        notes += (f"is written as {file_format} without its {enumerate_names(lost)}",)
    if file_format == "GIF":
        pixels, others = fit_colors(pixels)
        notes += others
    compression = chosen(options, metadata.compression, file_format)
    metadata = dataclasses.replace(metadata, compression=compression)
    return dataclasses.replace(picture, pixels=pixels, icc=icc, notes=notes, metadata=metadata)


def encode(
    picture: Picture, file_format: str, animation: Animation | None = None, frames: Sequence[Picture] = ()
) -> bytes:
    """Encodes a picture that fits its format; raises whatever the encoder raises.

    Args:
        animation: which `picture` begins; `None` for a picture alone.
        frames: of the animation, all of them.
    """
    if file_format == "TIFF":
        return encode_tiff(picture)
    pixels, icc, metadata = picture.bare_pixels, picture.icc, picture.metadata
    kind, quality, subsampling = metadata.compression
    if file_format == "JPEG":
        data = bytes(imagecodecs.jpeg8_encode(pixels, level=quality, subsampling=subsampling))
        return add_to_jpeg(data, metadata, icc)
    if file_format == "PNG" and pixels.dtype == np.uint16:
        return add_to_png(bytes(imagecodecs.png_encode(pixels, level=int(kind or 6))), metadata, icc)
    buffer, all_frames = io.BytesIO(), frames or [picture]
    if file_format == "GIF":
        with_clear = any(frame.pixels.shape[-1] == 4 for frame in all_frames)
        images = [indexed(frame.pixels, with_clear) for frame in all_frames]
    else:
        images = [Image.fromarray(frame.bare_pixels) for frame in all_frames]
    shown = [frame.duration for frame in all_frames]
    moving: dict[str, Any] = {} if animation is None else writing_options(animation, file_format, images, shown)
    if file_format == "GIF":
        images[0].save(buffer, format="GIF", optimize=False, **moving)
        return add_to_gif(buffer.getvalue(), GifTexts(tuple(b.body for b in metadata.blocks), metadata.xmp, icc))
    if file_format == "PNG":
        images[0].save(buffer, format="PNG", compress_level=int(kind or 6), **moving)
        return add_to_png(buffer.getvalue(), metadata, icc)
    loss: dict[str, Any] = {"quality": quality} if kind == "lossy" else {"lossless": True, "exact": True}
    stored = {"icc_profile": icc, "exif": metadata.exif, "xmp": metadata.xmp}
    given = {name: value for name, value in stored.items() if value}
    if file_format == "HEIF":
        image = images[0].convert("RGBA" if images[0].mode in ("LA", "RGBA") else "RGB")
        image.save(buffer, format="HEIF", quality=quality, chroma=int(subsampling or 444), **given)
    else:
        images[0].save(buffer, format="WebP", **loss, **given, **moving)
    return buffer.getvalue()
