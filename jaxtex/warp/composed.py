"""Warps by a chain of matrices and flows; the image is read once."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import jax
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_array
from .._checks.words import described
from .._engine.api import Operand, Stacked
from ..modes import AddressMode
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import Composed, GridFunction, affine, displaced, matrix_parameters, projective
from .fields import field_parameters, stacked
from .images import warp_image
from .options import (
    AddressLike,
    Points,
    ReadOptions,
    ShapeLike,
    as_floats,
    as_shape,
    broadcast,
    read_options,
    resolve_sampler,
    spatial_shape,
)

# A matrix from point to point, or a flow: one array, or a tuple of arrays.
Transform: TypeAlias = ArrayLike | Points


@public(compiled=True)
def warp_chain(
    image: ArrayLike,
    transforms: Sequence[Transform],
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    flow_sampler: Sampler | None = None,
    filter: FilterModeLike | None = None,
    address: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by a chain of matrices and flows, and reads them only once.

    The output pixel at p shows the image at ``t_n(...t_2(t_1(p)))``. A matrix multiplies the point, and a flow maps it
    to ``point + flow(point)``. Matrices are applied inside the read, so no array of points is stored. A flow that
    follows another transform is interpolated once, and so is the image.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        transforms: the matrices and flows from output to image, first to last. Each is one of these:

            - a matrix from point to point: ``(..., 2, 3)`` affine or ``(..., 3, 3)`` projective; for volumes
              ``(..., 3, 4)`` or ``(..., 4, 4)``. It maps from output to image, as in `warp_affine` with
              ``inverse_map=True``.
            - a flow in its own pixels: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, or a tuple of arrays, as in
              `warp_flow`. Place a coarse flow between a matrix that maps into its pixels and one that maps out of them.

            The leading axes of all transforms broadcast with those of `image`.
        output_shape: the spatial shape of the output. The default is that of the flow, if the first transform is one,
            else that of the image.
        flow_sampler: how flows are interpolated. By default the filter is linear, and outside a flow keeps the value at
            its edge. With ``Sampler(filter_mode="bspline")`` a coarse flow holds the control points of a free-form
            deformation.
        antialias: as in `resample`. If a transform is a flow, the footprint of a pixel is the difference between the
            points of its neighbors.
        sampler, filter, address, border_color, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, every matrix, every flow and border color.
        Reverse mode stores the values that are read from each flow.

    Raises:
        ValueError: if shapes do not fit, or fit images and volumes alike, or `flow_sampler` is given and no flow is
            interpolated.
        TypeError: if `transforms` is not a list or a tuple.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> double = np.array([[2.0, 0, 0], [0, 1, 0]])
        >>> flow = np.ones((1, 2)), np.zeros((1, 2))   # two pixels, each as wide as two output pixels
        >>> jt.warp.warp_chain(image, [double / np.array([[4.0], [1]]), flow, double])[0, :, 0]
        Array([2., 3., 0., 0.], dtype=float32)
    """
    name = "warp_chain"
    options = read_options(name, sampler, filter, address, border_color, antialias, dtype)
    points = composed(name, as_transforms(name, transforms), output_shape, image, flow_sampler)
    return warp_image(name, image, points.function, points.parameters, points.output_shape, options)


class ComposedPoints(NamedTuple):
    """The points of an image that an output shows: a coordinate function, its parameters, and the output's shape."""

    function: Composed
    parameters: tuple[Operand, ...]
    output_shape: tuple[int, ...]


def as_transforms(name: str, transforms: Any) -> tuple[Transform, ...]:
    """Transforms, at least one."""
    if not isinstance(transforms, tuple | list):
        raise TypeError(
            f"{name}: transforms is {described(transforms)}, expected a list of matrices and flows, first to last; "
            f"put a single transform into a list."
        )
    found = tuple(cast(Sequence[Transform], transforms))
    if not found:
        raise ValueError(f"{name}: transforms is empty, expected at least one matrix or flow.")
    return found


