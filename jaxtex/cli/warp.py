"""The warp itself, compiled once for each shape, dtype, size and pair of modes."""

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..sample import sample
from ..sampler import Sampler
from ..texture import texture2d
from .affine import Size


class Warped(NamedTuple):
    """A warped image, and the seconds that it took: in all, and to compile within that."""

    pixels: np.ndarray
    seconds: float
    compile_seconds: float


def warp(
    pixels: np.ndarray,
    inverse: np.ndarray,
    border: np.ndarray,
    *,
    size: Size,
    filter_mode: str,
    address_mode: str,
) -> Warped:
    """Warps an image on the default device.

    Args:
        pixels: (H, W, C), uint8 or uint16; with 2 or 4 channels the last is straight alpha.
        inverse: (2, 3) float32, from output to input points in pixels.
        border: (C,) of the dtype of `pixels`, what ``address_mode="border"`` reads outside.
        size: width and height of the output.
        filter_mode, address_mode: as in `Sampler`.

    Returns:
        The output, (height, width, C) of the dtype of `pixels`, with its times.
    """
    start = time.perf_counter()
    executable = compiled(pixels.shape, pixels.dtype.name, size, filter_mode, address_mode)
    ready = time.perf_counter()
    result = np.asarray(executable(pixels, inverse, border))
    return Warped(result, time.perf_counter() - start, ready - start)


@functools.lru_cache(maxsize=128)
def compiled(
    shape: tuple[int, ...], dtype: str, size: Size, filter_mode: str, address_mode: str
) -> Callable[..., jax.Array]:
    """The compiled warp; matrix and border colour are its arguments, so another angle compiles nothing."""
    channels = shape[-1]
    arguments = (
        jax.ShapeDtypeStruct(shape, dtype),
        jax.ShapeDtypeStruct((2, 3), "float32"),
        jax.ShapeDtypeStruct((channels,), dtype),
    )
    alpha = channels in (2, 4) and filter_mode != "point"
    body = read_with_alpha if alpha else read_opaque
    static = {"size": size, "filter_mode": filter_mode, "address_mode": address_mode}
    read = jax.jit(functools.partial(body, **static)).lower(*arguments).compile()
    if not alpha:
        return read
    # Apart, because XLA would fuse the read into each use of its result, and so read 40 times as long on a CPU.
    finish = jax.jit(straight).lower(*read.out_info).compile()
    return lambda *arrays: finish(*read(*arrays))


def positions(inverse: jax.Array, size: Size) -> tuple[jax.Array, jax.Array]:
    """Where the centres of the output's pixels come from: x and y, each (height, width)."""
    width, height = size
    x = jnp.arange(width, dtype=jnp.float32)[None, :] + 0.5
    y = jnp.arange(height, dtype=jnp.float32)[:, None] + 0.5
    (a, b, c), (d, e, f) = inverse
    return a * x + b * y + c, d * x + e * y + f


def read_opaque(
    pixels: jax.Array,
    inverse: jax.Array,
    border: jax.Array,
    *,
    size: Size,
    filter_mode: str,
    address_mode: str,
) -> jax.Array:
    """The output of an image without alpha, or with the point filter, which returns texels as they are stored."""
    point = filter_mode == "point"
    sampler = Sampler(
        address_mode=address_mode,
        filter_mode=filter_mode,
        read_mode="element" if point else "normalized_float",
        normalized_coords=False,
    )
    color = border if point else fractions(border)
    out = sample(texture2d(pixels, border_color=color), positions(inverse, size), sampler)
    return out if point else stored(out, pixels.dtype)


def read_with_alpha(
    pixels: jax.Array,
    inverse: jax.Array,
    border: jax.Array,
    *,
    size: Size,
    filter_mode: str,
    address_mode: str,
) -> tuple[jax.Array, jax.Array]:
    """A filtered read with colours multiplied by alpha, as fractions, and the nearest stored texels."""
    nearest = read_opaque(pixels, inverse, border, size=size, filter_mode="point", address_mode=address_mode)
    sampler = Sampler(address_mode=address_mode, filter_mode=filter_mode, normalized_coords=False)
    texture = texture2d(premultiplied(pixels), border_color=premultiplied(border))
    return sample(texture, positions(inverse, size), sampler), nearest


def straight(filtered: jax.Array, nearest: jax.Array) -> jax.Array:
    """Stored pixels from premultiplied fractions.

    Where the result is clear, so that any colour would do, it takes that of the nearest texel: an identity stays one.
    """
    alpha = stored(filtered[..., -1:], nearest.dtype)
    seen = alpha > 0
    colour = stored(filtered[..., :-1] / jnp.where(seen, filtered[..., -1:], 1), nearest.dtype)
    return jnp.concatenate([jnp.where(seen, colour, nearest[..., :-1]), alpha], axis=-1)


def premultiplied(texels: jax.Array) -> jax.Array:
    """Texels as fractions, colours times alpha: so a clear texel adds no colour to its neighbours."""
    values = fractions(texels)
    return jnp.concatenate([values[..., :-1] * values[..., -1:], values[..., -1:]], axis=-1)


def fractions(texels: jax.Array) -> jax.Array:
    """Stored integers as numbers from 0 to 1."""
    return texels.astype(jnp.float32) / jnp.iinfo(texels.dtype).max


def stored(values: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Fractions as the nearest integers of `dtype`, half to even; a cubic overshoots, so they are clipped."""
    return jnp.round(jnp.clip(values, 0, 1) * jnp.iinfo(dtype).max).astype(dtype)
