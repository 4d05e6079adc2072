"""What a file is, by its name and its first bytes, and the files that are refused for it."""

# pyright: strict

import os
import stat
from pathlib import Path
from typing import BinaryIO

from ..errors import UserError

HEAD_BYTES = 32
# Camera raw files, by the first bytes; where they begin, the bytes, the kind.
RAW_SIGNATURES = (
    (0, b"FUJIFILMCCD-RAW", "RAF"),
    (0, b"IIRO", "ORF"),
    (0, b"IIRS", "ORF"),
    (0, b"MMOR", "ORF"),
    (0, b"IIU\0", "RW2"),
    (0, b"FOVb", "X3F"),
    (0, b"\0MRM", "MRW"),
    (4, b"ftypcrx ", "CR3"),
    (6, b"HEAPCCDR", "CRW"),
    (8, b"CR\2", "CR2"),
    (8, b"IIII", "IIQ"),
)
RAW_NAMES = "3fr arw cr2 cr3 crw dcr dng erf fff iiq kdc mef mos mrw nef nrw orf pef raf raw rw2 rwl sr2 srf srw x3f"
RAW_SUFFIXES = frozenset(f".{name}" for name in RAW_NAMES.split())
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# Images that `jaxtex warp` does not take from a folder, but that a user may miss.
OTHER_NAMES = f"{RAW_NAMES} avif bmp exr gif hdr heic heif jfif jp2 jpe jxl pnm ppm psd tga"
OTHER_IMAGE_SUFFIXES = frozenset(f".{name}" for name in OTHER_NAMES.split())


def open_regular(path: Path) -> BinaryIO:
    """Opens a file, and waits for no pipe and no device.

    Raises:
        UserError: if it is no regular file.
        OSError: if it cannot be opened.
    """
    check_regular(path.stat())
    return path.open("rb")


def check_regular(status: os.stat_result) -> None:
    """Checks that a file is one that ends.

    Raises:
        UserError: if it is a pipe, a socket or a device.
        OSError: if it is a folder.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError("Is a directory")
    if not stat.S_ISREG(status.st_mode):
        kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "a device")
        raise UserError(f"it is {kind}, not a regular file")


def check_kind(name: str, head: bytes) -> None:
    """Checks that a file is of no kind that a codec would take for something else.

    Args:
        name: of the file, for its suffix.
        head: the first bytes.

    Raises:
        UserError: if it is a camera raw file or a HEIF file.
    """
    suffix = Path(name).suffix.lower()
    kind = next((kind for at, bytes_, kind in RAW_SIGNATURES if head.startswith(bytes_, at)), None)
    if kind or suffix in RAW_SUFFIXES:
        raise raw_error(kind or suffix[1:].upper())
    if head[4:8] == b"ftyp" and head[8:12] in HEIF_BRANDS:
        raise UserError("it is a HEIF file (HEIC), which is not supported; convert it to JPEG, PNG or TIFF first")


def raw_error(kind: str) -> UserError:
    """The error of a camera raw file."""
    return UserError(
        f"it is a camera raw file ({kind}), which has no finished picture but a preview; "
        "develop it to JPEG or TIFF first, for example with darktable or RawTherapee"
    )


def choose_frame(count: int, frame: int | None) -> int:
    """The index, from 0, of the page or frame that is used.

    Args:
        count: how many the file has.
        frame: from 1, as the user chose; `None` for no choice.

    Raises:
        UserError: if there is no such one, or no choice where one is needed.
    """
    if frame is None and count > 1:
        raise UserError(f"it has {count} pages or frames, and one is warped; choose it with --page 1 to --page {count}")
    if frame is not None and frame > count:
        raise UserError(f"it has no page {frame}, only {count}")
    return (frame or 1) - 1
