"""`python -m benchmarks.unit`: reads by the texture unit, beside the same reads in hardware and in float arithmetic.

A kernel in CUDA C++, compiled by CuPy, reads by the same texture object, and shows what the unit itself takes. Shares
are of results that equal those of the unit bit for bit.
"""

import functools
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._unit.objects import slots_of

from .peers.protocol import Run, as_jax, on_gpu, optional
from .report import Results, parser
from .timing import side_by_side

THREADS = 256
KERNEL = """
extern "C" __global__ void read(unsigned long long object, const float* const* a, VECTOR* out, long long n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = FETCH;
}
"""
FETCHES = {
    "2d": "tex2D<VECTOR>(object, a[0][i], a[1][i])",
    "3d": "tex3D<VECTOR>(object, a[0][i], a[1][i], a[2][i])",
    "2d lod": "tex2DLod<VECTOR>(object, a[0][i], a[1][i], a[2][i])",
    "2d ddx": "tex2DGrad<VECTOR>(object, a[0][i], a[1][i], "
    "make_float2(a[2][i], a[3][i]), make_float2(a[4][i], a[5][i]))",
}
VECTORS = {1: "float", 2: "float2", 4: "float4"}
HARDWARE = functools.partial(jt.Sampler, arithmetic="hardware")
FRACTIONS = functools.partial(HARDWARE, read_mode="normalized_float")


class Case(NamedTuple):
    """A texture, how it is read, and where."""

    texture: Any
    sampler: jt.Sampler
    coords: tuple[Any, ...]
    options: Mapping[str, Any] = types.MappingProxyType({})
    bound: Any = None


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def texels(*shape: int, dtype: Any = np.float32) -> jax.Array:
    numbers = rng().random(shape, np.float32)
    return jnp.asarray(numbers if dtype == np.float32 else (numbers * 256).astype(dtype))


def anywhere(n: int, ndim: int = 2) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(rng().random((ndim, n, n), np.float32)))


def rotated(n: int, ndim: int = 2) -> tuple[jax.Array, ...]:
    """The pixels of an image, turned by half a radian; in a volume, on a tilted plane."""
    v, u = (np.mgrid[0:n, 0:n].astype(np.float32) + 0.5) / n - 0.5
    c, s = np.cos(0.5), np.sin(0.5)
    plane = u * c - v * s + 0.5, v * c + u * s + 0.5, 0.3 * u + 0.4 * v + 0.5
    return tuple(jnp.asarray(a, jnp.float32) for a in plane[:ndim])


def levels_of(n: int) -> jax.Array:
    return jnp.asarray(rng().random((n, n), np.float32) * 4)


def long_footprints(n: int, long: float) -> dict[str, Any]:
    """Footprints `long` texels long and one wide, in any direction."""
    turn = rng().random((n, n), np.float32) * (2 * math.pi)
    c, s = np.cos(turn) / n, np.sin(turn) / n
    sides = {"ddx": (long * c, long * s), "ddy": (-s, c)}
    return {name: tuple(jnp.asarray(a, jnp.float32) for a in side) for name, side in sides.items()}


def of_image(n: int, channels: int, coords: Callable[..., Any], dtype: Any = np.float32) -> Case:
    sampler = HARDWARE() if dtype == np.float32 else FRACTIONS()
    return Case(jt.texture2d(texels(n, n, channels, dtype=dtype)), sampler, coords(n))


