"""Primitives that are translated by their meaning: a function of arrays in terms of other primitives, then traced."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .elementwise import STORED_ONLY
from .matrices import MATRICES, exchanged
from .statements import UnknownPrimitive

# The largest number of products in a product of arrays; of numbers that a thread sorts, and that it sorts in registers.
MOST_PRODUCTS, MOST_SORTED, MOST_EXCHANGED = 4096, 128, 16
# An elementwise function of two arrays.
Combine = Callable[[jax.Array, jax.Array], jax.Array]


def reduced(combine: Combine, x: jax.Array, *, axes: Sequence[int], **_: Any) -> jax.Array:
    """A reduction along axes, number by number. A sum starts from 0, so that the sum of -0 is 0."""
    kept = [n for axis, n in enumerate(x.shape) if axis not in axes]
    zeros = [jnp.zeros(kept, x.dtype)] if combine is lax.add else []
    parts = [*zeros, *jnp.moveaxis(x, axes, range(len(axes))).reshape(-1, *kept)]
    if not parts:
        raise UnknownPrimitive("a reduction of no numbers has no rule")
    return functools.reduce(combine, parts)


def accumulated(combine: Combine, x: jax.Array, *, axis: int, reverse: bool) -> jax.Array:
    """A cumulative reduction along an axis, from its start, or from its end if `reverse`."""
    if not x.size:
        return x
    step = -1 if reverse else 1
    results = itertools.accumulate([*jnp.moveaxis(x, axis, 0)][::step], combine)
    return jnp.stack([*results][::step], axis)


def place_of_best(is_better: Combine, x: jax.Array, *, axes: tuple[int], index_dtype: np.dtype) -> jax.Array:
    """The place of the first best number along an axis, or of the first NaN."""
    best, *others = jnp.moveaxis(x, axes[0], 0)
    place = jnp.zeros(best.shape, index_dtype)
    for k, number in enumerate(others, 1):
        better = is_better(number, best)
        if jnp.issubdtype(x.dtype, jnp.floating):
            better = better | ((number != number) & (best == best))
        place = lax.select(better, jnp.full_like(place, k), place)
        best = lax.select(better, number, best)
    return place


def integer_pow(x: jax.Array, *, y: int) -> jax.Array:
    """An integer power, by repeated squaring, as in XLA."""
    power, square, remaining = jnp.ones_like(x), x, abs(y)
    while remaining:
        power = power * square if remaining & 1 else power
        remaining >>= 1
        square = square * square if remaining else square
    return power if y >= 0 else lax.div(jnp.ones_like(x), power)


def one_minus_square(x: jax.Array, **_: Any) -> jax.Array:
    """The derivative of `tanh`, which JAX has from 0.11 on."""
    return 1 - x * x


def sort(*arrays: jax.Array, dimension: int, num_keys: int, **_: Any) -> list[jax.Array]:
    """A stable sort. The two zeros are equal, and NaN comes last."""
    count = arrays[0].shape[dimension]
    if count > MOST_SORTED:
        raise UnknownPrimitive(f"sort: a thread sorts at most {MOST_SORTED} numbers, and here {count}")
    if not count:
        return [*arrays]
    rows = [jnp.moveaxis(a, dimension, 0) for a in arrays]
    keys = [in_order(row) for row in rows[:num_keys]]
    out = exchanged_in_order(rows, keys) if count <= MOST_EXCHANGED else placed_by_ranks(rows, keys)
    return [jnp.moveaxis(row, 0, dimension) for row in out]


def exchanged_in_order(rows: list[jax.Array], keys: list[jax.Array]) -> list[jax.Array]:
    """Rows in the order of keys, by a network of exchanges of numbers in registers."""
    # A network moves equal keys past each other, so their places decide last.
    count, shape = keys[0].shape[0], keys[0].shape[1:]
    places = [jnp.full(shape, k, np.int32) for k in range(count)]
    lists = [*([*key] for key in keys), places, *([*row] for row in rows)]
    for i, k in network(count):
        is_after = follows([(numbers[i], numbers[k]) for numbers in lists[: len(keys) + 1]])
        for numbers in lists:
            numbers[i], numbers[k] = exchanged(is_after, numbers[i], numbers[k])
    return [jnp.stack(numbers) for numbers in lists[len(keys) + 1 :]]


def network(count: int) -> Iterator[tuple[int, int]]:
    """The places to compare and exchange, in order, that sort any `count` numbers.

    Source: K. E. Batcher, "Sorting Networks and Their Applications", 1968; D. E. Knuth, "The Art of Computer
        Programming", volume 3, Algorithm 5.2.2M.
    """
    first = step = (1 << (count - 1).bit_length()) // 2
    while step:
        distance, width, side = step, first, 0
        while distance:
            yield from ((i, i + distance) for i in range(count - distance) if i & step == side)
            distance, width, side = width - step, width // 2, step
        step //= 2


def placed_by_ranks(rows: list[jax.Array], keys: list[jax.Array]) -> list[jax.Array]:
    """Rows in the order of keys: each number goes to its rank, the number of keys that precede its own.

    A loop finds the ranks, because a compiler takes minutes for a long network.
    """
    places = jnp.arange(keys[0].shape[0], dtype=np.int32)
    column = places.reshape(-1, *[1] * (keys[0].ndim - 1))

    def rank(_: None, given: Sequence[jax.Array]) -> tuple[None, jax.Array]:
        place, *own = given
        pairs = [*zip(own, keys), (place, column)]
        return None, jnp.sum(follows(pairs).astype(np.int32), 0, dtype=np.int32)

    ranks = lax.scan(rank, None, (places, *keys))[1]
    return [jnp.put_along_axis(row, ranks, row, 0, inplace=False, mode="promise_in_bounds") for row in rows]


def in_order(x: jax.Array) -> jax.Array:
    """Integers in the order of the numbers of `x`."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    x = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    dtype = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits, last = lax.bitcast_convert_type(x, dtype), np.iinfo(dtype).max
    # Below zero, larger bits are smaller numbers.
    bits = jnp.where(x == 0, 0, bits ^ ((bits >> (8 * dtype.itemsize - 1)) & dtype.type(last)))
    return jnp.where(x != x, dtype.type(last), bits)


