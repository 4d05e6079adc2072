"""The engine of all warps: an image of any dtype and batch, read where a coordinate function says."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import as_float
from .._engine.decoding import decode
from .._engine.operators import over_batch
from .._reads import sample_grid
from .._tables.storage_formats import sum_dtype
from ..mipmaps import along_axes, build_mipmaps
from ..modes import Arithmetic, FilterMode, ReadMode
from ..sampler import Sampler
from ..sampling import sample
from ..texture import Texture, texture1d, texture2d, texture3d
from .grids import Arrays, pixel_centres
from .options import ReadOptions

BUILD = {1: texture1d, 2: texture2d, 3: texture3d}
AXES = {1: "(..., W, C)", 2: "(..., H, W, C)", 3: "(..., D, H, W, C)"}
# What cannot be blended as numbers is read as fractions, where these have them.
FRACTIONS = (jnp.uint8, jnp.uint16)


def warp_image(
    name: str,
    image: Any,
    function: Callable[..., Arrays],
    parameters: Sequence[Any],
    output_shape: Sequence[int],
    options: ReadOptions,
    sides: tuple[Arrays, ...] | None = None,
) -> jax.Array:
    """Reads an image where a coordinate function says, for each pixel of the output.

    Args:
        name: of the public function, for errors.
        image: leading batch axes, the spatial axes and channels.
        function: as in `grids`: ``function(*pixels, *parameters)`` gives the points to read, in pixels.
        parameters: arrays of leading batch axes and one axis for each of `output_shape`, of its size or 1.
        output_shape: the spatial sizes of the output, slowest first.
        options: how the image is read, and the dtype of the output.
        sides: how coordinates change from a pixel to the next along each axis, x first, in place of the derivative of
            `function`. Where a parameter is a field, their differences are taken.
    """
    ndim = len(output_shape)
    image = image if isinstance(image, jax.Array | np.ndarray) else jnp.asarray(image)
    check_image(name, image, ndim)
    image, options, result = as_numbers(image, options)
    parameters = [as_float(p) for p in parameters]
    parameters = tuple(jnp.expand_dims(p, range(ndim - p.ndim)) for p in parameters)
    batch = np.broadcast_shapes(image.shape[: -ndim - 1], *(p.shape[: p.ndim - ndim] for p in parameters))
    return _warp(
        image,
        parameters,
        sides,
        options.border_color,
        function=function,
        output_shape=tuple(output_shape),
        sampler=options.sampler,
        antialias=options.antialias,
        batch=len(batch),
        dtype=result,
    )


def check_image(name: str, image: Any, ndim: int) -> None:
    if image.ndim <= ndim:
        raise ValueError(
            f"{name}: image has shape {image.shape}, expected {AXES[ndim]}; a single channel is an axis too, "
            f"image[..., None]."
        )
    if not any(jnp.issubdtype(image.dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise TypeError(
            f"{name}: image holds {image.dtype}, expected floating or integer numbers, or bool; use image.astype."
        )


def as_numbers(image: jax.Array | np.ndarray, options: ReadOptions) -> tuple[Any, ReadOptions, np.dtype]:
    """An image of numbers, how to read it, and the dtype of the result.

    The result has the dtype of the image, but fractions, where the sampler asks for them, are float32, and so are the
    blended values of a mask, which is read as 0 and 1.
    """
    sampler = options.sampler
    mask, fractions = image.dtype == jnp.bool_, sampler.read_mode is not ReadMode.ELEMENT
    blends = options.antialias or sampler.filter_mode is not FilterMode.POINT
    result = np.dtype(options.dtype or (np.float32 if fractions or (mask and blends) else image.dtype))
    if mask:
        image = image.astype(np.float32 if blends else np.uint8)
        options = dataclasses.replace(options, sampler=dataclasses.replace(sampler, read_mode="element", srgb=False))
    return image, options, result


@functools.partial(
    jax.jit, static_argnames=("function", "output_shape", "sampler", "antialias", "batch", "dtype"), inline=True
)
def _warp(
    image,
    parameters: Arrays,
    sides: tuple[Arrays, ...] | None,
    border_color,
    *,
    function: Callable[..., Arrays],
    output_shape: tuple[int, ...],
    sampler: Sampler,
    antialias: bool,
    batch: int,
    dtype: np.dtype,
) -> jax.Array:
    ndim = len(output_shape)
    unit = sum_dtype(*(p.dtype for p in parameters))
    whole = lambda a: jnp.expand_dims(a.astype(unit), range(batch + ndim - a.ndim))
    operands = [whole(a) for a in (*pixel_centres(output_shape, unit), *parameters)]
    image = jnp.expand_dims(image, range(batch + ndim + 1 - image.ndim))
    scale, as_numbers = 1, not antialias and blends_numbers(image.dtype, sampler)
    if not as_numbers:
        image, sampler, scale = as_blended(image, sampler, antialias)
    color = None if border_color is None else as_float(border_color) / scale
    build = functools.partial(BUILD[ndim], border_color=color)

    def read(image: jax.Array, *operands: jax.Array) -> jax.Array:
        how = dataclasses.replace(sampler, normalized_coords=False)
        return sample_grid(build(image), function, operands, how, as_numbers=as_numbers)

    def smoothed(image: jax.Array, *arrays: jax.Array) -> jax.Array:
        coords, *steps = (arrays[k : k + ndim] for k in range(0, len(arrays), ndim))
        return read_smoothed(build(image), coords, tuple(steps), sampler)

    if antialias:
        steps = jax.tree.map(whole, sides) or steps_of(function, operands, ndim)
        coords = [jnp.expand_dims(c, range(batch + ndim - c.ndim)) for c in function(*operands)]
        out = over_batch(smoothed, batch)(image, *coords, *(a for side in steps for a in side))
    else:
        out = over_batch(read, batch)(image, *operands)
    return stored(out * scale, dtype)


def blends_numbers(stored: np.dtype, sampler: Sampler) -> bool:
    """Whether integers are blended as the numbers that they are, which a texture unit does not do."""
    whole = jnp.issubdtype(stored, jnp.integer) and sampler.read_mode is ReadMode.ELEMENT
    return whole and sampler.filter_mode is not FilterMode.POINT and sampler.arithmetic is Arithmetic.FLOAT


def as_blended(image: jax.Array, sampler: Sampler, antialias: bool) -> tuple[jax.Array, Sampler, int]:
    """An image whose texels can be blended, how to read it, and by how much to multiply what is read."""
    if not jnp.issubdtype(image.dtype, jnp.integer) or (sampler.filter_mode is FilterMode.POINT and not antialias):
        return image, sampler, 1
    if sampler.read_mode is not ReadMode.ELEMENT:
        if antialias:
            image = decode(image, sampler.decoding, np.dtype(np.float32))
            sampler = dataclasses.replace(sampler, read_mode="element", srgb=False)
        return image, sampler, 1
    if image.dtype in FRACTIONS and not antialias:
        return image, dataclasses.replace(sampler, read_mode="normalized_float"), jnp.iinfo(image.dtype).max
    return image.astype(jnp.float32), sampler, 1


def stored(values: jax.Array, dtype: np.dtype) -> jax.Array:
    """Values in the dtype of an image: integers are the nearest, half to even, within its range; bool is above 0.5."""
    if dtype == jnp.bool_ and jnp.issubdtype(values.dtype, jnp.floating):
        return values > 0.5
    if jnp.issubdtype(dtype, jnp.integer) and not jnp.issubdtype(values.dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        values = jnp.clip(jnp.round(values), info.min, info.max)
    return values.astype(dtype)


def steps_of(function: Callable[..., Arrays], operands: list[jax.Array], ndim: int) -> tuple[Arrays, ...]:
    """How coordinates change from a pixel to the next along x, y (and z).

    The derivative of `function`; where a parameter is a field, known at the pixels only, differences.
    """
    pixels, parameters = operands[:ndim], operands[ndim:]
    if any(n > 1 for p in parameters for n in p.shape[p.ndim - ndim :]):
        coords = jnp.broadcast_arrays(*function(*operands))
        return tuple(tuple(difference(c, -1 - k) for c in coords) for k in range(ndim))
    return along_axes(lambda *pixels: function(*pixels, *parameters), pixels)


def difference(values: jax.Array, axis: int) -> jax.Array:
    """Central differences, one-sided at the ends."""
    return jnp.asarray(jnp.gradient(values, axis=axis)) if values.shape[axis] > 1 else jnp.zeros_like(values)


def read_smoothed(texture: Texture, coords: Arrays, steps: tuple[Arrays, ...], sampler: Sampler) -> jax.Array:
    """A read through a mip chain, at the level that `steps` from pixel to pixel ask for."""
    sizes = texture.shape[-2::-1]
    parts = lambda arrays: tuple(a / n for a, n in zip(arrays, sizes))
    sampler = dataclasses.replace(sampler, normalized_coords=True, mipmap_filter_mode="linear")
    texture = build_mipmaps(texture)
    if len(sizes) == 2:
        ddx, ddy = map(parts, steps)
        return sample(texture, parts(coords), sampler, ddx=ddx, ddy=ddy)
    squares = [functools.reduce(jnp.add, map(jnp.square, step)) for step in steps]
    longest = functools.reduce(lambda a, b: jnp.where(a > b, a, b), squares)
    return sample(texture, parts(coords), sampler, lod=0.5 * jnp.log2(jnp.where(longest > 1, longest, 1)))
