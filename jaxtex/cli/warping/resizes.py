"""The resize of one image, compiled once for each shape, dtype, size, way to read, and device."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import dataclasses
import functools
from collections.abc import Callable

import jax

from ...warp import resize
from ..environment.devices import Device
from ..pictures.limits import Size
from .light import to_codes, to_light
from .pixels import premultiply, quantize, to_fractions, unpremultiply
from .programs import ReadOptions, divided


@functools.lru_cache(maxsize=128)
def compiled_resize(
    shape: tuple[int, ...], dtype: str, size: Size, read: ReadOptions, device: Device
) -> Callable[..., jax.Array]:
    """The compiled resize of an image to a width and height, with its border color as an argument."""
    channels = shape[-1]
    on_device = functools.partial(jax.ShapeDtypeStruct, sharding=jax.sharding.SingleDeviceSharding(device))
    arguments = on_device(shape, dtype), on_device((channels,), dtype)
    has_alpha = read.has_alpha(channels)
    body = functools.partial(read_with_alpha if has_alpha else read_opaque, size=size, read=read)
    first = jax.jit(body).lower(*arguments).compile()
    if not has_alpha:
        return first
    # A program of its own: XLA would fuse the read into each use of its result, and so read 40 times as long on a CPU.
    second = jax.jit(unpremultiply).lower(*(on_device(out.shape, out.dtype) for out in first.out_info)).compile()
    return lambda *arrays: second(*first(*arrays))


def read_opaque(pixels: jax.Array, border: jax.Array, *, size: Size, read: ReadOptions) -> jax.Array:
    """The output for an image without alpha, or for the point filter, which returns texels as they are stored."""
    if read.is_point:
        return read_values(pixels, border, size, read)
    if read.linear_light:
        light = read_values(to_light(to_fractions(pixels)), to_light(to_fractions(border)), size, read)
        return quantize(to_codes(light), pixels.dtype)
    fractions = read._replace(sampler=dataclasses.replace(read.sampler, read_mode="normalized_float"))
    return quantize(read_values(pixels, to_fractions(border), size, fractions), pixels.dtype)


def read_values(values: jax.Array, border: jax.Array, size: Size, read: ReadOptions) -> jax.Array:
    """The output in the numbers that the sampler reads, of which `border` is one texel."""
    chosen = "area" if read.area else None
    return resize(values, size[::-1], read.sampler, filter=chosen, border_color=border, antialias=read.antialias)


def read_with_alpha(
    pixels: jax.Array, border: jax.Array, *, size: Size, read: ReadOptions
) -> tuple[jax.Array, jax.Array]:
    """A filtered read of premultiplied fractions, and the nearest stored texels."""
    texels = (pixels, border)
    if read.linear_light:
        texels = (to_light(to_fractions(pixels)), to_light(to_fractions(border)))
    values, color = map(premultiply, texels)
    filtered = read_values(values, color, size, read)
    if read.linear_light:
        filtered = premultiply(to_codes(divided(filtered)))
    point = dataclasses.replace(read.sampler, filter_mode="point")
    return filtered, read_values(pixels, border, size, ReadOptions(point))
