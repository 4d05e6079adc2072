"""The arguments that all warps share: shapes, matrices, and the options of a read, checked and resolved."""

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from numpy.typing import NDArray

from .._checks.calls import as_static
from .._checks.numbers import as_array, as_float, at_full_width, is_integer, is_sequence
from .._checks.texels import check_sizes
from .._checks.words import shown
from .._jax.shapes import broadcast_shapes
from .._reads.arguments import check_known_dtype
from .._tables.address_rules import ADDRESS_RULES
from .._tables.filter_kernels import POINT, FilterKernel
from .._tables.storage_formats import sum_dtype
from ..modes import AddressMode, FilterMode, choose
from ..sampler import AddressModeLike, FilterModeLike, Sampler, mode_of

# Sizes, slowest axis first.
ShapeLike: TypeAlias = Sequence[int] | NDArray[np.integer]
# One address mode for all axes, or one for each, x first.
AddressLike: TypeAlias = AddressModeLike | Sequence[AddressModeLike]
AddressModes: TypeAlias = AddressMode | tuple[AddressMode, ...]
# One array for each axis, x first.
Points2D: TypeAlias = tuple[ArrayLike, ArrayLike]
Points: TypeAlias = Points2D | tuple[ArrayLike, ArrayLike, ArrayLike]

SPATIAL = {2: "(H, W)", 3: "(D, H, W)"}
AXES = {1: "(..., W, C)", 2: "(..., H, W, C)", 3: "(..., D, H, W, C)"}


def spatial_shape(
    name: str,
    image: ArrayLike,
    output_shape: ShapeLike | None,
    ndim: int | None = None,
    argument: str = "image",
    source: str = "",
) -> tuple[int, ...]:
    """The spatial shape of the output: the one given, or that of the image.

    Args:
        ndim: the number of spatial axes; ``None`` is 2 or 3, as many as `output_shape` has.
        argument: the name of the image.
        source: the argument that sets `ndim`, if one does.
    """
    of_image, shape = np.shape(image), ()
    if output_shape is not None:
        shape = as_shape(name, "output_shape", output_shape, (2, 3) if ndim is None else (ndim,))
        if ndim is None and len(shape) == 3 == len(of_image):
            raise ValueError(
                f"{name}: output_shape is {shape}, the sizes (D, H, W) of a volume, but {argument} has shape "
                f"{of_image}, (H, W, C); leave out the channels, output_shape={shape[:2]}."
            )
    count = ndim or len(shape) or 2
    check_axes(name, argument, of_image, count, source)
    check_pixels(name, argument, of_image, count)
    return shape or of_image[-1 - count : -1]


def check_axes(name: str, argument: str, shape: tuple[int, ...], ndim: int, source: str = "") -> None:
    """Checks that an image has `ndim` spatial axes and channels; see `spatial_shape`."""
    if len(shape) <= ndim:
        remedy = f"add an axis for a single channel, {argument}[..., None]"
        if source and len(shape) == ndim == 3:
            remedy = f"if it is a volume of one channel, {remedy}; if it is an image, pass {source} of two dimensions"
        raise ValueError(
            f"{name}: {argument} has shape {shape}, expected {AXES[ndim]}{f' for this {source}' if source else ''}; "
            f"{remedy}."
        )
    check_sizes(f"{name}: {argument} has shape {shape}", shape[-1 - ndim :])


def check_pixels(name: str, argument: str, shape: tuple[int, ...], ndim: int) -> None:
    """Checks that an image has pixels."""
    if 0 in shape[-1 - ndim : -1]:
        raise ValueError(f"{name}: {argument} has shape {shape}, expected {AXES[ndim]} of one pixel or more.")


def as_shape(
    name: str, argument: str, sizes: Any, ndims: Sequence[int] = (2, 3), axes: Mapping[int, str] = SPATIAL
) -> tuple[int, ...]:
    """A spatial shape, slowest axis first, whose length is one of `ndims`; `axes` names those of a length."""
    shape = as_static(name, argument, sizes)
    check_sizes(f"{name}: {argument} is {shown(shape)}", shape if is_sequence(shape) else ())
    if not is_shape(shape) or len(shape) not in ndims:
        expected = " or ".join(axes[ndim] for ndim in ndims)
        remedy = shape_remedy(argument, shape, ndims)
        raise ValueError(f"{name}: {argument} is {shown(shape)}, expected {expected}, sizes of at least 1{remedy}.")
    return tuple(map(int, shape))


