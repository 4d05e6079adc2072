"""The competitors. Each takes a `Work` and returns a function without arguments that does the same work, or None.

A competitor that is not installed, or cannot do the work, returns None. The result of a read is an array (H, W, C);
of both gradients, a tuple (texels (H, W, C), x, y) in our units, so that it can be compared before it is timed.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt


@dataclasses.dataclass(frozen=True)
class Work:
    """A rotated image of `size`^2 texels and `channels` read at as many points, clamped and linear."""

    size: int
    channels: int
    gradients: bool = False

    @property
    def name(self) -> str:
        what = "both gradients" if self.gradients else "read"
        return f"{what} 2D, {self.size}x{self.size}, C={self.channels}"

    @functools.cached_property
    def inputs(self) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Texels, normalised x and y, and a cotangent."""
        key = jax.random.PRNGKey(0)
        texels, cotangent = jax.random.normal(key, (2, self.size, self.size, self.channels))
        row = (jnp.arange(self.size) + 0.5) / self.size - 0.5
        u, v = jnp.meshgrid(row, row)
        cos, sin = np.cos(0.5), np.sin(0.5)
        return texels, u * cos - v * sin + 0.5, v * cos + u * sin + 0.5, cotangent


Run = Callable[[], Any]


def in_jax(work: Work, read: Callable[..., jax.Array]) -> Run:
    """`read(texels, x, y)` or both of its gradients, compiled."""
    texels, x, y, cotangent = work.inputs
    if work.gradients:
        backward = jax.jit(lambda t, x, y, g: jax.vjp(read, t, x, y)[1](g))
        return lambda: backward(texels, x, y, cotangent)
    compiled = jax.jit(read)
    return lambda: compiled(texels, x, y)


def jaxtex(work: Work) -> Run:
    return in_jax(work, lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y)))


def jaxtex_hardware(work: Work) -> Run | None:
    """The same read in the texture unit's arithmetic; its gradients are those above."""
    if work.gradients:
        return None
    sampler = jt.Sampler(arithmetic="hardware")
    return in_jax(work, lambda texels, x, y: jt.sample(jt.texture2d(texels), (x, y), sampler))


def copy(work: Work) -> Run | None:
    """The roofline: the output written once, from an input read once."""
    if work.gradients:
        return None
    add = jax.jit(lambda t: t + 1)
    return lambda: add(work.inputs[0])


def map_coordinates(work: Work) -> Run:
    def read(texels, x, y):
        at = [y * work.size - 0.5, x * work.size - 0.5]
        one = lambda t: jax.scipy.ndimage.map_coordinates(t, at, order=1, mode="nearest")
        return jax.vmap(one, -1, -1)(texels)

    return in_jax(work, read)


def opencv(work: Work) -> Run | None:
    if work.gradients or jax.default_backend() != "cpu" or work.channels > 4:
        return None
    try:
        import cv2
    except ImportError:
        return None
    texels, x, y, _ = map(np.asarray, work.inputs)
    at = (x * work.size - 0.5).astype(np.float32), (y * work.size - 0.5).astype(np.float32)
    read = functools.partial(cv2.remap, texels, *at, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return lambda: read().reshape(work.size, work.size, work.channels)


def torch(work: Work) -> Run | None:
    try:
        import torch
    except ImportError:
        return None
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        return None
    texels, x, y, cotangent = (torch.tensor(np.asarray(a), device=device) for a in work.inputs)
    image, cotangent = (a.permute(2, 0, 1)[None].contiguous() for a in (texels, cotangent))
    grid = torch.stack([x, y], -1)[None] * 2 - 1
    read = functools.partial(torch.nn.functional.grid_sample, padding_mode="border", align_corners=False)
    if not work.gradients:
        return lambda: read(image, grid)[0].permute(1, 2, 0)
    image.requires_grad_()
    grid.requires_grad_()
    out = read(image, grid)

    def backward():
        d_image, d_grid = torch.autograd.grad(out, (image, grid), cotangent, retain_graph=True)
        return d_image[0].permute(1, 2, 0), 2 * d_grid[0, ..., 0], 2 * d_grid[0, ..., 1]

    return backward


TEX2D = """
extern "C" __global__ void read(VECTOR* out, const float* x, const float* y, cudaTextureObject_t texture, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<VECTOR>(texture, x[i], y[i]);
}
"""


def cuda_texture(work: Work) -> Run | None:
    """The texture unit itself; it blends with 8-bit weights, so it is compared within their rounding."""
    vector = {1: "float", 2: "float2", 4: "float4"}.get(work.channels)
    if work.gradients or vector is None or jax.default_backend() != "gpu":
        return None
    try:
        import cupy
        from cupy.cuda import runtime, texture
    except ImportError:
        return None
    texels, x, y, _ = (cupy.asarray(np.asarray(a)) for a in work.inputs)
    size, c = work.size, work.channels
    bits = [32] * c + [0] * (4 - c)
    channels = texture.ChannelFormatDescriptor(*bits, runtime.cudaChannelFormatKindFloat)
    array = texture.CUDAarray(channels, size, size)
    array.copy_from(texels.reshape(size, size * c))
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
    clamp = (runtime.cudaAddressModeClamp,) * 2
    how = texture.TextureDescriptor(
        clamp, runtime.cudaFilterModeLinear, runtime.cudaReadModeElementType, normalizedCoords=1
    )
    handle = texture.TextureObject(resource, how)
    kernel = cupy.RawModule(code=TEX2D.replace("VECTOR", vector)).get_function("read")
    out = cupy.empty((size, size, c), cupy.float32)

    def run():
        kernel(((size * size + 255) // 256,), (256,), (out, x, y, handle, np.int32(size * size)))
        return out

    return run


PEERS: dict[str, Callable[[Work], Run | None]] = {
    "jaxtex": jaxtex,
    "in hardware arithmetic": jaxtex_hardware,
    "copy": copy,
    "CUDA tex2D": cuda_texture,
    "torch": torch,
    "OpenCV": opencv,
    "map_coordinates": map_coordinates,
}
# How far a competitor's result may be from ours, relative to the largest value, and why.
TOLERANCES = {
    "copy": None,  # other work
    "CUDA tex2D": 2.0**-8 * 2,  # 8-bit weights on two axes
    "in hardware arithmetic": 2.0**-8 * 2,  # the same
    "OpenCV": 2.0**-5 * 2,  # fractions of 5 bits on two axes
}
DEFAULT_TOLERANCE = 1e-3  # positions are computed in another order, and slopes jump where they cross a texel's centre


def wait(result: Any) -> Any:
    """Waits until `result` is there, whosever it is."""
    first = result[0] if isinstance(result, tuple) else result
    if isinstance(first, jax.Array):
        return jax.block_until_ready(result)
    module = type(first).__module__.split(".")[0]
    if module == "torch" and first.is_cuda:
        import torch

        torch.cuda.synchronize()
    if module == "cupy":
        import cupy

        cupy.cuda.Device().synchronize()
    return result


def as_numpy(result: Any) -> list[np.ndarray]:
    """`result` as NumPy arrays."""
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(p.get() if hasattr(p, "get") else p.cpu() if hasattr(p, "cpu") else p) for p in parts]


def disagreement(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The 99.9th percentile of differences, relative to the largest value: single samples may sit at a kink."""
    return max(float(np.quantile(abs(a - b), 0.999) / abs(a).max()) for a, b in zip(ours, theirs))
