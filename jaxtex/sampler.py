"""The static half of a read: how a texture is sampled."""

import dataclasses
import math
from enum import StrEnum

import jax

from .modes import AddressMode, Arithmetic, FilterMode, ReadMode

# What each option offers: some enumerations have members that are not for callers.
OPTIONS = {
    "address_mode": tuple(mode for mode in AddressMode if mode not in (AddressMode.LAST, AddressMode.SEAM)),
    "filter_mode": tuple(FilterMode),
    "read_mode": (ReadMode.ELEMENT, ReadMode.NORMALIZED_FLOAT),
    "mipmap_filter_mode": (FilterMode.POINT, FilterMode.LINEAR),
    "arithmetic": tuple(Arithmetic),
}
MAX_ANISOTROPY = 16


def choose(name: str, value: object, options: tuple[StrEnum, ...]) -> StrEnum:
    """The option that `value` names."""
    if value not in options:
        listed = ", ".join(repr(option.value) for option in options)
        raise ValueError(f"Sampler: {name} is {value!r}, expected one of {listed}.")
    return options[options.index(value)]


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
        srgb: whether the colours of uint8 texels are sRGB codes, to be decoded before filtering: the first three
            channels, of one or two the first; alpha never. Needs ``read_mode="normalized_float"``.
        mipmap_filter_mode: ``"point"`` reads the level nearest to the level of detail, ``"linear"`` blends the two
            around it.
        mipmap_level_bias: added to a level of detail that is given or follows from a footprint.
        min_mipmap_level_clamp, max_mipmap_level_clamp: bounds of the level of detail; the first wins.
        max_anisotropy: from 1 to 16, how many reads may follow the longer side of a footprint (``ddx``, ``ddy``).
            In hardware arithmetic those of 2D textures follow a texture unit's rules, nearly to the last bit; others
            are read once, at the level of the longer side. Reads come in pairs there: an odd number acts as one less.
        seamless_cubemap: whether a linear read of a cubemap blends across the edges of a face. If not, it is a 2D
            read of the face, with its address modes.
        arithmetic: ``"float"`` computes weights and sums in float32; ``"hardware"`` as an NVIDIA texture unit does,
            in fixed point, to the last bit. See `docs/arithmetic.md`.
        deterministic: whether gradients in texels, and splats, have the same bits in every run. On a GPU the order of
            additions changes from run to run; this makes them such that none rounds, so that the order is of no
            consequence, at two to three times the cost. Of n terms at a texel each is rounded to a multiple of
            ``n^2 / 2^47`` times the largest value, so that the sum of fewer than a thousand keeps as many bits as one
            in floating point.

    Raises:
        ValueError: if a mode is unknown, or options exclude each other.

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
        for name, options in OPTIONS.items():
            value = getattr(self, name)
            several = name == "address_mode" and isinstance(value, tuple | list)
            chosen = tuple(choose(name, v, options) for v in value) if several else choose(name, value, options)
            object.__setattr__(self, name, chosen)
        for name in (
            "cubic_coefficient",
            "mipmap_level_bias",
            "min_mipmap_level_clamp",
            "max_mipmap_level_clamp",
        ):
            object.__setattr__(self, name, float(getattr(self, name)))
            if math.isnan(getattr(self, name)):
                raise ValueError(f"Sampler: {name} is NaN, expected a number.")
        for name in ("normalized_coords", "srgb", "seamless_cubemap", "deterministic"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"Sampler: {name} is {getattr(self, name)!r}, expected True or False.")
        if not isinstance(self.max_anisotropy, int) or not 1 <= self.max_anisotropy <= MAX_ANISOTROPY:
            raise ValueError(f"Sampler: max_anisotropy is {self.max_anisotropy!r}, expected an int from 1 to 16.")
        if self.srgb and self.read_mode is not ReadMode.NORMALIZED_FLOAT:
            raise ValueError("Sampler: srgb=True needs read_mode='normalized_float', which makes colours of codes.")
        if self.arithmetic is Arithmetic.HARDWARE:
            modes = self.address_mode if isinstance(self.address_mode, tuple) else (self.address_mode,)
            if self.filter_mode is FilterMode.CUBIC or AddressMode.REFLECT in modes:
                raise ValueError(
                    "Sampler: arithmetic='hardware' has no filter_mode='cubic' and no address_mode='reflect', which "
                    "no texture unit has; use arithmetic='float'."
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

    @property
    def decoding(self) -> ReadMode:
        """The read mode, colour encoding included."""
        return ReadMode.SRGB_FLOAT if self.srgb else ReadMode(self.read_mode)
