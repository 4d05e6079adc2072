"""The command line's grammar: options, and what their values may be."""

import argparse
import math
import re
from pathlib import Path
from typing import NoReturn

from .. import __version__
from .errors import UserError

# Written out, since arguments are parsed without the core; a test compares them with its enumerations.
FILTERS = ("point", "linear", "cubic")
ADDRESSES = ("clamp", "border", "wrap", "mirror", "reflect")
# Options that are the whole transform, and options that are a part of it.
WHOLE_TRANSFORMS = ("matrix", "perspective", "lens", "distort", "flow")
PARTS = ("scale", "shear", "rotate", "translate")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, reported where all others are."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def build_parser(description: str | None) -> Parser:
    """The parser of `jaxtex` and its commands; `description` is the text of its help."""
    about = {
        "description": description,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = Parser(prog="jaxtex", **about)
    parser.add_argument("--version", action="version", version=f"jaxtex {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    add_warp_options(commands.add_parser("warp", help="warp an image, or a folder of images", **about))
    commands.add_parser("info", help="print versions, devices and known problems", allow_abbrev=False)
    return parser


def add_warp_options(warp: argparse.ArgumentParser) -> None:
    """What `jaxtex warp` takes."""
    warp.add_argument("source", metavar="IN", type=Path, help="an image, or a folder of images")
    warp.add_argument("target", metavar="OUT", type=Path, help="a file, or a folder")
    parts = warp.add_argument_group("transform, in parts")
    parts.add_argument("--scale", metavar="S", type=positive, help="the factor of size, above 0")
    parts.add_argument("--shear", metavar="X", type=finite, help="how far x moves per pixel down")
    parts.add_argument("--rotate", metavar="DEG", type=finite, help="degrees, counter-clockwise as seen")
    parts.add_argument("--translate", metavar=("X", "Y"), nargs=2, type=finite, help="pixels, right and down")
    whole = warp.add_argument_group("transform, as a whole")
    whole.add_argument("--matrix", metavar=tuple("ABCDEF"), nargs=6, type=finite, help="affine, by rows")
    whole.add_argument(
        "--perspective",
        metavar="X,Y:X,Y",
        nargs=4,
        type=pair,
        help="four points and where they go, such as the corners of a page",
    )
    coefficients = {"metavar": "K1,K2,P1,P2,K3", "type": coefficient_list}
    whole.add_argument("--lens", help="take out the distortion of a lens", **coefficients)
    whole.add_argument("--distort", help="put it in", **coefficients)
    whole.add_argument(
        "--camera",
        metavar="FX,FY,CX,CY",
        type=camera,
        help="focal lengths and centre in pixels, for --lens and --distort (the larger side, and the middle)",
    )
    whole.add_argument("--flow", metavar="FILE.npy", type=Path, help="steps from output to input pixels")
    reading = warp.add_argument_group("reading and writing")
    reading.add_argument("--size", metavar="WxH", type=size, help="the output's size (the input's)")
    reading.add_argument(
        "--filter",
        dest="filter_mode",
        choices=FILTERS,
        default="linear",
        help="how texels are blended; cubic is Catmull-Rom (linear)",
    )
    reading.add_argument("--antialias", action="store_true", help="smooth what becomes smaller")
    reading.add_argument(
        "--address",
        dest="address_mode",
        choices=ADDRESSES,
        default="border",
        help="what lies outside the input (border)",
    )
    reading.add_argument(
        "--border-color",
        dest="border",
        metavar="VALUES",
        type=color,
        help="G, G,A, R,G,B or R,G,B,A, each 0 to 255 also for 16-bit images; or #rrggbb, #rrggbbaa "
        "(black, or clear if the image has alpha)",
    )
    reading.add_argument("--compare", action="store_true", help="write the input and the result side by side")
    reading.add_argument(
        "--device",
        metavar="NAME[:N]",
        type=device,
        default=(None, 0),
        help="cpu, gpu or tpu, and which of them, from 0 (what JAX prefers)",
    )


def shielded(argument: str) -> str:
    """A value that begins with a negative number with a space before it, lest argparse take it for an option."""
    return f" {argument}" if re.fullmatch(r"-[0-9.][0-9.eE+,:-]*", argument) else argument


def finite(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a number")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    value = finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text.strip()} is not above 0")
    return value


def several(text: str) -> tuple[float, ...]:
    """Numbers between commas."""
    return tuple(finite(value) for value in text.split(","))


def pair(text: str) -> tuple[tuple[float, ...], ...]:
    """A point and where it goes, from X,Y:X,Y."""
    points = tuple(several(point) for point in text.split(":"))
    if tuple(map(len, points)) != (2, 2):
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not X,Y:X,Y, a point and where it goes")
    return points


def coefficient_list(text: str) -> tuple[float, ...]:
    """One to five coefficients of a lens."""
    values = several(text)
    if len(values) > 5:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not 1 to 5 numbers k1,k2,p1,p2,k3")
    return values


def camera(text: str) -> tuple[float, ...]:
    """Two focal lengths above 0, and a centre."""
    values = several(text)
    if len(values) != 4 or min(values[:2]) <= 0:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not FX,FY,CX,CY, four numbers, the first two above 0")
    return values


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
    values = several(text)
    if len(values) > 4 or not all(0 <= value <= 255 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to 4 values from 0 to 255, or #rrggbb")
    return values


def device(text: str) -> tuple[str, int]:
    """A platform and a number from NAME or NAME:N."""
    match = re.fullmatch(r"([a-z]+)(?::([0-9]{1,9}))?", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:N, such as gpu:1")
    return match[1], int(match[2] or 0)
