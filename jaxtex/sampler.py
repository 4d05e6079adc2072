"""The static half of a read: how a texture is sampled."""

import dataclasses
import math
from enum import StrEnum

import jax

from .modes import AddressMode, Arithmetic, FilterMode, ReadMode

# Options with a place in the interface whose machinery is still to come: only these values are accepted.
FIXED_FOR_NOW = {
    "srgb": False,
    "mipmap_filter_mode": FilterMode.POINT,
    "mipmap_level_bias": 0.0,
    "min_mipmap_level_clamp": 0.0,
    "max_mipmap_level_clamp": math.inf,
    "max_anisotropy": 1,
    "seamless_cubemap": True,
    "arithmetic": Arithmetic.FLOAT,
    "deterministic": False,
}
ADDRESS_MODES = tuple(mode for mode in AddressMode if mode is not AddressMode.LAST)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Sampler:
    """How a texture is read: address, filter and read modes.

    A sampler holds no arrays. It is frozen, hashable and a pytree without leaves, so it can be closed over,
    passed to a function under `jax.jit` or `jax.checkpoint`, or used as a static argument; two samplers with
    equal fields compile once.

    Args:
        address_mode: what a tap outside the texture reads; one mode for every axis, or a tuple with one mode
            an axis in x, y, z order.

            - ``"clamp"``: the nearest texel of the edge.
            - ``"border"``: the texture's border colour, zero if it has none; decided tap by tap.
            - ``"wrap"``: the texture repeats with period N.
            - ``"mirror"``: it repeats mirrored, the edge texel twice, with period 2 N (as CUDA does).
            - ``"reflect"``: it repeats mirrored, the edge texel once, with period 2 (N - 1).
        filter_mode: ``"point"`` (the texel that holds the position), ``"linear"`` (2 texels an axis) or
            ``"cubic"`` (4 texels an axis).
        cubic_coefficient: the free parameter of the cubic kernel: -0.5 is Catmull-Rom, -0.75 is what PyTorch
            and OpenCV use. Only ``filter_mode="cubic"`` looks at it.
        read_mode: ``"element"`` returns texels as stored; ``"normalized_float"`` maps 8- and 16-bit integer
            texels to [0, 1], or [-1, 1] if signed, before filtering.
        normalized_coords: whether coordinates run from 0 to 1 across the texture, or from 0 to N. Texel
            centres are at ``(i + 0.5) / N`` or ``i + 0.5``.
        srgb, mipmap_filter_mode, mipmap_level_bias, min_mipmap_level_clamp, max_mipmap_level_clamp,
            max_anisotropy, seamless_cubemap, arithmetic, deterministic: these have a place in the interface,
            but only their default values are accepted so far.

    Raises:
        ValueError: if a mode is unknown, or an option is set that does not exist yet.

    Source: the modes are those of the CUDA C++ Programming Guide, "Texture and Surface Memory"; the cubic
    kernel is R. Keys, "Cubic convolution interpolation for digital image processing", 1981.

    Example:
        >>> import jaxtex as jt
        >>> jt.Sampler(address_mode=("wrap", "clamp"), filter_mode="cubic").address_mode
        (<AddressMode.WRAP: 'wrap'>, <AddressMode.CLAMP: 'clamp'>)
    """

    address_mode: str | tuple[str, ...] = "clamp"
    filter_mode: str = "linear"
    cubic_coefficient: float = -0.5
    read_mode: str = "element"
    normalized_coords: bool = True
    srgb: bool = False
    mipmap_filter_mode: str = "point"
    mipmap_level_bias: float = 0.0
    min_mipmap_level_clamp: float = 0.0
    max_mipmap_level_clamp: float = math.inf
    max_anisotropy: int = 1
    seamless_cubemap: bool = True
    arithmetic: str = "float"
    deterministic: bool = False

    def __post_init__(self):
        def choose(name: str, value: object, options: tuple[StrEnum, ...]):
            if value not in options:
                listed = ", ".join(repr(option.value) for option in options)
                raise ValueError(f"Sampler: {name} is {value!r}, expected one of {listed}.")
            return options[options.index(value)]

        modes = self.address_mode
        if isinstance(modes, tuple | list):
            modes = tuple(choose("address_mode", mode, ADDRESS_MODES) for mode in modes)
        else:
            modes = choose("address_mode", modes, ADDRESS_MODES)
        object.__setattr__(self, "address_mode", modes)
        object.__setattr__(self, "cubic_coefficient", float(self.cubic_coefficient))
        for name, kind in (
            ("filter_mode", FilterMode),
            ("read_mode", ReadMode),
            ("arithmetic", Arithmetic),
            ("mipmap_filter_mode", FilterMode),
        ):
            object.__setattr__(self, name, choose(name, getattr(self, name), tuple(kind)))
        for name in ("normalized_coords", "srgb", "seamless_cubemap", "deterministic"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"Sampler: {name} is {getattr(self, name)!r}, expected True or False.")
        for name, only in FIXED_FOR_NOW.items():
            if getattr(self, name) != only:
                shown = only.value if isinstance(only, StrEnum) else only
                raise ValueError(
                    f"Sampler: {name} is {getattr(self, name)!r}, and only {shown!r} is supported so far; "
                    f"leave {name} out."
                )

    def address_modes(self, ndim: int) -> tuple[AddressMode, ...]:
        """The address mode of each axis, in x, y, z order."""
        modes = self.address_mode
        if isinstance(modes, AddressMode):
            return (modes,) * ndim
        if len(modes) != ndim:
            raise ValueError(
                f"Sampler: address_mode has {len(modes)} modes, but the texture has {ndim} filtered axes; "
                f"give one mode for all axes, or {ndim} in x, y, z order."
            )
        return modes  # pyright: ignore[reportReturnType]
