"""What a file says of its picture beside the pixels, and which format can keep it.

| | PNG | JPEG | TIFF | WebP |
|---|---|---|---|---|
| EXIF, XMP | yes | yes | yes | yes |
| IPTC | as ImageMagick's raw profile | yes | yes | no |
| comment | as text | yes | as description | no |
| resolution | yes | yes | yes | in EXIF |
| texts of PNG | yes | no | no | no |
| gAMA, cHRM, cICP and other colors of PNG | yes | no | no | no |
"""

# pyright: strict

import dataclasses
import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from ..limits import Size
from . import exif as tiff
from .exif import Directory, Entry

# Values of gAMA, in 1/100000, and of cHRM that say sRGB, as does a PNG without them.
GAMMA, PRIMARIES, SRGB = b"gAMA", b"cHRM", b"sRGB"
SRGB_VALUES = {
    GAMMA: struct.pack(">I", 45455),
    PRIMARIES: struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000),
}
JPEG_BODY_BYTES = 65533  # of a segment, without the field of its length
EXIF_HEADER = b"Exif\0\0"
XMP_HEADER = b"http://ns.adobe.com/xap/1.0/\0"
INCH = Fraction(254, 10000)  # meters
MAX_RESOLUTION = 10**8  # pixels per meter
BROKEN_EXIF = "EXIF, which is broken"
CREDENTIALS = "content credentials"  # whose signature covers the pixels


class Resolution(NamedTuple):
    """Pixels per meter across and down, or the aspect of a pixel if the unit is unknown."""

    x: Fraction
    y: Fraction
    has_unit: bool = True