def shape_remedy(argument: str, shape: Any, ndims: Sequence[int]) -> str:
    """A remedy for a wrong shape, if one is known."""
    option = mode_of(shape)
    if option is not None:
        return f"; pass {option}={shape!r}"
    if is_shape((shape,)):
        return f"; pass {argument}={(shape,) * min(ndims)!r}"
    if is_shape(shape) and len(shape) == max(ndims) + 1:
        return f"; leave out the channels, {argument}={shape[:-1]!r}"
    return ""


def is_shape(value: Any) -> bool:
    """Whether a value is a tuple of whole numbers of at least 1."""
    if not isinstance(value, tuple):
        return False
    whole = (is_integer(int(n) if isinstance(n, float) and n % 1 == 0 else n, 1) for n in cast(tuple[Any, ...], value))
    return all(whole)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that these shapes broadcast to; `None` if they do not."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        return None


def as_floats(*values: ArrayLike, like: Any = None) -> tuple[jax.Array, ...]:
    """Numbers as floating arrays of one dtype: float64 if an array among them is, or an image `like`, else float32."""
    arrays = [jnp.asarray(at_full_width("", "", v, exact=False)) for v in values]
    dtypes = [a.dtype for a in arrays if not jax.typeof(a).weak_type]
    dtype = sum_dtype(*dtypes, *(() if like is None else (dtype_of(like),)))
    return tuple(a.astype(dtype) for a in arrays)


def dtype_of(image: Any) -> np.dtype[Any]:
    """The dtype of an array, before JAX narrows it to 32 bits, or of numbers."""
    return np.dtype(jax.dtypes.canonicalize_dtype(as_array(image).dtype))


def as_matrix(
    name: str,
    matrix: ArrayLike,
    shapes: Sequence[tuple[int, int]],
    argument: str = "matrix",
    instead: Mapping[int, str] = MappingProxyType({}),
) -> jax.Array:
    """Matrices of one of these shapes, as floating numbers.

    Args:
        instead: what else to do with matrices that have so many rows more than expected.
    """
    array = as_float(matrix)
    rows, columns = array.shape[-2:] if array.ndim > 1 else (0, 0)
    if (rows, columns) in shapes:
        return array
    listed = " or ".join(f"(..., {m}, {n})" for m, n in shapes)
    more = next((k for k in (1, -1) if (rows - k, columns) in shapes), 0)
    remedies = [f"leave the last row of an affine matrix out, {argument}[..., :{rows - 1}, :]"] if more == 1 else []
    remedy = "; ".join(["", *remedies, *([instead[more]] if more in instead else [])])
    raise ValueError(f"{name}: {argument} has shape {array.shape}, expected {listed}{remedy}.")


# How an image is read


STATIC = {"static": True}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """How to read an image, and the dtype of the result. Programs take the border color as an operand.

    Attributes:
        sampler: with the filter mode and the address modes of the read. Its `normalized_coords` is ignored.
        border_color: in units of the image's values, a scalar or (C,); ``None`` is zero.
        antialias: whether to smooth the image as far as the output shrinks it.
        dtype: of the result; ``None`` is the dtype of the image.
        area: whether a resize takes the mean over footprints, in place of the sampler's filter.
        planar: whether channels came first, and the result's do, as in `ReadSpec`.
        kept_axes: the numbers of axes, slowest first, along which each pixel shows its own texel, unfiltered.
        frame: whether the border color is blended in outside a picture under every address mode; see `sized.pixels`.
        linear_light: whether a picture's linear light is blended, not its codes.
        alpha: whether the last of a picture's 2 or 4 channels is an alpha, which weights the colors.
    """

    sampler: Sampler = dataclasses.field(metadata=STATIC)
    border_color: ArrayLike | None = None
    antialias: bool = dataclasses.field(default=False, metadata=STATIC)
    dtype: np.dtype[Any] | None = dataclasses.field(default=None, metadata=STATIC)
    area: bool = dataclasses.field(default=False, metadata=STATIC)
    planar: bool = dataclasses.field(default=False, metadata=STATIC)
    kept_axes: tuple[int, ...] = dataclasses.field(default=(), metadata=STATIC)
    frame: bool = dataclasses.field(default=False, metadata=STATIC)
    linear_light: bool = dataclasses.field(default=False, metadata=STATIC)
    alpha: bool = dataclasses.field(default=False, metadata=STATIC)

    def replace(self, **changes: Any) -> "ReadOptions":
        """A copy of these options with changes."""
        return dataclasses.replace(self, **changes)

    def with_sampler(self, **changes: Any) -> "ReadOptions":
        """A copy of these options with changes of the sampler."""
        return self.replace(sampler=dataclasses.replace(self.sampler, **changes))

    @property
    def kernel(self) -> FilterKernel:
        """The filter."""
        return POINT if self.area else self.sampler.kernel

    @property
    def result(self) -> np.dtype[Any]:
        """The dtype of the result, where it is known."""
        assert self.dtype is not None
        return self.dtype

    @property
    def is_point(self) -> bool:
        """Whether texels are returned as stored."""
        return self.sampler.filter_mode == "point"

    def has_alpha(self, channels: int) -> bool:
        """Whether a picture of so many channels has an alpha that weights its colors."""
        return self.alpha and channels in (2, 4) and not self.is_point

    def has_numbers(self, channels: int) -> bool:
        """Whether texels of so many channels are decoded before the read, not in it."""
        return self.has_alpha(channels) or (self.linear_light and not self.is_point)


