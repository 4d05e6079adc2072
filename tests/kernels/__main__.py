"""Writes the headers with which editors open the files of kernels: `python -m tests.kernels`.

Each file includes headers that are generated for one kernel. This writes those of a typical kernel of each file to
this folder, where `compile_flags.txt` in the root of the repository lets clangd look for them. The repository keeps
those of one kernel, as an example.
"""

import functools
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._engine.cuda.build import launch
from jaxtex._engine.forms import gpu_kernels

FOLDER = Path(__file__).parent
KEPT = FOLDER / "levels"
IMAGE, SAMPLES = (256, 192, 4), (256, 192)


def read(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y))


def splat(values, x, y):
    return jt.splat(values, (x, y), IMAGE, jt.Sampler(deterministic=True)).texels


def spline(texels):
    return jt.spline_filter(jt.texture2d(texels), jt.Sampler(filter_mode="bspline")).texels


def mip_chain(texels):
    return jt.build_mipmaps(jt.texture2d(texels)).texels


def gradient(function, *args):
    value, pull = jax.vjp(function, *args)
    return pull(jnp.ones_like(value))


# Programs that hold a kernel of each file, and their arguments.
PROGRAMS = (
    (read, (IMAGE, SAMPLES, SAMPLES)),
    (jt.warp.grid_sample, ((2, 64, 32, 48), (2, 24, 40, 2))),
    (functools.partial(gradient, read), (IMAGE, SAMPLES, SAMPLES)),
    (functools.partial(gradient, jt.warp.warp_affine), (IMAGE, (2, 3))),
    (splat, (IMAGE, SAMPLES, SAMPLES)),
    (spline, ((512, 512, 4),)),
    (mip_chain, (IMAGE,)),
    (functools.partial(gradient, mip_chain), (IMAGE,)),
)


def headers():
    """The texts of the headers of one kernel of each file, by their paths in this folder."""
    found = {}

    def noted(kernel, args, results, aliases):
        del args, aliases
        for name, text in kernel.headers.items():
            found.setdefault(name, text)
        return [jnp.zeros(result.shape, result.dtype) for result in results]

    with (
        mock.patch.object(gpu_kernels, "can_compile_kernels", return_value=True),
        mock.patch.object(launch, "run", noted),
    ):
        for program, shapes in PROGRAMS:
            args = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
            jax.jit(lambda *args, program=program: program(*args)).trace(*args).lower(lowering_platforms=("cuda",))
    return found


def write(folder):
    """Writes the headers to a folder, and yields their paths."""
    for name, text in headers().items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        yield path


if __name__ == "__main__":
    print(*write(FOLDER), sep="\n")
