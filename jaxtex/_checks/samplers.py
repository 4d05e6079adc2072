"""Checks of samplers: that they fit the texels and the operation of a call."""

import numpy as np
from jax.typing import DTypeLike

from .._tables.address_rules import AddressRule
from .._tables.storage_formats import Decoding, StorageFormat, known_format
from ..modes import Arithmetic, FilterMode, ReadMode, TextureKind
from ..sampler import Sampler
from ..texture import Texture
from . import hints


def check_sampler(
    name: str, kind: TextureKind, stored: DTypeLike, num_levels: int, width: int, sampler: Sampler
) -> None:
    """Checks that filters blend the texels, coordinates fit every level, and taps reach one texel across a seam.

    Args:
        stored: the dtype of the texels.
        width: the size of the finest level along x.
    """
    stored = np.dtype(stored)
    row = known_format(stored) or StorageFormat(stored.name, floating=False)
    if sampler.decoding is Decoding.SRGB and not row.srgb:
        raise ValueError(
            f"{name}: srgb=True decodes uint8 texels, and the texture holds {row.name}; leave srgb out, or store the "
            f"codes as uint8."
        )
    if sampler.decoding is not Decoding.ELEMENT and row.fraction_bits is None:
        raise ValueError(
            f"{name}: read_mode='normalized_float' applies to 8- and 16-bit integer texels, and the texture holds "
            f"{row.name}; use read_mode='element'."
        )
    elements = sampler.decoding is Decoding.ELEMENT and not row.blends
    if elements and sampler.kernel.blends:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter)!r} cannot blend {stored} texels read as elements; use "
            f"read_mode='normalized_float' (8 and 16 bits), filter_mode='point', or convert the texels to float32."
        )
    if elements and num_levels > 1 and sampler.mipmap_filter_mode is not FilterMode.POINT:
        raise ValueError(
            f"{name}: mipmap_filter_mode='linear' cannot blend {stored} texels read as elements; use "
            f"mipmap_filter_mode='point'."
        )
    if num_levels > 1 and not sampler.normalized_coords and not kind.is_cube:
        raise ValueError(
            f"{name}: normalized_coords=False, but the texture has {num_levels} mip levels of different sizes; use "
            f"normalized coordinates."
        )
    # Reads across the seams of a cubemap ignore address modes, but refuse wrong ones.
    rules = check_modes(name, sampler, kind.texel_ndim, 0 if kind.is_cube and sampler.seamless_cubemap else width)
    if kind.is_cube and sampler.seamless_cubemap and rules[0].num_axes > 1:
        raise ValueError(
            f"{name}: address_mode={rules[0].name!r} is given for a read across the seams of a cubemap, which has no "
            f"poles; leave address_mode out, or use seamless_cubemap=False."
        )
    if kind.is_cube and sampler.seamless_cubemap and sampler.kernel.reach > 1:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter)!r} reaches more than one texel across the seams of a "
            f"cubemap; use 'linear', or seamless_cubemap=False."
        )
    if kind.is_cube and sampler.seamless_cubemap and sampler.limit is not None and sampler.kernel.num_taps > 2:
        raise ValueError(
            f"{name}: limit={str(sampler.limit)!r} is given for a read across the seams of a cubemap, whose corners "
            f"lack a tap; use seamless_cubemap=False, or leave limit out."
        )
    if sampler.limit is not None and row.parts is not None:
        raise ValueError(
            f"{name}: limit={str(sampler.limit)!r} is given for {stored} texels, and complex numbers have no order; "
            f"leave limit out."
        )
    if sampler.arithmetic is Arithmetic.HARDWARE and not row.on_hardware:
        raise ValueError(
            f"{name}: arithmetic='hardware' is given for {stored} texels, which no texture unit has; use "
            f"arithmetic='float', or {'two channels of' if row.parts else 'convert the texels to'} float32."
        )


def check_modes(name: str, sampler: Sampler, ndim: int, width: int) -> tuple[AddressRule, ...]:
    """The address rules of the filtered axes, x first. A sphere needs an even width."""
    rules = sampler.address_rules(ndim, name=name)
    if rules[0].even_width and width % 2:
        raise ValueError(
            f"{name}: the address mode is {rules[0].name!r}, which continues a row half of its width away, and the "
            f"texture is {width} texels wide; resize it to an even width, or use another mode."
        )
    return rules


def check_on_knots(name: str, texture: Texture, sampler: Sampler, ddx: object = None, key: object = None) -> None:
    """Checks that the filter supports knots, and that these include edges if an address mode needs them."""
    if texture.knots is None:
        return
    if not sampler.kernel.on_knots:
        raise ValueError(
            f"{name}: filter_mode={str(sampler.filter)!r} is given for a texture with knots, whose texels are not "
            f"evenly spaced; use 'point', 'linear' or 'lagrange'."
        )
    for refused, argument, reason in (
        (sampler.arithmetic is Arithmetic.HARDWARE, "arithmetic='hardware'", "no texture unit has knots"),
        (ddx is not None, "ddx", "a footprint is in texels"),
        (key is not None and sampler.kernel.num_taps > 2, "key", "only the point and the linear filter draw there"),
    ):
        if refused:
            raise ValueError(f"{name}: {argument} is given for a texture with knots, and {reason}; leave it out.")
    sizes, rules = texture.shape[-1 - texture.kind.texel_ndim : -1][::-1], sampler.address_rules(len(texture.knots))
    for axis, knots, size, rule in zip("xyz", texture.knots, sizes, rules):
        if knots is not None and knots.shape[-1] == size and not rule.saturates:
            raise ValueError(
                f"{name}: the address mode of {axis} is {rule.name!r}, which continues the axis at its edges, and the "
                f"{size} knots of {axis} have none; pass {size + 2} knots, the first and the last of which are edges."
            )
    if hints.is_on():
        hints.mention_disorder(name, texture.knots)


def check_adjoint(name: str, sampler: Sampler) -> None:
    """Checks that a splat has a read of floating texels to be the adjoint of."""
    if sampler.read_mode is not ReadMode.ELEMENT:
        raise ValueError(
            f"{name}: sampler has read_mode='normalized_float', and {name} makes floating texels; leave it out."
        )
    if sampler.limit is not None:
        raise ValueError(
            f"{name}: sampler has limit={str(sampler.limit)!r}, and a limited read is not linear in the texels, so "
            "that it has no adjoint; leave it out."
        )
    if sampler.arithmetic is Arithmetic.HARDWARE:
        raise ValueError(
            f"{name}: sampler has arithmetic='hardware', and no texture unit splats; use arithmetic='float'."
        )
