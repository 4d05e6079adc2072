"""What a machine has: packages, JAX with the settings that it takes, a cache for its programs, devices, versions.

Nothing here imports JAX before `start_jax`, since that takes a second.
"""

import contextlib
import importlib
import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .._jax.program_files import cache_folder, usable
from .process import UserError, did_you_mean, one_line

if TYPE_CHECKING:
    from ..warp.sized.mappings import Device

# The name of each module of the extra `cli`, and of the package that installs it.
PACKAGES = {
    "PIL": "pillow",
    "tifffile": "tifffile",
    "imagecodecs": "imagecodecs",
    "tqdm": "tqdm",
    "yaml": "pyyaml",
    "shtab": "shtab",
}
JAX_PREFIX, XLA_FLAGS = "JAX_", "XLA_FLAGS"
# XLA parses its flags when they are first needed, and ends the process if one is wrong: so another process tries it.
PARSE_FLAGS = "from jaxlib import xla_client; xla_client.CompileOptions()"
# A line that XLA logs as an error or a fatal one, and its text.
LOGGED = re.compile(r"^[EF]\d{4} .*?\] (.*)$", re.MULTILINE)

# JAX's own names: a folder of the user's, which JAX then uses, and whether there is a cache at all.
CACHE_FOLDER, CACHE_SWITCH = "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"
OFF = ("n", "no", "f", "false", "off", "0")
# A program of any size is kept, however fast it was compiled.
KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
# Programs of more bytes in all are deleted, those first that were not used for longest.
MOST_BYTES = 256 * 2**20


def check_extra() -> None:
    """Checks that the extra `cli` is installed, and imports none of it."""
    missing = [package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UserError(
            f"jaxtex warp reads and writes images with packages that are not installed ({', '.join(missing)}); "
            "install them in a checkout of jaxtex: pip install '.[cli]'"
        )


# Settings


def start_jax() -> None:
    """Imports JAX, once it is known that XLA takes its flags."""
    if "jax" in sys.modules:
        return
    check_xla_flags(os.environ)
    try:
        importlib.import_module("jax")
    except (ValueError, RuntimeError) as error:
        raise UserError(f"JAX does not start{refused_settings(str(error), os.environ)} ({one_line(error)})") from error


def refused_settings(message: str, environment: Mapping[str, str]) -> str:
    """Which variables a message of JAX is about, as the middle of a sentence; all of JAX's if it names none.

    JAX's messages have the name of the variable, or of its setting: jax_enable_x64, jax.default_device.
    """
    ours = [name for name in environment if name.startswith(JAX_PREFIX)]
    named = [name for name in ours if name.removeprefix(JAX_PREFIX).lower() in message.lower()]
    settings = [f"{name}={environment[name]}" for name in named or ours]
    if not settings:
        return ""
    return f" with {' and '.join(settings)}; change or unset {'it' if len(settings) == 1 else 'them'}"


def check_xla_flags(environment: Mapping[str, str]) -> None:
    """Checks that XLA takes its flags, if there are any."""
    flags = environment.get(XLA_FLAGS, "")
    if not flags.strip():
        return
    command = [sys.executable, "-c", PARSE_FLAGS]
    tried = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=False)
    logged = LOGGED.search(tried.stderr)
    if tried.returncode and logged:
        reason = logged[1].strip().rstrip(".")
        raise UserError(f"XLA does not start with {XLA_FLAGS}={flags}; change or unset it ({reason})")


# Compiled programs


def keep_compilations() -> Path | None:
    """Has JAX, which is not imported yet, keep programs; returns their folder if it is the user's, and can be written.

    Programs for CPUs are kept there by `warp.sized.kept`, which finds them faster.
    """
    folder = cache_folder(os.environ)
    if CACHE_FOLDER in os.environ or os.environ.get(CACHE_SWITCH, "").lower() in OFF:
        return None
    if folder is None or not usable(folder):
        return None
    os.environ[CACHE_FOLDER] = str(folder)
    for name, value in KEEP_ALL.items():
        os.environ.setdefault(name, value)
    return folder


# Devices


def default_devices() -> "list[Device]":
    """The devices of the default backend, which this starts."""
    import jax

    try:
        return cast(Any, jax.devices())
    except (RuntimeError, AssertionError) as error:  # JAX asserts that the platforms of JAX_PLATFORMS exist
        platforms = os.environ.get("JAX_PLATFORMS")
        chosen = f" of JAX_PLATFORMS={platforms}; unset it to let JAX choose" if platforms else ""
        detail = f" ({one_line(error)})" if str(error) else ""
        raise UserError(f"JAX finds no device{chosen}{detail}") from error


def find_device(name: str | None, number: int = 0) -> "Device":
    """The device with this number on a platform.

    Args:
        name: of the platform, such as cpu or gpu; `None` for the first device of the default backend.
    """
    import jax

    if cast(Any, jax.config).jax_disable_jit:
        raise UserError("JAX_DISABLE_JIT is set, and images are warped by compiled programs; unset it")
    found = [default_devices()]
    if name is None:
        return found[0][0]
    with contextlib.suppress(RuntimeError, IndexError):
        return cast(Any, jax.devices(name)[number])
    with contextlib.suppress(RuntimeError):  # CPUs are beside an accelerator, unless JAX_PLATFORMS excludes them
        found.append(cast(Any, jax.devices("cpu")))
    names = dict.fromkeys(f"{device.platform}:{k}" for devices in found for k, device in enumerate(devices))
    nearest = did_you_mean(f"{name}:{number}", names)
    raise UserError(f"there is no device {name}:{number}; the devices are {', '.join(names)}{nearest}")


# `jaxtex info`


def print_info() -> int:
    """Prints what a bug report needs; returns the exit code."""
    from importlib.metadata import version  # as slow to import as all else of `jaxtex --help`

    import jax

    from .. import __version__
    from .._jax.versions import is_x64

    devices = default_devices()
    jaxlib = version("jaxlib")
    rows = [
        ("jaxtex", __version__),
        ("jax", version("jax")),
        ("jaxlib", jaxlib),
        ("numpy", version("numpy")),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("backend", jax.default_backend()),
        *(("device", describe_device(device)) for device in devices),
        ("64-bit types", f"{'on' if is_x64() else 'off'} (jax_enable_x64)"),
        ("scatter-add", scatter_row(jaxlib, jax.default_backend())),
    ]
    for name, value in rows:
        print(f"{name:<16}{value}")
    return 0


def describe_device(device: "Device") -> str:
    """Number, kind and platform of a device, and the memory that JAX may use if the device reports it."""
    limit = (device.memory_stats() or {}).get("bytes_limit")
    memory = f", {limit / 2**30:.1f} GiB for JAX" if limit else ""
    return f"{device.id}: {device.device_kind} ({device.platform}){memory}"


def scatter_row(jaxlib: str, backend: str) -> str:
    """What `jaxtex info` says about the scatter-add: advice only for those who can follow it."""
    from .._jax.versions import SLOW_ATOMICS_ADVICE, has_slow_atomics

    if not has_slow_atomics(jaxlib):
        return f"jaxlib {jaxlib} is not among the releases known to be slow on CUDA"
    affected = backend != "cpu"
    return SLOW_ATOMICS_ADVICE if affected else f"jaxlib {jaxlib} is slow on CUDA; CPUs are not affected"
