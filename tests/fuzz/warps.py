"""Warps and mip chains, drawn at random."""

import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex import TextureKind
from tests.fuzz.cases import CHANNELS, DTYPES, FLOATS, MODES, Case, chance, pick, sizes_of, stored


def put_special(rng, texels):
    """Makes some texels of floats NaN, infinite or the largest numbers."""
    if texels.dtype.name in FLOATS:
        largest = float(jnp.finfo(texels.dtype).max)
        texels[...] = largest if chance(rng, 0.2) else texels
        for special in (np.nan, np.inf, -np.inf, largest, -largest) * chance(rng, 0.5):
            texels[tuple(int(rng.integers(n)) for n in texels.shape)] = special


def draw_mips(rng):
    """Mip chains; each texel is the mean of those that it covers."""
    kind, dtype, channels = TextureKind(pick(rng, ["1d", "2d", "2d", "3d"])), pick(rng, [*FLOATS]), pick(rng, CHANNELS)
    texels = stored(rng, dtype, *sizes_of(rng, kind.ndim, channels), channels)
    put_special(rng, texels)
    return Case(
        text=f"build_mipmaps of {kind} {dtype} {texels.shape}",
        function=lambda texels: jt.build_mipmaps(jt.Texture(texels, None, kind, None)).texels,
        inputs={"texels": texels},
        wrt=("texels",),
    )


def draw_warp(rng):
    """The warps whose coordinates a kernel computes, and those from arrays."""
    name = pick(rng, ["rotate", "warp_affine", "warp_perspective", "spatial_transform", "resize", "remap", "warp_flow"])
    dtype, channels = pick(rng, DTYPES), pick(rng, CHANNELS)
    front = [int(rng.integers(1, 4))] * (name == "spatial_transform" or chance(rng, 0.3))
    height, width = (max(n, 2) for n in sizes_of(rng, 2, channels))
    image = stored(rng, dtype, *front, height, width, channels)
    out = tuple(int(rng.integers(2, 50)) for _ in range(2))
    kwargs = {
        "filter_mode": pick(rng, ["linear", "linear", "cubic", *["point"] * (name not in ("resize", "rotate"))]),
        "address_mode": pick(rng, MODES),
        "dtype": None if dtype in FLOATS else "float32",
    }
    deterministic = chance(rng, 0.1)
    sampler = jt.Sampler(deterministic=deterministic)
    inputs = {"image": image}
    if kwargs["address_mode"] == "border" and chance(rng, 0.5):
        inputs["border_color"] = rng.normal(size=pick(rng, [(), (channels,)])).astype(np.float32)
    near = lambda *shape, scale=0.3: (rng.normal(size=shape) * scale).astype(np.float32)
    if name == "rotate":
        inputs["place"] = np.float32(rng.uniform(-170, 170))
        call = lambda image, place, **more: jt.warp.rotate(
            image, None, out, sampler, angle=jnp.deg2rad(place), scale=0.9, **more
        )
    elif name in ("warp_affine", "warp_perspective"):
        matrix = np.eye(3, dtype=np.float32) + near(3, 3)
        matrix[:2, 2] *= 5
        matrix[2] = [0.003, 0.002, 1]
        inputs["place"] = matrix[:2] if name == "warp_affine" else matrix
        warp, inverse = getattr(jt.warp, name), chance(rng, 0.5)
        call = lambda image, place, **more: warp(image, place, out, sampler, inverse_map=inverse, **more)
    elif name == "spatial_transform":
        inputs["place"] = np.eye(2, 3, dtype=np.float32) + near(*front, 2, 3)
        call = lambda image, place, **more: jt.warp.spatial_transform(image, place, out, sampler, **more)
    elif name == "resize":
        kwargs["antialias"] = chance(rng, 0.5)
        out = tuple(n if chance(rng, 0.3) else m for n, m in zip((height, width), out))
        put_special(rng, image)
        call = lambda image, **more: jt.warp.resize(image, out, sampler, **more)
    elif name == "warp_flow":
        inputs["place"] = near(*front, height, width, 2, scale=3)
        call = lambda image, place, **more: jt.warp.warp_flow(image, place, sampler, **more)
    else:
        extent = np.float32([width, height]).reshape(2, *[1] * (2 + len(front)))
        inputs["place"] = (rng.uniform(-0.3, 1.3, (2, *front, *out)) * extent).astype(np.float32)
        call = lambda image, place, **more: jt.warp.remap(image, tuple(place), sampler, **more)
    floating = [n for n in ("image", "border_color") if n in inputs and inputs[n].dtype.name in FLOATS]
    slopes = ["place"] * ("place" in inputs and kwargs["filter_mode"] != "point")
    size = float(max(height, width))
    gain = np.sqrt(np.prod(out)) * size if name not in ("remap", "warp_flow") else 1.0
    return Case(
        text=f"{name} {dtype} {image.shape} to {out}, {kwargs}, {sorted(inputs)}, deterministic {deterministic}",
        function=lambda **given: call(**given, **kwargs),
        inputs=inputs,
        wrt=(*floating, *slopes),
        reach=1 + 2 * size / 32,
        floors={"place": float(gain * channels)},
        deterministic=deterministic,
    )
