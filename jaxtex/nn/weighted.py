"""Sums of weighted reads."""

import functools
import math
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_index, as_integer, is_integer
from .._checks.words import shown
from .._engine.api import FLOAT, Layout, ReadArguments
from .._jax.calls import typed_jit
from .._jax.shapes import broadcast_shapes
from .._reads import calls
from .._reads.arguments import (
    check_draws,
    check_integer,
    check_number,
    check_read_arguments,
    check_texture,
    check_third_side,
)
from .._reads.complex_parts import by_parts
from .._tables.address_rules import last
from .._tables.storage_formats import is_complex, is_narrow, rounded_dtype, sum_dtype
from ..modes import Arithmetic
from ..sampler import Sampler, check_sampler
from ..sampling import DEFAULT_SAMPLER, Coords
from ..texture import Texture, without_cut

NAME = "sample_weighted"
# Texels of a pyramid are numbered in int32.
MOST_TEXELS = 2**31


@public
def sample_weighted(
    textures: Texture | Sequence[Texture],
    coords: Coords,
    weights: ArrayLike,
    sampler: Sampler = DEFAULT_SAMPLER,
    *,
    axis: int | tuple[int, ...] = -1,
    layer: ArrayLike | None = None,
    lod: ArrayLike | None = None,
    ddx: Coords | None = None,
    ddy: Coords | None = None,
    ddz: Coords | None = None,
    key: ArrayLike | None = None,
    head: ArrayLike | None = None,
    num_heads: int = 1,
) -> jax.Array:
    """Sums weighted reads: ``sum_k weights_k sample(texture, coords_k)`` along axes of the samples.

    On a GPU, one kernel reads and sums, one computes all gradients, and the terms are not stored; except in hardware
    arithmetic, with ``max_anisotropy`` above 1 along footprints, with a key, and for several textures with mip chains
    or border colors.

    Args:
        textures: a `Texture`, or a sequence of L textures of one kind, dtype and number of channels, and of any sizes.
            For a sequence, the first of `axis` has length L, and its entry l is read from texture l.
        coords: a tuple of arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, as `jaxtex.sample` takes them.
        weights: numbers that broadcast with the coordinates, `layer` and `lod` to a common shape S.
        sampler: how to read, a `Sampler`. If it sets no address mode, clamp is used.
        axis: the axes of S along which to sum, an integer or a tuple of integers; ``()`` sums nothing.
        layer: integers that broadcast to S, the layer of a layered texture, as `jaxtex.sample` takes it.
        lod: numbers that broadcast to S, the level of detail of a texture with a mip chain.
        ddx, ddy, ddz: the footprint of each read, in place of `lod`, as `jaxtex.sample` takes it: tuples of arrays that
            broadcast to S.
        key: a random key. With it each read draws one texel, as in `jaxtex.sample`: the expectation is the sum without
            a key.
        head: integers that broadcast to S: which of `num_heads` equal parts of the channels a sample reads. If it is
            negative or too large, the last part is read.
        num_heads: the number of contiguous parts into which the channels are divided; static.

    Returns:
        S without `axis`, + (C,), or (C / num_heads,) with `head`. The dtype is that of a read by `jaxtex.sample`, or
        float32 if that is an integer dtype. Weights and sums are computed in float32, or in float64 if texels,
        coordinates or weights are float64.

    Gradients: of any order, in forward and reverse mode, with respect to floating or complex texels, the border colors,
        the coordinates, the weights, `lod` and the footprint. Each read has the gradients of `jaxtex.sample`. Reverse
        mode stores only the arguments, and the terms where reads store them.

    Raises:
        ValueError: if coordinates, weights, axis, layer, footprint, key or sampler do not fit the textures, or textures
            differ in kind, dtype or channels.
        TypeError: if an argument has the wrong type.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> ramp = jt.texture1d(np.array([[10.0], [20.0], [30.0], [40.0]]))
        >>> x, weights = np.array([0.25, 0.5, 0.75]), np.array([1.0, 2.0, 1.0])
        >>> jt.nn.sample_weighted(ramp, (x,), weights)
        Array([100.], dtype=float32)
        >>> coarse = jt.texture1d(np.array([[15.0], [35.0]]))
        >>> jt.nn.sample_weighted((ramp, coarse), (0.5,), np.array([0.5, 0.5]))
        Array([25.], dtype=float32)
    """
    several = not isinstance(textures, Texture)
    if several and not isinstance(textures, tuple | list):
        check_texture(NAME, textures, coords, "textures")
    entries = tuple(cast(Sequence[Texture], textures)) if several else (textures,)
    if not entries:
        raise ValueError(f"{NAME}: textures is empty, expected at least one Texture.")
    for k, texture in enumerate(entries):
        check_texture(NAME, texture, coords, f"textures[{k}]" if several else "textures")
        check_sampler(NAME, texture.kind, texture.dtype, texture.num_levels, texture.shape[-2], sampler)
    check_alike(entries)
    arguments = check_read_arguments(NAME, entries[0].kind, coords, layer, lod, ddx, ddy, ddz)
    check_third_side(NAME, ddz, sampler)
    key = check_draws(NAME, key, sampler)
    numbers = check_number(NAME, "weights", weights)
    chosen = check_head(entries[0], head, num_heads)
    shape = check_weights(arguments, numbers, chosen)
    axes = check_axes(axis, shape)
    if several and (not axes or shape[axes[0]] != len(entries)):
        of = f"axis {axes[0]} of the samples' shape {shape}" if axes else "axis=()"
        raise ValueError(
            f"{NAME}: textures holds {len(entries)} textures, but {of} has another length; expected one entry for each "
            f"texture along the first of axis."
        )
    own = calls.own_dtype(entries[0], sampler)
    dtype = own if jnp.issubdtype(own, jnp.inexact) else np.dtype(np.float32)
    return weighted(
        *(entries, arguments, numbers, chosen, key),
        sampler=sampler,
        axes=axes,
        several=several,
        num_heads=int(num_heads),
        dtype=dtype,
    )


