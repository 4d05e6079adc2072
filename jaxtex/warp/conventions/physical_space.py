"""Conversions of transforms in millimeters, from libraries for medical images, to jaxtex's pixels.

A geometry places the voxels of an image: an origin, a spacing and a direction in ITK, a 4 x 4 matrix in nibabel. Their
voxel centers are at whole indices; jaxtex's pixel centers are at +0.5.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..._checks.calls import public
from ..._checks.numbers import as_float
from ..._checks.words import described
from ..._jax.versions import stack
from ..fields import as_components
from ..matrices import Rows, dot, elements, inverted, stacked, with_centers_moved
from ..options import as_floats, as_matrix

# The origin, the spacing and the direction of an image of ITK.
ITKGeometry: TypeAlias = Sequence[ArrayLike]


@public(compiled=True)
def matrix_from_itk(
    matrix: ArrayLike,
    translation: ArrayLike = 0.0,
    center: ArrayLike = 0.0,
    *,
    input_geometry: ITKGeometry,
    output_geometry: ITKGeometry,
) -> jax.Array:
    """Converts an affine transform of ITK, between the physical points of two images, to jaxtex's pixels.

    ITK resamples in the same direction as jaxtex: its transform maps points of the output, the fixed image, to points
    of the input, the moving image, ``q = matrix (p - center) + center + translation``. Pass the result to `warp_affine`
    with ``inverse_map=True``, or to `warp_chain`. `GetArrayFromImage` returns arrays in jaxtex's order of axes.

    Args:
        matrix: ``(n, n)``, where n is 2 or 3, in x, y (, z) order; for several transforms ``(..., n, n)``. SimpleITK's
            `GetMatrix` returns its rows one after the other: reshape it.
        translation: a number or ``(..., n)``, in millimeters. An `Offset` of ITK is a translation with center 0.
        center: a number or ``(..., n)``, in millimeters.
        input_geometry, output_geometry: ``(origin, spacing, direction)`` of the input and of the output: `GetOrigin`,
            ``(n,)``; `GetSpacing`, ``(n,)``; and `GetDirection`, ``(n, n)`` or its rows one after the other,
            ``(n * n,)``.

    Returns:
        ``(..., n, n + 1)``: maps points of the output to points of the input.

    Gradients: of any order, in forward and reverse mode, with respect to every argument.

    Raises:
        ValueError: if a shape does not fit.

    Source: "The ITK Software Guide", chapters "Image" and "Registration".

    Example:
        >>> import jax.numpy as jnp, jaxtex as jt
        >>> coarse = jnp.zeros(2), jnp.array([2.0, 2.0]), jnp.eye(2)  # origin, spacing, direction
        >>> fine = jnp.zeros(2), jnp.array([1.0, 1.0]), jnp.eye(2)
        >>> jt.warp.matrix_from_itk(jnp.eye(2), input_geometry=coarse, output_geometry=fine)
        Array([[0.5 , 0.  , 0.25],
               [0.  , 0.5 , 0.25]], dtype=float32)
    """
    name = "matrix_from_itk"
    linear = as_matrix(name, matrix, ((2, 2), (3, 3)))
    ndim = linear.shape[-1]
    before = as_geometry(name, "input_geometry", input_geometry, ndim)
    after = as_geometry(name, "output_geometry", output_geometry, ndim)
    linear, shift, middle = as_floats(
        linear, vector(name, "translation", translation, ndim), vector(name, "center", center, ndim)
    )
    rows, c, t = elements(linear), parts(middle), parts(shift)
    # q = M p + (c + t - M c)
    transform = [[*row, c[k] + t[k] - dot(row, c)] for k, row in enumerate(rows)]
    to_pixels = product(before.from_points(), product(transform, after.to_points()))
    return stacked(with_centers_moved(to_pixels))


@public(compiled=True)
def flow_from_itk(field: ArrayLike | Sequence[ArrayLike], geometry: ITKGeometry) -> jax.Array:
    """Converts a displacement field of ITK, in millimeters, to a flow in pixels of its own grid.

    The flow fits images that have the field's geometry. For an image with another geometry, use
    ``warp_chain(image, [flow, matrix])``, where `matrix` is `matrix_from_itk` of the identity, with the image's
    geometry as the input's and the field's as the output's.

    Args:
        field: ``(..., H, W, 2)`` or ``(..., D, H, W, 3)``, as `GetArrayFromImage` returns it, with the components x, y
            (, z) in physical space, in millimeters.
        geometry: ``(origin, spacing, direction)``, as in `matrix_from_itk`. The origin does not matter.

    Returns:
        The flow, of the shape of `field`, for `warp_flow`, `compose_flows` and the like.

    Gradients: of any order, in forward and reverse mode, with respect to field, spacing and direction.

    Raises:
        ValueError: if a shape does not fit.

    Source: "The ITK Software Guide", chapter "Registration", section "Deformable Registration".

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> field = np.full((1, 1, 2), 6.0)  # 6 mm along both axes of a grid of 2 by 3 mm
        >>> jt.warp.flow_from_itk(field, (np.zeros(2), np.array([2.0, 3.0]), np.eye(2)))[0, 0]
        Array([3., 2.], dtype=float32)
    """
    name = "flow_from_itk"
    components = as_floats(*as_components(name, "field", field))
    grid = as_geometry(name, "geometry", geometry, len(components))
    rows = [row[:-1] for row in grid.from_points()]
    return stack([dot(row, components) for row in rows], -1)


@public(compiled=True)
def matrix_from_nibabel(
    input_affine: ArrayLike, output_affine: ArrayLike, world_matrix: ArrayLike | None = None
) -> jax.Array:
    """Converts two affines of nibabel, from voxels to the world, to a matrix between the volumes in jaxtex's pixels.

    An affine maps a voxel (i, j, k) to a point in millimeters; the axes point right, anterior and superior. nibabel's
    arrays have the axes i, j, k, so jaxtex's z is i, and its x is k. Pass the arrays as they are, with a last axis for
    channels. Pass the result to `warp_affine` with ``inverse_map=True``, or to `warp_chain`.

    Args:
        input_affine: ``(..., 4, 4)``, the affine of the input volume.
        output_affine: ``(..., 4, 4)``, the affine of the output volume.
        world_matrix: ``(..., 4, 4)``, from points of the output to points of the input in the world; by default the
            identity. ITK's axes point left, posterior and superior: for a transform of ITK, pass
            ``flip @ matrix @ flip`` with ``flip = diag(-1, -1, 1, 1)``.

    Returns:
        ``(..., 3, 4)``, in x, y, z order, which is k, j, i: maps points of the output to points of the input.

    Gradients: of any order, in forward and reverse mode, with respect to every argument.

    Raises:
        ValueError: if a shape does not fit.

    Source: nibabel, "Coordinate systems and affines".

    Example:
        >>> import jaxtex as jt, numpy as np
        >>> coarse, fine = np.diag(np.array([2.0, 2, 2, 1])), np.eye(4)
        >>> jt.warp.matrix_from_nibabel(coarse, fine)[0]
        Array([0.5 , 0.  , 0.  , 0.25], dtype=float32)
    """
    name = "matrix_from_nibabel"
    given = {"input_affine": input_affine, "output_affine": output_affine}
    given |= {} if world_matrix is None else {"world_matrix": world_matrix}
    arrays = as_floats(*(as_matrix(name, array, ((4, 4),), argument) for argument, array in given.items()))
    before, after, *world = (elements(array)[:3] for array in arrays)
    to_voxels = product(inverted(before), product(world[0], after) if world else after)
    in_our_order = [[*row[2::-1], row[3]] for row in to_voxels[::-1]]
    return stacked(with_centers_moved(in_our_order))


# Geometries


class Geometry(NamedTuple):
    """The geometry of an image: the elements of its origin, and the matrix from indices to millimeters."""

    origin: list[jax.Array]
    steps: Rows

    def to_points(self) -> Rows:
        """The affine matrix from indices to points."""
        return [[*row, o] for row, o in zip(self.steps, self.origin)]

    def from_points(self) -> Rows:
        """The affine matrix from points to indices."""
        return inverted(self.to_points())


def as_geometry(name: str, argument: str, value: Any, ndim: int) -> Geometry:
    """A geometry of ITK, checked."""
    found = cast(list[Any], value)
    if not isinstance(value, tuple | list) or len(found) != 3:
        raise ValueError(f"{name}: {argument} is {described(value)}, expected (origin, spacing, direction).")
    origin, spacing, direction = map(as_float, found)
    if direction.ndim == 1 and direction.shape[0] == ndim * ndim:
        direction = direction.reshape(ndim, ndim)
    if direction.shape[-2:] != (ndim, ndim):
        raise ValueError(
            f"{name}: the direction of {argument} has shape {direction.shape}, expected ({ndim}, {ndim}), or its rows "
            f"one after the other, ({ndim * ndim},)."
        )
    lengths = vector(name, f"the spacing of {argument}", spacing, ndim)
    first, lengths, direction = as_floats(vector(name, f"the origin of {argument}", origin, ndim), lengths, direction)
    sides = parts(lengths)
    steps = [[a * side for a, side in zip(row, sides)] for row in elements(direction)]
    return Geometry(parts(first), steps)


def vector(name: str, argument: str, value: Any, ndim: int) -> jax.Array:
    """A vector of `ndim` components; a number stands for all of them."""
    array = as_float(value)
    if not array.ndim:
        return jnp.broadcast_to(array, (ndim,))
    if array.shape[-1] != ndim:
        raise ValueError(f"{name}: {argument} has shape {array.shape}, expected a number or (..., {ndim}).")
    return array


def parts(array: jax.Array) -> list[jax.Array]:
    """The components of vectors."""
    return [array[..., k] for k in range(array.shape[-1])]


def product(after: Rows, before: Rows) -> Rows:
    """The affine map `before`, and then `after`."""
    columns = list(zip(*before))
    return [
        [*(dot(row[:-1], column) for column in columns[:-1]), dot(row[:-1], columns[-1]) + row[-1]] for row in after
    ]
