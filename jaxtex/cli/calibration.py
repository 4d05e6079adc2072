"""Lenses: their distortion, removed from an image or applied to it, and the files in which OpenCV describes them."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml

from ..warp.coordinate_functions import stored_points
from ..warp.lens import undistort_points
from ..warp.lens_models import LENS_MODELS, LensModel, LensModelLike
from ..warp.sized import mappings
from ..warp.sized.mappings import Array, PerPixelParameters, Size
from .files.inputs import open_regular, read_errors
from .process import UserError
from .transforms import Transform, to_parameters

Camera = tuple[float, float, float, float]
# Few lengths, so that few programs are compiled.
PADDED_COUNTS: dict[str, tuple[int, ...]] = {"brown_conrady": (5, 8), "fisheye": (4,)}

LARGEST_FILE = 2**24  # bytes; a calibration with its views has a few thousand
MOST_NUMBERS = 64  # of a matrix that describes a camera
# What OpenCV's samples, ROS and others call these fields.
CAMERA_FIELDS = ("camera_matrix", "cameraMatrix", "Camera_Matrix", "K", "M", "M1", "intrinsics")
LENS_FIELDS = (
    *("distortion_coefficients", "Distortion_Coefficients", "dist_coeffs", "distCoeffs", "dist_coeff"),
    *("distortion", "D", "D1", "dist"),
)
WIDTH_FIELDS, HEIGHT_FIELDS = ("image_width", "image_Width", "width"), ("image_height", "image_Height", "height")
FISHEYE_FIELDS = ("fisheye_model", "fisheye")
MODEL_FIELDS = ("distortion_model", "camera_model", "model")
FISHEYE_MODELS = ("fisheye", "equidistant", "kannala_brandt")
LENGTHS = {"brown_conrady": (4, 5, 8), "fisheye": (4,)}
HALF_PIXEL = 0.5  # OpenCV has pixel centers at whole numbers


@dataclasses.dataclass(frozen=True)
class Lens(Transform):
    """The distortion of a lens.

    Attributes:
        coefficients: of the model, in OpenCV's order; missing ones are 0.
        camera: focal lengths and principal point, (fx, fy, cx, cy), in pixels about the top left corner. By default
            both focal lengths are the longer side of the image, and the principal point is its center.
        distort: whether to apply the distortion instead of removing it.
        model: of the lens.
        size: width and height of the images that `camera` is of; it is scaled to images of other sizes.
        name: what the report calls the lens; by default its coefficients.
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    distort: bool = False
    model: LensModelLike = "brown_conrady"
    size: Size | None = None
    name: str | None = None

    def camera_of(self, source: Size) -> Camera:
        """The camera in pixels of an image of this width and height."""
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        if self.size is None or self.size == source:
            return fx, fy, cx, cy
        sx, sy = (n / m for n, m in zip(source, self.size))
        if abs(sx - sy) * max(self.size) > 1:  # a pixel is as much as rounding a size may change
            raise UserError(
                f"the calibration is for images of {self.size[0]}x{self.size[1]}, and this one of {width}x{height} has "
                "other proportions"
            )
        return fx * sx, fy * sy, cx * sx, cy * sy

    def mapping(self, source: Size, target: Size) -> mappings.Mapping:
        fx, fy, cx, cy = camera = self.camera_of(source)
        model = LENS_MODELS[LensModel(self.model)]
        length = next(n for n in PADDED_COUNTS[self.model] if n >= len(self.coefficients))
        padded = (*self.coefficients, *[0.0] * (length - len(self.coefficients)))
        if self.distort:
            return mappings.Mapping(stored_points, undistorted_points(camera, padded, self.model))
        return mappings.Mapping(model.to_distorted, to_parameters((fx, cx, fy, cy, fx, cx, fy, cy, *padded)))

    def check(self) -> None:
        """Checks nothing: a lens fits every image."""

    def __str__(self) -> str:
        values = self.name or ",".join(f"{c:g}" for c in self.coefficients)
        return f"lens distortion {values} {'applied' if self.distort else 'removed'}"


@functools.lru_cache(maxsize=4)
def undistorted_points(camera: Camera, coefficients: tuple[float, ...], model: LensModelLike) -> PerPixelParameters:
    """The undistorted point of each pixel of a distorted image, x and y, shared by all images of a size.

    The solution takes many steps a pixel. Within the read, XLA would repeat it for each channel.
    """
    fx, fy, cx, cy = camera
    matrix, lens = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float32), np.array(coefficients, np.float32)

    def of(rows: Array, columns: Array) -> tuple[jax.Array, ...]:
        points = columns[None].astype(np.float32) + 0.5, rows[:, None].astype(np.float32) + 0.5
        return tuple(undistort_points(points, matrix, lens, model=model))

    return PerPixelParameters(of)


