"""Image resource blocks of Photoshop, which JPEG, PNG and TIFF carry, and IPTC among them.

Source: Adobe Photoshop file formats specification, image resource blocks.
"""

# pyright: strict

import struct
from collections.abc import Iterable

IPTC_RESOURCE, IPTC_MARKER = 0x0404, b"\x1c"
PATH_RESOURCES = range(2000, 2999)


def photoshop_resources(data: bytes) -> dict[int, bytes]:
    """The resources of Photoshop by number."""
    found: dict[int, bytes] = {}
    at = 0
    while data[at : at + 4] == b"8BIM" and at + 12 <= len(data):
        name_end = at + 7 + data[at + 6]
        name_end += (name_end - at) % 2
        size = int.from_bytes(data[name_end : name_end + 4])
        start = name_end + 4
        found.setdefault(int.from_bytes(data[at + 4 : at + 6]), data[start : start + size])
        at = start + size + size % 2
    return found


def paths_among(resources: Iterable[int]) -> list[str]:
    """A name for the paths among resources: lines over a picture, which would lie elsewhere after a change of it."""
    return ["Photoshop paths"] if any(number in PATH_RESOURCES for number in resources) else []


def iptc_resource(iptc: bytes) -> bytes:
    """IPTC as a resource of Photoshop."""
    return b"8BIM" + struct.pack(">HHI", IPTC_RESOURCE, 0, len(iptc)) + iptc + bytes(len(iptc) % 2)


def split(data: bytes, length: int) -> list[bytes]:
    """Data in parts of at most `length` bytes."""
    return [data[k : k + length] for k in range(0, len(data), length)]
