"""The options of the command line: their words, their values, and what the help says of each."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from . import values
from .values import Point

# Written out, since arguments are parsed before JAX is imported; a test compares them with the enumerations.
FilterName = Literal["point", "linear", "cubic", "lagrange", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian"]
AddressName = Literal["frame", "clamp", "border", "wrap", "mirror", "reflect", "sphere"]
ModelName = Literal["brown_conrady", "fisheye"]
FormatName = Literal["png", "jpg", "jpeg", "tif", "tiff", "webp"]
Subsampling = Literal["444", "422", "420"]
Shell = Literal["bash", "zsh", "fish"]
# A resize has one more filter than reads have.
ResizeFilterName = FilterName | Literal["area"]
FILTERS: tuple[str, ...] = get_args(FilterName)
ADDRESSES: tuple[str, ...] = get_args(AddressName)
# The options that are a whole transform, and those that are combined to an affine one.
WHOLE_TRANSFORMS = ("matrix", "perspective", "lens", "distort", "calibration", "flow")
AFFINE_PARTS = ("scale", "shear", "rotate", "translate")
# Those of `--address` under which something has the border color.
WITH_BORDER = ("frame", "border")
MAX_PIXELS = 500_000_000  # of an image, unless the user says otherwise


class Options(argparse.Namespace):
    """The parsed options, in the units of the command line. What a command does not have is as not given."""

    command: str
    sources: list[Path]
    target: Path
    shell: Shell
    scale: float | None = None
    shear: float | None = None
    rotate: float | None = None
    translate: list[float] | None = None
    matrix: list[float] | None = None
    perspective: list[tuple[Point, Point]] | None = None
    lens: tuple[float, ...] | None = None
    distort: tuple[float, ...] | None = None
    calibration: Path | None = None
    camera: tuple[float, float, float, float] | None = None
    model: ModelName = "brown_conrady"
    flow: Path | None = None
    size: tuple[int, int] | None = None
    fit: tuple[int, int] | None = None
    enlarge: bool = False
    expand: bool = False
    crop: bool = False
    filter_mode: ResizeFilterName = "linear"
    antialias: bool | None = None
    linear_light: bool = False
    address_mode: AddressName = "frame"
    border: tuple[float, ...] | None = None
    alpha: bool = False
    format: FormatName | None = None
    quality: int | None = None
    subsampling: Subsampling | None = None
    compare: bool = False
    preview: bool = False
    strip: bool = False
    force: bool = False
    overwrite: bool = False
    preserve_times: bool = False
    skip_existing: bool = False
    page: int | None = None
    max_pixels: int | None = None
    recursive: bool = False
    jobs: int | None = None
    tile: bool = False
    memory: int | None = None
    quiet: bool = False
    verbose: bool = False
    device: tuple[str | None, int] = (None, 0)


def switch(about: str) -> dict[str, Any]:
    """An option without a value."""
    return {"action": "store_true", "help": about}


def taking(metavar: str | tuple[str, ...], kind: Callable[[str], Any], about: str, **more: Any) -> dict[str, Any]:
    """An option with a value."""
    return {"metavar": metavar, "type": kind, "help": about, **more}


def choice(choices: tuple[str, ...], about: str, **more: Any) -> dict[str, Any]:
    """An option that is one of a few words."""
    return {"choices": choices, "help": about, **more}


COEFFICIENT_NAMES = ",".join(values.COEFFICIENTS).upper()
# What argparse takes for each option, by its first name.
TRANSFORMS = {
    "--scale": taking("S", values.positive_number, "factor of width and height, above 0, e.g. 0.5 (default: 1)"),
    "--shear": taking("X", values.number, "pixels to the right for each pixel down, e.g. 0.2 (default: 0)"),
    "--rotate": taking("DEG", values.number, "angle in degrees, counter-clockwise as seen, e.g. 20 (default: 0)"),
    "--translate": taking(
        ("X", "Y"), values.number, "shift right and down, in pixels, e.g. 10 -5 (default: 0 0)", nargs=2
    ),
    "--expand": switch("make the output large enough for the whole result"),
    "--crop": switch("reduce the output to the largest part that the image covers"),
    "--matrix": taking(
        "N",
        values.number,
        "six numbers A B C D E F of an affine matrix, row by row, from pixels of the input to pixels of the output, "
        "e.g. 1 0 10 0 1 -5 or 1,0,10,0,1,-5; or nine of a homography, e.g. 1 0 0 0 1 0 0 0.001 1",
        nargs=6,
    ),
    "--perspective": taking(
        "X,Y:X,Y",
        values.point_pair,
        "four points of the input, such as the corners of a page, and their positions in the output, in pixels",
        nargs=4,
    ),
    "--lens": taking(COEFFICIENT_NAMES, values.coefficient_list, "remove a lens distortion, e.g. -0.28,0.07"),
    "--distort": taking(COEFFICIENT_NAMES, values.coefficient_list, "apply a lens distortion, e.g. -0.28,0.07"),
    "--camera": taking(
        "FX,FY,CX,CY",
        values.camera,
        "focal lengths and principal point of --lens and --distort, in pixels, e.g. 910,910,960,540 (default: both "
        "lengths are the longer side of the image, and the point is its center)",
    ),
    "--model": choice(
        get_args(ModelName),
        "lens model of --lens and --distort: brown_conrady with k1,k2,p1,p2,k3, or fisheye with k1,k2,k3,k4 "
        "(default: brown_conrady)",
        default="brown_conrady",
    ),
    "--calibration": taking(
        "FILE",
        values.path,
        "remove the distortion that a YAML or JSON file of OpenCV describes, e.g. camera.yml",
    ),
    "--flow": taking("FILE.npy", values.path, "file of displacements from output to input, in pixels, e.g. flow.npy"),
    "--size": taking(
        "WxH", values.size, "width and height of the output in pixels, e.g. 640x480 (default: those of the input)"
    ),
    "--fit": taking(
        "WxH", values.size, "the largest size of the same proportions within this width and height, e.g. 1600x1600"
    ),
    "--enlarge": switch("with --fit, enlarge smaller images too"),
}
READS = {
    "--filter": choice(
        FILTERS,
        "how pixels are blended: point takes the nearest one, linear blends linearly, cubic is Catmull-Rom, lagrange "
        "the cubic through four pixels; lanczos2 and lanczos3 are sharper, mitchell, gaussian and bspline softer "
        "(default: %(default)s)",
        dest="filter_mode",
        default="cubic",
    ),
    "--antialias": {
        "action": argparse.BooleanOptionalAction,
        "default": None,
        "help": "average over the area that each output pixel covers (default: no)",
    },
    "--linear-light": switch("decode colors as sRGB and blend light (default: blend values as they are stored)"),
    "--address": choice(
        ADDRESSES,
        "what lies outside the input: frame, the border color with a sharp edge; border, the border color blended "
        "with the outermost pixels, as in a texture unit; clamp, the edge pixel; wrap, the input repeated; mirror, the "
        "input mirrored; reflect, the same without repeating the edge pixel; sphere, a panorama around the globe "
        "(default: frame)",
        dest="address_mode",
        default="frame",
    ),
    "--border-color": taking(
        "VALUES",
        values.color,
        "color outside the input: G, G,A, R,G,B or R,G,B,A, each from 0 to 255, also for 16-bit images, e.g. 255,0,0; "
        "or #rrggbb, #rrggbbaa, white, gray, black (default: black, or transparent if the image has alpha)",
        dest="border",
    ),
}
WRITES = {
    "--alpha": switch("add an alpha channel: pixels outside the input are transparent"),
    "--format": choice(
        get_args(FormatName),
        "output format of the files of a folder and of stdout (default: that of each input; png for stdout)",
    ),
    "--quality": taking(
        "Q",
        values.quality,
        "quality of JPEG and WebP, from 1 to 100, e.g. 85 (default: 95 for JPEG, lossless WebP)",
    ),
    "--subsampling": choice(
        get_args(Subsampling),
        "color subsampling of JPEG: none (444), along rows (422), or along rows and columns (420) (default: 444)",
    ),
    "--compare": switch("write the input and the result side by side"),
    "--preview": switch("write one small image of the first input and its result, side by side"),
}
FILES = {
    "--strip": switch(
        "drop EXIF and GPS, XMP, IPTC, comments, text and resolution; color profiles stay, or the colors would change"
    ),
    "--force": switch("replace files that are read-only"),
    "--overwrite": switch("replace files that exist in the folder OUT, and allow an output that is also an input"),
    "--preserve-times": switch("copy the modification and access times of the input"),
    "--skip-existing": switch(
        "skip inputs whose output exists, for example to resume a run that was stopped; with --tile, write the "
        "missing tiles of a file"
    ),
    "--page": taking(
        "N",
        values.whole_number,
        "page of a TIFF, or frame of an animation, counted from 1, e.g. 2 (default: all pages of a TIFF)",
    ),
    "--max-pixels": taking(
        "N",
        values.whole_number,
        "largest number of pixels of an input or an output, e.g. 2e9 (default: 500 million; with --tile no limit)",
    ),
}
RUNNING = {
    "--recursive": switch("read subfolders too, and make the same subfolders in OUT"),
    "--jobs": taking(
        "N",
        values.whole_number,
        "number of threads that read and write files, e.g. 2 (default: the number of cores, at most 16)",
    ),
    "--tile": switch("warp one TIFF of any size tile by tile, within --memory; --resume goes on after a stop"),
    "--memory": taking("SIZE", values.memory, "memory that --tile may use, at least 1G, e.g. 4G (default: 2G)"),
    "--quiet": switch("print only errors"),
    "--verbose": switch("print a line for each image of a folder"),
    "--device": taking(
        "NAME[:N]",
        values.device,
        "cpu, gpu or tpu, and the number of the device, from 0, e.g. gpu:1 (default: the first device of JAX)",
        default=(None, 0),
    ),
}
OPTIONS: dict[str, dict[str, Any]] = {**TRANSFORMS, **READS, **WRITES, **FILES, **RUNNING}
OTHER_NAMES = {"--skip-existing": ("--resume",), "--angle": ("--rotate",)}
PATHS: dict[str, dict[str, Any]] = {
    "sources": taking("IN", values.path, "image files, folders of image files, or - for stdin", nargs="+"),
    "target": taking("OUT", values.path, "the file to write, a folder for several files, or - for stdout"),
}
