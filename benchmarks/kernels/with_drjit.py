"""The programs by Dr.Jit: traced to one kernel each, with its textures, and its derivatives in reverse mode.

Values are read by the texture unit, as by the CUDA kernels; gradients, which need exact weights, in float. Its textures
hold floats, so images of bytes are divided by 255 beforehand.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..peers.protocol import Run, optional
from ..peers.with_drjit import arrays_module, on_host
from .programs import MEDIAN_OF_NINE, NOISE, PATCH, RADIUS, SEARCH, SPATIAL, Program

# The programs whose reads are of single texels.
OF_POINTS = ("sobel", "bilateral", "median", "nonlocal_means")


class Grid(NamedTuple):
    """The samples of a grid: the modules of Dr.Jit, and the centers of texels in texels, x first."""

    dr: Any
    ad: Any
    x: Any
    y: Any
    size: tuple[int, ...]

    def read(self, texture: Any, *position: Any) -> Any:
        """The channels of a texture at a position from 0 to 1, x first."""
        return self.ad.ArrayXf(texture.eval(getattr(self.ad, f"Array{len(position)}f")(*position)))

    def texel(self, texture: Any, i: Any, j: Any) -> Any:
        """The channels of the texel at an offset, x first."""
        return self.read(texture, (self.x + i) / self.size[1], (self.y + j) / self.size[0])


def sobel(grid: Grid, image: Any) -> Any:
    at = lambda i, j: grid.texel(image, i, j)[0]
    h = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)
    v = at(-1, -1) + 2 * at(0, -1) + at(1, -1) - at(-1, 1) - 2 * at(0, 1) - at(1, 1)
    return [grid.dr.clip(grid.dr.abs(h) + grid.dr.abs(v), 0, 1)]


def bilateral(grid: Grid, image: Any, sigma: Any) -> Any:
    dr, center, scale = grid.dr, grid.texel(image, 0, 0), 0.5 / (sigma * sigma)

    def row(i: Any, total: Any, weights: Any) -> Any:
        offset = grid.ad.Float(i) - RADIUS
        of_row = dr.exp(-offset * offset / 32)
        for j in range(-RADIUS, RADIUS + 1):
            color = grid.texel(image, j, offset)
            distance = sum(dr.square(color[k] - center[k]) for k in range(3))
            weight = of_row * float(SPATIAL[j + RADIUS]) * dr.exp(-distance * scale)
            total, weights = total + weight * color, weights + weight
        return i + 1, total, weights

    state = grid.ad.Int(0), dr.zeros(grid.ad.ArrayXf, (4, grid.size[0] * grid.size[1])), grid.ad.Float(0)
    _, total, weights = dr.while_loop(state, lambda i, *_: i < 2 * RADIUS + 1, row)
    return total / weights


def median(grid: Grid, image: Any) -> Any:
    v = [grid.texel(image, i, j)[0] for j in (-1, 0, 1) for i in (-1, 0, 1)]
    for a, b in MEDIAN_OF_NINE:
        v[a], v[b] = grid.dr.minimum(v[a], v[b]), grid.dr.maximum(v[a], v[b])
    return [v[4]]


def nonlocal_means(grid: Grid, image: Any) -> Any:
    dr, side = grid.dr, 2 * SEARCH + 1
    patch = [(i, j) for j in range(-PATCH, PATCH + 1) for i in range(-PATCH, PATCH + 1)]
    own = [grid.texel(image, i, j) for i, j in patch]

    def candidate(k: Any, total: Any, weights: Any) -> Any:
        u, v = grid.ad.Float(k % side) - SEARCH, grid.ad.Float(k // side) - SEARCH
        distance = 0
        for (i, j), o in zip(patch, own):
            other = grid.texel(image, u + i, v + j)
            distance += sum(dr.square(other[c] - o[c]) for c in range(3))
        weight = dr.exp(-distance / (len(patch) * NOISE**2))
        return k + 1, total + weight * grid.texel(image, u, v), weights + weight

    state = grid.ad.Int(0), dr.zeros(grid.ad.ArrayXf, (4, grid.size[0] * grid.size[1])), grid.ad.Float(0)
    _, total, weights = dr.while_loop(state, lambda k, *_: k < side * side, candidate)
    return total / weights


def bicubic(grid: Grid, image: Any) -> Any:
    dr, side = grid.dr, grid.size[0] / 2

    def pairs(f: Any) -> tuple[Any, ...]:
        w = (1 - f) ** 3 / 6, (4 + 3 * f**3 - 6 * f**2) / 6, (1 + 3 * (f + f**2 - f**3)) / 6, f**3 / 6
        return w[0] + w[1], w[2] + w[3], w[1] / (w[0] + w[1]) - 1, w[3] / (w[2] + w[3]) + 1

    x, y = grid.x / 2 - 0.5, grid.y / 2 - 0.5
    px, py = dr.floor(x), dr.floor(y)
    (gx0, gx1, hx0, hx1), (gy0, gy1, hy0, hy1) = pairs(x - px), pairs(y - py)
    at = lambda h, k: grid.read(image, (px + h + 0.5) / side, (py + k + 0.5) / side)
    return gy0 * (gx0 * at(hx0, hy0) + gx1 * at(hx1, hy0)) + gy1 * (gx0 * at(hx0, hy1) + gx1 * at(hx1, hy1))


def blend(grid: Grid, a: Any, b: Any, mask: Any, p: Any) -> Any:
    u, v, (sin, cos) = grid.x / grid.size[1], grid.y / grid.size[0], grid.dr.sincos(p[0])
    turned = (u - 0.5) * cos - (v - 0.5) * sin + 0.5, (v - 0.5) * cos + (u - 0.5) * sin + 0.5
    share = grid.read(mask, *turned)[0]
    return (share * grid.read(a, *turned) + (1 - share) * grid.read(b, u, v)) ** p[1]


def morph(grid: Grid, a: Any, b: Any, there: Any, back: Any, time: Any) -> Any:
    height, width = grid.size
    moved = lambda texture, flow, t: grid.read(texture, (grid.x + t * flow[0]) / width, (grid.y + t * flow[1]) / height)
    return (1 - time) * moved(a, there, time) + time * moved(b, back, 1 - time)


def tanh(grid: Grid, image: Any) -> Any:
    u, v = (grid.x - 0.5) / grid.size[1], (grid.y - 0.5) / grid.size[0]
    return grid.dr.tanh(grid.read(image, 0.9 * u + 0.1 * v, 0.95 * v + 0.02))


def volume(grid: Grid, density: Any, colors: Any) -> Any:
    steps, dr = density.tensor().shape[0], grid.dr
    u, v = grid.x / grid.size[1], grid.y / grid.size[0]

    def step(k: Any, color: Any, alpha: Any) -> Any:
        z = (grid.ad.Float(k) + 0.5) / steps
        emitted = grid.read(colors, grid.read(density, 0.9 * u + 0.1 * z, v, z)[0])
        absorbed = emitted[3] * (1 - alpha)
        return k + 1, color + absorbed * grid.ad.Array3f(*emitted[:3]), alpha + absorbed

    state = grid.ad.Int(0), grid.ad.Array3f(0), grid.ad.Float(0)
    _, color, alpha = dr.while_loop(state, lambda k, _, alpha: (k < steps) & (alpha < 0.95), step)
    return [*color, alpha]


FUNCTIONS = (sobel, bilateral, median, nonlocal_means, bicubic, blend, morph, tanh, volume)
PROGRAMS: dict[str, Callable[..., Any]] = {function.__name__: function for function in FUNCTIONS}


def drjit(name: str, program: Program, gradients: bool) -> Run | None:
    """The program, or its gradients along ones, where there is a function for it and Dr.Jit is installed."""
    if name not in PROGRAMS or (ad := arrays_module()) is None:
        return None
    dr, function, (height, width) = optional("drjit"), PROGRAMS[name], program.shape
    given = [np.asarray(a) for a in program.args]
    given = [np.float32(a) / 255 if a.dtype == np.uint8 else a for a in given]
    # Images are textures, one for each; arrays that are mapped, and single numbers, are numbers of a sample.
    mapped = program.in_axes or (None,) * len(given)
    are_textures = [a.ndim > 1 and axis is None for a, axis in zip(given, mapped)]
    how = {
        "use_accel": not gradients,
        "migrate": False,
        "filter_mode": dr.FilterMode.Nearest if name in OF_POINTS else dr.FilterMode.Linear,
        "wrap_mode": dr.WrapMode.Clamp,
    }

    def number(a: np.ndarray) -> Any:
        if a.ndim > 1:
            return [ad.Float(np.ascontiguousarray(part).ravel()) for part in np.moveaxis(a, -1, 0)]
        return [ad.Float(float(x)) for x in a] if a.ndim else ad.Float(float(a))

    leaves = [ad.TensorXf(a) if is_texture else number(a) for a, is_texture in zip(given, are_textures)]
    textures = [
        getattr(ad, f"Texture{a.ndim - 1}f")(leaf, **how) if is_texture else None
        for a, leaf, is_texture in zip(given, leaves, are_textures)
    ]
    dr.eval(leaves)

    def channels(operands: Sequence[Any]) -> Any:
        index = dr.arange(ad.UInt32, height * width)
        row = index // width
        grid = Grid(dr, ad, ad.Float(index - row * width) + 0.5, ad.Float(row) + 0.5, (height, width))
        return function(grid, *operands)

    def wait(result: Any) -> Any:
        dr.sync_thread()
        return result

    def read() -> Any:
        out = channels([t or leaf for t, leaf in zip(textures, leaves)])
        dr.eval(out)
        return out

    def backward() -> Any:
        own = [type(leaf)(leaf) if k in program.wrt else leaf for k, leaf in enumerate(leaves)]
        moving = [own[k] for k in program.wrt]
        dr.enable_grad(moving)
        for texture, leaf in zip(textures, own):
            if texture is not None:
                texture.set_tensor(leaf)
        dr.backward(sum(dr.sum(channel) for channel in channels([t or leaf for t, leaf in zip(textures, own)])))
        found = dr.grad(moving)
        dr.eval(found)
        return found

    def image(parts: Any) -> Any:
        shape = () if len(parts) == 1 else (len(parts),)
        return jnp.stack([on_host(p).reshape(height, width) for p in parts], -1).reshape(height, width, *shape)

    def arrays(found: Any) -> Any:
        shapes = [given[k].shape for k in program.wrt]
        whole = lambda part: jnp.stack([on_host(p) for p in part], -1) if isinstance(part, list) else on_host(part)
        return tuple(whole(part).reshape(shape) for part, shape in zip(found, shapes))

    return Run(backward, wait, arrays) if gradients else Run(read, wait, image)
