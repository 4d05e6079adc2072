"""What `jaxtex warp` computes, by the library's warps of whole images: programs of one size each."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxtex._engine.describe.operands import numbers, split
from jaxtex.warp import resize
from jaxtex.warp.coordinate_functions import scaled
from jaxtex.warp.images import converted, footprint_of, grid_operands, warp_image
from jaxtex.warp.options import ReadOptions as WarpOptions
from jaxtex.warp.sized.mappings import ReadOptions
from jaxtex.warp.sized.pixels import (
    coverage,
    over,
    premultiply,
    quantize,
    to_codes,
    to_fractions,
    to_light,
    unpremultiply,
)
from jaxtex.warp.sized.programs import divided


def warped(pixels, border, mapping, size, read):
    """The output, (H, W, C)."""
    if read.antialias:
        read = read._replace(sampler=dataclasses.replace(read.sampler, max_anisotropy=mapping.max_anisotropy))

    def values(texels, color, read):
        return jax.jit(lambda *arrays: read_values(*arrays, mapping.function, size, read))(
            texels, color, mapping.parameters
        )

    texels = pixels, border
    if read.linear_light and not read.is_point:
        texels = jax.jit(lambda *some: tuple(to_light(to_fractions(jnp.asarray(t))) for t in some))(*texels)
    if read.has_alpha(pixels.shape[-1]):
        filtered = values(*jax.jit(lambda *some: tuple(map(premultiply, some)))(*map(jnp.asarray, texels)), read)
        if read.linear_light:
            filtered = jax.jit(lambda x: premultiply(to_codes(divided(x))))(filtered)
        address = "border" if read.frame else read.sampler.address_mode
        point = dataclasses.replace(read.sampler, filter_mode="point", address_mode=address)
        return jax.jit(unpremultiply)(filtered, values(pixels, border, ReadOptions(point)))
    if read.is_point:
        return values(*texels, read)
    if read.linear_light:
        return jax.jit(lambda x: quantize(to_codes(x), pixels.dtype))(values(*texels, read))
    out = values(pixels, border.astype(np.float32), read)
    return jax.jit(lambda x: converted(x, pixels.dtype))(out)


def read_values(values, border, parameters, function, size, read):
    """The output in the numbers that the sampler reads, of which `border` is one texel."""
    dtype = None if read.is_point else np.float32
    if function is scaled:
        chosen = "area" if read.area else None
        color = border if read.sampler.address_mode == "border" else None
        how = {"filter": chosen, "border_color": color, "antialias": read.antialias, "dtype": dtype}
        sampler = dataclasses.replace(read.sampler, filter_mode=None) if read.area else read.sampler
        return resize(values, size[::-1], sampler, **how)
    options = WarpOptions(read.sampler, border, read.antialias, dtype)
    out = warp_image("warp", values, function, parameters, size[::-1], options)
    if not read.frame:
        return out
    operands = numbers(*split(grid_operands(tuple(map(jnp.asarray, parameters)), size[::-1], 0, values.dtype)))
    points, sides = function(*operands), footprint_of(function, operands, 2)
    return over(out, border, coverage(points, sides, values.shape[1::-1], size[::-1]))
