"""A primitive in a program that XLA partitions: each device runs a form for one device on its part of the samples.

Batch axes and sample axes may be partitioned in any way, evenly or not. Texel axes and channels are not partitioned. If
the samples of a texture are partitioned, one all-reduce adds the sums into texels.
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
from ..describe.storage import Content, Shaped, Signature
from .device_axes import DeviceAxes, Devices, device_axes, parts_of

NO_MESH = AbstractMesh((), ())


class Array(NamedTuple):
    """An operand or a result of the call.

    Attributes:
        content: what the array holds.
        names: a name for each dimension; dimensions of one name are partitioned alike.
        stack: the axis along which it holds several numbers of each sample, or `None`.
    """

    content: Content
    shape: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...]
    stack: Stack | None = None

    @classmethod
    def of(cls, content: Content, aval: Shaped, batch: int, number: int, stack: Stack | None) -> "Array":
        """The array of an abstract value; `number` distinguishes it from the other arrays of the call."""
        shape = tuple(aval.shape)
        if stack is None:
            return cls(content, shape, aval.dtype, names_of_dimensions(content, shape, batch, number))
        names = names_of_dimensions(content, stack.without_axis(shape), batch, number)
        return cls(content, shape, aval.dtype, stack.with_axis(names, f"stack{number}"), stack)

    def dimension_of(self, d: int) -> int:
        """The dimension of this array that is dimension `d` of batch and samples, which do not count the stack."""
        return d if self.stack is None else self.stack.dimension_of(d, len(self.shape))

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def names_of_dimensions(content: Content, shape: tuple[int, ...], batch: int, number: int) -> tuple[str, ...]:
    """A name for each dimension of array `number`; a size of 1, which broadcasts, has a name that no other has."""
    channels = 0 if content is Content.SAMPLES else 1
    inner = len(shape) - batch - channels
    kind = "texel" if content is Content.TEXTURE else "sample"
    names = [*(f"batch{k}" for k in range(batch)), *(f"{kind}{k}" for k in range(inner)), *["channel"] * channels]
    return tuple(name if n > 1 else f"single{number}_{k}" for k, (name, n) in enumerate(zip(names, shape)))


def may_be_partitioned(name: str) -> bool:
    """Whether dimensions of this name may be partitioned."""
    return name.startswith(("batch", "sample"))


class PartitionedCall(NamedTuple):
    """The arrays of one call.

    Attributes:
        summed: the positions of the operands whose cotangents are results; a cotangent is a sum if its operand
            broadcasts.
        is_even: whether dimensions are only divided into parts of one size.
    """

    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    summed: tuple[int, ...] = ()
    is_even: bool = False

    @classmethod
    def of(
        cls,
        signature: Signature,
        operands: Sequence[Shaped],
        results: Sequence[Shaped] = (),
        *,
        spec: ReadSpec,
        batch: int,
        wrt: Wrt = (),
    ) -> "PartitionedCall":
        """The call with abstract values `operands` and `results`."""
        given = signature.operands(spec, wrt)
        first = len(given)
        contents = [
            *given,
            *[Content.SAMPLES] * (len(operands) - first),
            *(signature.results(spec, wrt) if results else ()),
        ]
        numbers = [*range(-first, len(operands) - first), *(wrt or [TEXELS] * len(results))]
        stack_of = lambda content, k: spec.stack_of(k) if content is Content.SAMPLES else None
        arrays = [
            Array.of(content, a, batch, number, stack_of(content, k))
            for number, (content, a, k) in enumerate(zip(contents, (*operands, *results), numbers, strict=True))
        ]
        # Sample axes along which the values broadcast are not partitioned.
        values = next((a for a in arrays if a.content is Content.VALUES), None)
        shared = [] if values is None else [f"sample{k}" for k, n in enumerate(values.shape[batch:-1]) if n == 1]
        together = lambda name: name.replace("sample", "term") if name in shared else name
        arrays = [a._replace(names=tuple(map(together, a.names))) for a in arrays]
        summed = tuple(first + k for k in wrt if k != TEXELS)
        return cls(tuple(arrays[: len(operands)]), tuple(arrays[len(operands) :]), summed)

    @property
    def values(self) -> Array:
        """The operand that holds values of samples; only calls whose results are sums over samples have one."""
        return next(a for a in self.operands if a.content is Content.VALUES)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of the dimensions of each name."""
        return {name: n for a in (*self.operands, *self.results) for name, n in zip(a.names, a.shape)}

    @property
    def sharding_rule(self) -> SdyShardingRule:
        """The rule from which Shardy chooses the shardings of the arrays."""
        mappings = [tuple(ArrayMapping(*a.names) for a in arrays) for arrays in (self.operands, self.results)]
        kept = {name for a in self.results for name in a.names}
        return SdyShardingRule(
            *mappings,
            reduction_factors=tuple(name for name in self.sizes if may_be_partitioned(name) and name not in kept),
            need_replication_factors=tuple(name for name in self.sizes if not may_be_partitioned(name)),
        )

    def partition(self, operands: Sequence[Any], results: Sequence[Any], devices: Devices) -> "CallPartition":
        """The partition of the arrays that follows XLA's shardings; if two arrays disagree, the larger one decides.

        Args:
            operands, results: objects with an attribute `sharding`.
        """
        shardings = [a.sharding for a in (*operands, *results)]
        arrays = list(zip((*self.operands, *self.results), shardings))
        arrays.sort(key=lambda pair: -pair[0].size)
        wanted = [
            (name, part)
            for a, sharding in arrays
            for name, part in zip(a.names, parts_of(sharding, len(a.shape), len(devices)))
            if may_be_partitioned(name) and part.any()
        ]
        axes, sizes = device_axes([part for _, part in wanted], devices), self.sizes
        along: dict[str, tuple[str, ...]] = {}
        for name, part in wanted:
            names = axes.counting(part)
            used = {axis for axes_of_name in along.values() for axis in axes_of_name}
            if names is None or name in along or not used.isdisjoint(names):
                continue
            if not self.is_even or sizes[name] % axes.num_parts(names) == 0:
                along[name] = names
        return CallPartition(axes, along)


