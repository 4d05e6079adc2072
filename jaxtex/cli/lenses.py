"""Lenses: the distortion that is removed from images or applied to them, and the files that describe it."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import re
import warnings
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import yaml

from ..warp.coordinate_functions import Arrays, GridFunction, affine, projective, row_times_point, stored_points
from ..warp.lens import undistort_points
from ..warp.lens_models import LENS_MODELS, LensModel, LensModelLike
from ..warp.sized import mappings
from ..warp.sized.mappings import Array, PerPixelParameters, Size
from .files.exif import upright_matrix, upright_size
from .files.inputs import open_regular, read_errors
from .process import UserError
from .transforms import Transform, to_parameters

# Lenses as transforms


Camera = tuple[float, float, float, float]
# Few lengths, so that few programs are compiled.
PADDED_COUNTS: dict[str, tuple[int, ...]] = {"brown_conrady": (5, 8), "fisheye": (4,)}
# Where a matrix has focal lengths and principal point, in the order of lens models.
CAMERA_PLACES = ((0, 0), (0, 2), (1, 1), (1, 2))
# The orientations (TIFF 6.0, tag 274) of pictures that are shown upright after a turn.
TURNS = {"right": 6, "left": 8, "half": 3}
NEAR_CENTER = 0.1  # as a share of a side, where principal points lie
SAME_PIXEL = 1e-3


class ThroughLens(NamedTuple):
    """A coordinate function: from pixels of the result by a homography to rays, through a lens, to pixels of a camera.

    Attributes:
        to_distorted: of a lens model.
    """

    to_distorted: GridFunction

    def __call__(self, x: jax.Array, y: jax.Array, *values: jax.Array) -> Arrays:
        """The pixel of the input.

        Args:
            values: the homography, by rows, the first two rows of the camera's matrix, and the coefficients.
        """
        to_rays, camera, coefficients = values[:9], values[9:15], values[15:]
        one, zero = jnp.ones_like(x), jnp.zeros_like(x)
        unit = (one, zero, one, zero)  # the focal lengths and the principal point of a camera whose pixels are rays
        point = affine(*self.to_distorted(*projective(x, y, *to_rays), *unit, *unit, *coefficients), *camera)
        in_front = row_times_point((x, y), to_rays[6:]) > 0
        # Near the horizon the polynomials of a lens may overflow.
        return tuple(jnp.where(in_front & ~jnp.isnan(c), c, jnp.inf) for c in point)


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
        skew: pixels to the right for each unit of a ray down.
        ideal: the matrix that maps rays to pixels of the result, by rows; by default that of the camera.
        of_sensor: whether all of this is about the picture as the camera stores it, before it is turned upright.
        orientation: how the stored pictures are turned (TIFF 6.0, tag 274).
        turned: which way pixels were turned by a quarter, where no orientation says so: left or right.
    """

    coefficients: tuple[float, ...]
    camera: Camera | None = None
    distort: bool = False
    model: LensModelLike = "brown_conrady"
    size: Size | None = None
    name: str | None = None
    skew: float = 0.0
    ideal: tuple[float, ...] | None = None
    of_sensor: bool = False
    orientation: int = 1
    turned: str | None = None

    def upright(self, orientation: int) -> "Lens":
        return dataclasses.replace(self, orientation=orientation) if self.of_sensor else self

    def camera_of(self, source: Size) -> Camera:
        """The camera in pixels of an image of this width and height."""
        focal, (width, height) = max(source), source
        fx, fy, cx, cy = self.camera or (focal, focal, width / 2, height / 2)
        sx, sy = self.scales(source)
        return fx * sx, fy * sy, cx * sx, cy * sy

    def scales(self, source: Size) -> tuple[float, float]:
        """How much wider and higher an image is than those of the calibration."""
        if not self.fits(source):
            (width, height), (most, least) = source, self.size or source
            raise UserError(
                f"the calibration is for images of {most}x{least}, and this one of {width}x{height} has other "
                "proportions; crop both alike, or calibrate with such images"
            )
        sx, sy = (n / m for n, m in zip(source, self.size or source))
        return sx, sy

    def fits(self, source: Size) -> bool:
        """Whether an image has the proportions of those of the calibration."""
        if self.size is None:
            return True
        sx, sy = (n / m for n, m in zip(source, self.size))
        return abs(sx - sy) * max(self.size) <= 1  # a pixel is as much as rounding a size may change

    def orientation_of(self, source: Size) -> int:
        """How an upright image is turned: by the tag, or by a quarter if its pixels are, which no tag says."""
        back = (source[1], source[0])
        if self.size is None and self.camera:
            is_turned = off_center(self.camera, source) > NEAR_CENTER >= off_center(self.camera, back)
        else:
            is_turned = not self.fits(source) and self.fits(back)
        if not (self.of_sensor and self.orientation == 1 and is_turned):
            return self.orientation
        if self.turned is None and not self.is_symmetric(back):
            (width, height), (across, down) = self.size or back, source
            raise UserError(
                f"the calibration is for images of {width}x{height}, and this one of {across}x{down} is turned by a "
                "quarter, without an EXIF orientation that says which way; add --turned right if it was turned "
                "clockwise, or --turned left"
            )
        return TURNS[self.turned or "right"]

    def is_symmetric(self, stored: Size) -> bool:
        """Whether images that are turned to the left and to the right are undistorted alike."""
        tangential = LensModel(self.model) is LensModel.BROWN_CONRADY and any(self.coefficients[2:4])
        about, half_turn = np.diag([-1.0, -1.0, 1.0]), upright_matrix(stored, TURNS["half"])
        matrices = self.matrices_of(stored)
        return not tangential and all(np.allclose(half_turn @ m @ about, m, atol=SAME_PIXEL) for m in matrices)

    def matrices_of(self, source: Size) -> tuple[Array, Array]:
        """The matrices, (3, 3), that map rays to pixels of an upright image of a size, and to those of the result."""
        orientation = self.orientation_of(source)
        stored, turn = upright_size(source, orientation), np.eye(3)
        # A program that turns pictures as it reads them, as OpenCV does, calibrates upright ones.
        if self.fits(stored) or not self.fits(source):
            turn = upright_matrix(stored, orientation)
        else:
            stored = source
        fx, fy, cx, cy = self.camera_of(stored)
        sx, sy = self.scales(stored)
        camera = np.array([[fx, self.skew * sx, cx], [0, fy, cy], [0, 0, 1]])
        ideal = camera if self.ideal is None else np.diag([sx, sy, 1]) @ np.reshape(self.ideal, (3, 3))
        return turn @ camera, turn @ ideal

    def mapping(self, source: Size, target: Size) -> mappings.Mapping:
        model = LENS_MODELS[LensModel(self.model)]
        length = next(n for n in PADDED_COUNTS[self.model] if n >= len(self.coefficients))
        padded = (*self.coefficients, *[0.0] * (length - len(self.coefficients)))
        if self.distort:
            return mappings.Mapping(stored_points, undistorted_points(self.camera_of(source), padded, self.model))
        camera, ideal = self.matrices_of(source)
        if is_plain(camera) and is_plain(ideal):
            values = (matrix[at] for matrix in (camera, ideal) for at in CAMERA_PLACES)
            return mappings.Mapping(model.to_distorted, to_parameters((*values, *padded)))
        values = (*np.linalg.inv(ideal).flat, *camera[:2].flat, *padded)
        return mappings.Mapping(ThroughLens(model.to_distorted), to_parameters(values))

    def check(self) -> None:
        """Checks nothing: a lens fits every image."""

    def __str__(self) -> str:
        values = self.name or ",".join(f"{c:g}" for c in self.coefficients)
        rectified = ", rectified" if self.ideal else ""
        return f"lens distortion {values} {'applied' if self.distort else 'removed'}{rectified}"


