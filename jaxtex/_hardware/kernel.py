"""A read as a texture unit computes it, in a kernel of a GPU."""

import jax

from .._engine.compute.operators import LoadTexel, color_outside
from .._engine.cuda.build.launch import THIS_GPU, Launcher
from .._engine.cuda.read.read_kernel import read_each_sample
from .._engine.describe.spec import Coords, ReadSpec
from .._engine.forms.gpu_kernels import supports_bordered_read
from .read import value

__all__ = ["read_in_kernel", "supports_bordered_read"]


def read_in_kernel(
    texels: jax.Array,
    color: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    batch: int,
    launcher: Launcher = THIS_GPU,
) -> jax.Array:
    """`read.read_array` over `batch` leading axes, on which an operand has their size or 1."""

    def value_of(load_texel: LoadTexel, coords: Coords, color: jax.Array | None) -> jax.Array:
        stored = lambda address: color_outside(address, load_texel(address), color)
        return value(stored, coords, spec, texels.dtype)

    # The products that enter sums are exact; or of codes for which one rounding and two agree, in `ratio`; or of a sum
    # that is only near the exact one. So `value` has the same bits wherever a compiler rounds once; coordinates, which
    # may be any function's, do not.
    name = "texture_unit_read"
    return read_each_sample(value_of, texels, color, operands, spec, batch, name, launcher, exact=True)
