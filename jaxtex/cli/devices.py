"""The devices that JAX has, and the one that a name means."""

from typing import Any

import jax

from .errors import UserError, one_line


def devices() -> list[Any]:
    """The devices of the default backend, which starts it.

    Raises:
        UserError: if there is none, such as on a machine without the GPU that JAX_PLATFORMS names.
    """
    try:
        return jax.devices()
    except RuntimeError as error:
        raise UserError(f"JAX finds no device, {one_line(error)}") from error


def device_named(platform: str | None, number: int = 0) -> Any:
    """The device of a platform, such as cpu or gpu, with this number; without a platform JAX's first.

    Raises:
        UserError: if there is no such device.
    """
    default = devices()
    if platform is None:
        return default[0]
    try:
        return jax.devices(platform)[number]
    except (RuntimeError, IndexError):
        everything = {f"{d.platform}:{k}": d for found in (default, *hosts()) for k, d in enumerate(found)}
        raise UserError(f"there is no device {platform}:{number}, but {', '.join(everything)}") from None


def hosts() -> list[list[Any]]:
    """The processor's devices, which JAX has beside those of an accelerator unless it is told otherwise."""
    try:
        return [jax.devices("cpu")]
    except RuntimeError:
        return []