def follows(keys: Sequence[tuple[jax.Array, jax.Array]]) -> jax.Array:
    """Whether the first of two elements belongs after the second. Earlier keys decide first.

    Args:
        keys: for each key, its value in both elements.
    """
    (first, second), *others = keys
    return (second < first) | ((second == first) & follows(others)) if others else second < first


def dot_general(
    a: jax.Array, b: jax.Array, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any
) -> jax.Array:
    """A product of arrays, as sums of products in order; those of 16 bits are added up in float32."""
    sides, shape, result = list[jax.Array](), list[int](), np.dtype(preferred_element_type or a.dtype)
    dtype = np.dtype(np.float32) if result.name in STORED_ONLY else result
    for x, along, ahead in zip((a, b), *dimension_numbers):
        free = [axis for axis in range(x.ndim) if axis not in (*along, *ahead)]
        of_batch, of_free, of_sum = ([x.shape[axis] for axis in axes] for axes in (ahead, free, along))
        rows = jnp.transpose(x, (*ahead, *free, *along))
        sides.append(rows.reshape(*of_batch, math.prod(of_free), math.prod(of_sum)).astype(dtype))
        shape = [*(shape or of_batch), *of_free]
    first, second = sides[0][..., :, None, :], sides[1][..., None, :, :]
    count = first.size * second.shape[-2]
    if count > MOST_PRODUCTS:
        raise UnknownPrimitive(f"dot_general: a thread multiplies at most {MOST_PRODUCTS} numbers, and here {count}")
    terms = [first[..., k] * second[..., k] for k in range(first.shape[-1])]
    total = functools.reduce(lax.add, terms).reshape(shape) if terms else jnp.zeros(shape, dtype)
    return total.astype(result)


def dynamic_slice(x: jax.Array, *starts: jax.Array, slice_sizes: Sequence[int]) -> jax.Array:
    """A gather of one part, whose index is clamped."""
    if not starts:
        return x
    axes = tuple(range(x.ndim))
    numbers = lax.GatherDimensionNumbers(offset_dims=axes, collapsed_slice_dims=(), start_index_map=axes)
    return lax.gather(x, jnp.stack(starts), numbers, slice_sizes, mode="clip")


def dynamic_update_slice(x: jax.Array, update: jax.Array, *starts: jax.Array) -> jax.Array:
    """A scatter of one part, whose index is clamped."""
    if not starts:
        return update
    axes = tuple(range(x.ndim))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=axes, inserted_window_dims=(), scatter_dims_to_operand_dims=axes
    )
    return lax.scatter(x, jnp.stack(starts), update, numbers, mode="clip")


# The random numbers of JAX: Threefry with 20 rounds. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
# as easy as 1, 2, 3", 2011.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry2x32(a: jax.Array, b: jax.Array, x: jax.Array, y: jax.Array) -> list[jax.Array]:
    """Two numbers, enciphered by the key (a, b); all are uint32."""
    keys = (a, b, a ^ b ^ jnp.uint32(PARITY))
    x, y = x + a, y + b
    for k in range(5):
        for count in ROTATIONS[k % 2]:
            x = x + y
            y = x ^ ((y << jnp.uint32(count)) | (y >> jnp.uint32(32 - count)))
        x, y = x + keys[(k + 1) % 3], y + keys[(k + 2) % 3] + jnp.uint32(k + 1)
    return [x, y]


def iota_2x32_shape(*, shape: Sequence[int]) -> list[jax.Array]:
    """The flat indices of an array, as numbers of 64 bits: their higher and their lower halves."""
    low = lax.iota(np.uint32, math.prod(shape)).reshape(shape)
    return [jnp.zeros(shape, np.uint32), low]


def empty(*, dtype: np.dtype, **_: Any) -> jax.Array:
    """A number that is written before it is read."""
    return jnp.zeros((), dtype)


COMBINED: dict[str, Combine] = {"sum": lax.add, "prod": lax.mul, "max": lax.max, "min": lax.min}
BITWISE: dict[str, Combine] = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}
# The meanings by the names of primitives: functions of the operands, with the parameters as keywords.
MEANINGS: dict[str, Callable[..., Any]] = {
    **{f"reduce_{name}": functools.partial(reduced, combine) for name, combine in (COMBINED | BITWISE).items()},
    **{f"cum{name}": functools.partial(accumulated, combine) for name, combine in COMBINED.items()},
    "argmax": functools.partial(place_of_best, lax.gt),
    "argmin": functools.partial(place_of_best, lax.lt),
    "empty2": empty,
    **MATRICES,
    **{f.__name__: f for f in (threefry2x32, iota_2x32_shape)},
    **{f.__name__: f for f in (integer_pow, one_minus_square, sort, dot_general, dynamic_slice, dynamic_update_slice)},
}
