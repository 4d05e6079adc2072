"""Hints for debugging: with JAXTEX_DEBUG=1 in the environment, jaxtex warns of probable mistakes.

Without the variable no values are inspected, since each read would copy a number from the device.
`warnings.filterwarnings` silences a hint that does not apply.
"""

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..modes import FilterMode
from ..sampler import Sampler
from .texels import disorder

VARIABLE = "JAXTEX_DEBUG"
# Normalized coordinates more than one size of the texture beyond it are far outside.
FAR = (-1.0, 2.0)
# Even of coordinates in texels, the first pixel centers lie inside.
SHARE = 0.9


def is_on() -> bool:
    """Whether the environment asks for hints. A compiled function keeps the answer from when it was traced."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def mention_smoothing(name: str, sampler: Sampler) -> None:
    """Warns of a read by a B-spline, which smooths a texture of samples; a texture of coefficients looks alike."""
    if sampler.filter_mode is FilterMode.BSPLINE and sampler.kernel.num_taps > 2:
        warnings.warn(
            f"{name}: filter_mode='bspline' smooths the texels. If they are samples that the read should pass through, "
            f"read jaxtex.spline_filter(texture, sampler) in place of the texture.",
            stacklevel=4,
        )


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
