"""Where the output's pixels come from: a coordinate function, which is static, and its parameters, which are arrays.

Points are in pixels: the origin is the top left corner, x points right, y down, pixel centres are at +0.5.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

Size = tuple[int, int]

# The most reads along a footprint: every pixel takes as many, so a few very long ones must not set the price of all.
MOST_READS = 8


class Mapping(NamedTuple):
    """A map from output to input points.

    Attributes:
        function: as in `jaxtex.warp.grids`, of the coordinates of pixels and of the parameters.
        parameters: float32 arrays, (1, 1), or (height, width) of the output.
        reads: how many reads the longer side of a pixel's footprint may take, where it is wanted smooth.
    """

    function: Callable[..., tuple[Any, ...]]
    parameters: tuple[np.ndarray | jax.Array, ...]
    reads: int = MOST_READS


class Transform(abc.ABC):
    """What the options ask for, before the size of an image is known; as a `str` it is told to the user."""

    @abc.abstractmethod
    def mapping(self, source: Size, target: Size) -> Mapping:
        """The map for an input and an output of these widths and heights.

        Raises:
            UserError: if there is no such map.
        """

    def check(self) -> None:
        """What would be wrong with every image is said once, not once an image.

        Raises:
            UserError: if there is no such map for any image.
        """
        self.mapping((1, 1), (1, 1))


def numbers(values: Any) -> tuple[np.ndarray, ...]:
    """The elements of an array, by rows, as parameters."""
    return tuple(np.asarray(values, np.float32).reshape(-1, 1, 1))
