"""A picture: its pixels, and what its file says of them. An output keeps as much as its format can store.

An output in the format of the input gets all of it as it was stored, but for the orientation, sizes and thumbnails.
Between formats, the color profile, EXIF, XMP and the resolution are carried.
"""

import dataclasses
from fractions import Fraction

import numpy as np

from ...warp.sized.mappings import Array, Size
from ..process import UserError
from . import exif as tiff
from .compression import UNKNOWN, Compression
from .exif import Directory

JPEG_BODY_BYTES = 65533  # of a segment, without the field of its length
EXIF_HEADER = b"Exif\0\0"
XMP_HEADER = b"http://ns.adobe.com/xap/1.0/\0"
BROKEN_EXIF = "EXIF, which is broken"
CREDENTIALS = "content credentials"  # whose signature covers the pixels
# Resources of Photoshop: IPTC, and thumbnails, which show the input.
IPTC_RESOURCE, THUMBNAIL_RESOURCES = 0x0404, (0x0409, 0x040C)
CENTIMETERS = Fraction(254, 100)  # of an inch
PROFILE_SPACES = {b"GRAY": "gray", b"RGB ": "RGB", b"CMYK": "CMYK", b"Lab ": "Lab"}
# The most pixels of a side: as the formats store it; for PNG as libpng reads it by default.
MAX_SIDES = {"PNG": 1_000_000, "JPEG": 65535, "TIFF": 2**32 - 1, "WebP": 16383, "GIF": 65535, "HEIF": 16384}

Resolution = tuple[Fraction, Fraction]  # pixels per inch across and down


@dataclasses.dataclass(frozen=True)
class Block:
    """A part of a file that says something of its picture, as it is stored.

    Attributes:
        kind: the marker of a segment of JPEG, the name of a chunk of PNG, or a tag of TIFF as two bytes.
        body: its bytes; of a tag, a TIFF stream with it.
        name: what a note calls it where it is lost; empty if that loses nothing.
        is_color: whether it tells what the values of pixels mean.
    """

    kind: bytes
    body: bytes
    name: str = ""
    is_color: bool = False


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What describes a picture, beside its color profile.

    Attributes:
        file_format: of the file, if a picture can be written in that format.
        exif: a TIFF stream, as it was stored.
        xmp: a packet of XML.
        resolution: of the upright picture.
        blocks: what is copied to an output of the same format.
        dropped: names of what no output keeps.
        compression: of the pixels.
    """

    file_format: str | None = None
    exif: bytes | None = None
    xmp: bytes | None = None
    resolution: Resolution | None = None
    blocks: tuple[Block, ...] = ()
    dropped: tuple[str, ...] = ()
    compression: Compression = UNKNOWN

    @property
    def orientation(self) -> int:
        """How the stored picture is turned (TIFF 6.0, tag 274), by EXIF or else by XMP; 1 if neither tells."""
        directory = tiff.read_first(self.exif or b"")
        if tiff.ORIENTATION in directory:
            return tiff.number(directory, tiff.ORIENTATION, 1)
        return tiff.xmp_orientation(self.xmp or b"")

    @property
    def is_turned(self) -> bool:
        """Whether width and height of the stored picture change places."""
        return self.orientation in tiff.SWAPPING

    def stripped(self) -> "Metadata":
        """Only what tells the meaning of the pixels."""
        blocks = tuple(block for block in self.blocks if block.is_color)
        return Metadata(self.file_format, blocks=blocks, compression=self.compression)

    def block(self, kind: bytes) -> bytes | None:
        """The body of the first block of a kind."""
        return next((block.body for block in self.blocks if block.kind == kind), None)


@dataclasses.dataclass(frozen=True)
class Picture:
    """Decoded pixels, upright, with the metadata that the output keeps.

    Attributes:
        pixels: (height, width, channels), uint8 or uint16; alpha, if any, is last and not premultiplied.
        icc: the embedded color profile, or `None`.
        notes: what was dropped, each the end of a sentence that begins with the name of the file.
        metadata: what else the file says, as it was stored.
        duration: of a frame of an animation, in milliseconds.
    """

    pixels: Array
    icc: bytes | None = None
    notes: tuple[str, ...] = ()
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    duration: float = 0.0

    @classmethod
    def upright(
        cls,
        pixels: Array,
        orientation: int,
        icc: bytes | None,
        metadata: Metadata,
        notes: tuple[str, ...] = (),
        *,
        drops_channel: bool = False,
    ) -> "Picture":
        """A picture of stored pixels, (height, width) or (height, width, channels)."""
        turned = tiff.apply_orientation(pixels.reshape(*pixels.shape[:2], -1), orientation)
        notes += ("has a channel of undeclared meaning, which is dropped",) if drops_channel else ()
        return cls(np.ascontiguousarray(turned), icc, notes, metadata)

    @property
    def bare_pixels(self) -> Array:
        """The pixels as codecs take them: contiguous, and without an axis for one channel."""
        return np.ascontiguousarray(self.pixels[..., 0] if self.pixels.shape[-1] == 1 else self.pixels)


def add_alpha(pixels: Array) -> Array:
    """Pixels with an opaque alpha channel, if they have none."""
    if pixels.shape[-1] in (2, 4):
        return pixels
    opaque = np.full_like(pixels[..., :1], np.iinfo(pixels.dtype).max)
    return np.concatenate([pixels, opaque], axis=-1)


# What an output keeps


def fit(metadata: Metadata, file_format: str, size: Size) -> tuple[Metadata, tuple[str, ...]]:
    """Metadata of an upright picture as a format keeps it, and the names of what is lost.

    Args:
        metadata: of the picture as it was stored.
        file_format: PNG, JPEG, TIFF, WebP, GIF or HEIF.
        size: width and height of the picture that is written.
    """
    lost, blocks = list(metadata.dropped), metadata.blocks
    exif, xmp = metadata.exif, None if metadata.xmp is None else tiff.update_xmp(metadata.xmp, size)
    if exif is not None:
        try:
            exif = tiff.update(exif, size)
        except ValueError:
            exif = None
            lost.append(BROKEN_EXIF)
    if file_format != metadata.file_format:
        lost += [block.name for block in blocks if block.name]
        blocks = ()
        metadata = dataclasses.replace(metadata, compression=UNKNOWN)
    if file_format == "JPEG":
        if len(exif or b"") + len(EXIF_HEADER) > JPEG_BODY_BYTES:
            exif = None
            lost.append("EXIF, which is too long for JPEG,")
        if len(xmp or b"") + len(XMP_HEADER) > JPEG_BODY_BYTES:
            xmp = None
            lost.append("XMP, which is too long for JPEG,")
    if file_format == "GIF":
        has_resolution = bool(metadata.resolution) or tiff.X_RESOLUTION in tiff.read_first(exif or b"")
        lost += ["EXIF"] * (exif is not None) + ["resolution"] * has_resolution
        exif = None
    if file_format in ("WebP", "HEIF") and metadata.resolution:  # which has no other place for it
        if exif is None:
            exif = tiff.write_stream(resolution_entries(metadata.resolution))
        elif tiff.X_RESOLUTION not in tiff.read_first(exif):
            lost.append("resolution")
    kept = dataclasses.replace(metadata, exif=exif, xmp=xmp, blocks=blocks, dropped=())
    return kept, tuple(dict.fromkeys(lost))


def fit_profile(icc: bytes | None, is_gray: bool) -> tuple[bytes | None, tuple[str, ...]]:
    """A color profile if it is for such pixels, and the name of one that is not."""
    if icc is None or icc[16:20] == (b"GRAY" if is_gray else b"RGB "):
        return icc, ()
    return None, (f"color profile, which is for {PROFILE_SPACES.get(icc[16:20], 'other')} images",)


def enumerate_names(names: tuple[str, ...]) -> str:
    """Names as a list in a sentence."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def resolution_entries(resolution: Resolution) -> Directory:
    """A resolution as entries of a TIFF directory."""
    x, y = (tiff.entry(tiff.RATIONAL, *side.limit_denominator(1000).as_integer_ratio()) for side in resolution)
    return {tiff.X_RESOLUTION: x, tiff.Y_RESOLUTION: y, tiff.RESOLUTION_UNIT: tiff.entry(tiff.SHORT, 2)}


