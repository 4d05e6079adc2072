"""Programs for several CPUs that run, as those for several GPUs do, a form for one device on each one's part.

On a GPU that form is a kernel. Here it is the form of arrays, and it notes which part it was given.
"""

import contextlib
import functools
import re
from unittest import mock

import jax
from jax._src.interpreters.mlir import _platform_specific_lowerings
from jax.interpreters import mlir

from jaxtex._engine.compute import linearization, operators
from jaxtex._engine.compute.programs import adjoint_by_vmap, samples_by_vmap
from jaxtex._engine.describe import storage
from jaxtex._engine.forms import choice
from jaxtex._engine.rules import folds, primitives, programs
from jaxtex._hardware import read as hardware

COLLECTIVE = re.compile(r"\b(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")
FORMS = {
    "read": (primitives.read_p, operators.read, storage.READ),
    "fold": (folds.fold_p, functools.partial(folds.by_reads, operators.read), storage.READ),
    "read of derivatives": (primitives.read_derivatives_p, operators.derivatives, storage.READ),
    "unit read": (hardware.read_p, hardware.read_array, storage.READ),
    "splat": (primitives.splat_p, operators.splat, storage.SPLAT),
    "pullback": (primitives.pullback_p, linearization.pullback, storage.PULLBACK),
}
# Of programs of one sample.
PROGRAMS = {
    "samples": (programs.samples_p, samples_by_vmap, choice.LOWERINGS["fused_samples"]),
    "adjoint": (programs.adjoint_p, adjoint_by_vmap, choice.LOWERINGS["fused_adjoint"]),
}


@functools.cache
def array_form(name):
    """A form of arrays, which JAX traces once for each shape, in whatever program it stands."""
    run = functools.partial(operators.batched, FORMS[name][1])
    return jax.jit(run, static_argnames=("spec", "batch", "wrt", "fold"), inline=True)


class Parts:
    """The forms that devices run, in place of kernels; `seen` holds the primitive and the operands' shapes of each."""

    def __init__(self):
        self.forget()

    def forget(self):
        self.seen = []
        self.supports = lambda *avals, **static: True
        self.before = lambda name: None

    def lowering(self, name):
        def run(*operands, **static):
            self.before(name)
            self.seen.append((name, *(x.shape for x in operands)))
            return array_form(name)(*operands, **static)

        supports, signature = lambda *avals, **static: self.supports(*avals, **static), FORMS[name][2]
        return choice.Lowering("cpu", run, supports, signature=signature)

    def lowering_of_program(self, name):
        _, form, (row,) = PROGRAMS[name]

        def run(*operands, **static):
            self.seen.append((name, *(x.shape for x in operands)))
            return form(*operands, **static)

        return row._replace(platform="cpu", run=run, supports=lambda *avals, **static: self.supports(*avals, **static))

    def names(self):
        return {name for name, *_ in self.seen}

    def shapes(self, name):
        return {tuple(shapes) for found, *shapes in self.seen if found == name}


@contextlib.contextmanager
def lowered_in_parts():
    """Meanwhile programs for several CPUs run as those for several GPUs do; yields their parts."""
    found = Parts()
    with mock.patch.dict(_platform_specific_lowerings["cpu"]):
        for name, (p, _, _) in FORMS.items():
            mlir.register_lowering(p, found.lowering(name).rule(array_form(name)), platform="cpu")
        for name, (p, form, _) in PROGRAMS.items():
            mlir.register_lowering(p, found.lowering_of_program(name).rule(form), platform="cpu")
        yield found
