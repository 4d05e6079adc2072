"""The commands: their help, the options that each takes, what is parsed of a line, and completions for shells."""

import argparse
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, get_args

from .. import __version__
from .options import (
    AFFINE_PARTS,
    FILTERS,
    FISHEYE_COEFFICIENTS,
    OPTIONS,
    OTHER_NAMES,
    PATHS,
    WHOLE_TRANSFORMS,
    WITH_BORDER,
    Options,
    Shell,
    known_word,
    matrix_length,
    matrix_words,
    path,
    protect_negative_number,
)
from .process import UserError, did_you_mean

# What the help of each command says before its options


OVERVIEW = """\
Resize, rotate and warp images, and folders of images, with JAX on a CPU or a GPU.

{commands}

    jaxtex resize photos/ small/ --fit 1600x1600
    jaxtex rotate photo.jpg straight.jpg --angle -1.5 --crop
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600

"jaxtex COMMAND --help" explains a command and its options.
The exit code is 0 after success, 2 after an error, 130 after an interrupt and 143 after SIGTERM.
"""

COLORS = """\
Colors are blended as they are stored, gamma-encoded, as image editors do; --linear-light blends light.
They are weighted by alpha, so transparent pixels do not bleed into their neighbors.
"""

FORMATS = """\
Formats: PNG, JPEG, TIFF, WebP and GIF are read and written. PNG and TIFF keep 16 bits per channel; the
others have 8, and GIF 256 colors. An output in the format of its input is compressed alike. From another
format, JPEG gets quality 95, and the others have no loss. --compression, --quality and --subsampling say
otherwise.
The packages that read and write images: pip install '.[cli]' in a checkout of jaxtex; '.[cli,heif]' adds
HEIF (HEIC).

Folders: if IN is a folder, or several files, OUT is a folder, and files keep their names, or get those of
--name. An image that fails is reported, and the others are written. Hidden files are skipped.

Metadata: EXIF with GPS, XMP, resolution and color profile are kept. Other metadata is kept if the format
stays the same; a note names what is lost. The EXIF orientation is applied to the pixels. --strip drops
all metadata except what the colors need.

Pages: a TIFF of several pages becomes a TIFF of as many pages. --page chooses one, which other formats
need, or a frame of an animation. All frames of an animated GIF, WebP or PNG are written to one of these
formats, with their times. Camera raw files are refused.

Limits: images of more than 500 million pixels are refused; --max-pixels sets another limit. --tile warps
a TIFF of any size in at most 2 GB of memory, or --memory.

Safety: files that exist in a folder OUT, and inputs, are replaced only with --overwrite, and read-only
ones with --force; a file that is named as OUT is replaced. A file is replaced in one step, when the new one
is complete. --skip-existing (or --no-clobber, or --resume) replaces none: it makes what is missing, for
example after Ctrl-C, says how many files it skipped, and its exit code is 0.

docs/command-line.md has the details.
"""

RESIZE = f"""
    jaxtex resize photo.jpg small.jpg --scale 0.5
    jaxtex resize photos/ web/ --fit 1600x1600 --format jpg --quality 85
    jaxtex resize icon.png large.png --size 512x512 --filter point

Sizes are in pixels, width before height. --size 640x480 sets both sides, and may change the proportions.
All else keeps them: --size 800 sets the longer side, so that portraits and landscapes become alike, and
--size 50% is --scale 0.5. With --fit, smaller images keep their size, unless --enlarge is given too. An
image that becomes smaller is averaged, so that fine patterns become gray and not false patterns.

{COLORS}
{FORMATS}"""

ROTATE = f"""
    jaxtex rotate photo.jpg straight.jpg --angle -1.5 --crop
    jaxtex rotate stamp.png turned.png --angle 20 --expand --alpha
    jaxtex rotate scans/ upright/ --angle 90 --expand --recursive

Angles are in degrees, counter-clockwise as seen. The image turns about its center. By default the output
has the size of the input: corners of the image are cut off, and the corners of the output show the border
color. --expand makes the output so large that it shows the whole image; then multiples of 90 degrees
change no pixel value. --crop makes it the largest part that the image covers.

{COLORS}
{FORMATS}"""

UNDISTORT = f"""
    jaxtex undistort wide.jpg straight.jpg --lens -0.28,0.07
    jaxtex undistort shots/ straight/ --calibration camera.yml
    jaxtex undistort gopro.jpg flat.jpg --lens 0.02,-0.01,0,0 --model fisheye --camera 900,900,960,540

--lens and --distort take coefficients in OpenCV's order: k1,k2,p1,p2,k3 of the Brown-Conrady model, or
with --model fisheye k1,k2,k3,k4 of the model of Kannala and Brandt. Missing coefficients are 0. A
negative k1 is barrel distortion: lines bend outward. --camera sets the focal lengths and the principal
point in pixels, with pixel centers at +0.5. OpenCV has centers at whole numbers, so add 0.5 to its cx
and cy.

--calibration reads a file that OpenCV's programs, cv2.FileStorage or ROS have written, with camera_matrix
and distortion_coefficients (or K and D). It adds the half pixel. If the file names the size of its
images, the camera is scaled to images of other sizes with the same proportions. A file with
fisheye_model, with a model such as equidistant, or with --model fisheye, describes a fisheye lens.
A rectification (R) and the camera of the result (P), as stereo files have them, are applied. The
calibration is for the picture as the camera stores it, and turns with the EXIF orientation. Where an
editor has turned the pixels and reset the orientation, --turned says which way.

{COLORS}
{FORMATS}"""

