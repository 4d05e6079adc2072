"""A primitive in a program that XLA partitions: each device runs a form for one device on its part of the samples.

Batch axes and samples may be cut in any way, evenly or not. Sizes of a texture and channels are whole on each device.
Sums into texels are added up, once, over the devices among which the samples of a texture are divided.
"""

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AbstractMesh

from ..._jax.primitives import as_tuple
from ..describe.operands import Stack
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Content, Layout, Shaped
from .device_axes import DeviceAxes, Devices, device_axes, parts_of

NO_MESH = AbstractMesh((), ())


class Array(NamedTuple):
    """An operand or a result. Dimensions that are cut alike have the same name.

    Attributes:
        stack: how it holds several numbers of each sample, if it does.
    """

    content: Content
    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...]
    stack: Stack | None = None

    @classmethod
    def of(cls, content: Content, aval: Shaped, batch: int, number: int, stack: Stack | None) -> "Array":
        """The array of that number."""
        shape = tuple(aval.shape)
        if stack is None:
            return cls(content, shape, aval.dtype, names_of_dimensions(content, shape, batch, number))
        names, along = names_of_dimensions(content, stack.without_axis(shape), batch, number), len(shape) + stack.axis
        return cls(content, shape, aval.dtype, (*names[:along], f"stack{number}", *names[along:]), stack)

    def dimension_of(self, d: int) -> int:
        """The dimension of this array that is number `d` of the batch axes and the samples."""
        return d + (self.stack is not None and d >= len(self.shape) + self.stack.axis)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def names_of_dimensions(content: Content, shape: tuple[int, ...], batch: int, number: int) -> tuple[str, ...]:
    """A name for each dimension of the array of that number; a size of 1, which broadcasts, has a name of its own."""
    channels = 0 if content is Content.SAMPLES else 1
    inner = len(shape) - batch - channels
    kind = "texel" if content is Content.TEXTURE else "sample"
    names = [*(f"batch{k}" for k in range(batch)), *(f"{kind}{k}" for k in range(inner)), *["channel"] * channels]
    return tuple(name if n > 1 else f"single{number}_{k}" for k, (name, n) in enumerate(zip(names, shape)))


def is_cut(name: str) -> bool:
    """Whether dimensions of that name may be cut."""
    return name.startswith(("batch", "sample"))


