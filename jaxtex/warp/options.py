"""How a warp reads an image: the options that all warps share, resolved in one place."""

import dataclasses
from typing import Any

from ..modes import AddressMode, FilterMode
from ..sampler import Sampler

DEFAULT_FILTER = Sampler().filter_mode


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """How an image is read, and what becomes of the result.

    Attributes:
        sampler: with the filter and the address modes to use; its units of coordinates are ignored.
        border_color: in units of the image's values, a scalar or (C,); `None` is zero.
        antialias: whether to smooth the image as far as the output shrinks it.
        dtype: of the result; `None` is that of the image.
    """

    sampler: Sampler
    border_color: Any = None
    antialias: bool = False
    dtype: Any = None


def read_options(
    name: str,
    sampler: Sampler | None,
    filter: Any,
    address: Any,
    border_color: Any,
    antialias: bool,
    dtype: Any,
    default_address: str | tuple[str, ...] = AddressMode.BORDER,
) -> ReadOptions:
    """The options of a public function, from its arguments.

    Args:
        name: of the public function, for errors.
        default_address: the address mode if neither `address` nor `sampler` sets one.
    """
    return ReadOptions(resolve_sampler(name, sampler, filter, address, default_address), border_color, antialias, dtype)


def resolve_sampler(
    name: str,
    sampler: Sampler | None,
    filter: Any,
    address: Any,
    default_address: str | tuple[str, ...] = AddressMode.BORDER,
) -> Sampler:
    """The sampler of a warp: `filter` and `address`, else what `sampler` sets, else linear and `default_address`.

    Raises:
        ValueError: if an argument and the sampler contradict each other, or a mode is unknown.
        TypeError: if `sampler` is not a `Sampler`.
    """
    check_sampler_type(name, sampler)
    address_set = address_set_by(sampler)
    sampler = sampler or Sampler()
    changes = {}
    if filter is not None:
        changes["filter_mode"] = filter_mode(name, filter)
        if sampler.filter_mode not in (DEFAULT_FILTER, changes["filter_mode"]):
            raise ValueError(contradiction(name, "filter", filter, "filter_mode", sampler.filter_mode))
    if address is not None:
        changes["address_mode"] = address_mode(name, address)
        if address_set not in (None, changes["address_mode"]):
            raise ValueError(contradiction(name, "address", address, "address_mode", address_set))
    elif address_set is None:
        changes["address_mode"] = default_address
    return dataclasses.replace(sampler, **changes)


def address_set_by(sampler: Sampler | None) -> Any:
    """The address mode that a sampler was made with; `None` if there is none."""
    return None if sampler is None else sampler.address_mode


def check_sampler_type(name: str, sampler: Any) -> None:
    if not isinstance(sampler, Sampler | None):
        raise TypeError(
            f"{name}: sampler is {sampler!r}, expected a jaxtex.Sampler; filters and address modes have arguments "
            f"of their own."
        )


def filter_mode(name: str, filter: Any) -> FilterMode:
    try:
        return FilterMode(Sampler(filter_mode=filter).filter_mode)
    except ValueError:
        raise ValueError(f"{name}: filter is {filter!r}, expected one of {listed(FilterMode)}.") from None


def address_mode(name: str, address: Any) -> AddressMode | tuple[AddressMode, ...]:
    try:
        return Sampler(address_mode=address).address_mode  # pyright: ignore[reportReturnType]
    except ValueError:
        raise ValueError(
            f"{name}: address is {address!r}, expected one of {listed(AddressMode)}, or a tuple with one for each "
            f"axis, x first."
        ) from None


def contradiction(name: str, argument: str, value: Any, field: str, sets: Any) -> str:
    return (
        f"{name}: {argument} is {value!r}, but sampler has {field}={worded(sets)}; leave {argument} out, or make the "
        f"sampler without {field}."
    )


def listed(modes: Any) -> str:
    return ", ".join(repr(mode.value) for mode in modes)


def worded(value: Any) -> str:
    return repr(tuple(map(str, value)) if isinstance(value, tuple) else str(value))
