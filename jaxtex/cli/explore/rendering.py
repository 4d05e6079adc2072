"""The pictures of the page, computed by the calls that it shows.

Rotation, scale, tilt and level of detail are operands of the programs that JAX compiles; the modes are static. So a
slider compiles nothing, and each combination of modes is compiled once.
"""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import functools
import io
from collections.abc import Hashable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from ... import warp
from ...mipmaps import build_mipmaps
from ...sampler import Sampler
from ...sampling import sample
from ...texture import Texture, texture2d
from ..pictures.picture import Array
from .views import View, hardware_problem

WHITE = 255.0
FAST = 1  # of zlib's levels


class Rendered(NamedTuple):
    """What the page shows of a view.

    Attributes:
        pixels: the warped picture, (height, width, 1 or 3), uint8.
        differences: between float and hardware arithmetic, absolute, of the range of the pixels, 0 to 255 but not
            rounded; `None` if no texture unit reads the view.
        is_first: whether it is the first view with these modes, so that its programs were compiled.
    """

    pixels: Array
    differences: Array | None
    is_first: bool


class Renderer:
    """Warps one picture.

    Args:
        pixels: (height, width, 1 or 3), uint8.
    """

    def __init__(self, pixels: Array) -> None:
        self.pixels = pixels
        self.seen: set[Hashable] = set()

    def render(self, view: View) -> Rendered:
        """The pictures of a view."""
        modes = (view.sampler("float"), view.reads_level, view.tilt > 0, view.antialias)
        is_first = modes not in self.seen
        self.seen.add(modes)
        values = self.values(view, view.arithmetic)
        differences = None
        if hardware_problem(view) is None:
            other = self.values(view, "hardware" if view.arithmetic == "float" else "float")
            differences = np.abs(values - other)
        return Rendered(as_pixels(values), differences, is_first)

    def values(self, view: View, arithmetic: str) -> Array:
        """The warped picture in an arithmetic, float32, as the calls of `written.python_call` compute it."""
        sampler, dtype = view.sampler(arithmetic), jnp.float32
        if view.reads_level:
            x, y = self.coords(view)
            return WHITE * np.asarray(sample_level(self.chain, x, y, np.float32(view.level), sampler))
        if view.tilt:
            matrix = view.matrix(self.size).astype(np.float32)
            warped = warp.warp_perspective(
                self.on_device, matrix, sampler=sampler, antialias=view.antialias, dtype=dtype
            )
        else:
            degrees, scale = np.float32(view.degrees), np.float32(view.scale)
            warped = warp.rotate(
                self.on_device, degrees, scale=scale, sampler=sampler, antialias=view.antialias, dtype=dtype
            )
        return np.asarray(warped)

    def coords(self, view: View) -> tuple[Array, Array]:
        """The normalized coordinates in the picture of each pixel of the output, each (height, width)."""
        width, height = self.size
        x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
        x, y, w = np.einsum("ij,jhw->ihw", np.linalg.inv(view.matrix(self.size)), [x, y, np.ones_like(x)])
        return (x / w / width).astype(np.float32), (y / w / height).astype(np.float32)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.pixels.shape[1], self.pixels.shape[0]

    @functools.cached_property
    def on_device(self) -> jax.Array:
        """The pixels on the device."""
        return jnp.asarray(self.pixels)

    @functools.cached_property
    def chain(self) -> Texture:
        """The mip chain of the picture, as fractions."""
        return build_mipmaps(texture2d(jnp.asarray(self.pixels / np.float32(WHITE))))


@functools.partial(jax.jit, static_argnames="sampler")
def sample_level(chain: Texture, x: Array, y: Array, level: Array, sampler: Sampler) -> jax.Array:
    """A read at a level of detail."""
    return sample(chain, (x, y), sampler, lod=level)


def as_pixels(values: Array) -> Array:
    """Values from 0 to 255 as the nearest bytes."""
    return np.rint(np.clip(values, 0, WHITE)).astype(np.uint8)


def amplified(differences: Array, factor: float) -> Array:
    """Differences times a factor, as a picture."""
    return as_pixels(differences * factor)


def difference_sentence(differences: Array) -> str:
    """The largest difference, in words."""
    largest = float(differences.max(initial=0))
    if not largest:
        return "Both are equal in every value."
    share = float(np.mean(differences > 0))
    return f"Largest difference: {largest:.3g}, where white is 255. {share:.0%} of the values differ."


def png(pixels: Array) -> bytes:
    """A picture as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG", compress_level=FAST)
    return buffer.getvalue()
