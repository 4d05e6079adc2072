"""The options of the command line: their words, their values from text, and what the help says of each."""

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from .process import UserError, did_you_mean

# Values: text to numbers, points, sizes and colors


LEAST_MEMORY = 2**30
Point = tuple[float, float]
# Width and height; the longer side; or a share of the sides of the input. The last two keep its proportions.
OutputSize = tuple[int, int] | int | float
COLORS = {"black": 0.0, "gray": 128.0, "white": 255.0}
COEFFICIENTS = ("k1", "k2", "p1", "p2", "k3")
FISHEYE_COEFFICIENTS = ("k1", "k2", "k3", "k4")


def matrix_words(words: list[str]) -> list[str]:
    """The words of a command line, in which the elements of `--matrix` may stand in one word, between commas."""
    found: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name == "--matrix" and equals:
            found += [name, *value.split(",")]
        else:
            found += word.split(",") if found[-1:] == ["--matrix"] else [word]
    return found


def matrix_length(words: list[str]) -> int:
    """How many of the words behind `--matrix` are its elements: six, or nine if so many are numbers."""
    if "--matrix" not in words:
        return 6
    behind = words[words.index("--matrix") + 1 :][:9]
    count = next((k for k, word in enumerate(behind) if not is_number(word)), len(behind))
    if count < 6:
        raise UserError(f"--matrix takes six numbers of an affine matrix, or nine of a homography, but got {count}")
    return 9 if count == 9 else 6


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        number(text)
    except argparse.ArgumentTypeError:
        return False
    return True


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
        share = text.strip().removesuffix("%")
        remedy = f"; write {float(share) / 100:g}" if share != text.strip() and is_number(share) else ""
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a number{remedy}")
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


def camera_numbers(text: str) -> tuple[float, float, float, float]:
    """Two focal lengths above 0, and the principal point."""
    match number_list(text):
        case (fx, fy, cx, cy) if fx > 0 and fy > 0:
            return fx, fy, cx, cy
        case _:
            expected = "FX,FY,CX,CY, four numbers, the first two above 0"
            raise argparse.ArgumentTypeError(f"{text.strip()!r} is not {expected}")


def size_pair(text: str) -> tuple[int, int]:
    """Width and height, as WxH."""
    match = re.fullmatch(r"0*([1-9][0-9]{0,8})x0*([1-9][0-9]{0,8})", text)
    if not match:
        example = f"{text}x{text}" if text.isdecimal() else "640x480"
        raise argparse.ArgumentTypeError(f"{text!r} is not WxH, two whole numbers above 0 such as {example}")
    return int(match[1]), int(match[2])


def output_size(text: str) -> "OutputSize":
    """WxH, one number of pixels, or a number with a percent sign."""
    try:
        if re.fullmatch(r"[0-9]{0,6}[.]?[0-9]{0,6}%", text):
            return positive_number(text[:-1]) / 100
        return whole_number(text) if re.fullmatch("[0-9]{1,9}", text) else size_pair(text)
    except argparse.ArgumentTypeError:
        expected = "WxH, one whole number or a percentage, above 0, such as 640x480, 800 or 50%"
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not {expected}") from None


# What stands in a template for a part of a name; numbers may have a width, and zeros before them.
NAME_FIELD = re.compile(r"\{(?:(stem|suffix)|(number|width|height)(?::(0?[1-9][0-9]?))?)\}")
NAME_FIELDS = ("stem", "suffix", "number", "width", "height")


def name_template(text: str) -> str:
    """A name with fields in braces."""
    for field in re.findall(r"\{[^{}]*\}?|\}", NAME_FIELD.sub("", text)):
        known = ", ".join(f"{{{name}}}" for name in NAME_FIELDS)
        nearest = did_you_mean(field.strip("{}").partition(":")[0], NAME_FIELDS)
        raise argparse.ArgumentTypeError(
            f"{field!r} is no field; the fields are {known}, numbers as {{number:03}}{nearest}"
        )
    suffixes = tuple(f".{name}" for name in get_args(FormatName))
    if "/" in text or not text.lower().endswith(("{suffix}", *suffixes)) or text.lower() in suffixes:
        expected = f"a name without folders that ends in {{suffix}} or one of {', '.join(suffixes)}"
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return text


def filled(template: str, values: dict[str, Any]) -> str:
    """A template of names with the values of its fields."""
    return NAME_FIELD.sub(lambda match: format(values[match[1] or match[2]], match[3] or ""), template)


