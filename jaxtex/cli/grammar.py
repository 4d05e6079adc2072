"""The options of the command line, and the values that they take."""

# pyright: strict

import argparse
import math
import re
from pathlib import Path
from typing import Literal, NoReturn, get_args

from .. import __version__
from .errors import UserError
from .file_options import add_file_options

Point = tuple[float, float]
# Written out, since arguments are parsed before JAX is imported; a test compares them with the enumerations.
FilterName = Literal["point", "linear", "cubic", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian"]
AddressName = Literal["clamp", "border", "wrap", "mirror", "reflect", "sphere"]
FILTERS: tuple[str, ...] = get_args(FilterName)
ADDRESSES: tuple[str, ...] = get_args(AddressName)
# The options that are a whole transform, and those that are combined to an affine one.
WHOLE_TRANSFORMS = ("matrix", "perspective", "lens", "distort", "flow")
AFFINE_PARTS = ("scale", "shear", "rotate", "translate")
COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3")


class Options(argparse.Namespace):
    """The parsed options, in the units of the command line. `None` stands for an option that was not given."""

    command: str
    source: Path
    target: Path
    scale: float | None
    shear: float | None
    rotate: float | None
    translate: list[float] | None
    matrix: list[float] | None
    perspective: list[tuple[Point, Point]] | None
    lens: tuple[float, ...] | None
    distort: tuple[float, ...] | None
    camera: tuple[float, float, float, float] | None
    flow: Path | None
    size: tuple[int, int] | None
    filter_mode: FilterName
    antialias: bool
    address_mode: AddressName
    border: tuple[float, ...] | None
    compare: bool
    device: tuple[str | None, int]
    strip: bool
    force: bool
    preserve_times: bool
    skip_existing: bool
    page: int | None
    max_pixels: int


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that `main` reports them like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def build_parser(description: str | None) -> Parser:
    """The parser of `jaxtex` and its commands.

    Args:
        description: the text that the help shows between the usage and the options.
    """
    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="jaxtex", description=description, formatter_class=layout, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"jaxtex {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    add_warp_options(
        commands.add_parser(
            "warp",
            help="warp an image, or a folder of images",
            description=description,
            formatter_class=layout,
            allow_abbrev=False,
        )
    )
    about = "print versions, devices and known problems"
    commands.add_parser("info", help=about, description=f"{about.capitalize()}.", allow_abbrev=False)
    return parser


def add_warp_options(warp: argparse.ArgumentParser) -> None:
    """Adds what `jaxtex warp` takes."""
    warp.add_argument("source", metavar="IN", type=Path, help="an image file, or a folder of image files")
    warp.add_argument("target", metavar="OUT", type=Path, help="the file to write, or a folder to write to")
    add_transform_options(warp)
    add_read_options(warp.add_argument_group("reading and writing"))
    add_file_options(warp.add_argument_group("files"))


def add_transform_options(warp: argparse.ArgumentParser) -> None:
    parts = warp.add_argument_group("affine transform, in parts")
    parts.add_argument(
        "--scale", metavar="S", type=positive_number, help="factor of width and height, above 0, e.g. 0.5 (default: 1)"
    )
    parts.add_argument(
        "--shear", metavar="X", type=number, help="pixels to the right per pixel down, e.g. 0.2 (default: 0)"
    )
    parts.add_argument(
        "--rotate", metavar="DEG", type=number, help="degrees, counter-clockwise as seen, e.g. 20 (default: 0)"
    )
    parts.add_argument(
        "--translate", metavar=("X", "Y"), nargs=2, type=number, help="pixels right and down, e.g. 10 -5 (default: 0 0)"
    )
    whole = warp.add_argument_group("whole transform")
    whole.add_argument(
        "--matrix",
        metavar=tuple("ABCDEF"),
        nargs=6,
        type=number,
        help="affine matrix by rows, from input to output pixels, e.g. 1 0 10 0 1 -5",
    )
    whole.add_argument(
        "--perspective",
        metavar="X,Y:X,Y",
        nargs=4,
        type=point_pair,
        help="four points of the input, such as the corners of a page, and where they map to in the output, in pixels",
    )
    coefficients = ",".join(COEFFICIENTS).upper()
    whole.add_argument(
        "--lens", metavar=coefficients, type=coefficient_list, help="remove a lens distortion, e.g. -0.28,0.07"
    )
    whole.add_argument(
        "--distort", metavar=coefficients, type=coefficient_list, help="apply a lens distortion, e.g. -0.28,0.07"
    )
    whole.add_argument(
        "--camera",
        metavar="FX,FY,CX,CY",
        type=camera,
        help="focal lengths and principal point in pixels, for --lens and --distort, e.g. 910,910,960,540 "
        "(default: both lengths are the longer side of the image, and the point is its center)",
    )
    whole.add_argument(
        "--flow", metavar="FILE.npy", type=Path, help="displacements in pixels from output to input, e.g. flow.npy"
    )


