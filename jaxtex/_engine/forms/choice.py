"""Which form of a primitive a program gets: the one place that decides.

Every primitive has a general form of array operations, which runs everywhere. A `Lowering` is an alternative for one
platform. GPU kernels run in programs of one device, inside `jax.shard_map`, and on each device's part of a program that
XLA partitions, within the limits below. Exported programs get general forms or fallbacks, and kernels only where the
caller has chosen so by `jaxtex.kernels_in_exports`.
"""

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from jax.export import is_symbolic_dim
from jax.interpreters import mlir

from ..._checks import hints
from ..._jax.contexts import FOR_EXPORTS, FOR_THIS_EXPORT
from ..._jax.primitives import lowered
from ..._jax.versions import (
    devices_of_partition,
    is_exported,
    lower_on_one_device,
    lower_with_devices,
    runs_on_one_device,
    warn_of_slow_atomics,
)
from ..compute.operators import batched
from ..describe.spec import ReadSpec
from ..describe.storage import (
    PULLBACK,
    READ,
    SPLAT,
    WHOLE,
    Halo,
    Layout,
    Slice,
    Storage,
    Whole,
    views,
)
from . import cpu_adjoint, cpu_read
from .partitioned_call import partitioned, smallest_parts

NO_RULE = "jaxtex: a function of the library has no GPU kernel, so XLA's form, which is slower, takes its place:"
REPORT = "This is a fault of jaxtex; please report it with the call and the version of JAX"
NO_KERNELS = "jaxtex: GPU kernels cannot be compiled or launched, so XLA's forms, which are slower, take their place:"


class Lowering(NamedTuple):
    """An alternative lowering of a primitive for one platform.

    Attributes:
        platform: ``"cpu"`` or ``"cuda"``.
        run: the form, over all batch axes: ``run(*operands, batch=..., **params)``.
        supports: ``supports(*avals, batch=..., **params)``, the condition under which it is used.
        fallback: the form over all batch axes where it is not used; `None` is the general one.
        layout: what the arrays of the primitive hold, if `run` may also compute a device's part in a program that XLA
            partitions; else `None`.
        fallback_uses_atomics: whether the fallback adds sample after sample to memory.
        storage: where the arrays lie. If they are not whole, `run` and `supports` get the storage, and arguments as
            `describe.storage.views` returns them.
    """

    platform: str
    run: Callable[..., Any]
    supports: Callable[..., bool]
    fallback: Callable[..., Any] | None = None
    layout: Layout | None = None
    fallback_uses_atomics: bool = False
    storage: type[Storage] = Whole

    def rule(self, general: Callable[..., Any]) -> Callable[..., Any]:
        """The lowering rule: to `run` where it is supported, on one device or on each one's part, else to `general`."""
        as_run, as_general = lowered(self.run), lowered(general)

        def rule(ctx: Any, *args: Any, **params: Any) -> Any:
            with FOR_THIS_EXPORT(FOR_EXPORTS.value if is_exported(ctx) else None):
                if self.may_run(ctx) and self.supports(*ctx.avals_in, **params):
                    found = unless_refused(lower_on_one_device, as_run, ctx, *args, **params)
                    if found is not None:
                        return found
            if devices := self.devices_to_run_on(ctx, **params):
                in_parts = self.in_parts(general, ctx, devices, **params)
                return lower_with_devices(mlir.lower_fun(in_parts, multiple_results=True), ctx, devices, *args)
            if self.fallback_uses_atomics:
                warn_of_slow_atomics(ctx)
            return as_general(ctx, *args, **params)

        return rule

    def may_run(self, ctx: Any) -> bool:
        """Whether a program may hold `run`. An exported one holds kernels, by choice, where its shapes are known."""
        if is_exported(ctx):
            sizes = [n for aval in ctx.avals_in for n in aval.shape]
            if self.platform != "cuda" or FOR_THIS_EXPORT.value is None or any(map(is_symbolic_dim, sizes)):
                return False
        return runs_on_one_device(ctx)

    def devices_to_run_on(self, ctx: Any, **params: Any) -> tuple[Any, ...]:
        """The devices of a program that XLA partitions, if `run` may be supported on the part of each; else none."""
        devices = devices_of_partition(ctx)
        if self.layout is None or not devices:
            return ()
        # Reproducible sums have units, which are those of all samples, and XLA's form adds up multiples of them.
        if params["spec"].deterministic and self.layout.makes_texture(params.get("wrt", ())):
            return ()
        parts = smallest_parts(self.layout, ctx.avals_in, params["spec"], params["batch"], len(devices))
        return devices if any(self.supports(*avals, **params) for avals in (ctx.avals_in, parts)) else ()

    def in_parts(
        self, general: Callable[..., Any], ctx: Any, devices: tuple[Any, ...], **params: Any
    ) -> Callable[..., Any]:
        """`run` on the part of each device, or `general` where it is not supported there."""

        def on_part(*operands: Any, spec: ReadSpec) -> Any:
            static = params | {"spec": spec}
            found = unless_refused(self.run, *operands, **static) if self.supports(*operands, **static) else None
            if found is not None:
                return found
            if self.fallback_uses_atomics:
                warn_of_slow_atomics(ctx)
            return general(*operands, **static)

        assert self.layout is not None
        return partitioned(self.layout, on_part, functools.partial(general, **params), ctx.avals_out, devices, **params)


