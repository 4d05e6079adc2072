"""The shared parts of the layers: families of transforms, options and the read, colors as constants, and dtypes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .._checks.calls import check_function, in_native_order, leaves_of, public
from .._checks.numbers import as_float, as_integer
from .._checks.words import check_word
from .._jax.calls import typed_jit
from .._jax.versions import stack
from .._reads.arguments import converted
from ..sampler import FilterModeLike, Sampler
from ..warp import spatial_transform
from ..warp.options import AddressLike, ShapeLike, as_shape, check_shows_outside, resolve_sampler

Transform: TypeAlias = Literal["affine", "similarity", "attention", "translation"]


class Family(NamedTuple):
    """A family of transforms.

    Attributes:
        counts: the number of parameters, for each number of axes.
        theta: the matrix, from parameters and the spatial shape of the input.
    """

    counts: dict[int, int]
    theta: Callable[[jax.Array, Sequence[int]], jax.Array]


def identity(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The identity (..., N, N + 1), for each row of parameters."""
    n = len(input_shape)
    return jnp.broadcast_to(jnp.eye(n, n + 1, dtype=parameters.dtype), (*parameters.shape[:-1], n, n + 1))


def translation(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    return identity(parameters, input_shape).at[..., -1].set(parameters)


def attention(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The logarithm of a factor for all axes, and the shift."""
    linear = jnp.exp(parameters[..., :1, None]) * identity(parameters, input_shape)
    return linear.at[..., -1].set(parameters[..., 1:])


def similarity(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """A rotation and a scale in pixels of the input. The unit of an axis of theta is half of that side of the input."""
    height, width = input_shape
    a, b, x, y = jnp.unstack(parameters, axis=-1)
    rows = [1 + a, -b * (height / width), x], [b * (width / height), 1 + a, y]
    return stack([stack(row, -1) for row in rows], -2)


def affine(parameters: jax.Array, input_shape: Sequence[int]) -> jax.Array:
    """The difference from the identity, by rows."""
    start = identity(parameters, input_shape)
    return start + parameters.reshape(start.shape)


AXES = {2: "images", 3: "volumes"}
FAMILIES = {
    "translation": Family({2: 2, 3: 3}, translation),
    "attention": Family({2: 3, 3: 4}, attention),
    "similarity": Family({2: 4}, similarity),
    "affine": Family({2: 6, 3: 12}, affine),
}


def num_parameters(name: str, transform: str, ndim: int) -> int:
    """The number of parameters of a family, in the plane or in space.

    Args:
        name: of the public function, for errors.
    """
    check_word(name, "transform", transform, FAMILIES)
    counts = FAMILIES[transform].counts
    if ndim not in counts:
        raise ValueError(f"{name}: transform={transform!r} is for images, not for {AXES[ndim]}; use 'affine'.")
    return counts[ndim]


@public
def theta_of(parameters: ArrayLike, input_shape: ShapeLike, transform: Transform = "affine") -> jax.Array:
    """Returns the matrix of a spatial transformer from a few numbers; zeros give the identity.

    Args:
        parameters: ``(..., P)``, floating. A shift is in units of half the input's size, x before y.
        input_shape: the spatial shape of the input, ``(H, W)`` or ``(D, H, W)``.
        transform: the family of transforms:

            - ``"translation"``: the shift. P is 2, or 3 for volumes.
            - ``"attention"``: the logarithm of a factor, and the shift. The window is as large as the input where the
              factor is 1. P is 3, or 4 for volumes.
            - ``"similarity"``: a, b, and the shift. The window is read through ``[[1 + a, -b], [b, 1 + a]]`` in pixels,
              even if the input is not square. A positive b rotates the content counterclockwise, as displayed, and a
              positive a makes it smaller. For a rotation by t radians and an enlargement by s, use
              ``a = cos(t) / s - 1`` and ``b = sin(t) / s``. P is 4, for images only.
            - ``"affine"``: the difference from the identity matrix, row by row. P is 6, or 12 for volumes.

    Returns:
        ``theta``, ``(..., 2, 3)`` or ``(..., 3, 4)``, as `jaxtex.warp.spatial_transform` takes it: maps points of the
        output to points of the input. float64 if `parameters` is, else float32.

    Gradients: of any order, in forward and reverse mode, with respect to the parameters.

    Raises:
        ValueError: if the family is unknown, or the number of parameters or axes does not fit it.

    Source: M. Jaderberg, K. Simonyan, A. Zisserman and K. Kavukcuoglu, "Spatial Transformer Networks", 2015, which
        calls a transform by a factor and a shift "attention". Here the factor stays positive.

    Example:
        >>> import numpy as np
        >>> from jaxtex.layers import theta_of
        >>> theta_of(np.array([np.log(0.5), 0.25, 0.0]), (28, 28), "attention")
        Array([[0.5 , 0.  , 0.25],
               [0.  , 0.5 , 0.  ]], dtype=float32)
    """
    shape = as_shape("theta_of", "input_shape", input_shape)
    count = num_parameters("theta_of", transform, len(shape))
    numbers = as_float(converted("theta_of", "parameters", parameters))
    if numbers.shape[-1:] != (count,):
        raise ValueError(
            f"theta_of: parameters has shape {numbers.shape}, expected (..., {count}) for transform={transform!r} of "
            f"{AXES[len(shape)]}."
        )
    return matrix_of(numbers, shape, transform)


@typed_jit("shape", "transform")
def matrix_of(parameters: jax.Array, shape: tuple[int, ...], transform: Transform) -> jax.Array:
    """The matrix of a family, from checked parameters."""
    return FAMILIES[transform].theta(parameters, shape)


# Layers


class SpatialTransform:
    """What the layers of all libraries have in common: the options, and the read.

    `localization`, a function or a module, computes features; a linear layer makes parameters of them.
    """

    localization: Callable[..., jax.Array]
    output_shape: tuple[int, ...]
    transform: Transform
    sampler: Sampler
    border_color: float | tuple[float, ...] | None
    antialias: bool

    def _set_options(
        self,
        localization: Callable[..., jax.Array],
        num_features: int,
        output_shape: ShapeLike,
        transform: Transform,
        sampler: Sampler | None,
        filter_mode: FilterModeLike | None,
        address_mode: AddressLike | None,
        border_color: ArrayLike | None,
        antialias: bool,
    ) -> tuple[int, int]:
        """Checks and sets the options; returns the numbers of features and of parameters."""
        name = "SpatialTransformer"
        check_function(name, "localization", localization)
        self.localization = localization
        self.output_shape = as_shape(name, "output_shape", output_shape)
        count = num_parameters(name, transform, len(self.output_shape))
        self.transform = transform
        self.sampler = resolve_sampler(name, sampler, filter_mode, address_mode)
        check_shows_outside(name, self.sampler, border_color)
        self.border_color = constant_color(border_color)
        self.antialias = antialias
        return as_integer(name, "num_features", num_features, 1), count

    def _read(self, images: jax.Array, theta: jax.Array) -> jax.Array:
        """The output, of images whose channels come last."""
        color = cast(Any, self.border_color)
        return spatial_transform(
            images, theta, self.output_shape, self.sampler, border_color=color, antialias=self.antialias
        )


def constant_color(color: ArrayLike | None) -> float | tuple[float, ...] | None:
    """A border color as Python numbers, which are hashable and are not parameters of a layer."""
    if color is None:
        return None
    if any(isinstance(leaf, Tracer) for leaf in leaves_of(color)):
        raise TypeError(
            "SpatialTransformer: border_color is traced, expected numbers, which are constants of the layer."
        )
    values = np.asarray(color, np.float64)
    if values.ndim > 1:
        raise ValueError(
            f"SpatialTransformer: border_color has shape {values.shape}, expected a number, or (C,), one number for "
            f"each channel."
        )
    return float(values) if values.ndim == 0 else tuple(float(value) for value in values)


def widened(values: jax.Array, parameters: Iterable[jax.Array]) -> jax.Array:
    """Floating values in the narrowest dtype of the parameters, if all of these are wider.

    Some layers do not combine different dtypes, and under strict promotion none does.
    """
    values = cast(jax.Array, in_native_order(values))
    dtypes: list[np.dtype[Any]] = [a.dtype for a in parameters if jnp.issubdtype(a.dtype, jnp.floating)]
    narrowest = min(dtypes, key=lambda dtype: dtype.itemsize, default=values.dtype)
    return values.astype(narrowest) if values.dtype.itemsize < narrowest.itemsize else values
