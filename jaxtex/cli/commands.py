"""The commands: the options that each takes, what is parsed of a command line, and completions for shells."""

import argparse
import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, get_args

from .. import __version__
from . import values
from .help import DESCRIPTIONS, OVERVIEW
from .options import (
    AFFINE_PARTS,
    FILES,
    FILTERS,
    OPTIONS,
    OTHER_NAMES,
    PATHS,
    RUNNING,
    WHOLE_TRANSFORMS,
    WITH_BORDER,
    WRITES,
    Options,
    Shell,
)
from .process import UserError
from .values import FISHEYE_COEFFICIENTS, matrix_length, matrix_words, protect_negative_number

SIZE_WORDS = ("--width", "--height")  # of other programs
LENS = ("--lens", "--distort", "--camera", "--model", "--calibration")
READING = ("--filter", "--antialias", "--linear-light")
BORDER = ("--address", "--border-color")
OUTPUT = {"writing": tuple(WRITES), "files": tuple(FILES), "running": tuple(RUNNING)}
WITHOUT_ALPHA = OUTPUT | {"writing": tuple(name for name in WRITES if name != "--alpha")}


class Command(NamedTuple):
    """A command.

    Attributes:
        about: what it does, in a few words.
        groups: its options, by the headings of its help.
        changes: what it changes in the table of options.
        arguments: what it takes beside options.
        usage: what follows its name.
    """

    about: str
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    changes: Mapping[str, dict[str, Any]] = MappingProxyType({})
    arguments: Mapping[str, dict[str, Any]] = MappingProxyType(PATHS)
    usage: str = "IN [IN ...] OUT [OPTION ...]"


COMMANDS = {
    "resize": Command(
        "make images smaller or larger",
        {"size, one of": ("--size", "--scale", "--fit", "--enlarge"), "reading": READING} | WITHOUT_ALPHA,
        {
            "--size": {"help": "width and height in pixels, e.g. 640x480"},
            "--scale": {"help": "factor of width and height, e.g. 0.5"},
            "--filter": {
                "choices": (*FILTERS, "area"),
                "help": f"{OPTIONS['--filter']['help']}; area is the mean of the area that a pixel covers",
            },
            "--antialias": {
                "help": "average over the area that each output pixel covers (default: yes, unless the filter is point)"
            },
        },
    ),
    "rotate": Command(
        "rotate images by an angle",
        {"rotation": ("--angle", "--expand", "--crop", "--size"), "reading": (*READING, *BORDER), **OUTPUT},
        {
            "--angle": OPTIONS["--rotate"]
            | {
                "dest": "rotate",
                "required": True,
                "help": "angle in degrees, counter-clockwise as seen, e.g. -1.5 for a horizon that is higher on its "
                "right",
            }
        },
    ),
    "undistort": Command(
        "remove the distortion of a lens from images",
        {"lens, as coefficients or as a file": LENS, "reading": ("--size", *READING, *BORDER), **OUTPUT},
    ),
    "warp": Command(
        "warp images by any transform",
        {
            "affine transform, in parts": (*(f"--{name}" for name in AFFINE_PARTS), "--expand"),
            "whole transform": ("--matrix", "--perspective", *LENS, "--flow"),
            "reading": ("--size", *READING, *BORDER),
            **OUTPUT,
        },
        {"--filter": {"default": "linear"}},
    ),
    "info": Command("print versions, devices and known problems", arguments={}, usage=""),
    "completion": Command(
        "print a completion script for a shell",
        arguments={"shell": {"metavar": "SHELL", "choices": get_args(Shell), "help": "bash, zsh or fish"}},
        usage="SHELL",
    ),
}


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, and those of printing, so that `main` reports them like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)

    def _print_message(self, message: str, file: Any = None) -> None:  # which ignores a full disk
        print(message, end="", file=file)


