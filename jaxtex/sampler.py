"""The static half of a read: how a texture is sampled."""

import contextlib
import dataclasses
import functools
import inspect
import math
from collections.abc import Collection, Generator, Sequence
from typing import Any, Literal, TypeVar, cast

import jax
import numpy as np
from jax.typing import DTypeLike

from ._checks.calls import OWN_CHECKS
from ._checks.numbers import as_integer, is_integer
from ._checks.signatures import AsWritten
from ._checks.words import check_keywords, listing, shown
from ._jax.contexts import DETERMINISTIC
from ._tables.address_rules import ADDRESS_RULES, AddressRule
from ._tables.filter_kernels import MAX_SPLINE_ORDER, FilterKernel, FilterOptions, filter_kernel
from ._tables.storage_formats import Decoding, StorageFormat, known_format
from .modes import AddressMode, Arithmetic, FilterMode, Limit, OptionEnum, ReadMode, TextureKind, choose

__all__ = ["Sampler", "deterministic"]
__dir__ = listing(__all__)

# The enumeration of each option, or those of its members that the option offers.
OPTIONS: dict[str, type[OptionEnum] | tuple[OptionEnum, ...]] = {
    "address_mode": AddressMode,
    "filter_mode": FilterMode,
    "read_mode": ReadMode,
    "mipmap_filter_mode": (FilterMode.POINT, FilterMode.LINEAR),
    "arithmetic": Arithmetic,
    "limit": Limit,
}
NUMBERS = ("cubic_coefficient", "mipmap_level_bias", "min_mipmap_level_clamp", "max_mipmap_level_clamp")
FLAGS = ("normalized_coords", "srgb", "seamless_cubemap", "deterministic")
# Options whose default depends on the reading function.
OPTIONAL = ("address_mode", "filter_mode", "deterministic", "limit")
# Numbers that enter weights and sums; the bounds of levels may be infinite.
FINITE = ("cubic_coefficient", "mipmap_level_bias")
MAX_ANISOTROPY = 16
LARGEST = float(np.finfo(np.float32).max)
Class = TypeVar("Class")

AddressModeLike = (
    AddressMode
    | Literal["clamp", "border", "wrap", "mirror", "reflect", "sphere"]
    | Literal["edge", "replicate", "zeros", "constant", "repeat", "symmetric"]
)
FilterModeLike = (
    FilterMode
    | Literal["point", "linear", "cubic", "lagrange", "bspline", "mitchell", "lanczos2", "lanczos3", "gaussian"]
    | Literal["nearest", "bilinear", "trilinear", "bicubic", "lanczos", "triangle"]
)
ResizeFilterLike = FilterModeLike | Literal["area", "box"]
ReadModeLike = ReadMode | Literal["element", "normalized_float"]
MipmapFilterModeLike = FilterMode | Literal["point", "linear"] | Literal["nearest", "bilinear"]
ArithmeticLike = Arithmetic | Literal["float", "hardware"]
LimitLike = Limit | Literal["taps"]


def explains_fields(cls: type[Class]) -> type[Class]:
    """A dataclass of keywords whose error for an unknown one names the field that was meant."""
    make = cls.__init__
    fields = tuple(inspect.signature(cls).parameters)

    def mode_meant(keyword: str) -> str | None:
        return f"pass {keyword}_mode=..." if f"{keyword}_mode" in fields else None

    @functools.wraps(make)
    def explained(self: Class, *args: Any, **keywords: Any) -> None:
        check_keywords(cls.__name__, keywords, fields, mode_meant)
        if args:
            raise TypeError(
                f"{cls.__name__}: {shown(args[0])} came without a keyword; pass filter_mode=..., address_mode=... or "
                "another."
            )
        make(self, **keywords)

    vars(explained)["__signature__"] = AsWritten.of(inspect.signature(make), cls)
    cls.__init__ = explained
    return cls


