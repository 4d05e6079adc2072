"""What the comparison of programs needs of jaxtex that is not public: two functions, wherever their modules are."""

import contextlib
import functools
import hashlib
import importlib
import pkgutil
import re
import sys
from unittest import mock

import jaxtex

# The function that compiles a source of CUDA C, and the one that says for which GPU: names, as modules move.
COMPILE, CAPABILITY = "compile_to_ptx", "local_capability"
GPU = (9, 0)
# Packages without kernels, which need more than the library does.
OTHERS = ("jaxtex.__main__", "jaxtex.cli", "jaxtex.layers")


def load(package):
    """Imports all modules of a package."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(OTHERS):
            module = importlib.import_module(found.name)
            if found.ispkg:
                load(module)


@functools.cache
def modules_with(name):
    """The modules of jaxtex that define a function of that name, or import it."""
    load(jaxtex)
    found = [module for key, module in sys.modules.items() if key.startswith("jaxtex.") and hasattr(module, name)]
    if not found:
        raise LookupError(f"no module of jaxtex has a function {name}; adapt tests/lowered/private.py")
    return found


@contextlib.contextmanager
def replaced(name, value):
    """Meanwhile all modules of jaxtex that know that function find `value` in its place."""
    with contextlib.ExitStack() as stack:
        for module in modules_with(name):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


class Kernels:
    """The sources of kernels by their digests, which stand in programs where the PTX of a kernel does."""

    def __init__(self):
        self.sources = {}

    def compile(self, source, capability):
        """In place of NVRTC. Comments are no part of a program."""
        del capability
        code = re.sub(r" *//.*", "", source)
        digest = hashlib.sha256(code.encode()).hexdigest()
        self.sources[digest] = code
        return f"kernel {digest}"

    @contextlib.contextmanager
    def for_a_gpu(self):
        """Programs for CUDA that are lowered meanwhile hold kernels, on a machine that has neither a GPU nor NVRTC."""
        with replaced(COMPILE, self.compile), replaced(CAPABILITY, lambda: GPU):
            yield