def main_parser() -> Parser:
    """The parser of a command line without a command."""
    listed = "\n".join(f"    {name:<12}{command.about}" for name, command in COMMANDS.items())
    parser = Parser(
        prog="jaxtex",
        usage="jaxtex COMMAND ...",
        description=OVERVIEW.format(commands=listed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"jaxtex {__version__}")
    return parser


def command_parser(name: str) -> Parser:
    """The parser of what follows the name of a command."""
    command = COMMANDS[name]
    parser = Parser(
        prog=f"jaxtex {name}",
        usage=f"jaxtex {name} {command.usage}".rstrip(),
        description=f"{command.about.capitalize()}.\n{DESCRIPTIONS.get(name, '')}".rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_arguments(parser, name)
    return parser


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds what a command takes to a parser."""
    command = COMMANDS[name]
    for argument, options in command.arguments.items():
        parser.add_argument(argument, **options)
    for heading, flags in command.groups.items():
        group = parser.add_argument_group(heading)
        for flag in flags:
            group.add_argument(
                flag, *OTHER_NAMES.get(flag, ()), **(OPTIONS.get(flag, {}) | command.changes.get(flag, {}))
            )


def parse(argv: list[str]) -> Options:
    """The options of a command line whose first word is a command, in any order."""
    name, words = argv[0], argv[1:]
    parser = command_parser(name)
    words = matrix_words(words)
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if action.dest == "matrix":
            action.nargs = matrix_length(words)
    words = protected(words)
    known = parser._option_string_actions  # pyright: ignore[reportPrivateUsage]
    if unknown := [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]:
        # Before argparse names what is missing.
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant(unknown[0].partition('=')[0], [*known])}")
    return Options(command=name, **vars(parser.parse_intermixed_args(words)))


def meant(word: str, known: list[str]) -> str:
    """What an option that is not there may be meant for, as the end of a sentence."""
    if word in SIZE_WORDS and "--size" in known:
        return "; --size WxH sets both sides" + (", --fit WxH keeps the proportions" if "--fit" in known else "")
    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def protected(words: list[str]) -> list[str]:
    """Words of which argparse takes no negative number, and nothing behind `--`, for an option."""
    end = words.index("--") if "--" in words else len(words)
    # argparse does not know `--` where options and files are mixed.
    files = [f"./{word}" if word.startswith("-") and word != "-" else word for word in words[end + 1 :]]
    return [*map(protect_negative_number, words[:end]), *files]


def completion(shell: Shell) -> str:
    """The script that completes commands, options and their values in a shell."""
    import shtab

    parser = argparse.ArgumentParser(prog="jaxtex")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, help=command.about, description=command.about)
        add_arguments(added, name)
        for action in added._actions:  # pyright: ignore[reportPrivateUsage]
            if action.type is values.path:
                action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
    return shtab.complete(parser, shell)


def check_combination(options: Options) -> None:
    """Checks that no option excludes another one or has no effect."""
    if options.command == "resize":
        given = [f"--{name}" for name in ("size", "scale", "fit") if getattr(options, name) is not None]
        if len(given) != 1:
            raise UserError(f"resize takes one of --size, --scale and --fit, but got {' and '.join(given) or 'none'}")
    transforms = [name for name in (*WHOLE_TRANSFORMS, *AFFINE_PARTS) if getattr(options, name) is not None]
    if len(transforms) > 1 and transforms[0] in WHOLE_TRANSFORMS:
        raise UserError(f"--{transforms[0]} is a whole transform and cannot be combined with --{transforms[1]}")
    if options.command == "undistort" and not transforms:
        raise UserError("undistort takes one of --lens, --distort and --calibration, but got none")
    coefficients = options.lens or options.distort
    is_fisheye, whole = options.model == "fisheye", transforms[:1] if {*transforms[:1]} & {*WHOLE_TRANSFORMS} else []
    sizes = [f"--{name}" for name in ("size", "expand", "crop") if getattr(options, name)]
    address, filter_mode = options.address_mode, options.filter_mode
    wrong = [
        (options.camera and coefficients is None, "--camera has no effect without --lens or --distort"),
        (
            is_fisheye and coefficients is None and options.calibration is None,
            "--model has no effect without --lens, --distort or --calibration",
        ),
        (
            is_fisheye and len(coefficients or ()) > len(FISHEYE_COEFFICIENTS),
            f"a fisheye lens has at most four coefficients, {','.join(FISHEYE_COEFFICIENTS)}",
        ),
        (
            options.expand and whole,
            f"--expand has no effect with --{''.join(whole)}; --size gives the size of the output",
        ),
        (len(sizes) > 1, f"{' and '.join(sizes[:2])} both give the size of the output; leave one out"),
        (options.enlarge and options.fit is None, "--enlarge has no effect without --fit"),
        (
            options.border is not None and address not in WITH_BORDER,
            f"--border-color has no effect with --address {address}",
        ),
        (options.alpha and address not in WITH_BORDER, f"--alpha has no effect with --address {address}"),
        (
            options.antialias is False and filter_mode == "area",
            "--filter area averages pixels and cannot be combined with --no-antialias",
        ),
        (
            options.antialias and filter_mode == "point",
            "--antialias averages pixels and cannot be combined with --filter point",
        ),
        (options.quiet and options.verbose, "--quiet and --verbose exclude each other"),
        (options.memory is not None and not options.tile, "--memory has no effect without --tile"),
        *(
            (
                options.tile and getattr(options, name),
                f"--{name} needs whole images in memory and cannot be combined with --tile",
            )
            for name in ("compare", "preview", "flow")
        ),
        (options.preview and options.compare, "--preview shows both images already; leave --compare out"),
    ]
    for is_wrong, sentence in wrong:
        if is_wrong:
            raise UserError(sentence)
