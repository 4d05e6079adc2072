"""Projections along rays, drawn at random, and their meaning by single reads."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from tests.fuzz.cases import Case, chance, pick, sizes_of, stored

FILTERS = [
    *[{}] * 3,
    {"filter_mode": "cubic"},
    {"filter_mode": "mitchell"},
    *({"filter_mode": "bspline", "spline_order": order} for order in (2, 3)),
]
TEXTURES = {2: jt.texture2d, 3: jt.texture3d}


def integral(values, lengths, weights):
    return (values * weights).sum(-2) * lengths[..., None]


def composited(values, lengths, weights):
    """Emission and absorption of samples, (..., N, C), by sums of logarithms."""
    del weights
    depths = jnp.maximum(values[..., -1:], 0) * lengths[..., None, None]
    behind = jnp.exp(depths - jnp.cumsum(depths, -2))
    color = (behind * -jnp.expm1(-depths) * values[..., :-1]).sum(-2)
    return jnp.concatenate([color, -jnp.expm1(-depths.sum(-2))], -1)


MEANINGS = {
    "line_integral": integral,
    "maximum_intensity": lambda values, lengths, weights: values.max(-2),
    "composite": composited,
}


def draw_rays(rng):
    """One of the projections, of a volume or an image, with ends that broadcast, and batches."""
    ndim, channels, name = int(pick(rng, (2, 3, 3))), int(pick(rng, (1, 1, 2, 3, 4, 5, 20))), pick(rng, [*MEANINGS])
    sizes, count, options = sizes_of(rng, ndim, channels), int(rng.integers(1, 40)), pick(rng, FILTERS)
    dtype = pick(rng, ["float32"] * 4 + ["bfloat16", "float16"])
    rays = tuple(int(n) for n in rng.integers(1, 12, int(rng.integers(1, 3))))
    batch = pick(rng, [None, None, None, "volume", "ends"])
    front = lambda owner: (2,) if batch == owner else ()
    most = np.array(sizes[::-1])

    def ends():
        shape = tuple(1 if chance(rng, 0.2) else n for n in rays)
        return rng.uniform(-2, most + 2, (*front("ends"), *shape, ndim)).astype(np.float32)

    inputs = {"volume": stored(rng, dtype, *front("volume"), *sizes, channels), "start": ends(), "end": ends()}
    if name == "composite":
        inputs["volume"] = (inputs["volume"] * 0.3).astype(inputs["volume"].dtype)
    if name == "line_integral" and chance(rng, 0.4):
        inputs["weights"] = rng.normal(size=count).astype(np.float32)
    sampler, outside = jt.Sampler(**options), float(pick(rng, (0, -1.5))) if name == "maximum_intensity" else 0.0
    own = {"outside": outside} if name == "maximum_intensity" else {}
    axes = {"volume": 0 if batch == "volume" else None, "weights": None}
    axes |= dict.fromkeys(("start", "end"), 0 if batch == "ends" else None)

    def batched(function):
        def run(**given):
            names = [*given]
            one = lambda *args: function(**dict(zip(names, args)))
            return jax.vmap(one, [axes[k] for k in names])(*given.values()) if batch else one(*given.values())

        return run

    def project(volume, start, end, **more):
        return getattr(jt.rays, name)(volume, start, end, num_samples=count, sampler=sampler, **own, **more)

    def meaning(volume, start, end, weights=None):
        fraction = (jnp.arange(count, dtype=jnp.float32) + 0.5)[:, None] / count
        points = start[..., None, :] + (end - start)[..., None, :] * fraction
        how = jt.Sampler(address_mode="border", normalized_coords=False, **options)
        values = jt.sample(
            TEXTURES[ndim](volume, border_color=outside), tuple(jnp.moveaxis(points, -1, 0)), how, dtype="float32"
        )
        lengths = jnp.linalg.norm(end - start, axis=-1) / count
        return MEANINGS[name](values, lengths, 1 if weights is None else weights[:, None])

    text = f"{name} of {dtype} {inputs['volume'].shape} by {count} samples of {rays}, vmap over {batch}, {options}"
    floors = {"value": float(np.abs(np.float64(inputs["volume"])).max()) * float(np.sum(most))}
    return Case(
        text, batched(project), inputs, tuple(inputs), reach=8.0, floors=floors, sums=True, meaning=batched(meaning)
    )
