"""PyTorch's `grid_sample` and `affine_grid`, with channels in front, as it has them."""

import functools
from typing import Any

import jax
import numpy as np

from ..inputs import inputs
from ..works import Work
from .protocol import Run, as_jax, holding_memory, on_gpu, optional

PADDINGS = {"clamp": "border", "border": "zeros", "mirror": "reflection"}


def device() -> str | None:
    """Where PyTorch computes, or None if it is not installed or lacks the device that JAX uses."""
    torch = optional("torch")
    if torch is None or (on_gpu() and not torch.cuda.is_available()):
        return None
    return "cuda" if on_gpu() else "cpu"


def tensor(array: Any) -> Any:
    """A copy that belongs to PyTorch, on its device."""
    torch = optional("torch")
    try:
        return torch.from_dlpack(array).clone()
    except Exception:  # then by way of the host
        return torch.tensor(np.asarray(array), device=device())


def wait(result: Any) -> Any:
    if on_gpu():
        optional("torch").cuda.synchronize()
    return result


def ours(part: Any) -> jax.Array:
    return as_jax(part.detach().contiguous())


def forget() -> None:
    """Gives memory back that PyTorch keeps for later."""
    if (torch := holding_memory("torch")) is not None:
        torch.cuda.empty_cache()


def torch(work: Work) -> Run | None:
    plain = work.given == work.plain and work.dtype == "float32" and not work.mips
    if not plain or work.what == "build" or work.kind == "cubemap" or work.address_mode not in PADDINGS or not device():
        return None
    data, torch = inputs(work), optional("torch")
    channels_first = lambda a: tensor(a if work.batch else a[None]).movedim(-1, 1).contiguous()
    last = lambda out: ours(out.movedim(1, -1) if work.batch else out[0].movedim(0, -1))
    read = functools.partial(
        torch.nn.functional.grid_sample, padding_mode=PADDINGS[work.address_mode], align_corners=False
    )
    image = channels_first(data.texture.texels)
    cotangent = None if data.cotangent is None else channels_first(data.cotangent)
    if work.what == "step":
        return step(read, image, tensor(data.theta), cotangent, last)
    # The grid runs from -1 to 1, jaxtex's coordinates from 0 to 1.
    grid = torch.stack([tensor(c) for c in data.coords], -1)[None] * 2 - 1
    if work.what == "read":
        return Run(lambda: read(image, grid), wait, last)
    wanted = (image, grid) if work.what == "gradients" else (image,)
    for leaf in wanted:
        leaf.requires_grad_()
    out = read(image, grid)

    def arrays(gradients: Any) -> Any:
        if work.what == "splat":
            return last(gradients[0])
        return last(gradients[0]), *(ours(2 * d) for d in gradients[1][0].unbind(-1))

    return Run(lambda: torch.autograd.grad(out, wanted, cotangent, retain_graph=True), wait, arrays)


def step(read: Any, images: Any, theta: Any, cotangent: Any, last: Any) -> Run:
    """Coordinates from the matrices, forward and gradients, together."""
    torch = optional("torch")
    images.requires_grad_()
    theta.requires_grad_()

    def start() -> Any:
        out = read(images, torch.nn.functional.affine_grid(theta, images.shape, align_corners=False))
        return out, *torch.autograd.grad(out, (images, theta), cotangent)

    return Run(start, wait, lambda parts: (last(parts[0]), last(parts[1]), ours(parts[2])))
