"""Warp image files from the command line, on whatever device JAX finds.

    jaxtex warp photo.jpg turned.png --rotate 20 --filter cubic
    jaxtex warp photos/ turned/ --scale 0.5 --size 320x240
    jaxtex info

Pixels have their centres at +0.5; the origin is the top left corner, x points right, y down.
The transform maps input points to output points. The options act in this order, whatever
theirs is: scale, shear (x += X * y) and rotate (counter-clockwise as seen), about the image's
centre, then translate (pixels, right and down). The centre of the input goes to the centre of
the output, also with --size. --matrix stands alone instead: x' = A x + B y + C and
y' = D x + E y + F, in pixels about the top left corner.

Filtering happens on the stored, gamma-encoded values, as image tools do. Colours are weighted
by alpha, so a clear pixel does not bleed into its neighbours. Nothing is smoothed beforehand:
an image made much smaller shows aliasing.

PNG, JPEG, TIFF and WebP are read and written. 8 and 16 bits stay what they are where the
output's format can hold it (PNG, TIFF: both; JPEG, WebP: 8). PNG, TIFF and WebP are written
losslessly, JPEG in quality 95. EXIF orientation is applied; a colour profile is kept if it fits
the output's channels. A file at OUT is replaced, IN itself too, by a rename: at every moment
it is whole.
"""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .. import __version__
from .errors import UserError

# Written out, since arguments are parsed without the core; a test compares them with its enumerations.
FILTERS = ("point", "linear", "cubic")
ADDRESSES = ("clamp", "border", "wrap", "mirror", "reflect")
FILTER_HELP = "how texels are blended; cubic is Catmull-Rom (linear)"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv`, by default the program's own; returns the exit code.

    0 is success, 2 a mistake that was explained in one sentence on standard error, 130 an interrupt.
    """
    argv = sys.argv[1:] if argv is None else argv
    try:
        options = build_parser().parse_args([shielded(argument) for argument in argv])
        return options.run(options)
    except UserError as error:
        print(f"jaxtex: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("jaxtex: error: interrupted", file=sys.stderr)
        return 130


def run_warp(options: argparse.Namespace) -> int:
    """`jaxtex warp`."""
    transforms = {name: getattr(options, name) for name in ("rotate", "scale", "shear", "translate")}
    given = {name: value for name, value in transforms.items() if value is not None}
    if options.matrix and given:
        raise UserError(f"--matrix is the whole transform and cannot be combined with --{next(iter(given))}")
    if options.border is not None and options.address_mode != "border":
        raise UserError(f"--border-color has no effect with --address {options.address_mode}")
    from .jobs import Job, warp_path

    settings = ("matrix", "size", "filter_mode", "address_mode", "border", "compare")
    job = Job(**given, **{name: getattr(options, name) for name in settings})
    return warp_path(options.source, options.target, job)


def run_info(options: argparse.Namespace) -> int:
    """`jaxtex info`."""
    from .info import info

    return info()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, reported where all others are."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def build_parser() -> Parser:
    """The command line's grammar."""
    parser = Parser(
        prog="jaxtex",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"jaxtex {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    warp = commands.add_parser(
        "warp",
        help="warp an image, or a folder of images",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    warp.set_defaults(run=run_warp)
    warp.add_argument("source", metavar="IN", type=Path, help="an image, or a folder of images")
    warp.add_argument("target", metavar="OUT", type=Path, help="a file, or a folder")
    warp.add_argument("--scale", metavar="S", type=positive, help="the factor of size, above 0")
    warp.add_argument("--shear", metavar="X", type=finite, help="how far x moves per pixel down")
    warp.add_argument("--rotate", metavar="DEG", type=finite, help="degrees, counter-clockwise as seen")
    warp.add_argument("--translate", metavar=("X", "Y"), nargs=2, type=finite, help="pixels, right and down")
    warp.add_argument("--matrix", metavar=tuple("ABCDEF"), nargs=6, type=finite, help="instead of the above")
    warp.add_argument("--size", metavar="WxH", type=size, help="the output's size (the input's)")
    warp.add_argument("--filter", dest="filter_mode", choices=FILTERS, default="linear", help=FILTER_HELP)
    outside = {"choices": ADDRESSES, "default": "border", "help": "what lies outside the input (border)"}
    warp.add_argument("--address", dest="address_mode", **outside)
    warp.add_argument(
        "--border-color",
        dest="border",
        metavar="VALUES",
        type=color,
        help="G, G,A, R,G,B or R,G,B,A, each 0 to 255 also for 16-bit images; or #rrggbb, #rrggbbaa "
        "(black, or clear if the image has alpha)",
    )
    warp.add_argument("--compare", action="store_true", help="write the input and the result side by side")
    info = commands.add_parser("info", help="print versions, devices and known problems", allow_abbrev=False)
    info.set_defaults(run=run_info)
    return parser


def shielded(argument: str) -> str:
    """A negative number such as -1e-3 with a space before it, lest argparse take it for an option."""
    try:
        return f" {argument}" if argument.startswith("-") and math.isfinite(float(argument)) else argument
    except ValueError:
        return argument


def finite(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    value = finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text.strip()} is not above 0")
    return value


def size(text: str) -> tuple[int, int]:
    """Width and height from WxH."""
    match = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text)
    if not match or "0" in (width_height := tuple(s.lstrip("0") or "0" for s in match.groups())):
        raise argparse.ArgumentTypeError(f"{text!r} is not WxH, two whole numbers above 0 such as 640x480")
    return int(width_height[0]), int(width_height[1])


def color(text: str) -> tuple[float, ...]:
    """One to four values from 0 to 255, from numbers between commas or from hexadecimal digits."""
    if re.fullmatch(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return tuple(float(byte) for byte in bytes.fromhex(text[1:]))
    values = tuple(finite(value) for value in text.split(","))
    if len(values) > 4 or not all(0 <= value <= 255 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to 4 values from 0 to 255, or #rrggbb")
    return values
