"""`jaxtex info`: versions, devices, and whether the installed jaxlib scatters slowly."""

import importlib.metadata
import os
import platform
import re
from typing import Any

import jax

from .. import __version__
from .devices import devices

SLOW_SCATTER_RELEASES = ((0, 10, 2), (0, 11, 0))
NATIVE_ATOMICS = "-nvptx-allow-ftz-atomics"


def info() -> int:
    """Prints what a bug report needs."""
    found = devices()
    print(f"{'jaxtex':<16}{__version__}")
    for package in ("jax", "jaxlib", "numpy"):
        print(f"{package:<16}{importlib.metadata.version(package)}")
    print(f"{'Python':<16}{platform.python_version()} on {platform.system()} {platform.machine()}")
    print(f"{'backend':<16}{jax.default_backend()}")
    for device in found:
        print(f"{'device':<16}{describe(device)}")
    print(f"{'64-bit types':<16}{'on' if jax.config.read('jax_enable_x64') else 'off'} (jax_enable_x64)")
    jaxlib = importlib.metadata.version("jaxlib")
    print(f"{'scatter-add':<16}{scatter_advice(jaxlib, os.environ.get('XLA_FLAGS', ''))}")
    return 0


def describe(device: Any) -> str:
    """A device by number and kind, with the memory JAX may use where the device tells."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    memory = f", {limit / 2**30:.1f} GiB for JAX" if limit else ""
    return f"{device.id}: {device.device_kind} ({device.platform}){memory}"


def scatters_slowly(jaxlib: str) -> bool:
    """Whether a jaxlib release compiles float32 scatter-add on CUDA to a compare-and-swap loop.

    Releases 0.10.2 to 0.11.0 do. What follows the third number (``.dev1``, ``rc1``, ``.post1``) does not
    count, and what is no version number is taken for a good one.

    Source: "GPU scatter-add into a small array up to ~2000x slower in jaxlib 0.10.2-0.11.0 vs 0.10.1" in the
    tracker of jax-ml/jax: since mid 2026 LLVM's NVPTX backend respects the denormal mode of a float atomic
    add, and the native instruction flushes denormals.
    """
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", jaxlib)
    first, last = SLOW_SCATTER_RELEASES
    return match is not None and first <= tuple(map(int, match.groups())) <= last


def scatter_advice(jaxlib: str, xla_flags: str) -> str:
    """One sentence on the speed of gradients to texels on CUDA, with the remedy if there is one."""
    if not scatters_slowly(jaxlib):
        return f"jaxlib {jaxlib} is not among the releases known to be slow on CUDA"
    cause = f"jaxlib {jaxlib} compiles float32 scatter-add on CUDA to a slow compare-and-swap loop"
    if NATIVE_ATOMICS in xla_flags:
        return f"{cause}, which {NATIVE_ATOMICS} in XLA_FLAGS prevents"
    return (
        f"{cause}; upgrade jaxlib to 0.11.1 or later (for Python 3.12 or later), or set "
        f"XLA_FLAGS=--xla_backend_extra_options={NATIVE_ATOMICS} before Python starts"
    )