@jax.tree_util.register_static
@explains_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
    """How a texture is read: address, filter and read modes.

    A sampler holds no arrays. It is frozen, hashable and a pytree without leaves. You can close over it, pass it to a
    function under `jax.jit` or `jax.checkpoint`, or use it as a static argument; two samplers with equal fields compile
    once.

    Args:
        address_mode: what a tap outside the texture reads; one `AddressMode` for every axis, or a tuple with one mode
            per axis in x, y, z order. ``None`` is the default of the function that reads: `sample` clamps.

            - ``"clamp"``: the nearest texel of the edge.
            - ``"border"``: the texture's border color, or zero if it has none; decided tap by tap.
            - ``"wrap"``: the texture repeats with period N.
            - ``"mirror"``: the texture repeats mirrored, the edge texel twice, with period 2 N (as in CUDA).
            - ``"reflect"``: the texture repeats mirrored, the edge texel once, with period 2 (N - 1).
            - ``"sphere"``: x is a longitude, once around, and y a latitude, from pole to pole, of a 2D or 3D texture
              with an even width. Beyond a pole the texture goes on half a turn away. The third axis of a 3D texture is
              a level, which clamps; ``("sphere", "sphere", mode)`` chooses another mode for it.
        filter_mode: a `FilterMode`. ``None`` is ``"linear"``, the default of the functions that read. These pass
            through the texels:

            - ``"point"``: the texel that holds the position.
            - ``"linear"``: 2 texels per axis.
            - ``"cubic"``: 4 texels per axis, Keys' kernel.
            - ``"lagrange"``: 4 texels per axis, the polynomial of degree 3 through them. It is exact for such
              polynomials, and its slope jumps at texels.
            - ``"lanczos2"``, ``"lanczos3"``: 4 and 6 texels per axis, a windowed sinc; the sharpest.

            These smooth the texels:

            - ``"bspline"``: `spline_order` + 1 texels per axis, a B-spline, whose first `spline_order` - 1 derivatives
              are continuous. After `spline_filter`, reads pass through the texels.
            - ``"mitchell"``: 4 texels per axis, Mitchell and Netravali's compromise of sharp and smooth.
            - ``"gaussian"``: 4 texels per axis, a Gaussian with a standard deviation of half a texel.
        cubic_coefficient: the free parameter of the cubic kernel: -0.5 is Catmull-Rom, -0.75 is what PyTorch
            and OpenCV use; finite. Only ``filter_mode="cubic"`` uses it.
        spline_order: of the B-spline, from 0 to 5. Only ``filter_mode="bspline"`` uses it.
        read_mode: a `ReadMode`: ``"element"`` returns texels as stored; ``"normalized_float"`` maps 8- and 16-bit
            integer texels to [0, 1], or [-1, 1] if signed, before filtering.
        normalized_coords: whether coordinates run from 0 to 1 across the texture, or from 0 to N. Texel
            centers are at ``(i + 0.5) / N`` or ``i + 0.5``. The directions that read a cubemap have no unit.
        srgb: whether uint8 texels are sRGB codes that are decoded before filtering. Of three or four channels the first
            three are decoded, of one or two the first; alpha is linear. Needs ``read_mode="normalized_float"``.
        mipmap_filter_mode: ``"point"`` reads the level nearest to the level of detail, ``"linear"`` blends the two
            levels around it.
        mipmap_level_bias: added to a level of detail that is given or that follows from a footprint; finite.
        min_mipmap_level_clamp, max_mipmap_level_clamp: bounds of the level of detail. Where they contradict each
            other, the lower bound wins.
        max_anisotropy: from 1 to 16, how many reads may lie along the longer side of a footprint (``ddx``, ``ddy``).
            In hardware arithmetic such reads follow a texture unit's rules closely, not to the last bit; volumes are
            read once. There, reads come in pairs: an odd number acts as the even number below it.
        seamless_cubemap: whether a linear read of a cubemap blends across the edges of a face. Address modes have no
            effect then. If not, it is a 2D read of the face, with its address modes.
        arithmetic: an `Arithmetic`: ``"float"`` computes weights and sums in float32; ``"hardware"`` in fixed point, as
            the texture unit of an NVIDIA H200 does (compute capability 9.0, the card that was measured): bit for bit
            in all recorded reads with a `max_anisotropy` of 1, closely above. See `docs/arithmetic.md`.
        deterministic: whether gradients with respect to texels, and splats, have the same bits in every run. On a GPU,
            the order of additions changes from run to run. This option fixes the order, or rounds the terms so that
            additions are exact and the order does not matter, at 1.4 to 1.6 times the cost. A GPU kernel adds tiles of
            samples of an image to the texels in a fixed order. It rounds each other term to a multiple of at most
            ``N t / 2^59`` times the largest value times the largest weight, if N samples of t taps read the texture.
            Elsewhere each of the n terms at a texel is rounded to a multiple of ``n^2 / 2^47`` times the largest value.
            With ``None``, a block of `jaxtex.deterministic` or a flag of XLA decides for GPUs; sums on CPUs need no
            rounding.
        limit: ``"taps"`` keeps a read by a filter of several taps between its nearest taps, channel by channel: the 2
            per axis that the linear filter would blend. Where the filter overshoots, the read returns the least or the
            greatest of them. So semi-Lagrangian advection with a cubic filter creates no new extremes. Of several mip
            levels, each is limited before they are blended. Gradients are those of the read where it lies between the
            taps, and elsewhere those of the tap that limits it; of equal taps it is the first. A limited read is not
            linear in the texels, so `splat` and reads with a `key` refuse the option. After `spline_filter` a limited
            read stays between coefficients, not between the image's values, and need not pass through these. ``None``
            limits nothing.

    Raises:
        ValueError: if a mode is unknown, or options exclude each other.
        TypeError: if an option has the wrong type.

    Source: the modes are those of the CUDA C++ Programming Guide, "Texture and Surface Memory"; the cubic
        kernel is R. Keys, "Cubic convolution interpolation for digital image processing", 1981.

    Example:
        >>> import jaxtex as jt
        >>> jt.Sampler(address_mode=("repeat", "clamp"), filter_mode="bicubic").address_mode
        (<AddressMode.WRAP: 'wrap'>, <AddressMode.CLAMP: 'clamp'>)
    """

    address_mode: AddressModeLike | tuple[AddressModeLike, ...] | None = None
    filter_mode: FilterModeLike | None = None
    cubic_coefficient: float = -0.5
    spline_order: int = 3
    read_mode: ReadModeLike = "element"
    normalized_coords: bool = True
    srgb: bool = False
    mipmap_filter_mode: MipmapFilterModeLike = "point"
    mipmap_level_bias: float = 0.0
    min_mipmap_level_clamp: float = 0.0
    max_mipmap_level_clamp: float = math.inf
    max_anisotropy: int = 1
    seamless_cubemap: bool = True
    arithmetic: ArithmeticLike = "float"
    deterministic: bool | None = None
    limit: LimitLike | None = None

    def __post_init__(self):
        for name, options in OPTIONS.items():
            self._set(name, _chosen(name, getattr(self, name), options))
        for name in NUMBERS:
            self._set(name, _number(name, getattr(self, name)))
        for name in FLAGS:
            self._set(name, _flag(name, getattr(self, name)))
        self._set("max_anisotropy", as_integer("Sampler", "max_anisotropy", self.max_anisotropy, 1, MAX_ANISOTROPY))
        self._set("spline_order", as_integer("Sampler", "spline_order", self.spline_order, 0, MAX_SPLINE_ORDER))
        if self.srgb and self.read_mode is not ReadMode.NORMALIZED_FLOAT:
            raise ValueError(
                "Sampler: srgb=True decodes codes, but read_mode='element' returns codes as they are; add "
                "read_mode='normalized_float'."
            )
        if self.arithmetic is Arithmetic.HARDWARE:
            self._check_hardware()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_hardware(self) -> None:
        if self.limit is not None:
            missing = f"limit={str(self.limit)!r}"
        elif not self.kernel.on_hardware:
            missing = f"filter_mode={str(self.filter)!r}"
        else:
            modes = self.address_mode if isinstance(self.address_mode, tuple) else (self.address_mode,)
            named = [AddressMode(mode) for mode in modes if mode is not None]
            foreign = [mode for mode in named if not ADDRESS_RULES[mode].on_hardware]
            if not foreign:
                return
            missing = f"address_mode={foreign[0].value!r}"
        raise ValueError(
            f"Sampler: arithmetic='hardware' is given with {missing}, which no texture unit has; use "
            f"arithmetic='float'."
        )

    @property
    def filter(self) -> FilterMode:
        """The filter mode of a read: linear where the sampler sets none."""
        return FilterMode.LINEAR if self.filter_mode is None else FilterMode(self.filter_mode)

    @property
    def kernel(self) -> FilterKernel:
        """The filter, on one axis."""
        options = FilterOptions(self.cubic_coefficient, self.spline_order)
        return filter_kernel(self.filter, options)

    @property
    def decoding(self) -> Decoding:
        """How a stored texel becomes a number."""
        if self.srgb:
            return Decoding.SRGB
        return Decoding.ELEMENT if self.read_mode is ReadMode.ELEMENT else Decoding.FRACTION

    def address_rules(
        self, ndim: int, default: AddressMode = AddressMode.CLAMP, *, name: str = "Sampler"
    ) -> tuple[AddressRule, ...]:
        """Returns the address rule of each filtered axis, in x, y, z order.

        Args:
            ndim: the number of filtered axes.
            default: the mode of a sampler that sets none.
            name: of the function that reads, for errors.

        Raises:
            ValueError: if the sampler sets another number of modes, or one for several axes together on others.
        """
        modes = default if self.address_mode is None else self.address_mode
        if not isinstance(modes, tuple):
            joint = ADDRESS_RULES[AddressMode(modes)].num_axes
            alone = max(ndim - joint, 0) if joint > 1 else 0
            modes = (*(modes,) * (ndim - alone), *(AddressMode.CLAMP,) * alone)
        if len(modes) != ndim:
            raise ValueError(
                f"{name}: there are {len(modes)} address modes for {ndim} filtered axes; pass one mode for all, or "
                f"{ndim} in x, y, z order."
            )
        rules = tuple(ADDRESS_RULES[AddressMode(mode)] for mode in modes)
        for rule in rules:
            if rule.num_axes > 1 and [k for k, each in enumerate(rules) if each is rule] != [*range(rule.num_axes)]:
                raise ValueError(
                    f"{name}: the address modes are {tuple(rule.name for rule in rules)}, and {rule.name!r} addresses "
                    f"{rule.num_axes} axes together; use it for the first {rule.num_axes} axes, x first, and no other, "
                    f"or another mode."
                )
        return rules


