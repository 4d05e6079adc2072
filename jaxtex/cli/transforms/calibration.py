"""Calibrations of cameras, as OpenCV's programs write them, as lenses."""

# pyright: strict

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...warp.lens_models import LensModelLike
from ..errors import UserError
from .file_storage import Matrix, read_storage
from .lens import Lens

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


def read_calibration(path: Path, model: LensModelLike) -> Lens:
    """The lens that a file describes.

    Args:
        path: a file in OpenCV's YAML or JSON.
        model: of the lens, where the file says nothing.

    Raises:
        UserError: if the file cannot be read, or does not describe a camera.
    """
    fields = read_storage(path)
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


def first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of several fields that there is, or `None`."""
    return next((fields[name] for name in names if name in fields), None)


def numbers(path: Path, fields: Mapping[str, Any], names: tuple[str, ...], meaning: str) -> tuple[float, ...]:
    """The elements of a matrix or a list."""
    value = first(fields, names)
    found = value.data if isinstance(value, Matrix) else flattened(value)
    if found is None or not all(map(math.isfinite, found)):
        raise UserError(f"cannot use {path}: it has no numbers for {meaning}, in a field such as {names[0]}")
    return found


def flattened(value: Any) -> tuple[float, ...] | None:
    """The numbers of a list, or of a list of lists; `None` if it holds anything else."""
    if isinstance(value, int | float):
        return (float(value),)
    if not isinstance(value, list):
        return None
    parts = [flattened(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    return None if None in parts else tuple(n for part in parts if part is not None for n in part)
