"""Reads that leave out invalid texels: normalized interpolation.

An invalid texel weighs nothing, and the others share its weight. With the weights w of a read, the texels T and a mask
m, 1 where a texel is valid,

    value = sum(w m T) / sum(w m)

Both sums come from one read: of the texels, with zero in place of those that are invalid, and of the mask, as one more
channel. All filters, levels and sums of a read are linear in the texels, so nothing else of it changes. The divisor is
the share of the weights that is valid. Where it is too small, a number takes the place of the quotient.

Source: H. Knutsson and C.-F. Westin, "Normalized and Differential Convolution", 1993.
"""

import dataclasses
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import check_operand
from .._checks.numbers import as_array, as_number, at_full_width
from .._checks.words import described
from .._engine.compute.texel_value import decode
from .._engine.describe.plan import ReadArguments
from .._jax.calls import typed_jit
from .._tables.filter_kernels import FilterKernel
from .._tables.storage_formats import Decoding, complex_dtype, is_complex, sum_dtype
from ..modes import Arithmetic
from ..sampler import Sampler
from ..texture import Texture, check_color
from . import calls

# Which texels count: a mask, or those whose channels are all finite.
ValidLike: TypeAlias = ArrayLike | Literal["finite"]
# The least share that counts. Below it, a weight is a rounding of the coordinates, such as that of a rotation by 360
# degrees. Weights of both signs nearly cancel where few of the taps are valid: a quotient by a quarter is at most four
# times as large as the sum of the taps' contributions.
LEAST, LEAST_SIGNED = 2.0**-10, 2.0**-2
# A share of 1 up to so many roundings is 1, so that a read of valid texels alone has the bits of a read without a mask.
ROUNDINGS = 8


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Valid:
    """Which texels of an image count, and the result where too few do. The default takes finite texels.

    Attributes:
        mask: of bool, in the shape of the image, or without its channels; `None` takes texels that are finite in all
            channels.
        fill: the result where the valid share is too small, a number or (C,); `None` is NaN, and 0 for integers.
        least: the valid share from which on the quotient is taken, as the caller has it.
    """

    mask: Any = None
    fill: Any = None
    least: float = dataclasses.field(default=0.0, metadata={"static": True})

    def least_by(self, kernel: FilterKernel) -> float:
        """The valid share from which on the quotient by a filter is taken."""
        return max(self.least, LEAST_SIGNED if kernel.signed else LEAST)

    def mask_of(self, texels: jax.Array) -> jax.Array:
        """The mask of texels, with a last axis of one channel, or of one for each channel of the texels."""
        if self.mask is None:
            return jnp.isfinite(texels).all(-1, keepdims=True)
        mask = jnp.asarray(self.mask)
        return mask if mask.ndim == texels.ndim else mask[..., None]


# Checks


def check_valid(
    name: str, valid: Any, min_valid: Any, fill: Any, image: Any, channels: int | None, argument: str
) -> Valid | None:
    """The arguments of a call, or `None` if all texels count.

    Args:
        image: an array, or anything with a shape and a dtype; the last axis is of channels, if there are any.
        channels: the number of values that a `fill` of one axis has; `None` if it has no axis.
        argument: the name of the image.
    """
    least = as_number(name, "min_valid", min_valid, lambda n: 0 <= n <= 1, "a number from 0 to 1, a share of weights")
    if valid is None:
        for given, word in ((fill is not None, "fill"), (least > 0, "min_valid")):
            if given:
                raise ValueError(
                    f"{name}: {word} is given, but valid is not, so that every texel counts; pass valid='finite' or a "
                    f"mask, or leave {word} out."
                )
        return None
    mask = None
    if not (isinstance(valid, str) and valid == "finite"):
        mask = check_mask(name, valid, image.shape, channels is not None, argument)
    if fill is not None:
        fill = as_array(at_full_width(name, "fill", fill, exact=False))
        check_color(name, fill, channels or 1, "fill", image.dtype)
        if channels is None and fill.shape:
            raise ValueError(f"{name}: fill has shape {fill.shape}, expected a number.")
    return Valid(mask, fill, least)


def check_mask(name: str, mask: Any, shape: tuple[int, ...], has_channels: bool, argument: str) -> Any:
    """A mask of bool in one of the shapes that fit an image."""
    if isinstance(mask, str | bytes):
        raise TypeError(f"{name}: valid is {mask!r}, expected 'finite' or an array of bool; pass one.")
    check_operand(name, "valid", mask)
    array = as_array(mask)
    if array.dtype != jnp.bool_:
        raise TypeError(
            f"{name}: valid holds {array.dtype}, expected 'finite' or an array of bool, true where {argument} is "
            f"valid; compare the array, such as valid > 0."
        )
    fitting = [shape, shape[:-1]] if has_channels else [shape]
    if array.shape not in fitting:
        expected = " or ".join(map(str, dict.fromkeys(reversed(fitting))))
        raise ValueError(
            f"{name}: valid is {described(array)}, expected {expected}, that of {argument}"
            f"{' without or with its channels' if has_channels else ''}."
        )
    return array


def check_weighs(name: str, sampler: Sampler) -> None:
    """Checks that a sampler reads weighted sums, in float arithmetic."""
    for refused, option, reason in (
        (sampler.arithmetic is Arithmetic.HARDWARE, "arithmetic='hardware'", "no texture unit leaves out texels"),
        (sampler.limit is not None, f"limit={str(sampler.limit)!r}", "a limited read is no weighted sum"),
    ):
        if refused:
            raise ValueError(
                f"{name}: valid is given, and sampler has {option}, but {reason}; leave out one of the two."
            )


