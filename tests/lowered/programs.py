"""A call as texts: its programs for CPUs and for NVIDIA GPUs, without names of private functions, and its kernels."""

import contextlib
import functools
import hashlib
import importlib
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding

import jaxtex as jt

BATCH = 2
GPU = (9, 0)
# Packages without kernels, which need more than the library does.
OTHERS = ("jaxtex.__main__", "jaxtex.cli", "jaxtex.layers")


class Call(NamedTuple):
    """A function of arrays.

    Attributes:
        function: maps the arguments, arrays or trees of them, to a tree of arrays.
        args: only shapes and dtypes matter.
        wrt: the numbers of the arguments with derivatives.
        ways: which of its programs are compared: ``"value"``, ``"batch"``, and keys of `DERIVATIVES`.
        refusable: whether jaxtex may refuse it.
        specs: how each argument is sharded over eight devices, if it is.
        explicit: whether the axis of these devices is.
        method: how a sharded texture is accessed, of `jaxtex.sharded`; by default jaxtex chooses.
    """

    function: Callable
    args: tuple
    wrt: tuple = ()
    ways: tuple = ("value", "forward", "reverse", "second", "batch")
    refusable: bool = False
    specs: tuple = ()
    explicit: bool = True
    method: Any = None

    @contextlib.contextmanager
    def context(self):
        """Where the call is traced; yields its arguments as shapes."""
        with contextlib.ExitStack() as stack:
            if self.method:
                stack.enter_context(jt.sharded.using(self.method))
            if not self.specs:
                yield jax.tree.map(shape_of, self.args)
                return
            kind = AxisType.Explicit if self.explicit else AxisType.Auto
            mesh = jax.make_mesh((8,), ("rows",), axis_types=(kind,), devices=jax.devices("cpu")[:8])
            stack.enter_context(jax.set_mesh(mesh))
            placed = zip(self.args, self.specs, strict=True)
            yield tuple(shape_of(x, NamedSharding(mesh, spec)) for x, spec in placed)


def shape_of(x, sharding=None):
    """The shape and dtype of an array; of a shape also how it is sharded, if nothing else is said."""
    if isinstance(x, jax.ShapeDtypeStruct):
        sharding = sharding or x.sharding
    dtype = x.dtype if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else jax.dtypes.canonicalize_dtype(x.dtype)
    return jax.ShapeDtypeStruct(x.shape, dtype, sharding=sharding)


# Programs of a call: functions of its arguments, tangents and cotangents


def of_moving(call, args):
    """The results of a call that have derivatives, as a function of the arguments that have them; and these."""

    def run(*some):
        given = dict(zip(call.wrt, some))
        results = call.function(*(given.get(k, x) for k, x in enumerate(args)))
        return [x for x in jax.tree.leaves(results) if jnp.issubdtype(x.dtype, jnp.floating)]

    return run, tuple(args[k] for k in call.wrt)


def forward(run, some, cotangents, tangents):
    return jax.jvp(run, some, tangents)


def reverse(run, some, cotangents, tangents):
    results, pull = jax.vjp(run, *some)
    return results, pull(cotangents)


def second(run, some, cotangents, tangents):
    """The derivative of the cotangents along arguments and cotangents."""
    pulled = lambda some, cotangents: jax.vjp(run, *some)[1](cotangents)
    return jax.jvp(pulled, (some, cotangents), (tangents, cotangents))


DERIVATIVES = {"forward": forward, "reverse": reverse, "second": second}


def program_of(way, call, args):
    """A function of arrays, and the shapes of its arguments. In a batch, the cotangents of several examples."""
    if way == "value" or not call.wrt:
        return (jax.vmap(call.function), batched(args)) if way == "batch" else (call.function, args)
    of = lambda args: of_moving(call, args)
    results = jax.eval_shape(lambda args: of(args)[0](*of(args)[1]), args)
    cotangents, derivative = jax.tree.map(shape_of, results), DERIVATIVES.get(way, reverse)
    run = lambda args, cotangents, tangents: derivative(*of(args), cotangents, tangents)
    if way != "batch":
        return run, (args, cotangents, of(args)[1])
    axes = tuple(0 if k in call.wrt else None for k in range(len(args)))
    given = tuple(batched(x) if k in call.wrt else x for k, x in enumerate(args))
    return jax.vmap(run, (axes, 0, None)), (given, batched(cotangents), ())


