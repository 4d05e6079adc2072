"""Reads in the forms of one device: arrays on a CPU, arrays on a GPU, and kernels, as C++ and on a card."""

import contextlib
from unittest import mock

import jax
import pytest

from jaxtex._engine.cuda.build import launch
from jaxtex._engine.forms import cpu, gpu_kernels
from tests.compiled.calls import BATCHES, POINTS, TEXELS
from tests.compiled.contract import CALLS, ReadContract, with_cotangents
from tests.support.host_kernels import lowered_as_for_a_gpu, noted_kernels

ON_GPU = jax.default_backend() == "gpu"
# Of calls at fields and inside of models, whose arrays the same code computes, one of each kind.
FEW = (
    *("bspline 5", "a footprint with a color", "a footprint in texels, hardware", "flows", "affine maps", "indices"),
    *("votes for labels", "few texels, 2 channels, reproducible", "a hashed level", "a pyramid of heads"),
)
# Of calls whose texels get cotangents, those at which these are added in other ways.
ADDED = (
    *("1d", "border, 3 channels", "mirror, 4 channels", "wrap, 20 channels", "cubic", "3d", "layers", "a cube"),
    *("a chain", "a grid of lines", "few samples", "a crowd", "as they lie", "texels alone", "a reproducible crowd"),
    *("a shared texture", "NaN", "bspline 5"),
)
READS = {"texture_read", "texture_read_planes", "texture_bordered_read", "texture_unit_read", "texture_fold"}
ADJOINTS = {"texture_splat", "texture_pullback", "fused_adjoint"}


def on_a_cpu():
    return jax.default_device(jax.local_devices(backend="cpu")[0])


@contextlib.contextmanager
def fallbacks():
    """Programs that are lowered meanwhile hold the arrays that a GPU gets where no kernel is supported."""
    no_kernels = mock.patch.object(gpu_kernels, "can_compile_kernels", return_value=False)
    with no_kernels, contextlib.nullcontext() if ON_GPU else lowered_as_for_a_gpu():
        yield


class TestArrays(ReadContract):
    """Arrays on a CPU: texels of four bytes are loaded as words, and adjoints are taken in blocks.

    Blocks are of few samples, and do not divide them.
    """

    calls = (*POINTS, *TEXELS, *BATCHES, *FEW)

    def run(self, function, *args):
        blocks = mock.patch.multiple(cpu, BLOCK=128, FEWEST_SAMPLES=16)
        with on_a_cpu(), blocks:
            return jax.jit(function)(*args)


class TestArraysForAGpu(ReadContract):
    """Cotangents of texels are added in pairs, to copies where samples crowd."""

    calls = ADDED

    def run(self, function, *args):
        with fallbacks():
            return jax.jit(function)(*args)


class TestKernels(ReadContract):
    """Kernels as C++: one that reads runs in each call, and one for its cotangents."""

    def run(self, function, *args):
        with on_a_cpu(), noted_kernels() as kernels:
            found = jax.jit(function)(*args)
        self.launched = {kernel.name for kernel in kernels}
        return found

    def found(self, name, function=with_cotangents):
        self.launched = None
        results = super().found(name, function)
        if self.launched is not None:  # the results were not known
            assert self.launched & READS or function is not with_cotangents, self.launched
            assert self.launched & ADJOINTS or not CALLS[name].wrt, self.launched
        return results


@pytest.mark.gpu
class TestKernelsOnACard(ReadContract):
    """Kernels as NVRTC compiles them."""

    def run(self, function, *args):
        program = jax.jit(function).lower(*args)
        assert launch.TARGET in program.as_text()
        return program.compile()(*args)