WARP = f"""
    jaxtex warp photo.jpg rotated.png --rotate 20 --filter cubic
    jaxtex warp photos/ thumbnails/ --scale 0.25 --expand --antialias
    jaxtex warp page.jpg flat.png --perspective 212,95:0,0 988,140:800,0 1090,830:800,600 97,760:0,600
    jaxtex warp wide.jpg straight.jpg --lens -0.28,0.07 --camera 910,910,960,540
    jaxtex warp scan.tif turned.tif --rotate 20 --tile

Coordinates are in pixels. The origin is the top left corner of the image, x points right, y points
down, and pixel centers are at +0.5. A transform maps points of the input to points of the output.

--scale, --shear and --rotate act about the center of the image, then --translate moves the result, always
in this order. The center of the input maps to the center of the output, whatever its size.

Each of these options is a whole transform, and cannot be combined with another one:
--matrix: x' = A x + B y + C and y' = D x + E y + F, about the top left corner. Nine numbers are a
homography: x' and y' are divided by G x + H y + I.
--perspective: four points of the input, such as the corners of a page, and the points of the output to
which they map. Beyond the horizon the output shows the outside of the input.
--lens removes the distortion of a lens, --distort applies it, and --calibration removes the distortion
that a file of OpenCV describes; "jaxtex undistort --help" explains their values.
--flow: a NumPy file of shape (height, width, 2) and a floating dtype, with the size of the output.
The pixel of the output at (x, y) reads the input at (x + dx, y + dy). Where dx or dy is NaN, it reads
outside the input.

An image that becomes much smaller shows false patterns (aliasing); --antialias averages the input over the
area that each pixel of the output covers. Outside the input is the border color.

{COLORS}
{FORMATS}"""

COMPLETION = """
    source <(jaxtex completion bash)
    jaxtex completion zsh > "${fpath[1]}/_jaxtex"
    jaxtex completion fish > ~/.config/fish/completions/jaxtex.fish
"""

DESCRIPTIONS = {
    "resize": RESIZE,
    "rotate": ROTATE,
    "undistort": UNDISTORT,
    "warp": WARP,
    "completion": COMPLETION,
}


# Commands


SIZE_WORDS = ("--width", "--height")  # of other programs
LENS = ("--lens", "--distort", "--camera", "--model", "--calibration", "--turned")
READING = ("--filter", "--antialias", "--linear-light")
BORDER = ("--address", "--border-color")
WRITING = ("--alpha", "--format", "--name", "--compression", "--quality", "--subsampling", "--compare", "--preview")
FILES = ("--strip", "--force", "--overwrite", "--preserve-times", "--skip-existing", "--page", "--max-pixels")
RUNNING = ("--recursive", "--jobs", "--tile", "--memory", "--quiet", "--verbose", "--device")
OUTPUT = {"writing": WRITING, "files": FILES, "running": RUNNING}
WITHOUT_ALPHA = OUTPUT | {"writing": WRITING[1:]}


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
            "--size": {
                "help": "width and height in pixels, e.g. 640x480, which may change the proportions; the longer side "
                "alone, e.g. 800; or a percentage, e.g. 50%%"
            },
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
        parser.add_argument(argument, **with_known_words(options))
    for heading, flags in command.groups.items():
        group = parser.add_argument_group(heading)
        for flag in flags:
            options = OPTIONS.get(flag, {}) | command.changes.get(flag, {})
            group.add_argument(flag, *OTHER_NAMES.get(flag, ()), **with_known_words(options))


def with_known_words(options: dict[str, Any]) -> dict[str, Any]:
    """What argparse takes, with our sentence about a word that is none of the choices."""
    return options | ({"type": functools.partial(known_word, options["choices"])} if "choices" in options else {})


def parse(argv: list[str]) -> Options:
    """The options of a command line whose first word is a command, in any order."""
    name, words = argv[0], argv[1:]
    parser = command_parser(name)
    words = matrix_words(words)
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if action.dest == "matrix":
            action.nargs = matrix_length(words)
    words = protected(words)
    check_known(parser, words)  # before argparse names what is missing
    return Options(command=name, **vars(parser.parse_intermixed_args(words)))


def check_known(parser: Parser, words: list[str]) -> None:
    """Checks that a parser knows all options among some words."""
    known = parser._option_string_actions  # pyright: ignore[reportPrivateUsage]
    names = {word: word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    if unknown := [word for word, name in names.items() if name not in known]:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant(names[unknown[0]], [*known])}")


def meant(word: str, known: list[str]) -> str:
    """What an option that is not there may be meant for, as the end of a sentence."""
    if word in SIZE_WORDS and "--size" in known:
        return "; --size WxH sets both sides" + (", --fit WxH keeps the proportions" if "--fit" in known else "")
    return did_you_mean(word.lstrip("-"), [name[2:] for name in known if name.startswith("--")], "--")


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
            if action.type is path:
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
        (options.turned and options.calibration is None, "--turned has no effect without --calibration"),
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
        (
            options.quality is not None and options.compression == "lossless",
            "--quality makes a WebP lossy and cannot be combined with --compression lossless",
        ),
        (options.preview and options.name, "--name has no effect with --preview, which writes the file OUT"),
        (options.preview and options.compare, "--preview shows both images already; leave --compare out"),
    ]
    for is_wrong, sentence in wrong:
        if is_wrong:
            raise UserError(sentence)
