"""Primitives in a program that XLA partitions: each device runs a form for one device on its part of the samples."""

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding

from ..._jax.primitives import as_tuple
from ..._tables.storage_formats import sum_dtype
from ..compute.programs import Places, Sizes
from ..describe.operands import Stack
from ..describe.program import Program
from ..describe.spec import TEXELS, ReadSpec, Wrt
from ..describe.storage import Content, Shaped, Signature

# Meshes for shardings that XLA's partitioner has chosen
#
# The partitioner knows which part each device holds, but no names of mesh axes: it may have split or dropped an axis of
# the caller's mesh, and a program may use several meshes. So the devices are arranged in the finest possible mesh, with
# axes of prime sizes, and a dimension is sharded along one or several of these.


# Devices of JAX, which type checkers do not know.
Devices = tuple[Any, ...]


class DeviceAxes(NamedTuple):
    """A mesh: the devices in the order of a program, along axes of `sizes`; the last axis varies fastest."""

    devices: Devices
    sizes: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"axis{k}" for k in range(len(self.sizes)))

    @property
    def mesh(self) -> Mesh:
        return Mesh(np.array(self.devices, object).reshape(self.sizes), self.names)

    def sharding(self, dimensions: Sequence[tuple[str, ...]]) -> NamedSharding:
        """The sharding of an array, from the names of the axes that shard each dimension, the slowest first."""
        return NamedSharding(self.mesh, PartitionSpec(*(names or None for names in dimensions)))

    def num_parts(self, names: tuple[str, ...]) -> int:
        return math.prod(self.sizes[self.names.index(name)] for name in names)

    def counting(self, part: np.ndarray) -> tuple[str, ...] | None:
        """The axes, slowest first, that number the devices as `part` does; `None` if there are none.

        Args:
            part: for each device, the number of the part that it holds.
        """
        strides = [int(part[math.prod(self.sizes[k + 1 :])]) for k in range(len(self.sizes))]
        cut = sorted((k for k, stride in enumerate(strides) if stride), key=lambda k: -strides[k])
        steps = [math.prod(self.sizes[m] for m in cut[n + 1 :]) for n in range(len(cut))]
        place = np.indices(self.sizes).reshape(len(self.sizes), -1)
        if (part == sum((place[k] * step for k, step in zip(cut, steps)), np.zeros_like(part))).all():
            return tuple(self.names[k] for k in cut)
        return None


def device_axes(parts: Sequence[np.ndarray], devices: Devices) -> DeviceAxes:
    """The mesh whose axes express most of `parts`, by `DeviceAxes.counting`."""
    candidates = (DeviceAxes(devices, sizes) for sizes in orders(prime_factors(len(devices))))
    return max(candidates, key=lambda axes: sum(axes.counting(part) is not None for part in parts))


