"""The transform that the options describe."""

# pyright: strict

from collections.abc import Callable
from typing import Any

from .affine import AffineMatrix, AffineParts
from .flow import read_flow
from .grammar import AFFINE_PARTS, Options
from .lens import Camera, Lens
from .mappings import Transform
from .perspective import Perspective

# How the value of each whole transform's option, and the camera, become a transform.
BUILDERS: dict[str, Callable[[Any, Camera | None], Transform]] = {
    "matrix": lambda elements, _: AffineMatrix(tuple(elements)),
    "perspective": lambda pairs, _: Perspective(tuple(pairs)),
    "lens": lambda coefficients, camera: Lens(coefficients, camera),
    "distort": lambda coefficients, camera: Lens(coefficients, camera, distort=True),
    "flow": lambda path, _: read_flow(path),
}


def build_transform(options: Options) -> Transform:
    """The whole transform that is given, or the affine one from its parts.

    Raises:
        UserError: if a file that the transform needs cannot be used.
    """
    for name, build in BUILDERS.items():
        if (value := getattr(options, name)) is not None:
            return build(value, options.camera)
    parts = {name: value for name in AFFINE_PARTS if (value := getattr(options, name)) is not None}
    return AffineParts(**parts)
