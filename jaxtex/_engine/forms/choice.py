"""The choice of the form that a primitive gets in a program.

Every primitive has a general form of array operations, which runs everywhere. A `Lowering` is an alternative for one
platform. Its condition stands beside it, in `cpu` and `gpu_kernels`; a form of several methods takes one by itself. GPU
kernels run in programs of one device, inside `jax.shard_map`, and on each device's part of a program that XLA
partitions, within the limits below. Exported programs have general forms or fallbacks, and kernels only under
`jaxtex.kernels_in_exports`.
"""

import contextlib
import functools
import importlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, jaxprs_in_params
from jax.interpreters import mlir

from ..._checks import hints
from ..._jax.calls import typed_jit
from ..._jax.contexts import FOR_EXPORTS, FOR_THIS_EXPORT
from ..._jax.primitives import FORMS, lowered
from ..._jax.shapes import is_symbolic
from ..._jax.versions import (
    devices_of_partition,
    is_exported,
    lower_on_one_device,
    lower_with_devices,
    program_being_lowered,
    runs_on_one_device,
    warn_of_slow_atomics,
    without_varying_axes,
)
from ..._tables.storage_formats import sum_dtype
from ..compute.operators import batched
from ..compute.programs import of_one_sample
from ..describe.spec import TEXELS, ReadSpec
from ..describe.storage import PULLBACK, READ, SPLAT, WHOLE, HaloStorage, Signature, Slice, Storage, views
from ..describe.unit import UnitRead
from . import cpu
from .partitioned import Devices, partitioned_program, partitioned_read, smallest_parts

NO_RULE = "jaxtex: a function of the library has no GPU kernel, so XLA's form, which is slower, takes its place:"
REPORT = "This is a fault of jaxtex; please report it with the call and the version of JAX"
NO_PROGRAM = "jaxtex: a function of one sample is no single kernel, and is computed as by jax.vmap, which is slower:"
INSTEAD = "Compute this part before or after fused_vmap, or write it with other operations."
NO_KERNELS = "jaxtex: GPU kernels cannot be compiled or launched, so XLA's forms, which are slower, take their place:"


