"""Points that follow a warped image: from the image to the output of a chain of transforms, and back."""

import functools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._checks.calls import public
from .._checks.words import check_word
from .._engine.api import Stacked, numbers
from .._jax.versions import stack
from ..modes import AddressMode
from ..sampler import Sampler
from .composed import (
    ByFunction,
    ComposedPoints,
    Step,
    Transform,
    as_transforms,
    caller_function,
    check_flow_sampler,
    is_flow,
    link,
    num_coordinates,
    of_output,
    shape_of,
)
from .coordinate_functions import (
    Arrays,
    Composed,
    GridFunction,
    affine,
    aligned,
    as_parameters,
    projective,
    row_times_point,
    stored_points,
)
from .fields import stacked
from .images import warp_image
from .inverses import Field, components_of, inverse_vectors, length
from .matrices import determinant, elements, inverted, of_unit_size
from .options import Points, ReadOptions, ShapeLike, as_floats, as_shape, broadcast, resolve_sampler

# Where points go: from the image to the output, or from the output to the image.
Place: TypeAlias = Literal["output", "image"]
PLACES = ("output", "image")
# The fixed-point iterations of the inverse of a flow, as those of `invert_flow`, before Newton's method.
STEPS = 20


@public(compiled=True)
def warp_points(
    points: ArrayLike | Points,
    transforms: Sequence[Transform],
    output_shape: ShapeLike | None = None,
    *,
    to: Place = "output",
    flow_sampler: Sampler | None = None,
) -> jax.Array | Arrays:
    """Returns where points of an image lie in the output of `warp_chain`, or points of the output in the image.

    Pass the transforms that warp the image. They map from output to image, so points of an image go through their
    inverses, last to first: those of matrices are exact, and those of flows and functions are solved for. Points of an
    output go through the transforms themselves.

    Args:
        points: ``(..., P, 2)``, x before y, or ``(..., P, 3)`` for volumes, in pixels from the top left corner, with
            pixel centers at +0.5; or a tuple of arrays ``(x, y)`` or ``(x, y, z)``. A single point may leave P out.
            Leading axes broadcast with those of the transforms. NaN stands for a point that is not known.
        transforms: as in `warp_chain`: matrices, flows and functions from output to image, first to last.
        output_shape: the spatial shape of the output, as in `warp_chain`. It says whether a flow that comes first has a
            vector for each pixel of the output. Such a flow is linear between them; `flow_sampler` does not read it.
        to: ``"output"``: `points` are those of the image. ``"image"``: they are those of the output.
        flow_sampler: as in `warp_chain`.

    Returns:
        Points in the form of `points`, float64 if an argument is, else float32. A point may lie outside of the output.
        It is NaN where it has no place: under a singular matrix, on the line that a homography maps to infinity, or
        where no inverse of a flow or a function was found; see `invert_flow`. Where several points of the output show
        one of the image, one of them is found: Newton's method starts at the point itself.

    Gradients: of any order, in forward and reverse mode, with respect to points, matrices, flows and parameters. Those
        of inverses follow from the implicit function theorem, and store no iterations. They are zero where the result
        is NaN, and not finite where the derivative of a transform is singular.

    Raises:
        ValueError: if shapes do not fit, or `flow_sampler` is given and no flow is interpolated.
        TypeError: if `transforms` is not a list or a tuple, or a function closes over traced arrays.

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> half = jnp.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])  # the output is half as large
        >>> jt.warp.warp_points(jnp.array([[3.0, 5.0]]), [half])
        Array([[1.5, 2.5]], dtype=float32)
        >>> jt.warp.warp_points((1.5, 2.5), [half], to="image")
        (Array(3., dtype=float32), Array(5., dtype=float32))
    """
    name = "warp_points"
    at, is_single = as_rows(name, points, transforms)
    moved = followed(name, "points", at, transforms, output_shape, to, flow_sampler)
    moved = tuple(c[..., 0] for c in moved) if is_single else moved
    return moved if isinstance(points, tuple | list) else stack(moved, -1)