def off_center(camera: Camera, size: Size) -> float:
    """How far the principal point of a camera is from the center of an image, as a share of its sides."""
    return max(abs(place / side - 0.5) for place, side in zip(camera[2:], size))


def is_plain(matrix: Array) -> bool:
    """Whether the matrix of a camera has only focal lengths and a principal point."""
    others = matrix - np.eye(3)
    for at in CAMERA_PLACES:
        others[at] = 0
    return not others.any()


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


# Calibrations: the files in which OpenCV, ROS and others describe a lens


LARGEST_FILE = 2**24  # bytes; a calibration with its views has a few thousand
MOST_NUMBERS = 64  # of a matrix that describes a camera
HALF_PIXEL = 0.5  # OpenCV has pixel centers at whole numbers
# What OpenCV's samples, ROS and others call these fields, whatever the case and the underscores.
CAMERA_FIELDS = ("camera_matrix", "K", "K1", "M", "M1", "intrinsics")
LENS_FIELDS = ("distortion_coefficients", "dist_coeffs", "dist_coeff", "distortion", "D", "D1", "dist")
RECTIFICATION_FIELDS = ("rectification_matrix", "R1", "R")
PROJECTION_FIELDS = ("projection_matrix", "P1", "P", "new_camera_matrix", "optimal_camera_matrix")
TRANSLATION_FIELDS, SECOND_CAMERA_FIELDS = ("T", "translation", "tvec"), ("M2", "K2")
WIDTH_FIELDS, HEIGHT_FIELDS = ("image_width", "width"), ("image_height", "height")
MODEL_FIELDS, FISHEYE_FIELDS = (
    ("distortion_model", "camera_model", "lens_model", "model_type", "model"),
    ("fisheye_model", "fisheye"),
)
MIRROR_FIELD = "xi"  # of the unified model, with a mirror before the lens
# What they call the models; a pinhole camera may have a lens of either.
BROWN_CONRADY = ("plumb_bob", "rational_polynomial", "brown_conrady", "radtan", "opencv", "full_opencv")
FISHEYE = ("fisheye", "equidistant", "opencv_fisheye", "kannala_brandt", "kannala_brandt4", "kannala_brandt8")
WITHOUT_MODEL = ("", "pinhole")
# What to do about more coefficients than a model has.
TOO_MANY = {
    LensModel.BROWN_CONRADY: "those of a thin prism and of a tilted sensor must be 0, so calibrate again without "
    "CALIB_THIN_PRISM_MODEL and CALIB_TILTED_MODEL",
    LensModel.FISHEYE: "is it of the other model?",
}
MODEL_NAMES = {LensModel.BROWN_CONRADY: BROWN_CONRADY, LensModel.FISHEYE: FISHEYE}
MODEL_OF_WORD = {name.replace("_", ""): model for model, names in MODEL_NAMES.items() for name in names}
LARGEST_SHEAR = 0.02  # of what still is a rotation, written with two digits


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
    """The lens that a file describes. A word about the lens that is not understood is an error.

    Args:
        path: a file in OpenCV's YAML or JSON.
        model: of the lens, where the file says nothing.
    """
    fields = read_fields(path)
    with errors_in(path):
        camera = matrix_of(fields, CAMERA_FIELDS, (9,))
        if camera is None:
            raise UserError(f"it has no numbers for the camera matrix, in a field such as {CAMERA_FIELDS[0]}")
        check_camera(camera, "camera matrix")
        coefficients = numbers(fields, LENS_FIELDS, "the coefficients of the lens")
        model = model_of(fields, LensModel(model))
        fx, skew, cx, _, fy, cy, *_ = camera.ravel().tolist()
        lens = Lens(
            fitting(coefficients, model),
            (fx, fy, cx + HALF_PIXEL, cy + HALF_PIXEL),
            model=model.value,
            size=size_of(fields),
            name=f"of {path.name}",
            skew=skew,
            ideal=ideal_of(fields, camera),
            of_sensor=True,
        )
    if first(fields, SECOND_CAMERA_FIELDS) is not None:
        warnings.warn(f"{path.name} has two cameras, of which the first is used", stacklevel=2)
    return lens