def check_alike(textures: Sequence[Texture]) -> None:
    """Textures that differ only in size."""
    first, *others = ((t.kind, t.dtype, t.num_channels) for t in textures)
    for k, other in enumerate(others, 1):
        if other != first:
            kind, dtype, channels = other
            raise ValueError(
                f"{NAME}: textures[{k}] has kind {kind.value!r}, dtype {dtype} and {channels} channels, expected those "
                f"of textures[0]: {first[0].value!r}, {first[1]} and {first[2]}."
            )


def check_head(texture: Texture, head: Any, num_heads: Any) -> Any:
    """The part of the channels that each sample reads, if they are divided."""
    count = as_integer(NAME, "num_heads", num_heads, 1, max(1, texture.num_channels))
    if texture.num_channels % count:
        raise ValueError(
            f"{NAME}: num_heads is {count}, but textures have {texture.num_channels} channels; expected a divisor "
            f"of the number of channels."
        )
    if head is None and count > 1:
        raise ValueError(
            f"{NAME}: num_heads is {count}, and head is missing; pass head, the part of the channels for each sample."
        )
    return None if head is None else check_integer(NAME, "head", head)


def check_weights(arguments: ReadArguments, weights: Any, head: Any) -> tuple[int, ...]:
    """The shape S that coordinates, weights and heads broadcast to."""
    shape = arguments.shape
    for argument, value in (("weights", weights), ("head", head)):
        if value is not None:
            try:
                shape = broadcast_shapes(shape, value.shape)
            except ValueError:
                raise ValueError(
                    f"{NAME}: {argument} has shape {value.shape}, which does not broadcast with the shape {shape} of "
                    f"the coordinates; pass equal sizes, or 1."
                ) from None
    return shape