@contextlib.contextmanager
def deterministic(enabled: bool = True) -> Generator[None, None, None]:
    """Chooses whether the sums of calls inside this context have the same bits in every run on a GPU.

    These sums are gradients with respect to texels, and splats: those of all functions of jaxtex, which have no option
    of their own for it. `Sampler` says what they cost, and how exact they are. On CPUs all sums have the same bits in
    every run, and no program changes.

    Without this context, the sums are deterministic where the environment variable ``XLA_FLAGS`` contains
    ``--xla_gpu_deterministic_ops=true`` or ``--xla_gpu_exclude_nondeterministic_ops=true`` when a call is traced.
    jaxtex does not see these flags in the ``compiler_options`` of `jax.jit`: use this context there. It decides where a
    flag is set too, and a `Sampler` with ``deterministic=True`` or ``deterministic=False`` decides before both.

    The choice applies to calls of this thread that are traced inside the context. A function that `jax.jit` compiled
    outside of it is compiled again.

    It does not apply to `surface_add` of floating numbers, nor to sums that are not jaxtex's, such as ``x.at[i].add``.
    XLA's flags apply to both.

    Args:
        enabled: whether sums have the same bits in every run.

    Returns:
        A context manager.

    Gradients: of a call follow the choice for the call, wherever they are computed.

    Raises:
        TypeError: if `enabled` is not True or False.

    Example:
        >>> import jax, jax.numpy as jnp, jaxtex as jt
        >>> x = jnp.array([0.2, 0.4, 0.9])
        >>> loss = lambda texels: jt.sample(jt.texture1d(texels), (x,)).sum()
        >>> with jt.deterministic():
        ...     gradient = jax.grad(loss)(jnp.ones((4, 1)))
        >>> gradient[:, 0].round(1)
        Array([0.7, 1.2, 0.1, 1. ], dtype=float32)
    """
    given: Any = enabled
    if not isinstance(given, bool | np.bool_):
        raise TypeError(f"deterministic: enabled is {shown(given)}, expected True or False.")
    with DETERMINISTIC(bool(enabled)):
        yield


