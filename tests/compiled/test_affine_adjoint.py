"""The adjoint at affine grids, in which texels look for their samples, against the adjoint of arrays."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.compute import linearization
from jaxtex._engine.cuda.adjoint_kernel import adjoint
from jaxtex._engine.cuda.build import launch
from jaxtex._engine.cuda.gather import gather_source
from jaxtex._engine.describe.plan import layout_of, plan_of_grid
from jaxtex._engine.describe.spec import TEXELS
from jaxtex._tables.filter_kernels import FILTER_KERNELS, filter_kernel
from jaxtex.warp.coordinate_functions import affine, displaced, pixel_centers
from tests.support.host_compiler import run_kernel
from tests.support.tolerances import assert_close, assert_sums_close

F32 = np.dtype(np.float32)
ON_GPU = jax.default_backend() == "gpu"
by_arrays = jax.jit(linearization.pullback, static_argnames=("spec", "wrt"))
COS, SIN = np.cos(0.5), np.sin(0.5)
TURN = np.float32([[COS, -SIN, 9], [SIN, COS, -5]])
TURN_3D = np.float32([[COS, -SIN, 0, 5], [SIN, COS, 0, -1], [0.1, 0, 1, 0.3]])


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """The names of the kernels that ran."""
    names = []

    def run(kernel, *args):
        names.append(kernel.name)
        return run_kernel(kernel, *args)

    monkeypatch.setattr(launch, "run", run)
    return names


def pullback(*args, batch=0, **static):
    return adjoint(*args, batch=batch, texel_dtype=F32, **static)


@pytest.mark.slow
@dataclasses.dataclass
class Case:
    """An affine map of the pixels of an output to points of a texture."""

    matrix: np.ndarray
    channels: int = 3
    sizes: tuple = (30, 37)
    output: tuple = (41, 33)
    options: dict = dataclasses.field(default_factory=dict)
    deterministic: bool = False

    @property
    def operands(self):
        rank = len(self.sizes)
        numbers = (jnp.full([1] * rank, e, jnp.float32) for e in np.ravel(self.matrix))
        return *pixel_centers(self.output), *numbers

    @property
    def texels(self):
        return jnp.asarray(normal(*self.sizes, self.channels))

    def spec(self, deterministic=False):
        make = jt.texture2d if len(self.sizes) == 2 else jt.texture3d
        sampler = jt.Sampler(**({"address_mode": "border", "normalized_coords": False} | self.options))
        read = plan_of_grid(layout_of(make(self.texels)), affine, self.operands, sampler, F32, len(self.sizes))
        return read.replace(deterministic=deterministic).spec


GATHER, WINDOWS = ["texture_views", "texture_gather"], ["texture_splat"]
BOTH = GATHER + WINDOWS
CASES = {
    "a turn": (Case(TURN), BOTH),
    "one channel": (Case(TURN, 1), BOTH),
    "five channels": (Case(TURN, 5), BOTH),
    "twenty channels": (Case(TURN, 20), BOTH),
    "cubic": (Case(TURN, options={"filter_mode": "cubic"}), BOTH),
    "point": (Case(TURN, options={"filter_mode": "point"}), BOTH),
    "smaller": (Case(3 * TURN), BOTH),
    "larger": (Case(TURN / 5), BOTH),
    "far too large": (Case(TURN / 50), BOTH),
    "clamp": (Case(TURN, options={"address_mode": "clamp"}), WINDOWS),
    "clamp along y": (Case(TURN, options={"address_mode": ("border", "clamp")}), WINDOWS),
    "wrap": (Case(TURN, options={"address_mode": "wrap"}), WINDOWS),
    "singular": (Case(np.float32([[1, 1, 0], [1, 1, 0]])), BOTH),
    "a point": (Case(np.float32([[0, 0, 5], [0, 0, 6]])), BOTH),
    "not a number": (Case(np.float32([[np.nan, 0, 5], [0, 1, 6]])), BOTH),
    "a volume": (Case(TURN_3D, 2, (9, 12, 11), (8, 13, 10)), WINDOWS),
    "exactly": (Case(TURN, deterministic=True), GATHER),
    "exactly, singular": (Case(np.float32([[1, 1, 0], [1, 1, 0]]), deterministic=True), GATHER),
    "exactly, a point": (Case(np.float32([[0, 0, 5], [0, 0, 6]]), deterministic=True), GATHER),
    "exactly, not a number": (Case(np.float32([[np.nan, 0, 5], [0, 1, 6]]), deterministic=True), GATHER),
    "exactly, a volume": (Case(TURN_3D, 4, (9, 12, 11), (8, 13, 10), deterministic=True), GATHER),
}


@pytest.mark.parametrize("name", CASES)
def test_texels_find_their_samples(name, launched):
    case, kernels = CASES[name]
    cotangent = normal(*case.output, case.channels)
    args = cotangent, case.texels, *case.operands
    (expected,) = by_arrays(*args, spec=case.spec(), wrt=(TEXELS,))
    spec = case.spec(case.deterministic)
    found = pullback(*args, spec=spec, wrt=(TEXELS,))
    assert launched == kernels
    assert_sums_close(found, [expected])


def assert_cotangents_close(found, args, spec, batch=0):
    """Of all operands, with those of operands that have one of their own for each sample, added up."""
    cotangent, texels, *operands = args
    full = [jnp.broadcast_to(a, cotangent.shape[:-1]) for a in operands]
    wide = jnp.broadcast_to(texels, (*cotangent.shape[:batch], *texels.shape[batch:]))
    pull = functools.partial(by_arrays, spec=spec, wrt=tuple(range(len(operands))))
    for _ in range(batch):
        pull = jax.vmap(pull)
    for a, x, terms in zip(operands, found, pull(cotangent, wide, *full), strict=True):
        shared = tuple(k for k in range(batch, terms.ndim) if a.shape[k] == 1)
        assert x.dtype == a.dtype
        assert_close("sum", x, terms.sum(shared, keepdims=True), 1 + np.abs(terms).sum(shared, keepdims=True))


@pytest.mark.parametrize("name", ["a turn", "one channel", "twenty channels", "clamp", "a volume"])
def test_the_cotangents_of_the_matrix_come_along(name):
    case = CASES[name][0]
    args = normal(*case.output, case.channels), case.texels, *case.operands
    static = {"spec": case.spec(), "wrt": (TEXELS, *range(len(case.operands)))}
    texels, *operands = pullback(*args, **static)
    assert_sums_close([texels], by_arrays(*args, **static)[:1])
    assert_cotangents_close(operands, args, case.spec())


@pytest.mark.slow
@pytest.mark.parametrize(("textures", "matrices"), [(1, 3), (3, 1), (3, 3)])
def test_batches_of_textures_and_of_images(textures, matrices):
    texels, output, images = jnp.asarray(normal(textures, 9, 12, 3)), (11, 14), normal(3, 11, 14, 3)
    maps = (TURN + 0.2 * normal(matrices, 2, 3)).reshape(matrices, 6)
    operands = *(p[None] for p in pixel_centers(output)), *(maps[:, k].reshape(-1, 1, 1) for k in range(6))
    sampler = jt.Sampler(normalized_coords=False, address_mode="border")
    spec = plan_of_grid(layout_of(jt.texture2d(texels[0])), affine, operands, sampler, F32, 2).spec
    wide = lambda a: jnp.broadcast_to(a, (3, *a.shape[1:]))
    args, static = (images, texels, *operands), {"spec": spec, "wrt": (TEXELS, *range(8))}
    expected = jax.vmap(functools.partial(by_arrays, spec=spec, wrt=(TEXELS,)))(images, *map(wide, args[1:]))
    found, *cotangents = pullback(*args, **static, batch=1)
    assert_sums_close([found], expected)
    assert_cotangents_close(cotangents, args, spec, batch=1)
    args = images, texels[0], *operands  # several images of one texture
    found, *cotangents = pullback(*args, **static)
    assert_sums_close([found], by_arrays(*args, spec=spec, wrt=(TEXELS,)))
    assert_cotangents_close(cotangents, args, spec)


def test_texels_of_some_images_alone_find_their_samples(launched):
    """An image of several tiles that is gathered, and one on a line, whose samples go through windows."""
    case = Case(TURN)
    maps = np.stack([TURN, CASES["singular"][0].matrix]).reshape(2, 6)
    operands = *(p[None] for p in pixel_centers(case.output)), *(maps[:, k].reshape(-1, 1, 1) for k in range(6))
    args, spec = (normal(2, *case.output, 3), case.texels, *operands), case.spec()
    found = pullback(*args, spec=spec, wrt=(TEXELS,))
    assert launched == BOTH
    assert_sums_close(found, by_arrays(*args, spec=spec, wrt=(TEXELS,)))


def test_values_that_are_not_finite_stay_where_they_fall():
    case = Case(np.float32([[1, 0, 0], [0, 1, 0]]), 2, (20, 20), (20, 20))
    cotangent = normal(20, 20, 2)
    cotangent[3, 4], cotangent[10, 11] = np.inf, np.nan
    (found,) = pullback(cotangent, case.texels, *case.operands, spec=case.spec(), wrt=(TEXELS,))
    finite = np.isfinite(found).all(-1)
    rows, columns = np.nonzero(~finite)
    assert {(3, 4), (10, 11)} <= set(zip(rows, columns))
    assert all(min(max(abs(r - i), abs(c - j)) for i, j in ((3, 4), (10, 11))) <= 1 for r, c in zip(rows, columns))
    np.testing.assert_array_equal(np.asarray(found)[finite], cotangent[finite])


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_a_value_that_is_not_finite_changes_no_other_sum(channels):
    case = Case(TURN, channels)
    cotangent = normal(*case.output, channels)
    cotangent[20, 10], cotangent[12, 25] = 0, 0
    others = cotangent.copy()
    others[20, 10], others[12, 25] = np.inf, np.nan
    static = {"spec": case.spec(), "wrt": (TEXELS,)}
    (expected,) = pullback(cotangent, case.texels, *case.operands, **static)
    (found,) = pullback(others, case.texels, *case.operands, **static)
    finite = np.isfinite(found)
    assert (~finite).sum() == 8 * channels  # four texels each
    np.testing.assert_array_equal(np.asarray(found)[finite], np.asarray(expected)[finite])


def test_values_that_are_alike_along_x():
    case = Case(TURN)
    column = normal(case.output[0], 1, 3)
    static = {"spec": case.spec(), "wrt": (TEXELS,)}
    expected = by_arrays(np.tile(column, (1, case.output[1], 1)), case.texels, *case.operands, **static)
    found = pullback(column, case.texels, *case.operands, **static)
    assert_sums_close(found, expected)


def test_texels_do_not_look_where_centers_are_not_exact():
    spec, (_, y, *matrix) = Case(TURN).spec(), Case(TURN).operands
    for length, gathered in ((2**22, True), (2**22 + 1, False)):
        operands = jax.ShapeDtypeStruct((1, length), F32), y, *matrix
        assert gather_source.is_gathered(spec, (len(y), length), 0, operands) is gathered


@pytest.mark.parametrize("mode", FILTER_KERNELS)
def test_the_weights_of_a_tent_follow_from_distances(mode):
    kernel, fraction = filter_kernel(mode), np.linspace(0, 1, 257, dtype=np.float32)
    distances = (np.abs(fraction - (kernel.first + k)) for k in range(kernel.num_taps))
    weights = zip(distances, kernel.weights.at(jnp.asarray(fraction), 0))
    assert all(np.array_equal(np.maximum(1 - d, 0), w * np.ones_like(d)) for d, w in weights) is kernel.is_tent


def test_warps_by_a_matrix_are_affine():
    """`warp_affine`, `rotate` and `spatial_transform` say so, and no other; `resize` reads the edge outside."""
    image, theta = jnp.ones((2, 8, 9, 3)), jnp.eye(2, 3)[None] + jnp.zeros((2, 1, 1))
    read = plan_of_grid(layout_of(jt.texture2d(image[0])), displaced, (jnp.ones((4, 4)),) * 4, jt.Sampler(), F32)
    assert not gather_source.is_gathered(read.spec, (4, 4), 0, read.operands)
    warps = {
        "affine": lambda t: jt.warp.warp_affine(t, theta[0], inverse_map=True),
        "rotate": lambda t: jt.warp.rotate(t, 20.0),
        "resize": lambda t: jt.warp.resize(t, (16, 18), address="zeros"),
        "transform": lambda t: jt.warp.spatial_transform(t, theta),
        "perspective": lambda t: jt.warp.warp_perspective(t, jnp.eye(3), inverse_map=True),
    }
    for name, warp in warps.items():
        jaxpr = jax.make_jaxpr(lambda t, warp=warp: jax.vjp(warp, t)[1](jnp.ones_like(warp(t))))(image)
        found = [e for e in every_equation(jaxpr.jaxpr) if e.primitive.name in ("texture_splat", "texture_pullback")]
        assert found, name
        for eqn in found:
            batch, operands = eqn.params["batch"], [v.aval for v in eqn.invars[1:]]
            shape = np.broadcast_shapes(*(a.shape for a in operands))
            assert gather_source.is_gathered(eqn.params["spec"], shape, batch, operands) is (name != "perspective"), (
                name
            )


def every_equation(jaxpr):
    """The equations of a jaxpr and of those that its equations call."""
    for eqn in jaxpr.eqns:
        yield eqn
        for value in itertools.chain.from_iterable(
            v if isinstance(v, tuple | list) else [v] for v in eqn.params.values()
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from every_equation(inner)