class Chunk(NamedTuple):
    """A chunk of PNG."""

    name: bytes
    body: bytes


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What describes a picture.

    Attributes:
        exif: a TIFF stream, as it was stored.
        xmp: a packet of XML.
        xmp_extension: segments of a JPEG that continue a long packet.
        iptc: records of IPTC-IIM.
        comments: in an encoding that is not stated.
        resolution: of the stored picture.
        texts: chunks of PNG.
        colors: chunks of PNG that tell what the values of pixels mean.
        dropped: names of what no output keeps.
    """

    exif: bytes | None = None
    xmp: bytes | None = None
    xmp_extension: tuple[bytes, ...] = ()
    iptc: bytes | None = None
    comments: tuple[bytes, ...] = ()
    resolution: Resolution | None = None
    texts: tuple[Chunk, ...] = ()
    colors: tuple[Chunk, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def orientation(self) -> int:
        """How the stored picture is turned (TIFF 6.0, tag 274), by EXIF or else by XMP; 1 if neither tells."""
        directory = tiff.read_first(self.exif or b"")
        if tiff.ORIENTATION in directory:
            return tiff.number(directory, tiff.ORIENTATION, 1)
        return tiff.xmp_orientation(self.xmp or b"")

    def stripped(self) -> "Metadata":
        """Only what tells the meaning of the pixels."""
        return Metadata(colors=self.colors)


# What each format keeps, in the words of a note.
WORDS = {
    "exif": "EXIF",
    "xmp": "XMP",
    "xmp_extension": "the rest of a long XMP",
    "iptc": "IPTC",
    "comments": "comment",
    "resolution": "resolution",
    "texts": "PNG text",
    "colors": "colors of PNG",
}
KEPT = {
    "PNG": {"exif", "xmp", "iptc", "comments", "resolution", "texts", "colors"},
    "JPEG": {"exif", "xmp", "xmp_extension", "iptc", "comments", "resolution"},
    "TIFF": {"exif", "xmp", "iptc", "comments", "resolution"},
    "WebP": {"exif", "xmp", "resolution"},
}


def fit(metadata: Metadata, file_format: str, size: Size, has_profile: bool) -> tuple[Metadata, tuple[str, ...]]:
    """Metadata of an upright picture as a format keeps it, and the names of what is lost.

    Args:
        metadata: of the picture as it was stored.
        file_format: PNG, JPEG, TIFF or WebP.
        size: width and height of the picture that is written.
        has_profile: whether it is written with a color profile, which gamma and primaries repeat.
    """
    lost = list(metadata.dropped)
    changes: dict[str, object] = {"dropped": ()}
    if metadata.exif is not None:
        try:
            changes["exif"] = tiff.update(metadata.exif, size)
        except ValueError:
            changes["exif"] = None
            lost.append(BROKEN_EXIF)
    changes["xmp"] = None if metadata.xmp is None else tiff.update_xmp(metadata.xmp, size)
    if metadata.resolution and metadata.orientation >= 5:
        x, y, has_unit = metadata.resolution
        changes["resolution"] = Resolution(y, x, has_unit)
    metadata = dataclasses.replace(metadata, **changes)  # pyright: ignore[reportArgumentType]
    for name, words in WORDS.items():
        if getattr(metadata, name) and name not in KEPT[file_format]:
            if name == "colors":
                lost += color_names(metadata.colors, has_profile)
            else:
                lost.append(describe_texts(metadata.texts) if name == "texts" else words)
            metadata = dataclasses.replace(metadata, **{name: None if name == "iptc" else ()})
    if file_format == "JPEG":
        metadata, too_long = fit_to_segments(metadata)
        lost += too_long
    if file_format == "TIFF" and metadata.comments and tiff.DESCRIPTION in tiff.read_first(metadata.exif or b""):
        lost.append(WORDS["comments"])  # there is one place for both
    if file_format == "WebP" and metadata.resolution:
        if metadata.exif is None:
            metadata = dataclasses.replace(metadata, exif=tiff.write_stream(resolution_entries(metadata.resolution)))
        elif tiff.X_RESOLUTION not in tiff.read_first(metadata.exif):
            lost.append(WORDS["resolution"])
    return metadata, tuple(dict.fromkeys(lost))


def describe_texts(texts: tuple[Chunk, ...]) -> str:
    """The keywords of texts."""
    words = dict.fromkeys(chunk.body.split(b"\0", 1)[0].decode("latin-1") for chunk in texts)
    return f"PNG text ({', '.join(words)})"


def color_names(colors: tuple[Chunk, ...], has_profile: bool) -> list[str]:
    """The names of chunks that say something else than sRGB, and that a profile does not repeat."""
    names = {chunk.name for chunk in colors}
    if has_profile or SRGB in names:
        repeated = {SRGB, GAMMA, PRIMARIES}
    else:
        repeated = {chunk.name for chunk in colors if SRGB_VALUES.get(chunk.name) == chunk.body}
    return [chunk.name.decode() for chunk in colors if chunk.name not in repeated]


def fit_to_segments(metadata: Metadata) -> tuple[Metadata, list[str]]:
    """Metadata without what is too long for a segment of a JPEG, and the names of what was."""
    lost: list[str] = []
    for name, header in (("exif", EXIF_HEADER), ("xmp", XMP_HEADER)):
        if len(getattr(metadata, name) or b"") + len(header) > JPEG_BODY_BYTES:
            metadata = dataclasses.replace(metadata, **{name: None})
            lost.append(f"{WORDS[name]}, which is too long for JPEG,")
    return metadata, lost


def resolution_entries(resolution: Resolution) -> Directory:
    """A resolution as entries of a TIFF directory."""
    unit = INCH if resolution.has_unit else Fraction(1)
    values = [(side * unit).limit_denominator(1000) for side in resolution[:2]]
    x, y = (
        Entry(tiff.RATIONAL, b"".join(part.to_bytes(4, "little") for part in value.as_integer_ratio()))
        for value in values
    )
    kind = Entry(tiff.SHORT, (2 if resolution.has_unit else 1).to_bytes(2, "little"))
    return {tiff.X_RESOLUTION: x, tiff.Y_RESOLUTION: y, tiff.RESOLUTION_UNIT: kind}


def resolution_of(directory: Directory) -> Resolution | None:
    """The resolution that entries of a TIFF directory state, if any."""
    sides: list[Fraction] = []
    for tag in (tiff.X_RESOLUTION, tiff.Y_RESOLUTION):
        entry = directory.get(tag)
        if not isinstance(entry, Entry) or entry.type != tiff.RATIONAL:
            return None
        top, bottom = (int.from_bytes(entry.value[k : k + 4], "little") for k in (0, 4))
        sides.append(Fraction(top, bottom or 1))
    unit = {2: INCH, 3: Fraction(1, 100)}.get(tiff.number(directory, tiff.RESOLUTION_UNIT, 2))
    return make_resolution(sides[0], sides[1], unit)


def make_resolution(x: Fraction, y: Fraction, unit: Fraction | None) -> Resolution | None:
    """A resolution in pixels per `unit`, which is in meters; `None` if it tells nothing."""
    sides = (x, y) if unit is None else (x / unit, y / unit)
    if min(sides) <= 0 or max(sides) > MAX_RESOLUTION or (unit is None and x == y):
        return None
    return Resolution(*sides, unit is not None)


def enumerate_names(names: tuple[str, ...]) -> str:
    """Names as a list in a sentence."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def read_pillow(info: Mapping[Any, Any]) -> Metadata:
    """The metadata that Pillow found in a file of another format, such as WebP."""
    exif, xmp, comment = (info.get(name) for name in ("exif", "xmp", "comment"))
    exif = exif.removeprefix(EXIF_HEADER) if isinstance(exif, bytes) else None
    return Metadata(
        exif=exif or None,
        xmp=xmp if isinstance(xmp, bytes) else None,
        comments=(comment,) if isinstance(comment, bytes) and comment else (),
        resolution=resolution_of(tiff.read_first(exif or b"")) or dots_per_inch(info.get("dpi")),
    )


def dots_per_inch(stated: Any) -> Resolution | None:
    """A resolution as Pillow states it, such as that of a BMP."""
    try:
        x, y = (Fraction(float(side)) for side in stated)
    except (TypeError, ValueError, OverflowError):
        return None
    return make_resolution(x, y, INCH)
