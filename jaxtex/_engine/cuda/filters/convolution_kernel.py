"""The kernels of a convolution with a symmetric filter along one axis."""

import math

import jax

from ..build import launch
from ..build.arrays import ArrayRole, KernelArray, KernelArrays
from ..build.launch import LANES, Kernel
from ..build.source import SCALARS, Constant, config, header, program

THREADS = 128
# From so many numbers in a row on, adjacent threads compute adjacent numbers (`convolve_across.cu`).
WIDE = 32
# The outputs of a thread in `convolve_across.cu`, and the outputs of a warp in `convolve_along.cu`.
ACROSS, ALONG = 16, 512
NAME = "texture_convolve"
MADE_BY = "convolution_kernel.py"


def convolve(values: jax.Array, *, weights: tuple[float, ...], axis: int, full: bool) -> jax.Array:
    """`jaxtex._engine.rules.filters.convolved`, as a kernel."""
    # The array is rows along the axis. A full convolution has more rows than the values, another one has fewer.
    outer, length, inner = math.prod(values.shape[:axis]), values.shape[axis], math.prod(values.shape[axis + 1 :])
    reach = len(weights) - 1
    results = length + (2 if full else -2) * reach
    # The numbers of a long row are divided among threads; of short rows, a warp has several.
    across = inner >= WIDE
    steps = ACROSS if across else min(max(1, ALONG // inner), results)
    chunks = -(-results // steps)
    blocks, threads = (-(-outer * chunks * inner // THREADS), THREADS) if across else (outer * chunks, LANES)
    # The sizes, as the kernel has them.
    constants = (
        Constant("threads", threads, "of a block"),
        Constant("weight", tuple(map(float, weights)), "of the values at a distance, on both sides"),
        Constant("reach", reach, "the largest distance"),
        Constant("before", 2 * reach if full else 0, "how far the first output lies from the first value"),
        Constant("outer", outer, "how many arrays there are"),
        Constant("length", length, "the rows of an array"),
        Constant("results", results, "the rows of the result of an array"),
        Constant("inner", inner, "the numbers of a row"),
        Constant("steps", steps, "the rows of results of a thread, or of a warp"),
        Constant("chunks", chunks, "the parts of an array, each of `steps` rows of results"),
    )
    # The arrays, the headers and the launch.
    shape = (*values.shape[:axis], results, *values.shape[axis + 1 :])
    result = jax.ShapeDtypeStruct(shape, values.dtype)
    arrays = KernelArrays([KernelArray(ArrayRole.VALUES, values)], [KernelArray(ArrayRole.RESULT, result)])
    headers = {
        "convolve/config.cuh": config(MADE_BY, constants),
        "convolve/traced.cuh": header(
            f"The kernel, by {MADE_BY}; no function of it is traced.",
            (SCALARS, "convolve/config.cuh"),
            arrays.declared(),
            arrays.entry(NAME, "threads"),
        ),
    }
    file = "filters/convolve_across.cu" if across else "filters/convolve_along.cu"
    kernel = Kernel(program(file, headers), NAME, blocks, threads, headers)
    return launch.run(kernel, arrays.arguments, arrays.shapes, arrays.aliases)[0]
