"""Reads with their derivatives along the coordinates."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._engine.arithmetic import FLOAT, read_derivatives
from .._engine.describe.axis import Role, with_orders
from .._engine.describe.operands import Arrays
from .._engine.describe.plan import Layout, ReadArguments, combination
from .._engine.describe.spec import Combination
from .._jax.calls import typed_jit
from .._tables.storage_formats import is_complex, rounded_dtype
from ..sampler import Sampler
from ..texture import Texture
from .calls import blends, numbers_of, plan_of_call
from .complex_parts import by_parts


class Derivatives(NamedTuple):
    """A read, and its derivatives with respect to the coordinates; see `jaxtex.sample_with_derivatives`.

    Attributes:
        value: S + (C,), the read.
        gradient: a tuple with the derivative along each coordinate, x first: S + (C,) each.
        hessian: a tuple of tuples: ``hessian[i][j]``, S + (C,), is the second derivative along coordinates i and j, and
            the same array as ``hessian[j][i]``. `None` with ``order=1``.
    """

    value: jax.Array
    gradient: tuple[jax.Array, ...]
    hessian: tuple[tuple[jax.Array, ...], ...] | None


def sample_with_derivatives(
    texture: Texture,
    arguments: ReadArguments,
    *,
    sampler: Sampler,
    dtype: np.dtype,
    order: int,
    value: jax.Array | None = None,
) -> Derivatives:
    """The read of `sample` in float arithmetic, or a given `value`, with its derivatives along the coordinates."""
    axes, orders = range(len(arguments.coords)), range(0 if value is None else 1, order + 1)
    wanted = tuple(along for n in orders for along in itertools.combinations_with_replacement(axes, n))
    # The compiled function returns each array once: a program copies a result that it returns twice.
    results = derivatives_along(texture, arguments, wanted=wanted, sampler=sampler, dtype=dtype)
    of = dict(zip(wanted, results))
    hessian = tuple(tuple(of[min(i, j), max(i, j)] for j in axes) for i in axes) if order > 1 else None
    return Derivatives(of[()] if value is None else value, tuple(of[i,] for i in axes), hessian)


@typed_jit("wanted", "sampler", "dtype")
def derivatives_along(
    texture: Texture,
    arguments: ReadArguments,
    *,
    wanted: tuple[tuple[int, ...], ...],
    sampler: Sampler,
    dtype: np.dtype,
) -> list[jax.Array]:
    """The derivatives along the coordinates in each entry of `wanted`, S + (C,) each."""
    if is_complex(texture.dtype):
        return by_parts(derivatives_along, texture, arguments, wanted=wanted, sampler=sampler, dtype=dtype)
    arguments = arguments.as_operands()
    sums, _ = numbers_of(texture, sampler.decoding, arguments.coords, blends=blends(texture, sampler))
    shape = (*arguments.shape, texture.num_channels)
    one_look = not texture.kind.is_cube and combination(sampler) is not Combination.LIMITED
    read = functools.partial(
        in_one_look if one_look else by_tangents, wanted=wanted, sampler=sampler, dtype=rounded_dtype(dtype, sums)
    )
    # Reverse mode computes the footprint again, and keeps its sides alone.
    results = (jax.checkpoint(read) if arguments.ddx is not None else read)(texture, arguments)
    return [jnp.broadcast_to(out, shape).astype(dtype) for out in results]


def in_one_look(
    texture: Texture, arguments: ReadArguments, *, wanted: Sequence[tuple[int, ...]], sampler: Sampler, dtype: np.dtype
) -> list[jax.Array]:
    """The derivatives along the coordinates in each entry of `wanted`, in one walk over the taps."""
    read = plan_of_call(FLOAT, Layout.of(texture), arguments, sampler, dtype)
    # Each derivative as an order along every axis; those that vanish are not read.
    axes = read.spec.axes
    space = [k for k, axis in enumerate(axes) if axis.role is Role.SPACE][::-1]  # x first
    orders = [tuple(sum(space[i] == k for i in along) for k in range(len(axes))) for along in wanted]
    present = [of_axes for of_axes in orders if not any(axis.vanishes for axis in with_orders(axes, of_axes))]
    read = read.replace(derivatives=tuple(present))
    # Several share one walk; the others are zero.
    if len(present) > 1:
        results = read_derivatives(texture, read)
    else:
        results = [FLOAT.read(texture, read._replace(spec=one)) for one in read.spec.each_derivative()]
    known = dict(zip(present, results))
    return [known.get(of_axes, jnp.zeros((), dtype)) for of_axes in orders]


def by_tangents(
    texture: Texture, arguments: ReadArguments, *, wanted: Sequence[tuple[int, ...]], sampler: Sampler, dtype: np.dtype
) -> list[jax.Array]:
    """`in_one_look` for every read: tangents along the coordinates, one read or more for each."""

    # A derivative along a coordinate is the tangent for a step of one.
    def along(coord: int, function: Callable[[Arrays], jax.Array]) -> Callable[[Arrays], jax.Array]:
        def derivative(coords: Arrays) -> jax.Array:
            of_one = lambda c: function((*coords[:coord], c, *coords[coord + 1 :]))
            return jax.jvp(of_one, (coords[coord],), (jnp.ones_like(coords[coord]),))[1]

        return derivative

    def value(coords: Arrays) -> jax.Array:
        moved = plan_of_call(FLOAT, Layout.of(texture), arguments._replace(coords=coords), sampler, dtype)
        return FLOAT.read(texture, moved)

    return [functools.reduce(lambda f, k: along(k, f), coords, value)(arguments.coords) for coords in wanted]