class CallPartition(NamedTuple):
    """The partition of the arrays of a call.

    Attributes:
        along: for a name of dimensions, the mesh axes that partition them, the slowest first.
    """

    axes: DeviceAxes
    along: dict[str, tuple[str, ...]]

    def sharding(self, array: Array) -> Any:
        return self.axes.sharding([self.along.get(name, ()) for name in array.names])

    def summed(self, result: Array) -> list[str]:
        """The partitioned dimensions over which `result` is a sum: it does not have them."""
        return [name for name in self.along if name not in result.names]

    def without_padding(self, call: PartitionedCall, operands: Sequence[jax.Array]) -> list[jax.Array]:
        """The operands of a device, with values set to zero in the padding of uneven parts, which is undefined.

        Zero values suffice for sums into texels, because weights are finite at all coordinates. But the derivative of a
        coordinate with respect to an operand may be infinite or NaN in the padding. So an operand whose cotangent is a
        sum is broadcast to the samples of an uneven part; `without_padding_summed` adds up their cotangents.
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
        """The dimensions of batch and samples whose parts differ in size."""
        names = enumerate(zip(call.values.names[:-1], call.values.shape))
        return [d for d, (name, n) in names if n % self.axes.num_parts(self.along.get(name, ()))]

    def without_padding_summed(self, call: PartitionedCall, result: Array, x: jax.Array) -> jax.Array:
        """A device's part `x` of a result, summed over the axes along which `without_padding` broadcast its operand."""
        if result.content is not Content.SAMPLES:
            return x
        repeated = tuple(d for d in map(result.dimension_of, self.uneven(call)) if result.shape[d] == 1)
        return jnp.sum(self.zero_in_padding(call.values, x, result), repeated, keepdims=True) if repeated else x

    def zero_in_padding(self, values: Array, x: jax.Array, array: Array) -> jax.Array:
        """A device's part `x` of an array, with zeros beyond the end of `values`."""
        for d, (name, size) in enumerate(zip(values.names, values.shape)):
            along, own = self.along.get(name, ()), array.dimension_of(d)
            if size % self.axes.num_parts(along):
                start = jax.lax.axis_index(along) * x.shape[own]
                x = jnp.where(start + jax.lax.broadcasted_iota(jnp.int32, x.shape, own) < size, x, 0)
        return x


