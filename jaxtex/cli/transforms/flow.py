"""A flow: the displacement from each pixel of the output to the point of the input that it reads."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ...warp.coordinate_functions import displaced
from ..errors import UserError, one_line
from ..pictures.kinds import open_regular
from ..pictures.limits import Size
from ..pictures.picture import Array
from .mappings import Field, Mapping, Transform


@dataclasses.dataclass(frozen=True)
class Flow(Transform):
    """The pixel of the output at (x, y) reads the input at (x + dx, y + dy).

    Attributes:
        name: of the file, for messages.
        displacements: of the pixels of the output.
    """

    name: str
    displacements: "Displacements"

    def mapping(self, source: Size, target: Size) -> Mapping:
        height, width = self.displacements.arrays[0].shape
        if target != (width, height):
            raise UserError(
                f"the flow has {width}x{height} pixels and the output {target[0]}x{target[1]}; "
                f"--size {width}x{height} gives the output the size of the flow"
            )
        return Mapping(displaced, self.displacements)

    def check(self) -> None:
        """Checks nothing: whether a flow fits depends on the size of the image."""

    def __str__(self) -> str:
        return f"displaced by {self.name}"


class Displacements(Field):
    """dx and dy in pixels, float32, each (height, width) of the output."""

    def __init__(self, *arrays: Array):
        super().__init__()
        self.arrays = arrays

    def of(self, rows: Array, columns: Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.asarray(array[np.ix_(rows, columns)]) for array in self.arrays)


def read_flow(path: Path) -> Flow:
    """Reads a flow from a NumPy file.

    Args:
        path: a file of shape (height, width, 2) and a floating dtype. A pixel with NaN reads outside the input.

    Raises:
        UserError: if the file cannot be read, or holds something else.
    """
    try:
        with open_regular(path) as file:
            # An object array would run code of the file.
            array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except UserError as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except Exception as error:  # NumPy does not document what a broken header raises
        raise UserError(f"cannot read {path}: it is not a complete NumPy file of numbers, {one_line(error)}") from error
    if array.dtype.kind != "f" or array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape:
        raise UserError(
            f"cannot use {path}: it holds {array.dtype} of shape {array.shape}, expected a floating dtype and shape "
            f"(height, width, 2), dx and dy in pixels"
        )
    with np.errstate(over="ignore"):
        dx, dy = np.moveaxis(array.astype(np.float32), -1, 0)
    known = ~(np.isnan(dx) | np.isnan(dy))
    return Flow(path.name, Displacements(*(np.where(known, d, np.float32(np.inf)) for d in (dx, dy))))