# Files


SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the fast one, where there is libyaml


class CalibrationLoader(SafeLoader):
    """YAML of plain values, in which a value with a tag of OpenCV, such as a matrix, is what it would be without."""


def untagged(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    """The plain value of a node with a tag of OpenCV."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)  # pyright: ignore[reportArgumentType]


CalibrationLoader.add_multi_constructor("tag:yaml.org,2002:opencv-", untagged)


def read_calibration(path: Path, model: LensModelLike) -> Lens:
    """The lens that a file describes.

    Args:
        path: a file in OpenCV's YAML or JSON.
        model: of the lens, where the file says nothing.
    """
    fields = read_fields(path)
    camera = numbers(path, fields, CAMERA_FIELDS, "the camera matrix")
    coefficients = numbers(path, fields, LENS_FIELDS, "the coefficients of the lens")
    if len(camera) != 9 or not (camera[0] > 0 and camera[4] > 0):
        raise UserError(f"cannot use {path}: its camera matrix is not 3 by 3 with focal lengths above 0")
    named = str(first(fields, MODEL_FIELDS) or "").lower()
    if first(fields, FISHEYE_FIELDS) or named in FISHEYE_MODELS:
        model = "fisheye"
    lengths = LENGTHS[model]
    fitting = coefficients[: lengths[-1]]
    if any(coefficients[lengths[-1] :]) or len(fitting) < lengths[0]:
        listed = " or ".join(filter(None, (", ".join(map(str, lengths[:-1])), str(lengths[-1]))))
        raise UserError(
            f"cannot use {path}: it has {len(coefficients)} coefficients, and a lens of the model {model} has {listed}"
        )
    width, height = (first(fields, names) for names in (WIDTH_FIELDS, HEIGHT_FIELDS))
    known = isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0
    fx, _, cx, _, fy, cy, *_ = camera
    return Lens(
        fitting,
        (fx, fy, cx + HALF_PIXEL, cy + HALF_PIXEL),
        model=model,
        size=(width, height) if known else None,
        name=f"of {path.name}",
    )


def read_fields(path: Path) -> Mapping[str, Any]:
    """The fields of a file."""
    with read_errors(path, "it is not YAML or JSON as OpenCV writes it"), open_regular(path) as file:
        data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise UserError("it is too large for a calibration")
        text = data.decode("utf-8-sig").lstrip()
        if text.startswith("<"):
            raise UserError("it is XML; write it again with a name that ends in .yml or .json")
        fields = json.loads(text) if text.startswith("{") else yaml.load(without_directive(text), CalibrationLoader)
        if not isinstance(fields, dict):
            raise UserError("it is not YAML or JSON with fields, as OpenCV writes it")
    return fields


def without_directive(text: str) -> str:
    """A text without the line %YAML:1.0, which OpenCV writes and YAML does not know."""
    return text.partition("\n")[2] if text.startswith("%YAML:") else text


def first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of several fields that there is, or `None`."""
    return next((fields[name] for name in names if name in fields), None)


def numbers(path: Path, fields: Mapping[str, Any], names: tuple[str, ...], meaning: str) -> tuple[float, ...]:
    """The elements of a matrix, by rows, or of a list."""
    value = first(fields, names)
    matrix: dict[str, Any] | None = value if isinstance(value, dict) else None
    try:
        found = tuple(itertools.islice(elements(value if matrix is None else matrix["data"]), MOST_NUMBERS))
        size = len(found) if matrix is None else int(matrix["rows"]) * int(matrix["cols"])
    except (TypeError, ValueError, KeyError, OverflowError):
        found, size = (math.nan,), 1
    if not found or not all(map(math.isfinite, found)):
        raise UserError(f"cannot use {path}: it has no numbers for {meaning}, in a field such as {names[0]}")
    if size != len(found):
        raise UserError(
            f"cannot use {path}: the matrix of {meaning} has {len(found)} elements, and its rows and cols say {size}"
        )
    return found


def elements(value: Any) -> Iterator[float]:
    """The numbers of a list, or of a list of lists. YAML takes some numbers, such as 1e-5, for words."""
    for part in value if isinstance(value, list) else [value]:
        yield from map(float, part if isinstance(part, list) else [part])
