"""Sets part of a 1D surface to a value, whatever its type: the template `surf1Dmemset` of CUDA programs.

    template<typename T> __global__ void surf1Dmemset(int base, T value, size_t N) {
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x)
            surf1Dwrite(value, surface, (base + i) * sizeof(T));
    }

One function handles all types: the dtype and the length of the value determine T. Published host code passes N *
sizeof(T) for N and allocates too much; here N counts elements.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxtex import cuda


@functools.partial(jax.jit, static_argnames="count")
def surf1Dmemset(surface: cuda.SurfaceObject, base: jax.Array, value: jax.Array, count: int) -> cuda.Array:
    """The array of the surface with `value`, a scalar or a vector, in `count` elements starting at `base`."""
    return cuda.surf1Dwrite(value, surface, (base + jnp.arange(count)) * value.nbytes)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Set elements of surfaces of many types.")
    parser.add_argument("--count", type=int, default=16, metavar="N")
    args = parser.parse_args(argv)

    values = {"float": 3.141592654, "int": -1, "uchar": 255, "short2": (1, -2), "float4": (0.5, 1.5, 2.5, 3.5)}
    for name, value in values.items():
        desc = cuda.createChannelDesc(name)
        array = cuda.mallocArray(desc, args.count + 2, 0, cuda.ArrayFlags.SurfaceLoadStore)
        surface = cuda.createSurfaceObject(cuda.ResourceDesc.Array(array))
        texels = np.asarray(surf1Dmemset(surface, np.int32(1), np.asarray(value, desc.dtype), args.count).texels)
        words = {texel.tobytes()[::-1].hex() for texel in texels[1:-1]}
        around = "untouched" if not texels[[0, -1]].any() else "overwritten"
        print(f"{name}: {args.count} times {' '.join(words)}, the elements around {around}")
        if name == "float":
            print(" ".join(f"{texel:.6E}" for texel in texels[1:-1, 0]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
