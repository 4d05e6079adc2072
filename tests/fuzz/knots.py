"""Calls of `sample` on axes with knots, on spheres of levels, and by the filter "lagrange"."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.fuzz.cases import FLOATS, Draw, Unsuitable, chance, finish, pick, stored, with_options
from tests.fuzz.reads import read_call


def draw_lagrange(rng):
    """The cubic through four texels on even axes, within its nearest taps or not; of spheres too."""
    draw = Draw(rng)
    if not draw.kind.is_cube and draw.kind.ndim > 1 and chance(rng, 0.4) and draw.sizes[-1] % 2 == 0:
        draw.modes = ("sphere", "sphere", *draw.modes[2:])
        with_options(draw, address_mode=draw.modes)
    limit = "taps" if chance(rng, 0.3) else None
    return read_call(with_options(draw, filter_mode="lagrange", limit=limit, deterministic=False))


def knots_of(rng, size):
    """Knots with edges, in either direction; float32."""
    found = np.cumsum([rng.normal(), *rng.uniform(0.5, 2.0, size + 1)])
    return (found if chance(rng, 0.6) else found[::-1]).astype(np.float32)


def draw_knots(rng):
    """Some axes with knots; a linear read is compared with one at positions."""
    draw = Draw(rng)
    if draw.kind.is_cube or draw.levels is not None or draw.footprint:
        raise Unsuitable
    draw.batch, draw.count = None, 1
    limit = {"limit": "taps"} if chance(rng, 0.3) else {}
    with_options(draw, filter_mode=pick(rng, ["point", "linear", "lagrange", "lagrange"]), **limit)
    if draw.kind.ndim > 1 and chance(rng, 0.3) and draw.sizes[-1] % 2 == 0:
        draw.modes = ("sphere", "sphere", *draw.modes[2:])
        with_options(draw, address_mode=draw.modes)
    inputs, pattern, _ = draw.places()
    uneven = [k for k in range(draw.kind.ndim) if chance(rng, 0.6)] or [0]
    for k in uneven:
        knots = inputs[f"k{k}"] = knots_of(rng, draw.sizes[::-1][k])
        turn = inputs[f"c{k}"] * (draw.scaled[k] / draw.sizes[::-1][k])
        if draw.modes[k] not in ("clamp", "border"):  # so many periods away, a coordinate has few digits of its place
            turn = np.where(np.abs(turn) > 2**10, np.inf, turn)
        inputs[f"c{k}"] = (knots[0] + turn * (knots[-1] - knots[0])).astype(np.float32)
    texels = {"texels": stored(rng, draw.dtype, *draw.stored_shape)}
    real = draw.dtype in FLOATS or draw.fraction

    def on_knots(given):
        knots = tuple(given.get(f"k{k}") for k in range(draw.kind.ndim))
        return dataclasses.replace(jt.Texture(given["texels"], None, draw.kind), knots=knots)

    def read(**given):
        coords, more = draw.arguments(given)
        return jt.sample(on_knots(given), coords, draw.sampler, **more)

    def meaning(**given):
        coords, more = draw.arguments(given)
        at = jt.positions(on_knots(given), coords, draw.sampler)
        in_texels = dataclasses.replace(draw.sampler, normalized_coords=False)
        return jt.sample(jt.Texture(given["texels"], None, draw.kind), at, in_texels, **more)

    wrt = ["texels"] if draw.dtype in FLOATS else []
    if real and draw.filter != "point":
        wrt += [name for name in inputs if name != "layer"]
    magnitude = float(np.abs(texels["texels"].astype(np.float64)).max()) if draw.dtype in FLOATS else 1.0
    draw.reach = max(draw.reach, 4.0)
    name = f"sample on knots of {', '.join('xyz'[k] for k in uneven)}"
    case = finish(draw, name, read, texels, inputs, wrt, magnitude, pattern, False)
    samples = float(np.prod(jnp.broadcast_shapes(*(a.shape for n, a in inputs.items() if n[0] != "k"))))
    floors = case.floors | {f"k{k}": magnitude * draw.channels * max(1.0, samples) ** 0.5 for k in uneven}
    return dataclasses.replace(case, floors=floors, meaning=meaning if draw.filter == "linear" else None)
