"""Odd image files, and what `jaxtex warp` must make of each.

They are made by Pillow and tifffile, or byte by byte from the
specifications, and share no code with `jaxtex.cli`.
"""

import dataclasses
import io
import itertools
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image, ImageCms

HEIGHT, WIDTH = 6, 9
MAKE, MODEL, LENS, DATE = "Mäker", "Model 7", "50 mm f/1.8", "2024:05:06 07:08:09"
LATITUDE = (48, 51, 30)
MAKER_NOTE = b"note of a maker " * 4
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="%d" '
    b'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="5"/>'
    b"</rdf:RDF></x:xmpmeta>"
)
CAPTION, COMMENT, AUTHOR = b"A caption", b"Taken at noon", "Ada"
IPTC = b"\x1c\x02\x78" + struct.pack(">H", len(CAPTION)) + CAPTION
GRAY_PROFILE = bytes(16) + b"GRAY" + b"profile" * 20
RGB_PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
THUMBNAIL = b"\xff\xd8\xff\xdbthumbnail of the picture as it was\xff\xd9"
DESCRIBED = struct.pack("<2sHIHHHI4sI", b"II", 42, 8, 1, 270, 2, 4, b"sea\0", 0)
CICP = bytes((9, 16, 0, 1))


def pixels(channels: int = 3, dtype: str = "uint8", height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Random pixels; without an axis of channels for one."""
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(channels).integers(0, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)


def photograph(channels: int, height: int = 37, width: int = 53) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([128 + 60 * np.sin(x / (3 + c)) * np.cos(y / 5) + 40 * (x > y) for c in range(channels)], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8)[..., 0] if channels == 1 else pixels.astype(np.uint8))


def slices() -> np.ndarray:
    """Three gray pictures."""
    return pixels(3).transpose(2, 0, 1)


# TIFF directories, of which EXIF is made


def directory(order: str, at: int, entries: dict[int, tuple[int, int, bytes]], following: int = 0) -> bytes:
    """A TIFF directory at `at`: entries are type, count and bytes by tag."""
    table, values = b"", b""
    values_at = at + 6 + 12 * len(entries)
    for tag, (kind, count, value) in sorted(entries.items()):
        if len(value) > 4:
            values += bytes(len(values) % 2)
            value, values = struct.pack(f"{order}I", values_at + len(values)), values + value
        table += struct.pack(f"{order}HHI", tag, kind, count) + value.ljust(4, b"\0")
    return struct.pack(f"{order}H", len(entries)) + table + struct.pack(f"{order}I", following) + values


def exif(orientation: int = 1, order: str = "<", thumbnail: bytes = b"") -> bytes:
    """EXIF with a camera, a lens, a date, a place, a maker's note and, if it is given, a thumbnail."""

    def short(value: int) -> tuple[int, int, bytes]:
        return 3, 1, struct.pack(f"{order}H", value)

    def long(value: int) -> tuple[int, int, bytes]:
        return 4, 1, struct.pack(f"{order}I", value)

    def text(value: str) -> tuple[int, int, bytes]:
        return 2, len(value.encode()) + 1, value.encode() + b"\0"

    def rationals(*values: int) -> tuple[int, int, bytes]:
        return 5, len(values), b"".join(struct.pack(f"{order}II", value, 1) for value in values)

    photo = {36867: text(DATE), 37500: (7, len(MAKER_NOTE), MAKER_NOTE), 42036: text(LENS)}
    photo |= {40962: short(WIDTH), 40963: long(HEIGHT)}
    place = {1: text("N"), 2: rationals(*LATITUDE)}
    first = {271: text(MAKE), 272: text(MODEL), 274: short(orientation), 306: text(DATE), 34665: long(0)}
    first |= {34853: long(0), 282: rationals(300), 283: rationals(300), 296: short(2)}
    sizes = [len(directory(order, 0, entries)) for entries in (first, photo, place)]
    starts = [8 + sum(sizes[:k]) for k in range(4)]
    first |= {34665: long(starts[1]), 34853: long(starts[2])}
    last = {513: long(starts[3] + 30), 514: long(len(thumbnail))}
    stream = struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, 8)
    stream += directory(order, 8, first, starts[3] if thumbnail else 0)
    stream += directory(order, starts[1], photo) + directory(order, starts[2], place)
    return stream + directory(order, starts[3], last) + thumbnail if thumbnail else stream