@contextlib.contextmanager
def errors_in(path: Path) -> Generator[None, None, None]:
    """Errors in what a file says, with its name."""
    try:
        yield
    except UserError as error:
        raise UserError(f"cannot use {path}: {error}") from error


def model_of(fields: Mapping[str, Any], default: LensModel) -> LensModel:
    """The model of the lens, by all fields that name one."""
    words = {name: str(value) for name in MODEL_FIELDS if (value := first(fields, (name,))) is not None}
    words |= {name: "fisheye" for name in FISHEYE_FIELDS if first(fields, (name,))}
    # Any other field may say so, as in `type: fisheye`, but for the name of a camera.
    words |= {name: str(value) for name, value in fields.items() if says_fisheye(value) and "name" not in str(name)}
    words |= {MIRROR_FIELD: "mei"} if first(fields, (MIRROR_FIELD,)) else {}
    found: dict[LensModel, str] = {}
    for name, said in words.items():
        if (plain := plain_word(said)) in WITHOUT_MODEL:
            continue
        if plain not in MODEL_OF_WORD:
            known = "; ".join(f"{model.value} ({', '.join(names)})" for model, names in MODEL_NAMES.items())
            raise UserError(
                f"its field {name} stands for the lens model {said!r}, and jaxtex has two: {known}; calibrate with one "
                "of them, or take the field out if it names no lens model"
            )
        found[MODEL_OF_WORD[plain]] = f"{name} {said}"
    if default is LensModel.FISHEYE and found:
        found[default] = "--model fisheye"
    if len(found) > 1:
        raise UserError(f"{' and '.join(found.values())} name two lens models; leave one out")
    return next(iter(found), default)