def read_options(
    name: str,
    sampler: Sampler | None,
    filter_mode: FilterModeLike | None,
    address_mode: AddressLike | None,
    border_color: ArrayLike | None,
    antialias: bool,
    dtype: DTypeLike | None,
    default_address: AddressModes = AddressMode.BORDER,
) -> ReadOptions:
    """The options of a public function, from its arguments.

    Args:
        name: of the public function, for errors.
        default_address: the address mode if neither `address_mode` nor `sampler` sets one.
    """
    how = resolve_sampler(name, sampler, filter_mode, address_mode, default_address)
    check_shows_outside(name, how, border_color)
    border_color = at_full_width(name, "border_color", border_color, exact=False)
    return ReadOptions(how, border_color, antialias, result_dtype(name, dtype))


def result_dtype(name: str, dtype: DTypeLike | None) -> np.dtype[Any] | None:
    """The dtype that a caller asks for: of floating numbers, integers or bool."""
    found = None if dtype is None else check_known_dtype(name, dtype)
    if found is not None and not any(jnp.issubdtype(found, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise TypeError(f"{name}: dtype is {found}, expected a dtype of floating numbers, integers or bool.")
    return found


def check_shows_outside(name: str, sampler: Sampler, color: Any, argument: str = "border_color") -> None:
    """Checks that a given border color can be seen under the address modes of a resolved sampler."""
    modes = sampler.address_mode if isinstance(sampler.address_mode, tuple) else (sampler.address_mode,)
    rules = [ADDRESS_RULES[AddressMode(mode)] for mode in modes if mode is not None]
    if color is not None and not any(rule.has_outside for rule in rules):
        named = ", ".join(repr(mode) for mode in dict.fromkeys(rule.name for rule in rules))
        raise ValueError(
            f"{name}: {argument} is given, but the address mode {named} has no outside; leave {argument} out, or use "
            "the address mode 'border'."
        )


def resolve_sampler(
    name: str,
    sampler: Sampler | None,
    filter_mode: FilterModeLike | None,
    address_mode: AddressLike | None,
    default_address: AddressModes = AddressMode.BORDER,
) -> Sampler:
    """The sampler, with the modes that arguments name.

    Modes that neither names are `default_address` and linear.

    Raises:
        ValueError: if an argument contradicts the sampler, or a mode is unknown or does not fit the other options.
    """
    sampler = sampler or Sampler()
    filtered, addressed = sampler.filter, sampler.address_mode
    if filter_mode is not None:
        filtered = choose(name, "filter_mode", filter_mode, FilterMode)
        if sampler.filter_mode not in (None, filtered):
            raise ValueError(contradiction(name, "filter_mode", filter_mode, sampler.filter))
    if address_mode is not None:
        addressed = address_modes(name, address_mode)
        if sampler.address_mode not in (None, addressed):
            raise ValueError(contradiction(name, "address_mode", address_mode, sampler.address_mode))
    if addressed is None:
        addressed = default_address
    try:
        return dataclasses.replace(sampler, filter_mode=filtered, address_mode=addressed)
    except ValueError as error:  # checks the modes together with the other options
        raise ValueError(f"{name}: {str(error).removeprefix('Sampler: ')}") from None


def address_modes(name: str, address_mode: Any) -> AddressModes:
    """The address mode that `address_mode` names, or one for each axis."""
    if isinstance(address_mode, tuple | list):
        return tuple(choose(name, "address_mode", mode, AddressMode) for mode in cast(list[Any], address_mode))
    return choose(name, "address_mode", address_mode, AddressMode)


def contradiction(name: str, argument: str, value: Any, set_to: Any, field: str | None = None) -> str:
    """The error of an argument that differs from a field of the sampler, by default the field of its name."""
    field = field or argument
    shown = tuple(map(str, cast(tuple[Any, ...], set_to))) if isinstance(set_to, tuple) else str(set_to)
    return (
        f"{name}: {argument} is {value!r}, but sampler has {field}={shown!r}; leave {argument} out, or make the "
        f"sampler without {field}."
    )
