"""Calls of what the interface has learned since `fuzz_cases.py`, whose seeds keep their calls: sums, limits, draws."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex import TextureKind
from tests.fuzz.cases import FLOATS, Draw, Unsuitable, chance, finish, pick, read_call, sizes_of, stored

FILTERS = [
    {"filter_mode": "cubic"},
    {"filter_mode": "cubic", "cubic_coefficient": -0.75},
    *({"filter_mode": "bspline", "spline_order": order} for order in (2, 3, 5)),
    *({"filter_mode": name} for name in ("lanczos2", "lanczos3", "mitchell", "gaussian")),
]
UNSIGNED = [{"filter_mode": "linear"}, *(f for f in FILTERS if f["filter_mode"] in ("bspline", "gaussian"))]


def with_options(draw, **options):
    """A draw whose sampler has these options in place of its own."""
    draw.sampler = dataclasses.replace(draw.sampler, arithmetic="float", **options)
    draw.options = {k: v for k, v in draw.options.items() if k != "arithmetic"} | options
    draw.filter = draw.sampler.filter.value
    return draw


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


def draw_sum(rng):
    """`jaxtex.nn.sample_weighted`: of one texture or several, with heads, layers and levels of detail."""
    draw = Draw(rng)
    if draw.footprint or draw.dtype == "bool":
        raise Unsuitable
    if chance(rng, 0.25):
        with_options(draw, **pick(rng, FILTERS))
    several = draw.levels is None and chance(rng, 0.4)
    if several:
        draw.samples = (int(rng.integers(1, 5)), *draw.samples[-2:])
    inputs, pattern, steady = draw.places()
    if draw.sampler.deterministic and "identical" in pattern:
        raise Unsuitable  # as in `draw_splat`
    batched = draw.batch in ("coordinates", "both")
    shape = np.broadcast_shapes(*(a.shape[batched:] for a in inputs.values()))
    if not shape:
        raise Unsuitable
    axis = tuple(sorted(map(int, rng.choice(len(shape), int(rng.integers(len(shape))) + 1, replace=False))))
    axis = () if chance(rng, 0.1) else axis
    if several:
        axis = (0, *(k for k in axis if k))
    heads = pick(rng, [n for n in range(1, draw.channels + 1) if draw.channels % n == 0]) if chance(rng, 0.3) else 1
    inputs["weights"] = draw.stacked("coordinates", lambda: rng.normal(size=shape).astype(np.float32))
    if heads > 1:
        head = lambda: rng.integers(-1, heads + 1, shape).astype(np.int32)
        inputs["head"] = draw.stacked("coordinates", head)
    shapes = [draw.stored_shape]
    if several:
        sizes = [draw.sizes, *(sizes_of(rng, draw.kind.texel_ndim, draw.channels) for _ in range(shape[axis[0]] - 1))]
        if draw.kind.is_cube or draw.modes[0] == "sphere":
            sizes = [draw.sizes] * len(sizes)
        front = draw.shape[: len(draw.shape) - 1 - len(draw.sizes)]
        shapes = [(*front, *size, draw.channels) for size in sizes]
    names = [f"texels{k}" for k in range(len(shapes))]
    arrays = {n: draw.stacked("texture", lambda s=s: stored(rng, draw.dtype, *s)) for n, s in zip(names, shapes)}
    layered = draw.kind in (TextureKind.TEXTURE1D_LAYERED, TextureKind.TEXTURE2D_LAYERED, TextureKind.CUBEMAP_LAYERED)
    assert layered == ("layer" in inputs)

    real = draw.dtype in FLOATS or draw.fraction

    def textures(given):
        return [jt.Texture(given[n], None, draw.kind, draw.levels) for n in names]

    def run(**given):
        coords, more = draw.arguments(given)
        found = textures(given)
        more |= {"head": given["head"], "num_heads": heads} if heads > 1 else {}
        one = found if several else found[0]
        return jt.nn.sample_weighted(one, coords, given["weights"], draw.sampler, axis=axis, **more)

    def meaning(**given):
        coords, more = draw.arguments(given)
        wide = lambda a: jnp.broadcast_to(a, shape)
        coords, more = jax.tree.map(wide, (coords, more))
        more |= {"dtype": "float32"} if real else {}
        reads = [jt.sample(t, coords, draw.sampler, **more).astype(jnp.float32) for t in textures(given)]
        if several:
            entry = jnp.arange(shape[axis[0]]).reshape(-1, *[1] * (len(shape) - 1 - axis[0]))
            reads = [jnp.where((entry == k)[..., None], read, 0) for k, read in enumerate(reads)]
        read = sum(reads)
        if heads > 1:
            parts = read.reshape(*shape, heads, -1)
            chosen = jnp.where(given["head"] < 0, heads - 1, jnp.minimum(given["head"], heads - 1))
            read = jnp.take_along_axis(parts, chosen[..., None, None], -2)[..., 0, :]
        return (read * given["weights"][..., None]).sum(axis)

    wrt = [*names, "weights"] if draw.dtype in FLOATS else ["weights"]
    if real and draw.filter != "point":
        wrt += [n for n in inputs if n not in ("layer", "head", "weights")]
    largest = max(float(np.abs(np.float64(a)).max()) for a in arrays.values()) if not draw.fraction else 1.0
    terms = float(np.prod([shape[k] for k in axis]))
    magnitude = largest * max(1.0, float(np.sqrt(terms)))
    name = f"sample_weighted along {axis}, {len(names) if several else 'one'}, {heads} heads, of"
    case = finish(draw, name, run, arrays, inputs, wrt, magnitude, pattern, steady)
    one = meaning if not draw.batch else None
    floors = case.floors | {"weights": largest * draw.channels}
    return dataclasses.replace(case, exact=False, sums=True, floors=floors, meaning=one)


LATER_DRAWS = [*[draw_sum] * 3, draw_limited, draw_drawn]


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


LATEST_DRAWS = [draw_derivatives, draw_complex]
