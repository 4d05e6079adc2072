"""The meaning to which all forms are compared, against the read on one screen and the derivatives that JAX finds of it.

A call is traced a second time with `reference.read` in place of the primitives. Only what plans a read and computes its
coordinates is the same then; the walk and the rules of derivatives are not. NumPy evaluates both.
"""

import dataclasses
import functools
import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtex._engine import reference
from jaxtex._engine.describe.axis import Role
from jaxtex._engine.describe.spec import Combination
from jaxtex._engine.describe.storage import WHOLE
from jaxtex._engine.rules import folds, primitives
from jaxtex._engine.walk.texel_order import texels_shape
from jaxtex._tables.storage_formats import Decoding
from tests.compiled.contract import (
    CALLS,
    QUICK,
    TWICE,
    assert_cotangents,
    assert_values,
    in_numpy,
    meaning,
    traced,
    twice,
    with_cotangents,
)
from tests.support.jaxprs import equations

# The reference has axes that are addressed one by one, all of whose texels are stored, and it adds up weighted texels.
LEFT_OUT = {
    "axes that are addressed together": (
        "a cube",
        "a sphere",
        "a sphere of levels",
        "a footprint on a cube",
        "a window around a sphere",
    ),
    "grids whose vertices share rows": ("a hashed level", "levels of a grid"),
    "sizes that are operands": ("sizes that are operands", "a window with a border"),
    "limits, votes and drawn taps": (
        *("limited", "weighted layers", "votes for labels"),
        *("a drawn texel", "two drawn texels", "a texel drawn along a footprint"),
    ),
    "the fixed point of a texture unit": ("hardware", *(name for name in CALLS if "hardware" in name)),
}
COVERED = [name for name in CALLS if not any(name in names for names in LEFT_OUT.values())]
# Programs that are traced meanwhile are none of those that JAX keeps.
BY_REFERENCE = jax.make_user_context(False)


def bind(primitive, texels, *args, spec, batch, storage):
    """What a read is bound to: the weighted mean of several reads, or the sum of them, or one."""
    assert (primitive, batch, storage) == (primitives.read_p, 0, WHOLE)
    color, operands = spec.color_and_operands(args)
    color = 0 if color is None else color
    assert spec.combination is Combination.BLEND
    assert spec.expected is None
    one_read = functools.partial(read_at, texels, color, decoding=spec.decoding, dtype=spec.sums)
    if spec.several is None:
        values = one_read(spec.coords(operands), spec.axes)
    else:
        values = 0
        for number in range(1, spec.num_reads + 1):
            coords, weight = spec.read_at(jnp.int32(number), *spec.numbers(operands))
            values += jnp.where(weight[..., None] > 0, weight[..., None] * one_read(coords, spec.axes), 0)
    along = [axis - 1 for axis in spec.summed_axes]
    return (jnp.sum(values, along, keepdims=True) if along else values).astype(spec.dtype)


def read_at(texels, color, coords, axes, **options):
    """A read of texels that may be those of all levels, one after the other, times its factor."""
    if axes[0].role is Role.LEVEL:
        return sum(reads_of_levels(texels, color, coords, axes, **options))
    factors = [c[..., None] for c, axis in zip(coords, axes) if axis.role is Role.WEIGHT]
    stored = [(c, axis) for c, axis in zip(coords, axes) if axis.role is not Role.WEIGHT]
    coords = [c.astype(np.float32) if axis.integer else c for c, axis in stored]
    kernels, rules, normalized = zip(*((a.kernel, a.address, a.normalized) for _, a in stored))
    value = reference.read(texels, jnp.broadcast_arrays(*coords), kernels, rules, normalized, color, **options)
    return math.prod(factors, start=value)


def reads_of_levels(texels, color, coords, axes, **options):
    """The read of each level, times the weight of its tap on the axis of levels."""
    (levels, *axes), (lod, *coords), first = axes, coords, 0
    taps = reference.taps_of_axis(lod.astype(np.float32), levels.size, levels.kernel, levels.address, False)
    for level in range(levels.size):
        inner = [axis._replace(size=axis.level_size(level)) for axis in axes]
        shape = [axis.size for axis in inner if axis.role is not Role.WEIGHT]
        own = texels[first : first + math.prod(shape)].reshape(*shape, -1)
        share = sum(jnp.where(tap.index == level, tap.weight, 0) for tap in taps)
        yield share[..., None] * read_at(own, color, coords, inner, **options)
        first += math.prod(shape)


def splat(values, read):
    """The transpose of a read."""
    spec, operands = read
    adjoint = dataclasses.replace(spec, decoding=Decoding.ELEMENT, dtype=values.dtype)
    texels = jnp.zeros(texels_shape(spec.axes, values.shape[-1]), values.dtype)
    read_texels = functools.partial(bind, primitives.read_p, spec=adjoint, batch=0, storage=WHOLE)
    like, pull = jax.vjp(lambda texels: read_texels(texels, *operands), texels)
    return pull(jnp.broadcast_to(values, like.shape))[0].astype(spec.dtype)


@functools.cache
def by_reference(name, function=with_cotangents):
    """The results of a call by the reference, in NumPy."""
    by_meaning = lambda _, *args, **params: folds.meaning(*args, **params)
    in_folds = mock.patch.multiple(folds, bind=by_meaning, bind_read=functools.partial(bind, storage=WHOLE))
    with BY_REFERENCE(True), mock.patch.multiple(primitives, bind=bind, splat=splat), in_folds:
        closed, *more = traced.__wrapped__(name, function)
    names = {equation.primitive.name for equation in equations(closed.jaxpr)}
    assert not {name for name in names if name.startswith("texture")}, "it reads in another way too"
    return in_numpy(closed, *more)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in COVERED]
)
def test_values_and_gradients(name):
    (values, cotangents), (expected, expected_cotangents) = meaning(name), by_reference(name)
    assert_values(CALLS[name], values, expected)
    assert_cotangents(CALLS[name], cotangents, expected_cotangents)


@pytest.mark.parametrize("name", TWICE)
def test_second_order(name):
    assert_cotangents(CALLS[name], meaning(name, twice), by_reference(name, twice))


def test_all_that_is_left_out_is_a_call():
    assert not {name for names in LEFT_OUT.values() for name in names} - set(CALLS)
