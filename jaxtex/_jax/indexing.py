"""Gather and scatter by indices that are known to be in bounds.

JAX's own indexing counts negative indices from the end and silently clamps or drops others; these functions do not.
Under explicit mesh axes a result has the sharding of its indices.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from .shapes import broadcast_shapes
from .versions import varying_axes


def gather(stored: jax.Array, indices: tuple[jax.Array, ...]) -> jax.Array:
    """The texels at `indices`, all within bounds."""
    indices = tuple(jnp.broadcast_arrays(*indices))
    sharding = explicit_sharding(indices[0], lambda spec: (*spec, None))
    return stored.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=False, out_sharding=sharding)


def entry(table: jax.Array | np.ndarray, *indices: jax.Array) -> jax.Array:
    """The entry of a table at `indices`, int32 and within bounds."""
    return gather(jnp.asarray(table[..., None]), indices)[..., 0]


def scatter(
    stored: jax.Array,
    indices: tuple[jax.Array, ...],
    inside: jax.Array | None,
    value: jax.Array,
    rule: str,
    *,
    unique: bool = False,
) -> jax.Array:
    """`stored` with `value` at `indices`, where it is inside; `rule` is add, min, max or set.

    `unique` promises that no two samples that are inside share an index.
    """
    mode = "promise_in_bounds"
    if inside is not None:  # an index past the end is dropped, without touching memory
        indices, mode = (jnp.where(inside, indices[0], stored.shape[0]), *indices[1:]), "drop"
    shape = broadcast_shapes(value.shape[:-1], *(i.shape for i in indices))
    indices = tuple(jnp.broadcast_to(i, shape) for i in indices)
    value = jnp.broadcast_to(value, (*shape, value.shape[-1]))
    alone = stored.shape[-1] == 1
    if alone:  # an axis of one channel makes XLA copy the texels in every turn of a loop on a CPU
        stored, value = stored[..., 0], value[..., 0]
    sharding = explicit_sharding(indices[0], lambda _: [None] * stored.ndim)
    update = getattr(stored.at[indices], rule)
    result = update(value, mode=mode, wrap_negative_indices=False, unique_indices=unique, out_sharding=sharding)
    return result[..., None] if alone else result


def scatter_windows(stored: jax.Array, start: jax.Array, value: jax.Array) -> jax.Array:
    """`stored`, (N, C), with `value`, S + (n, C), added to the n rows from `start`, S, on; all within bounds."""
    windows = jax.lax.ScatterDimensionNumbers(
        update_window_dims=(value.ndim - 2, value.ndim - 1), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )
    start = jnp.broadcast_to(start, value.shape[:-2])
    return jax.lax.scatter_add(stored, start[..., None], value, windows, mode="promise_in_bounds")


def explicit_sharding(
    x: jax.Array | ShapedArray, spec: Callable[[PartitionSpec], Sequence[Any]] = tuple
) -> NamedSharding | None:
    """The sharding of an array or a type under explicit mesh axes, with its spec changed by `spec`; else None."""
    sharding = (x if isinstance(x, ShapedArray) else jax.typeof(x)).sharding
    if sharding.mesh.empty or AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(*spec(sharding.spec)))


def names_of(sharding: NamedSharding | None) -> list[tuple[str, ...]]:
    """The mesh axes along which each axis of an array is sharded. Axes at the end may be left out."""
    entries = () if sharding is None else sharding.spec
    return [() if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in entries]


def parts_of(sharding: NamedSharding, names: Sequence[str]) -> int:
    """The number of parts of an axis that is sharded along these axes of the mesh."""
    return math.prod(sharding.mesh.shape[name] for name in names)


def is_sharded(x: jax.Array) -> bool:
    """Whether an array carries an explicit sharding that divides it over devices."""
    sharding = explicit_sharding(x)
    return sharding is not None and any(sharding.spec)


def cut_like(x: jax.Array, shape: Sequence[int]) -> NamedSharding | None:
    """The sharding of an array like that of `x`, except for its last axis; `None` if parts would not be equal."""
    sharding = explicit_sharding(x, lambda spec: (*spec, *[None] * (x.ndim - len(spec)))[:-1])
    if sharding is None or not any(sharding.spec):
        return None
    try:
        sharding.shard_shape(tuple(shape))
    except ValueError:
        return None
    return sharding


def placed_like(x: jax.Array, like: jax.Array | ShapedArray) -> jax.Array:
    """`x` with the sharding of an array of its rank, or of a type."""
    sharding = explicit_sharding(like)
    return x if sharding is None or sharding == explicit_sharding(x) else jax.reshard(x, sharding)


def everywhere(x: jax.Array) -> jax.Array:
    """The array, replicated on each device if it carries an explicit sharding."""
    sharding = explicit_sharding(x)
    return x if sharding is None or not any(sharding.spec) else jax.reshard(x, sharding.update(spec=PartitionSpec()))


def uncut(x: jax.Array, axis: int) -> jax.Array:
    """The array with an axis gathered on each device, if an explicit sharding divides it."""
    sharding = explicit_sharding(x, lambda spec: [None if k == axis else names for k, names in enumerate(spec)])
    return x if sharding is None or sharding == explicit_sharding(x) else jax.reshard(x, sharding)


def reshaped(x: jax.Array, shape: Sequence[int]) -> jax.Array:
    """``x.reshape(shape)``, for any change of axes that are not sharded.

    Under explicit mesh axes JAX follows only a change of one axis, even where `jax.vmap` adds the sharded axis.
    """
    kept = sum(1 for _ in itertools.takewhile(lambda sizes: sizes[0] == sizes[1], zip(x.shape, shape)))
    sharding = explicit_sharding(x, lambda spec: (*spec[:kept], *[None] * (len(shape) - kept)))
    changes_sharded = sharding is not None and any(names_of(explicit_sharding(x))[kept:])
    return jnp.reshape(x, shape, out_sharding=None if changes_sharded else sharding)


def as_sum_of(x: jax.Array, *arrays: jax.Array) -> jax.Array:
    """`x` with the sharding and the varying axes of the sum of `arrays`, as a loop over them keeps it.

    Its shape is that of the sum; under explicit mesh axes it is broadcast to it.
    """
    if explicit_sharding(x) is not None:
        (total,) = jax.make_jaxpr(lambda: functools.reduce(jnp.add, arrays))().out_avals
        x = jax.reshard(jnp.broadcast_to(x, total.shape), total.sharding)
    return as_varying(x, *arrays)


def with_batch_alike(*arrays: jax.Array) -> list[jax.Array]:
    """Arrays whose first axis is a batch, all sharded along it as the first that is: `jax.vmap` takes no others.

    Another axis that is sharded along the same axes of the mesh is gathered.
    """
    like = next((s for s in map(explicit_sharding, arrays) if s is not None and any(names_of(s)[:1])), None)
    if like is None:
        return list(arrays)
    batch, *_ = names_of(like)

    def placed(a: jax.Array) -> jax.Array:
        others = names_of(explicit_sharding(a))[1:]
        kept = (names if names and not set(names) & set(batch) else None for names in others)
        sharding = NamedSharding(like.mesh, PartitionSpec(batch, *kept, *[None] * (a.ndim - 1 - len(others))))
        return a if sharding == explicit_sharding(a) else jax.reshard(a, sharding)

    return [*map(placed, arrays)]


def over_examples(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` over the first axis of arrays, of which some may be sharded along it, and others not."""
    return lambda *arrays: jax.vmap(function)(*with_batch_alike(*arrays))