def says_fisheye(value: object) -> bool:
    return isinstance(value, str) and MODEL_OF_WORD.get(plain_word(value)) is LensModel.FISHEYE


def fitting(coefficients: tuple[float, ...], model: LensModel) -> tuple[float, ...]:
    """The coefficients that a model has, if those that it has not are 0."""
    lengths = LENS_MODELS[model].counts
    if len(coefficients) >= lengths[0] and not any(coefficients[lengths[-1] :]):
        return coefficients[: lengths[-1]]
    remedy = "write 0 for those that are missing"
    if len(coefficients) > lengths[-1]:
        remedy = TOO_MANY[model]
    listed = " or ".join(filter(None, (", ".join(map(str, lengths[:-1])), str(lengths[-1]))))
    raise UserError(
        f"it has {len(coefficients)} coefficients, and a lens of the model {model.value} has {listed}; {remedy}"
    )


def size_of(fields: Mapping[str, Any]) -> Size | None:
    """Width and height of the images of the calibration; `None` if they are not there, or 0."""
    width, height = sides = [first(fields, names) or 0 for names in (WIDTH_FIELDS, HEIGHT_FIELDS)]
    is_whole = all(isinstance(side, int | float) and side >= 0 and side % 1 == 0 for side in sides)
    if not is_whole or bool(width) != bool(height):
        raise UserError(f"the size of its images, {width} by {height}, is not two whole numbers")
    part, whole = first(fields, ("roi",)), {"x_offset": 0, "y_offset": 0, "width": width, "height": height}
    if isinstance(part, dict) and any(part.get(name, 0) not in (0, side) for name, side in whole.items()):
        raise UserError("its roi is a part of the images; use the calibration of whole images, with an roi of zeros")
    return (int(width), int(height)) if width and height else None


def ideal_of(fields: Mapping[str, Any], camera: Array) -> tuple[float, ...] | None:
    """The matrix from rays to pixels of the result, about the top left corner; `None` for that of the camera.

    Source: `cv2.initUndistortRectifyMap`, whose R turns rays, and whose P is the camera of the result.
    """
    # A rotation that comes with a translation leads to another camera.
    names = RECTIFICATION_FIELDS if first(fields, TRANSLATION_FIELDS) is None else RECTIFICATION_FIELDS[:-1]
    rotation, new = matrix_of(fields, names, (9,)), matrix_of(fields, PROJECTION_FIELDS, (9, 12))
    new = camera if new is None else new
    rotation = np.eye(3) if rotation is None else rotation
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > LARGEST_SHEAR or np.linalg.det(rotation) < 0:
        raise UserError("its rectification matrix is no rotation")
    check_camera(new, "projection matrix")
    if np.array_equal(new, camera) and np.array_equal(rotation, np.eye(3)):
        return None
    shift = np.array([[1, 0, HALF_PIXEL], [0, 1, HALF_PIXEL], [0, 0, 1]])
    return tuple((shift @ new @ rotation).ravel().tolist())


