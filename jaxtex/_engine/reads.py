"""Whole reads: in float or hardware arithmetic, one or several along a footprint, with the colour of the border."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .. import _hardware
from .._arguments import ReadArguments
from ..modes import AddressMode, ReadMode
from ..sampler import Sampler
from ..texture import Texture
from . import plan, primitives
from .operators import coverage
from .plan import Layout, Look


def layout_of(texture: Texture) -> Layout:
    return Layout(texture.kind, texture.shape, texture.num_levels)


def read(texture: Texture, look: Look, read_mode: ReadMode, total: np.dtype, deterministic: bool = False) -> jax.Array:
    """One read: the engine's, which is zero outside, plus the border colour for what lies outside."""
    out = primitives.read(texture.texels, look.operands, look.axes, read_mode, total, deterministic, look.grid)
    if texture.border_color is not None and any(axis.address is AddressMode.BORDER for axis in look.axes):
        out = add_border(out, texture.border_color, look)
    return out


def add_border(out: jax.Array, color: jax.Array, look: Look) -> jax.Array:
    """A read with zero outside, plus the border colour times the weight outside. Fully inside, no bit changes."""

    @jax.checkpoint
    def outside(*operands):
        inside, everything = coverage(look.grid(*operands), look.axes)
        return (1 - inside).astype(out.dtype), everything

    weight, everything = outside(*look.operands)
    color = jnp.broadcast_to(color.astype(out.dtype), out.shape)
    return jnp.where(everything[..., None], out, out + weight[..., None] * color)


def mean_read(texture: Texture, where: ReadArguments, sampler: Sampler, total: np.dtype) -> jax.Array:
    """The read that `sampler` asks for, or the mean of those along a footprint."""
    layout = layout_of(texture)
    reach = plan.reach(layout, where, sampler)
    if reach.reads is None:
        look = plan.only_look(layout, reach, sampler)
        return read(texture, look, sampler.decoding, total, sampler.deterministic)

    @jax.checkpoint
    def one(number: jax.Array) -> jax.Array:
        look, weight = plan.look_along(layout, reach, sampler, number)
        return read(texture, look, sampler.decoding, total, sampler.deterministic) * weight[..., None].astype(total)

    return summed(one, sampler.max_anisotropy, reach.reads.dtype)


def exact_read(texture: Texture, look: Look, read_mode: ReadMode, total: np.dtype) -> jax.Array:
    """One read of a texture unit."""
    color = texture.border_color
    return _hardware.read(texture.texels, color, look.operands, look.axes, read_mode, look.grid).astype(total)


def hardware_read(texture: Texture, where: ReadArguments, sampler: Sampler, total: np.dtype) -> jax.Array:
    """The read of a texture unit; of several along a footprint each is exact, and their mean a sum of floats."""
    layout = layout_of(texture)
    reach = plan.hardware_reach(layout, where, sampler)
    read = lambda look: exact_read(texture, look, sampler.decoding, total)
    if reach.reads is None:
        return read(plan.hardware_look(layout, reach, sampler))

    def one(number: jax.Array) -> jax.Array:
        look, weight = plan.hardware_look_along(layout, reach, sampler, number)
        return jnp.where(weight[..., None] > 0, read(look) * weight[..., None].astype(total), 0)

    return summed(one, _hardware.even(sampler.max_anisotropy), np.dtype(np.float32))


def summed(one: Callable[[jax.Array], jax.Array], count: int, dtype: np.dtype) -> jax.Array:
    """The sum of ``one(1)`` to ``one(count)``, one after the other."""
    numbers = jnp.arange(1, count + 1, dtype=dtype)
    return jax.lax.scan(lambda sum, number: (sum + one(number), None), one(numbers[0]), numbers[1:])[0]
