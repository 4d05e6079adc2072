"""Geometries of ITK and nibabel, against plain formulas in NumPy and values that the libraries returned."""

import jax.numpy as jnp
import numpy as np

from jaxtex import warp
from tests.support.derivatives import assert_derivatives
from tests.support.tolerances import assert_close


def rotation(a, b):
    around_z = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    return around_z @ np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])


# Origin, spacing and direction of two volumes, and an affine transform between them.
INPUT = np.array([-20.0, 15, 7]), np.array([1.5, 1, 2]), rotation(0.3, -0.2)
OUTPUT = np.array([-22.0, 13, 5]), np.array([2.0, 1.25, 1]), rotation(-0.1, 0.25)
MATRIX, TRANSLATION = rotation(0.15, 0.1) @ np.diag([1.1, 0.95, 1.05]), np.array([2.0, -3, 1])
CENTER = np.array([-10.0, 20, 14])
INDEX = np.array([1.0, 2, 3])
# The continuous index of the input that shows at INDEX of the output: SimpleITK 2.5.7 through MATRIX, and nibabel 5.4.2
# through the identity (`TransformContinuousIndexToPhysicalPoint`, `TransformPoint`,
# `TransformPhysicalPointToContinuousIndex`; `apply_affine` with both affines).
OF_SIMPLE_ITK = [0.436701, -4.873733, 0.401851]
OF_NIBABEL = [-0.003561, -0.843059, 0.692686]


def to_point(geometry, index):
    origin, spacing, direction = geometry
    return origin + direction @ (spacing * index)


def to_index(geometry, point):
    origin, spacing, direction = geometry
    return np.linalg.solve(direction, point - origin) / spacing


def affine_of(geometry):
    origin, spacing, direction = geometry
    return np.block([[direction * spacing, origin[:, None]], [np.zeros(3), np.ones(1)]])


def applied(matrix, index):
    """A matrix in our pixels, on an index in x, y, z order."""
    return np.asarray(matrix)[:, :3] @ (index + 0.5) + np.asarray(matrix)[:, 3] - 0.5


def test_itk(x64):
    matrix = warp.matrix_from_itk(MATRIX, TRANSLATION, CENTER, input_geometry=INPUT, output_geometry=OUTPUT)
    assert_close("rounded to a millionth", applied(matrix, INDEX), OF_SIMPLE_ITK, 1)
    point = MATRIX @ (to_point(OUTPUT, INDEX) - CENTER) + CENTER + TRANSLATION
    assert_close("float64", applied(matrix, INDEX), to_index(INPUT, point), 64)
    # A direction as SimpleITK returns it, and a transform with an offset in place of a center.
    flat = (*INPUT[:2], INPUT[2].ravel())
    offset = CENTER + TRANSLATION - MATRIX @ CENTER
    again = warp.matrix_from_itk(MATRIX, offset, input_geometry=flat, output_geometry=OUTPUT)
    assert_close("float64", again, matrix, 64)


def test_derivatives_of_itk(x64):
    """Two axes, whose directions are no rotations any more a step away; and a field."""
    plane = lambda geometry: tuple(a[(slice(2),) * a.ndim] for a in geometry)

    def of_all(field, matrix, translation, center, before, after):
        how = {"input_geometry": before, "output_geometry": after}
        found = warp.matrix_from_itk(matrix, translation, center, **how), warp.flow_from_itk(field, after)
        return jnp.concatenate([a.ravel() for a in found])

    field = np.random.default_rng(0).normal(size=(3, 4, 2))
    assert_derivatives(of_all, field, *plane((MATRIX, TRANSLATION, CENTER)), plane(INPUT), plane(OUTPUT))


def test_itk_of_images():
    """Two axes, in float32, of several transforms."""
    before, after = ((o[:2], s[:2], d) for (o, s, _), d in ((INPUT, np.eye(2)), (OUTPUT, np.eye(2)[::-1])))
    matrices = np.stack([np.eye(2), 2 * np.eye(2)]).astype(np.float32)
    found = warp.matrix_from_itk(matrices, input_geometry=before, output_geometry=after)
    assert (found.shape, found.dtype) == ((2, 2, 3), np.float32)
    at = to_index(before, 2 * to_point(after, INDEX[:2]))
    assert_close("point", np.asarray(found[1]) @ np.append(INDEX[:2] + 0.5, 1) - 0.5, at, 64)


def test_displacements_of_itk(x64):
    """The index of the field's grid that ITK's displaced point has."""
    field = np.random.default_rng(0).normal(size=(2, 3, 4, 3))
    flow = np.asarray(warp.flow_from_itk(field, OUTPUT))
    for z, y, x in np.ndindex(2, 3, 4):
        index = np.array([x, y, z])
        displaced = to_index(OUTPUT, to_point(OUTPUT, index) + field[z, y, x])
        assert_close("float64", index + flow[z, y, x], displaced, 64)
    # Of an image with another geometry, the matrix between the two follows the flow.
    identity = warp.matrix_from_itk(np.eye(3), input_geometry=INPUT, output_geometry=OUTPUT)
    image = np.stack(np.indices((9, 10, 8))[::-1], -1) + 0.5
    shown = warp.warp_chain(image, [flow, identity], address_mode="clamp")
    at = to_index(INPUT, to_point(OUTPUT, np.array([3, 2, 1])) + field[1, 2, 3]) + 0.5
    assert_close("float64", shown[1, 2, 3], np.clip(at, 0.5, np.array([7.5, 9.5, 8.5])), 64)


def test_nibabel(x64):
    before, after = affine_of(INPUT), affine_of(OUTPUT)
    matrix = warp.matrix_from_nibabel(before, after)
    # Our x, y, z are nibabel's k, j, i.
    assert_close("rounded to a millionth", applied(matrix, INDEX[::-1])[::-1], OF_NIBABEL, 1)
    world = np.block([[MATRIX, TRANSLATION[:, None]], [np.zeros(3), np.ones(1)]])
    matrix = warp.matrix_from_nibabel(before, after, world)
    expected = to_index(INPUT, MATRIX @ to_point(OUTPUT, INDEX) + TRANSLATION)
    assert_close("float64", applied(matrix, INDEX[::-1])[::-1], expected, 64)