# Containers


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def jpeg(channels: int = 3, *segments: bytes, **options: object) -> bytes:
    """A JPEG with segments after its first one."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(channels)).save(buffer, "JPEG", **options)
    return buffer.getvalue()[:20] + b"".join(segments) + buffer.getvalue()[20:]


def exif_segment(*arguments: object) -> bytes:
    return segment(0xE1, b"Exif\0\0" + exif(*arguments))


def xmp_segment(orientation: int = 1) -> bytes:
    return segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP % orientation)


def iptc_segment() -> bytes:
    other = b"8BIM" + struct.pack(">H", 0x0404 + 1) + b"\3abc" + struct.pack(">I", 3) + b"odd\0"
    ours = b"8BIM" + struct.pack(">HHI", 0x0404, 0, len(IPTC)) + IPTC + bytes(len(IPTC) % 2)
    return segment(0xED, b"Photoshop 3.0\0" + other + ours)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(*chunks: bytes, channels: int = 3, tail: bytes = b"") -> bytes:
    """A PNG with chunks after its header, and before its end."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(channels)).save(buffer, "PNG")
    data = buffer.getvalue()
    return data[:33] + b"".join(chunks) + data[33:-12] + tail + data[-12:]


def tiff(image: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, image, **{"metadata": None} | options)
    return buffer.getvalue()


def several(file_format: str) -> bytes:
    """Two pages or frames by Pillow."""
    buffer = io.BytesIO()
    first, second = Image.fromarray(pixels()), Image.fromarray(255 - pixels())
    first.save(buffer, file_format, save_all=True, append_images=[second])
    return buffer.getvalue()


def pages_of(*images: np.ndarray, subfiletypes: tuple[int, ...] = (), inner: int = 0, **options: object) -> bytes:
    """A TIFF of several pages, by tifffile, or of one with others in directories inside its directory."""
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer, **options) as writer:
        for image, subfiletype in itertools.zip_longest(images, subfiletypes, fillvalue=0):
            image = image[..., 0] if image.shape[2:] == (1,) else image
            colors = "rgb" if image.shape[2:] in ((3,), (4,)) else "mask" if image.dtype == bool else "minisblack"
            alpha = ["unassalpha"] if image.shape[2:] in ((2,), (4,)) else None
            planes = "contig" if image.ndim > 2 else None
            about = {"photometric": colors, "extrasamples": alpha, "planarconfig": planes, "metadata": None}
            writer.write(image, subfiletype=subfiletype, subifds=inner, **about)
            inner = 0
    return buffer.getvalue()


def fax() -> bytes:
    """Three pages of one bit, compressed as a fax machine does."""
    buffer = io.BytesIO()
    first, *others = (Image.fromarray(pixels(1, height=12, width=17 + k)).convert("1") for k in range(3))
    first.save(buffer, "TIFF", save_all=True, append_images=others, compression="group4")
    return buffer.getvalue()


def pages_and_copies() -> bytes:
    """Two pages, each followed by a smaller copy."""
    return pages_of(pixels(), pixels()[::2, ::2], 255 - pixels(), pixels()[::2, ::2], subfiletypes=(0, 1, 0, 1))


def with_other_pixels(data: bytes, photometric: int) -> bytes:
    """A little-endian TIFF whose gray pixels are declared to mean something else."""
    return data.replace(struct.pack("<HHII", 262, 3, 1, 1), struct.pack("<HHII", 262, 3, 1, photometric))


def thumbnail_over_raw() -> bytes:
    """A TIFF as NEF and ARW are: a small RGB picture, and in a directory inside its directory what the sensor saw."""
    return with_other_pixels(pages_of(pixels(), pixels(1, "uint16"), inner=1), 32803)


