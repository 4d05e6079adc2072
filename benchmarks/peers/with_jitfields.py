"""jitfields' `pull` of volumes, splines of order 0 to 7."""

from typing import Any

from .protocol import optional


def pull(torch: Any, volume: Any, coords: Any, *, order: int, **_: Any) -> Any:
    """A volume (D, H, W) at indices (D, H, W, 3), zero outside."""
    del torch
    return optional("jitfields.pushpull").pull(volume[..., None], coords, order=order, bound="zero")[..., 0]