def check_axes(axis: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes to sum along, counted from the front."""
    given = cast(tuple[Any, ...], axis if isinstance(axis, tuple | list) else (axis,))
    ndim = len(shape)
    known = all(is_integer(a, -ndim, ndim - 1) for a in given)
    axes = tuple(int(a) % ndim for a in given) if known else ()
    if not known or len(set(axes)) < len(axes):
        raise ValueError(
            f"{NAME}: axis is {shown(axis)}, expected different integers from {-ndim} to {ndim - 1}, axes of the "
            f"samples' shape {shape}."
        )
    return axes


@typed_jit("sampler", "axes", "several", "num_heads", "dtype")
def weighted(
    textures: tuple[Texture, ...],
    arguments: ReadArguments,
    weights: Any,
    head: Any,
    key: Any = None,
    *,
    sampler: Sampler,
    axes: tuple[int, ...],
    several: bool,
    num_heads: int,
    dtype: np.dtype[Any],
) -> jax.Array:
    """The sum, in one pass or term by term."""
    if is_complex(textures[0].dtype):
        return by_parts(
            weighted,
            textures,
            arguments,
            weights,
            head,
            key,
            sampler=sampler,
            axes=axes,
            several=several,
            num_heads=num_heads,
            dtype=dtype,
        )
    shape = broadcast_shapes(arguments.shape, weights.shape, () if head is None else head.shape)
    from_end = tuple(axis - len(shape) for axis in axes)
    head = None if head is None else as_index(head)

    def of_rank(a: Any) -> jax.Array:
        return jnp.expand_dims(a, tuple(range(len(shape) - a.ndim)))

    operands = jax.tree.map(of_rank, (arguments, weights, head))
    arguments, weights, head = cast(tuple[ReadArguments, Any, Any], operands)
    level = None
    if several:
        level = jnp.arange(len(textures), dtype=jnp.int32).reshape(-1, *[1] * (-1 - from_end[0]))
        level = of_rank(level)
    along_footprints = arguments.ddx is not None and sampler.max_anisotropy > 1
    if key is None and not along_footprints and has_one_pass(textures, sampler, several, num_heads):
        texture = pyramid(textures) if several else textures[0]
        return in_one_pass(
            *(texture, arguments, weights, level, head),
            sampler=sampler,
            num_heads=num_heads,
            summed_axes=from_end,
            dtype=dtype,
        )
    keys: Any = [key] * len(textures) if key is None or not several else jax.random.split(key, len(textures))
    terms = term_by_term(textures, arguments, weights, head, keys, sampler, axes[0] if several else None, num_heads)
    return terms.sum(axes).astype(dtype)


def has_one_pass(textures: Sequence[Texture], sampler: Sampler, several: bool, num_heads: int) -> bool:
    """Whether the engine sums in the pass that reads, which has one border color for all heads."""
    if sampler.arithmetic is not Arithmetic.FLOAT:
        return False
    if num_heads > 1 and any(t.border_color is not None and t.border_color.ndim for t in textures):
        return False
    plain = all(t.num_levels == 1 and t.border_color is None for t in textures)
    return not several or (plain and sum(math.prod(t.shape[:-1]) for t in textures) < MOST_TEXELS)


def pyramid(textures: Sequence[Texture]) -> Texture:
    """Textures of one level, packed as the levels of one texture."""
    texels = jnp.concatenate([t.texels.reshape(math.prod(t.shape[:-1]), t.num_channels) for t in textures])
    return Texture(texels, None, textures[0].kind, tuple(t.shape for t in textures))


@typed_jit("sampler", "num_heads", "summed_axes", "dtype")
def in_one_pass(
    texture: Texture,
    arguments: ReadArguments,
    weights: jax.Array,
    level: jax.Array | None,
    head: jax.Array | None,
    *,
    sampler: Sampler,
    num_heads: int,
    summed_axes: tuple[int, ...],
    dtype: np.dtype,
    points: jax.Array | None = None,
) -> jax.Array:
    """The sum of `weights` times reads in float arithmetic, along axes of the samples, counted from the end.

    Args:
        texture: with `level`, a pyramid of levels of any sizes; each sample reads the level of that number.
        points: the coordinates in `arguments` as one array with x, y (and z) along its last axis, if they came so;
            programs then do not split it in memory.
        head: which of `num_heads` parts of the channels each sample reads.
        weights, level, head: of the rank of the arrays in `arguments`.
    """
    arguments, texture = arguments.as_operands(), texture if head is None else without_cut(texture)
    sums, _ = calls.numbers_of(texture, sampler.decoding, (*arguments.coords, weights), blends=True)
    layout = Layout.of(texture) if level is None else Layout.of(texture)._replace(num_levels=1)
    read = calls.plan_of_call(FLOAT, layout, arguments, sampler, rounded_dtype(dtype, sums))
    if points is not None:
        read = read.at_points(as_operand(points, arguments.coords[0].dtype))
    read = read.weighted_sum(as_operand(weights, sums), summed_axes)
    if head is not None:
        read, texture = read.in_head(head, num_heads), calls.in_heads(texture, num_heads)
    if level is not None:
        assert texture.level_shapes is not None
        read = read.in_pyramid(level, texture.level_shapes)
    out = FLOAT.read(texture, read)
    return jnp.squeeze(out, tuple(axis - 1 for axis in summed_axes)).astype(dtype)


def as_operand(numbers: jax.Array, dtype: np.dtype) -> jax.Array:
    """Numbers of `dtype`; floats of 16 bits stay, since a read takes them as float32."""
    return numbers if is_narrow(numbers.dtype) and dtype == jnp.float32 else numbers.astype(dtype)


def term_by_term(
    textures: Sequence[Texture],
    arguments: ReadArguments,
    weights: jax.Array,
    head: jax.Array | None,
    keys: Sequence[Any],
    sampler: Sampler,
    axis: int | None,
    num_heads: int,
) -> jax.Array:
    """All terms of the sum, S + (C,); entry k along `axis` reads texture k, by its key if it draws texels."""
    sums = sum_dtype(textures[0].dtype, *(a.dtype for a in jax.tree.leaves((arguments.coords, weights))))

    def entry(leaf: jax.Array, k: int) -> jax.Array:
        """The slice of an array for texture k, with an axis of length 1."""
        if axis is None or leaf.shape[axis] == 1:
            return leaf
        return jax.lax.slice_in_dim(leaf, k, k + 1, axis=axis)

    terms: list[jax.Array] = []
    for k, texture in enumerate(textures):
        part = functools.partial(entry, k=k)
        given, own = cast(tuple[ReadArguments, jax.Array | None], jax.tree.map(part, (arguments, head)))
        read = calls.sample(texture, given, keys[k], sampler=sampler, dtype=sums)
        if own is not None:
            parts = read.reshape(*read.shape[:-1], num_heads, read.shape[-1] // num_heads)
            chosen = last(own, num_heads)[0][..., None, None]
            read = jnp.take_along_axis(parts, chosen, axis=-2, mode="promise_in_bounds")[..., 0, :]
        terms.append(read * part(weights)[..., None].astype(sums))
    return terms[0] if axis is None else jnp.concatenate(jnp.broadcast_arrays(*terms), axis)
