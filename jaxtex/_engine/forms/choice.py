"""Which form of a primitive a program gets: the one place that decides.

Every primitive has a general form of array operations, which runs everywhere. A `Lowering` is an alternative for one
platform. GPU kernels run in programs of one device, inside `jax.shard_map`, and on each device's part of a program that
XLA partitions, within the limits below. Exported programs get general forms or fallbacks, and kernels only where the
caller has chosen so by `jaxtex.kernels_in_exports`.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.export import is_symbolic_dim
from jax.interpreters import mlir

from ..._jax.primitives import lowered
from ..._jax.versions import (
    devices_of_partition,
    is_exported,
    lower_on_one_device,
    lower_with_devices,
    runs_on_one_device,
    warn_of_slow_atomics,
)
from ..._tables.storage_formats import Decoding
from ..compute.operators import batched
from ..cuda import adjoint_kernel, halo_kernels
from ..cuda.build.launch import FOR_EXPORTS, FOR_THIS_EXPORT, target_capability
from ..cuda.build.nvrtc import CompilationFailed, CompilerUnavailable
from ..cuda.convolve import convolution_kernel
from ..cuda.read import read_kernel
from ..cuda.read.read_kernel import WIDTHS, result_shape
from ..cuda.samples.sample_tiles import Lanes, samples_shape
from ..cuda.trace.elementwise import C_TYPES
from ..cuda.trace.emitter import UnknownPrimitive
from ..describe.axis import sizes_are_known
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import (
    PULLBACK,
    READ,
    SPLAT,
    WHOLE,
    Halo,
    Layout,
    Part,
    Slice,
    Storage,
    Whole,
    each_part,
    slices_of,
    views,
)
from ..walk.texel_walk import flat_sizes
from . import cpu_adjoint, cpu_read, partitioned_adjoint
from .partitioned_call import partitioned, smallest_parts

LEAST_COMPUTE_CAPABILITY = (8, 0)
# Samples and texels are numbered in int32, with room for the padding of the last tile; elements are not.
COUNT_LIMIT = 2**31 - 2**16
# A thread takes a channel or more, and a block has at most 1,024 threads.
MAX_CHANNELS = 1024
# Memory is written in sectors of so many bytes. One that several reads fill is written by each of them.
SECTOR_BYTES = 32
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

    def devices_to_run_on(self, ctx: Any, **params: Any) -> tuple:
        """The devices of a program that XLA partitions, if `run` may be supported on the part of each; else none."""
        devices = devices_of_partition(ctx)
        if self.layout is None or not devices:
            return ()
        # Reproducible sums have units, which are those of all samples, and XLA's form adds up multiples of them.
        if params["spec"].deterministic and self.layout.makes_texture(params.get("wrt", ())):
            return ()
        parts = smallest_parts(self.layout, ctx.avals_in, params["spec"], params["batch"], len(devices))
        return devices if any(self.supports(*avals, **params) for avals in (ctx.avals_in, parts)) else ()

    def in_parts(self, general: Callable[..., Any], ctx: Any, devices: tuple, **params: Any) -> Callable[..., Any]:
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
    """What `function` returns; `None` if a kernel cannot be made, with a warning if the machine is the cause."""
    try:
        return function(*args, **params)
    except UnknownPrimitive:
        return None  # a caller's function of coordinates may hold anything
    except (CompilerUnavailable, CompilationFailed) as error:
        # From one line, so that Python shows each reason once a process.
        warnings.warn(f"{NO_KERNELS} {error}.", stacklevel=1)
        return None


def can_compile_kernels() -> bool:
    """Whether kernels are written for the GPUs of the program that is being lowered."""
    capability = target_capability()
    return capability is not None and capability >= LEAST_COMPUTE_CAPABILITY


# What the kernels support


def kernel_fits(arrays: Sequence[Any], *counts: int) -> bool:
    """Whether a kernel can be compiled, counts are within int32, and numbers within 32 bits.

    Args:
        arrays: what the kernel reads, none of them empty.
        counts: of samples and of texels, which have numbers.
    """
    if not can_compile_kernels() or any(a.dtype.itemsize > 4 or 0 in a.shape for a in arrays):
        return False
    return min(counts) > 0 and max(counts) < COUNT_LIMIT


def kernel_decodes(texels: Any, spec: ReadSpec) -> bool:
    """Whether a kernel can load and decode texels; a thread knows which channels are colors if it has all of them."""
    most = WIDTHS[0] if spec.decoding is Decoding.SRGB else MAX_CHANNELS
    return texels.shape[-1] <= most and is_known(texels.dtype)


def is_known(dtype: Any) -> bool:
    """Whether numbers of a dtype have a type in a kernel."""
    return np.dtype(dtype).name in C_TYPES


def supports_read(texels: Any, *args: Any, spec: ReadSpec, batch: int) -> bool:
    _, operands = spec.color_and_operands(args)
    dtypes = spec.dtype, *(a.dtype for a in operands)
    if spec.num_reads > 1 and spec.summed_axes:
        return False
    if not kernel_decodes(texels, spec) or spec.dtype.itemsize > 4 or not all(map(is_known, dtypes)):
        return False
    samples = math.prod(samples_shape(texels.shape[:batch], spec.sample_shapes(operands)))
    return kernel_fits([texels, *operands], samples)


def supports_concatenated_read(*avals: Any, parts: Sequence[Part], row_axes: int) -> bool:
    """Whether each part is a read that runs as a kernel and computes its values, all have one dtype, and none cuts
    sectors.
    """
    each = [(part, texels, operands) for part, _, texels, operands in each_part(parts, avals)]
    shapes = [result_shape(t, operands, part.spec, t.shape[: part.batch]) for part, t, operands in each]
    least = min(place.count for place in slices_of(shapes, row_axes))
    if len({part.spec.dtype for part in parts}) > 1 or least * parts[0].spec.dtype.itemsize < SECTOR_BYTES:
        return False
    return all(
        part.wrt is None
        and supports_read(texels, *operands, spec=part.spec, batch=part.batch)
        and not part.spec.returns_texels(texels.dtype)
        for part, texels, operands in each
    )


def supports_splat(values: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    if not sizes_are_known(spec.axes):
        return False  # the windows of a kernel are cut along rows of known sizes
    sizes = flat_sizes(spec.axes)
    if values.dtype != jnp.float32 or values.shape[-1] > MAX_CHANNELS or len(sizes) > 1:
        return False
    textures = np.broadcast_shapes(*(a.shape[:batch] for a in (values, *operands)))
    samples = np.broadcast_shapes(values.shape[:-1], *spec.sample_shapes(operands))
    return kernel_fits([values, *operands], math.prod(textures) * sizes[0], math.prod(samples))


def supports_pullback(cotangent: Any, texels: Any, *operands: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> bool:
    if wrt != (TEXELS,) and not kernel_decodes(texels, spec):
        return False
    return kernel_fits([texels], math.prod(texels.shape[:-1])) and supports_splat(
        cotangent, *operands, spec=spec, batch=batch
    )


def of_slice(supports: Callable[..., bool]) -> Callable[..., bool]:
    """Whether kernels load values that are a slice of an array as they load a whole one."""

    def supports_slice(values: Any, *args: Any, storage: Slice, **params: Any) -> bool:
        lanes = Lanes.of(values.shape[-1])
        return (not lanes.aligned or storage.keeps_aligned(lanes.width)) and supports(values, *args, **params)

    return supports_slice


def supports_halo_read(texels: Any, *operands: Any, spec: ReadSpec, batch: int, storage: Halo) -> bool:
    """Whether a thread knows from its coordinates which texels it needs, and stores what a read computes."""
    del storage
    alone = spec.num_reads == 1 and not spec.summed_axes and not spec.has_color
    return alone and not spec.returns_texels(texels.dtype) and supports_read(texels, *operands, spec=spec, batch=batch)


def supports_halo_splat(values: Any, *operands: Any, spec: ReadSpec, batch: int, storage: Halo) -> bool:
    alone = spec.num_reads == 1 and not spec.summed_axes and not spec.deterministic
    return storage.reach > 0 and alone and supports_splat(values, *operands, spec=spec, batch=batch)


def supports_halo_pullback(
    cotangent: Any, texels: Any, *operands: Any, spec: ReadSpec, wrt: Wrt, batch: int, storage: Halo
) -> bool:
    if not supports_halo_splat(cotangent, *operands, spec=spec, batch=batch, storage=storage):
        return False
    return supports_pullback(cotangent, texels, *operands, spec=spec, wrt=wrt, batch=batch)


def supports_convolve(values: Any, *, weights: tuple[float, ...], axis: int, full: bool) -> bool:
    del full
    row = math.prod(values.shape[axis:]) + 4 * len(weights) * math.prod(values.shape[axis + 1 :])
    return values.dtype == jnp.float32 and row < COUNT_LIMIT and kernel_fits([values], 1)


LOWERINGS = {
    "convolve": (Lowering("cuda", convolution_kernel.convolve, supports_convolve),),
    "concatenated_read": (Lowering("cuda", read_kernel.concatenated_read, supports_concatenated_read),),
    "read": by_storage(
        READ,
        Lowering("cuda", read_kernel.read, supports_read, layout=READ),
        Lowering("cuda", halo_kernels.read, supports_halo_read, storage=Halo),
        Lowering("cpu", cpu_read.read, cpu_read.supports),
    ),
    "splat": by_storage(
        SPLAT,
        Lowering(
            "cuda",
            adjoint_kernel.splat,
            supports_splat,
            functools.partial(batched, partitioned_adjoint.splat),
            SPLAT,
            fallback_uses_atomics=True,
        ),
        Lowering("cuda", adjoint_kernel.splat, of_slice(supports_splat), storage=Slice),
        Lowering("cuda", halo_kernels.splat, supports_halo_splat, storage=Halo),
        Lowering("cpu", cpu_adjoint.splat, cpu_adjoint.supports),
    ),
    "pullback": by_storage(
        PULLBACK,
        Lowering(
            "cuda",
            adjoint_kernel.pullback,
            supports_pullback,
            functools.partial(batched, partitioned_adjoint.pullback),
            PULLBACK,
            fallback_uses_atomics=True,
        ),
        Lowering("cuda", adjoint_kernel.pullback, of_slice(supports_pullback), storage=Slice),
        Lowering("cuda", halo_kernels.pullback, supports_halo_pullback, storage=Halo),
        Lowering("cpu", cpu_adjoint.pullback, cpu_adjoint.supports),
    ),
}
