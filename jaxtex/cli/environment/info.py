"""`jaxtex info`: versions, devices, and whether the installed jaxlib compiles scatter-add to slow code."""

# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import importlib.metadata
import os
import platform
import re
import sys

import jax

from ... import __version__
from ..._jax.versions import SLOW_ATOMICS, is_x64
from .devices import Device, default_devices

NATIVE_ATOMICS = "-nvptx-allow-ftz-atomics"
# The oldest Python for which there is a jaxlib without the problem.
FIRST_WITH_FAST_ATOMICS = (3, 12)


def print_info() -> int:
    """Prints what a bug report needs; returns the exit code."""
    devices = default_devices()
    jaxlib = importlib.metadata.version("jaxlib")
    rows = [
        ("jaxtex", __version__),
        ("jax", importlib.metadata.version("jax")),
        ("jaxlib", jaxlib),
        ("numpy", importlib.metadata.version("numpy")),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("backend", jax.default_backend()),
        *(("device", describe_device(device)) for device in devices),
        ("64-bit types", f"{'on' if is_x64() else 'off'} (jax_enable_x64)"),
        ("scatter-add", scatter_row(jaxlib, jax.default_backend())),
    ]
    for name, value in rows:
        print(f"{name:<16}{value}")
    return 0


def scatter_row(jaxlib: str, backend: str) -> str:
    """What `jaxtex info` says about the scatter-add: advice only for those who can follow it."""
    if backend == "cpu" and has_slow_scatter(jaxlib):
        return f"jaxlib {jaxlib} is slow on CUDA; CPUs are not affected"
    return scatter_advice(jaxlib, os.environ.get("XLA_FLAGS", ""), sys.version_info[:2])


def describe_device(device: Device) -> str:
    """Number, kind and platform of a device, and the memory that JAX may use if the device reports it."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    memory = f", {limit / 2**30:.1f} GiB for JAX" if limit else ""
    return f"{device.id}: {device.device_kind} ({device.platform}){memory}"


def has_slow_scatter(jaxlib: str) -> bool:
    """Whether a jaxlib release compiles float32 scatter-add on CUDA to a compare-and-swap loop.

    Releases 0.10.2 to 0.11.0 do. A suffix after the third number (``.dev1``, ``rc1``, ``.post1``) is ignored, and a
    string that is not a version number counts as a release without the problem.
    """
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", jaxlib)
    first, last = SLOW_ATOMICS
    return match is not None and first <= tuple(map(int, match.groups())) <= last


def scatter_advice(jaxlib: str, xla_flags: str, python: tuple[int, int] = FIRST_WITH_FAST_ATOMICS) -> str:
    """One sentence on the speed of gradients with respect to texels on CUDA, with the remedy if there is one.

    Args:
        jaxlib: the version.
        xla_flags: the environment variable XLA_FLAGS.
        python: the version of Python, which decides what pip can install.
    """
    if not has_slow_scatter(jaxlib):
        return f"jaxlib {jaxlib} is not among the releases known to be slow on CUDA"
    cause = f"jaxlib {jaxlib} compiles float32 scatter-add on CUDA to a slow compare-and-swap loop"
    if NATIVE_ATOMICS in xla_flags:
        return f"{cause}, which {NATIVE_ATOMICS} in XLA_FLAGS prevents"
    remedy = "upgrade jaxlib to 0.11.1 or later"
    if python < FIRST_WITH_FAST_ATOMICS:
        needed, ours = (".".join(map(str, version)) for version in (FIRST_WITH_FAST_ATOMICS, python))
        remedy = f"no later jaxlib can be installed on Python {ours}: upgrade to Python {needed} or later"
    return f"{cause}; {remedy}, or set XLA_FLAGS=--xla_backend_extra_options={NATIVE_ATOMICS} before Python starts"
