"""Hints for debugging: with JAXTEX_DEBUG=1 in the environment, reads that are probably mistakes are mentioned.

A hint about values copies a number from the device in each read, so without the variable no values are inspected.
`warnings.filterwarnings` silences a hint that does not apply.
"""

# pyright: strict, reportUnknownMemberType=false

import os
import warnings
from typing import Any

import jax
import jax.numpy as jnp

from ..modes import FilterMode
from ..sampler import Sampler

VARIABLE = "JAXTEX_DEBUG"
# Normalized coordinates farther than one size of the texture from it are far outside.
FAR = (-1.0, 2.0)
# The first pixel centers of an image lie inside even if all others are far outside.
SHARE = 0.9


def is_on() -> bool:
    """Whether the environment asks for hints. A compiled function keeps what held when it was traced."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def mention_smoothing(name: str, sampler: Sampler) -> None:
    """Warns of a read by a B-spline that smooths: samples might be meant to be interpolated. Nothing in a texture tells
    samples from coefficients, so this says what to do if it holds samples.
    """
    if sampler.filter_mode is FilterMode.BSPLINE and sampler.kernel.num_taps > 2:
        warnings.warn(
            f"{name}: filter_mode='bspline' smooths the texels. If they are samples that the read should pass through, "
            f"read jaxtex.spline_filter(texture, sampler) in place of the texture.",
            stacklevel=4,
        )


def mention_swapped_shape(name: str, output_shape: tuple[int, ...], image_shape: tuple[int, ...]) -> None:
    """Warns of a size of an image whose sides have the ratio of the image's, but the other way round."""
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
    """Warns of a function of coordinates for which there is no kernel on a GPU: it might be written without a primitive
    that has no rule.
    """
    warnings.warn(
        f"a function of coordinates runs outside of GPU kernels, in arrays, because {reason}. This is slower; "
        f"docs/performance.md lists what such a function may hold.",
        stacklevel=2,
    )


def mention_far_coords(name: str, coords: tuple[Any, ...]) -> None:
    """Warns where nearly all normalized coordinates of a read lie far outside: they might be in texels."""
    far = jnp.zeros((), bool)
    for coord in coords:
        far = far | (jnp.asarray(coord) < FAR[0]) | (jnp.asarray(coord) > FAR[1])

    def warn(share: Any) -> None:
        if share > SHARE:
            warnings.warn(
                f"{name}: {100 * float(share):.0f} % of the coordinates lie far outside the texture, which spans 0 to "
                f"1. If they are in texels, pass jaxtex.Sampler(normalized_coords=False).",
                stacklevel=2,
            )

    jax.debug.callback(warn, jnp.mean(far.astype(jnp.float32)))
