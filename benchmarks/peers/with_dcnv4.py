"""DCNv4's kernels: `FlashDeformAttnFunction`, which also computes the softmax, and `DCNv4Function`."""

import functools
from typing import Any

from .protocol import optional

# Its kernels take so many images of a batch at once.
IMAGES = 256


@functools.cache
def shapes_and_starts(levels: Any) -> Any:
    """The sizes of levels and the place of each one's first value, on the GPU."""
    torch = optional("torch")
    shapes = torch.tensor(levels, dtype=torch.int64, device="cuda")
    counts = shapes.prod(1)
    return shapes, counts.cumsum(0) - counts


@functools.cache
def attention_module() -> Any:
    """The module of its attention, which keeps the sizes of blocks: to find them takes longer than its kernels."""
    module = optional("DCNv4.functions.flash_deform_attn_func")
    module.findspec, module.findspec_bwd = map(functools.cache, (module.findspec, module.findspec_bwd))
    return module


def attention(torch: Any, values: Any, packed: Any, *, levels: Any, points: int, **_: Any) -> Any:
    del torch
    read = attention_module().FlashDeformAttnFunction
    return read.apply(values, *shapes_and_starts(levels), packed, IMAGES, points)


def convolution(torch: Any, x: Any, packed: Any, *, groups: int, **_: Any) -> Any:
    """Three by three taps, one apart, with one pixel around the image."""
    del torch
    side, stride, padding, dilation = ((n, n) for n in (3, 1, 1, 1))
    where = *side, *stride, *padding, *dilation, groups, x.shape[-1] // groups
    return optional("DCNv4.functions").DCNv4Function.apply(x, packed, *where, 1.0, IMAGES, 0)
