"""`alt_cuda_corr`, RAFT's kernel that computes the correlations of a window where it reads them, without volumes."""

import functools
from typing import Any

from .protocol import optional


@functools.cache
def function() -> Any:
    torch, kernels = optional("torch"), optional("alt_cuda_corr")

    class Correlation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, first: Any, second: Any, coords: Any, radius: int) -> Any:
            ctx.save_for_backward(first, second, coords)
            ctx.radius = radius
            return kernels.forward(first, second, coords, radius)[0]

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> Any:
            # Those of coordinates are zeros that it does not compute.
            of_maps = kernels.backward(*ctx.saved_tensors, cotangent.contiguous(), ctx.radius)[:2]
            return *of_maps, None, None

    return Correlation


def correlation(torch: Any, first: Any, second: Any, coords: Any, *, levels: int, radius: int, **_: Any) -> Any:
    batch, height, width, channels = first.shape
    maps, found = second.movedim(-1, 1), []
    for k in range(levels):
        maps = torch.nn.functional.avg_pool2d(maps, 2, stride=2) if k else maps
        at = (coords / 2**k)[:, None].contiguous()
        found.append(function().apply(first, maps.movedim(1, -1).contiguous(), at, radius))
    # (B, 1, (2 radius + 1)^2, H, W) of each level.
    return torch.cat(found, 2).view(batch, -1, height, width).movedim(1, -1) / channels**0.5
