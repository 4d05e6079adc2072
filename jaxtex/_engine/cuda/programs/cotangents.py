"""How the samples of a grid add up the cotangent of what they share: by the nearest threads that have all of them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...compute.programs import type_on_grid
from ..build.launch import LANES
from ..scatter.crowds import num_copies
from ..trace.emitter import Emitter
from ..trace.statements import Names, c_type_of
from .parts import Laid, stores
from .tiles import Tiles

FLOAT = np.dtype(np.float32)


class Cotangent(NamedTuple):
    """How a kernel returns the cotangent of an operand.

    Attributes:
        result: the array that the kernel fills.
        finish: makes the cotangent from that array.
        before, at_sample, after: statements before, at and after the computation of a sample.
        adds: whether the array begins with zeros, to which samples add.
    """

    result: jax.ShapeDtypeStruct
    finish: Callable[[jax.Array], jax.Array]
    before: Sequence[str] = ()
    at_sample: Sequence[str] = ()
    after: Sequence[str] = ()
    adds: bool = False


def added(
    emitter: Emitter, name: str, array: str, place: str, num_samples: int, whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a whole array, to which samples add in float32, in any order.

    Blocks add to copies of a small array, and rarely meet. What a thread has added up in variables, warps add up.
    """
    # Copies of a small array keep blocks from waiting for each other.
    size = math.prod(whole.shape)
    copies = num_copies(num_samples / size, size) if size else 1
    copy = f" + (int64)(blockIdx.x % {copies}) * {size}" if copies > 1 else ""
    # What stays in variables of a thread until its last sample.
    sums = {at: variable for (of, at), variable in sorted(emitter.sums.items()) if of == name}
    count, places, variables = (len(sums), *(", ".join(map(str, some)) for some in (sums, sums.values())))
    after = [
        "{",
        f"const int places[{count}] = {{{places}}};",
        f"float sums[{count}] = {{{variables}}};",
        f"add_sums({name}, places, sums);",
        "}",
    ]
    return Cotangent(
        jax.ShapeDtypeStruct((copies, *whole.shape), FLOAT),
        lambda x: jnp.sum(x, 0).astype(whole.dtype),
        before=[f"float* const {name} = {array}{copy} + {place};", *(f"float {v} = 0;" for v in sums.values())],
        after=after if sums else (),
        adds=True,
    )


def summed_in_warps(
    array: str, names: Names, tiles: Tiles, shared: Sequence[int], places: Sequence[int], whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a few numbers that all samples of a tile share: warps store sums, and XLA adds these up."""
    # A thread keeps its own sums, the lanes of a warp exchange theirs, and the first lane stores the total.
    count, warps = names.size, tiles.num_threads // LANES
    sums = [f"{array}_{k}" for k in range(count)]
    narrow = "" if whole.dtype == FLOAT else f"converted<float, {c_type_of(whole.dtype)}>"
    after = [f"for (int k = {LANES // 2}; k > 0; k /= 2) {name} += of_lane_xor({name}, k);" for name in sums]
    row = f"((int64)blockIdx.x * {warps} + threadIdx.x / {LANES}) * {count}"
    store = f"store_row({array} + {row}, Row<float, {count}>{{{{{', '.join(sums)}}}}});"

    # XLA adds up the totals of warps, along the axes that the samples share.
    def finish(x: jax.Array) -> jax.Array:
        kept = [1 if axis in shared else n for axis, n in enumerate(tiles.counts)]
        own = [n for place, n in enumerate(whole.shape) if place not in places]
        total = jnp.sum(x, (*shared, len(kept)), keepdims=True).reshape(*kept, *own)
        return jnp.moveaxis(total, range(len(kept)), places).astype(whole.dtype)

    return Cotangent(
        jax.ShapeDtypeStruct((*tiles.counts, warps, count), FLOAT),
        finish,
        before=[f"float {name} = 0;" for name in sums],
        at_sample=[f"{name} += {narrow}({value});" for name, value in zip(sums, names.ravel())],
        after=[*after, f"if (threadIdx.x % {LANES} == 0) {store}"],
    )


def summed_in_lanes(
    array: str, names: Names, lanes: int, count: int, laid: Laid, whole: jax.ShapeDtypeStruct
) -> Cotangent:
    """The cotangent of a few numbers that adjacent lanes share: these add them up, and the first of them stores them.

    The first `count` of a group of lanes share numbers. They have samples, all or none, and so meet in the branch of
    samples. Behind it, all lanes of a warp would have to meet, and a driver's compiler was seen to fail there if some
    have no sample.
    """
    sums = [f"{array}_{k}" for k in range(names.size)]
    narrow = "" if whole.dtype == FLOAT else f"converted<float, {c_type_of(whole.dtype)}>"
    added = [
        f"{name} += of_near_lane_xor({name}, {bits}, {lanes}, {count});"
        for bits in (1 << k for k in range(lanes.bit_length() - 1))
        for name in sums
    ]
    return Cotangent(
        jax.ShapeDtypeStruct(whole.shape, FLOAT),
        lambda x: x.astype(whole.dtype),
        at_sample=[
            *(f"float {name} = {narrow}({value});" for name, value in zip(sums, names.ravel())),
            *added,
            f"if (threadIdx.x % {lanes} == 0) {{",
            *stores(array, laid, np.array(sums, object).reshape(names.shape), FLOAT),
            "}",
        ],
    )


def summed_by_xla(
    array: str, names: Names, sizes: tuple[int, ...], shared: Sequence[int], places: Sequence[int], aval: Any
) -> Cotangent:
    """The cotangent of a few numbers that some samples of a tile share: all are stored, and XLA adds them up."""
    in_front = tuple(range(len(sizes)))
    stored = type_on_grid(sizes, aval, in_front)

    def finish(x: jax.Array) -> jax.Array:
        return jnp.moveaxis(jnp.sum(x, tuple(shared), keepdims=True), in_front, places)

    at_sample = stores(array, Laid.of(stored.shape, in_front), names, stored.dtype)
    return Cotangent(stored, finish, at_sample=at_sample)
