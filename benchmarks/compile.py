"""`python -m benchmarks.compile`: how long reads and parts of models take to trace and compile, and what is cached."""

import functools
import os
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxtex as jt
import jaxtex.warp as jw
from jaxtex import TextureKind
from jaxtex._engine.cuda.build.nvrtc import compile_to_ptx

from .models import WORKLOADS
from .report import Results, parser
from .workloads import program

SIDE, LAYERS, CHANNELS = 32, 3, 4
SAMPLES = (32, 32)
TRILINEAR = jt.Sampler(mipmap_filter_mode="linear")
Case = tuple[Callable[..., Any], tuple[Any, ...]]


def texture(kind: TextureKind) -> jt.Texture:
    front = [LAYERS] * kind.layered + [6] * kind.is_cube
    shape = (*front, *[SIDE] * kind.texel_ndim, CHANNELS)
    return jt.Texture(jnp.zeros(shape), None, kind)


def places(kind: TextureKind) -> dict[str, Any]:
    """The arguments of a read that say where."""
    coords = tuple(jnp.full(SAMPLES, 0.3 + 0.1 * k) for k in range(kind.ndim))
    return {"coords": coords, **({"layer": jnp.zeros(SAMPLES, jnp.int32)} if kind.layered else {})}


def read(texture: jt.Texture, at: dict[str, Any], **options: Any) -> jax.Array:
    return jt.sample(texture, **at, **options)


def gradients(texture: jt.Texture, at: dict[str, Any], **options: Any) -> Any:
    """Those in texels and coordinates."""
    loss = lambda texels, coords: jnp.sum(
        read(jt.Texture(texels, None, texture.kind, texture.level_shapes), {**at, "coords": coords}, **options)
    )
    return jax.grad(loss, argnums=(0, 1))(texture.texels, at["coords"])


def splat(texture: jt.Texture, at: dict[str, Any], values: jax.Array) -> jax.Array:
    return jt.splat(values, shape=texture.shape, kind=texture.kind, **at).texels


def fetch(texture: jt.Texture, at: dict[str, Any]) -> jax.Array:
    return jt.fetch(texture, tuple(c.astype(jnp.int32) for c in at["coords"]), layer=at.get("layer"))


def gather(texture: jt.Texture, at: dict[str, Any]) -> jax.Array:
    return jt.gather(texture, at["coords"])


def cases() -> dict[str, Case]:
    """Every public read of every kind, with the linear filter."""
    found: dict[str, Case] = {}
    for kind in TextureKind:
        args = texture(kind), places(kind)
        found[f"sample, {kind}"] = read, args
        found[f"gradients, {kind}"] = gradients, args
        found[f"splat, {kind}"] = splat, (*args, jnp.zeros((*SAMPLES, CHANNELS)))
        if not kind.is_cube:
            found[f"fetch, {kind}"] = fetch, args
    flat = texture(TextureKind.TEXTURE2D), places(TextureKind.TEXTURE2D)
    chain = jt.build_mipmaps(flat[0]), {**flat[1], "lod": jnp.full(SAMPLES, 0.5)}
    steps = dict.fromkeys(("ddx", "ddy"), flat[1]["coords"])
    found["gather, 2d"] = gather, flat
    found["build_mipmaps, 2d"] = jt.build_mipmaps, flat[:1]
    found["sample, 2d, trilinear"] = functools.partial(read, sampler=TRILINEAR), chain
    found["gradients, 2d, trilinear"] = functools.partial(gradients, sampler=TRILINEAR), chain
    anisotropic = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=16)
    found["sample, 2d, anisotropic"] = functools.partial(read, sampler=anisotropic), (chain[0], {**flat[1], **steps})
    for kind in (TextureKind.TEXTURE2D, TextureKind.TEXTURE3D, TextureKind.CUBEMAP):
        exact = functools.partial(read, sampler=jt.Sampler(arithmetic="hardware"))
        found[f"sample, {kind}, hardware"] = exact, (texture(kind), places(kind))
    return found | models()


def models() -> dict[str, Case]:
    """Parts of models with gradients, at the sizes of `benchmarks.workloads`: of arrays that have only shapes."""
    loss = lambda images, thetas: jnp.sum(jw.spatial_transform(images, thetas) ** 2)
    shapes = jax.eval_shape(lambda: (jnp.zeros((64, 224, 224, 3)), jnp.zeros((64, 2, 3))))
    found: dict[str, Case] = {"spatial transformer, a step": (jax.value_and_grad(loss, argnums=(0, 1)), shapes)}
    for work in WORKLOADS:
        args = jax.eval_shape(functools.partial(work.inputs, **work.sizes), jax.random.PRNGKey(0))
        out = jax.eval_shape(functools.partial(work.ours, **work.sizes), *args)
        found[work.name] = program(work, work.sizes, "gradients"), (out, *args)
    return found


def durations(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[float, float]:
    """Seconds to trace and lower, and to compile, with nothing left over from before."""
    jax.clear_caches()
    compile_to_ptx.cache_clear()
    start = time.perf_counter()
    lowered = jax.jit(lambda *args: function(*args)).lower(*args)
    middle = time.perf_counter()
    lowered.compile()
    return middle - start, time.perf_counter() - middle


def traces(samplers: list[jt.Sampler]) -> int:
    """How often a function that takes a sampler is traced for these."""
    count = 0

    @jax.jit
    def traced(texture: jt.Texture, at: dict[str, Any], sampler: jt.Sampler) -> jax.Array:
        nonlocal count
        count += 1
        return read(texture, at, sampler=sampler)

    for sampler in samplers:
        traced(texture(TextureKind.TEXTURE2D), places(TextureKind.TEXTURE2D), sampler)
    return count


def main() -> int:
    arguments = parser("benchmarks.compile", __doc__, None)
    arguments.add_argument("--repeats", type=int, default=3, help="how often each is compiled; the median is printed")
    options = arguments.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # or NVRTC 13 keeps what it optimizes
    results = Results(options)
    print(f"{'milliseconds':40s} {'trace':>8s} {'compile':>8s}")
    durations(jnp.sin, (jnp.zeros(SAMPLES),))  # what only the first compilation of a process does
    for name, (function, args) in cases().items():
        if not re.search(options.only, name):
            continue
        both = zip(*(durations(function, args) for _ in range(options.repeats)))
        trace, compilation = (statistics.median(seconds) * 1e3 for seconds in both)
        results.add(f"compilation of {name}", milliseconds={"trace": trace, "compile": compilation})
        print(f"{name:40s} {trace:8.0f} {compilation:8.0f}", flush=True)
    equal = [jt.Sampler(address_mode=mode) for mode in ("wrap", jt.AddressMode.WRAP, "repeat")]
    print(f"{len(equal)} equal samplers: traced {traces(equal)} time(s)")
    different = [jt.Sampler(address_mode=mode) for mode in ("wrap", "clamp")]
    print(f"{len(different)} different samplers: traced {traces(different)} time(s)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