def color(text: str) -> tuple[float, ...]:
    """One to four values from 0 to 255, as numbers separated by commas or as hexadecimal digits."""
    if text in COLORS:
        return (COLORS[text],)
    if re.fullmatch(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return tuple(float(byte) for byte in bytes.fromhex(text[1:]))
    refusal = f"{text!r} is not 1 to 4 values from 0 to 255, #rrggbb or one of {', '.join(COLORS)}"
    refusal += did_you_mean(text, COLORS)
    try:
        values = number_list(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(refusal) from None
    if len(values) > 4 or not all(0 <= value <= 255 for value in values):
        raise argparse.ArgumentTypeError(refusal)
    return values


def known_word(choices: tuple[str, ...], text: str) -> str:
    """A word that is one of a few."""
    if text not in choices:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(choices)}{did_you_mean(text, choices)}")
    return text


def path(text: str) -> Path:
    """A path. An empty one, as of a variable of the shell that is not set, is none, and not the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return Path(text)


def named_device(text: str) -> tuple[str, int]:
    """The name of a platform and the number of a device, as NAME or NAME:N."""
    match = re.fullmatch(r"([a-z]+)(?::([0-9]{1,9}))?", text.lower())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME:N, such as gpu:1")
    return match[1], int(match[2] or 0)


def whole_number(text: str) -> int:
    """A whole number above 0, which may be written as 2e9."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value < 2**63 or value % 1:
        raise argparse.ArgumentTypeError(f"{text.strip()!r} is not a whole number above 0")
    return int(value)


def byte_count(text: str) -> int:
    """A number of bytes from 1G on, as 4G or 1500M."""
    match = re.fullmatch(r"([0-9]{1,6})([MGT])B?", text.upper())
    found = int(match[1]) * 2 ** {"M": 20, "G": 30, "T": 40}[match[2]] if match else 0
    if found < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size from 1G on, such as 4G or 1500M")
    return found


def quality_number(text: str) -> int:
    """A whole number from 1 to 100."""
    if not re.fullmatch(r"0*([1-9][0-9]?|100)", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100")
    return int(text)


# Options


# Written out, since arguments are parsed before JAX is imported; a test compares them with the enumerations.
FilterName = Literal["point", "linear", "cubic", "lagrange", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian"]
AddressName = Literal["frame", "clamp", "border", "wrap", "mirror", "reflect", "sphere"]
ModelName = Literal["brown_conrady", "fisheye"]
TurnName = Literal["left", "right"]
FormatName = Literal["png", "jpg", "jpeg", "tif", "tiff", "webp", "gif", "apng", "heic", "heif"]
Subsampling = Literal["444", "422", "420"]
Shell = Literal["bash", "zsh", "fish"]
# A resize has one more filter than reads have.
ResizeFilterName = FilterName | Literal["area"]
FILTERS: tuple[str, ...] = get_args(FilterName)
ADDRESSES: tuple[str, ...] = get_args(AddressName)
# The words of `--compression` for each format.
COMPRESSIONS: dict[str, tuple[str, ...]] = {
    "TIFF": ("none", "packbits", "lzw", "deflate", "zstd"),
    "PNG": tuple("0123456789"),
    "WebP": ("lossless", "lossy"),
    "JPEG": (),
    "GIF": (),
    "HEIF": (),
}
# The options that are a whole transform, and those that are combined to an affine one.
WHOLE_TRANSFORMS = ("matrix", "perspective", "lens", "distort", "calibration", "flow")
AFFINE_PARTS = ("scale", "shear", "rotate", "translate")
# Those of `--address` under which something has the border color.
WITH_BORDER = ("frame", "border")
MAX_PIXELS = 500_000_000  # of an image, unless the user says otherwise


# What argparse takes for each option, by its first name; those of `Options`.
OPTIONS: dict[str, dict[str, Any]] = {}


class Option:
    """An option, where `Options` declares it. The attribute there is the default.

    Args:
        flag: its name on the command line; by default that of the attribute.
        parsed: what else argparse takes for it.
    """

    def __init__(self, default: Any, flag: str = "", **parsed: Any) -> None:
        self.default, self.flag, self.parsed = default, flag, parsed

    def __set_name__(self, owner: type, name: str) -> None:
        flag = self.flag or f"--{name.replace('_', '-')}"
        OPTIONS[flag] = {"dest": name, "default": self.default, **self.parsed}
        setattr(owner, name, self.default)


def switch(about: str, default: bool | None = False, action: Any = "store_true") -> Any:
    """An option without a value."""
    return Option(default, action=action, help=about)


def taking(
    metavar: str | tuple[str, ...], kind: Callable[[str], Any], about: str, default: Any = None, **more: Any
) -> Any:
    """An option with a value."""
    return Option(default, metavar=metavar, type=kind, help=about, **more)


def choice(choices: tuple[str, ...], about: str, default: str | None = None, **more: Any) -> Any:
    """An option that is one of a few words."""
    return Option(default, choices=choices, help=about, **more)


COEFFICIENT_NAMES = ",".join(COEFFICIENTS).upper()


class Options(argparse.Namespace):
    """The parsed options, in the units of the command line. What a command does not have is as not given."""

    command: str
    sources: list[Path]
    target: Path
    shell: Shell
    # Transforms
    scale: float | None = taking("S", positive_number, "factor of width and height, above 0, e.g. 0.5 (default: 1)")
    shear: float | None = taking("X", number, "pixels to the right for each pixel down, e.g. 0.2 (default: 0)")
    rotate: float | None = taking("DEG", number, "angle in degrees, counter-clockwise as seen, e.g. 20 (default: 0)")
    translate: list[float] | None = taking(
        ("X", "Y"), number, "shift right and down, in pixels, e.g. 10 -5 (default: 0 0)", nargs=2
    )
    matrix: list[float] | None = taking(
        "N",
        number,
        "six numbers A B C D E F of an affine matrix, row by row, from pixels of the input to pixels of the output, "
        "e.g. 1 0 10 0 1 -5 or 1,0,10,0,1,-5; or nine of a homography, e.g. 1 0 0 0 1 0 0 0.001 1",
        nargs=6,
    )
    perspective: list[tuple[Point, Point]] | None = taking(
        "X,Y:X,Y",
        point_pair,
        "four points of the input, such as the corners of a page, and their positions in the output, in pixels",
        nargs=4,
    )
    lens: tuple[float, ...] | None = taking(
        COEFFICIENT_NAMES, coefficient_list, "remove a lens distortion, e.g. -0.28,0.07"
    )
    distort: tuple[float, ...] | None = taking(
        COEFFICIENT_NAMES, coefficient_list, "apply a lens distortion, e.g. -0.28,0.07"
    )
    calibration: Path | None = taking(
        "FILE", path, "remove the distortion that a YAML or JSON file of OpenCV describes, e.g. camera.yml"
    )
    camera: tuple[float, float, float, float] | None = taking(
        "FX,FY,CX,CY",
        camera_numbers,
        "focal lengths and principal point of --lens and --distort, in pixels, e.g. 910,910,960,540 (default: both "
        "lengths are the longer side of the image, and the point is its center)",
    )
    model: ModelName = choice(
        get_args(ModelName),
        "lens model of --lens and --distort: brown_conrady with k1,k2,p1,p2,k3, or fisheye with k1,k2,k3,k4 "
        "(default: brown_conrady)",
        "brown_conrady",
    )
    turned: TurnName | None = choice(
        get_args(TurnName),
        "with --calibration, which way pictures were turned by a quarter whose pixels are turned and whose EXIF "
        "orientation does not say so: left, or right for clockwise; others are not affected",
    )
    flow: Path | None = taking("FILE.npy", path, "file of displacements from output to input, in pixels, e.g. flow.npy")
    size: OutputSize | None = taking(
        "SIZE",
        output_size,
        "size of the output: width and height in pixels, e.g. 640x480, the longer side alone, e.g. 800, or a "
        "percentage of the input, e.g. 50%%; the last two keep its proportions (default: that of the input)",
    )
    fit: tuple[int, int] | None = taking(
        "WxH", size_pair, "the largest size of the same proportions within this width and height, e.g. 1600x1600"
    )
    enlarge: bool = switch("with --fit, enlarge smaller images too")
    expand: bool = switch("make the output large enough for the whole result")
    crop: bool = switch("reduce the output to the largest part that the image covers")
    # Reading
    filter_mode: ResizeFilterName = choice(
        FILTERS,
        "how pixels are blended: point takes the nearest one, linear blends linearly, cubic is Catmull-Rom, lagrange "
        "the cubic through four pixels; lanczos2 and lanczos3 are sharper, mitchell, gaussian and bspline softer "
        "(default: %(default)s)",
        "cubic",
        flag="--filter",
    )
    antialias: bool | None = switch(
        "average over the area that each output pixel covers (default: no)", None, argparse.BooleanOptionalAction
    )
    linear_light: bool = switch("decode colors as sRGB and blend light (default: blend values as they are stored)")
    address_mode: AddressName = choice(
        ADDRESSES,
        "what lies outside the input: frame, the border color with a sharp edge; border, the border color blended "
        "with the outermost pixels, as in a texture unit; clamp, the edge pixel; wrap, the input repeated; mirror, the "
        "input mirrored; reflect, the same without repeating the edge pixel; sphere, a panorama around the globe "
        "(default: frame)",
        "frame",
        flag="--address",
    )
    border: tuple[float, ...] | None = taking(
        "VALUES",
        color,
        "color outside the input: G, G,A, R,G,B or R,G,B,A, each from 0 to 255, also for 16-bit images, e.g. 255,0,0; "
        "or #rrggbb, #rrggbbaa, white, gray, black (default: black, or transparent if the image has alpha)",
        flag="--border-color",
    )
    # Writing
    alpha: bool = switch("add an alpha channel: pixels outside the input are transparent")
    format: FormatName | None = choice(
        get_args(FormatName),
        "output format of the files of a folder and of stdout (default: that of each input; png for stdout)",
    )
    compression: str | None = choice(
        tuple(word for words in COMPRESSIONS.values() for word in words),
        "of TIFF: none, packbits, lzw, deflate or zstd; of PNG: a level from 0 to 9; of WebP: lossless or lossy "
        "(default: that of an input of the same format, else deflate, 6 and lossless)",
    )
    quality: int | None = taking(
        "Q",
        quality_number,
        "quality of JPEG, HEIF and lossy WebP, from 1 to 100, e.g. 85 (default: 95; from JPEG to JPEG that of the "
        "input)",
    )
    subsampling: Subsampling | None = choice(
        get_args(Subsampling),
        "color subsampling of JPEG and HEIF: none (444), along rows (422), or along rows and columns (420) (default: "
        "444; in the format of the input, as there)",
    )
    name: str | None = taking(
        "TEMPLATE",
        name_template,
        "names of the files in a folder OUT, with {stem} and {suffix} of the input, its {number} in the order of the "
        "names, {width} and {height} of the output, e.g. {stem}-{width}x{height}{suffix} or photo{number:03}.jpg "
        "(default: {stem}{suffix})",
    )
    compare: bool = switch("write the input and the result side by side")
    preview: bool = switch("write one small image of the first input and its result, side by side")
    # Files
    strip: bool = switch(
        "drop EXIF and GPS, XMP, IPTC, comments, text and resolution; color profiles stay, or the colors would change"
    )
    force: bool = switch("replace files that are read-only")
    overwrite: bool = switch("replace files that exist in the folder OUT, and allow an output that is also an input")
    preserve_times: bool = switch("copy the modification and access times of the input")
    skip_existing: bool = switch(
        "overwrite no file: skip inputs whose output exists and count them, for example to resume a run that was "
        "stopped, and exit with 0; with --tile, write the missing tiles of a file"
    )
    page: int | None = taking(
        "N",
        whole_number,
        "page of a TIFF, or frame of an animation, counted from 1, e.g. 2 (default: all)",
    )
    max_pixels: int | None = taking(
        "N",
        whole_number,
        "largest number of pixels of an input or an output, e.g. 2e9 (default: 500 million; with --tile no limit)",
    )
    # Running
    recursive: bool = switch("read subfolders too, and make the same subfolders in OUT")
    jobs: int | None = taking(
        "N",
        whole_number,
        "number of threads that read and write files, e.g. 2 (default: the number of cores, at most 16)",
    )
    tile: bool = switch("warp one TIFF of any size tile by tile, within --memory; --resume goes on after a stop")
    memory: int | None = taking("SIZE", byte_count, "memory that --tile may use, at least 1G, e.g. 4G (default: 2G)")
    quiet: bool = switch("print only errors")
    verbose: bool = switch("print a line for each image of a folder")
    device: tuple[str | None, int] = taking(
        "NAME[:N]",
        named_device,
        "cpu, gpu or tpu, and the number of the device, from 0, e.g. gpu:1 (default: the first device of JAX)",
        (None, 0),
    )


OTHER_NAMES = {"--skip-existing": ("--no-clobber", "--resume"), "--angle": ("--rotate",)}
# What commands take beside options.
PATHS: dict[str, dict[str, Any]] = {
    "sources": {
        "metavar": "IN",
        "type": path,
        "help": "image files, folders of image files, or - for stdin",
        "nargs": "+",
    },
    "target": {
        "metavar": "OUT",
        "type": path,
        "help": "the file to write, a folder for several files, or - for stdout",
    },
}
