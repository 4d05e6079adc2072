"""Functions of one sample, mapped over many samples by one kernel: `fused_vmap` and `fused_map`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ._checks.calls import public
from ._checks.texels import as_sizes
from ._checks.words import listing, shown
from ._engine.describe.program import Traced, trace
from ._engine.rules import programs
from ._jax.shapes import is_symbolic

__all__ = ["fused_map", "fused_vmap"]
__dir__ = listing(__all__)


@public
def fused_vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None
) -> Callable[..., Any]:
    """`jax.vmap`, whose result is computed by one kernel on a GPU: `fun` is what a thread computes for one sample.

    Results, shapes, dtypes, derivatives and errors are those of ``jax.vmap(fun, in_axes, out_axes,
    axis_size=axis_size)``. On CPUs and TPUs the program is that of `jax.vmap`, too. In a kernel, reads of textures and
    indexed arrays are loads, a `jax.lax.cond` is a branch, and a `jax.lax.while_loop` ends for each sample alone;
    nothing between them is stored in memory. Nested calls are one kernel with a grid of several axes. If an operation
    of `fun` has no translation to CUDA, a warning names it and its line, and the result is computed as by `jax.vmap`.

    Args:
        fun: a function of one sample: of scalars, small arrays, and whole arrays and textures, which it reads at a few
            places. It has no side effects and no collectives. Operations on whole arrays in it, such as ``2 * image``,
            are carried out once, before the kernel.
        in_axes, out_axes, axis_size: as in `jax.vmap`. Mapped axes of results lie where `out_axes` says, without a
            copy: channels come first with ``out_axes=1``.

    Returns:
        A function of the mapped and whole arguments of `fun`.

    Gradients:
        Of every order, in forward and reverse mode, in all floating arguments and in what `fun` closes over. Reverse
        mode keeps the arguments alone and computes the samples again. Samples add up the cotangents of what they
        share, in any order on a GPU; those of reads by ``Sampler(deterministic=True)`` have the same bits in every
        run. A `jax.lax.scan` keeps at most 256 numbers of a sample; `jax.checkpoint` around its body makes them few.

    Raises:
        TypeError: if `fun` has side effects, or exchanges numbers between devices.
        ValueError: as `jax.vmap` does.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(12.0).reshape(3, 4, 1)
        >>> def pixel(x, y, image):
        ...     value = jt.sample(jt.texture2d(image), (x, y))
        ...     return value[0] / 2
        >>> x, y = jnp.array([0.25, 0.5]), jnp.array([0.5, 0.75])
        >>> jt.fused_vmap(pixel, (0, 0, None))(x, y, image)
        Array([2.25, 4.25], dtype=float32)
    """

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        one = functools.partial(one_sample, fun, out_axes, 1)
        return jax.vmap(one, in_axes, out_axes, axis_size=axis_size)(*args, **kwargs)

    return mapped


@public
def fused_map(
    fun: Callable[..., Any], shape: Sequence[int], *, in_axes: Any = None, out_axes: Any = 0
) -> Callable[..., Any]:
    """A function that calls ``fun(*index, *args)`` for each index of a grid, as one kernel on a GPU; see `fused_vmap`.

    Args:
        fun: a function of one sample: of its index, one int32 for each axis of the grid, slowest axis first, such as
            ``(y, x)``, and of the arguments.
        shape: the sizes of the grid; from no axis to any number.
        in_axes: for each argument, or for parts of it, `None` if it is whole, and 0 if it has the axes of the grid in
            front, where size 1 broadcasts.
        out_axes: the position of the axes of the grid in each result; 1 puts the first axis of a sample in front of
            them, such as channels.

    Returns:
        A function of the arguments of `fun` behind its index. Its results have the axes `shape`.

    Gradients:
        As for `fused_vmap`.

    Raises:
        ValueError: if `shape` or `in_axes` is wrong, or an argument has other axes.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> image = jnp.arange(12.0).reshape(3, 4)
        >>> def halved(y, x, image):
        ...     return (image[y, 2 * x] + image[y, 2 * x + 1]) / 2
        >>> jt.fused_map(halved, (3, 2))(image)
        Array([[ 0.5,  2.5],
               [ 4.5,  6.5],
               [ 8.5, 10.5]], dtype=float32)
    """
    sizes = as_sizes("fused_map", "shape", shape, ("height", "width"), may_be_symbolic=True)
    if any(n < 0 for n in sizes if not is_symbolic([n])):
        raise ValueError(f"fused_map: shape is {sizes}, expected sizes from 0 on.")
    if wrong := [ax for ax in jax.tree.leaves(in_axes) if not isinstance(ax, int) or ax != 0]:
        raise ValueError(
            f"fused_map: in_axes has {shown(wrong[0])}, expected 0 for what has the axes of the grid in front, and "
            "None for what is whole; move the axes to the front with jnp.moveaxis."
        )

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        leaves: list[Any] = jax.tree.leaves(args)
        tree = cast(Any, jax.tree.structure(args))
        is_mapped = flat_axes(in_axes, args)
        rank = len(sizes)
        for leaf in (leaf for leaf, m in zip(leaves, is_mapped, strict=True) if m):
            front = np.shape(leaf)[:rank]
            if len(front) < rank or any(n not in (1, size) for n, size in zip(front, sizes)):
                raise ValueError(
                    f"fused_map: an argument with in_axes=0 has shape {np.shape(leaf)}, expected the axes of the grid, "
                    f"{sizes}, in front, each of its size or 1; pass in_axes=None for what is whole."
                )

        def over(axis: int, index: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
            if axis == rank:
                return one_sample(fun, out_axes, rank, *index, *jax.tree.unflatten(tree, leaves))
            axes = [0 if m and np.shape(a)[0] != 1 else None for a, m in zip(leaves, is_mapped)]
            given = [a if ax == 0 or not m else a.squeeze(0) for a, m, ax in zip(leaves, is_mapped, axes)]

            def run(i: Any, leaves: Sequence[Any]) -> Any:
                return over(axis + 1, (*index, i), leaves)

            size = sizes[axis]
            numbers = jnp.arange(size, dtype=np.int32) if is_symbolic([size]) else np.arange(size, dtype=np.int32)
            return jax.vmap(run, (0, axes), out_axes)(numbers, given)

        return over(0, (), leaves)

    return mapped


def flat_axes(in_axes: Any, args: tuple[Any, ...]) -> list[bool]:
    """Whether each array of the arguments has the axes of the grid in front."""
    if in_axes is None or isinstance(in_axes, int):
        in_axes = (in_axes,) * len(args)
    return [ax is not None for ax in spread(in_axes, args)]


def spread(axes: Any, whole: Any) -> list[Any]:
    """The axes, a tree that stands for the front of the tree `whole`, for each of its leaves."""

    def of_part(ax: Any, part: Any) -> list[Any]:
        return [ax] * len(jax.tree.leaves(part))

    return jax.tree.leaves(jax.tree.map(of_part, axes, whole, is_leaf=is_none), is_leaf=is_none)


def is_none(x: Any) -> bool:
    return x is None


def one_sample(fun: Callable[..., Any], out_axes: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """The results of ``fun(*args, **kwargs)``, as one equation that is to be mapped `count` times."""
    leaves: list[Any] = jax.tree.leaves((args, kwargs))
    tree = cast(Any, jax.tree.structure((args, kwargs)))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

    def of_arrays(*arrays: jax.Array) -> Any:
        given = dict(zip(places, arrays))
        args, kwargs = jax.tree.unflatten(tree, [given.get(k, leaf) for k, leaf in enumerate(leaves)])
        return fun(*args, **kwargs)

    traced = trace(of_arrays, [leaves[k] for k in places])
    if traced.program is None:
        return jax.tree.unflatten(traced.tree, traced.results)
    positions = positions_of(out_axes, traced, count)
    out = programs.samples(traced.program, traced.operands, positions)
    results = [out[r] if isinstance(r, int) else r for r in traced.results]
    return jax.tree.unflatten(traced.tree, results)


def positions_of(out_axes: Any, traced: Traced, count: int) -> tuple[tuple[int, ...], ...]:
    """For each result of the program, where its mapped axes will be."""
    assert traced.program is not None
    whole = jax.tree.unflatten(traced.tree, [*range(len(traced.results))])
    try:
        flat = spread(out_axes, whole)
    except ValueError:  # `jax.vmap` says what is wrong
        return ((),) * len(traced.program.results)
    found: dict[int, tuple[int, ...]] = {}
    for place, axis in zip(traced.results, flat):
        if isinstance(place, int) and isinstance(axis, int):
            rank = traced.program.results[place].ndim + 1
            found[place] = tuple(axis % (rank + k) for k in range(count)) if -rank <= axis < rank else ()
    return tuple(found.get(k, ()) for k in range(len(traced.program.results)))
