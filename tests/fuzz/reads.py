"""Reads, drawn at random: `sample`, with its options, `gather`, and `sample_with_derivatives`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex import TextureKind
from tests.fuzz.cases import FILTERS, FLOATS, Draw, Unsuitable, chance, finish, pick, stored, with_options

UNSIGNED = [{"filter_mode": "linear"}, *(f for f in FILTERS if f["filter_mode"] in ("bspline", "gaussian"))]


def draw_read(rng):
    return read_call(Draw(rng))


def read_call(draw, key=None, function=jt.sample):
    """`sample`, of a tap that a key draws, if there is one; or another function of the same arguments."""
    rng = draw.rng
    inputs, pattern, steady = draw.places()
    arrays = {"texels": draw.stacked("texture", lambda: stored(rng, draw.dtype, *draw.stored_shape))}
    real = draw.dtype in FLOATS or draw.fraction
    if "border" in draw.modes and chance(rng, 0.6):
        shape = () if chance(rng, 0.4) else (draw.channels,)
        color = lambda: stored(rng, "float32" if real else draw.dtype, *shape)
        arrays["color"] = draw.stacked("texture", color)
    dtype = "float32" if real and chance(rng, 0.2) else None

    def read(**given):
        texture = jt.Texture(given["texels"], given.get("color"), draw.kind, draw.levels)
        coords, more = draw.arguments(given)
        drawn = {} if key is None else {"key": jax.random.key(key)}
        return function(texture, coords, draw.sampler, **more, **drawn, dtype=dtype)

    wrt = [name for name in arrays if arrays[name].dtype.name in FLOATS] if real else []
    if real and draw.filter != "point":
        wrt += [name for name in inputs if name != "layer"]
    magnitude = float(np.abs(arrays["texels"].astype(np.float64)).max()) if draw.dtype in FLOATS else 1.0
    if "color" in arrays:
        magnitude += float(np.abs(np.float64(arrays["color"])).max())
    return finish(draw, "sample", read, arrays, inputs, wrt, magnitude, pattern, steady)


def draw_gather(rng):
    draw = Draw(rng)
    if draw.kind is not TextureKind.TEXTURE2D or draw.chain or draw.footprint:
        raise Unsuitable
    inputs, pattern, steady = draw.places()
    arrays = {"texels": draw.stacked("texture", lambda: stored(rng, draw.dtype, *draw.shape))}
    component = int(rng.integers(draw.channels))

    def gather(**given):
        return jt.gather(jt.texture2d(given["texels"]), draw.arguments(given)[0], draw.sampler, component=component)

    wrt = ["texels"] if draw.dtype in FLOATS else []
    return finish(draw, f"gather of {component}", gather, arrays, inputs, wrt, 1.0, pattern, steady)


def draw_limited(rng):
    """`sample` that stays between its nearest taps."""
    return read_call(with_options(Draw(rng), limit="taps", deterministic=False, **pick(rng, FILTERS)))


def draw_drawn(rng):
    """`sample` of one drawn tap, or two of filters with negative weights."""
    draw = with_options(Draw(rng), **pick(rng, [*UNSIGNED, *FILTERS]))
    key = int(rng.integers(2**31))
    case = read_call(draw, key=key)
    one_texel = {k: draw.options.get(k) for k in ("filter_mode", "spline_order", "cubic_coefficient")}
    one_texel = {k: v for k, v in one_texel.items() if v is not None} in UNSIGNED
    at_edges = draw.kind.is_cube or "border" in draw.modes  # a tap there may be no texel, or several
    if one_texel and not at_edges and draw.dtype == "float32" and draw.batch is None:
        case = dataclasses.replace(case, meaning=drawn_texel(draw, key))
    return dataclasses.replace(case, text=f"{case.text}, key {key}", steady=False)


def drawn_texel(draw, key):
    """The texel that the same key draws from texels that hold their own numbers."""

    def meaning(texels, **places):
        coords, more = draw.arguments(places)
        numbers = jnp.arange(len(texels.reshape(-1, draw.channels)), dtype=jnp.float32)
        numbered = jt.Texture(numbers.reshape(*texels.shape[:-1], 1), None, draw.kind, draw.levels)
        number = jt.sample(numbered, coords, draw.sampler, **more, key=jax.random.key(key))[..., 0]
        found = texels.reshape(-1, draw.channels)[jnp.nan_to_num(number).astype(jnp.int32)]
        return jnp.where(jnp.isnan(number)[..., None], jnp.nan, found)

    return meaning


def read_by(draw, function):
    """A call of a function of the arguments of `sample`."""
    case = read_call(draw, function=function)
    if case.deterministic and "identical" in case.text:
        raise Unsuitable  # as in `draw_splat`
    return case


def draw_derivatives(rng):
    """`sample_with_derivatives`, all of its arrays one after the other."""
    draw = Draw(rng)
    if chance(rng, 0.5):
        with_options(draw, **pick(rng, FILTERS))
    if not (draw.dtype in FLOATS or draw.fraction):
        raise Unsuitable
    order = pick(rng, [1, 2])

    def read(texture, coords, sampler, **more):
        found = jt.sample_with_derivatives(texture, coords, sampler, order=order, **more)
        return jnp.concatenate(jax.tree.leaves(found), -1)

    case = read_by(draw, read)
    # A derivative in coordinates that span one texture is as many times larger as the texture has texels.
    floors = {name: floor * max(1.0, *draw.scaled) ** order for name, floor in case.floors.items()}
    return dataclasses.replace(case, text=f"derivatives to order {order}: {case.text}", exact=False, floors=floors)


def draw_complex(rng):
    """`sample` of complex texels, whose imaginary parts are the channels in another order."""
    draw = Draw(rng)
    if chance(rng, 0.5):
        with_options(draw, **pick(rng, FILTERS))
    if draw.dtype != "float32" or draw.sampler.arithmetic == "hardware":
        raise Unsuitable
    flipped = lambda a: jnp.broadcast_to(a, (draw.channels,))[::-1] if jnp.ndim(a) < 2 else jnp.flip(a, -1)

    def parts(texture):
        color = texture.border_color
        return dataclasses.replace(
            texture, texels=flipped(texture.texels), border_color=None if color is None else flipped(color)
        )

    def read(texture, coords, sampler, dtype=None, **more):
        other = parts(texture)
        color = texture.border_color
        color = (
            None if color is None else jax.lax.complex(jnp.broadcast_to(color, (draw.channels,)), other.border_color)
        )
        whole = dataclasses.replace(texture, texels=jax.lax.complex(texture.texels, other.texels), border_color=color)
        out = jt.sample(whole, coords, sampler, **more)
        return jnp.concatenate([out.real, out.imag], -1)

    def meaning(**given):
        texture = jt.Texture(given["texels"], given.get("color"), draw.kind, draw.levels)
        coords, more = draw.arguments(given)
        reads = [jt.sample(t, coords, draw.sampler, **more) for t in (texture, parts(texture))]
        return jnp.concatenate(reads, -1)

    case = read_by(draw, read)
    return dataclasses.replace(case, text=f"complex {case.text}", meaning=None if draw.batch else meaning)
