"""The devices of JAX, by platform and number."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from typing import Any, Protocol, cast

import jax

from ..errors import UserError, one_line


class Device(Protocol):
    """A device of JAX, whose own class has no type."""

    id: int
    platform: str
    device_kind: str

    def memory_stats(self) -> dict[str, int] | None: ...


def default_devices() -> list[Device]:
    """The devices of the default backend, which this starts.

    Raises:
        UserError: if there is none, for example because JAX_PLATFORMS names a GPU that the machine does not have.
    """
    try:
        return cast(list[Device], jax.devices())
    except (RuntimeError, AssertionError) as error:  # JAX asserts that the platforms of JAX_PLATFORMS exist
        platforms = os.environ.get("JAX_PLATFORMS")
        chosen = f" of JAX_PLATFORMS={platforms}; unset it to let JAX choose" if platforms else ""
        detail = f" ({one_line(error)})" if str(error) else ""
        raise UserError(f"JAX finds no device{chosen}{detail}") from error


def cpu_devices() -> list[Device]:
    """The CPU devices, which JAX has beside those of an accelerator unless JAX_PLATFORMS excludes them."""
    try:
        return cast(list[Device], jax.devices("cpu"))
    except RuntimeError:
        return []


def find_device(platform: str | None, number: int = 0) -> Device:
    """The device with this number on a platform.

    Args:
        platform: such as cpu or gpu; `None` for the first device of the default backend.
        number: from 0.

    Raises:
        UserError: if there is no such device, with a list of those that there are, or JAX may not compile.
    """
    if cast(Any, jax.config).jax_disable_jit:
        raise UserError("JAX_DISABLE_JIT is set, and images are warped by compiled programs; unset it")
    default = default_devices()
    if platform is None:
        return default[0]
    try:
        return jax.devices(platform)[number]
    except (RuntimeError, IndexError):
        found = (default, cpu_devices())
        names = {f"{device.platform}:{k}": device for devices in found for k, device in enumerate(devices)}
        raise UserError(f"there is no device {platform}:{number}; the devices are {', '.join(names)}") from None
