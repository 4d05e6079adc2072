"""Programs for a CPU that run the kernels for a GPU: their sources are compiled as C++, and called back."""

import contextlib
import functools
from unittest import mock

import jax
from jax._src.interpreters.mlir import _platform_specific_lowerings
from jax.interpreters import mlir

from jaxtex._engine.compute import linearization, operators
from jaxtex._engine.cuda.build.launch import Launcher
from jaxtex._engine.forms import choice, gpu_kernels
from jaxtex._engine.rules import joined_reads, primitives
from jaxtex._engine.sharded import edged_reads
from jaxtex._hardware import read as hardware
from tests.support.evaluator import NONE, evaluating
from tests.support.host_compiler import HostLauncher

FORMS = {
    primitives.read_p: (operators.read, choice.LOWERINGS["read"]),
    primitives.bordered_read_p: (operators.bordered_read, choice.LOWERINGS["bordered_read"]),
    primitives.splat_p: (operators.splat, choice.LOWERINGS["splat"]),
    primitives.pullback_p: (linearization.pullback, choice.LOWERINGS["pullback"]),
    hardware.read_p: (hardware.read_array, (hardware.LOWERING,)),
}


# Forms that take batch axes themselves, or have none.
BY_MEANING = {
    joined_reads.joined_read_p: (joined_reads.joined_meaning, choice.LOWERINGS["joined_read"]),
    joined_reads.part_splat_p: (joined_reads.splat_meaning, choice.LOWERINGS["part_splat"]),
    joined_reads.part_pullback_p: (joined_reads.pullback_meaning, choice.LOWERINGS["part_pullback"]),
    edged_reads.edged_read_p: (edged_reads.read_meaning, choice.LOWERINGS["edged_read"]),
    edged_reads.edged_splat_p: (edged_reads.splat_meaning, choice.LOWERINGS["edged_splat"]),
    edged_reads.edged_pullback_p: (edged_reads.pullback_meaning, choice.LOWERINGS["edged_pullback"]),
}


def run(self, kernel, args, results, aliases=None):
    """In place of `Launcher.run`."""
    del self
    call = functools.partial(HostLauncher().fill, kernel, results=results, aliases=aliases)
    return jax.pure_callback(lambda *given: call(given), list(results), *args)


@contextlib.contextmanager
def kernels_on_cpu():
    """Programs that are lowered meanwhile for one CPU run kernels where programs for a GPU would."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(evaluating(NONE))
        stack.enter_context(mock.patch.object(gpu_kernels, "can_compile_kernels", return_value=True))
        stack.enter_context(mock.patch.object(Launcher, "run", run))
        stack.enter_context(mock.patch.dict(_platform_specific_lowerings["cpu"]))
        for p, (form, lowerings) in (FORMS | BY_MEANING).items():
            general = form if p in BY_MEANING else functools.partial(operators.batched, form)
            lowering = next(row for row in lowerings if row.platform == "cuda")._replace(platform="cpu")
            rule = lowering.rule(general, multiple_results=p.multiple_results)
            mlir.register_lowering(p, rule, platform="cpu")
        yield
