"""The warp of one image, compiled once for each shape, dtype, size, coordinate function, way to read, and device."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...sampler import Sampler
from ...warp import resize
from ...warp.grids import scaled
from ...warp.images import warp_image
from ...warp.options import ReadOptions as WarpOptions
from ..environment.devices import Device
from ..pictures.limits import Size
from ..pictures.picture import Array
from ..transforms.mappings import Mapping
from .edges import coverage, over
from .light import to_codes, to_light
from .pixels import premultiply, quantize, to_fractions, unpremultiply


class ReadOptions(NamedTuple):
    """How the input is read.

    Attributes:
        sampler: with the filter mode and the address mode.
        antialias: whether each pixel is the mean over its footprint.
        frame: whether the border color lies outside the input, whatever the address mode reads there; see `edges`.
        linear_light: whether light is blended, and not codes.
        area: whether a resize takes the mean of what a pixel covers, in place of the filter mode.
    """

    sampler: Sampler
    antialias: bool = False
    frame: bool = False
    linear_light: bool = False
    area: bool = False


class WarpResult(NamedTuple):
    """A warped image, which the device may still be computing, and how long its program took to compile."""

    pixels: jax.Array
    compile_seconds: float


def warp(
    pixels: Array, mapping: Mapping, border: Array, *, size: Size, read: ReadOptions, device: Device
) -> WarpResult:
    """Warps an image, and does not wait for the result.

    Args:
        pixels: (H, W, C), uint8 or uint16; with 2 or 4 channels the last is alpha, not premultiplied.
        mapping: from output to input points, in pixels.
        border: (C,), of the dtype of `pixels`: the values outside under ``address_mode="border"``.
        size: width and height of the output.
        read: how the image is read.
        device: where the work is done.

    Returns:
        The output, (height, width, C), of the dtype of `pixels`.
    """
    start = time.perf_counter()
    if read.antialias:
        read = read._replace(sampler=dataclasses.replace(read.sampler, max_anisotropy=mapping.max_anisotropy))
    shapes = tuple(p.shape for p in mapping.parameters)
    program = compiled_warp(pixels.shape, pixels.dtype.name, size, mapping.function, shapes, read, device)
    compile_seconds = time.perf_counter() - start
    return WarpResult(program(*jax.device_put((pixels, border, mapping.parameters), device)), compile_seconds)


@functools.lru_cache(maxsize=128)
def compiled_warp(
    shape: tuple[int, ...],
    dtype: str,
    size: Size,
    function: Callable[..., tuple[Any, ...]],
    parameter_shapes: tuple[tuple[int, ...], ...],
    read: ReadOptions,
    device: Device,
) -> Callable[..., jax.Array]:
    """The compiled warp. Parameters and border color are its arguments, so another angle compiles nothing."""
    channels = shape[-1]
    on_device = functools.partial(jax.ShapeDtypeStruct, sharding=jax.sharding.SingleDeviceSharding(device))
    parameters = tuple(on_device(shape, "float32") for shape in parameter_shapes)
    arguments = on_device(shape, dtype), on_device((channels,), dtype), parameters
    has_alpha = channels in (2, 4) and read.sampler.filter_mode != "point"
    body = functools.partial(read_with_alpha if has_alpha else read_opaque, function=function, size=size, read=read)
    first = jax.jit(body).lower(*arguments).compile()
    if not has_alpha:
        return first
    # A program of its own: XLA would fuse the read into each use of its result, and so read 40 times as long on a CPU.
    second = jax.jit(unpremultiply).lower(*(on_device(out.shape, out.dtype) for out in first.out_info)).compile()
    return lambda *arrays: second(*first(*arrays))


def read_opaque(
    pixels: jax.Array,
    border: jax.Array,
    parameters: tuple[jax.Array, ...],
    *,
    function: Callable[..., tuple[Any, ...]],
    size: Size,
    read: ReadOptions,
) -> jax.Array:
    """The output for an image without alpha, or for the point filter, which returns texels as they are stored."""
    read_as = functools.partial(read_values, parameters=parameters, function=function, size=size, read=read)
    if read.sampler.filter_mode == "point":
        return read_as(pixels, border)
    if read.linear_light:
        light = read_as(to_light(to_fractions(pixels)), to_light(to_fractions(border)))
        return quantize(to_codes(light), pixels.dtype)
    # The read returns fractions, since for stored numbers XLA compiles a program that takes twice as long on a CPU: it
    # finds the taps of a pixel again for each of its channels.
    fractions = read._replace(sampler=dataclasses.replace(read.sampler, read_mode="normalized_float"))
    return quantize(read_as(pixels, to_fractions(border), read=fractions), pixels.dtype)


def read_values(
    values: jax.Array,
    border: jax.Array,
    parameters: tuple[jax.Array, ...],
    *,
    function: Callable[..., tuple[Any, ...]],
    size: Size,
    read: ReadOptions,
) -> jax.Array:
    """The output in the numbers that the sampler reads, of which `border` is one texel."""
    if function is scaled:
        chosen = "area" if read.area else None
        return resize(values, size[::-1], read.sampler, filter=chosen, border_color=border, antialias=read.antialias)
    options = WarpOptions(read.sampler, border, read.antialias)
    out = warp_image("warp", values, function, parameters, size[::-1], options, apart=False)
    if not read.frame:
        return out
    source = values.shape[1], values.shape[0]
    return over(out, border, coverage(function, parameters, source=source, target=size))


def read_with_alpha(
    pixels: jax.Array, border: jax.Array, parameters: tuple[jax.Array, ...], *, read: ReadOptions, **static: Any
) -> tuple[jax.Array, jax.Array]:
    """A filtered read of premultiplied fractions, and the nearest stored texels."""
    texels = (pixels, border)
    if read.linear_light:
        texels = (to_light(to_fractions(pixels)), to_light(to_fractions(border)))
    values, color = map(premultiply, texels)
    filtered = read_values(values, color, parameters, read=read, **static)
    if read.linear_light:
        filtered = premultiply(to_codes(divided(filtered)))
    address_mode = "border" if read.frame else read.sampler.address_mode
    point = dataclasses.replace(read.sampler, filter_mode="point", address_mode=address_mode)
    return filtered, read_values(pixels, border, parameters, read=ReadOptions(point), **static)


def divided(premultiplied: jax.Array) -> jax.Array:
    """Fractions whose colors are divided by alpha, the last channel; those of a clear pixel stay."""
    alpha = premultiplied[..., -1:]
    colors = premultiplied[..., :-1] / jnp.where(alpha > 0, alpha, 1)
    return jnp.concatenate([colors, alpha], axis=-1)