def cmyk_profile() -> bytes:
    """A color profile of ink (ICC.1, 10.10): lightness falls with every ink, and there is no color."""
    grid = np.array([[255 * (1 - min(1.0, (c + m + y) / 4 + k)), 128, 128] for c, m, y, k in np.ndindex(2, 2, 2, 2)])
    ramp = bytes(range(256))
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0))
    table += b"".join(struct.pack(">i", 65536 * (k % 4 == 0)) for k in range(9))
    table += ramp * 4 + np.rint(grid).astype(np.uint8).tobytes() + ramp * 3
    head = struct.pack(">I4sI4s4s4s", 128 + 16 + len(table), b"lcms", 0x02400000, b"prtr", b"CMYK", b"Lab ")
    head += bytes(12) + b"acsp" + bytes(28) + struct.pack(">3I", 0xF6D6, 0x10000, 0xD32D)
    return head.ljust(128, b"\0") + struct.pack(">I4sII", 1, b"A2B0", 144, len(table)) + table


def cmyk_jpeg(**options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new("CMYK", (WIDTH, HEIGHT), (0, 255, 255, 0)).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def bomb(file_format: str) -> bytes:
    """A small file that declares a picture of far more pixels than it has."""
    if file_format == "PNG":
        return png()[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 200_000, 200_000, 8, 2, 0, 0, 0)) + png()[33:]
    data = tiff(pixels(1), photometric="minisblack")
    for tag, side in ((256, WIDTH), (257, HEIGHT)):
        data = data.replace(struct.pack("<HHII", tag, 4, 1, side), struct.pack("<HHII", tag, 4, 1, 90_000))
    return data


# The table


@dataclasses.dataclass(frozen=True)
class OddFile:
    """A file and what comes of it.

    Attributes:
        make: the bytes of the file, or what makes it at a path.
        error: words of the sentence that refuses it; `None` if it is warped.
        notes: words of the notes, by the suffix of the output; formats that are not named keep all there is.
        makes_itself: whether `make` takes a path.
        pages: how many are warped; more than one are written as TIFF alone.
    """

    make: Callable[[], bytes] | Callable[[Path], None]
    error: str | None = None
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    makes_itself: bool = False
    pages: int = 1


def refused(make: Callable[[], bytes], error: str) -> OddFile:
    return OddFile(make, error)


def but(suffix: str, note: str) -> dict[str, str]:
    """A note on outputs of all formats but one."""
    return {name: text for name, text in everywhere(note).items() if name != suffix}


def everywhere(note: str) -> dict[str, str]:
    return dict.fromkeys((".png", ".jpg", ".tif", ".webp"), note)


