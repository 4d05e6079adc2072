"""Warps and resizes, built once, for images of any sizes."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from numpy.typing import NDArray

from ..._checks.calls import public
from ..._checks.numbers import as_float
from ..._checks.words import described
from ...modes import Arithmetic, ReadMode
from ...sampler import FilterModeLike, ResizeFilterLike, Sampler
from ..coordinate_functions import CoordinateFunction, GridFunction, OfCaller, check_is_elementwise, scaled
from ..images import check_has_values, check_image, check_reads
from ..options import AddressLike, ReadOptions, ShapeLike, read_options, spatial_shape
from ..resizing import resize_options
from ..streaming import ahead
from .image import ImageWarp, inner, whole
from .mappings import Array, Device, Mapping, PerPixelParameters

DTYPES = ("uint8", "uint16", "float32")
# How many tiles the device computes ahead.
PENDING = 2


class SizedWarp:
    """A warp by a coordinate function, built once, for images of any sizes, as in a server or a data loader.

    `resample` compiles a program for each size of image and output. Here sizes are operands: images of all sizes up to
    4 million pixels share at most six programs (and more for sides of a single pixel).

    It takes and returns NumPy arrays, and does not run under `jax.jit` or `jax.vmap`.

    Args:
        function: ``function(x, y, *parameters)``, as in `resample` with `parameters`: elementwise, and hashed by JAX.
            Define it once, at the top level of a module.
        sampler, filter_mode, address_mode, border_color, antialias, dtype: as in `resample`. The sampler reads
            elements, and in the float arithmetic.

    Gradients: none; results are NumPy arrays. For gradients, call `resample`.

    Raises:
        ValueError: if options contradict each other, or the sampler has ``read_mode="normalized_float"`` or
            ``arithmetic="hardware"``.
        TypeError: if an argument has the wrong type.

    Example:
        >>> import numpy as np, jaxtex as jt
        >>> def moved(x, y, right):
        ...     return x - right, y
        >>> warper = jt.warp.SizedWarp(moved, address_mode="wrap")
        >>> [warper(np.arange(n, dtype=np.uint8)[None, :, None], (1,))[0, :, 0].tolist() for n in (3, 5)]
        [[2, 0, 1], [4, 0, 1, 2, 3]]
    """

    @public(called="SizedWarp")
    def __init__(
        self,
        function: CoordinateFunction,
        sampler: Sampler | None = None,
        *,
        filter_mode: FilterModeLike | None = None,
        address_mode: AddressLike | None = None,
        border_color: ArrayLike | None = None,
        antialias: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        name = "SizedWarp"
        options = read_options(name, sampler, filter_mode, address_mode, border_color, antialias, dtype)
        self._function = function
        self._reads = SizedReads.of(name, OfCaller(function), options)

    @public(called="SizedWarp")
    def __call__(
        self, image: ArrayLike, parameters: Sequence[ArrayLike] = (), output_shape: ShapeLike | None = None
    ) -> NDArray[Any]:
        """The warped image.

        Args:
            image: ``(H, W, C)`` of uint8, uint16 or float32.
            parameters: the further arguments of `function`: numbers, or arrays of `output_shape` with a number for each
                output pixel.
            output_shape: ``(H, W)``; by default that of the image.

        Returns:
            ``(*output_shape, C)``: that of `resample`, up to the rounding of float32.

        Raises:
            ValueError: if a shape or a dtype does not fit, or `function` is not elementwise.
            TypeError: if the image is traced.
        """
        return whole(*self._started(image, parameters, output_shape))

    @public(called="SizedWarp")
    def tiles(
        self, image: ArrayLike, parameters: Sequence[ArrayLike] = (), output_shape: ShapeLike | None = None
    ) -> Iterator[tuple[tuple[slice, slice], NDArray[Any]]]:
        """The warped image, tile by tile: pairs ``(slices, pixels)``, as in `resample_tiles`.

        Args:
            image, parameters, output_shape: as in a call.

        Returns:
            An iterator. The whole image and few tiles are in memory; `resample_tiles` warps larger images.

        Raises:
            ValueError: as in a call.
        """
        return self._started(image, parameters, output_shape)[0]

    def _started(self, image: Any, parameters: Any, output_shape: Any) -> "Started":
        reads = self._reads
        pixels = reads.checked(image)
        shape = cast(tuple[int, int], spatial_shape(reads.name, pixels, output_shape, 2))
        arrays = [parameter_of(reads.name, k, p, shape) for k, p in enumerate(parameters)]
        check_is_elementwise(reads.name, self._function, 2, [jnp.zeros((1, 1), jnp.float32)] * len(arrays))
        return reads.started(pixels, arrays, shape)


class SizedResize:
    """A `resize`, built once, for images of any sizes; see `SizedWarp`.

    Args:
        sampler, filter_mode, address_mode, antialias, dtype: as in `resize`. The sampler reads elements, and in the
            float arithmetic.

    Gradients: none; results are NumPy arrays. For gradients, call `resize`.

    Raises:
        ValueError: as in `SizedWarp`, or if `filter_mode` does not fit the other options.
        TypeError: if an argument has the wrong type.

    Example:
        >>> import numpy as np, jaxtex as jt
        >>> resizer = jt.warp.SizedResize(filter_mode="area")
        >>> [resizer(np.full((n, n, 3), 7, np.uint8), (2, n // 2)).shape for n in (9, 100)]
        [(2, 4, 3), (2, 50, 3)]
    """

    @public(called="SizedResize")
    def __init__(
        self,
        sampler: Sampler | None = None,
        *,
        filter_mode: ResizeFilterLike | None = None,
        address_mode: AddressLike | None = None,
        antialias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        name = "SizedResize"
        options = resize_options(sampler, filter_mode, address_mode, None, antialias, dtype, name)
        self._reads = SizedReads.of(name, scaled, options)

    @public(called="SizedResize")
    def __call__(self, image: ArrayLike, output_shape: ShapeLike) -> NDArray[Any]:
        """The resized image.

        Args:
            image: ``(H, W, C)`` of uint8, uint16 or float32.
            output_shape: ``(H, W)``.

        Returns:
            ``(*output_shape, C)``: that of `resize`, up to the rounding of float32.

        Raises:
            ValueError: if a shape or a dtype does not fit.
            TypeError: if the image is traced.
        """
        return whole(*self._started(image, output_shape))

    @public(called="SizedResize")
    def tiles(self, image: ArrayLike, output_shape: ShapeLike) -> Iterator[tuple[tuple[slice, slice], NDArray[Any]]]:
        """The resized image, tile by tile: pairs ``(slices, pixels)``, as in `resample_tiles`.

        Args:
            image, output_shape: as in a call.

        Returns:
            An iterator.

        Raises:
            ValueError: as in a call.
        """
        return self._started(image, output_shape)[0]

    def _started(self, image: Any, output_shape: Any) -> "Started":
        pixels = self._reads.checked(image)
        shape = cast(tuple[int, int], spatial_shape(self._reads.name, pixels, output_shape, 2))
        steps = [np.full((1, 1), n / m, np.float32) for n, m in zip(pixels.shape[1::-1], shape[::-1])]
        return self._reads.started(pixels, steps, shape)


class Started(NamedTuple):
    """An output in tiles, some of which the device is computing, with its shape and dtype."""

    tiles: Iterator[tuple[tuple[slice, slice], NDArray[Any]]]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class SizedReads(NamedTuple):
    """The reads of images of any sizes.

    Attributes:
        name: of the public class, for errors.
    """

    name: str
    function: GridFunction
    options: ReadOptions

    @classmethod
    def of(cls, name: str, function: GridFunction, options: ReadOptions) -> "SizedReads":
        """The reads with these options; a ValueError if programs of many sizes do not support them."""
        sampler = options.sampler
        if sampler.read_mode is not ReadMode.ELEMENT or sampler.arithmetic is Arithmetic.HARDWARE or sampler.limit:
            raise ValueError(
                f"{name}: sampler has read_mode={str(sampler.read_mode)!r}, arithmetic={str(sampler.arithmetic)!r} and "
                f"limit={sampler.limit and str(sampler.limit)!r}, expected 'element', 'float' and None; use a function "
                f"of jaxtex.warp."
            )
        return cls(name, function, options)

    def checked(self, image: Any) -> NDArray[Any]:
        """An image as an array of NumPy; a ValueError if programs cannot read it."""
        check_has_values(self.name, image)
        dtype, shape = str(getattr(image, "dtype", None)), tuple(getattr(image, "shape", ()))
        if len(shape) != 3 or dtype not in DTYPES or 0 in shape:
            raise ValueError(
                f"{self.name}: image is {described(image)}, expected an array (H, W, C) of {', '.join(DTYPES[:-1])} or "
                f"{DTYPES[-1]}; convert it, and pass images one by one."
            )
        pixels = np.asarray(image)
        check_image(self.name, pixels, 2)
        check_reads(self.name, self.options, 2, pixels.dtype, pixels.shape)
        return pixels

    def started(self, pixels: NDArray[Any], parameters: Sequence[Array], shape: tuple[int, int]) -> Started:
        """The output of an image, in tiles, computed some tiles ahead."""
        per_pixel = any(p.size > 1 for p in parameters)
        given = PerPixelParameters.of_arrays(parameters, keeps=False) if per_pixel else tuple(parameters)
        mapping = Mapping(self.function, given, self.options.sampler.max_anisotropy)
        border = np.zeros(pixels.shape[-1], np.float32)
        if self.options.border_color is not None:
            border[...] = np.asarray(as_float(self.options.border_color))
        read = self.options.replace(border_color=None)  # an operand of the programs
        size, device = (shape[1], shape[0]), device_under(cast(Any, jax.config).jax_default_device)
        warp = ImageWarp.of(pixels.shape, pixels.dtype, mapping, border, size, read, device).with_texels(pixels)
        tiles = ahead(((place.cut(shape), warp.tile(place)) for place in warp.places()), PENDING)
        dtype = np.dtype(read.dtype or pixels.dtype)
        return Started((inner(*tile) for tile in tiles), (*shape, pixels.shape[-1]), dtype)


@functools.lru_cache
def device_under(setting: Any) -> Device:
    """The device on which JAX computes, under its setting `jax_default_device`."""
    return cast(Device, next(iter(jnp.zeros(()).devices())))


def parameter_of(name: str, number: int, parameter: Any, shape: tuple[int, int]) -> Array:
    """A parameter of a coordinate function, (1, 1) or of the shape of the output."""
    array = np.asarray(parameter)
    if array.shape not in ((), shape) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: parameters[{number}] is {described(parameter)}, expected a number, or an array with a number for "
            f"each pixel of the output, {shape}."
        )
    return array.astype(np.float32).reshape(array.shape or (1, 1))
