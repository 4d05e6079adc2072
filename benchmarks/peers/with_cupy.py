"""The texture unit of an NVIDIA GPU itself, by way of CuPy. It blends with weights of 8 bits."""

from typing import Any

import numpy as np

import jaxtex as jt

from ..inputs import ANGLE, inputs
from ..works import Work
from .protocol import Run, as_jax, holding_memory, on_gpu, optional

KERNEL = """
extern "C" __global__ void read(VECTOR* out, const float* x, const float* y, const float* z,
                                cudaTextureObject_t texture, int n, int side) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u = (i % side + 0.5f) / side - 0.5f, v = (i / side + 0.5f) / side - 0.5f;
    out[i] = FETCH;
}
"""
VECTORS = {1: "float", 2: "float2", 4: "float4"}
GENERATED = f"u * {np.cos(ANGLE)}f - v * {np.sin(ANGLE)}f + 0.5f, v * {np.cos(ANGLE)}f + u * {np.sin(ANGLE)}f + 0.5f"
READ_MODES = {"float32": "element", "uint8": "normalized_float"}
# Bits of a channel, and the kind of number.
FORMATS = {"float32": (32, "Float"), "uint8": (8, "Unsigned")}
BLOCK = 256


def texture_unit(work: Work) -> Run | None:
    ours = work.what != "read" or work.mips or work.kind == "cubemap" or work.dtype not in FORMATS
    if ours or work.channels not in VECTORS or not on_gpu():
        return None
    if (cupy := optional("cupy")) is None:
        return None
    data, c, d = inputs(work), work.channels, work.dimensions
    how = jt.Sampler(address_mode=work.address_mode, read_mode=READ_MODES[work.dtype])
    handle = texture_object(cupy, np.asarray(data.texture.texels), how)
    coords = [cupy.asarray(np.asarray(a)) for a in data.coords]
    coords += coords[:1] * (3 - len(coords))
    at = {"generated": GENERATED}.get(work.coordinates, "x[i], y[i]" if d == 2 else "x[i], y[i], z[i]")
    code = KERNEL.replace("FETCH", f"tex{d}D<VECTOR>(texture, {at})").replace("VECTOR", VECTORS[c])
    kernel = cupy.RawModule(code=code).get_function("read")
    n = work.samples**d
    out = cupy.empty((*(work.samples,) * d, c), cupy.float32)
    args = (out, *coords, handle, np.int32(n), np.int32(work.samples))

    def start() -> Any:
        kernel(((n + BLOCK - 1) // BLOCK,), (BLOCK,), args)
        return out

    return Run(start, wait, as_jax)


def wait(result: Any) -> Any:
    optional("cupy").cuda.Device().synchronize()
    return result


def texture_object(cupy: Any, texels: np.ndarray, how: jt.Sampler) -> Any:
    """A texture object over a CUDA array that holds `texels`, read as a sampler says."""
    runtime, texture = cupy.cuda.runtime, cupy.cuda.texture
    *sizes, channels = texels.shape
    bits, kind = FORMATS[texels.dtype.name]
    channel = texture.ChannelFormatDescriptor(
        *[bits] * channels, *[0] * (4 - channels), getattr(runtime, f"cudaChannelFormatKind{kind}")
    )
    array = texture.CUDAarray(channel, *reversed(sizes))
    array.copy_from(cupy.asarray(texels.reshape(*sizes[:-1], sizes[-1] * channels)))
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    address, linear = str(how.address_mode or "clamp").capitalize(), str(how.filter_mode or "linear").capitalize()
    is_fraction = how.read_mode == jt.ReadMode.NORMALIZED_FLOAT
    described = texture.TextureDescriptor(
        (getattr(runtime, f"cudaAddressMode{address}"),) * len(sizes),
        getattr(runtime, f"cudaFilterMode{linear}"),
        runtime.cudaReadModeNormalizedFloat if is_fraction else runtime.cudaReadModeElementType,
        normalizedCoords=int(how.normalized_coords),
    )
    cupy.cuda.Device().synchronize()
    return texture.TextureObject(resource, described)


def forget() -> None:
    """Gives memory back that CuPy keeps for later."""
    if (cupy := holding_memory("cupy")) is not None:
        cupy.get_default_memory_pool().free_all_blocks()