def as_rows(name: str, points: Any, transforms: Any) -> tuple[Arrays, bool]:
    """The coordinates of points, (..., P), in the precision of all arguments, and whether P was left out."""
    leaves = [leaf for leaf in jax.tree.leaves(transforms) if leaf is not None]
    if isinstance(points, tuple | list):
        given = as_floats(*cast(Sequence[Any], points), *leaves)[: len(cast(Sequence[Any], points))]
        if len(given) not in (2, 3) or broadcast(*(c.shape for c in given)) is None:
            shapes = ", ".join(str(c.shape) for c in given)
            raise ValueError(
                f"{name}: points has arrays of shapes {shapes}, expected (x, y) or (x, y, z), of shapes that broadcast."
            )
        at = tuple(jnp.broadcast_arrays(*given))
    else:
        (array, *_) = as_floats(cast(ArrayLike, points), *leaves)
        if array.shape[-1:] not in ((2,), (3,)):
            raise ValueError(
                f"{name}: points has shape {array.shape}, expected (..., P, 2), x before y, or (..., P, 3) for "
                f"volumes, or a tuple of arrays."
            )
        at = components_of(array)
    return tuple(c[None] if c.ndim == 0 else c for c in at), at[0].ndim == 0


def followed(
    name: str,
    argument: str,
    at: Arrays,
    transforms: Any,
    output_shape: ShapeLike | None,
    to: Place,
    flow_sampler: Sampler | None,
) -> Arrays:
    """Points, arrays (..., P) of coordinates, on the other side of a chain of transforms.

    Args:
        argument: the name of the argument that they are from, for errors.
    """
    check_word(name, "to", to, PLACES)
    chain, ndim = as_transforms(name, transforms), len(at)
    num_coordinates(name, chain, output_shape, (ndim,))
    output_shape = of_output(chain, output_shape, ndim)
    shape = None if output_shape is None else as_shape(name, "output_shape", output_shape, (ndim,))
    options = [ReadOptions(resolve_sampler(name, how, None, None, AddressMode.CLAMP)) for how in (flow_sampler, None)]
    check_flow_sampler(name, flow_sampler, chain, ndim, shape)
    rank = check_batches(name, argument, at[0].shape[:-1], chain, ndim) + ndim
    # A row of points is a grid of one row, as the pixels of an output are, and has all batch axes.
    grid = (jnp.expand_dims(c, range(-ndim, -1)) for c in at)
    point, known = settled(tuple(jnp.expand_dims(c, range(rank - c.ndim)) for c in grid))
    for number, transform in sorted(enumerate(chain), key=lambda pair: pair[0], reverse=to == "output"):
        by_pixel = number == 0 and is_flow(transform, ndim) and shape_of(transform)[-ndim - 1 : -1] == shape
        step = through if to == "image" else back_through
        point, known = settled(step(name, transform, point, options[by_pixel]), known)
    return tuple(jnp.squeeze(jnp.where(known, c, jnp.nan), range(-ndim, -1)) for c in point)


def settled(point: Arrays, known: jax.Array | bool = True) -> tuple[Arrays, jax.Array]:
    """Points, and which of them are known. The others go on as zeros, so that all derivatives are numbers."""
    point = tuple(jnp.broadcast_arrays(*point))
    known = known & functools.reduce(jnp.logical_and, map(jnp.isfinite, point))
    return tuple(jnp.where(known, c, 0) for c in point), known


def through(name: str, transform: Step, point: Arrays, how: ReadOptions) -> Arrays:
    """Points on the side of the image of a transform, from those on the side of the output, as `warp_chain` has them.

    Args:
        point: arrays of coordinates (..., 1, P), with as many axes of points as the image has.
        how: the way to read a flow.
    """
    ndim = len(point)
    before = ComposedPoints(Composed(((stored_points, ndim),)), point, point[0].shape[-ndim:])
    (function, _), parameters = link(name, transform, before, ndim, how, point[0])
    return function(*aligned(*point, *numbers(parameters)))


