"""The options that all warps share, resolved in one place."""

# pyright: strict, reportUnknownMemberType=false

import dataclasses
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from .._checks.arguments import check_known_dtype
from .._tables.address_rules import ADDRESS_RULES
from ..modes import AddressMode, FilterMode, choose
from ..sampler import FilterModeLike, Sampler
from .types import AddressLike

AddressModes = AddressMode | tuple[AddressMode, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class ReadOptions:
    """How to read an image, and the dtype of the result.

    Attributes:
        sampler: with the filter mode and the address modes of the read. Its `normalized_coords` is ignored.
        border_color: in units of the image's values, a scalar or (C,); ``None`` is zero.
        antialias: whether to smooth the image as far as the output shrinks it.
        dtype: of the result; ``None`` is the dtype of the image.
    """

    sampler: Sampler
    border_color: ArrayLike | None = None
    antialias: bool = False
    dtype: DTypeLike | None = None


def read_options(
    name: str,
    sampler: Sampler | None,
    filter: FilterModeLike | None,
    address: AddressLike | None,
    border_color: ArrayLike | None,
    antialias: bool,
    dtype: DTypeLike | None,
    default_address: AddressModes = AddressMode.BORDER,
) -> ReadOptions:
    """The options of a public function, from its arguments.

    Args:
        name: of the public function, for errors.
        default_address: the address mode if neither `address` nor `sampler` sets one.
    """
    how = resolve_sampler(name, sampler, filter, address, default_address)
    check_shows_outside(name, how, border_color)
    return ReadOptions(how, border_color, antialias, result_dtype(name, dtype))


def result_dtype(name: str, dtype: DTypeLike | None) -> np.dtype[Any] | None:
    """The dtype that a caller asks for: of floating numbers, integers or bool."""
    found = None if dtype is None else check_known_dtype(name, dtype)
    if found is not None and not any(jnp.issubdtype(found, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_)):
        raise TypeError(f"{name}: dtype is {found}, expected a dtype of floating numbers, integers or bool.")
    return found


def check_shows_outside(name: str, sampler: Sampler, color: Any, argument: str = "border_color") -> None:
    """Checks that an address mode of a resolved sampler shows the color that is given for what lies outside."""
    modes = sampler.address_mode if isinstance(sampler.address_mode, tuple) else (sampler.address_mode,)
    rules = [ADDRESS_RULES[AddressMode(mode)] for mode in modes if mode is not None]
    if color is not None and not any(rule.has_outside for rule in rules):
        named = ", ".join(repr(mode) for mode in dict.fromkeys(rule.name for rule in rules))
        raise ValueError(
            f"{name}: {argument} is given, but under the address mode {named} nothing lies outside; leave {argument} "
            f"out, or use the address mode 'border'."
        )


def resolve_sampler(
    name: str,
    sampler: Sampler | None,
    filter: FilterModeLike | None,
    address: AddressLike | None,
    default_address: AddressModes = AddressMode.BORDER,
) -> Sampler:
    """A sampler with the modes of the arguments. A mode that no argument names is the sampler's.

    An address mode that the sampler does not set either is `default_address`, and such a filter is linear.

    Raises:
        ValueError: if an argument contradicts the sampler, or a mode is unknown, or no sampler has it with the rest.
    """
    sampler = sampler or Sampler()
    filter_mode, address_mode = sampler.filter, sampler.address_mode
    if filter is not None:
        chosen = choose(name, "filter", filter, FilterMode)
        if sampler.filter_mode not in (None, chosen):
            raise ValueError(contradiction(name, "filter", filter, "filter_mode", filter_mode))
        filter_mode = chosen
    if address is not None:
        modes = address_modes(name, address)
        if address_mode not in (None, modes):
            raise ValueError(contradiction(name, "address", address, "address_mode", address_mode))
        address_mode = modes
    if address_mode is None:
        address_mode = default_address
    try:
        return dataclasses.replace(sampler, filter_mode=filter_mode, address_mode=address_mode)
    except ValueError as error:  # of the modes beside the other options
        raise ValueError(f"{name}: {str(error).removeprefix('Sampler: ')}") from None


def address_modes(name: str, address: Any) -> AddressModes:
    """The address mode that `address` names, or one for each axis."""
    if isinstance(address, tuple | list):
        return tuple(choose(name, "address", mode, AddressMode) for mode in cast(list[Any], address))
    return choose(name, "address", address, AddressMode)


def contradiction(name: str, argument: str, value: Any, field: str, set_to: Any) -> str:
    shown = tuple(map(str, cast(tuple[Any, ...], set_to))) if isinstance(set_to, tuple) else str(set_to)
    return (
        f"{name}: {argument} is {value!r}, but sampler has {field}={shown!r}; leave {argument} out, or make the "
        f"sampler without {field}."
    )
