"""Gradients of affine warps in kernels, in which texels look for their samples, against those of arrays."""

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.support.arrays import normal
from tests.support.host_kernels import noted_kernels
from tests.support.tolerances import assert_close, assert_sums_close

ON_GPU = jax.default_backend() == "gpu"
COS, SIN = np.cos(0.5), np.sin(0.5)
TURN = np.float32([[COS, -SIN, 9], [SIN, COS, -5]])
TURN_3D = np.float32([[COS, -SIN, 0, 5], [SIN, COS, 0, -1], [0.1, 0, 1, 0.3]])
SINGULAR, POINT = np.float32([[1, 1, 0], [1, 1, 0]]), np.float32([[0, 0, 5], [0, 0, 6]])
NAN = np.float32([[np.nan, 0, 5], [0, 1, 6]])


def by_kernels(function, *args):
    """The results of a function in kernels, on a card or as C++, and the names of those that ran on a CPU."""
    with contextlib.nullcontext([]) if ON_GPU else noted_kernels() as kernels:
        found = jax.jit(lambda *args: function(*args))(*args)
    return jax.tree.map(np.asarray, found), [kernel.name for kernel in kernels]


def by_arrays(function, *args):
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        return jax.tree.map(np.asarray, jax.jit(function)(*args))


@dataclasses.dataclass
class Case:
    """An affine map of the pixels of an output to points of a texture."""

    matrix: np.ndarray
    channels: int = 3
    sizes: tuple = (30, 37)
    output: tuple = (41, 33)
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def args(self):
        """Texels, a matrix, and a cotangent."""
        return normal(*self.sizes, self.channels), self.matrix, normal(*self.output, self.channels)

    def warp(self, deterministic=False):
        sampler, options = jt.Sampler(deterministic=deterministic), {"address_mode": "border"} | self.options
        shape = self.output
        return lambda texels, matrix: jt.warp.warp_affine(texels, matrix, shape, sampler, inverse_map=True, **options)

    def gradient(self, deterministic=False):
        """Of texels."""
        warp = self.warp(deterministic)
        return lambda texels, matrix, cotangent: jax.vjp(lambda t: warp(t, matrix), texels)[1](cotangent)[0]


def expected_kernels(case, deterministic):
    """Texels are gathered where taps outside read nothing; samples beyond a window are added one by one."""
    gathers = case.options.get("address_mode", "border") == "border" and (len(case.sizes) == 2 or deterministic)
    return [*["texture_views", "texture_gather"] * gathers, *["texture_splat"] * (not deterministic)]


CASES = {
    "a turn": Case(TURN),
    "five channels, point": Case(TURN, 5, options={"filter_mode": "point"}),
    "one channel, cubic": Case(TURN, 1, options={"filter_mode": "cubic"}),
    "twenty channels, smaller": Case(3 * TURN, 20),
    "larger": Case(TURN / 5),
    "clamp along y": Case(TURN, options={"address_mode": ("border", "clamp")}),
    "singular": Case(SINGULAR),
    "a point": Case(POINT),
    "a volume": Case(TURN_3D, 2, (9, 12, 11), (8, 13, 10)),
}
EXACTLY = ("singular", "a point", "a volume")


@pytest.mark.parametrize(
    ("name", "deterministic"), [*((name, False) for name in CASES), *((name, True) for name in EXACTLY)]
)
def test_texels_find_their_samples(name, deterministic):
    case = CASES[name]
    found, names = by_kernels(case.gradient(deterministic), *case.args)
    assert ON_GPU or names == expected_kernels(case, deterministic)
    assert_sums_close([found], [by_arrays(case.gradient(), *case.args)])


def assert_matrices_close(found, terms):
    """Cotangents of matrices, and the terms that they are the sums of, one for each pixel."""
    scale = 1 + np.abs(terms).sum((-4, -3))
    assert_close("sum", found, terms.sum((-4, -3)), scale)


def terms_of_matrix(warp, texels, matrix, cotangent):
    """The cotangent of the matrix by each pixel of an image: a matrix of its own gives it."""
    each = jnp.eye(cotangent.shape[0] * cotangent.shape[1]).reshape(-1, *cotangent.shape[:2], 1)
    pull = jax.vjp(lambda matrix: warp(texels, matrix), matrix)[1]
    return jax.vmap(lambda one: pull(one * cotangent)[0])(each).reshape(*cotangent.shape[:2], *matrix.shape)


