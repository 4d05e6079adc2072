"""NVRTC, which compiles CUDA C while a program is lowered. `jax[cuda12]` and `jax[cuda13]` bring its library."""

import contextlib
import ctypes
import functools
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

# By the compute capability: the least version of PTX that has it. A driver takes PTX up to its own version, so a
# program asks for no more than it needs. Source: PTX ISA, "Release Notes".
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
# Of instructions that need a newer one.
INSTRUCTION_VERSIONS = {"red.global.add.v": (8, 1)}
Capability = tuple[int, int]


class CompilerUnavailable(RuntimeError):
    """There is no NVRTC that could compile a kernel for this GPU."""


class CompilationFailed(RuntimeError):
    """NVRTC refused a source."""


def candidates() -> Iterator[Path | str]:
    """Where the library may be: in the packages of `jax[cuda12]` or `jax[cuda13]`, newest first, or on the system."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        yield from sorted(Path(folder).glob("*/lib/libnvrtc.so.*[0-9]"), reverse=True)
    yield from ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


@functools.cache
def library() -> ctypes.CDLL:
    """NVRTC.

    Raises:
        CompilerUnavailable: if it is not installed.
    """
    for path in candidates():
        with contextlib.suppress(OSError):
            if isinstance(path, Path):
                for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
                    ctypes.CDLL(str(builtins))  # which NVRTC opens by its name alone
            return ctypes.CDLL(str(path))
    raise CompilerUnavailable("NVRTC is missing; install jax[cuda12] or jax[cuda13], or the CUDA toolkit")


def text_of(program: ctypes.c_void_p, name: str) -> str:
    """The log or the PTX of a program."""
    size = ctypes.c_size_t()
    getattr(library(), f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library(), f"nvrtcGet{name}")(program, text)
    return text.value.decode()


@functools.cache
def compile_to_ptx(source: str, capability: Capability) -> str:
    """Compiles a source of CUDA C to PTX.

    Args:
        capability: the compute capability of the GPU, such as ``(9, 0)``.

    Raises:
        CompilerUnavailable: if there is no NVRTC.
        CompilationFailed: if NVRTC refuses the source.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    architecture = f"--gpu-architecture=compute_{capability[0]}{capability[1]}"
    options = [architecture, "--std=c++17", "--disable-warnings"]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None):
        raise CompilationFailed("NVRTC cannot begin a program")
    try:
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            raise CompilationFailed(text_of(program, "ProgramLog"))
        ptx = text_of(program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if capability not in PTX_VERSIONS:
        return ptx
    needed = max(PTX_VERSIONS[capability], *(v for text, v in INSTRUCTION_VERSIONS.items() if text in ptx), (0, 0))
    version = "{}.{}".format(*needed)
    return re.sub(r"^\.version .*$", f".version {version}", ptx, count=1, flags=re.MULTILINE)