def resolution_of(directory: Directory) -> Resolution | None:
    """The resolution that entries of a TIFF directory state, if any."""
    sides = [tiff.numbers(directory, tag) for tag in (tiff.X_RESOLUTION, tiff.Y_RESOLUTION)]
    inches = {2: Fraction(1), 3: CENTIMETERS}.get(tiff.number(directory, tiff.RESOLUTION_UNIT, 2))
    if inches is None or not all(len(side) == 2 and all(side) for side in sides):
        return None
    x, y = (Fraction(*side) * inches for side in sides)
    return x, y


def without_thumbnails(resources: bytes) -> bytes:
    """Resources of Photoshop, in blocks that begin with 8BIM, without those that show the picture.

    Source: Adobe Photoshop file formats specification, image resource blocks.
    """
    kept, at = b"", 0
    while resources[at : at + 4] == b"8BIM" and at + 12 <= len(resources):
        name_end = at + 7 + resources[at + 6]
        name_end += (name_end - at) % 2
        length = int.from_bytes(resources[name_end : name_end + 4])
        end = name_end + 4 + length + length % 2
        if int.from_bytes(resources[at + 4 : at + 6]) not in THUMBNAIL_RESOURCES:
            kept += resources[at:end]
        at = end
    return kept


# Limits


def check_pixels(size: Size, max_pixels: int) -> None:
    """Checks the number of pixels of an image, before anything is allocated for it."""
    width, height = size
    if width * height > max_pixels:
        raise UserError(
            f"{width}x{height} are {width * height / 1e6:.6g} million pixels, more than the limit of "
            f"{max_pixels / 1e6:.6g} million; --max-pixels sets another limit"
        )


def check_sides(size: Size, file_format: str) -> None:
    """Checks that a format can store an image so wide and so high."""
    limit = MAX_SIDES[file_format]
    if max(size) > limit:
        width, height = size
        raise UserError(f"{width}x{height} pixels are too many for {file_format}, which stores {limit} a side")
