"""Copies a photograph from surface to surface: CUDA's `copyKernel`, one thread per texel, with x in bytes.

    uchar4 data;
    surf2Dread(&data, inputSurface, x * 4, y);
    surf2Dwrite(data, outputSurface, x * 4, y);

The output array is donated, so that the copy is written into its memory. The program compares every byte, and reads the
copy again as uint, one number for the same four bytes, and as uchar, byte by byte: red, green, blue, alpha.
"""

import argparse
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from panels import DATA
from PIL import Image

from jaxtex import cuda

PHOTOGRAPH = DATA / "astronaut.jpg"


@functools.partial(jax.jit, donate_argnums=1)
def copy_kernel(source: cuda.SurfaceObject, target: cuda.SurfaceObject) -> cuda.Array:
    """The array of `target` with the texels of `source`, in the memory of `target`."""
    width, height, _ = source.array.extent
    x, y = jnp.arange(width)[None, :], jnp.arange(height)[:, None]
    data = cuda.surf2Dread(source, 4 * x, y)
    return cuda.surf2Dwrite(data, target, 4 * x, y)


def surface(width: int, height: int, texels: np.ndarray | None = None) -> cuda.SurfaceObject:
    desc = cuda.createChannelDesc("uchar4")
    array = cuda.mallocArray(desc, width, height, cuda.ArrayFlags.SurfaceLoadStore)
    if texels is not None:  # widths and pitches are in bytes
        array = cuda.memcpy2DToArray(array, 0, 0, texels, 4 * width, 4 * width, height)
    return cuda.createSurfaceObject(cuda.ResourceDesc.Array(array))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Copy a photograph from surface to surface.")
    parser.add_argument("--photograph", type=Path, default=PHOTOGRAPH)
    parser.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="resize the photograph first")
    args = parser.parse_args(argv)

    image = Image.open(args.photograph).convert("RGBA")
    texels = np.asarray(image.resize(args.size) if args.size else image)
    height, width, _ = texels.shape
    copied = copy_kernel(surface(width, height, texels), surface(width, height))
    pixels = np.asarray(cuda.memcpyFromArray(copied))
    print(f"{pixels.nbytes} bytes copied, equal: {np.array_equal(pixels, texels)}")

    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    words = np.asarray(cuda.surf2Dread(copied, 4 * x, y, T="uint"))
    print(f"read as uint, equal: {np.array_equal(words, texels.view(np.uint32)[..., 0])}")
    row = np.asarray(cuda.surf2Dread(copied, np.arange(4 * width), 0, T="uchar"))
    print(f"read as uchar, equal: {np.array_equal(row, texels[0].ravel())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
