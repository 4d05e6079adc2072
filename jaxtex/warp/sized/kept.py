"""A cache of compiled programs in a folder, which saves tracing and compiling.

JAX's own cache is keyed by the lowered program, and tracing and lowering take most of the time that a process needs for
one image. Here the key is the origin of a program: its function and arguments in `image.compiled`, the files of jaxtex,
the versions, the settings and the processor.

Files are loaded as code, as from JAX's cache: the folder must belong to the user.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import jax
from jax.experimental import serialize_executable

from ..._jax.program_files import write_whole
from ..._jax.versions import jaxlib_version
from .mappings import Device

SUFFIX = ".program"
# The prefixes of variables that change compiled programs.
SETTINGS = ("JAX_", "XLA_", "LLVM_")
# Linux's description of the processors, and how many characters hold the first.
CPU_INFO, PROCESSOR = Path("/proc/cpuinfo"), 2**13


class Folder:
    """The folder of the cache; its `path` is `None` outside of `keep_in`."""

    path: Path | None = None


@contextlib.contextmanager
def keep_in(folder: Path | None, device: Device) -> Generator[None, None, None]:
    """Keeps the programs of a device in a folder, in the block; `None` keeps none.

    Programs for GPUs are left to JAX's cache, as they load kernels into the process that compiles them. On a CPU, JAX's
    cache is turned off in this process: a program from a file cannot be written to another file.
    """
    before, Folder.path = Folder.path, folder if device.platform == "cpu" else None
    if Folder.path is not None:
        jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        Folder.path = before


def kept(key: Any, device: Device, compile_program: Callable[[], Any]) -> Any:
    """The program of a key, from the cache or from `compile_program`, whose result is then kept.

    Args:
        key: everything that `compile_program` depends on, beside the process and the device. It is pickled.
    """
    if Folder.path is None:
        return compile_program()
    try:
        named = hashlib.sha256(pickle.dumps((fingerprint(), device.id, key)))
    except (pickle.PicklingError, AttributeError, TypeError):  # a function that has no name in a module
        return compile_program()
    file, client = Folder.path / (named.hexdigest() + SUFFIX), cast(Any, device).client
    try:
        program, structure, result = pickle.loads(file.read_bytes())
        return serialize_executable.deserialize_and_load(program, structure, result, client, [device])
    except Exception:  # there is no such file, or it is damaged in whatever way
        program = compile_program()
    with contextlib.suppress(OSError, ValueError, NotImplementedError):
        write_whole(file, pickle.dumps(serialize_executable.serialize(program)))
    return program


@functools.cache
def fingerprint() -> tuple[Any, ...]:
    """Everything that programs of this process depend on, beside their keys."""
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith(SETTINGS))
    return sys.version, jax.__version__, jaxlib_version(), settings, processor(), sources(Path(__file__).parents[2])


def processor() -> str:
    """The processor and the instructions that it has."""
    try:
        with CPU_INFO.open() as file:
            lines = file.read(PROCESSOR).splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    named = ("model name", "flags", "CPU implementer", "CPU part", "Features")
    return "\n".join(next((line for line in lines if line.startswith(name)), "") for name in named)


def sources(folder: str | Path) -> list[tuple[str, int, int]]:
    """The path, the size and the time of each module in a folder and the folders in it."""
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                found += sources(entry.path)
            elif entry.name.endswith((".py", ".cu", ".cuh")):
                status = entry.stat()
                found.append((entry.path, status.st_size, status.st_mtime_ns))
    return sorted(found)
