"""Sums over samples, drawn at random: `splat`, and `jaxtex.nn.sample_weighted`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex import TextureKind
from tests.fuzz.cases import FILTERS, FLOATS, Draw, Unsuitable, chance, finish, pick, sizes_of, stored, with_options


def draw_splat(rng):
    draw = Draw(rng)
    if draw.dtype not in FLOATS or draw.sampler.arithmetic == "hardware":
        raise Unsuitable
    inputs, pattern, steady = draw.places()
    batched = draw.count if draw.batch in ("texture", "both") else 0
    shape = np.broadcast_shapes(*(a.shape[(draw.batch in ("coordinates", "both")) :] for a in inputs.values()))
    arrays = {"values": stored(rng, draw.dtype, *[batched] * bool(batched), *shape, draw.channels)}

    def splat(**given):
        coords, more = draw.arguments(given)
        return jt.splat(given["values"], coords, draw.shape, draw.sampler, kind=draw.kind, **more).texels

    if draw.sampler.deterministic and pattern == "identical":
        raise Unsuitable  # so many terms at a texel have the error that is documented, which hides any other
    wrt = ["values", *(name for name in inputs if name != "layer" and draw.filter != "point")]
    return finish(draw, "splat", splat, arrays, inputs, wrt, 1.0, pattern, steady)


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
