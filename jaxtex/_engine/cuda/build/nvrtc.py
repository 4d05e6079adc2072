"""NVRTC, which compiles CUDA C++ while a program is lowered. `jax[cuda12]` and `jax[cuda13]` install its library."""

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...._jax.program_files import cache_folder, delete_oldest, usable, write_whole
from ...._jax.versions import folder_of_programs, keeps_programs

# For each compute capability, the oldest version of PTX that supports it. A driver rejects PTX that is newer than
# itself, so kernels declare the oldest version that they need. Source: PTX ISA, "Release Notes".
PTX_VERSIONS = {
    (8, 0): (7, 0),
    (8, 6): (7, 1),
    (8, 7): (7, 4),
    (8, 9): (7, 8),
    (9, 0): (7, 8),
    (10, 0): (8, 6),
    (10, 3): (8, 8),
    (12, 0): (8, 7),
    (12, 1): (8, 8),
}
# The oldest version of PTX for instructions that need a newer one.
INSTRUCTION_VERSIONS = {"red.global.add.v": (8, 1), "used_bytes_mask": (8, 3)}
# The oldest NVRTC that `jax[cuda12]` installs, by the requirements of jax-cuda12-plugin; older ones are not tested.
LEAST_VERSION = (12, 1)
INSTALL = "install jax[cuda12] or jax[cuda13], or the CUDA toolkit"
OPTIONS = ("--std=c++17", "--disable-warnings")
# Leaves out declarations that kernels do not use; for NVRTC from this version on.
MINIMAL, MINIMAL_VERSION = "--minimal", (12, 4)
# The name of a file of PTX, and the most bytes of these in jaxtex's own folder; those not used for longest are deleted.
KEPT, MOST_BYTES = "jaxtex-{}.ptx", 64 * 2**20
Capability = tuple[int, int]


class CompilerUnavailable(RuntimeError):
    """No NVRTC that compiles for this GPU, or no launcher of PTX, is available."""


class CompilationFailed(RuntimeError):
    """NVRTC rejected a source."""


