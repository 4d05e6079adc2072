"""MONAI's `grid_pull` of volumes, splines of order 0 to 7."""

from typing import Any

from .protocol import optional


def pull(torch: Any, volume: Any, coords: Any, *, order: int, **_: Any) -> Any:
    """A volume (D, H, W) at indices (D, H, W, 3), zero outside."""
    del torch
    read = optional("monai.networks.layers").grid_pull
    return read(volume[None, None], coords[None], interpolation=order, bound="zero", extrapolate=True)[0, 0]
