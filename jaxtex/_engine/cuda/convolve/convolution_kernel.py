"""The kernels of a convolution with a symmetric filter along one axis."""

import math
from pathlib import Path

import jax
import numpy as np

from ..build.launch import THIS_GPU, Kernel, Launcher
from ..build.source import fill, read_source, scalars, warp
from ..trace.elementwise import literal

FOLDER = Path(__file__).parent
THREADS, LANES = 128, 32
# Rows of at least so many numbers are read side by side by the threads that compute them.
WIDE = 32
# The outputs of a thread across rows, and the numbers of a warp along them.
ACROSS, ALONG = 16, 512
NAME = "texture_convolve"


def convolve(
    values: jax.Array, *, weights: tuple[float, ...], axis: int, full: bool, launcher: Launcher = THIS_GPU
) -> jax.Array:
    """`jaxtex._engine.rules.convolution.convolved`."""
    outer, length, inner = math.prod(values.shape[:axis]), values.shape[axis], math.prod(values.shape[axis + 1 :])
    reach = len(weights) - 1
    results = length + (2 if full else -2) * reach
    across = inner >= WIDE
    steps = ACROSS if across else min(max(1, ALONG // inner), results)
    chunks = -(-results // steps)
    source = fill(
        read_source(FOLDER / ("convolve_across.cu" if across else "convolve_along.cu")),
        name=NAME,
        threads=THREADS,
        weights=", ".join(literal(w, np.dtype(np.float32)) for w in weights),
        reach=reach,
        before=2 * reach if full else 0,
        outer=outer,
        inner=inner,
        length=length,
        results=results,
        steps=steps,
        chunks=chunks,
    )
    blocks, threads = (-(-outer * chunks * inner // THREADS), THREADS) if across else (outer * chunks, LANES)
    shape = (*values.shape[:axis], results, *values.shape[axis + 1 :])
    kernel = Kernel("\n".join((scalars(), warp(), source)), NAME, blocks, threads)
    return launcher.run(kernel, [values], [jax.ShapeDtypeStruct(shape, values.dtype)])[0]
