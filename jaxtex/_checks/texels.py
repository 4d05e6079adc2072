"""The texels of a texture: shapes and dtypes that fit its kind, and the sizes of the levels of a mip chain."""

import math
import operator
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._tables.storage_formats import STORAGE_FORMATS, is_complex, known_format
from ..modes import TextureKind
from .integers import Array, at_full_width, in_dtype_of_jax, on_device
from .words import described, shown

AXIS_NAMES = {
    TextureKind.TEXTURE1D: ("W",),
    TextureKind.TEXTURE2D: ("H", "W"),
    TextureKind.TEXTURE3D: ("D", "H", "W"),
    TextureKind.TEXTURE1D_LAYERED: ("L", "W"),
    TextureKind.TEXTURE2D_LAYERED: ("L", "H", "W"),
    TextureKind.CUBEMAP: ("6", "N", "N"),
    TextureKind.CUBEMAP_LAYERED: ("L", "6", "N", "N"),
}
# The levels of a mip chain lie under one int32 index.
CHAIN_LIMIT = 2**31


def check_level(kind: TextureKind, texels: Any, name: str, argument: str) -> jax.Array:
    """The texels of one level."""
    expected = f"({', '.join((*AXIS_NAMES[kind], 'C'))})"
    texels = in_dtype_of_jax(name, argument, texels)
    try:
        texels = on_device(texels)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}: {argument} is {described(texels)}, expected numbers {expected}.") from None
    if texels.ndim != len(AXIS_NAMES[kind]) + 1:
        missing = texels.ndim == len(AXIS_NAMES[kind])
        remedy = f"{argument}[..., None] adds a channel axis" if missing else "stack textures under jax.vmap"
        if missing and argument != "texels" and AXIS_NAMES[kind][0] in ("6", "L", "D"):  # faces, layers or slices
            remedy = "a list or tuple holds mip levels, and jnp.stack(texels) makes one array"
        raise ValueError(f"{name}: {argument} has shape {texels.shape}, expected {expected}; {remedy}.")
    if 0 in texels.shape[:-1]:
        raise ValueError(f"{name}: {argument} has shape {texels.shape}, expected at least one texel.")
    check_faces(kind, texels.shape, name, argument)
    check_stored(f"{name}: {argument}", texels.dtype)
    return texels


def check_stored(came: str, dtype: np.dtype[Any]) -> None:
    """Checks that textures have a dtype; `came` begins the error message."""
    if known_format(dtype) is None:
        raise ValueError(f"{came} has dtype {dtype}, expected one of {', '.join(STORAGE_FORMATS)}; use astype.")


def stacked_axes(came: str, texels: object, kind: TextureKind, *, in_chain: bool) -> int:
    """The number of leading axes along which textures are stacked; `came` begins the error message.

    Args:
        in_chain: whether the levels of a mip chain lie one after the other.
    """
    shape: Any = getattr(texels, "shape", None)
    own = 2 if in_chain else len(AXIS_NAMES[kind]) + 1
    if not isinstance(shape, tuple) or len(shape) < own:  # pyright: ignore[reportUnknownArgumentType]
        raise ValueError(
            f"{came} is {shown(texels)}, expected at least {own} axes for kind {kind.value!r}; make textures with "
            f"jaxtex.texture2d(array) or another constructor."
        )
    return len(shape) - own  # pyright: ignore[reportUnknownArgumentType]


def as_sizes(name: str, argument: str, sizes: Any, axes: Sequence[str]) -> tuple[int, ...]:
    """A shape known while tracing, from a sequence or an array of integers; `axes` are an example in errors."""
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        expected = f"expected a tuple of integers such as ({', '.join(axes)})"
        raise TypeError(f"{name}: {argument} is {shown(sizes)}, {expected}.") from None


def check_shape(name: str, kind: TextureKind, shape: Any, *channels: str) -> tuple[int, ...]:
    """The shape of the texels of a kind, with a last axis of channels if it is named."""
    expected = (*AXIS_NAMES[kind], *channels)
    sizes, count = as_sizes(name, "shape", shape, expected), len(AXIS_NAMES[kind])
    if len(sizes) != len(expected) or min(sizes[:count]) < 1 or min(sizes) < 0:
        raise ValueError(
            f"{name}: shape is {sizes}, expected ({', '.join(expected)}) for kind {kind.value!r}; for another kind, "
            f"pass kind."
        )
    check_faces(kind, sizes if channels else (*sizes, 1), name, "shape")
    return sizes


def check_faces(kind: TextureKind, shape: tuple[int, ...], name: str, argument: str) -> None:
    """Checks that a cubemap has six square faces."""
    if kind.is_cube and (shape[-4] != 6 or shape[-3] != shape[-2]):
        expected = ", ".join((*AXIS_NAMES[kind], "C"))
        raise ValueError(f"{name}: {argument} has shape {shape}, expected ({expected}), six square faces.")


def check_chain(kind: TextureKind, levels: Sequence[jax.Array], name: str) -> None:
    """Checks that each level is half the one before, rounded down and at least 1."""
    for k, (level, shape) in enumerate(zip(levels, chain_shapes(kind, levels[0].shape, len(levels), name))):
        if level.shape != shape or level.dtype != levels[0].dtype:
            raise ValueError(
                f"{name}: level {k} has shape {level.shape} and dtype {level.dtype}, expected {shape} and "
                f"{levels[0].dtype}: sizes are max(1, n >> level) of the first; build_mipmaps makes such levels."
            )
    if len(levels) > 1 and sum(math.prod(level.shape[:-1]) for level in levels) >= CHAIN_LIMIT:
        raise ValueError(f"{name}: texels has 2^31 texels or more, too many for a mip chain; use fewer levels.")


