"""The options that say how files are read and written, whatever is done to their pixels."""

# pyright: strict

import argparse
import dataclasses

MAX_PIXELS = 500_000_000  # of an image, unless the user says otherwise
NO_LIMIT = 2**63


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """How files are read and written.

    Attributes:
        strip: drop all metadata but what tells the meaning of pixels.
        force: replace files that are read-only.
        preserve_times: give the output the times of the input.
        skip_existing: skip an input whose output exists.
        page: which one is read of a file with several, from 1; `None` for all pages of a TIFF, and where there is one.
        max_pixels: the most pixels of an input, and of an output.
    """

    strip: bool = False
    force: bool = False
    preserve_times: bool = False
    skip_existing: bool = False
    page: int | None = None
    max_pixels: int = MAX_PIXELS


DEFAULTS = FileOptions()


def add_file_options(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage]
    """Adds an option for every attribute of `FileOptions`, under its name."""
    group.add_argument(
        "--strip",
        action="store_true",
        help="drop EXIF, XMP, IPTC, comments, text and resolution; color profiles stay, or the colors would change",
    )
    group.add_argument("--force", action="store_true", help="replace files that are read-only")
    group.add_argument(
        "--preserve-times", action="store_true", help="copy the modification and access times of the input"
    )
    group.add_argument(
        "--skip-existing",
        "--resume",
        action="store_true",
        help="skip inputs whose output exists, for example to resume a run that was stopped; with --tile, write the "
        "missing tiles of a file",
    )
    add_input_options(group, pages="all pages of a TIFF", of="an input or an output", no_limit="; with --tile no limit")


def add_input_options(
    group: "argparse._ArgumentGroup",  # pyright: ignore[reportPrivateUsage]
    pages: str = "the only one",
    of: str = "the image",
    no_limit: str = "",
) -> None:
    """Adds which page of a file is read, and how large it may be.

    Args:
        pages: which are read by default, for the help.
        of: what the limit holds for, for the help.
        no_limit: when there is none, for the help.
    """
    group.add_argument(
        "--page",
        metavar="N",
        type=whole_number,
        help=f"number of a page of a TIFF, or of a frame of an animation, from 1, e.g. 2 (default: {pages})",
    )
    group.add_argument(
        "--max-pixels",
        metavar="N",
        type=whole_number,
        help=f"largest number of pixels of {of}, e.g. 2e9 (default: 500 million{no_limit})",
    )


def parsed_file_options(options: argparse.Namespace) -> FileOptions:
    """The parsed options of `add_file_options`."""
    found = {field.name: getattr(options, field.name) for field in dataclasses.fields(FileOptions)}
    if found["max_pixels"] is None:
        found["max_pixels"] = NO_LIMIT if options.tile else MAX_PIXELS
    return FileOptions(**found)


def whole_number(text: str) -> int:
    """A whole number above 0, which may be written as 2e9."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value < 2**63 or value % 1:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a whole number above 0")
    return int(value)
