"""Programs for a CPU that run the kernels for a GPU: their sources are compiled as C++, and called back."""

import contextlib
import functools
from unittest import mock

import jax
from jax._src.interpreters.mlir import _platform_specific_lowerings
from jax.interpreters import mlir

from jaxtex._engine.cuda.build import launch
from jaxtex._engine.describe.unit import unit_read_p
from jaxtex._engine.forms import choice, gpu_kernels
from jaxtex._engine.rules import concatenated, filters, folds, primitives, programs, unit  # noqa: F401
from jaxtex._hardware import read as hardware
from tests.support.host_compiler import fill

LOWERINGS = {
    primitives.read_p: choice.LOWERINGS["read"],
    primitives.splat_p: choice.LOWERINGS["splat"],
    primitives.pullback_p: choice.LOWERINGS["pullback"],
    concatenated.concatenated_read_p: choice.LOWERINGS["concatenated_read"],
    primitives.read_derivatives_p: choice.LOWERINGS["read_derivatives"],
    folds.fold_p: choice.LOWERINGS["fold"],
    folds.fold_pullback_p: choice.LOWERINGS["fold_pullback"],
    filters.mip_chain_p: choice.LOWERINGS["mip_chain"],
    programs.samples_p: choice.LOWERINGS["fused_samples"],
    programs.adjoint_p: choice.LOWERINGS["fused_adjoint"],
    hardware.read_p: (hardware.LOWERING,),
    unit_read_p: choice.LOWERINGS["unit_read"],
}


def run(kernel, args, results, aliases):
    """In place of `launch.run`, in a program."""
    call = functools.partial(fill, kernel, results=results, aliases=aliases)
    return jax.pure_callback(lambda *given: call(given), list(results), *args)


@contextlib.contextmanager
def lowered_as_for_a_gpu():
    """Programs that are lowered meanwhile for one CPU get the forms that programs for a GPU get."""
    with mock.patch.dict(_platform_specific_lowerings["cpu"]):
        for p, lowerings in LOWERINGS.items():
            (row,) = (row for row in lowerings if row.platform == "cuda")
            mlir.register_lowering(p, row.rule(p.impl.__wrapped__), platform="cpu")
        yield


@contextlib.contextmanager
def kernels_on_cpu():
    """Programs that are lowered meanwhile for one CPU run kernels where programs for a GPU would."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(gpu_kernels, "can_compile_kernels", return_value=True))
        stack.enter_context(mock.patch.object(launch, "run", run))
        stack.enter_context(lowered_as_for_a_gpu())
        yield


def kernels_here():
    """Programs that are lowered meanwhile run kernels: on a card as they do anyway, on a CPU as C++."""
    return contextlib.nullcontext() if jax.default_backend() == "gpu" else kernels_on_cpu()


@contextlib.contextmanager
def noted_kernels():
    """The same, and yields a list of the kernels of programs that are lowered meanwhile."""
    kernels = []

    def noted(kernel, *args):
        kernels.append(kernel)
        return run(kernel, *args)

    with kernels_on_cpu(), mock.patch.object(launch, "run", noted):
        yield kernels
