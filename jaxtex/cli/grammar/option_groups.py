"""The options of the command line, in groups that commands share."""

# pyright: strict

import argparse
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from ..errors import UserError
from .values import (
    COEFFICIENTS,
    Point,
    camera,
    coefficient_list,
    color,
    count,
    device,
    host,
    memory,
    number,
    path,
    point_pair,
    port,
    positive_number,
    quality,
    side,
    size,
)

# Written out, since arguments are parsed before JAX is imported; a test compares them with the enumerations.
FilterName = Literal["point", "linear", "cubic", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian"]
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
# Where `jaxtex explore` serves its page, and how large its picture is at most.
EXPLORE_HOST, EXPLORE_PORT, EXPLORE_SIDE = "127.0.0.1", 5006, 480
# What options are added to.
Group = argparse._ArgumentGroup  # pyright: ignore[reportPrivateUsage]


class Options(argparse.Namespace):
    """The parsed options, in the units of the command line. What a command does not have is as not given."""

    command: str
    sources: list[Path]
    target: Path
    source: Path
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
    recursive: bool = False
    jobs: int | None = None
    quiet: bool = False
    verbose: bool = False
    device: tuple[str | None, int] = (None, 0)
    tile: bool = False
    memory: int | None = None
    side: int = EXPLORE_SIDE
    host: str = EXPLORE_HOST
    port: int | None = None
    browser: bool = True
    # The attributes of `FileOptions`, which has their defaults.
    strip: bool
    force: bool
    preserve_times: bool
    skip_existing: bool
    page: int | None
    max_pixels: int | None


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, and those of printing, so that `main` reports them like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)

    def _print_message(self, message: str, file: Any = None) -> None:  # which ignores a full disk
        print(message, end="", file=file)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Adds the files that every command on images takes."""
    parser.add_argument(
        "sources", metavar="IN", nargs="+", type=path, help="image files, folders of image files, or - for stdin"
    )
    parser.add_argument(
        "target",
        metavar="OUT",
        type=path,
        help="the file to write, a folder for several files, or - for stdout",
    )


def add_affine_options(parts: Group) -> None:
    """Adds the parts of an affine transform."""
    parts.add_argument(
        "--scale", metavar="S", type=positive_number, help="factor of width and height, above 0, e.g. 0.5 (default: 1)"
    )
    parts.add_argument(
        "--shear", metavar="X", type=number, help="shift to the right per pixel down, in pixels, e.g. 0.2 (default: 0)"
    )
    parts.add_argument(
        "--rotate", metavar="DEG", type=number, help="angle in degrees, counter-clockwise as seen, e.g. 20 (default: 0)"
    )
    parts.add_argument(
        "--translate",
        metavar=("X", "Y"),
        nargs=2,
        type=number,
        help="shift right and down, in pixels, e.g. 10 -5 (default: 0 0)",
    )
    parts.add_argument("--expand", action="store_true", help="make the output large enough for the whole result")


def add_transform_options(warp: argparse.ArgumentParser) -> None:
    """Adds the transforms that are given alone."""
    whole = warp.add_argument_group("whole transform")
    whole.add_argument(
        "--matrix",
        metavar=tuple("ABCDEF"),
        nargs=6,
        type=number,
        help="affine matrix, row by row, from pixels of the input to pixels of the output, e.g. 1 0 10 0 1 -5",
    )
    whole.add_argument(
        "--perspective",
        metavar="X,Y:X,Y",
        nargs=4,
        type=point_pair,
        help="four points of the input, such as the corners of a page, and their positions in the output, in pixels",
    )
    add_lens_options(whole)
    whole.add_argument(
        "--flow",
        metavar="FILE.npy",
        type=path,
        help="file of displacements from output to input, in pixels, e.g. flow.npy",
    )


def add_lens_options(group: Group) -> None:
    """Adds a lens."""
    coefficients = ",".join(COEFFICIENTS).upper()
    group.add_argument(
        "--lens", metavar=coefficients, type=coefficient_list, help="remove a lens distortion, e.g. -0.28,0.07"
    )
    group.add_argument(
        "--distort", metavar=coefficients, type=coefficient_list, help="apply a lens distortion, e.g. -0.28,0.07"
    )
    group.add_argument(
        "--camera",
        metavar="FX,FY,CX,CY",
        type=camera,
        help="focal lengths and principal point of --lens and --distort, in pixels, e.g. 910,910,960,540 "
        "(default: both lengths are the longer side of the image, and the point is its center)",
    )
    group.add_argument(
        "--model",
        choices=get_args(ModelName),
        default="brown_conrady",
        help="lens model of --lens and --distort: brown_conrady with k1,k2,p1,p2,k3, or fisheye with k1,k2,k3,k4 "
        "(default: brown_conrady)",
    )
    group.add_argument(
        "--calibration",
        metavar="FILE",
        type=path,
        help="remove the distortion that a YAML or JSON file of OpenCV describes, e.g. camera.yml",
    )


def add_size(group: Group) -> None:
    """Adds the size of the output."""
    group.add_argument(
        "--size",
        metavar="WxH",
        type=size,
        help="width and height of the output in pixels, e.g. 640x480 (default: those of the input)",
    )


def add_read_options(group: Group, filter_mode: FilterName, *, is_resize: bool = False) -> None:
    """Adds how the input is read.

    Args:
        filter_mode: the default.
        is_resize: whether the mean of an area is a filter too, and averaging the default.
    """
    group.add_argument(
        "--filter",
        dest="filter_mode",
        choices=(*FILTERS, "area") if is_resize else FILTERS,
        default=filter_mode,
        help="how pixels are blended: not at all (point, the nearest pixel), linearly (linear), by a Catmull-Rom cubic "
        "(cubic), by sharper filters (lanczos2, lanczos3) or by smoothing filters (bspline, gaussian, mitchell)"
        f"{'; area is the mean of the area that a pixel covers' if is_resize else ''} (default: {filter_mode})",
    )
    smoothed = "yes, unless the filter is point" if is_resize else "no"
    group.add_argument(
        "--antialias",
        action=argparse.BooleanOptionalAction,
        default=None,
        help=f"average over the area that each output pixel covers (default: {smoothed})",
    )
    group.add_argument(
        "--linear-light",
        action="store_true",
        help="decode colors as sRGB and blend light (default: blend values as they are stored)",
    )


def add_border_options(group: Group) -> None:
    """Adds what lies outside the input."""
    group.add_argument(
        "--address",
        dest="address_mode",
        choices=ADDRESSES,
        default="frame",
        help="what is read outside the input: the border color, with a sharp edge (frame) or blended with the "
        "outermost pixels as in a texture unit (border); the edge pixel (clamp); or the input repeated (wrap), "
        "mirrored (mirror), mirrored without repeating the edge pixel (reflect), or as a sphere of longitudes and "
        "latitudes (sphere) (default: frame)",
    )
    group.add_argument(
        "--border-color",
        dest="border",
        metavar="VALUES",
        type=color,
        help="color outside the input: G, G,A, R,G,B or R,G,B,A, each from 0 to 255, also for 16-bit images, e.g. "
        "255,0,0; or #rrggbb, #rrggbbaa, white, gray, black (default: black, or transparent if the image has alpha)",
    )


def add_write_options(group: Group, *, alpha: bool = True) -> None:
    """Adds how the output is written.

    Args:
        alpha: whether the output may have transparent parts that the input has not.
    """
    if alpha:
        group.add_argument(
            "--alpha", action="store_true", help="add an alpha channel: pixels outside the input are transparent"
        )
    group.add_argument(
        "--format",
        choices=get_args(FormatName),
        help="output format of the files of a folder and of stdout (default: that of each input; png for stdout)",
    )
    group.add_argument(
        "--quality",
        metavar="Q",
        type=quality,
        help="quality of JPEG and WebP, from 1 to 100, e.g. 85 (default: 95 for JPEG, lossless WebP)",
    )
    group.add_argument(
        "--subsampling",
        choices=get_args(Subsampling),
        help="color subsampling of JPEG: none (444), along rows (422), or along rows and columns (420) (default: 444)",
    )
    group.add_argument("--compare", action="store_true", help="write the input and the result side by side")
    group.add_argument(
        "--preview",
        action="store_true",
        help="write one small image of the first input and its result, side by side",
    )


def add_run_options(group: Group) -> None:
    """Adds how the work is done and reported."""
    group.add_argument(
        "--recursive", action="store_true", help="read subfolders too, and make the same subfolders in OUT"
    )
    group.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="number of threads that read and write files, e.g. 2 (default: the number of cores, at most 16)",
    )
    group.add_argument(
        "--tile",
        action="store_true",
        help="warp one TIFF of any size to a tiled TIFF, tile by tile, in bounded memory; --resume resumes a run",
    )
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=memory,
        help="memory limit of the process with --tile, at least 1G, e.g. 4G (default: 2G)",
    )
    group.add_argument("--quiet", action="store_true", help="print only errors")
    group.add_argument("--verbose", action="store_true", help="print a line for each image of a folder")
    add_device(group)


def add_page_options(group: Group) -> None:
    """Adds the page of `jaxtex explore`, and where it is served."""
    group.add_argument(
        "--side",
        metavar="N",
        type=side,
        default=EXPLORE_SIDE,
        help="the longest side of the picture on the page in pixels, from 16 to 4096, e.g. 800; a larger picture is "
        f"reduced (default: {EXPLORE_SIDE})",
    )
    group.add_argument(
        "--host",
        metavar="ADDRESS",
        type=host,
        default=EXPLORE_HOST,
        help="the address of this machine that serves the page, e.g. 0.0.0.0 for all of them; under any but "
        f"127.0.0.1, everybody who reaches the machine can open the page and see the picture (default: {EXPLORE_HOST})",
    )
    group.add_argument(
        "--port",
        metavar="N",
        type=port,
        help=f"the port of the page, from 1 to 65535, e.g. 8080 (default: {EXPLORE_PORT}, or a free one)",
    )
    group.add_argument(
        "--no-browser", dest="browser", action="store_false", help="open no browser, print the address alone"
    )


def add_device(group: Group) -> None:
    """Adds the device that computes."""
    group.add_argument(
        "--device",
        metavar="NAME[:N]",
        type=device,
        default=(None, 0),
        help="cpu, gpu or tpu, and the number of the device, from 0, e.g. gpu:1 (default: the first device of JAX)",
    )
