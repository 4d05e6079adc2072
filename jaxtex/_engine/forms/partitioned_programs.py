"""A program of one sample in a program that XLA partitions: each device computes a part of the grid.

Each axis of the grid may be divided into equal parts. What samples share, and the axes of one sample, are whole on each
device. If samples that share an argument are divided, one all-reduce adds up the sums into its cotangent.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..._jax.primitives import as_tuple
from ..compute.programs import Places, Sizes
from ..describe.program import Program
from ..describe.storage import Content, Shaped
from .device_axes import Devices
from .partitioned_call import NO_MESH, Array, CallPartition, PartitionedCall, partitioned


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
    static: dict[str, Any] = {"program": program, "places": places, "result_places": result_places, **others}
    if linear is None:
        of_operands, of_results = places, result_places
    else:
        of_operands = *(p for k, p in enumerate(places) if k not in linear), *result_places
        of_results = tuple(places[k] for k in linear)
        static["linear"] = linear

    def call_of(operands: Sequence[Shaped]) -> PartitionedCall:
        avals, count = (*operands, *results), len(operands)
        arrays = tuple(map(array_of, avals, (*of_operands, *of_results), range(len(avals))))
        return PartitionedCall(arrays[:count], arrays[count:], is_even=True)

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
