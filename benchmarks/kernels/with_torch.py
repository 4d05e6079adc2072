"""The programs by PyTorch, compiled by `torch.compile`, with channels in front, as it has them."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..peers.protocol import Run, optional
from ..peers.with_torch import device, ours, tensor, wait
from .programs import MEDIAN_OF_NINE, NOISE, PATCH, RADIUS, SEARCH, Program

# Reading. Functions take the module, which is loaded only where it is compared, as their first argument.


def read(torch: Any, image: Any, u: Any, v: Any) -> Any:
    """Linear reads of (B, C, H, W) at (B, H, W) positions from 0 to 1."""
    grid = torch.stack([2 * u - 1, 2 * v - 1], -1)
    return torch.nn.functional.grid_sample(image, grid, padding_mode="border", align_corners=False)


def centers(torch: Any, like: Any, height: int, width: int) -> tuple[Any, Any]:
    """The centers of texels from 0 to 1, x first."""
    rows, columns = ((torch.arange(n, device=like.device) + 0.5) / n for n in (height, width))
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return x[None], y[None]


def shifted(torch: Any, image: Any, reach: int) -> Callable[[int, int], Any]:
    """The texels of (C, H, W) at an offset from each texel, x first."""
    padded = torch.nn.functional.pad(image[None], (reach,) * 4, mode="replicate")[0]
    height, width = image.shape[-2:]
    return lambda i, j: padded[:, reach + j : reach + j + height, reach + i : reach + i + width]


def fraction(image: Any) -> Any:
    return image.movedim(-1, 0).float() / 255


# Programs


def sobel(torch: Any, image: Any) -> Any:
    at = shifted(torch, fraction(image), 1)
    h = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)
    v = at(-1, -1) + 2 * at(0, -1) + at(1, -1) - at(-1, 1) - 2 * at(0, 1) - at(1, 1)
    return (h.abs() + v.abs()).clamp(0, 1)[0]


def bilateral(torch: Any, image: Any, sigma: Any) -> Any:
    image = fraction(image)
    at, total, weights = shifted(torch, image, RADIUS), 0, 0
    for j in range(-RADIUS, RADIUS + 1):
        for i in range(-RADIUS, RADIUS + 1):
            distance = ((at(i, j) - image)[:3] ** 2).sum(0)
            weight = np.exp(-(i * i + j * j) / 32) * (-distance / (2 * sigma * sigma)).exp()
            total, weights = total + weight * at(i, j), weights + weight
    return (total / weights).movedim(0, -1)


def median(torch: Any, image: Any) -> Any:
    at = shifted(torch, fraction(image), 1)
    v = [at(i, j)[0] for j in (-1, 0, 1) for i in (-1, 0, 1)]
    for a, b in MEDIAN_OF_NINE:
        v[a], v[b] = torch.minimum(v[a], v[b]), torch.maximum(v[a], v[b])
    return v[4]


def nonlocal_means(torch: Any, image: Any) -> Any:
    image = fraction(image)
    at, total, weights = shifted(torch, image, SEARCH + PATCH), 0, 0
    patch = [(i, j) for j in range(-PATCH, PATCH + 1) for i in range(-PATCH, PATCH + 1)]
    for v in range(-SEARCH, SEARCH + 1):
        for u in range(-SEARCH, SEARCH + 1):
            distance = sum(((at(u + i, v + j) - at(i, j))[:3] ** 2).sum(0) for i, j in patch)
            weight = (-distance / (len(patch) * NOISE**2)).exp()
            total, weights = total + weight * at(u, v), weights + weight
    return (total / weights).movedim(0, -1)


def blend(torch: Any, a: Any, b: Any, mask: Any, p: Any) -> Any:
    u, v = centers(torch, a, *a.shape[:2])
    cos, sin = p[0].cos(), p[0].sin()
    turned = (u - 0.5) * cos - (v - 0.5) * sin + 0.5, (v - 0.5) * cos + (u - 0.5) * sin + 0.5
    first, second, share = (
        read(torch, x.movedim(-1, 0)[None], *at) for x, at in ((a, turned), (b, (u, v)), (mask, turned))
    )
    return ((share * first + (1 - share) * second) ** p[1])[0].movedim(0, -1)


def morph(torch: Any, a: Any, b: Any, there: Any, back: Any, time: Any) -> Any:
    (height, width), (u, v) = a.shape[:2], centers(torch, a, *a.shape[:2])
    moved = lambda x, flow, t: read(
        torch, x.movedim(-1, 0)[None], u + t * flow[None, ..., 0] / width, v + t * flow[None, ..., 1] / height
    )
    return ((1 - time) * moved(a, there, time) + time * moved(b, back, 1 - time))[0].movedim(0, -1)


def images(torch: Any, batch: Any, angles: Any) -> Any:
    u, v = (a - 0.5 for a in centers(torch, batch, *batch.shape[1:3]))
    cos, sin = angles.cos()[:, None, None], angles.sin()[:, None, None]
    color = read(torch, batch.movedim(-1, 1).float() / 255, cos * u - sin * v + 0.5, sin * u + cos * v + 0.5)
    mean, deviation = (torch.tensor(a, device=batch.device)[:, None, None] for a in ((0.5, 0.4, 0.3), (0.2, 0.3, 0.25)))
    return ((color - mean) / deviation).bfloat16()


def tanh(torch: Any, image: Any) -> Any:
    rows, columns = (torch.arange(n, device=image.device) / n for n in image.shape[:2])
    v, u = torch.meshgrid(rows, columns, indexing="ij")
    return (
        read(torch, image.movedim(-1, 0)[None], (0.9 * u + 0.1 * v)[None], (0.95 * v + 0.02)[None])
        .tanh()[0]
        .movedim(0, -1)
    )


FUNCTIONS = (sobel, bilateral, median, nonlocal_means, blend, morph, images, tanh)
PROGRAMS = {function.__name__: function for function in FUNCTIONS}


def compiled(name: str, program: Program, gradients: bool) -> Run | None:
    """The program, or its gradients along ones, where there is a function for it and PyTorch is installed."""
    if name not in PROGRAMS or not device():
        return None
    torch = optional("torch")
    args = [tensor(jnp.asarray(a)) for a in program.args]
    function = PROGRAMS[name]
    torch.compiler.reset()  # otherwise the limit of compilations of one function leaves the last ones uncompiled
    run = torch.compile(lambda *args: function(torch, *args))
    if not gradients:
        return Run(torch.inference_mode()(lambda: run(*args)), wait, ours)
    moving = [args[k].requires_grad_() for k in program.wrt]

    def start() -> Any:
        out = run(*args)
        return torch.autograd.grad(out, moving, torch.ones_like(out))

    return Run(start, wait, lambda found: tuple(map(ours, found)))