class PartitionedCall(NamedTuple):
    """The arrays of one call.

    Attributes:
        summed: the positions of the operands of which a cotangent is a result: a sum where they broadcast.
    """

    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    summed: tuple[int, ...]

    @classmethod
    def of(
        cls,
        layout: Layout,
        operands: Sequence[Shaped],
        results: Sequence[Shaped] = (),
        *,
        spec: ReadSpec,
        batch: int,
        wrt: Wrt = (),
    ) -> "PartitionedCall":
        """From abstract values."""
        given = layout.operands(spec, wrt)
        first = len(given)
        contents = [*given, *[Content.SAMPLES] * (len(operands) - first), *(layout.results(wrt) if results else ())]
        numbers = [*range(-first, len(operands) - first), *(wrt or [TEXELS] * len(results))]
        stack_of = lambda content, k: spec.stack_of(k) if content is Content.SAMPLES else None
        arrays = [
            Array.of(content, a, batch, number, stack_of(content, k))
            for number, (content, a, k) in enumerate(zip(contents, (*operands, *results), numbers, strict=True))
        ]
        # Samples that have one value together stay together.
        values = next((a for a in arrays if a.content is Content.VALUES), None)
        shared = [] if values is None else [f"sample{k}" for k, n in enumerate(values.shape[batch:-1]) if n == 1]
        together = lambda name: name.replace("sample", "term") if name in shared else name
        arrays = [a._replace(names=tuple(map(together, a.names))) for a in arrays]
        summed = tuple(first + k for k in wrt if k != TEXELS)
        return cls(tuple(arrays[: len(operands)]), tuple(arrays[len(operands) :]), summed)

    @property
    def values(self) -> Array:
        """The operand that holds values of samples, of a call whose results may be sums over samples."""
        return next(a for a in self.operands if a.content is Content.VALUES)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of the dimensions of each name."""
        return {name: n for a in (*self.operands, *self.results) for name, n in zip(a.names, a.shape)}

    @property
    def sharding_rule(self) -> SdyShardingRule:
        """What Shardy, which decides how arrays are cut, must know."""
        mappings = [tuple(ArrayMapping(*a.names) for a in arrays) for arrays in (self.operands, self.results)]
        kept = {name for a in self.results for name in a.names}
        return SdyShardingRule(
            *mappings,
            reduction_factors=tuple(name for name in self.sizes if is_cut(name) and name not in kept),
            need_replication_factors=tuple(name for name in self.sizes if not is_cut(name)),
        )

    def cut(self, operands: Sequence[Any], results: Sequence[Any], devices: Devices) -> "Cut":
        """How to cut the arrays, from how XLA would. Where two disagree, the larger one decides.

        Args:
            operands, results: with an attribute `sharding`.
        """
        shardings = [a.sharding for a in (*operands, *results)]
        arrays = list(zip((*self.operands, *self.results), shardings))
        arrays.sort(key=lambda pair: -pair[0].size)
        wanted = [
            (name, part)
            for a, sharding in arrays
            for name, part in zip(a.names, parts_of(sharding, len(a.shape), len(devices)))
            if is_cut(name) and part.any()
        ]
        axes = device_axes([part for _, part in wanted], devices)
        found: dict[str, tuple[str, ...]] = {}
        for name, part in wanted:
            names = axes.counting(part)
            taken = {axis for some in found.values() for axis in some}
            if names is not None and name not in found and taken.isdisjoint(names):
                found[name] = names
        return Cut(axes, found)


class Cut(NamedTuple):
    """How the arrays of a call are cut: for a name of dimensions, the axes of devices, the slowest first."""

    axes: DeviceAxes
    along: dict[str, tuple[str, ...]]

    def sharding(self, array: Array) -> Any:
        return self.axes.sharding([self.along.get(name, ()) for name in array.names])

    def summed(self, result: Array) -> list[str]:
        """The names of the dimensions whose parts each hold some of the terms of `result`."""
        return [name for name in self.along if name not in result.names]

    def without_padding(self, call: PartitionedCall, operands: Sequence[jax.Array]) -> list[jax.Array]:
        """Operands with values of zero in the padding of uneven parts, which XLA fills with anything.

        That is enough for sums into texels, as a weight is finite at any coordinate. But the derivative of a coordinate
        by an operand may be infinite or NaN there. So an operand whose cotangent is a sum is broadcast to each sample
        of an uneven part; `without_padding_summed` adds up the cotangents of these.
        """
        changed = [
            self.zero_in_padding(array, x, array) if array.content is Content.VALUES else x
            for array, x in zip(call.operands, operands)
        ]
        values, uneven = operands[call.operands.index(call.values)], self.uneven(call)
        for k in call.summed:
            shape = list(changed[k].shape)
            for d in uneven:
                shape[call.operands[k].dimension_of(d)] = values.shape[d]
            changed[k] = jnp.broadcast_to(changed[k], shape)
        return changed

    def uneven(self, call: PartitionedCall) -> list[int]:
        """The dimensions of the samples whose parts differ in size."""
        names = enumerate(zip(call.values.names[:-1], call.values.shape))
        return [d for d, (name, n) in names if n % self.axes.num_parts(self.along.get(name, ()))]

    def without_padding_summed(self, call: PartitionedCall, result: Array, x: jax.Array) -> jax.Array:
        """The part `x` of a result, added up where its operand was broadcast to each sample of an uneven part."""
        if result.content is not Content.SAMPLES:
            return x
        repeated = tuple(d for d in map(result.dimension_of, self.uneven(call)) if result.shape[d] == 1)
        return jnp.sum(self.zero_in_padding(call.values, x, result), repeated, keepdims=True) if repeated else x

    def zero_in_padding(self, values: Array, x: jax.Array, array: Array) -> jax.Array:
        """The part `x` of an array, zero where it lies beyond the end of `values`."""
        for d, (name, size) in enumerate(zip(values.names, values.shape)):
            along, own = self.along.get(name, ()), array.dimension_of(d)
            if size % self.axes.num_parts(along):
                start = jax.lax.axis_index(along) * x.shape[own]
                x = jnp.where(start + jax.lax.broadcasted_iota(jnp.int32, x.shape, own) < size, x, 0)
        return x


def partitioned(
    layout: Layout,
    on_part: Callable[..., Any],
    general: Callable[..., Any],
    results: Sequence[Shaped],
    devices: Devices,
    *,
    spec: ReadSpec,
    batch: int,
    wrt: Wrt = (),
) -> Callable[..., tuple[jax.Array, ...]]:
    """A function of the operands that may be part of a program that XLA partitions; it returns a tuple.

    Args:
        on_part: computes the results from the operands that one device holds: ``on_part(*operands, spec=...)``.
        general: computes them from whole operands, for their shapes.
        results: the abstract values of the results.
        devices: as many as the program runs on.
    """

    def whole(*operands: jax.Array) -> tuple[jax.Array, ...]:
        with jax.sharding.use_abstract_mesh(NO_MESH):
            return as_tuple(general(*operands, spec=spec))

    def of_operands(operands: Sequence[Shaped]) -> PartitionedCall:
        return PartitionedCall.of(layout, operands, results, spec=spec, batch=batch, wrt=wrt)

    def partition(mesh: Any, operands: Sequence[Any], found: Sequence[Any]):
        del mesh
        call = of_operands(operands)
        cut = call.cut(operands, found, devices)
        local = functools.partial(sum_of_parts, call, cut, on_part, spec)
        arguments, outputs = (tuple(map(cut.sharding, arrays)) for arrays in (call.operands, call.results))
        return cut.axes.mesh, local, outputs, arguments

    def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
        function = custom_partitioning(whole)
        rule = of_operands(operands).sharding_rule
        # Undecoded, as a name of the caller's mesh need not be enough to say how an array is cut.
        function.def_partition(partition, decode_shardings=False, sharding_rule=rule)
        # XLA knows the call by an address alone, which JAX's cache of compiled programs must not take for its meaning.
        meaning = hashlib.sha256(repr((layout, spec, batch, wrt)).encode()).hexdigest()
        with set_xla_metadata(texture_call=meaning):
            return function(*operands)

    return run


def sum_of_parts(
    call: PartitionedCall, cut: Cut, on_part: Callable[..., Any], spec: ReadSpec, *operands: jax.Array
) -> tuple[jax.Array, ...]:
    """The results of one device, each added up over the devices that hold terms of it, in the dtype of the values."""
    with jax.sharding.use_abstract_mesh(NO_MESH):
        axes = [tuple(axis for name in cut.summed(result) for axis in cut.along[name]) for result in call.results]
        if any(axes):
            dtype = call.values.dtype
            spec = spec.with_dtype(dtype)
            wide = lambda array, x: x.astype(dtype) if array.content is Content.TEXTURE else x
            operands = tuple(map(wide, call.operands, cut.without_padding(call, operands)))
        found = []
        for result, over, x in zip(call.results, axes, as_tuple(on_part(*operands, spec=spec)), strict=True):
            if over:
                x = jax.lax.psum(cut.without_padding_summed(call, result, x), over)
            found.append(x.astype(result.dtype))
        return tuple(found)


def smallest_parts(
    layout: Layout, operands: Sequence[Shaped], spec: ReadSpec, batch: int, count: int
) -> list[jax.ShapeDtypeStruct]:
    """The least that one of `count` devices may hold of each operand."""
    call = PartitionedCall.of(layout, operands, spec=spec, batch=batch)
    return [
        jax.ShapeDtypeStruct([-(-n // count) if is_cut(name) else n for name, n in zip(a.names, a.shape)], a.dtype)
        for a in call.operands
    ]
