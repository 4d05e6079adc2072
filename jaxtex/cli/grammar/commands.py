"""The commands, each with a parser of its own, and a table of them all."""

# pyright: strict

import argparse
from collections.abc import Callable
from typing import NamedTuple, get_args

from ... import __version__
from .descriptions import DESCRIPTIONS, OVERVIEW
from .file_options import add_file_options, add_input_options
from .option_groups import (
    Options,
    Parser,
    Shell,
    add_affine_options,
    add_border_options,
    add_device,
    add_lens_options,
    add_page_options,
    add_paths,
    add_read_options,
    add_run_options,
    add_size,
    add_transform_options,
    add_write_options,
)
from .values import number, path, positive_number, protect_negative_number, size


class Command(NamedTuple):
    """A command.

    Attributes:
        about: what it does, in a few words.
        add_options: adds what it takes to a parser.
        usage: what follows its name.
    """

    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    usage: str = "IN [IN ...] OUT [OPTION ...]"


def add_warp_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex warp` takes."""
    add_paths(parser)
    parts = parser.add_argument_group("affine transform, in parts")
    add_affine_options(parts)
    add_transform_options(parser)
    group = parser.add_argument_group("reading")
    add_size(group)
    add_read_options(group, "linear")
    add_border_options(group)
    add_output_options(parser)


def add_resize_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex resize` takes."""
    add_paths(parser)
    group = parser.add_argument_group("size, one of")
    group.add_argument("--size", metavar="WxH", type=size, help="width and height in pixels, e.g. 640x480")
    group.add_argument("--scale", metavar="S", type=positive_number, help="factor of width and height, e.g. 0.5")
    group.add_argument(
        "--fit",
        metavar="WxH",
        type=size,
        help="the largest size of the same proportions within this width and height, e.g. 1600x1600",
    )
    add_read_options(parser.add_argument_group("reading"), "cubic", is_resize=True)
    add_output_options(parser, alpha=False)


def add_rotate_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex rotate` takes."""
    add_paths(parser)
    group = parser.add_argument_group("rotation")
    group.add_argument(
        "--angle",
        "--rotate",
        dest="rotate",
        metavar="DEG",
        required=True,
        type=number,
        help="angle in degrees, counter-clockwise as seen, e.g. -1.5 for a horizon that is higher on its right",
    )
    group.add_argument("--expand", action="store_true", help="make the output large enough for the whole image")
    group.add_argument(
        "--crop", action="store_true", help="reduce the output to the largest part that the image covers"
    )
    add_size(group)
    reading = parser.add_argument_group("reading")
    add_read_options(reading, "cubic")
    add_border_options(reading)
    add_output_options(parser)


def add_undistort_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex undistort` takes."""
    add_paths(parser)
    add_lens_options(parser.add_argument_group("lens, as coefficients or as a file"))
    group = parser.add_argument_group("reading")
    add_size(group)
    add_read_options(group, "cubic")
    add_border_options(group)
    add_output_options(parser)


def add_output_options(parser: argparse.ArgumentParser, *, alpha: bool = True) -> None:
    """Adds how the output is written, how files are treated, and how the work is done."""
    add_write_options(parser.add_argument_group("writing"), alpha=alpha)
    add_file_options(parser.add_argument_group("files"))
    add_run_options(parser.add_argument_group("running"))


def add_explore_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex explore` takes."""
    parser.add_argument("source", metavar="IMAGE", type=path, help="an image file")
    add_page_options(parser.add_argument_group("page"))
    add_input_options(parser.add_argument_group("file"))
    add_device(parser.add_argument_group("running"))


def add_completion_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex completion` takes."""
    parser.add_argument("shell", metavar="SHELL", choices=get_args(Shell), help="bash, zsh or fish")


def add_no_options(_: argparse.ArgumentParser) -> None:
    """Adds nothing."""


COMMANDS = {
    "resize": Command("make images smaller or larger", add_resize_options),
    "rotate": Command("rotate images by an angle", add_rotate_options),
    "undistort": Command("remove the distortion of a lens from images", add_undistort_options),
    "warp": Command("warp images by any transform", add_warp_options),
    "explore": Command("try warps of an image on a page in the browser", add_explore_options, "IMAGE [OPTION ...]"),
    "info": Command("print versions, devices and known problems", add_no_options, ""),
    "completion": Command("print a completion script for a shell", add_completion_options, "SHELL"),
}


def parse(argv: list[str]) -> Options:
    """The options of a command line whose first word is a command, in any order.

    Raises:
        UserError: if they are none.
    """
    name = argv[0]
    parsed = command_parser(name).parse_intermixed_args(protected(argv[1:]))
    return Options(command=name, **vars(parsed))


def protected(words: list[str]) -> list[str]:
    """Words of which argparse takes no negative number, and nothing behind `--`, for an option."""
    end = words.index("--") if "--" in words else len(words)
    # argparse does not know `--` where options and files are mixed.
    files = [f"./{word}" if word.startswith("-") and word != "-" else word for word in words[end + 1 :]]
    return [*map(protect_negative_number, words[:end]), *files]


def main_parser() -> Parser:
    """The parser of a command line without a command."""
    layout = argparse.RawDescriptionHelpFormatter
    listed = "\n".join(f"    {name:<12}{command.about}" for name, command in COMMANDS.items())
    description = OVERVIEW.format(commands=listed)
    parser = Parser(
        prog="jaxtex", usage="jaxtex COMMAND ...", description=description, formatter_class=layout, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"jaxtex {__version__}")
    return parser


def command_parser(name: str) -> Parser:
    """The parser of what follows the name of a command."""
    command, text = COMMANDS[name], DESCRIPTIONS.get(name, "")
    parser = Parser(
        prog=f"jaxtex {name}",
        usage=f"jaxtex {name} {command.usage}".rstrip(),
        description=f"{command.about.capitalize()}.\n{text}".rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_options(parser)
    return parser
