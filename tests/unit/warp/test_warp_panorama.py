"""Panoramas: a function of direction, drawn in one format, must come out in the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.oracles import reads as oracle
from tests.support.tolerances import assert_close, assert_exact, named

HEIGHT, WIDTH, SIZE = 32, 64, 17  # an odd face has a texel right at a pole
TO_FACES, TO_PANORAMA = jt.warp.equirectangular_to_cubemap, jt.warp.cubemap_to_equirectangular


def face_directions(size):
    """(6, size, size, 3), of length 1."""
    along = (np.arange(size) + 0.5) * 2 / size - 1
    t, s = (a[..., None] for a in np.meshgrid(along, along, indexing="ij"))
    directions = np.stack([s * right + t * down + outward for right, down, outward in oracle.FACES])
    return directions / np.linalg.norm(directions, axis=-1, keepdims=True)


def panorama_directions(height, width):
    """(height, width, 3), of length 1: ahead, +z, in the middle, +x to the right of it, +y at the top."""
    longitude = ((np.arange(width) + 0.5) / width - 0.5) * 2 * np.pi
    latitude = (0.5 - (np.arange(height) + 0.5) / height) * np.pi
    longitude, latitude = np.meshgrid(longitude, latitude)
    level = np.cos(latitude)
    return np.stack([level * np.sin(longitude), np.sin(latitude), level * np.cos(longitude)], -1)


def harmonics(directions):
    """Spherical harmonics of order 1 and 2, one a channel."""
    x, y, z = np.moveaxis(directions, -1, 0)
    return np.stack([x, y, z, x * y, y * z, x * x - y * y, 1.5 * z * z - 0.5], -1)


def panorama(height=HEIGHT, width=WIDTH, dtype=np.float32):
    return harmonics(panorama_directions(height, width)).astype(dtype)


def faces(size=SIZE, dtype=np.float32):
    return harmonics(face_directions(size)).astype(dtype)


def test_what_lies_ahead_above_and_to_the_right():
    """Sixths of the sphere, told by their colors, in both formats; the fine rows are the ones nearest the poles."""
    numbered = np.broadcast_to(np.arange(6, dtype=np.float32)[:, None, None, None], (6, 9, 9, 1))

    @jax.jit
    def run(numbered):
        picture = TO_PANORAMA(numbered, (18, 36), filter_mode="point")
        return picture[..., 0], TO_FACES(picture, 3, filter_mode="point")[:, 1, 1, 0]

    picture, middles = jax.device_get(run(numbered))
    middle = {18: 4, 27: 0, 0: 5, 35: 5, 9: 1}  # column: face, ahead +z, right +x, behind -z, left -x
    assert {column: picture[9, column] for column in middle} == middle
    np.testing.assert_array_equal(picture[[0, -1]], np.repeat(np.float32([[2], [3]]), 36, 1))
    np.testing.assert_array_equal(middles, np.arange(6))


EVEN, ODD = (HEIGHT, WIDTH), (33, 65)
TEXEL = np.pi / HEIGHT
# Of each case: the shape of the picture, how it is read, and how far the result may be off. Across from a column of an
# odd number of them is the mean of two, which is a linear read.
CUBES = {
    "linear": (EVEN, {}, "linear on a sphere", TEXEL**2),
    "cubic": (EVEN, {"filter_mode": "cubic"}, "cubic on a sphere", TEXEL**2),
    "cubic, odd": (ODD, {"filter_mode": "cubic"}, "linear on a sphere", TEXEL**2),
}


def test_functions_of_direction_come_out_in_the_other_format():
    """Poles and seams too: there the picture goes on half a turn away. A texture unit reads rows laid there."""
    image = np.random.default_rng(0).random((4, 5, 2)).astype(np.float32)

    @jax.jit
    def run(pictures, cube, image):
        cubes = {name: TO_FACES(pictures[shape[0]], SIZE, **how) for name, (shape, how, *_) in CUBES.items()}
        unit = TO_FACES(pictures[HEIGHT], SIZE, jt.Sampler(arithmetic="hardware"))
        mirrored = TO_FACES(image, 6), TO_FACES(image[:, ::-1], 6)
        return cubes, unit, TO_PANORAMA(cube, ODD), mirrored

    cubes, unit, back, (plain, mirrored) = run({n: panorama(n, m) for n, m in (EVEN, ODD)}, faces(), image)
    for name, (_, _, row, scale) in CUBES.items():
        with named(name):
            assert_close(row, cubes[name], faces(), scale)
    assert_close("texture unit axis", unit, cubes["linear"], 4)
    assert_close("linear at a cube's corner", back, panorama(*ODD), (2 / SIZE) ** 2)
    # A mirrored picture of an odd width has mirrored faces.
    assert_close("float32", mirrored, np.asarray(plain)[[1, 0, 2, 3, 4, 5], :, ::-1], 1)


def test_shrunk_with_antialiasing():
    """To a sixteenth: smooth functions stay, and noise of a pixel goes to its mean."""
    smooth = panorama(64, 128)
    noisy = smooth + np.where(np.indices((64, 128)).sum(0) % 2, 1, -1)[..., None].astype(np.float32)

    @jax.jit
    def run(pictures, cube):
        return TO_FACES(pictures, 5, antialias=True), TO_PANORAMA(cube, (5, 10), antialias=True)

    (shrunk, of_noisy), back = jax.device_get(run(np.stack([smooth, noisy]), faces(40)))
    assert_close("linear on a sphere", shrunk, faces(5), 2 * (2 / 5) ** 2)
    assert_close("linear on a sphere", of_noisy, shrunk, 2.0**-4)
    assert_close("linear on a sphere", back, panorama(5, 10), (np.pi / 5) ** 2)


def test_batches_and_bytes():
    """Of one color each, with fewer rows than a cubic filter reaches over both poles."""
    pictures = np.broadcast_to(np.uint8([[[201]], [[90]]])[..., None, None], (2, 1, 3, 7, 2))
    run = jax.jit(lambda pictures: TO_PANORAMA(TO_FACES(pictures, 4, filter_mode="cubic"), (3, 6)))
    assert_exact(run(pictures), pictures[..., :6, :], np.uint8)


def test_gradients_to_the_picture_and_the_faces():
    """Both are linear: reverse mode is the adjoint."""
    picture, cube = panorama(5, 7)[..., :2], faces(3)[..., :2]
    function = lambda picture, cube: (TO_FACES(picture, 3), TO_PANORAMA(cube, (4, 6)))

    @jax.jit
    def adjoint(picture, cube):
        out, pull = jax.vjp(function, picture, cube)
        cotangent = jax.tree.map(lambda a: jnp.cos(7 * a), out)
        return out, cotangent, pull(cotangent)

    out, cotangent, pulled = jax.device_get(adjoint(picture, cube))
    for a, b, given, of_given in zip(out, cotangent, (picture, cube), pulled, strict=True):
        assert_close("sum", np.vdot(given, of_given), np.vdot(a, b), np.abs(a * b).sum())


@pytest.mark.slow
def test_gradients_are_finite_where_a_texel_lies_at_a_pole():
    loss = lambda picture: TO_FACES(picture, 3, antialias=True)[2:4, 1, 1].sum()
    gradient = jax.jit(jax.grad(loss))(panorama(6, 12)[..., :1])
    assert np.isfinite(gradient).all()
    assert_close("sum", gradient.sum(), 2, 2)