def vmapped(function: Callable[..., Any], arrays: list[jax.Array]) -> Any:
    """`function` over the first axis of `arrays`, which stays an axis that the partitioner can divide."""
    return jax.vmap(function)(with_batch_alike(*arrays))


def over_batch(function: Callable[..., Any], batch: int, each: Callable[..., Any] = vmapped) -> Callable[..., Any]:
    """`function` over `batch` leading axes of arrays, or of trees of arrays, along which each has the batch size or 1.

    Args:
        each: ``each(f, arrays)`` maps `f` over the first axis of a list of arrays.
    """
    if batch == 0:
        return function

    def run(*args: Any) -> Any:
        arrays, tree = cast(tuple[list[jax.Array], Any], jax.tree.flatten(args))
        (size,) = broadcast_shapes(*(a.shape[:1] for a in arrays))
        batched = [a.shape[0] == size for a in arrays]

        def once(mapped: list[jax.Array]) -> Any:
            rest = iter(mapped)
            one = [next(rest) if b else a.squeeze(0) for a, b in zip(arrays, batched)]
            return over_batch(function, batch - 1, each)(*jax.tree.unflatten(tree, one))

        return each(once, [a for a, b in zip(arrays, batched) if b])

    return run


def as_varying(x: jax.Array, *like: jax.Array) -> jax.Array:
    """`x`, cast to vary along the mesh axes along which any of `like` does."""
    missing = tuple(sorted(frozenset[str]().union(*map(varying_axes, like)) - varying_axes(x)))
    return cast(jax.Array, jax.lax.pcast(x, missing, to="varying")) if missing else x