@pytest.mark.parametrize("name", ["a turn", "clamp along y"])
def test_the_cotangents_of_the_matrix_come_along(name):
    case = dataclasses.replace(CASES[name], output=(20, 33))
    warp = case.warp()
    both = lambda texels, matrix, cotangent: jax.vjp(warp, texels, matrix)[1](cotangent)
    (texels, matrix), _ = by_kernels(both, *case.args)
    assert_sums_close([texels], [by_arrays(case.gradient(), *case.args)])
    assert_matrices_close(matrix, by_arrays(functools.partial(terms_of_matrix, warp), *case.args))


@pytest.mark.slow
@pytest.mark.parametrize(("textures", "matrices"), [(None, 3), (3, None), (3, 3)])
def test_batches_of_textures_and_of_images(textures, matrices):
    case = Case(TURN, 3, (9, 12), (11, 14))
    texels, matrix = normal(3, 9, 12, 3), TURN + 0.2 * normal(3, 2, 3)
    args, axes = (texels, matrix, normal(3, 11, 14, 3)), (0 if textures else None, 0 if matrices else None)
    args = tuple(a if axis == 0 else a[0] for a, axis in zip(args, (*axes, 0)))
    warp = jax.vmap(case.warp(), axes)
    both = lambda texels, matrix, cotangent: jax.vjp(warp, texels, matrix)[1](cotangent)
    (of_texels, of_matrix), _ = by_kernels(both, *args)
    assert_sums_close([of_texels], [by_arrays(both, *args)[0]])
    terms = by_arrays(jax.vmap(functools.partial(terms_of_matrix, case.warp()), (*axes, 0)), *args)
    if not matrices:
        terms = terms.transpose(1, 0, 2, 3, 4).reshape(11, -1, 2, 3)
    assert_matrices_close(of_matrix, terms)


def test_texels_of_some_images_alone_find_their_samples():
    """An image of several tiles that is gathered, one on a line, whose samples go through windows, and one nowhere."""
    case = CASES["a turn"]
    warp, texels = jax.vmap(case.warp(), (None, 0)), case.args[0]
    gradient = lambda texels, *more: jax.vjp(lambda t: warp(t, more[0]), texels)[1](more[1])[0]
    args = texels, np.stack([TURN, SINGULAR, NAN]), normal(3, *case.output, 3)
    found, names = by_kernels(gradient, *args)
    assert ON_GPU or names == expected_kernels(case, False)
    assert_sums_close([found], [by_arrays(gradient, *args)])


def test_a_value_that_is_not_finite_changes_no_other_sum():
    case = CASES["a turn"]
    texels, matrix, cotangent = case.args
    cotangent[20, 10], cotangent[12, 25] = 0, 0
    others = cotangent.copy()
    others[20, 10], others[12, 25] = np.inf, np.nan
    both = jax.vmap(case.gradient(), (None, None, 0))
    (expected, found), _ = by_kernels(both, texels, matrix, np.stack([cotangent, others]))
    finite = np.isfinite(found)
    assert (~finite).sum() == 8 * case.channels  # four texels each
    np.testing.assert_array_equal(found[finite], expected[finite])


@pytest.mark.skipif(ON_GPU, reason="the names of kernels are noted on a CPU")
@pytest.mark.parametrize(("length", "gathers"), [(2**22, True), (2**22 + 1, False)])
def test_texels_do_not_look_where_centers_are_not_exact(length, gathers):
    case = Case(TURN, output=(2, length))
    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((30, 37, 3), (2, 3), (2, length, 3))]
    with noted_kernels() as kernels:
        jax.jit(case.gradient()).lower(*shapes)
    assert ("texture_gather" in [kernel.name for kernel in kernels]) is gathers


@pytest.mark.skipif(ON_GPU, reason="the names of kernels are noted on a CPU")
def test_warps_by_a_matrix_are_gathered():
    """`warp_affine`, `rotate` and `spatial_transform`, and no other whose taps outside read nothing."""
    image, theta = normal(2, 8, 9, 3), np.eye(2, 3, dtype=np.float32)
    warps = {
        "affine": lambda t: jt.warp.warp_affine(t, theta, inverse_map=True),
        "rotate": lambda t: jt.warp.rotate(t, angle=0.349),
        "resize": lambda t: jt.warp.resize(t, (16, 18), address_mode="zeros", antialias=False),
        "transform": lambda t: jt.warp.spatial_transform(t, theta),
        "perspective": lambda t: jt.warp.warp_perspective(t, np.eye(3, dtype=np.float32), inverse_map=True),
        "flow": lambda t: jt.warp.warp_flow(t, np.zeros((8, 9, 2), np.float32), address_mode="border"),
    }
    for name, warp in warps.items():
        names = by_kernels(lambda t, warp=warp: jax.vjp(warp, t)[1](jnp.ones_like(warp(t))), image)[1]
        assert ("texture_gather" in names) is (name not in ("perspective", "flow")), name
