"""A call as texts: its programs for CPUs and for NVIDIA GPUs, without names of private functions, and its kernels."""

import contextlib
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding

import jaxtex as jt
from tests.lowered.parts import recorded_calls
from tests.lowered.private import Kernels

BATCH = 2


class Mesh(NamedTuple):
    """Devices of one host along named axes, which are explicit, or else automatic."""

    axes: dict
    explicit: bool = True

    def make(self):
        kind = AxisType.Explicit if self.explicit else AxisType.Auto
        sizes, devices = tuple(self.axes.values()), jax.devices("cpu")
        count = int(np.prod(sizes))
        return jax.make_mesh(sizes, tuple(self.axes), axis_types=(kind,) * len(sizes), devices=devices[:count])


class Call(NamedTuple):
    """A function of arrays.

    Attributes:
        function: maps the arguments, arrays or trees of them, to a tree of arrays.
        args: only shapes and dtypes matter.
        wrt: the numbers of the arguments with derivatives.
        ways: which programs are compared; by default all that fit.
        mesh: the devices of its arguments, if they are several.
        specs: how each argument is sharded over these.
        method: how a sharded texture is accessed, of `jaxtex.sharded`; by default jaxtex chooses.
        x64: whether there are 64-bit types.
        refusable: whether jaxtex may refuse it.
    """

    function: Callable
    args: tuple
    wrt: tuple = ()
    ways: tuple | None = None
    mesh: Mesh | None = None
    specs: tuple = ()
    method: Any = None
    x64: bool = False
    refusable: bool = False

    def names_of_ways(self):
        derivatives = ["forward", "reverse", "second"] * bool(self.wrt)
        return self.ways or ("value", *derivatives, *["batch"] * (not self.mesh))

    @contextlib.contextmanager
    def context(self):
        """Where the call is traced; yields its arguments as shapes."""
        with contextlib.ExitStack() as stack:
            if self.x64:
                stack.enter_context(jax.enable_x64(True))
            if self.method:
                stack.enter_context(jt.sharded.using(self.method))
            if not self.mesh:
                yield jax.tree.map(shape_of, self.args)
                return
            mesh = self.mesh.make()
            stack.enter_context(jax.set_mesh(mesh))
            placed = lambda x, spec: shape_of(x, NamedSharding(mesh, spec))
            yield tuple(
                jax.tree.map(lambda leaf, spec=spec: placed(leaf, spec), arg)
                for arg, spec in zip(self.args, self.specs, strict=True)
            )


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


def forward(call, args, cotangents, tangents):
    del cotangents
    run, some = of_moving(call, args)
    return jax.jvp(run, some, tangents)


def reverse(call, args, cotangents, tangents):
    del tangents
    run, some = of_moving(call, args)
    results, pull = jax.vjp(run, *some)
    return results, pull(cotangents)


def second(call, args, cotangents, tangents):
    """The derivative of the cotangents along arguments and cotangents."""
    run, some = of_moving(call, args)
    pulled = lambda some, cotangents: jax.vjp(run, *some)[1](cotangents)
    return jax.jvp(pulled, (some, cotangents), (tangents, cotangents))


DERIVATIVES = {"forward": forward, "reverse": reverse, "second": second}


def program_of(way, call, args):
    """A function of arrays, and the shapes of its arguments.

    Args:
        way: ``"value"``, a key of `DERIVATIVES`, or ``"batch"`` and ``"shared"``: the cotangents of several examples,
            which share the first of the arguments that have any, or none. What has none is batched itself.
    """
    is_batch = way in ("batch", "shared")
    if way == "value" or (is_batch and not call.wrt):
        run = jax.vmap(call.function) if is_batch else call.function
        return run, (batched(args) if is_batch else args)
    some = of_moving(call, args)[1]
    results = jax.eval_shape(lambda args: of_moving(call, args)[0](*(args[k] for k in call.wrt)), args)
    cotangents = jax.tree.map(shape_of, results)
    if not is_batch:
        return lambda *given: DERIVATIVES[way](call, *given), (args, cotangents, some)
    moving = set(call.wrt[1:] if way == "shared" else call.wrt)
    axes = tuple(0 if k in moving else None for k in range(len(args)))
    given = tuple(batched(x) if k in moving else x for k, x in enumerate(args))
    run = jax.vmap(lambda args, cotangents: reverse(call, args, cotangents, ()), (axes, 0))
    return run, (given, batched(cotangents))


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


class Texts:
    """The texts of a call, by name: programs, and the kernels of each."""

    def __init__(self):
        self.found, self.kernels = {}, Kernels()

    def add(self, name, lowered):
        """The text of a program, and the sources of its kernels."""
        text, digests = numbered(without_names(lowered.as_text()), KERNEL)
        self.found[name] = text
        for k, digest in enumerate(digests):
            self.found[f"{name}/kernel {k}"] = self.kernels.sources[digest]

    def lower(self, name, program, args):
        """For a CPU, and for GPUs with kernels. Returns the calls in it that XLA partitions."""
        traced = jax.jit(flat(program)).trace(*args)
        self.add(f"{name}/cpu", traced.lower(lowering_platforms=("cpu",)))
        with self.kernels.for_a_gpu(), recorded_calls() as calls:
            self.add(f"{name}/cuda", traced.lower(lowering_platforms=("cuda",)))
        return calls

    def lower_arrays(self, name, program, args):
        """For GPUs without kernels. The function is a new one, as JAX keeps what it has lowered."""
        self.add(f"{name}/arrays", jax.jit(flat(program)).trace(*args).lower(lowering_platforms=("cuda",)))

    def lower_parts(self, name, calls):
        with self.kernels.for_a_gpu():
            for k, call in enumerate(calls):
                self.add(f"{name}/part {k}", call.lower())


def flat(program):
    """A new function that returns arrays side by side; its name is that of all programs."""

    def run(*args):
        return tuple(jax.tree.leaves(program(*args)))

    return run


def texts_of(call):
    """The texts of a call by name; the type of the error alone, if jaxtex refuses it."""
    texts, calls = Texts(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with call.context() as args:
                for way in call.names_of_ways():
                    program, given = program_of(way, call, args)
                    calls[way] = texts.lower(way, program, given)
                    if way == "reverse":
                        texts.lower_arrays(way, program, given)
        except (TypeError, ValueError, NotImplementedError) as error:
            if not call.refusable:
                raise
            return {"refused": type(error).__name__}
        for way, some in calls.items():
            texts.lower_parts(way, some)
    return texts.found