def batched(tree):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((BATCH, *x.shape), x.dtype), tree)


# Texts


PRIVATE = re.compile(r'func\.func private @([\w.$-]+|"[^"]*")')
SYMBOL = re.compile(r'@([\w.$-]+|"[^"]*")')
KERNEL = re.compile(r"kernel ([0-9a-f]{64})")
# Numbers that say which calls are equal: a digest of the library's classes, and an address in this process.
CALLS = (re.compile(r'texture_call = "(\w+)"'), re.compile(r'backend_config = "(\d{6,})"'))


def numbered(text, pattern):
    """The text with numbers in place of what `pattern` finds, in the order of appearance, and what they stand for."""
    found = {}
    replaced = lambda match: match[0].replace(match[1], str(found.setdefault(match[1], len(found))))
    return pattern.sub(replaced, text), list(found)


def without_names(text):
    """A program whose private functions and calls have numbers in place of names."""
    numbers = {name: f"@{k}" for k, name in enumerate(dict.fromkeys(PRIVATE.findall(text)))}
    text = SYMBOL.sub(lambda match: numbers.get(match[1], match[0]), text)
    for pattern in CALLS:
        text, _ = numbered(text, pattern)
    return text


@functools.cache
def modules_with(name):
    """The modules of jaxtex that define a function of that name, or import it: modules move, names rarely."""

    def load(package):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(OTHERS):
                module = importlib.import_module(found.name)
                if found.ispkg:
                    load(module)

    load(jt)
    found = [module for key, module in sys.modules.items() if key.startswith("jaxtex.") and hasattr(module, name)]
    assert found, f"no module of jaxtex has a function {name}; adapt tests/lowered/programs.py"
    return found


@contextlib.contextmanager
def for_a_gpu(sources):
    """Programs for CUDA that are lowered meanwhile hold kernels, on a machine that has neither a GPU nor NVRTC.

    Where the PTX of a kernel would stand, stands the digest of its source, without comments; `sources` gets these.
    """

    def compile_to_ptx(source, capability):
        code = re.sub(r" *//.*", "", source)
        digest = hashlib.sha256(code.encode()).hexdigest()
        sources[digest] = code
        return f"kernel {digest}"

    with contextlib.ExitStack() as stack:
        for name, value in (("compile_to_ptx", compile_to_ptx), ("local_capability", lambda: GPU)):
            for module in modules_with(name):
                stack.enter_context(mock.patch.object(module, name, value))
        yield


def texts_of(call):
    """The texts of a call by name; the type of the error alone, if jaxtex refuses it."""
    found, sources = {}, {}

    def lower(name, program, args, platform):
        # A new function, as JAX keeps what it has lowered; its name is that of all programs.
        run = lambda *args: tuple(jax.tree.leaves(program(*args)))
        text = jax.jit(run).trace(*args).lower(lowering_platforms=(platform,)).as_text()
        found[name], digests = numbered(without_names(text), KERNEL)
        found.update({f"{name}/kernel {k}": sources[digest] for k, digest in enumerate(digests)})

    with warnings.catch_warnings(), call.context() as args:
        warnings.simplefilter("ignore")
        try:
            for way in call.ways if call.wrt else [way for way in call.ways if way not in DERIVATIVES]:
                program, given = program_of(way, call, args)
                lower(f"{way}/cpu", program, given, "cpu")
                with for_a_gpu(sources):
                    lower(f"{way}/cuda", program, given, "cuda")
                if way == "reverse":  # for GPUs without kernels
                    lower(f"{way}/arrays", program, given, "cuda")
        except (TypeError, ValueError, NotImplementedError) as error:
            if not call.refusable:
                raise
            return {"refused": type(error).__name__}
    return found