def check_leaves_out(name: str, texture: Texture, sampler: Sampler, key: Any, valid: Valid) -> None:
    """Checks that a read of a texture can leave out texels."""
    check_weighs(name, sampler)
    if key is not None:
        raise ValueError(
            f"{name}: valid is given with a key, and the mean of drawn texels is no mean of the valid ones; leave out "
            "one of the two."
        )
    if texture.sampler == sampler:
        raise ValueError(
            f"{name}: valid is given for a texture that is bound to a texture unit, which leaves out no texels; pass "
            "the texture that was bound."
        )
    if valid.mask is not None and texture.level_shapes:
        raise ValueError(
            f"{name}: valid is a mask, and the texture has {texture.num_levels} mip levels, each with texels of its "
            "own; store NaN in place of texels that are invalid, and pass valid='finite'."
        )


# The read of a texture


@typed_jit("sampler", "dtype")
def sample_valid(
    texture: Texture, arguments: ReadArguments, valid: Valid, *, sampler: Sampler, dtype: np.dtype
) -> jax.Array:
    """The read of valid texels that `sampler` asks for, S + (C,) of `dtype`."""
    channels, decoding, texels = texture.num_channels, sampler.decoding, texture.texels
    sums = dtype_of_sums(texture.dtype, dtype, *(a.dtype for a in jax.tree.leaves(arguments)))
    if decoding is Decoding.SRGB and channels == 2:
        # The number of channels tells which of them are colors, and one more would make a color of the alpha.
        texels, decoding = decode(texels, decoding, sums), Decoding.ELEMENT
        sampler = dataclasses.replace(sampler, srgb=False, read_mode="element")
    mask = valid.mask_of(texels)
    whole = with_mask(texels, mask, decoding)
    outside = None
    if any(rule.has_outside for rule in sampler.address_rules(texture.kind.texel_ndim)):
        number = sums if decoding is not Decoding.ELEMENT or not jnp.issubdtype(dtype, jnp.integer) else dtype
        outside = color_with_mask(texture.border_color, channels, mask.shape[-1], number)
    # A texture with more channels, which is not bound to a texture unit.
    shapes = texture.level_shapes and tuple((*shape[:-1], whole.shape[-1]) for shape in texture.level_shapes)
    masked = Texture(whole, outside, texture.kind, shapes, texture.cut, texture.knots)
    values = calls.sample(masked, arguments, sampler=sampler, dtype=sums)
    return quotient(values, channels, valid.fill, valid.least_by(sampler.kernel), dtype)


def dtype_of_sums(stored: Any, result: Any, *others: Any) -> np.dtype[Any]:
    """The dtype in which the sums of a quotient are read: that of a result of integers or bool, or else a wide one."""
    if not jnp.issubdtype(result, jnp.inexact):
        return np.dtype(result)
    sums = sum_dtype(stored, result, *others)
    return complex_dtype(sums) if is_complex(result) else sums


# Texels and sums, for all rooms


def with_mask(texels: jax.Array, mask: jax.Array, decoding: Decoding = Decoding.ELEMENT) -> jax.Array:
    """Texels with zero in place of those that are invalid, and with the channels of their mask behind their own.

    Args:
        mask: with a last axis of one channel, or of one for each channel of the texels.
        decoding: of the texels in the read; the mask has the code of 1.
    """
    is_code = decoding is not Decoding.ELEMENT
    one = jnp.asarray(jnp.iinfo(texels.dtype).max if is_code else 1, texels.dtype)
    zero = jnp.zeros((), texels.dtype)
    return jnp.concatenate([jnp.where(mask, texels, zero), jnp.where(mask, one, zero)], -1)


def color_with_mask(color: Any, channels: int, masks: int, dtype: Any) -> jax.Array:
    """The color outside with that of the mask: 1 where the color is finite, which then counts as valid."""
    given = jnp.zeros((), dtype) if color is None else jnp.asarray(color)
    given = jnp.broadcast_to(given, (channels,)).astype(dtype)
    finite = jnp.isfinite(given)
    return with_mask(given, finite if masks == channels else finite.all(keepdims=True))


def quotient(values: jax.Array, channels: int, fill: Any, least: float, dtype: np.dtype[Any]) -> jax.Array:
    """The values of a read, S + (C,) of `dtype`, from the sums of texels and of their mask, S + (C + 1,) or S + (2 C,).

    Args:
        channels: C.
        least: the valid share from which on the quotient is taken.
    """
    sums, share = values[..., :channels], values[..., channels:]
    inexact = jnp.issubdtype(values.dtype, jnp.inexact)
    empty = jnp.asarray((np.nan if inexact else 0) if fill is None else fill).astype(values.dtype)
    empty = jnp.broadcast_to(empty, sums.shape)
    if not inexact:  # single texels, as they are stored
        return jnp.where(share != jnp.zeros((), share.dtype), sums, empty).astype(dtype)
    share = share.real
    known = jax.lax.stop_gradient(share)
    rounded = jnp.abs(1 - known) <= ROUNDINGS * float(jnp.finfo(share.dtype).eps)
    share = share + jnp.where(rounded, 1 - known, 0)
    # Where the share is too small, nothing is divided by it, not in derivatives either.
    enough = known >= least
    return jnp.where(enough, sums / jnp.where(enough, share, 1).astype(sums.dtype), empty).astype(dtype)
