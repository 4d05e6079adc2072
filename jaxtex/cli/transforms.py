"""The transform that the options describe."""

import argparse

from .affine import Matrix, Parts
from .flow import read_flow
from .grammar import PARTS
from .lens import Lens
from .mappings import Transform
from .perspective import Perspective

# How each option that is the whole transform becomes one, from its value and the camera.
MAKERS = {
    "matrix": lambda values, _: Matrix(values),
    "perspective": lambda pairs, _: Perspective(pairs),
    "lens": lambda values, camera: Lens(values, camera),
    "distort": lambda values, camera: Lens(values, camera, apply=True),
    "flow": lambda path, _: read_flow(path),
}


def transform_of(options: argparse.Namespace) -> Transform:
    """The one transform, or its parts.

    Raises:
        UserError: if it needs a file that cannot be used.
    """
    for name, make in MAKERS.items():
        if (value := getattr(options, name)) is not None:
            return make(value, options.camera)
    parts = {name: getattr(options, name) for name in PARTS}
    return Parts(**{name: value for name, value in parts.items() if value is not None})