def _chosen(name: str, value: object, options: type[OptionEnum] | tuple[OptionEnum, ...]) -> object:
    """The member, or the tuple of members, that an option names."""
    if name in OPTIONAL and value is None:
        return None
    if name == "address_mode" and isinstance(value, tuple | list):
        return tuple(choose("Sampler", name, v, options) for v in cast(Sequence[object], value))
    return choose("Sampler", name, value, options)


def _number(name: str, value: Any) -> float:
    if not (is_integer(value) or isinstance(value, float | np.floating)):
        raise TypeError(f"Sampler: {name} is {shown(value)}, expected a number, which must be known while tracing.")
    number = float(cast(float, value))
    if math.isnan(number):
        raise ValueError(f"Sampler: {name} is NaN, expected a number.")
    if name in FINITE and abs(number) > LARGEST:
        raise ValueError(f"Sampler: {name} is {shown(value)}, expected a finite number, which float32 holds.")
    return number


def _flag(name: str, value: Any) -> bool | None:
    if name in OPTIONAL and value is None:
        return None
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"Sampler: {name} is {shown(value)}, expected True or False.")
    return bool(cast(bool, value))


# Checks: that samplers fit the texels and the operation of a call


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


def check_is_sampler(name: str, sampler: object, parameters: Collection[str] = (), argument: str = "sampler") -> None:
    """Raises a TypeError if the value is not a `Sampler`.

    Args:
        parameters: of the function; the error names the one that takes the value.
    """
    if isinstance(sampler, Sampler):
        return
    option, remedy = mode_of(sampler), "jaxtex.Sampler(...)"
    if option in parameters:
        remedy = f"{option}={sampler!r}"
    elif option is not None:
        remedy = f"jaxtex.Sampler({option}={sampler!r})"
    elif isinstance(sampler, int) and "output_shape" in parameters:
        remedy = "sizes as one tuple, output_shape=(H, W)"
    elif isinstance(sampler, jax.Array | np.ndarray) and not {"coords", "flow"}.isdisjoint(parameters):
        remedy = f"coordinates as one tuple, {name}({next(iter(parameters))}, (x, y))"
    raise TypeError(f"{name}: {argument} is {shown(sampler)}, expected a Sampler; pass {remedy}.")


def mode_of(word: object) -> str | None:
    """The option of a sampler that a word names, its aliases included."""
    options: dict[str, type[OptionEnum]] = {"filter_mode": FilterMode, "address_mode": AddressMode}
    for option, enumeration in options.items():
        try:
            enumeration(word)
        except ValueError:
            continue
        return option
    return None


OWN_CHECKS[Sampler] = check_is_sampler
