"""Warnings of probable mistakes: hints for debugging, and images in another layout.

Hints are given with JAXTEX_DEBUG=1 in the environment. Without the variable no values are inspected, since each read
would copy a number from the device. `warnings.filterwarnings` silences a hint that does not apply.
"""

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .texels import disorder

VARIABLE = "JAXTEX_DEBUG"
# Normalized coordinates more than one size of the texture beyond it are far outside.
FAR = (-1.0, 2.0)
# Even of coordinates in texels, the first pixel centers lie inside.
SHARE = 0.9


def is_on() -> bool:
    """Whether the environment asks for hints. A compiled function keeps the answer from when it was traced."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def mention_swapped_shape(name: str, output_shape: tuple[int, ...], image_shape: tuple[int, ...]) -> None:
    """Warns of an output shape whose sides look swapped."""
    if len(output_shape) != 2:
        return
    height, width = image_shape[-3:-1]
    if height != width and output_shape[0] * height == output_shape[1] * width:
        warnings.warn(
            f"{name}: output_shape is {output_shape}, the height and the width, and would make an image of {height} x "
            f"{width} pixels lie on its side. If it is (width, height), pass output_shape={output_shape[::-1]}.",
            stacklevel=2,
        )


def mention_primitive(reason: str) -> None:
    """Warns of a coordinate function without a kernel on a GPU because of a primitive without a rule."""
    warnings.warn(
        f"a function of coordinates runs outside of GPU kernels, in arrays, because {reason}. This is slower; "
        f"docs/performance.md lists what such a function may hold.",
        stacklevel=2,
    )


def mention_far_coords(name: str, coords: Sequence[jax.Array], knots: Sequence[jax.Array | None] | None) -> None:
    """Warns if nearly all normalized coordinates lie far outside, as if in texels.

    Args:
        coords: of one rank. Those on an axis with knots have the unit of these.
    """

    def warn(share: Any) -> None:
        if share > SHARE:
            warnings.warn(
                f"{name}: {100 * float(share):.0f} % of the coordinates lie far outside the texture, which spans 0 to "
                f"1. If they are in texels, pass jaxtex.Sampler(normalized_coords=False).",
                stacklevel=2,
            )

    normalized = [coord for k, coord in enumerate(coords) if knots is None or knots[k] is None]
    if normalized:
        call_back(warn, share_far, *normalized)


@jax.jit
def share_far(*coords: jax.Array) -> jax.Array:
    """The share of the samples that have a coordinate far outside."""
    far = functools.reduce(jnp.logical_or, ((coord < FAR[0]) | (coord > FAR[1]) for coord in coords))
    return jnp.mean(far.astype(jnp.float32))


def mention_disorder(name: str, knots: Sequence[jax.Array | None]) -> None:
    """Warns of knots that neither increase nor decrease, or are not finite."""

    def warn(axis: str, values: Any) -> None:
        if reason := disorder(np.asarray(values)):
            warnings.warn(f"{name}: knots of {axis} {reason}", stacklevel=2)

    for axis, array in zip("xyz", knots):
        if array is not None:
            call_back(functools.partial(warn, axis), as_given, array)


def as_given(values: jax.Array) -> jax.Array:
    return values


def call_back(warn: Callable[[Any], None], summary: Callable[..., jax.Array], *arrays: jax.Array) -> None:
    """Calls `warn` on the host with ``summary(*arrays)``: once, however many samples or examples `jax.vmap` batches.

    Args:
        summary: of arrays of one rank, which may have more axes in front.
    """

    @jax.custom_batching.custom_vmap
    def report(*arrays: jax.Array) -> tuple[()]:
        jax.debug.callback(warn, summary(*arrays))
        return ()

    @report.def_vmap
    def batched(size: int, is_batched: Sequence[bool], *arrays: jax.Array) -> tuple[tuple[()], tuple[()]]:
        del size
        report(*(array if of_batch else array[None] for array, of_batch in zip(arrays, is_batched)))
        return (), ()

    report(*jax.lax.stop_gradient(arrays))


# Images whose axes seem to come in another order, or whose axis of channels seems to be missing


# Up to so many channels, and from so many rows and columns on, an array looks like an image in another layout.
MOST_COLORS, LEAST_SIDE = 4, 16
# The least side of small pictures that come in batches, such as digits.
LEAST_GRAY = 8
# No usual feature map has this many times as many columns as rows, or as many rows as columns.
THIN, TALL = 4, 2
# Numbers of channels in models are multiples of this.
CHANNELS = 8


def mention_layout(name: str, argument: str, shape: tuple[int, ...], stored: np.dtype[Any]) -> None:
    """Warns of the image of a warp that is read as ``(..., H, W, C)``, but looks as if it were something else."""
    remedies = list[str]()
    if looks_channels_first(shape[-3:]):
        remedies.append(f"If its channels come first, pass jnp.moveaxis({argument}, -3, -1).")
    if len(shape) == 3 and (remedies or looks_like_batch(shape, stored)):
        remedies.append(f"If it is a batch (N, H, W) of images without channels, pass {argument}[..., None].")
    if remedies:
        warnings.warn(
            f"{name}: {argument} has shape {shape}, read as (..., H, W, C): {shape[-3]} rows and {shape[-1]} channels. "
            f"{' '.join(remedies)}",
            stacklevel=3,
        )


def looks_channels_first(shape: Sequence[int]) -> bool:
    """Whether the sizes of an image are rather (C, H, W) than (H, W, C)."""
    return shape[0] <= MOST_COLORS < LEAST_SIDE <= min(shape[1:])


def looks_like_batch(shape: Sequence[int], stored: np.dtype[Any]) -> bool:
    """Whether the sizes of one image are rather (N, H, W), a batch without an axis of channels, than (H, W, C).

    The last two sizes of such a batch are alike, and the first is another number. A feature map of a model may have as
    many channels as columns, too, such as (48, 64, 64). But it is floating, the number of its channels is a multiple
    of 8, and its rows and columns are those of a picture, not four times as wide as high, or twice as high as wide. A
    batch is certain if one of these does not hold; with JAXTEX_DEBUG=1, equal last sizes suffice. Cubes of
    hyperspectral integers and maps of classes have other numbers of channels than columns.
    """
    count, height, width = shape
    short, long = sorted((height, width))
    if count == height or short < LEAST_GRAY or long > 2 * short:
        return False
    if count < height and short < LEAST_SIDE:
        return False  # a few rows of a few pixels
    is_square, is_integer = height == width, not jnp.issubdtype(stored, jnp.inexact)
    if is_square and (is_integer or width % CHANNELS or is_on()):
        return True
    if count < height:
        return THIN * count <= short
    return (is_square and count > TALL * height) or (is_integer and count >= THIN * height)