def candidates() -> Iterator[Path | str]:
    """The paths of NVRTC to try: in packages of `jax[cuda12]` or `jax[cuda13]`, newest first, then on the system."""
    spec = importlib.util.find_spec("nvidia")
    folders = map(Path, (spec and spec.submodule_search_locations) or ())
    yield from newest_first(path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*[0-9]"))
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Paths of libraries, sorted by the version at the end of their names; 12.10 is newer than 12.9."""
    version = lambda path: [*map(int, re.findall(r"\d+", path.name.partition(".so.")[2]))]
    return sorted(paths, key=version, reverse=True)


@functools.cache
def library() -> ctypes.PyDLL:
    """The first of `candidates` that is new enough. Its functions keep the interpreter, which they take no longer.

    Raises:
        CompilerUnavailable: if there is none.
    """
    older = []
    for path in candidates():
        with contextlib.suppress(OSError):
            if isinstance(path, Path):
                for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
                    ctypes.CDLL(str(builtins))  # loaded here, because NVRTC opens it without a path
            nvrtc = ctypes.PyDLL(str(path))
            version = version_of(nvrtc)
            if version >= LEAST_VERSION:
                return nvrtc
            older.append(version)
    if older:
        newest, least = ("{}.{}".format(*version) for version in (max(older), LEAST_VERSION))
        raise CompilerUnavailable(f"NVRTC {newest} is too old, kernels need {least} or newer; {INSTALL}")
    raise CompilerUnavailable(f"NVRTC is missing; {INSTALL}")


def without_interpreter(nvrtc: ctypes.PyDLL) -> ctypes.CDLL:
    """NVRTC with functions during which other threads run Python."""
    return ctypes.CDLL(nvrtc._name, handle=nvrtc._handle)


def version_of(nvrtc: ctypes.PyDLL) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def known_capabilities() -> list[Capability]:
    """The compute capabilities for which NVRTC compiles."""
    count = ctypes.c_int()
    library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library().nvrtcGetSupportedArchs(numbers)
    return [(number // 10, number % 10) for number in numbers]


def known_below(capability: Capability) -> Capability:
    """The newest capability up to `capability` that NVRTC compiles for: GPUs run PTX for older capabilities.

    Raises:
        CompilerUnavailable: if there is no NVRTC, or no such capability.
    """
    known = [c for c in known_capabilities() if c <= capability]
    if not known:
        version, asked = ("{}.{}".format(*pair) for pair in (version_of(library()), capability))
        raise CompilerUnavailable(f"NVRTC {version} does not compile for compute capability {asked}; {INSTALL}")
    return max(known)


def text_of(program: ctypes.c_void_p, name: str) -> str:
    """A text of a program: `name` is "PTX" or "ProgramLog"."""
    size = ctypes.c_size_t()
    getattr(library(), f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library(), f"nvrtcGet{name}")(program, text)
    return text.value.decode()


@functools.cache
def compile_to_ptx(source: str, capability: Capability) -> str:
    """The PTX of a source in CUDA C++, from NVRTC, or from a file if an earlier process kept it.

    Args:
        capability: the compute capability of the GPU, such as ``(9, 0)``. If NVRTC is older than that, the PTX is for
            the newest capability that it knows.

    Raises:
        CompilerUnavailable: if there is no NVRTC for this GPU.
        CompilationFailed: if NVRTC rejects the source.
    """
    capability = known_below(capability)
    kept = kept_file(source, capability)
    if kept is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return kept.read_text("utf-8")
    ptx = with_version(compiled(source, capability), capability)
    if kept is not None:
        with contextlib.suppress(OSError):
            write_whole(kept, ptx.encode())
            if kept.parent == own_folder():
                delete_oldest(kept.parent, MOST_BYTES, KEPT.format("*"))
    return ptx


def compiled(source: str, capability: Capability) -> str:
    """The PTX of a source, from NVRTC."""
    nvrtc, program = library(), ctypes.c_void_p()
    options = [f"--gpu-architecture=compute_{capability[0]}{capability[1]}", *OPTIONS]
    options += [MINIMAL] * (version_of(nvrtc) >= MINIMAL_VERSION)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None):
        raise CompilationFailed("NVRTC cannot begin a program")
    try:
        if without_interpreter(nvrtc).nvrtcCompileProgram(program, len(options), given):
            version, log = "{}.{}".format(*version_of(nvrtc)), text_of(program, "ProgramLog").strip()
            raise CompilationFailed(f"NVRTC {version} refuses a kernel: {log}")
        return text_of(program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def with_version(ptx: str, capability: Capability) -> str:
    """The PTX, declared for the least version with its instructions."""
    if capability not in PTX_VERSIONS:
        return ptx
    needed = max([PTX_VERSIONS[capability], *(v for text, v in INSTRUCTION_VERSIONS.items() if text in ptx)])
    version = "{}.{}".format(*needed)
    return re.sub(r"^\.version .*$", f".version {version}", ptx, count=1, flags=re.MULTILINE)


def kept_file(source: str, capability: Capability) -> Path | None:
    """The file that keeps the PTX of a source between processes; `None` if nothing may be kept.

    It lies in JAX's cache folder if there is one on this host, and otherwise in a folder of jaxtex's own.
    """
    of_jax = folder_of_programs()
    folder = own_folder() if of_jax is None or "://" in of_jax else Path(of_jax)
    if folder is None:
        return None
    parts = (source, capability, version_of(library()), OPTIONS, PTX_VERSIONS, INSTRUCTION_VERSIONS)
    return folder / KEPT.format(hashlib.sha256(repr(parts).encode()).hexdigest())


def own_folder() -> Path | None:
    """The folder of jaxtex's own for PTX; `None` if nothing may be kept there."""
    base = cache_folder(os.environ) if keeps_programs() else None
    folder = None if base is None else base / "kernels"
    return folder if folder is not None and usable(folder) else None