class Lowering(NamedTuple):
    """An alternative lowering of a primitive for one platform.

    Attributes:
        platform: ``"cpu"`` or ``"cuda"``.
        run: the form, over all batch axes: ``run(*operands, batch=..., **params)``.
        supports: the condition for `run`: ``supports(*avals, batch=..., **params)``.
        fallback: the form over all batch axes if `run` is not supported and arrays are whole; `None` for the general
            form.
        signature: what the primitive's arrays hold, if `run` may also compute a device's part of a program that XLA
            partitions; otherwise `None`.
        storages: the storages besides `WHOLE` that `run` supports. For these, `run` and `supports` get the parameter
            `storage`.
    """

    platform: str
    run: Callable[..., Any]
    supports: Callable[..., bool]
    fallback: Callable[..., Any] | None = None
    signature: Signature | None = None
    storages: tuple[type[Storage], ...] = ()

    def rule(self, general: Callable[..., Any]) -> Callable[..., Any]:
        """The lowering rule: to `run`, on one device or on each device's part, if supported; otherwise to `general`."""
        otherwise = self.fallback or general
        as_run, as_general, as_fallback = map(lowered, (self.run, general, otherwise))

        def rule(ctx: Any, *args: Any, **params: Any) -> Any:
            # On one device: the form itself.
            static = self.static(**params)
            with FOR_THIS_EXPORT(FOR_EXPORTS.value if is_exported(ctx) else None):
                if self.may_run(ctx, ctx.avals_in, static):
                    run, how = (as_run, static) if self.platform == "cpu" else (lowered(begun(ctx)), self.form(static))
                    results = unless_refused(lower_on_one_device, run, ctx, *args, **how)
                    if results is not None:
                        return results
            # Arrays that are not whole have no other form.
            if "storage" in static:
                return as_general(ctx, *args, **static)
            # On several devices that XLA divides a program among: the form on each one's part.
            if devices := self.devices_to_run_on(ctx, **static):
                in_parts = self.in_parts(otherwise, ctx, devices, **static)
                return lower_with_devices(mlir.lower_fun(in_parts, multiple_results=True), ctx, devices, *args)
            self.warn_of_slow_sums(ctx, **static)
            return as_fallback(ctx, *args, **static)

        return rule

    def static(self, *, storage: Storage = WHOLE, **params: Any) -> dict[str, Any]:
        """The parameters of `run` for those of the primitive."""
        if self.platform == "cuda" and "spec" in params:
            params["spec"] = params["spec"].on_gpu()
        return params if storage == WHOLE else params | {"storage": storage}

    def form(self, static: dict[str, Any]) -> dict[str, Any]:
        """`run` and its parameters, as the parameters of `of_form`."""
        return {"form": self.run, "static": (*static.items(),)}

    def warn_of_slow_sums(self, ctx: Any, **params: Any) -> None:
        """Warns if the fallback adds to texels in memory, and the installed jaxlib does that slowly."""
        if self.signature is not None and self.signature.makes_texture(params["spec"], params.get("wrt", ())):
            warn_of_slow_atomics(ctx)

    def may_run(self, ctx: Any, avals: Sequence[Any], static: dict[str, Any]) -> bool:
        """Whether a program may hold `run`: of known sizes, and an exported one of kernels that were asked for."""
        if "storage" in static and not isinstance(static["storage"], self.storages):
            return False
        if is_exported(ctx) and (self.platform != "cuda" or FOR_THIS_EXPORT.value is None):
            return False
        if is_symbolic(*(aval.shape for aval in avals)):
            return False
        return runs_on_one_device(ctx) and self.supports(*avals, **static)

    def devices_to_run_on(self, ctx: Any, **params: Any) -> Devices:
        """The devices of a program that XLA partitions, if `run` may be supported on their parts; otherwise none."""
        devices = devices_of_partition(ctx)
        if self.signature is None or not devices:
            return ()
        # Reproducible sums need one unit for the samples of all devices. The general form computes it.
        if params["spec"].deterministic and self.signature.makes_texture(params["spec"], params.get("wrt", ())):
            return ()
        parts = smallest_parts(self.signature, ctx.avals_in, params["spec"], params["batch"], len(devices))
        return devices if any(self.supports(*avals, **params) for avals in (ctx.avals_in, parts)) else ()

    def in_parts(self, general: Callable[..., Any], ctx: Any, devices: Devices, **params: Any) -> Callable[..., Any]:
        """The call over parts, each of which a device computes by `on_part`."""
        assert self.signature is not None
        on_part = functools.partial(self.on_part, general, ctx, **params)
        whole = functools.partial(general, **params)
        return partitioned_read(self.signature, on_part, whole, ctx.avals_out, devices, **params)

    def on_part(self, general: Callable[..., Any], ctx: Any, *operands: Any, **static: Any) -> Any:
        """The results of one device: by `run`, or by `general` if `run` is not supported on its part."""
        results = unless_refused(self.run, *operands, **static) if self.supports(*operands, **static) else None
        if results is not None:
            return results
        self.warn_of_slow_sums(ctx, **static)
        return general(*operands, **static)


