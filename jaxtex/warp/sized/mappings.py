"""The mapping from output to input points that a warp of an image of any size is given.

A mapping is a static coordinate function, and its parameters, arrays.

Points are in pixels: the origin is the top left corner, x points right, y points down, pixel centers are at +0.5.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..coordinate_functions import is_affine
from ..streaming import Box

Array = npt.NDArray[Any]
Size = tuple[int, int]  # width and height
# Every pixel takes as many reads as the longest footprint, so a few very long ones would be expensive.
MAX_ANISOTROPY = 8


class Device(Protocol):
    """A device of JAX, whose class type checkers do not know."""

    id: int
    platform: str
    device_kind: str

    def memory_stats(self) -> dict[str, int] | None: ...


class PerPixelParameters:
    """Parameters of a coordinate function that differ from pixel to pixel of the output.

    Args:
        of: returns the parameters of the pixels in some rows and columns, int32: (rows, columns) each.
        keeps: whether the tiles of outputs of one size are kept, since all images of a folder may share them.
    """

    def __init__(self, of: Callable[[Array, Array], tuple[Array | jax.Array, ...]], keeps: bool = True) -> None:
        self.of, self.keeps = of, keeps
        self.size: Size = (0, 0)
        self.kept: dict[Any, tuple[Array | jax.Array, ...]] = {}

    @classmethod
    def of_arrays(cls, arrays: Sequence[Array], keeps: bool = True) -> "PerPixelParameters":
        """Arrays of the shape of the output; numbers, (1, 1), may be among them."""
        return cls(lambda rows, columns: tuple(a[np.ix_(rows, columns)] if a.size > 1 else a for a in arrays), keeps)

    def at(self, place: Box, size: Size, margin: int) -> tuple[Array | jax.Array, ...]:
        """The parameters of a tile and of some more pixels on each side.

        Pixels beyond the output have those of the nearest pixel in it.

        Args:
            place: of the tile.
            size: width and height of the output.
        """
        if not self.keeps:
            return self.of(*pixel_numbers(place, size, margin))
        if size != self.size:
            self.size, self.kept = size, {}
        kept, key = self.kept, (place, margin)
        if key not in kept:
            kept[key] = tuple(map(jnp.asarray, self.of(*pixel_numbers(place, size, margin))))
        return kept[key]


def pixel_numbers(place: Box, size: Size, margin: int) -> tuple[Array, Array]:
    """The rows and the columns of a tile and of some more pixels on each side, within the output."""
    rows, columns = (
        np.clip(np.arange(first - margin, first + n + margin, dtype=np.int32), 0, most - 1, dtype=np.int32)
        for first, n, most in zip(*place, size[::-1])
    )
    return rows, columns


class Mapping(NamedTuple):
    """A map from output to input points.

    Attributes:
        function: takes the coordinates of pixel centers, then the parameters, as in `jaxtex.warp.coordinate_functions`.
        parameters: float32 arrays of shape (1, 1), or those that differ from pixel to pixel.
        max_anisotropy: the most reads along the longer side of a pixel's footprint, in an antialiased warp.
    """

    function: Callable[..., tuple[Any, ...]]
    parameters: tuple[Array | jax.Array, ...] | PerPixelParameters
    max_anisotropy: int = MAX_ANISOTROPY

    @property
    def uncached(self) -> "Mapping":
        """The mapping for an output larger than memory, of whose parameters nothing is kept."""
        if not isinstance(self.parameters, PerPixelParameters):
            return self
        return self._replace(parameters=PerPixelParameters(self.parameters.of, keeps=False))

    @property
    def differs(self) -> bool:
        """Whether the footprints of pixels differ."""
        return not is_affine(self.function)
