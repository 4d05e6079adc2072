"""nanodrr's Triton kernels of radiographs."""

from typing import Any

from .protocol import optional


def radiograph(torch: Any, pose: Any, volume: Any, source: Any, target: Any, *, samples: int, **_: Any) -> Any:
    """The mean of the samples of each ray. Its samples include the ends, and texels have their centers at integers."""
    half = (target - source) * (0.5 / samples)
    ends = ((a.reshape(1, -1, 3)).contiguous() for a in (source + half, target - half))
    share = torch.full((1, target.shape[0] * target.shape[1]), 1 / samples, device=volume.device)
    moved = torch.cat([pose[:, :3], pose[:, 3:] - 0.5], 1)[None]
    texels = volume[..., 0]
    march = optional("nanodrr.drr._fused").fused_raymarch
    means = march(texels, texels.detach(), moved, *ends, share, samples, 1, target.shape[1])
    return means.reshape(*target.shape[:2], 1)
