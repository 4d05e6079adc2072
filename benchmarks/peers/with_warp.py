"""NVIDIA Warp's `texture_sample`: the texture unit of a GPU, with derivatives in the coordinates alone."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..inputs import inputs
from ..works import Work
from .protocol import Run, on_gpu, optional
from .with_cupy import FORMATS, VECTORS


@functools.cache
def kernel(dimensions: int, channels: int) -> Any:
    wp = optional("warp")
    result = {1: float, 2: wp.vec2f, 4: wp.vec4f}[channels]

    def read(out: Any, at: Any, texture: Any):
        i = wp.tid()
        out[i] = wp.texture_sample(texture, at[i], dtype=result)

    places = wp.array(dtype={2: wp.vec2f, 3: wp.vec3f}[dimensions])
    kinds = wp.array(dtype=result), places, {2: wp.Texture2D, 3: wp.Texture3D}[dimensions]
    read.__annotations__ = dict(zip(("out", "at", "texture"), kinds))
    return wp.kernel(read, module="unique")


def warp(work: Work) -> Run | None:
    ours = work.what not in ("read", "slopes") or work.mips or work.kind == "cubemap" or work.dtype not in FORMATS
    if ours or work.given != work or work.channels not in VECTORS or not on_gpu() or (wp := optional("warp")) is None:
        return None
    data, d, shape = inputs(work), work.dimensions, (work.samples,) * work.dimensions
    place, result = {2: wp.vec2f, 3: wp.vec3f}[d], {1: float, 2: wp.vec2f, 4: wp.vec4f}[work.channels]
    mode = getattr(wp.TextureAddressMode, work.address_mode.upper())
    texture = {2: wp.Texture2D, 3: wp.Texture3D}[d](np.asarray(data.texture.texels), address_mode=mode)
    at = wp.array(np.stack(data.coords, -1).reshape(-1, d), dtype=place)
    numbers = lambda a: wp.array(np.asarray(a).reshape(-1, *[work.channels] * (work.channels > 1)), dtype=result)
    out, slopes = wp.empty(at.shape, dtype=result), wp.zeros_like(at)
    how = {"dim": len(at), "inputs": [out, at, texture], "record_cmd": True}
    if work.what == "slopes":
        how |= {"adj_inputs": [numbers(data.cotangent), slopes, None], "adjoint": True}
    command = wp.launch(kernel(d, work.channels), **how)

    def start() -> Any:
        # Its derivatives are added to what is there.
        if work.what == "slopes":
            slopes.zero_()
        command.launch()
        return slopes if work.what == "slopes" else out

    def wait(result: Any) -> Any:
        wp.synchronize_device()
        return result

    def arrays(result: Any) -> Any:
        found = jnp.asarray(result.numpy())
        if work.what == "read":
            return found.reshape(*shape, work.channels)
        return tuple(found[:, k].reshape(shape) for k in range(d))

    return Run(start, wait, arrays)
