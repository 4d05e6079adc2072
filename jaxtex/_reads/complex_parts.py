"""Complex numbers in place of floating ones: every channel is read as two, its real and its imaginary part."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from .._tables.storage_formats import real_dtype
from ..texture import Texture


def parts_of(array: jax.Array) -> jax.Array:
    """Complex channels, (..., C), as twice as many floating ones, the imaginary part of each behind the real one."""
    return jnp.stack([array.real, array.imag], -1).reshape(*array.shape[:-1], 2 * array.shape[-1])


def from_parts(parts: jax.Array) -> jax.Array:
    """The complex channels, (..., C), of their parts, (..., 2 C)."""
    pairs = parts.reshape(*parts.shape[:-1], parts.shape[-1] // 2, 2)
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def color_of_parts(color: Any, stored: np.dtype[Any], channels: int) -> jax.Array | None:
    """A border color, a number or (C,), as the parts of a complex one, (2 C,)."""
    return None if color is None else parts_of(jnp.broadcast_to(jnp.asarray(color, stored), (channels,)))


def by_parts(function: Callable[..., Any], first: Any, *args: Any, **static: Any) -> Any:
    """``function(first, *args, **static)`` of a complex texture or complex values, by reads or writes of their parts.

    Other complex arguments have channels last. Results and derivatives are complex, by the conventions of JAX.
    """
    static = {name: real_dtype(value) if name == "dtype" else value for name, value in static.items()}
    source = cast(Any, first[0] if isinstance(first, tuple) else first)
    color = source.border_color if isinstance(source, Texture) else None
    return mapped(functools.partial(joined, color=color), function(*mapped(in_parts, (first, *args)), **static))


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """A function of textures and arrays over a tree of them."""
    return jax.tree.map(function, tree, is_leaf=lambda leaf: isinstance(leaf, Texture))


def in_parts(leaf: Any) -> Any:
    """A texture or an array with parts in place of complex channels."""
    if not isinstance(leaf, Texture):
        return parts_of(leaf) if jnp.iscomplexobj(leaf) else leaf
    color = color_of_parts(leaf.border_color, leaf.dtype, leaf.num_channels)
    return with_channels(leaf, parts_of(leaf.texels), color)


def joined(leaf: Any, color: jax.Array | None) -> Any:
    """A texture of a border color, or an array, with complex channels in place of parts."""
    return with_channels(leaf, from_parts(leaf.texels), color) if isinstance(leaf, Texture) else from_parts(leaf)


def with_channels(texture: Texture, texels: jax.Array, color: jax.Array | None) -> Texture:
    """The texture with other channels."""
    shapes = texture.level_shapes and tuple((*shape[:-1], texels.shape[-1]) for shape in texture.level_shapes)
    return dataclasses.replace(texture, texels=texels, border_color=color, level_shapes=shapes)
