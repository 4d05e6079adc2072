"""The transform that the options describe."""

# pyright: strict

from collections.abc import Callable
from typing import Any

from ..grammar.option_groups import AFFINE_PARTS, Options
from .affine import AffineMatrix, AffineParts
from .calibration import read_calibration
from .flow import read_flow
from .lens import Lens
from .mappings import Transform
from .perspective import Perspective
from .resizing import Resize

# How the value of each whole transform's option, and the other options, become a transform.
BUILDERS: dict[str, Callable[[Any, Options], Transform]] = {
    "matrix": lambda elements, _: AffineMatrix(tuple(elements)),
    "perspective": lambda pairs, _: Perspective(tuple(pairs)),
    "lens": lambda coefficients, options: Lens(coefficients, options.camera, model=options.model),
    "distort": lambda coefficients, options: Lens(coefficients, options.camera, distort=True, model=options.model),
    "calibration": lambda path, options: read_calibration(path, options.model),
    "flow": lambda path, _: read_flow(path),
}


def build_transform(options: Options) -> Transform:
    """The whole transform that is given, or the affine one from its parts.

    Raises:
        UserError: if a file that the transform needs cannot be used.
    """
    for name, build in BUILDERS.items():
        if (value := getattr(options, name)) is not None:
            return build(value, options)
    if options.command == "resize":
        return Resize(options.scale or 1.0, options.fit)
    parts = {name: value for name in AFFINE_PARTS if (value := getattr(options, name)) is not None}
    return AffineParts(**parts, expand=options.expand, crop=options.crop)