def partitioned(
    call_of: Callable[[Sequence[Shaped]], PartitionedCall],
    local: Callable[..., tuple[jax.Array, ...]],
    general: Callable[..., Any],
    devices: Devices,
    meaning: object,
) -> Callable[..., tuple[jax.Array, ...]]:
    """A function of the operands, for programs that XLA partitions; it returns a tuple.

    Args:
        call_of: the call with some operands.
        local: computes the results of one device from its parts of the operands: ``local(call, partition, *operands)``.
        general: computes the results from whole operands; it is only traced, for their shapes.
        meaning: what tells this call from others of the same shapes; its representation counts.
    """

    def whole(*operands: jax.Array) -> tuple[jax.Array, ...]:
        with jax.sharding.use_abstract_mesh(NO_MESH):
            return as_tuple(general(*operands))

    def divide(mesh: Any, operands: Sequence[Any], shaped: Sequence[Any]):
        del mesh
        call = call_of(operands)
        partition = call.partition(operands, shaped, devices)
        arguments, outputs = (tuple(map(partition.sharding, arrays)) for arrays in (call.operands, call.results))
        return partition.axes.mesh, functools.partial(local, call, partition), outputs, arguments

    def run(*operands: jax.Array) -> tuple[jax.Array, ...]:
        function = custom_partitioning(whole)
        # Names of the caller's mesh axes may not suffice to express a sharding, so JAX must not decode it to them.
        function.def_partition(divide, decode_shardings=False, sharding_rule=call_of(operands).sharding_rule)
        # XLA's program names the call by an address. This hash lets JAX's cache of compiled programs tell calls apart.
        with set_xla_metadata(texture_call=hashlib.sha256(repr(meaning).encode()).hexdigest()):
            return function(*operands)

    return run


def partitioned_read(
    signature: Signature,
    on_part: Callable[..., Any],
    general: Callable[..., Any],
    results: Sequence[Shaped],
    devices: Devices,
    *,
    spec: ReadSpec,
    batch: int,
    wrt: Wrt = (),
    **others: Any,
) -> Callable[..., tuple[jax.Array, ...]]:
    """A primitive of a read, whose samples are divided over devices.

    Args:
        on_part: computes the results of one device from its parts of the operands: ``on_part(*operands, spec=...)``.
        results: the abstract values of the results.
        others: the other parameters of the primitive.
    """

    def call_of(operands: Sequence[Shaped]) -> PartitionedCall:
        return PartitionedCall.of(signature, operands, results, spec=spec, batch=batch, wrt=wrt)

    def local(call: PartitionedCall, partition: CallPartition, *operands: jax.Array) -> tuple[jax.Array, ...]:
        return sum_of_parts(call, partition, on_part, spec, *operands)

    meaning = signature, spec, batch, wrt, *others.values()
    return partitioned(call_of, local, functools.partial(general, spec=spec), devices, meaning)


def sum_of_parts(
    call: PartitionedCall, partition: CallPartition, on_part: Callable[..., Any], spec: ReadSpec, *operands: jax.Array
) -> tuple[jax.Array, ...]:
    """The results on one device, each summed over the devices that hold terms of it, in the dtype of the values."""
    with jax.sharding.use_abstract_mesh(NO_MESH):
        axes = [
            tuple(axis for name in partition.summed(result) for axis in partition.along[name])
            for result in call.results
        ]
        if any(axes):
            dtype = call.values.dtype
            spec = spec.with_dtype(dtype)
            wide = lambda array, x: x.astype(dtype) if array.content is Content.TEXTURE else x
            operands = tuple(map(wide, call.operands, partition.without_padding(call, operands)))
        sums = []
        for result, over, x in zip(call.results, axes, as_tuple(on_part(*operands, spec=spec)), strict=True):
            if over:
                x = jax.lax.psum(partition.without_padding_summed(call, result, x), over)
            sums.append(x.astype(result.dtype))
        return tuple(sums)


def smallest_parts(
    signature: Signature, operands: Sequence[Shaped], spec: ReadSpec, batch: int, count: int
) -> list[jax.ShapeDtypeStruct]:
    """The smallest part of each operand that one of `count` devices may hold, as abstract values."""
    call = PartitionedCall.of(signature, operands, spec=spec, batch=batch)
    return [
        jax.ShapeDtypeStruct(
            [-(-n // count) if may_be_partitioned(name) else n for name, n in zip(a.names, a.shape)], a.dtype
        )
        for a in call.operands
    ]