def matrix_of(fields: Mapping[str, Any], names: tuple[str, ...], lengths: tuple[int, ...]) -> Array | None:
    """A matrix of three rows, up to its third column.

    Args:
        lengths: how many numbers it may have.

    Returns:
        `None` if it is not there, or has only zeros, as in ROS before a calibration.
    """
    if first(fields, names) is None:
        return None
    meaning = f"the {names[0].replace('_', ' ')}"
    found = numbers(fields, names, meaning)
    if len(found) not in lengths:
        sizes = " or ".join(f"3 by {length // 3}" for length in lengths)
        raise UserError(f"{meaning} has {len(found)} elements, and is not {sizes}")
    return np.reshape(found, (3, -1))[:, :3] if any(found) else None


def check_camera(matrix: Array, meaning: str) -> None:
    """Checks the form of the matrix of a camera."""
    (fx, _, _), (a, fy, _), (*others, one) = matrix.tolist()
    if not (fx > 0 and fy > 0) or any((a, *others)) or one != 1:
        raise UserError(
            f"its {meaning} is not [[fx, skew, cx], [0, fy, cy], [0, 0, 1]] with focal lengths above 0; is it "
            "transposed?"
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
        fields = json.loads(text) if text.startswith("{") else read_yaml(without_directive(text))
        if not isinstance(fields, dict):
            raise UserError("it is not YAML or JSON with fields, as OpenCV writes it")
    return fields


def read_yaml(text: str) -> Any:
    """The only document of YAML that is not empty; that of a message of ROS ends like one before another."""
    documents = [found for found in yaml.load_all(text, CalibrationLoader) if found is not None]
    if len(documents) > 1:
        raise UserError(f"it holds {len(documents)} documents; leave one")
    return documents[0] if documents else None


def without_directive(text: str) -> str:
    """A text without the line %YAML:1.0, which OpenCV writes and YAML does not know."""
    return text.partition("\n")[2] if text.startswith("%YAML:") else text


def first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of several fields that there is, or `None`."""
    plain = {plain_word(str(name)): value for name, value in [*fields.items()][::-1]}
    return next((plain[word] for word in map(plain_word, names) if word in plain), None)


def plain_word(text: str) -> str:
    """A word in lower case, without what separates its parts."""
    return re.sub(r"[\s_-]", "", text.lower())


def numbers(fields: Mapping[str, Any], names: tuple[str, ...], meaning: str) -> tuple[float, ...]:
    """The elements of a matrix, by rows, or of a list."""
    value = first(fields, names)
    matrix: dict[str, Any] | None = value if isinstance(value, dict) else None
    try:
        found = tuple(itertools.islice(elements(value if matrix is None else matrix["data"]), MOST_NUMBERS))
        size = len(found) if matrix is None else int(matrix["rows"]) * int(matrix["cols"])
    except (TypeError, ValueError, KeyError, OverflowError):
        found, size = (math.nan,), 1
    if not found or not all(map(math.isfinite, found)):
        raise UserError(f"it has no numbers for {meaning}, in a field such as {names[0]}")
    if size != len(found):
        raise UserError(f"the matrix of {meaning} has {len(found)} elements, and its rows and cols say {size}")
    return found


def elements(value: Any) -> Iterator[float]:
    """The numbers of a list, or of a list of lists. Words are split, since a list may have no commas.

    YAML takes some numbers, such as 1e-5, for words too.
    """
    for part in value if isinstance(value, list) else [value]:
        for item in part if isinstance(part, list) else [part]:
            yield from map(float, re.split(r"[\s,]+", item.strip()) if isinstance(item, str) else [item])