def parts_of(sharding: Sharding | None, rank: int, count: int) -> list[np.ndarray]:
    """For each dimension of an array, the number of the part that each of `count` devices holds."""
    if sharding is None or rank == 0:
        return [np.zeros(count, int)] * rank
    # The number of parts divides the number of devices, so a dimension of that size has equal parts.
    slices = sharding.devices_indices_map((count,) * rank).values()
    ranges = [[s.indices(count)[:2] for s in index] for index in slices]
    return [np.array([index[k][0] // (index[k][1] - index[k][0]) for index in ranges]) for k in range(rank)]


def prime_factors(n: int) -> list[int]:
    factors, p = [], 2
    while n > 1:
        while n % p == 0:
            factors, n = [*factors, p], n // p
        p += 1
    return factors


def orders(numbers: list[int]) -> Iterator[tuple[int, ...]]:
    """The distinct permutations of `numbers`."""
    if not numbers:
        yield ()
    for first in sorted(set(numbers)):
        rest = list(numbers)
        rest.remove(first)
        yield from ((first, *others) for others in orders(rest))


# Reads, and what else has samples
#
# Batch axes and sample axes may be partitioned in any way, evenly or not. Texel axes and channels are not partitioned.
# If the samples of a texture are partitioned, one all-reduce adds the sums into texels.


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
        # What each array holds, and its number among texels and operands.
        given = signature.operands(spec, wrt)
        first = len(given)
        contents = [
            *given,
            *[Content.SAMPLES] * (len(operands) - first),
            *(signature.results(spec, wrt) if results else ()),
        ]
        numbers = [*range(-first, len(operands) - first), *(wrt or [TEXELS] * len(results))]
        stack_of = lambda content, k: spec.stack_of(k) if content is Content.SAMPLES else None
        # Equal names of dimensions say which ones are divided together.
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
        # What XLA wants, the largest array first.
        shardings = [a.sharding for a in (*operands, *results)]
        arrays = list(zip((*self.operands, *self.results), shardings))
        arrays.sort(key=lambda pair: -pair[0].size)
        wanted = [
            (name, part)
            for a, sharding in arrays
            for name, part in zip(a.names, parts_of(sharding, len(a.shape), len(devices)))
            if may_be_partitioned(name) and part.any()
        ]
        # Mesh axes from which the parts of all of these can be counted.
        axes, sizes = device_axes([part for _, part in wanted], devices), self.sizes
        # Each name takes its axes, unless another one has taken them before.
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
    """The results on one device, each summed over the devices that hold terms of it, in the dtype of sums."""
    with jax.sharding.use_abstract_mesh(NO_MESH):
        # The mesh axes over which a result is a sum of terms of several devices.
        axes = [
            tuple(axis for name in partition.summed(result) for axis in partition.along[name])
            for result in call.results
        ]
        # Terms are added in the dtype of sums of the values, without samples that pad the last part.
        if any(axes):
            dtype = sum_dtype(call.values.dtype)
            spec = spec.with_dtype(dtype)
            wide = lambda array, x: x.astype(dtype) if array.content is Content.TEXTURE else x
            operands = tuple(map(wide, call.operands, partition.without_padding(call, operands)))
        # The device's own results, added up over the others, in the dtype of the whole.
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


# Programs of one sample
#
# Each axis of the grid may be divided into equal parts. What samples share, and the axes of one sample, are whole on
# each device. If samples that share an argument are divided, one all-reduce adds up the sums into its cotangent.


def array_of(aval: Shaped, places: tuple[int, ...], number: int) -> Array:
    """An operand or a result, whose axes of the grid are at `places`; `number` tells it from the others."""
    names = [f"own{number}_{d}" for d in range(len(aval.shape))]
    for axis, place in enumerate(places):
        if aval.shape[place] > 1:
            names[place] = f"batch{axis}"
    return Array(Content.SAMPLES, tuple(aval.shape), aval.dtype, tuple(names))


def partitioned_program(
    on_part: Callable[..., Any],
    general: Callable[..., Any],
    results: Sequence[Shaped],
    devices: Devices,
    *,
    program: Program,
    sizes: Sizes,
    places: Places,
    result_places: Places,
    linear: tuple[int, ...] | None = None,
    shapes: tuple[tuple[int, ...], ...] = (),
    **others: Any,
) -> Callable[..., tuple[jax.Array, ...]]:
    """A function of the operands of `samples_p`, or of `adjoint_p` where `linear` is given, for partitioned programs.

    Args:
        on_part: computes the results of one device, with the parameters of its part of the grid.
        general: computes the results from whole operands.
        results: the abstract values of the results.
    """
    # Where the axes of the grid are in each array: of the program, or of its transpose.
    static: dict[str, Any] = {"program": program, "places": places, "result_places": result_places, **others}
    if linear is None:
        of_operands, of_results = places, result_places
    else:
        of_operands = *(p for k, p in enumerate(places) if k not in linear), *result_places
        of_results = tuple(places[k] for k in linear)
        static["linear"] = linear

    # Dimensions on the grid have the names of its axes.
    def call_of(operands: Sequence[Shaped]) -> PartitionedCall:
        avals, count = (*operands, *results), len(operands)
        arrays = tuple(map(array_of, avals, (*of_operands, *of_results), range(len(avals))))
        return PartitionedCall(arrays[:count], arrays[count:], is_even=True)

    # A device computes its part of the grid.
    def local(call: PartitionedCall, partition: CallPartition, *operands: jax.Array) -> tuple[jax.Array, ...]:
        parts = [partition.axes.num_parts(partition.along.get(f"batch{axis}", ())) for axis in range(len(sizes))]
        own = static | {"sizes": tuple(n // m for n, m in zip(sizes, parts))}
        if linear is not None:
            own["shapes"] = tuple(shape_of_part(shape, p, parts) for shape, p in zip(shapes, of_results))
        with jax.sharding.use_abstract_mesh(NO_MESH):
            sums: list[jax.Array] = []
            for result, x in zip(call.results, as_tuple(on_part(*operands, **own)), strict=True):
                over = [axis for name in partition.summed(result) for axis in partition.along[name]]
                wide = x.astype(jnp.promote_types(x.dtype, jnp.float32)) if over else x
                sums.append(jax.lax.psum(wide, over).astype(result.dtype) if over else x)
            return tuple(sums)

    # Equal programs have equal equations and constants.
    meaning = str(program.closed.jaxpr), [a.tobytes() for a in program.closed.consts], sizes, places, result_places
    return partitioned(call_of, local, general, devices, (*meaning, linear, shapes))


def shape_of_part(shape: tuple[int, ...], places: tuple[int, ...], parts: Sequence[int]) -> tuple[int, ...]:
    """The shape of a device's part of an array on the grid."""
    divided = dict(zip(places, parts))
    return tuple(n // divided.get(d, 1) if n > 1 else n for d, n in enumerate(shape))