RAW = "it is a camera raw file"
ODD_FILES = {
    # What is not a picture, or not one
    "dng as tiff.tif": refused(
        lambda: tiff(pixels(), photometric="rgb", extratags=[(50706, 1, 4, b"\1\4\0\0", True)]), f"{RAW} (DNG)"
    ),
    "by its name.nef": refused(lambda: tiff(pixels(), photometric="rgb"), f"{RAW} (NEF)"),
    "thumbnail over raw.tif": refused(thumbnail_over_raw, RAW),
    "raw page.tif": refused(lambda: with_other_pixels(pages_of(pixels(), pixels(1)), 32803), RAW),
    "fuji.jpg": refused(lambda: b"FUJIFILMCCD-RAW 0201" + jpeg(), f"{RAW} (RAF)"),
    "canon.jpg": refused(lambda: b"\0\0\0\x18ftypcrx \0\0\0\1" + bytes(40), f"{RAW} (CR3)"),
    # With the package for HEIF, this is broken, and without it there is no reader.
    "iphone.jpg": refused(lambda: b"\0\0\0\x18ftypheic\0\0\0\0" + bytes(40), "cannot read"),
    "volume.tif": refused(lambda: tiff(slices(), photometric="minisblack", volumetric=True), "a volume of 3 slices"),
    "hidden slices.tif": refused(
        lambda: tiff(slices(), photometric="minisblack", truncate=True, metadata={}), "a volume of 3 slices"
    ),
    "float page.tif": OddFile(
        lambda: pages_of(pixels(), pixels(1).astype(np.float32)),
        "(page 2): its pixels are MINISBLACK of float32, and jaxtex reads gray and RGB of 8 and 16 bits",
        pages=2,
    ),
    "bomb.png": refused(lambda: bomb("PNG"), "200000x200000 are 40000 million pixels, more than the limit of 500"),
    "bomb.tif": refused(lambda: bomb("TIFF"), "90000x90000 are 8100 million pixels"),
    "device.png": OddFile(lambda path: path.symlink_to("/dev/zero"), "it is a device", makes_itself=True),
    "loop.png": OddFile(lambda path: path.symlink_to(path.name), "symbolic links", makes_itself=True),
    # Metadata
    "exif.jpg": OddFile(lambda: jpeg(3, exif_segment())),
    "turned.jpg": OddFile(lambda: jpeg(3, exif_segment(6), xmp_segment(6))),
    "thumbnail, big-endian.png": OddFile(lambda: png(tail=chunk(b"eXIf", exif(3, ">", THUMBNAIL)))),
    "turned by xmp alone.jpg": OddFile(lambda: jpeg(3, xmp_segment(8))),
    "exif.webp": OddFile(lambda: save_webp(exif=exif(6), xmp=XMP % 6, icc_profile=RGB_PROFILE)),
    "exif.tif": OddFile(lambda: exif_tiff()),
    "broken exif.jpg": OddFile(
        lambda: jpeg(3, segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\0")), notes=everywhere("EXIF, which is broken")
    ),
    "broken exif.tif": OddFile(  # whose place is beyond the end of the file
        lambda: tiff(pixels(), photometric="rgb", extratags=[(42000, 4, 1, 10**9, True)]).replace(
            struct.pack("<HHI", 42000, 4, 1), struct.pack("<HHI", 34665, 4, 1)
        ),
        notes=everywhere("EXIF, which is broken"),
    ),
    "long xmp.png": OddFile(
        lambda: png(chunk(b"iTXt", b"XML:com.adobe.xmp" + bytes(5) + XMP % 1 + b" " * 70_000)),
        notes={".jpg": "XMP, which is too long for JPEG"},
    ),
    "iptc.jpg": OddFile(lambda: jpeg(3, iptc_segment()), notes=but(".jpg", "without its IPTC")),
    "photoshop paths.jpg": OddFile(
        lambda: jpeg(3, segment(0xED, b"Photoshop 3.0\x008BIM" + struct.pack(">HHI", 2000, 0, 2) + b"ab")),
        notes=but(".jpg", "without its Photoshop data"),
    ),
    "comment and description.jpg": OddFile(
        lambda: jpeg(3, segment(0xE1, b"Exif\0\0" + DESCRIBED), comment=COMMENT),
        notes=but(".jpg", "without its comment"),
    ),
    "resolution.png": OddFile(lambda: png(chunk(b"pHYs", struct.pack(">IIB", 11811, 11811, 1)))),
    "credentials.jpg": OddFile(
        lambda: jpeg(3, segment(0xEB, b"JP\0\1 signed")), notes=everywhere("without its content credentials")
    ),
    "texts.png": OddFile(
        lambda: png(
            chunk(b"tEXt", b"Author\0" + AUTHOR.encode()),
            tail=chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"Noon")) + chunk(b"tEXt", b"Comment\0" + COMMENT),
        ),
        notes=but(".png", "without its PNG text (Author, Title, Comment)"),
    ),
    "srgb.png": OddFile(lambda: png(chunk(b"sRGB", b"\0"), chunk(b"gAMA", struct.pack(">I", 45455)))),
    "gamma.png": OddFile(
        lambda: png(chunk(b"gAMA", struct.pack(">I", 100_000))),
        notes=dict.fromkeys((".jpg", ".tif", ".webp"), "without its gAMA"),
    ),
    # Colors
    "profile.jpg": OddFile(lambda: jpeg(3, icc_profile=RGB_PROFILE)),
    "gray profile.jpg": OddFile(
        lambda: jpeg(1, icc_profile=GRAY_PROFILE), notes={".webp": "color profile, which is for gray images"}
    ),
    "wrong profile.jpg": OddFile(
        lambda: jpeg(1, icc_profile=RGB_PROFILE),
        notes=dict.fromkeys((".jpg", ".png", ".tif"), "color profile, which is for RGB images"),
    ),
    "cmyk.jpg": OddFile(cmyk_jpeg, notes=everywhere("from CMYK to RGB without a color profile")),
    "cmyk with profile.jpg": OddFile(
        lambda: cmyk_jpeg(icc_profile=cmyk_profile()), notes=everywhere("from CMYK to sRGB by its color profile")
    ),
    "cmyk with broken profile.jpg": OddFile(
        lambda: cmyk_jpeg(icc_profile=cmyk_profile()[:200]),
        notes=everywhere("profile, which cannot be used, is dropped"),
    ),
    # Several pages
    "fax.tif": OddFile(fax, pages=3),
    "imagej.tif": OddFile(
        lambda: tiff(slices(), imagej=True, metadata={}),
        notes={".tif": "(page 1) is written as TIFF without its machine-written description"},
        pages=3,
    ),
    "sizes and depths.tif": OddFile(
        lambda: pages_of(pixels(), pixels(1, "uint16", 20, 30), pixels(4, "uint8", 5, 40), pixels(2)), pages=4
    ),
    "pages and copies.tif": OddFile(
        lambda: pages_and_copies(), notes={".tif": "has 2 smaller copies, which are dropped"}, pages=2
    ),
    "pyramid.tif": OddFile(
        lambda: pages_of(pixels(), pixels()[::2, ::2], pixels()[::4, ::4], subfiletypes=(0, 1, 1), inner=2),
        notes=everywhere("has 2 smaller copies, which are dropped"),
    ),
    "masked.tif": OddFile(
        lambda: pages_of(pixels(), pixels(1) > 99, subfiletypes=(0, 4)),
        notes=everywhere("has a mask, which is dropped"),
    ),
    "two pictures.jpg": OddFile(lambda: several("MPO"), notes=everywhere("has 2 pictures, of which the first is used")),
}