class ProgramLowering(Lowering):
    """A lowering of a program of one sample, which may also compute a device's part of the grid."""

    __slots__ = ()

    def devices_to_run_on(self, ctx: Any, *, sizes: tuple[int, ...], **params: Any) -> Devices:
        devices = devices_of_partition(ctx)
        part = tuple(-(-n // len(devices)) for n in sizes) if devices else sizes
        return devices if devices and self.supports(*ctx.avals_in, sizes=part, **params) else ()

    def in_parts(self, general: Callable[..., Any], ctx: Any, devices: Devices, **params: Any) -> Callable[..., Any]:
        on_part, whole = functools.partial(self.on_part, general, ctx), functools.partial(general, **params)
        return partitioned_program(on_part, whole, ctx.avals_out, devices, **params)


class UnitLowering(Lowering):
    """A lowering of a read by a texture unit; each device reads by its own."""

    __slots__ = ()

    def devices_to_run_on(self, ctx: Any, **params: Any) -> Devices:
        devices = devices_of_partition(ctx)
        return devices if devices and self.supports(*ctx.avals_in, **params) else ()

    def in_parts(
        self, general: Callable[..., Any], ctx: Any, devices: Devices, *, read: UnitRead
    ) -> Callable[..., Any]:
        def run(handle: Any, *operands: Any) -> Any:
            given, static = of_one_sample(handle, operands[: read.num_numbers], read)
            whole = lambda *_: [jnp.zeros(a.shape, a.dtype) for a in ctx.avals_out]
            return partitioned_program(gpu_kernels().fused_samples, whole, ctx.avals_out, devices, **static)(*given)

        return run


# NVRTC takes most of the time of lowering. So the kernels of a program are compiled at the same time: the lowering rule
# of the first one traces the forms of all, threads compile them, and the lowering of each kernel waits for its own.

# For each program that is being lowered, `of_form` under `jit`, which traces a form once for equal arguments.
BEGUN: weakref.WeakKeyDictionary[Jaxpr, Any] = weakref.WeakKeyDictionary()


def of_form(*args: Any, form: Callable[..., Any], static: Sequence[tuple[str, Any]]) -> Any:
    """The results of a form."""
    return form(*args, **dict(static))


def begun(ctx: Any) -> Callable[..., Any]:
    """`of_form` of the program that is being lowered. The first call starts to compile all kernels of the program."""
    program = program_being_lowered()
    if program is None:
        return of_form
    if program not in BEGUN:
        BEGUN[program] = typed_jit("form", "static")(gpu_kernels().without_waiting(of_form))
        # Adjoints take longest, so they begin first.
        for row, eqn in sorted(kernels_of(program), key=lambda pair: pair[0].signature not in (SPLAT, PULLBACK)):
            avals, static = [without_varying_axes(v.aval) for v in eqn.invars], row.static(**eqn.params)
            # The equation's own rule meets the same error, and says so.
            with contextlib.suppress(Exception):
                if row.may_run(ctx, avals, static):
                    BEGUN[program].trace(*avals, **row.form(static))
    return BEGUN[program]


def kernels_of(program: Jaxpr) -> Iterator[tuple[Lowering, JaxprEqn]]:
    """The equations of a program that may have kernels, and their lowerings."""
    for eqn in program.eqns:
        for inner in jaxprs_in_params(eqn.params):
            yield from kernels_of(inner)
        for row in FORMS.get(eqn.primitive, ()):
            if isinstance(row, Lowering) and row.platform == "cuda":
                yield row, eqn


def unless_refused(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """The result of `function`, or `None` if a kernel cannot be made.

    A warning gives the reason, unless a primitive in a function of the caller's is the reason: that is no fault.
    """
    try:
        return function(*args, **params)
    # The classes are looked up when there is an error, so that a CPU does not load kernels for them.
    except gpu_kernels().PrimitiveOfCaller as reason:
        if hints.is_on():
            hints.mention_primitive(str(reason))
        return None
    except gpu_kernels().RefusedProgram as reason:
        warnings.warn(f"{NO_PROGRAM} {reason}. {INSTEAD}", stacklevel=1)
        return None
    except gpu_kernels().UnknownPrimitive as reason:
        warnings.warn(f"{NO_RULE} {reason}. {REPORT}.", stacklevel=1)
        return None
    except (gpu_kernels().CompilerUnavailable, gpu_kernels().CompilationFailed) as error:
        # One line raises all of these warnings, so that Python shows each reason once a process.
        warnings.warn(f"{NO_KERNELS} {error}.", stacklevel=1)
        return None


def gpu_kernels() -> Any:
    """The module `gpu_kernels`, loaded on first use because it loads thirty others."""
    return importlib.import_module(".gpu_kernels", __package__)


def on_first_use(module: str, name: str) -> Callable[..., Any]:
    """The function `name` of a module of this package, which is loaded when the function is first called."""

    def function(*args: Any, **params: Any) -> Any:
        return getattr(importlib.import_module(f".{module}", __package__), name)(*args, **params)

    function.__name__ = name
    return function


def kernel(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions `name` and ``supports_<name>`` of `gpu_kernels`, which is loaded when they are first called.

    So programs for CPUs do not load the modules of GPU kernels.
    """
    run, supports = (on_first_use("gpu_kernels", function) for function in (name, f"supports_{name}"))
    return run, supports


def by_views(function: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    """`function`, whose arguments are views as `describe.storage.views` returns them, as a function of arrays."""

    def run(*args: Any, spec: ReadSpec, storage: Storage = WHOLE, **params: Any) -> Any:
        given = views(args, signature.operands(spec, params.get("wrt", ())), storage)
        return function(*given, spec=spec, **params if storage == WHOLE else params | {"storage": storage})

    return run


# Forms of the adjoint: ``adjoint(cotangent, texels, *operands, spec=..., wrt=..., texel_dtype=..., batch=...)``


def as_splat(adjoint: Callable[..., Any]) -> Callable[..., Any]:
    """A splat from an adjoint with respect to texels; likewise its `supports` from the adjoint's."""

    def splat(values: Any, *operands: Any, spec: ReadSpec, **params: Any) -> Any:
        static = params | {"spec": spec.adjoint(sum_dtype(values.dtype)), "wrt": (TEXELS,), "texel_dtype": spec.dtype}
        return adjoint(values, None, *operands, **static)

    return splat


def as_pullback(adjoint: Callable[..., Any]) -> Callable[..., Any]:
    """A pullback from an adjoint; likewise its `supports` from the adjoint's."""

    def pullback(cotangent: Any, texels: Any, *operands: Any, **params: Any) -> Any:
        return adjoint(cotangent, texels, *operands, texel_dtype=texels.dtype, **params)

    return pullback


def adjoints(name: str, signature: Signature, form_of: Callable[..., Callable[..., Any]]) -> tuple[Lowering, ...]:
    """The forms of a splat or of a pullback."""
    run, supports = (by_views(form_of(function), signature) for function in kernel("adjoint"))
    fallback = functools.partial(batched, on_first_use("gpu_adjoint", name))
    return (
        Lowering("cuda", run, supports, fallback, signature, (Slice, HaloStorage)),
        Lowering("cpu", form_of(cpu.adjoint), form_of(cpu.supports_adjoint)),
    )


LOWERINGS: dict[str, tuple[Lowering, ...]] = {
    "convolve": (Lowering("cuda", *kernel("convolve")),),
    "mip_chain": (Lowering("cuda", *kernel("mip_chain")),),
    "concatenated_read": (Lowering("cuda", *kernel("concatenated_read")),),
    "read_derivatives": (Lowering("cuda", *kernel("read_derivatives"), signature=READ),),
    "fused_samples": (ProgramLowering("cuda", *kernel("fused_samples")),),
    "fused_adjoint": (ProgramLowering("cuda", *kernel("fused_adjoint")),),
    "unit_read": (UnitLowering("cuda", *kernel("unit_read")),),
    "fold": (Lowering("cuda", *kernel("fold"), signature=READ),),
    "fold_pullback": (Lowering("cuda", *kernel("fold_pullback")),),
    "scaled_filter": (Lowering("cpu", cpu.resized, cpu.supports_resized),),
    "read": (
        Lowering(
            "cuda", *(by_views(function, READ) for function in kernel("read")), signature=READ, storages=(HaloStorage,)
        ),
        Lowering("cpu", cpu.read, cpu.supports_read),
    ),
    "splat": adjoints("splat", SPLAT, as_splat),
    "pullback": adjoints("pullback", PULLBACK, as_pullback),
}