def back_through(name: str, transform: Step, point: Arrays, how: ReadOptions) -> Arrays:
    """The inverse of `through`; not finite where there is none."""
    ndim, like = len(point), point[0]
    if isinstance(transform, ByFunction):
        function, parameters = caller_function(name, transform, ndim, like)
        return solved(FunctionField(function), 0, point, parameters)
    if is_flow(transform, ndim):
        (flow,) = as_floats(stacked(name, "transforms", transform), like=like)
        return solved(FlowField(name, how), STEPS, point, (flow,))
    (matrix,) = as_floats(cast(ArrayLike, transform), like=like)
    return back_through_matrix(matrix, point)


def back_through_matrix(matrix: jax.Array, point: Arrays) -> Arrays:
    """Points times the inverse of a matrix; NaN under a singular one, and where a homography leads to infinity."""
    ndim, rows = len(point), elements(matrix)
    is_affine = len(rows) == ndim
    rows = rows if is_affine else of_unit_size(rows)
    exists = determinant([row[:ndim] for row in rows] if is_affine else rows) != 0
    rows = [[jnp.where(exists, e, float(i == k)) for k, e in enumerate(row)] for i, row in enumerate(rows)]
    *operands, exists = aligned(*point, *as_parameters([*inverted(rows), [exists]], ndim))
    found = (affine if is_affine else projective)(*operands)
    if not is_affine:
        exists = exists * row_times_point(tuple(operands[:ndim]), tuple(operands[-ndim - 1 :]))
    return tuple(jnp.where(exists != 0, c, jnp.nan) for c in found)


def solved(field: Field, steps: int, point: Arrays, parameters: Arrays) -> Arrays:
    """The points that a field of displacements leads to `point`; NaN where none was found.

    Args:
        field: its vectors at points plus vectors, the arguments being the vectors, the points and `parameters`.
        steps: the number of fixed-point iterations before Newton's method.
    """
    points = stack(point, -1)
    first = field(jnp.zeros_like(points), points, *parameters)
    points = points + jnp.zeros_like(first)  # with the batch axes of the parameters
    start = -first if steps else jnp.zeros_like(first)
    size = 1 + length(points) + length(first)
    vectors = inverse_vectors(field, max(steps - 1, 0), start, size, (points, *parameters))
    return components_of(points + vectors)


class FlowField(NamedTuple):
    """The vectors of a flow at points plus vectors, (..., 1, P, n)."""

    name: str
    how: ReadOptions

    def __call__(self, vectors: jax.Array, points: jax.Array, flow: jax.Array) -> jax.Array:
        at = Stacked.last(points + vectors)
        shape = at.shape[-points.shape[-1] :]
        return warp_image(self.name, flow, stored_points, (at,), shape, self.how, argument="transforms")


class FunctionField(NamedTuple):
    """By how much a function moves points plus vectors, (..., 1, P, n)."""

    function: GridFunction

    def __call__(self, vectors: jax.Array, points: jax.Array, *parameters: jax.Array) -> jax.Array:
        at = points + vectors
        moved = self.function(*aligned(*components_of(at), *parameters))
        return stack(jnp.broadcast_arrays(*moved), -1) - at


def check_batches(name: str, argument: str, batch: tuple[int, ...], chain: Sequence[Step], ndim: int) -> int:
    """Checks that the leading axes of points and transforms broadcast; returns their number."""
    batches = [batch]
    for transform in chain:
        if isinstance(transform, ByFunction):
            batches += [np.shape(p) for p in transform.parameters]
        else:
            axes = ndim + 1 if is_flow(transform, ndim) else 2
            batches.append(shape_of(transform)[:-axes])
    found = broadcast(*batches)
    if found is None:
        given = " and ".join(str(shape) for shape in dict.fromkeys(batches[1:]) if shape)
        raise ValueError(
            f"{name}: the batch axes of {argument} are {batch}, and those of transforms are {given}, which do not "
            f"broadcast; pass equal sizes, or 1."
        )
    return len(found)
