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

import jax
import jax.numpy as jnp
import numpy as np
from jax.export import is_symbolic_dim
from jax.interpreters import mlir

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
from ..cuda import adjoint_kernel, edged_kernels
from ..cuda.build.launch import FOR_EXPORTS, FOR_THIS_EXPORT, target_capability
from ..cuda.build.nvrtc import CompilationFailed, CompilerUnavailable
from ..cuda.convolve import convolution_kernel
from ..cuda.read import read_kernel
from ..cuda.read.read_kernel import WIDTHS, result_shape
from ..cuda.samples.sample_tiles import Lanes, samples_shape
from ..cuda.trace.elementwise import C_TYPES
from ..cuda.trace.emitter import UnknownPrimitive
from ..describe.axis import sizes_are_known
from ..describe.spec import TEXELS, ReadSpec, StaticRead, Wrt, each_read
from ..describe.storage import Edged, Place, places_of
from ..walk.texel_walk import flat_sizes
from . import cpu_adjoint, cpu_read, partitioned_adjoint
from .partitioned_call import PULLBACK, READ, READ_WITH_COLOR, SPLAT, Layout, partitioned, smallest_parts

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
    """

    platform: str
    run: Callable[..., Any]
    supports: Callable[..., bool]
    fallback: Callable[..., Any] | None = None
    layout: Layout | None = None
    fallback_uses_atomics: bool = False

    def rule(self, general: Callable[..., Any], *, multiple_results: bool) -> Callable[..., Any]:
        """The lowering rule: to `run` where it is supported, on one device or on each one's part, else to `general`."""
        as_run, as_general = (mlir.lower_fun(f, multiple_results=multiple_results) for f in (self.run, general))

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


def supports_read(texels: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    dtypes = spec.dtype, *(a.dtype for a in operands)
    if spec.several and spec.summed_axes:
        return False
    if not kernel_decodes(texels, spec) or spec.dtype.itemsize > 4 or not all(map(is_known, dtypes)):
        return False
    samples = math.prod(samples_shape(texels.shape[:batch], spec.sample_shapes(operands)))
    return kernel_fits([texels, *operands], samples)


def supports_bordered_read(texels: Any, color: Any, *operands: Any, spec: ReadSpec, batch: int) -> bool:
    """Whether a read with a border color, in either arithmetic, runs as a kernel."""
    del color
    return supports_read(texels, *operands, spec=spec, batch=batch)


def supports_joined_read(*avals: Any, reads: Sequence[StaticRead], row_axes: int) -> bool:
    """Whether each read runs as a kernel that computes its values, all have one dtype, and none cuts sectors."""
    shapes = (result_shape(texels, some, read.spec, read.batch) for read, (texels, *some) in each_read(reads, avals))
    least = min(place.slice.count for place in places_of(list(shapes), row_axes))
    if len({read.spec.dtype for read in reads}) > 1 or least * reads[0].spec.dtype.itemsize < SECTOR_BYTES:
        return False
    return all(
        supports_read(texels, *operands, spec=read.spec, batch=read.batch)
        and not read.spec.returns_texels(texels.dtype)
        for read, (texels, *operands) in each_read(reads, avals)
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


def part_of(whole: Any, place: Place) -> Any:
    """The abstract values that lie there, if kernels load them as they load values of an array of their own."""
    lanes = Lanes.of(place.shape[-1])
    aligned = not lanes.aligned or place.slice.keeps_aligned(lanes.width)
    return jax.ShapeDtypeStruct(place.shape, whole.dtype) if aligned else None


def supports_part_splat(whole: Any, *operands: Any, place: Place, **params: Any) -> bool:
    values = part_of(whole, place)
    return values is not None and supports_splat(values, *operands, **params)


def supports_part_pullback(whole: Any, *operands: Any, place: Place, **params: Any) -> bool:
    values = part_of(whole, place)
    return values is not None and supports_pullback(values, *operands, **params)


def supports_edged_read(own: Any, before: Any, after: Any, *operands: Any, spec: ReadSpec, missing: float) -> bool:
    """Whether a thread knows from its coordinates which texels it needs, and stores what a read computes."""
    del missing
    alone = spec.several is None and not spec.summed_axes and not spec.returns_texels(own.dtype)
    texels = Edged(own, before, after)
    return alone and supports_read(texels, *operands, spec=spec, batch=0)


def supports_edged_splat(values: Any, *operands: Any, spec: ReadSpec, reach: int) -> bool:
    return (
        reach > 0
        and not spec.deterministic
        and spec.several is None
        and not spec.summed_axes
        and supports_splat(values, *operands, spec=spec, batch=0)
    )


def supports_edged_pullback(
    cotangent: Any, own: Any, before: Any, after: Any, *operands: Any, spec: ReadSpec, wrt: Wrt
) -> bool:
    texels = Edged(own, before, after)
    if not supports_edged_splat(cotangent, *operands, spec=spec, reach=before.shape[0]):
        return False
    return supports_pullback(cotangent, texels, *operands, spec=spec, wrt=wrt, batch=0)


def supports_convolve(values: Any, *, weights: tuple[float, ...], axis: int, full: bool) -> bool:
    del full
    row = math.prod(values.shape[axis:]) + 4 * len(weights) * math.prod(values.shape[axis + 1 :])
    return values.dtype == jnp.float32 and row < COUNT_LIMIT and kernel_fits([values], 1)


LOWERINGS = {
    "convolve": (Lowering("cuda", convolution_kernel.convolve, supports_convolve),),
    "read": (
        Lowering("cuda", read_kernel.read, supports_read, layout=READ),
        Lowering("cpu", cpu_read.read, cpu_read.supports),
    ),
    "joined_read": (Lowering("cuda", read_kernel.joined_read, supports_joined_read),),
    "bordered_read": (
        Lowering("cuda", read_kernel.bordered_read, supports_bordered_read, layout=READ_WITH_COLOR),
        Lowering("cpu", cpu_read.bordered_read, cpu_read.supports_bordered),
    ),
    "edged_read": (Lowering("cuda", edged_kernels.edged_read, supports_edged_read),),
    "edged_splat": (Lowering("cuda", edged_kernels.edged_splat, supports_edged_splat),),
    "edged_pullback": (Lowering("cuda", edged_kernels.edged_pullback, supports_edged_pullback),),
    "part_splat": (Lowering("cuda", adjoint_kernel.part_splat, supports_part_splat),),
    "part_pullback": (Lowering("cuda", adjoint_kernel.part_pullback, supports_part_pullback),),
    "splat": (
        Lowering(
            "cuda",
            adjoint_kernel.splat,
            supports_splat,
            functools.partial(batched, partitioned_adjoint.splat),
            SPLAT,
            fallback_uses_atomics=True,
        ),
        Lowering("cpu", cpu_adjoint.splat, cpu_adjoint.supports),
    ),
    "pullback": (
        Lowering(
            "cuda",
            adjoint_kernel.pullback,
            supports_pullback,
            functools.partial(batched, partitioned_adjoint.pullback),
            PULLBACK,
            fallback_uses_atomics=True,
        ),
        Lowering("cpu", cpu_adjoint.pullback, cpu_adjoint.supports),
    ),
}
