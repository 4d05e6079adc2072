"""What a competitor is: a function that takes a `Work` and returns a `Run`, or None where it cannot do that work."""

import dataclasses
import importlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

wait = jax.block_until_ready


class CannotError(Exception):
    """A competitor should do the work, and says why it does not."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The work, ready to run.

    Attributes:
        start: queues the work once and returns its result, in whatever form.
        wait: waits until such a result is there.
        arrays: makes of it what jaxtex returns: an array or a tuple of them, in jaxtex's layout and units. Not timed.
    """

    start: Callable[[], Any]
    wait: Callable[[Any], Any] = wait
    arrays: Callable[[Any], Any] = lambda result: result


Peer = Callable[[Any], Run | None]


def on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def optional(name: str) -> Any:
    """The module of this name, or None if it is not installed. One that is, and fails to load, raises."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name.split(".")[0]:
            return None
        raise


def holding_memory(name: str) -> Any:
    """The module of this name if it may hold memory of a GPU, else None."""
    return sys.modules.get(name) if on_gpu() else None


def as_jax(array: Any) -> jax.Array:
    """A dense array of another library; by way of the host if the two do not share memory."""
    try:
        return jnp.from_dlpack(array)
    except Exception:  # each library raises its own
        return jnp.asarray(array.get() if hasattr(array, "get") else np.asarray(array.cpu()))
