"""A flow: how far from each pixel of the output its origin in the input lies."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ..warp.grids import displaced
from .errors import UserError, one_line
from .mappings import Mapping, Size, Transform


@dataclasses.dataclass(frozen=True)
class Flow(Transform):
    """The output pixel at (x, y) reads the input at (x + dx, y + dy).

    Attributes:
        name: of the file, for messages.
        steps: dx and dy, float32, each (height, width) of the output; on the device, where every image finds them.
    """

    name: str
    steps: tuple[jax.Array, ...]

    def mapping(self, source: Size, target: Size) -> Mapping:
        height, width = self.steps[0].shape
        if target != (width, height):
            raise UserError(
                f"the flow has {width}x{height} pixels and the output {target[0]}x{target[1]}; "
                f"--size {width}x{height} makes an output of the flow's size"
            )
        return Mapping(displaced, self.steps)

    def check(self) -> None:
        """A flow fits images of its size."""

    def __str__(self) -> str:
        return f"moved along {self.name}"


def read_flow(path: Path) -> Flow:
    """The flow of a NumPy file, (height, width, 2), where NaN means that nothing is known: that reads outside.

    Raises:
        UserError: if the file cannot be read, or holds something else.
    """
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)  # an object array could run code
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # what a broken header raises is not told
        raise UserError(f"cannot read {path}: it is no whole NumPy file of numbers, {one_line(error)}") from error
    if array.dtype.kind != "f" or array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape:
        raise UserError(
            f"cannot use {path}: it holds {array.dtype} of shape {array.shape}, expected floating numbers of shape "
            f"(height, width, 2), dx and dy in pixels"
        )
    with np.errstate(over="ignore"):
        dx, dy = np.moveaxis(array.astype(np.float32), -1, 0)
    known = ~(np.isnan(dx) | np.isnan(dy))
    return Flow(path.name, tuple(jnp.asarray(np.where(known, d, np.float32(np.inf))) for d in (dx, dy)))