def save_webp(**options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels()).save(buffer, "WEBP", lossless=True, **options)
    return buffer.getvalue()


def gif(xmp: bytes = b"", profile: bytes = b"", frames: int = 1) -> bytes:
    """A GIF by Pillow with a comment, XMP and a color profile, as Adobe's programs store them."""
    buffer, images = io.BytesIO(), [Image.fromarray(pixels()), Image.fromarray(255 - pixels())][:frames]
    more = {"save_all": True, "append_images": images[1:], "duration": [100, 200], "loop": 0} if frames > 1 else {}
    images[0].save(buffer, "GIF", comment=COMMENT, **more)
    data = buffer.getvalue()
    at = 13 + 3 * 2 ** ((data[10] & 7) + 1)
    parts = b"".join(bytes((len(profile[k : k + 255]),)) + profile[k : k + 255] for k in range(0, len(profile), 255))
    blocks = b"\x21\xff\x0bICCRGBG1012" + parts + b"\0"
    blocks += b"\x21\xff\x0bXMP DataXMP" + xmp + bytes((1, *range(255, -1, -1), 0))
    return data[:at] + blocks + data[at:]


def exif_tiff() -> bytes:
    """A TIFF with EXIF and a place, by Pillow."""
    buffer, metadata = io.BytesIO(), Image.Exif()
    metadata.load(exif(6))
    for tag in (34665, 34853):
        metadata.get_ifd(tag)
    Image.fromarray(pixels()).save(buffer, "TIFF", exif=metadata)
    return buffer.getvalue()


def make(name: str, folder: Path) -> Path:
    path, odd = folder / name, ODD_FILES[name]
    if odd.makes_itself:
        odd.make(path)
    else:
        path.write_bytes(odd.make())
    return path
