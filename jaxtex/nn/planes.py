"""Features of points that are read from planes: triplanes and K-planes."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.numbers import as_float
from .._checks.texels import check_sizes
from .._checks.words import check_word, described, shown
from .._jax.indexing import over_examples
from ..sampler import Sampler
from ..sampling import sample
from ..texture import texture2d, texture2d_layered
from .shapes import check_shape, check_texels
from .weighted import sample_weighted

ZEROS = Sampler(address_mode="border")
EDGE = Sampler(address_mode="clamp", normalized_coords=False)
AXES = {"x": 0, "y": 1, "z": 2}


@public(compiled=True)
def triplane(
    planes: ArrayLike,
    points: ArrayLike,
    *,
    plane_axes: Sequence[str] = ("xy", "xz", "zy"),
    reduce: Literal["mean", "sum"] = "mean",
) -> jax.Array:
    """Reads planes of features at the projections of points, and takes the mean or the sum over the planes.

    Args:
        planes: ``(..., 3, H, W, C)``, floating; or another number of planes, one for each entry of `plane_axes`.
            Leading axes are batches.
        points: ``(..., N, 3)``: x, y, z from -1 to 1 across the planes. Their leading axes are those of `planes`.
            Texels outside are zero.
        plane_axes: the two coordinates of a point at which each plane is read, the one along its width first; static.
            EG3D's first released code has ``("xy", "xz", "zx")``, whose last two planes share their coordinates. Models
            trained with that code need this value; the default is its authors' correction.
        reduce: ``"mean"`` or ``"sum"``, static. (EG3D takes the mean, in its decoder.)

    Returns:
        ``(..., N, C)`` in the dtype of `planes`. Sums are computed in float32, or in float64 if an argument is float64.

    Gradients: of any order, in forward and reverse mode, with respect to `planes` and `points`. At the center of a
        texel the slope is the one on the right.

    Raises:
        ValueError: if shapes do not fit each other, or an option is unknown.

    Source: E. Chan et al., "Efficient Geometry-aware 3D Generative Adversarial Networks" (EG3D), 2022: bilinear reads
        with ``align_corners=False`` and zeros outside. The correction: https://github.com/NVlabs/eg3d/issues/67.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> planes = np.ones((3, 4, 4, 2)) * np.array([1.0, 2.0, 6.0]).reshape(3, 1, 1, 1)
        >>> jt.nn.triplane(planes, np.zeros((1, 3)))
        Array([[3., 3.]], dtype=float32)
    """
    name = "triplane"
    pairs = check_plane_axes(name, plane_axes)
    check_word(name, "reduce", reduce, ("mean", "sum"))
    images = as_planes(name, "planes", planes)
    if images.ndim < 4 or images.shape[-4] != len(pairs):
        raise ValueError(
            f"{name}: planes has shape {images.shape}, expected (..., {len(pairs)}, H, W, C): one plane for each of "
            f"plane_axes, {plane_axes!r}."
        )
    places = as_points(name, points, images.shape[:-4], 3)
    weight = 1 / len(pairs) if reduce == "mean" else 1.0
    read = functools.partial(read_planes, pairs=pairs, weight=weight)
    for _ in range(images.ndim - 4):
        read = over_examples(read)
    return read(images, places)


def read_planes(planes: jax.Array, points: jax.Array, *, pairs: Sequence[tuple[int, int]], weight: float) -> jax.Array:
    """The weighted sum over the planes (P, H, W, C) at points (N, 3)."""
    place = (points + 1) / 2
    x, y = (jnp.stack([place[:, pair[k]] for pair in pairs]) for k in range(2))
    layer = jnp.arange(len(pairs), dtype=jnp.int32)[:, None]
    return sample_weighted(texture2d_layered(planes), (x, y), weight, ZEROS, axis=0, layer=layer)


@public(compiled=True)
def k_planes(planes: Sequence[ArrayLike], points: ArrayLike) -> jax.Array:
    """Reads a plane of features for each pair of coordinates, and multiplies the values.

    For features at several scales, call it for the planes of each scale, and add or concatenate the results.

    Args:
        planes: one array ``(..., H, W, C)``, floating, for each pair of the D coordinates, of any height and width: 3
            for points in space, in the order xy, xz, yz; 6 with time, in the order xy, xz, xt, yz, yt, zt. The first
            coordinate of a pair lies along the width. Leading axes are batches.
        points: ``(..., N, D)``, D from 2 to 4, from -1 to 1 between the centers of a plane's outer texels; points
            outside read the nearest texel of the edge. Leading axes are those of `planes`.

    Returns:
        ``(..., N, C)`` in the dtype of `planes`.

    Gradients: of any order, in forward and reverse mode, with respect to `planes` and `points`. At the center of a
        texel the slope is the one on the right.

    Raises:
        ValueError: if shapes do not fit each other.

    Source: S. Fridovich-Keil et al., "K-Planes", 2023: bilinear reads with ``align_corners=True`` and clamping.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> planes = [np.full((4, 5, 1), value) for value in (2.0, 3.0, 5.0)]
        >>> jt.nn.k_planes(planes, np.zeros((1, 3)))
        Array([[30.]], dtype=float32)
    """
    name = "k_planes"
    given: Any = planes
    if not isinstance(given, list | tuple) and not np.ndim(given):
        raise TypeError(f"{name}: planes is {described(planes)}, expected a sequence of arrays (..., H, W, C).")
    images = [as_planes(name, f"planes[{k}]", image) for k, image in enumerate(planes)]
    counts = {len(list(itertools.combinations(range(d), 2))): d for d in range(2, 5)}
    if len(images) not in counts:
        raise ValueError(
            f"{name}: planes holds {len(images)} arrays, expected 1, 3 or 6: one for each pair of 2, 3 or 4 "
            f"coordinates."
        )
    front, channels, dtype = images[0].shape[:-3], images[0].shape[-1], images[0].dtype
    for k, image in enumerate(images):
        expected = (*front, *image.shape[-3:-1], channels)
        check_shape(name, f"planes[{k}]", image, expected, "batch axes and channels of planes[0]")
    places = as_points(name, points, front, counts[len(images)])
    values: list[jax.Array] = []
    for image, pair in zip(images, itertools.combinations(range(places.shape[-1]), 2)):
        read = functools.partial(read_plane, pair=pair)
        for _ in front:
            read = over_examples(read)
        values.append(read(image, places))
    return functools.reduce(jnp.multiply, values).astype(dtype)


def read_plane(image: jax.Array, points: jax.Array, *, pair: tuple[int, int]) -> jax.Array:
    """The read of a plane (H, W, C) at two coordinates of points (N, D)."""
    sizes = image.shape[1::-1]
    x, y = ((points[:, axis] + 1) / 2 * (size - 1) + 0.5 for axis, size in zip(pair, sizes))
    return sample(texture2d(image), (x, y), EDGE)


def check_plane_axes(name: str, plane_axes: Any) -> tuple[tuple[int, int], ...]:
    """The coordinates of each plane, as numbers."""
    given = cast(tuple[Any, ...], plane_axes if isinstance(plane_axes, tuple) else ())
    known = all(isinstance(pair, str) and len(pair) == 2 and set(pair) <= AXES.keys() for pair in given)
    if not given or not known:
        raise ValueError(
            f"{name}: plane_axes is {shown(plane_axes)}, expected two of the letters x, y and z for each plane, such "
            f"as ('xy', 'xz', 'zy')."
        )
    return tuple((AXES[first], AXES[second]) for first, second in given)


def as_planes(name: str, argument: str, value: Any) -> jax.Array:
    """Floating numbers (..., H, W, C)."""
    array = jnp.asarray(value)
    if array.ndim < 3 or not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"{name}: {argument} has shape {array.shape} and dtype {array.dtype}, expected floating numbers "
            f"(..., H, W, C)."
        )
    check_texels(name, argument, array, array.shape[-3:-1])
    check_sizes(f"{name}: {argument} has shape {array.shape}", array.shape[-3:])
    return array


def as_points(name: str, points: ArrayLike, front: tuple[int, ...], dimensions: int) -> jax.Array:
    """Points (..., N, D) of the batch axes of the planes."""
    array = as_float(points)
    if array.ndim != len(front) + 2 or (*array.shape[:-2], array.shape[-1]) != (*front, dimensions):
        expected = ", ".join(map(str, (*front, "N", dimensions)))
        raise ValueError(f"{name}: points has shape {array.shape}, expected ({expected}) for these planes.")
    return array
