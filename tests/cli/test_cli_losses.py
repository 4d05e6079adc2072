"""What a file of any kind holds is in the output, or a sentence says that it is not: nothing is lost silently."""

import importlib.util
import io
import struct
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image

from tests.cli import odd_files as o
from tests.cli.test_cli import POINT, run
from tests.cli.test_cli_metadata import facts, sources_of_all

TARGETS = (".png", ".jpg", ".tif", ".webp", ".gif")
WIDE = o.pixels(3, "uint16")


def saved(file_format: str, image: Image.Image, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, file_format, **options)
    return stream.getvalue()


def image_of(channels: int) -> Image.Image:
    return Image.fromarray(o.pixels(channels))


def in_palette() -> Image.Image:
    """Few colors, one of which is clear."""
    image = Image.fromarray(np.arange(54, dtype=np.uint8).reshape(6, 9) % 16).convert("P")
    image.putpalette(bytes(range(100, 148)))
    image.info["transparency"] = 3
    return image


def moving(file_format: str, **options: object) -> bytes:
    first, second = image_of(3), Image.fromarray(255 - o.pixels())
    about = {"save_all": True, "append_images": [second], "duration": [100, 200], "loop": 0} | options
    return saved(file_format, first, **about)


def all_of(file_format: str) -> bytes:
    return sources_of_all()[file_format]


def later_comment() -> bytes:
    """A GIF whose second frame has a comment of its own, behind the trailer of none."""
    data = moving("GIF", comment=b"Noon")
    return data[:-1] + b"\x21\xfe\x05later\0" + data[-1:]


def tiff_with_all() -> bytes:
    """Tags of the camera, a private one, Photoshop's layers, a georeference, and two pages."""
    xmp = o.XMP % 1
    tags = [(271, 2, 0, "Maker", True), (700, 1, len(xmp), xmp, True), (33723, 7, len(o.IPTC), o.IPTC, True)]
    tags += [(42000, 4, 2, (7, 8), True), (33550, 12, 3, (1.0, 1.0, 0.0), True), (285, 2, 0, "Name of a page", True)]
    options = {"resolution": (300, 300), "resolutionunit": "INCH", "extratags": tags, "photometric": "rgb"}
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream) as writer:
        for _ in range(2):
            writer.write(WIDE, iccprofile=o.RGB_PROFILE, metadata=None, **options)
    return stream.getvalue()


def avif(**options: object) -> bytes:
    return saved("AVIF", image_of(3), **options)


KINDS = {
    **{f"all.{name}": lambda name=name: all_of(kind_of(name)) for name in ("png", "jpg", "tif", "webp")},
    "turned, with a thumbnail.jpg": lambda: o.jpeg(
        3, o.exif_segment(6, ">", o.THUMBNAIL), o.xmp_segment(6), comment=b"Noon", dpi=(300, 300)
    ),
    "several comments.jpg": lambda: o.jpeg(3, o.segment(0xFE, b"Noon"), o.segment(0xFE, b"Night")),
    "maker's segments.jpg": lambda: o.jpeg(3, o.segment(0xE5, b"RICOH 1"), o.segment(0xEC, b"PictureInfo")),
    "gray with a profile.jpg": lambda: o.jpeg(1, icc_profile=o.GRAY_PROFILE),
    "two.jpg": lambda: o.several("MPO"),
    "cmyk.jpg": lambda: o.cmyk_jpeg(icc_profile=o.cmyk_profile(), dpi=(300, 300)),
    "texts.png": lambda: o.png(
        o.chunk(b"tEXt", b"Author\0" + o.AUTHOR.encode()),
        o.chunk(b"iTXt", b"Title\0\0\0\0\0" + "Mäker".encode()),
        o.chunk(b"tIME", struct.pack(">HBBBBB", 2024, 5, 6, 7, 8, 9)),
        o.chunk(b"gAMA", struct.pack(">I", 100_000)),
        tail=o.chunk(b"zTXt", b"Comment\0\0" + zlib.compress(o.COMMENT)),
    ),
    "wide.png": lambda: bytes(imagecodecs.png_encode(WIDE)),
    "wide with alpha.png": lambda: bytes(imagecodecs.png_encode(o.pixels(4, "uint16"))),
    "gray with alpha.png": lambda: o.png(channels=2),
    "palette.png": lambda: saved("PNG", in_palette(), transparency=3),
    "moving.png": lambda: moving("PNG", dpi=(300, 300)),
    "all.gif": lambda: o.gif(o.XMP % 1, o.RGB_PROFILE, 2),
    "palette.gif": lambda: saved("GIF", in_palette(), comment=b"Noon"),
    "later comment.gif": later_comment,
    "pages.tif": lambda: tiff_with_all(),
    "alpha.tif": lambda: o.tiff(o.pixels(4), photometric="rgb", extrasamples=["unassalpha"]),
    "one bit.tif": o.fax,
    "exif.tif": o.exif_tiff,
    "moving.webp": lambda: moving(
        "WEBP", lossless=True, exif=b"Exif\0\0" + o.exif(6), xmp=o.XMP % 6, icc_profile=o.RGB_PROFILE
    ),
    "alpha.webp": lambda: saved("WEBP", image_of(4), lossless=True),
    "dots.bmp": lambda: saved("BMP", image_of(3), dpi=(300, 300)),
    "wide.pgm": lambda: b"P5 9 6 65535\n" + o.pixels(1, "uint16").astype(">u2").tobytes(),
    "wide.ppm": lambda: b"P6 9 6 65535\n" + WIDE.astype(">u2").tobytes(),
    "comment.ppm": lambda: b"P6\n# Noon\n9 6 255\n" + o.pixels().tobytes(),
    "sizes.ico": lambda: saved("ICO", image_of(4).resize((64, 64)), sizes=[(16, 16), (32, 32), (64, 64)]),
    "sizes.icns": lambda: saved("ICNS", image_of(4).resize((64, 64))),
    "alpha.tga": lambda: saved("TGA", image_of(4), id_section=b"Noon"),
    "profile.jp2": lambda: saved("JPEG2000", image_of(4), comment=b"Noon"),
    "wide.jp2": lambda: bytes(imagecodecs.jpeg2k_encode(WIDE, level=0)),
    "all.avif": lambda: avif(exif=o.exif(6), xmp=o.XMP % 1, icc_profile=o.RGB_PROFILE),
    "moving.avif": lambda: moving("AVIF"),
    "mips.dds": lambda: saved("DDS", image_of(4)),
    "dots.pcx": lambda: saved("PCX", image_of(3), dpi=(300, 300)),
    "lines.xbm": lambda: saved("XBM", image_of(1).convert("1"), hotspot=(1, 2)),
    "alpha.sgi": lambda: saved("SGI", image_of(4)),
    "name.im": lambda: saved("IM", image_of(3)),
}