class ByStorage(NamedTuple):
    """The forms of a primitive for one platform, by where its arrays lie; in other storages it has the general form."""

    platform: str
    rows: tuple[Lowering, ...]
    fallback: None = None

    def rule(self, general: Callable[..., Any]) -> Callable[..., Any]:
        """The lowering rule."""
        rules, otherwise = {row.storage: row.rule(row.fallback or general) for row in self.rows}, lowered(general)

        def rule(ctx: Any, *args: Any, storage: Storage = WHOLE, **params: Any) -> Any:
            static = params if storage == WHOLE else params | {"storage": storage}
            return rules.get(type(storage), otherwise)(ctx, *args, **static)

        return rule


def of_arrays(function: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    """A function of arguments as `describe.storage.views` returns them as one of arrays."""

    def run(*args: Any, spec: ReadSpec, storage: Storage, **params: Any) -> Any:
        contents = layout.operands(spec, params.get("wrt", ()))
        return function(*views(args, contents, storage), spec=spec, storage=storage, **params)

    return run


def by_storage(layout: Layout, *rows: Lowering) -> list[ByStorage]:
    """The forms of a primitive, by platform."""
    found = dict[str, tuple[Lowering, ...]]()
    for row in rows:
        if row.storage is not Whole:
            row = row._replace(run=of_arrays(row.run, layout), supports=of_arrays(row.supports, layout))
        found[row.platform] = (*found.get(row.platform, ()), row)
    return [ByStorage(*some) for some in found.items()]


def unless_refused(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """What `function` returns; `None` if a kernel cannot be made.

    A warning says why if the library or the machine is the cause. A function of the caller's may hold anything.
    """
    try:
        return function(*args, **params)
    # The classes are looked up when there is an error, so that a CPU does not load kernels for them.
    except gpu_kernels().PrimitiveOfCaller as reason:
        if hints.is_on():
            hints.mention_primitive(str(reason))
        return None
    except gpu_kernels().UnknownPrimitive as reason:
        warnings.warn(f"{NO_RULE} {reason}. {REPORT}.", stacklevel=1)
        return None
    except (gpu_kernels().CompilerUnavailable, gpu_kernels().CompilationFailed) as error:
        # From one line, so that Python shows each reason once a process.
        warnings.warn(f"{NO_KERNELS} {error}.", stacklevel=1)
        return None


def gpu_kernels() -> Any:
    """The module of the kernels, which loads some thirty others."""
    return importlib.import_module(".gpu_kernels", __package__)


def on_first_use(module: str, name: str) -> Callable[..., Any]:
    """The function of that name in a module that is loaded when the function is first called."""

    def function(*args: Any, **params: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **params)

    function.__name__ = name
    return function


def kernel(name: str, layout: Layout | None = None, storage: Any = Whole, *, is_adjoint: bool = False) -> Lowering:
    """The row of a kernel: the function of that name in `gpu_kernels`, where ``supports_<name>`` says so.

    The modules behind it are loaded when a program for CUDA is lowered. A CPU needs none of them.

    Args:
        is_adjoint: whether it adds up texels, for which `partitioned_adjoint` has a fallback.
    """
    run, supports = (on_first_use(f"{__package__}.gpu_kernels", found) for found in (name, f"supports_{name}"))
    row = Lowering("cuda", run, supports, layout=layout, storage=storage, fallback_uses_atomics=is_adjoint)
    if not is_adjoint:
        return row
    fallback = on_first_use(f"{__package__}.partitioned_adjoint", name)
    return row._replace(fallback=functools.partial(batched, fallback))


LOWERINGS = {
    "convolve": (kernel("convolve"),),
    "concatenated_read": (kernel("concatenated_read"),),
    "read": by_storage(
        READ,
        kernel("read", READ),
        kernel("halo_read", storage=Halo),
        Lowering("cpu", cpu_read.read, cpu_read.supports),
    ),
    "splat": by_storage(
        SPLAT,
        kernel("splat", SPLAT, is_adjoint=True),
        kernel("slice_splat", storage=Slice),
        kernel("halo_splat", storage=Halo),
        Lowering("cpu", cpu_adjoint.splat, cpu_adjoint.supports),
    ),
    "pullback": by_storage(
        PULLBACK,
        kernel("pullback", PULLBACK, is_adjoint=True),
        kernel("slice_pullback", storage=Slice),
        kernel("halo_pullback", storage=Halo),
        Lowering("cpu", cpu_adjoint.pullback, cpu_adjoint.supports),
    ),
}
