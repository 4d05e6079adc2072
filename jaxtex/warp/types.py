"""The types of the arguments that warps share."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax.typing import ArrayLike
from numpy.typing import NDArray

from ..sampler import AddressModeLike

Arrays: TypeAlias = tuple[jax.Array, ...]
# Sizes, slowest axis first.
ShapeLike: TypeAlias = Sequence[int] | NDArray[np.integer]
# One address mode for all axes, or one for each, x first.
AddressLike: TypeAlias = AddressModeLike | Sequence[AddressModeLike]
# One array for each axis, x first.
Points2D: TypeAlias = tuple[ArrayLike, ArrayLike]
Points: TypeAlias = Points2D | tuple[ArrayLike, ArrayLike, ArrayLike]
# From the coordinates of pixels, x first, to as many coordinates; and the same with parameters after the coordinates.
CoordinateFunction: TypeAlias = Callable[..., Sequence[ArrayLike]]
GridFunction: TypeAlias = Callable[..., Arrays]
