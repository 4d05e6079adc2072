"""The kernels of a texture that lies in three arrays: its own texels, and those beside them that neighbors sent."""

import jax
import jax.numpy as jnp

from ...operators import value as value_at
from ...spec import TEXELS, Coords, ReadSpec, Wrt
from ...texel_walk import holds_taps, inner_part
from ..cuda_c import THIS_GPU, Launcher
from ..parts import Edged, Part, Place, Slice
from .adjoint_kernel import adjoint
from .read_kernel import read_each_sample, value_of


def edged_read(
    own: jax.Array,
    before: jax.Array,
    after: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    missing: float,
    launcher: Launcher = THIS_GPU,
) -> jax.Array:
    """The read in two steps: of all samples in `own`, which needs nothing of neighbors; then of those at the edges."""
    texels, axes = Edged(own, before, after), spec.axes

    def marked(load_texel, coords: Coords, color: None) -> jax.Array:
        found = value_at(load_texel, coords, spec, color)
        return jnp.where(holds_taps(coords, axes)[..., None], found, missing)

    # A sample that lies a texel deep in `own` is not read again: kernels may differ in the last bit of a coordinate.
    at_edges = lambda *coords: ~holds_taps(*inner_part(coords, axes, before.shape[0] + 1))
    inner = texels._replace(after=None)
    filled = read_each_sample(value_of(spec), inner, None, operands, spec, 0, "texture_read", launcher)
    into = Part(filled, Place(filled.shape, Slice(filled.shape[-1], 0, filled.shape[-1])))
    name = "texture_read_edges"
    return read_each_sample(marked, texels, None, operands, spec, 0, name, launcher, into=into, only=at_edges)


def edged_splat(
    values: jax.Array, *operands: jax.Array, spec: ReadSpec, reach: int, launcher: Launcher = THIS_GPU
) -> tuple[jax.Array, ...]:
    """The sums at own texels, at those before, and at those after."""
    found = adjoint(values, None, operands, spec.adjoint(values.dtype), (TEXELS,), spec.dtype, 0, launcher, reach)
    return found[:3]


def edged_pullback(
    cotangent: jax.Array,
    own: jax.Array,
    before: jax.Array,
    after: jax.Array,
    *operands: jax.Array,
    spec: ReadSpec,
    wrt: Wrt,
    launcher: Launcher = THIS_GPU,
) -> tuple[jax.Array, ...]:
    """The cotangents of the three arrays, if texels are in `wrt`, and of operands."""
    texels = Edged(own, before, after)
    return adjoint(cotangent, texels, operands, spec, wrt, own.dtype, 0, launcher, before.shape[0])