def of_volume(n: int, channels: int, coords: Callable[..., Any]) -> Case:
    return Case(jt.texture3d(texels(*[n // 16] * 3, channels)), HARDWARE(), coords(n // 2, 3))


def of_chain(n: int, coords: Callable[..., Any]) -> Case:
    chain = jt.build_mipmaps(jt.texture2d(texels(n, n, 4)))
    return Case(chain, HARDWARE(mipmap_filter_mode="linear"), coords(n // 2), {"lod": levels_of(n // 2)})


def of_footprints(n: int, most: int) -> Case:
    chain = jt.build_mipmaps(jt.texture2d(texels(n, n, 4)))
    sampler = HARDWARE(mipmap_filter_mode="linear", max_anisotropy=most)
    return Case(chain, sampler, rotated(n // 2), long_footprints(n // 2, most))


def of_blocks(n: int, name: str, coords: Callable[..., Any]) -> Case:
    size = 8 if name == "bc1" else 16
    blocks = jnp.asarray(rng().integers(0, 256, n * n // 16 * size, dtype=np.uint8))
    texture = jt.block_compressed(blocks, name, (n, n))
    return Case(texture, FRACTIONS(), coords(n), bound=lambda s: jt.unit.bind_compressed(blocks, name, (n, n), s))


CASES: dict[str, Callable[[int], Case]] = {
    "image, C=1, rotated": lambda n: of_image(n, 1, rotated),
    "image, C=1, random": lambda n: of_image(n, 1, anywhere),
    "image, C=4, rotated": lambda n: of_image(n, 4, rotated),
    "image, C=4, random": lambda n: of_image(n, 4, anywhere),
    "image, uint8, C=4, rotated": lambda n: of_image(n, 4, rotated, np.uint8),
    "image, uint8, C=4, random": lambda n: of_image(n, 4, anywhere, np.uint8),
    "image, bc1, random": lambda n: of_blocks(n, "bc1", anywhere),
    "image, bc7, random": lambda n: of_blocks(n, "bc7", anywhere),
    "volume, C=1, on a plane": lambda n: of_volume(n, 1, rotated),
    "volume, C=1, random": lambda n: of_volume(n, 1, anywhere),
    "volume, C=4, on a plane": lambda n: of_volume(n, 4, rotated),
    "volume, C=4, random": lambda n: of_volume(n, 4, anywhere),
    "two levels, C=4, rotated": lambda n: of_chain(n, rotated),
    "two levels, C=4, random": lambda n: of_chain(n, anywhere),
    "footprints, anisotropy 4": lambda n: of_footprints(n, 4),
    "footprints, anisotropy 16": lambda n: of_footprints(n, 16),
}


def by_cuda(case: Case, bound: Any) -> Run | None:
    """A kernel in CUDA C++ that reads by the texture object of a bound texture."""
    cupy = optional("cupy") if on_gpu() else None
    if cupy is None:
        return None
    low, high, _ = map(int, np.asarray(bound.handle))
    held = slots_of(jax.devices()[0]).held[low | high << 32]
    arrays = [cupy.asarray(np.asarray(a)) for a in (*case.coords, *jax.tree.leaves(dict(case.options)))]
    channels = case.texture.num_channels
    name = " ".join(("2d" if len(case.coords) == 2 else "3d", *[key for key in case.options if key != "ddy"]))
    code = KERNEL.replace("FETCH", FETCHES[name]).replace("VECTOR", VECTORS[channels])
    kernel = cupy.RawKernel(code, "read")
    pointers = cupy.asarray(np.array([a.data.ptr for a in arrays], np.uint64))
    shape = case.coords[0].shape
    out, count = cupy.empty((*shape, channels), np.float32), math.prod(shape)

    def start(kept: Any = arrays) -> Any:
        kernel((-(-count // THREADS),), (THREADS,), (np.uint64(held.made), pointers, out, np.int64(count)))
        return out

    def wait(result: Any) -> Any:
        cupy.cuda.Device().synchronize()
        return result

    return Run(start, wait, as_jax)


def row(title: str, case: Case, options: Any, results: Results) -> None:
    bound = case.bound(case.sampler) if case.bound else jt.unit.bind(case.texture, case.sampler)
    in_float = jt.Sampler(
        **{name: getattr(case.sampler, name) for name in ("read_mode", "mipmap_filter_mode", "max_anisotropy")}
    )
    read = jax.jit(lambda texture, at, options, how: jt.sample(texture, at, how, **options), static_argnums=3)
    runs = {
        "bound": Run(lambda: read(bound, case.coords, dict(case.options), case.sampler)),
        "hardware": Run(lambda: read(case.texture, case.coords, dict(case.options), case.sampler)),
        "float": Run(lambda: read(case.texture, case.coords, dict(case.options), in_float)),
    }
    cuda = by_cuda(case, bound)
    runs = {**({"CUDA": cuda} if cuda else {}), **runs}
    runs = {way: run for way, run in runs.items() if re.search(options.ways, way)}
    found = {way: run.arrays(run.wait(run.start())) for way, run in runs.items()}
    ms = side_by_side({way: (run.start, run.wait) for way, run in runs.items()}, options.seconds, title)
    equal = {way: float((found[way] == found["bound"]).mean()) for way in found if way != "bound"}
    results.add(title, milliseconds=ms, equal=equal)
    cells = [f"{way} {each:.3f} ms" + (f" ({equal[way]:.4%})" if way in equal else "") for way, each in ms.items()]
    print(f"{title:32s} {', '.join(cells)}", flush=True)


def main() -> int:
    arguments = parser("benchmarks.unit", __doc__, 1.0)
    arguments.add_argument("--size", type=int, help="texels along a side (default 4096 on a GPU, else 64)")
    arguments.add_argument("--ways", default="", help="a regular expression: CUDA, bound, hardware, float")
    options = arguments.parse_args()
    size = options.size or (4096 if on_gpu() else 64)
    results = Results(options, size=size)
    for title, make in CASES.items():
        if re.search(options.only, title):
            row(title, make(size), options, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
