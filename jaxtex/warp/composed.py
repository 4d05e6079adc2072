"""Warps by a chain of matrices, flows and functions; the image is read once."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

import jax
from jax.typing import ArrayLike, DTypeLike

from .._checks.calls import public
from .._checks.numbers import as_array
from .._checks.words import described
from .._engine.api import Operand, Stacked
from .._jax.calls import StaticFunction
from ..modes import AddressMode
from ..sampler import FilterModeLike, Sampler
from .coordinate_functions import (
    Composed,
    CoordinateFunction,
    GridFunction,
    OfCaller,
    affine,
    as_parameters,
    check_is_elementwise,
    displaced,
    matrix_parameters,
    projective,
)
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

# A matrix from point to point; a flow, one array or a tuple of arrays; a function, or a tuple of one and parameters.
Transform: TypeAlias = ArrayLike | Points | CoordinateFunction | tuple[CoordinateFunction | ArrayLike, ...]


@dataclasses.dataclass(frozen=True)
class ByFunction:
    """A transform by a caller's function."""

    function: CoordinateFunction
    parameters: tuple[ArrayLike, ...]


# A transform as functions of this room take it.
Step: TypeAlias = ArrayLike | Points | ByFunction


@public(compiled=True)
def warp_chain(
    image: ArrayLike,
    transforms: Sequence[Transform],
    output_shape: ShapeLike | None = None,
    sampler: Sampler | None = None,
    *,
    flow_sampler: Sampler | None = None,
    filter_mode: FilterModeLike | None = None,
    address_mode: AddressLike | None = None,
    border_color: ArrayLike | None = None,
    antialias: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """Warps images by a chain of matrices, flows and functions, and reads them only once.

    The output pixel at p shows the image at ``t_n(...t_2(t_1(p)))``. A matrix multiplies the point, and a flow maps it
    to ``point + flow(point)``. Matrices and functions are applied inside the read, so no array of points is stored. A
    flow that follows another transform is interpolated once, and so is the image.

    Args:
        image: ``(..., H, W, C)``, or volumes ``(..., D, H, W, C)``, as in `resample`.
        transforms: a list of maps from output to image, first to last. Each is one of these:

            - a matrix from point to point: ``(..., 2, 3)`` affine or ``(..., 3, 3)`` projective; for volumes
              ``(..., 3, 4)`` or ``(..., 4, 4)``. It maps from output to image, as in `warp_affine` with
              ``inverse_map=True``.
            - a flow in its own pixels: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, or a tuple of arrays, as in
              `warp_flow`. Place a coarse flow between a matrix that maps into its pixels and one that maps out of them.
            - a function ``f(x, y)`` or ``f(x, y, z)`` of coordinates, which returns as many, or a tuple of one and its
              parameters, ``(f, a, b)`` for ``f(x, y, a, b)``: numbers, or arrays of leading batch axes. As beside
              `parameters` in `resample`, it is elementwise and hashable, and closes over constants alone.

            The leading axes of all transforms broadcast with those of `image`.
        output_shape: the spatial shape of the output. The default is that of the flow, if the first transform is one,
            else that of the image.
        flow_sampler: how flows are interpolated. By default the filter is linear, and outside a flow keeps the value at
            its edge. With ``Sampler(filter_mode="bspline")`` a coarse flow holds the control points of a free-form
            deformation.
        antialias: as in `resample`. If a transform is a flow, the footprint of a pixel is the difference between the
            points of its neighbors.
        sampler, filter_mode, address_mode, border_color, dtype: as in `resample`.

    Returns:
        ``(..., *output_shape, C)``.

    Gradients: of any order, as in `resample`, with respect to image, every matrix, flow and parameter, and border
        color. Reverse mode stores the values that are read from each flow.

    Raises:
        ValueError: if shapes do not fit, or fit images and volumes alike, or `flow_sampler` is given and no flow is
            interpolated.
        TypeError: if `transforms` is not a list or a tuple, or a function closes over traced arrays.

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> image = np.arange(4.0)[None, :, None]
        >>> double = np.array([[2.0, 0, 0], [0, 1, 0]])
        >>> flow = np.ones((1, 2)), np.zeros((1, 2))   # two pixels, each as wide as two output pixels
        >>> jt.warp.warp_chain(image, [double / np.array([[4.0], [1]]), flow, double])[0, :, 0]
        Array([2., 3., 0., 0.], dtype=float32)
    """
    name = "warp_chain"
    options = read_options(name, sampler, filter_mode, address_mode, border_color, antialias, dtype)
    points = composed(name, as_transforms(name, transforms), output_shape, image, flow_sampler)
    return warp_image(name, image, points.function, points.parameters, points.output_shape, options)


class ComposedPoints(NamedTuple):
    """The points of an image that an output shows: a coordinate function, its parameters, and the output's shape."""

    function: Composed
    parameters: tuple[Operand, ...]
    output_shape: tuple[int, ...]


def as_transforms(name: str, transforms: Any) -> tuple[Step, ...]:
    """Transforms, at least one."""
    if not isinstance(transforms, tuple | list):
        came = transforms.function if isinstance(transforms, StaticFunction) else transforms
        raise TypeError(
            f"{name}: transforms is {described(came)}, expected a list of matrices, flows and functions, first to "
            f"last; put a single transform into a list."
        )
    found = tuple(as_step(t) for t in cast(Sequence[Any], transforms))
    if not found:
        raise ValueError(f"{name}: transforms is empty, expected at least one matrix, flow or function.")
    return found


def as_step(transform: Any) -> Step:
    """A transform whose function, if it has one, is a `ByFunction`."""
    parts = cast(Sequence[Any], transform) if isinstance(transform, tuple | list) else (transform,)
    if not any(isinstance(part, StaticFunction) for part in parts[:1]):
        return cast(Step, transform)
    return ByFunction(parts[0].function, tuple(parts[1:]))


def composed(
    name: str,
    transforms: Sequence[Step],
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
    output_shape = of_output(transforms, output_shape, ndim)
    shape = spatial_shape(name, image, output_shape, ndim, argument, "transforms")
    how = ReadOptions(resolve_sampler(name, flow_sampler, None, None, AddressMode.CLAMP))
    points = ComposedPoints(Composed(()), (), shape)
    check_flow_sampler(name, flow_sampler, transforms, ndim, shape)
    for transform in transforms:
        added, parameters = link(name, transform, points, ndim, how, image)
        points = ComposedPoints(Composed((*points.function.links, added)), (*points.parameters, *parameters), shape)
    return points


def of_output(transforms: Sequence[Step], output_shape: ShapeLike | None, ndim: int) -> ShapeLike | None:
    """The spatial shape of an output: the one given, or that of the flow, if the first transform is one."""
    if output_shape is None and is_flow(transforms[0], ndim):
        return shape_of(transforms[0])[-ndim - 1 : -1]
    return output_shape


def check_flow_sampler(
    name: str,
    flow_sampler: Sampler | None,
    transforms: Sequence[Step],
    ndim: int,
    output_shape: tuple[int, ...] | None,
) -> None:
    """Checks that a given sampler reads a flow. It does not read a first one with a vector for each output pixel."""
    first, *others = (shape_of(t)[-ndim - 1 : -1] if is_flow(t, ndim) else None for t in transforms)
    if flow_sampler is not None and first in (None, output_shape) and not any(others):
        raise ValueError(
            f"{name}: flow_sampler is given, but no flow is interpolated: none comes after another transform, or has "
            f"another shape than the output; leave flow_sampler out."
        )


def link(
    name: str, transform: Step, before: ComposedPoints, ndim: int, how: ReadOptions, image: ArrayLike
) -> tuple[tuple[GridFunction, int], tuple[Operand, ...]]:
    """A transform as a link of `Composed`, and its parameters at the points before it."""
    if isinstance(transform, ByFunction):
        function, parameters = caller_function(name, transform, ndim, image)
        return (function, len(parameters)), parameters
    if not is_flow(transform, ndim):
        matrix = as_floats(cast(ArrayLike, transform))[0]
        parameters = matrix_parameters(matrix, ndim)
        return (affine if matrix.shape[-2] == ndim else projective, len(parameters)), parameters
    parameters, shape = field_parameters(name, "transforms", transform)
    if before.function.links or shape != before.output_shape:
        (flow,) = as_floats(stacked(name, "transforms", transform), like=image)
        parameters = (Stacked.last(warp_image(name, flow, *before, how, argument="transforms")),)
    return (displaced, ndim), parameters


def caller_function(
    name: str, transform: ByFunction, ndim: int, image: ArrayLike
) -> tuple[OfCaller, tuple[jax.Array, ...]]:
    """A caller's function as a coordinate function, and its parameters."""
    arrays = as_floats(*transform.parameters, like=image)
    remedy = "put a tuple of the function and the array into transforms, and let the function take it after the point"
    check_is_elementwise(name, transform.function, ndim, arrays, remedy)
    return OfCaller(transform.function), as_parameters([list(arrays)], ndim)


def num_coordinates(
    name: str, transforms: Sequence[Step], output_shape: ShapeLike | None, counts: Sequence[int] = (2, 3)
) -> int:
    """The number of coordinates of a point, from the axes of the output or from the transforms.

    Args:
        counts: how many there may be.
    """
    given = None if output_shape is None else len(as_shape(name, "output_shape", output_shape))
    fitting = [n for n in counts if given in (None, n) and all(fits(t, n) for t in transforms)]
    if len(fitting) == 1 or all(isinstance(t, ByFunction) for t in transforms):
        return fitting[0]  # without an output_shape, functions are of images, as in resample
    shapes = ", ".join("a function" if isinstance(t, ByFunction) else str(shape_of(t)) for t in transforms)
    if fitting:
        raise ValueError(f"{name}: transforms of shapes {shapes} fit images and volumes; pass output_shape.")
    of_output = "" if given is None else f" for an output of {given} axes"
    of_points = f", and points of {counts[0]} coordinates" if len(counts) == 1 else ""
    raise ValueError(
        f"{name}: transforms have shapes {shapes}; expected matrices (..., n, n + 1) or (..., n + 1, n + 1) and flows "
        f"(..., H, W, 2) or (..., D, H, W, 3), all with the same n{of_output}{of_points}."
    )


def fits(transform: Step, ndim: int) -> bool:
    """Whether a transform may map points of so many coordinates."""
    return isinstance(transform, ByFunction) or is_flow(transform, ndim) or is_matrix(transform, ndim)


def shape_of(transform: ArrayLike | Points) -> tuple[int, ...]:
    """The shape of a matrix or a flow; of a tuple of arrays, that of their stack."""
    if not isinstance(transform, tuple | list):
        return as_array(transform).shape
    shape = broadcast(*(as_array(c).shape for c in transform))
    return () if shape is None else (*shape, len(transform))


def is_flow(transform: Step, ndim: int) -> TypeGuard[ArrayLike | Points]:
    """Whether a transform is a flow of so many components."""
    if isinstance(transform, ByFunction):
        return False
    shape = shape_of(transform)
    return len(shape) > ndim and shape[-1] == ndim


def is_matrix(transform: Step, ndim: int) -> bool:
    """Whether a transform is a matrix of points of so many coordinates."""
    shapes = (ndim, ndim + 1), (ndim + 1, ndim + 1)
    return not isinstance(transform, tuple | list | ByFunction) and as_array(transform).shape[-2:] in shapes