if importlib.util.find_spec("pillow_heif"):
    TARGETS += (".heic",)
    KINDS["all.heic"] = lambda: heic(exif=b"Exif\0\0" + o.exif(6), xmp=o.XMP % 1, icc_profile=o.RGB_PROFILE)


def heic(**options: object) -> bytes:
    import pillow_heif

    pillow_heif.register_heif_opener()
    return saved("HEIF", image_of(4).resize((64, 64)), **options)


def kind_of(name: str) -> str:
    return {"png": "PNG", "jpg": "JPEG", "tif": "TIFF", "webp": "WebP"}[name]


def found_in(path: Path) -> dict[str, object]:
    """What a file holds, by the words with which a sentence may say that it is lost."""
    found, data = facts(path), path.read_bytes()
    with Image.open(path) as image:
        count, frames = getattr(image, "n_frames", 1), image.format in ("GIF", "WEBP", "PNG", "AVIF")
        if len(sizes := image.info.get("sizes", ())) > 1:
            found["sizes"] = sizes
        if count > 1:
            found["frames" if frames else "pictures" if image.format == "MPO" else "pages"] = count
            image.seek(count - 1)
            image.load()
        if frames and count > 1:
            found["times"] = round(image.info.get("duration", 0), -1)
        if image.has_transparency_data:
            found["alpha"] = True
        for text in (b"Noon", b"Night", b"later", b"M\xc3\xa4ker\0", b"RICOH 1", b"PictureInfo"):
            if text in data and b"zTXt" not in data and text != b"M\xc3\xa4ker\0":
                found[f"text {text.decode()}"] = True
    if data[:2] in (b"II", b"MM"):
        with tifffile.TiffFile(path) as tiff:
            page = tiff.pages.first
            found |= {f"tag {tag}": tags for tag in (42000, 285) if (tags := page.tags.valueof(tag))}
            found |= {"16": True} if page.bitspersample == 16 else {}
            found |= {"georeference": True} if 33550 in page.tags else {}
    elif data[:4] == b"\x89PNG":
        found |= {"16": True} if data[24] == 16 else {}
    elif data[:2] in (b"P5", b"P6") or path.suffix == ".jp2":
        found |= {"16": True} if b"65535" in data[:16] or "wide" in path.name else {}
    return found


# What a sentence calls what `found_in` does not name by the same word, and what the guide says of all files.
SAID = {"profile": "profile", "text Noon": "comment", "text Night": "comment", "text later": "comment"}
SAID |= {"text RICOH 1": "APP5 data", "text PictureInfo": "APP12 data", "times": "frames", "tag 42000": "EXIF"}
SAID |= {"tag 285": "EXIF", "alpha": "alpha", "EXIF": "EXIF", "comment": "comment"}


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost_silently(tmp_path, capsys, name):
    """In an output of any format: what is not as it was is in the sentence of a note, or the file is refused."""
    source = tmp_path / name
    source.write_bytes(KINDS[name]())
    before = found_in(source)
    for suffix in TARGETS:
        target = tmp_path / f"out{suffix}"
        code, _, err = run(capsys, "warp", source, target, *POINT)
        if code:
            assert not target.exists()
            assert err.startswith("jaxtex: error: ")
            continue
        after = found_in(target)
        for what, value in before.items():
            kept = after.get(what) == value
            if what == "comment":  # of which there may be several
                kept = value in after.get(what, b"")
            said = SAID.get(what, what)
            assert kept or said in err, (suffix, what, value, after.get(what), err)
        target.unlink()
