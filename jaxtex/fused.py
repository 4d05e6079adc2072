"""Functions of one sample, mapped over many samples by one kernel: `fused_vmap` and `fused_map`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ._engine.programs import rules
from ._engine.programs.program import trace


def fused_vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None
) -> Callable[..., Any]:
    """`jax.vmap` whose result is one kernel on a GPU."""

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        one = functools.partial(one_sample, fun, out_axes, 1)
        return jax.vmap(one, in_axes, out_axes, axis_size=axis_size)(*args, **kwargs)

    return mapped


def fused_map(
    fun: Callable[..., Any], shape: Sequence[int], *, in_axes: Any = None, out_axes: Any = 0
) -> Callable[..., Any]:
    """``fun(*index, *args)`` for each index of an array of this shape, as one kernel on a GPU."""
    sizes = tuple(shape)

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        is_mapped = flat_axes(in_axes, args)
        rank = len(sizes)

        def over(axis: int, index: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
            if axis == rank:
                return one_sample(fun, out_axes, rank, *index, *jax.tree.unflatten(tree, leaves))
            axes = [0 if m and np.shape(a)[0] != 1 else None for a, m in zip(leaves, is_mapped)]
            given = [a if ax == 0 or not m else a.squeeze(0) for a, m, ax in zip(leaves, is_mapped, axes)]
            run = lambda i, leaves: over(axis + 1, (*index, i), leaves)
            return jax.vmap(run, (0, axes), out_axes)(np.arange(sizes[axis], dtype=np.int32), given)

        return over(0, (), leaves)

    return mapped


def flat_axes(in_axes: Any, args: tuple[Any, ...]) -> list[bool]:
    """Whether each array of the arguments has the axes of the grid in front."""
    is_none = lambda x: x is None
    if in_axes is None or isinstance(in_axes, int):
        in_axes = (in_axes,) * len(args)
    spread = jax.tree.map(lambda ax, part: [ax is not None] * len(jax.tree.leaves(part)), in_axes, args, is_leaf=is_none)
    return jax.tree.leaves(spread)


def one_sample(fun: Callable[..., Any], out_axes: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """The results of ``fun(*args, **kwargs)``, as one equation that is to be mapped `count` times."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
    # Keys are passed by their bits.
    keys = {k: jax.random.key_impl(leaves[k]) for k in places if is_key(leaves[k])}

    def of_arrays(*arrays: jax.Array) -> Any:
        given = dict(zip(places, arrays))
        given |= {k: jax.random.wrap_key_data(given[k], impl=impl) for k, impl in keys.items()}
        args, kwargs = jax.tree.unflatten(tree, [given.get(k, leaf) for k, leaf in enumerate(leaves)])
        return fun(*args, **kwargs)

    traced = trace(of_arrays, [jax.random.key_data(leaves[k]) if k in keys else leaves[k] for k in places])
    if traced.program is None:
        return jax.tree.unflatten(traced.tree, traced.results)
    positions = positions_of(out_axes, traced, count)
    out = rules.samples(traced.program, traced.operands, positions)
    results = [out[r] if isinstance(r, int) else r for r in traced.results]
    return jax.tree.unflatten(traced.tree, results)


def is_key(x: jax.Array) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def positions_of(out_axes: Any, traced: Any, count: int) -> tuple[tuple[int, ...], ...]:
    """For each result of the program, where its mapped axes will be."""
    assert traced.program is not None
    whole = jax.tree.unflatten(traced.tree, [*range(len(traced.results))])
    is_none = lambda x: x is None
    try:
        spread = jax.tree.map(lambda ax, part: [ax] * len(jax.tree.leaves(part)), out_axes, whole, is_leaf=is_none)
    except ValueError:  # `jax.vmap` says what is wrong
        return ((),) * len(traced.program.results)
    flat = jax.tree.leaves(spread, is_leaf=is_none)
    found: dict[int, tuple[int, ...]] = {}
    for place, axis in zip(traced.results, flat):
        if isinstance(place, int) and isinstance(axis, int):
            rank = traced.program.results[place].ndim + 1
            found[place] = tuple(axis % (rank + k) for k in range(count)) if -rank <= axis < rank else ()
    return tuple(found.get(k, ()) for k in range(len(traced.program.results)))
