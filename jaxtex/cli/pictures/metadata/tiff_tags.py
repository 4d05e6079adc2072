"""The tags of TIFF: metadata is read from them, and added to a file that the codec wrote.

Source: TIFF 6.0, section 8, and the tags that Adobe, EXIF and GeoTIFF register.
"""

# pyright: strict

from . import exif as tiff
from .exif import Directory, Entry
from .file_bytes import Bytes
from .kept import BROKEN_EXIF, Metadata, resolution_entries, resolution_of
from .photoshop import IPTC_MARKER, paths_among, photoshop_resources

# What tells how a TIFF was made, not what it shows, by the beginning of its description.
MACHINE_DESCRIPTIONS = (b"ImageJ=", b"<?xml", b"<OME")
SHAPE_DESCRIPTION = b'{"shape"'  # of tifffile, which says nothing else
PHOTOSHOP_TAG = 34377
DROPPED_TAGS = {
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
NOT_EXIF = tiff.STRUCTURE | DROPPED_TAGS.keys() | {PHOTOSHOP_TAG}
RESOLUTION_TAGS = {tiff.X_RESOLUTION, tiff.Y_RESOLUTION, tiff.RESOLUTION_UNIT}
DESCRIPTION_WORDS = "machine-written description"


def read_tiff(data: Bytes, at: int) -> Metadata:
    """The metadata of the page of a TIFF whose directory is at `at`, without its profile."""
    layout = tiff.layout_of(data)
    directory = tiff.read_directory(data, layout, at)
    broken = [tag for tag in tiff.find_fields(data, layout, at)[0] if tag in tiff.CHILDREN and tag not in directory]
    dropped = [DROPPED_TAGS[tag] for tag in directory if tag in DROPPED_TAGS]
    dropped += [BROKEN_EXIF] if broken else []
    dropped += paths_among(photoshop_resources(value_of(directory, PHOTOSHOP_TAG) or b""))
    described = directory.get(tiff.DESCRIPTION)
    if isinstance(described, Entry) and described.value.startswith((SHAPE_DESCRIPTION, *MACHINE_DESCRIPTIONS)):
        del directory[tiff.DESCRIPTION]
        dropped += [] if described.value.startswith(SHAPE_DESCRIPTION) else [DESCRIPTION_WORDS]
    kept: Directory = {tag: entry for tag, entry in directory.items() if tag not in NOT_EXIF}
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
