"""Coordinates whose taps are known to be inside, or outside, against their taps."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.describe.axis import Axis
from jaxtex._engine.walk.known_taps import taps_are_inside, taps_are_outside, with_taps_inside
from jaxtex._engine.walk.texel_walk import taps
from jaxtex._tables.address_rules import BORDER

SIZE = 8


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("filter_mode", ["point", "linear", "cubic", "bspline"])
def test_known_taps(filter_mode, normalized):
    """Never wrong, however near an edge; and known for every coordinate that is not near one."""
    axis = Axis(SIZE, jt.Sampler(filter_mode=filter_mode).kernel, BORDER, normalized)
    edges = np.arange(-8, 2 * SIZE + 8, dtype=np.float32) / 2
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), edges + 0.25])
    special = np.float32([-0.0, 1e-30, -1e-30, np.inf, -np.inf, np.nan, 3e9, -3e9])
    coords = np.concatenate([near, special]) / (SIZE if normalized else 1)
    coords = jnp.asarray(coords, jnp.float32)
    numbers = np.stack([np.asarray(tap) for tap, _ in taps(coords, axis)])
    inside, outside = (numbers >= 0) & (numbers < SIZE), (numbers < 0) | (numbers >= SIZE)
    known_inside, known_outside = (np.asarray(f([coords], (axis,))) for f in (taps_are_inside, taps_are_outside))
    assert not (known_inside & ~inside.all(0)).any()
    assert not (known_outside & ~outside.all(0)).any()
    plain = np.isin(np.asarray(coords) * (SIZE if normalized else 1), edges + 0.25)
    assert (known_inside == inside.all(0))[plain].all()
    assert (known_outside == outside.all(0))[plain].all()


def test_axes_without_known_taps():
    """Sizes that float32 does not count, fewer texels than taps, and numbers of another kind."""
    axis = Axis(SIZE, jt.Sampler(filter_mode="cubic").kernel, BORDER)
    assert with_taps_inside((axis, axis), jnp.float32) is not None
    assert with_taps_inside((axis,), jnp.float16) is None
    for size in (3, 2**23):
        assert with_taps_inside((axis._replace(size=size),), jnp.float32) is None
    assert with_taps_inside((axis._replace(size=2**12),) * 3, jnp.float32) is None
    assert with_taps_inside((axis._replace(integer=True),), jnp.float32) is None