def composed(
    name: str,
    transforms: Sequence[Transform],
    output_shape: ShapeLike | None,
    image: ArrayLike,
    flow_sampler: Sampler | None,
    argument: str = "image",
) -> ComposedPoints:
    """A chain of transforms as one coordinate function. Flows that others move are read here.

    Args:
        argument: the name of the image.
    """
    ndim = num_coordinates(name, transforms, output_shape)
    if output_shape is None and is_flow(transforms[0], ndim):
        output_shape = shape_of(transforms[0])[-ndim - 1 : -1]
    shape = spatial_shape(name, image, output_shape, ndim, argument, "transforms")
    how = ReadOptions(resolve_sampler(name, flow_sampler, None, None, AddressMode.CLAMP))
    points = ComposedPoints(Composed(()), (), shape)
    if flow_sampler is not None and not reads_a_flow(transforms, ndim, shape):
        raise ValueError(
            f"{name}: flow_sampler is given, but no flow is interpolated: none comes after another transform, or has "
            f"another shape than the output; leave flow_sampler out."
        )
    for transform in transforms:
        added, parameters = link(name, transform, points, ndim, how, image)
        points = ComposedPoints(Composed((*points.function.links, added)), (*points.parameters, *parameters), shape)
    return points


def reads_a_flow(transforms: Sequence[Transform], ndim: int, output_shape: tuple[int, ...]) -> bool:
    """Whether a flow of a chain is interpolated. The first one is not if it has a vector for each output pixel."""
    first, *others = (shape_of(t)[-ndim - 1 : -1] if is_flow(t, ndim) else None for t in transforms)
    return first not in (None, output_shape) or any(others)


def link(
    name: str, transform: Transform, before: ComposedPoints, ndim: int, how: ReadOptions, image: ArrayLike
) -> tuple[tuple[GridFunction, int], tuple[Operand, ...]]:
    """A transform as a link of `Composed`, and its parameters at the points before it."""
    if not is_flow(transform, ndim):
        matrix = as_floats(cast(ArrayLike, transform))[0]
        parameters = matrix_parameters(matrix, ndim)
        return (affine if matrix.shape[-2] == ndim else projective, len(parameters)), parameters
    parameters, shape = field_parameters(name, "transforms", transform)
    if before.function.links or shape != before.output_shape:
        (flow,) = as_floats(stacked(name, "transforms", transform), like=image)
        parameters = (Stacked.last(warp_image(name, flow, *before, how, argument="transforms")),)
    return (displaced, ndim), parameters


def num_coordinates(name: str, transforms: Sequence[Transform], output_shape: ShapeLike | None) -> int:
    """The number of coordinates of a point, from the axes of the output or from the transforms."""
    counts = (2, 3) if output_shape is None else (len(as_shape(name, "output_shape", output_shape)),)
    fitting = [n for n in counts if all(is_flow(t, n) or is_matrix(t, n) for t in transforms)]
    if len(fitting) == 1:
        return fitting[0]
    shapes = ", ".join(str(shape_of(t)) for t in transforms)
    if fitting:
        raise ValueError(f"{name}: transforms of shapes {shapes} fit images and volumes; pass output_shape.")
    of_output = "" if output_shape is None else f" for an output of {counts[0]} axes"
    raise ValueError(
        f"{name}: transforms have shapes {shapes}; expected matrices (..., n, n + 1) or (..., n + 1, n + 1) and flows "
        f"(..., H, W, 2) or (..., D, H, W, 3), all with the same n{of_output}."
    )


def shape_of(transform: Transform) -> tuple[int, ...]:
    """The shape of a transform; of a tuple of arrays, that of their stack."""
    if not isinstance(transform, tuple | list):
        return as_array(transform).shape
    shape = broadcast(*(as_array(c).shape for c in transform))
    return () if shape is None else (*shape, len(transform))


def is_flow(transform: Transform, ndim: int) -> bool:
    """Whether a transform is a flow of so many components."""
    shape = shape_of(transform)
    return len(shape) > ndim and shape[-1] == ndim


def is_matrix(transform: Transform, ndim: int) -> bool:
    """Whether a transform is a matrix of points of so many coordinates."""
    shapes = (ndim, ndim + 1), (ndim + 1, ndim + 1)
    return not isinstance(transform, tuple | list) and as_array(transform).shape[-2:] in shapes