def add_read_options(group: "argparse._ArgumentGroup") -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--size",
        metavar="WxH",
        type=size,
        help="width and height of the output, e.g. 640x480 (default: those of the input)",
    )
    group.add_argument(
        "--filter",
        dest="filter_mode",
        choices=FILTERS,
        default="linear",
        help="how texels are blended: the nearest one, bilinear, Catmull-Rom (cubic), by filters that smooth "
        "(bspline, gaussian, mitchell) or that are sharper (lanczos2, lanczos3) (default: linear)",
    )
    group.add_argument("--antialias", action="store_true", help="average over the footprint of each output pixel")
    group.add_argument(
        "--address",
        dest="address_mode",
        choices=ADDRESSES,
        default="border",
        help="what is read outside the input: its edge, the border color, or the input repeated, mirrored, mirrored "
        "without doubling its edge, or as longitudes and latitudes of a sphere (default: border)",
    )
    group.add_argument(
        "--border-color",
        dest="border",
        metavar="VALUES",
        type=color,
        help="G, G,A, R,G,B or R,G,B,A, each 0 to 255 for 16-bit images too, e.g. 255,0,0; or #rrggbb, #rrggbbaa "
        "(default: black, or transparent if the image has alpha)",
    )
    group.add_argument("--compare", action="store_true", help="write the input and the result side by side")
    group.add_argument(
        "--device",
        metavar="NAME[:N]",
        type=device,
        default=(None, 0),
        help="cpu, gpu or tpu, and its number, from 0, e.g. gpu:1 (default: the first device of JAX)",
    )


def protect_negative_number(argument: str) -> str:
    """Puts a space before a value that begins with a negative number, since argparse would take it for an option."""
    return f" {argument}" if re.fullmatch(r"-[0-9.][0-9.eE+,:-]*", argument) else argument


def number(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a number")
    return value


def positive_number(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text.strip()} is not above 0")
    return value


def number_list(text: str) -> tuple[float, ...]:
    """Numbers, separated by commas."""
    return tuple(number(value) for value in text.split(","))


def point_pair(text: str) -> tuple[Point, Point]:
    """A point of the input and the point of the output to which it maps, as X,Y:X,Y."""
    match [number_list(point) for point in text.split(":")]:
        case [(x, y), (u, v)]:
            return (x, y), (u, v)
        case _:
            raise argparse.ArgumentTypeError(f"{text.strip()!r} is not X,Y:X,Y, a point and where it maps to")


def coefficient_list(text: str) -> tuple[float, ...]:
    """One to five coefficients of a lens."""
    values = number_list(text)
    if len(values) > len(COEFFICIENTS):
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not 1 to 5 numbers {','.join(COEFFICIENTS)}")
    return values


def camera(text: str) -> tuple[float, float, float, float]:
    """Two focal lengths above 0, and the principal point."""
    match number_list(text):
        case (fx, fy, cx, cy) if fx > 0 and fy > 0:
            return fx, fy, cx, cy
        case _:
            expected = "FX,FY,CX,CY, four numbers, the first two above 0"
            raise argparse.ArgumentTypeError(f"{text.strip()!r} is not {expected}")


def size(text: str) -> tuple[int, int]:
    """Width and height, as WxH."""
    match = re.fullmatch(r"0*([1-9][0-9]{0,8})x0*([1-9][0-9]{0,8})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not WxH, two whole numbers above 0 such as 640x480")
    return int(match[1]), int(match[2])


def color(text: str) -> tuple[float, ...]:
    """One to four values from 0 to 255, as numbers separated by commas or as hexadecimal digits."""
    if re.fullmatch(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return tuple(float(byte) for byte in bytes.fromhex(text[1:]))
    values = number_list(text)
    if len(values) > 4 or not all(0 <= value <= 255 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1 to 4 values from 0 to 255, or #rrggbb")
    return values


def device(text: str) -> tuple[str, int]:
    """The name of a platform and the number of a device, as NAME or NAME:N."""
    match = re.fullmatch(r"([a-z]+)(?::([0-9]{1,9}))?", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:N, such as gpu:1")
    return match[1], int(match[2] or 0)
