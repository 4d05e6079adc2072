"""Reads of texels in three arrays, a device's own and its halo, and reads whose results lie in one array."""

import functools

import jax.numpy as jnp

import jaxtex as jt
from jaxtex._engine.describe.spec import Read
from jaxtex._engine.rules import primitives
from tests.devices.test_halo_reads import CASES, SAMPLERS, part
from tests.lowered.programs import Call
from tests.unit.engine.test_concatenated_reads import drawn, grid_inputs, levels, turned

DERIVATIVES = ("value", "forward", "reverse", "second")
MATRICES = (0.8, -0.6, 9.0, 0.6, 0.8, -9.0), (1.1, 0.2, 0.0, 0.1, 0.9, 3.0)


def in_three_arrays(sampler, **case):
    """A read of a part of a texture, with derivatives in its three arrays and in coordinates."""
    texels, arrays, operands, spec, _ = part(sampler, **case)
    read = lambda arrays, *operands: primitives.read(arrays, None, Read(spec, operands))
    moves = jnp.issubdtype(texels.dtype, jnp.floating)
    wrt = (0, *range(2, 1 + len(operands))) if moves else ()
    return Call(read, (arrays, *operands), wrt, DERIVATIVES if moves else ("value",))


def of_levels(features, dtype="float32"):
    """The features of points in all levels of a grid, each of its own table."""
    grid, tables, points = grid_inputs(features, dtype)
    return Call(functools.partial(levels, grid=grid), (tables, points), (0, 1))


def of_windows(radius):
    pyramid = [drawn(1, 3, 4, *size) for size in ((8, 9), (4, 4))]
    lookup = functools.partial(jt.nn.correlation_lookup, radius=radius)
    return Call(lookup, (pyramid, drawn(1, 3, 4, 2)), (0, 1))


STORAGE = {
    **{f"three arrays, {name}": in_three_arrays(SAMPLERS[name], **case) for name, case in CASES.items()},
    **{f"side by side, levels of {n} features": of_levels(n) for n in (2, 8, 9)},
    "side by side, levels of 16 features in bfloat16": of_levels(16, "bfloat16"),
    "side by side, windows": of_windows(1),
    **{
        f"side by side, images{', reproducibly' * deterministic}": Call(
            functools.partial(turned, matrices=MATRICES, deterministic=deterministic),
            ([drawn(20, 24, 9), drawn(20, 24, 8)],),
            (0,),
        )
        for deterministic in (False, True)
    },
}
