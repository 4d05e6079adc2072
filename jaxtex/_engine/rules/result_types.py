"""The shapes and dtypes of what the primitives return, from those of their arguments, without a trace of the walk.

`S` is the shape of the samples, that of the coordinates. Batch axes come first: an argument has their size or 1.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..describe.spec import TEXELS, Grid, ReadSpec, SeveralReads, Wrt
from ..describe.stacks import Stacks, numbers
from ..walk.texel_walk import texels_shape


def of_read(texels: Any, *args: Any, spec: ReadSpec, batch: int) -> jax.ShapeDtypeStruct:
    """S + (C,)."""
    _, operands = spec.color_and_operands(args)
    samples = list(samples_shape(operands, spec, batch))
    for axis in spec.summed_axes:
        samples[axis] = 1
    return jax.ShapeDtypeStruct((*batch_axes((texels, *args), batch), *samples, texels.shape[-1]), spec.dtype)


def of_splat(*args: Any, spec: ReadSpec, batch: int) -> jax.ShapeDtypeStruct:
    """The texels."""
    shape = texels_shape(spec.axes, args[0].shape[-1])
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *shape), spec.dtype)


def of_pushforward(*args: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> jax.ShapeDtypeStruct:
    """The tangent of the read: of texels and operands after one tangent for each of `wrt`."""
    result = of_read(*args[len(wrt) :], spec=spec, batch=batch)
    return jax.ShapeDtypeStruct((*batch_axes(args, batch), *result.shape[batch:]), spec.dtype)


def of_pullback(*args: Any, spec: ReadSpec, wrt: Wrt, batch: int) -> list[jax.ShapeDtypeStruct]:
    """Cotangents of texels and operands, which follow the cotangent of the read."""
    axes, primals = batch_axes(args, batch), dict(enumerate(args[1:], TEXELS))
    del spec
    return [jax.ShapeDtypeStruct((*axes, *primals[k].shape[batch:]), primals[k].dtype) for k in wrt]


def batch_axes(args: Sequence[Any], batch: int) -> tuple[int, ...]:
    return tuple(max(a.shape[k] for a in args) for k in range(batch))


def samples_shape(operands: Sequence[Any], spec: ReadSpec, batch: int) -> tuple[int, ...]:
    """S, from the operands of one texture of a batch."""
    shapes = tuple(tuple(a.shape[batch:]) for a in operands)
    if spec.takes_coords:
        return np.broadcast_shapes(*shapes)
    given, dtypes = spec.given, tuple(a.dtype for a in operands)
    of_grid = shape_of_grid(spec.grid, spec.stacks[given:], shapes[given:], dtypes[given:])
    return np.broadcast_shapes(*shapes[:given], of_grid)


@functools.lru_cache(maxsize=1024)
def shape_of_grid(
    grid: Grid | SeveralReads, stacks: Stacks, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[np.dtype, ...]
) -> tuple[int, ...]:
    """The shape to which the coordinates broadcast that a grid makes of operands."""

    def coords(*operands: jax.Array) -> Any:
        given = numbers(operands, stacks)
        return grid.read(jnp.int32(1), *given) if isinstance(grid, SeveralReads) else grid(*given)

    found = jax.eval_shape(coords, *map(jax.ShapeDtypeStruct, shapes, dtypes))
    return np.broadcast_shapes(*(a.shape for a in jax.tree.leaves(found)))
