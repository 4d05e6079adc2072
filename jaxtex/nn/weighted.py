"""Sums of weighted reads."""

# pyright: strict, reportUnknownMemberType=false

import functools
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .. import _reads
from .._arguments import ReadArguments, check_number, check_read_arguments, check_sampler, check_texture, common_shape
from .._tables.storage_formats import sum_dtype
from .._typed_jit import typed_jit
from ..sampler import Sampler
from ..sampling import DEFAULT_SAMPLER, Coords
from ..texture import Texture

NAME = "sample_weighted"


def sample_weighted(
    textures: Texture | Sequence[Texture],
    coords: Coords,
    weights: ArrayLike,
    sampler: Sampler = DEFAULT_SAMPLER,
    *,
    axis: int | tuple[int, ...] = -1,
    layer: ArrayLike | None = None,
    lod: ArrayLike | None = None,
) -> jax.Array:
    """Sums weighted reads: ``sum_k weights_k sample(texture, coords_k)`` along axes of the samples.

    Args:
        textures: a `Texture`, or a sequence of L textures of one kind, dtype and number of channels, and of any sizes.
            Of a sequence, entry l of the first of `axis`, whose length is L, is read from texture l.
        coords: a tuple of arrays, ``(x,)``, ``(x, y)`` or ``(x, y, z)``, as `jaxtex.sample` takes them.
        weights: numbers that broadcast with the coordinates, `layer` and `lod` to a common shape S.
        sampler: how to read, a `Sampler`. An address mode that it does not set is clamp.
        axis: the axes of S along which to sum, an integer or a tuple of integers; ``()`` sums nothing.
        layer: integers that broadcast to S, the layer of a layered texture, as `jaxtex.sample` takes it.
        lod: numbers that broadcast to S, the level of detail of a texture with a mip chain.

    Returns:
        S without `axis`, + (C,). The dtype is that of a read by `jaxtex.sample`; float32 if that is an integer.
        Weights and sums are computed in float32, or in float64 if texels, coordinates or weights are float64.

    Gradients: of any order, in forward and reverse mode, with respect to floating texels, the border colors, the
        coordinates, the weights and `lod`; those of `jaxtex.sample` for each read.

    Raises:
        ValueError: if coordinates, weights, axis, layer or sampler do not fit the textures, or textures differ in kind,
            dtype or channels.
        TypeError: if an argument has the wrong type.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> ramp = jt.texture1d(jnp.array([[10.0], [20.0], [30.0], [40.0]]))
        >>> x, weights = jnp.array([0.25, 0.5, 0.75]), jnp.array([1.0, 2.0, 1.0])
        >>> jt.nn.sample_weighted(ramp, (x,), weights)
        Array([100.], dtype=float32)
        >>> coarse = jt.texture1d(jnp.array([[15.0], [35.0]]))
        >>> jt.nn.sample_weighted((ramp, coarse), (0.5,), jnp.array([0.5, 0.5]))
        Array([25.], dtype=float32)
    """
    several = not isinstance(textures, Texture)
    if several and not isinstance(textures, tuple | list):
        check_texture(NAME, textures, coords)
    entries = tuple(cast(Sequence[Texture], textures)) if several else (textures,)
    if not entries:
        raise ValueError(f"{NAME}: textures is empty, expected at least one Texture.")
    for texture in entries:
        check_texture(NAME, texture, coords)
        check_sampler(NAME, texture.kind, texture.dtype, texture.num_levels, sampler)
    check_alike(entries)
    arguments = check_read_arguments(NAME, entries[0].kind, coords, layer, lod)
    numbers = check_number(NAME, "weights", weights)
    shape = check_weights(arguments, numbers)
    axes = check_axes(axis, shape)
    if several and (not axes or shape[axes[0]] != len(entries)):
        of = f"axis {axes[0]} of the samples' shape {shape}" if axes else "axis=()"
        raise ValueError(
            f"{NAME}: textures holds {len(entries)} textures, but {of} has another length; the first of axis needs one "
            f"entry for each texture."
        )
    own = _reads.own_dtype(entries[0], sampler)
    dtype = own if jnp.issubdtype(own, jnp.floating) else np.dtype(np.float32)
    return weighted(entries, arguments, numbers, sampler=sampler, axes=axes, several=several, dtype=dtype)


def check_alike(textures: Sequence[Texture]) -> None:
    """Textures that differ in their sizes alone."""
    first, *others = ((t.kind, t.dtype, t.num_channels) for t in textures)
    for k, other in enumerate(others, 1):
        if other != first:
            kind, dtype, channels = other
            raise ValueError(
                f"{NAME}: textures[{k}] has kind {kind.value!r}, dtype {dtype} and {channels} channels, expected those "
                f"of textures[0]: {first[0].value!r}, {first[1]} and {first[2]}."
            )


def check_weights(arguments: ReadArguments, weights: Any) -> tuple[int, ...]:
    """The shape S that coordinates and weights broadcast to."""
    shape = common_shape(arguments)
    try:
        return np.broadcast_shapes(shape, weights.shape)
    except ValueError:
        raise ValueError(
            f"{NAME}: weights has shape {weights.shape}, which does not broadcast with the shape {shape} of the "
            f"coordinates."
        ) from None


def check_axes(axis: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes to sum along, counted from the front."""
    given = cast(tuple[Any, ...], axis if isinstance(axis, tuple | list) else (axis,))
    ndim = len(shape)
    known = all(isinstance(a, int | np.integer) and not isinstance(a, bool) and -ndim <= a < ndim for a in given)
    axes = tuple(int(a) % ndim for a in given) if known else ()
    if not known or len(set(axes)) < len(axes):
        raise ValueError(
            f"{NAME}: axis is {axis!r}, expected different integers from {-ndim} to {ndim - 1}, axes of the samples' "
            f"shape {shape}."
        )
    return axes


@typed_jit("sampler", "axes", "several", "dtype")
def weighted(
    textures: tuple[Texture, ...],
    arguments: ReadArguments,
    weights: Any,
    *,
    sampler: Sampler,
    axes: tuple[int, ...],
    several: bool,
    dtype: np.dtype[Any],
) -> jax.Array:
    """The sum, read by read."""
    shape = np.broadcast_shapes(common_shape(arguments), weights.shape)
    sums = sum_dtype(textures[0].dtype, *(a.dtype for a in jax.tree.leaves((arguments.coords, weights))))
    factors = jnp.asarray(weights, sums)
    factors = jnp.expand_dims(factors, tuple(range(len(shape) - factors.ndim)))

    def part(leaf: Any, entry: int) -> Any:
        """The entry of an array along the first of `axes`, which stays as an axis of length 1."""
        along = axes[0] - len(shape)
        if leaf.ndim < -along or leaf.shape[along] == 1:
            return leaf
        return jax.lax.slice_in_dim(leaf, entry, entry + 1, axis=leaf.ndim + along)

    terms: list[jax.Array] = []
    for k, texture in enumerate(textures):
        given, weight = arguments, factors
        if several:
            given = cast(ReadArguments, jax.tree.map(functools.partial(part, entry=k), arguments))
            weight = part(factors, k)
        read = _reads.sample(texture, given, sampler=sampler, dtype=sums)
        read = jnp.expand_dims(read, tuple(range(len(shape) + 1 - read.ndim)))
        terms.append((read * weight[..., None]).sum(axes))
    return functools.reduce(jnp.add, terms).astype(dtype)