def chain_shapes(
    kind: TextureKind, shape: tuple[int, ...], num_levels: int | None, name: str, argument: str = "texels"
) -> list[tuple[int, ...]]:
    """The shapes of the levels of a mip chain; of all possible levels if `num_levels` is None."""
    front, sizes = shape[: -1 - kind.texel_ndim], shape[-1 - kind.texel_ndim : -1]
    most = max(sizes).bit_length()
    if num_levels is not None and not 1 <= num_levels <= most:
        raise ValueError(
            f"{name}: {argument} asks for {num_levels} levels, expected 1 to {most} for texels of shape {shape}."
        )
    return [(*front, *(max(n >> level, 1) for n in sizes), shape[-1]) for level in range(num_levels or most)]


def check_knots(name: str, knots: Any, sizes: Sequence[int]) -> tuple[jax.Array | None, ...] | None:
    """The floating knots of each axis, x first; `None` if no axis has any. `sizes` are in the same order."""
    if not isinstance(knots, tuple | list) or len(knots) != len(sizes):  # pyright: ignore[reportUnknownArgumentType]
        expected = ", ".join("xyz"[: len(sizes)]) + ("," if len(sizes) == 1 else "")
        raise ValueError(f"{name}: knots is {described(knots)}, expected a tuple ({expected}) of arrays or None.")
    checked: list[jax.Array | None] = []
    for axis, size, given in zip("xyz", sizes, cast(Sequence[Any], knots)):
        array = None if given is None else on_device(at_full_width("", "", given, exact=False))
        if array is not None:
            array = array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.float32)
            lengths = (size, size + 2) if size > 1 else (size + 2,)
            if array.ndim != 1 or len(array) not in lengths:
                raise ValueError(
                    f"{name}: knots of {axis} have shape {array.shape}, expected "
                    f"{' or '.join(f'({n},)' for n in lengths)}: the coordinates of the {size} texels along {axis}, "
                    f"{'or these ' if size > 1 else ''}and those of both edges."
                )
            values = known_values(given, array)
            if values is not None and (reason := disorder(values)):
                raise ValueError(f"{name}: knots of {axis} {reason}")
        checked.append(array)
    return None if all(a is None for a in checked) else tuple(checked)


def known_values(given: Any, array: jax.Array) -> Array | None:
    """The values of an array that was made of `given`; `None` where they are traced, or on other processes.

    An array of JAX is copied from its device once, and keeps the copy.
    """
    in_numpy = all(isinstance(leaf, np.ndarray | np.generic | int | float) for leaf in jax.tree.leaves(given))
    source = np.asarray(given) if in_numpy else array  # a program traces arrays of NumPy too
    if isinstance(source, Tracer):
        return None
    if isinstance(source, jax.Array) and not (source.is_fully_addressable or source.is_fully_replicated):
        return None
    return np.asarray(jax.device_get(source)).astype(array.dtype)


def disorder(knots: Array) -> str | None:
    """Why knots, (..., N), are not those of an axis, as the end of a sentence; `None` if they are.

    They increase or decrease. Two equal ones are a jump.
    """
    for row in np.float64(knots).reshape(-1, knots.shape[-1]):
        if not np.isfinite(row).all():
            k = int(np.argmin(np.isfinite(row)))
            return f"hold {row[k]:g} at index {k}, expected finite coordinates; leave out what has no coordinate."
        if row[0] == row[-1] and not np.any(row != row[0]):
            return f"are all {row[0]:g}, expected coordinates that increase or decrease."
        steps = np.diff(row)
        sign = 1 if np.sum(steps > 0) >= np.sum(steps < 0) else -1
        if (wrong := sign * steps < 0).any():
            k = int(np.argmax(wrong))
            return (
                f"are {row[k]:g} and then {row[k + 1]:g}, at index {k} and {k + 1}, expected coordinates that increase "
                f"or decrease throughout; {remedy_of_disorder(row)}."
            )
    return None


def remedy_of_disorder(knots: Array) -> str:
    """What to do about knots that neither increase nor decrease."""
    for period, word in ((360.0, "360"), (2 * np.pi, "2 * np.pi")):
        steps = np.diff(np.unwrap(knots, period=period))
        if (steps > 0).all() or (steps < 0).all():
            return (
                f"they seem to wrap around after {word}: pass np.unwrap(knots, period={word}), and coordinates that "
                f"continue like it"
            )
    return "sort them, and the texels with them"


def check_color(
    name: str, color: jax.Array, channels: int, argument: str = "border_color", stored: np.dtype[Any] | None = None
) -> None:
    """Checks a border color: one number, or one for each channel; complex only for complex texels."""
    if stored is not None and is_complex(color.dtype) and not is_complex(stored):
        raise TypeError(
            f"{name}: {argument} is complex, and texels are {stored}; pass a real {argument}, or complex texels."
        )
    if color.shape not in ((), (channels,)):
        remedy = ""
        if color.ndim > 1 and color.shape[-1] in (1, channels):
            remedy = "; for a color for each image, map over images and colors by jax.vmap"
        raise ValueError(
            f"{name}: {argument} has shape {color.shape}, expected a scalar or ({channels},), one value for each "
            f"channel{remedy}."
        )
