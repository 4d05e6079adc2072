"""The warp itself, compiled once for each shape, dtype, size, kind of map, way of reading and device."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..sampler import Sampler
from ..warp.images import warp_image
from ..warp.options import ReadOptions
from .mappings import Mapping, Size
from .pixels import as_fractions, premultiplied, stored, straight


class Reading(NamedTuple):
    """How the input is read: the sampler, and whether each pixel reads the mean over its footprint."""

    sampler: Sampler
    antialias: bool = False


class Warped(NamedTuple):
    """A warped image, which the device may still be computing, and the seconds it took to compile."""

    pixels: jax.Array
    compile_seconds: float


def warp(
    pixels: np.ndarray, mapping: Mapping, border: np.ndarray, *, size: Size, reading: Reading, device: Any
) -> Warped:
    """Warps an image, and does not wait for the result.

    Args:
        pixels: (H, W, C), uint8 or uint16; with 2 or 4 channels the last is straight alpha.
        mapping: from output to input points in pixels.
        border: (C,) of the dtype of `pixels`, what ``address_mode="border"`` reads outside.
        size: width and height of the output.
        device: of JAX.

    Returns:
        The output, (height, width, C) of the dtype of `pixels`.
    """
    start = time.perf_counter()
    if reading.antialias:
        reading = reading._replace(sampler=dataclasses.replace(reading.sampler, max_anisotropy=mapping.reads))
    shapes = tuple(p.shape for p in mapping.parameters)
    executable = compiled(pixels.shape, pixels.dtype.name, size, mapping.function, shapes, reading, device)
    compile_seconds = time.perf_counter() - start
    return Warped(executable(*jax.device_put((pixels, border, mapping.parameters), device)), compile_seconds)


@functools.lru_cache(maxsize=128)
def compiled(
    shape: tuple[int, ...],
    dtype: str,
    size: Size,
    function: Callable[..., tuple[Any, ...]],
    parameter_shapes: tuple[tuple[int, ...], ...],
    reading: Reading,
    device: Any,
) -> Callable[..., jax.Array]:
    """The compiled warp; parameters and border colour are its arguments, so another angle compiles nothing."""
    channels = shape[-1]
    there = functools.partial(jax.ShapeDtypeStruct, sharding=jax.sharding.SingleDeviceSharding(device))
    arguments = there(shape, dtype), there((channels,), dtype), tuple(there(s, "float32") for s in parameter_shapes)
    alpha = channels in (2, 4) and reading.sampler.filter_mode != "point"
    body = functools.partial(read_with_alpha if alpha else read, function=function, size=size, reading=reading)
    first = jax.jit(body).lower(*arguments).compile()
    if not alpha:
        return first
    # Apart, because XLA would fuse the read into each use of its result, and so read 40 times as long on a CPU.
    second = jax.jit(straight).lower(*(there(out.shape, out.dtype) for out in first.out_info)).compile()
    return lambda *arrays: second(*first(*arrays))


def read(
    pixels: jax.Array,
    border: jax.Array,
    parameters: tuple[jax.Array, ...],
    *,
    function: Callable[..., tuple[Any, ...]],
    size: Size,
    reading: Reading,
) -> jax.Array:
    """The output of an image without alpha, or with the point filter, which returns texels as they are stored."""
    sampler, whole = reading.sampler, jnp.issubdtype(pixels.dtype, jnp.integer)
    read = functools.partial(warp_image, "warp", function=function, parameters=parameters, output_shape=size[::-1])
    if reading.antialias or not whole or sampler.filter_mode == "point":
        return read(pixels, options=ReadOptions(sampler, border, reading.antialias))
    # Read as fractions: of numbers XLA makes a program that takes twice as long on a CPU, since it finds all taps of a
    # pixel again for each of its channels.
    fractions = dataclasses.replace(sampler, read_mode="normalized_float")
    return stored(read(pixels, options=ReadOptions(fractions, as_fractions(border))), pixels.dtype)


def read_with_alpha(
    pixels: jax.Array, border: jax.Array, parameters: tuple[jax.Array, ...], *, reading: Reading, **static: Any
) -> tuple[jax.Array, jax.Array]:
    """A filtered read with colours multiplied by alpha, as fractions, and the nearest stored texels."""
    filtered = read(premultiplied(pixels), premultiplied(border), parameters, reading=reading, **static)
    point = dataclasses.replace(reading.sampler, filter_mode="point")
    return filtered, read(pixels, border, parameters, reading=Reading(point), **static)
