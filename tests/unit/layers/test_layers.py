"""Spatial transformer layers: the matrices of each family, and both libraries' modules against the plain function."""

import functools
import importlib
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex.layers import theta_of
from tests.house.test_house import default_promotion, run_python_blocks
from tests.support import peers
from tests.support.device_parts import COLLECTIVE
from tests.support.tolerances import assert_close, assert_exact, assert_trees_close

NUM_FEATURES = 5
# For programs that run once: what costs is to compile them.
once = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
IMAGES = np.random.default_rng(0).uniform(size=(8, 6, 9, 2)).astype(np.float32)


def test_families_are_as_described():
    half = float(np.log(0.5))
    cases = [
        ("translation", [0.1, 0.2], [[1, 0, 0.1], [0, 1, 0.2]]),
        ("translation", [0.1, 0.2, 0.3], [[1, 0, 0, 0.1], [0, 1, 0, 0.2], [0, 0, 1, 0.3]]),
        ("attention", [half, 0.1, 0.2], [[0.5, 0, 0.1], [0, 0.5, 0.2]]),
        ("attention", [half, 0.1, 0.2, 0.3], [[0.5, 0, 0, 0.1], [0, 0.5, 0, 0.2], [0, 0, 0.5, 0.3]]),
        # With b the right edge of a window, x = 1, reads b times 10 pixels below the middle of 8 rows.
        ("similarity", [-0.75, 0.5, 0.1, 0.2], [[0.25, -0.5 * 8 / 20, 0.1], [0.5 * 20 / 8, 0.25, 0.2]]),
        ("affine", [1, 2, 3, 4, 5, 6], [[2, 2, 3], [4, 6, 6]]),
        ("affine", [*range(1, 13)], [[2, 2, 3, 4], [5, 7, 7, 8], [9, 10, 12, 12]]),
    ]
    # Zeros are the identity.
    cases += [
        (transform, np.zeros((2, 1, len(p))), np.eye(len(m), len(m) + 1)[None, None]) for transform, p, m in cases
    ]
    shapes = [(8, 20) if np.shape(expected)[-1] == 3 else (4, 8, 20) for *_, expected in cases]
    names, parameters, matrices = zip(*cases)
    run = once(lambda parameters: [theta_of(*case) for case in zip(parameters, shapes, names)])
    for name, theta, expected in zip(names, run([np.float32(p) for p in parameters]), matrices, strict=True):
        assert theta.dtype == np.float32, name
        assert_close("float32", theta, np.broadcast_to(expected, theta.shape), np.abs(expected).max())


def test_a_similarity_is_a_rotation_in_pixels():
    """What one reads, `rotate` reads too: by a positive b counter-clockwise, also where the input is no square."""
    degrees, scale = 25.0, 0.8
    turn, window = np.deg2rad(degrees), 1 / scale
    parameters = np.float32([window * np.cos(turn) - 1, window * np.sin(turn), 0, 0])

    @once
    def both(images, parameters, angle, scale):
        read = jt.warp.spatial_transform(images, theta_of(parameters, (6, 9), "similarity"))
        return read, jt.warp.rotate(images, angle=angle, scale=scale)

    assert_close("float32", *both(IMAGES, parameters, np.float32(turn), np.float32(scale)), 9)


def test_parameters_of_64_bits_stay(x64):
    theta = np.asarray(once(lambda numbers: theta_of(numbers, (4, 5), "similarity"))(np.full(4, 0.1)))
    expected = np.array([[1.1, -0.1 * 4 / 5], [0.1 * 5 / 4, 1.1]])
    assert_close("float64", theta[:, :2], expected, 2)
    assert theta.dtype == np.float64


class Flax:
    """What the tests need of a library: a layer, a network for it, and a layer taken apart into its parameters and a
    call on a batch of images, channels last."""

    package, module = "flax", "jaxtex.layers.nnx"

    def layer(self, *args, **options):
        return importlib.import_module(self.module).SpatialTransformer(*args, **options)

    def network(self, size):
        from flax import nnx

        flat = lambda images: images.reshape(*images.shape[:-3], -1)
        return nnx.Sequential(flat, nnx.Linear(size, NUM_FEATURES, rngs=nnx.Rngs(0)), nnx.tanh)

    def brightness(self, images):
        """The mean of an image as its only feature."""
        return images.mean((1, 2, 3))[:, None]

    def parts(self, layer):
        from flax import nnx

        graph, state = nnx.split(layer)
        return state, lambda state, images: nnx.merge(graph, state)(images)

    def with_network(self, *args, **options):
        return self.layer(self.network(6 * 9 * 2), NUM_FEATURES, *args, **options)

    def made(self, *args):
        """The parts of a layer with a network, by one program."""
        calls = []

        def make():
            parameters, call = self.parts(self.with_network(*args))
            calls.append(call)
            return parameters

        return jax.device_get(once(make)()), *calls

    def with_head(self, layer, kernel, bias):
        layer.head.kernel[...], layer.head.bias[...] = kernel, bias
        return layer


class Equinox(Flax):
    package, module = "equinox", "jaxtex.layers.equinox"

    def network(self, size):
        import equinox as eqx

        linear = eqx.nn.Linear(size, NUM_FEATURES, key=jax.random.key(0))
        return eqx.nn.Sequential([eqx.nn.Lambda(jnp.ravel), linear, eqx.nn.Lambda(jnp.tanh)])

    def brightness(self, image):
        return image.mean()[None]

    def parts(self, layer):
        import equinox as eqx

        arrays, static = eqx.partition(layer, eqx.is_array)

        def call(arrays, images):
            read = jax.vmap(eqx.combine(arrays, static))(jnp.moveaxis(images, -1, 1))
            return jnp.moveaxis(read, 1, -1)

        return arrays, call

    def with_head(self, layer, kernel, bias):
        import equinox as eqx

        return eqx.tree_at(lambda layer: (layer.head.weight, layer.head.bias), layer, (kernel.T, bias))


@pytest.fixture(params=[Flax, Equinox], ids=["nnx", "equinox"])
def library(request):
    pytest.importorskip(request.param.package)
    return request.param()


def moved(parameters, seed=1):
    """Parameters a little off, so that a layer is not at the identity."""
    leaves, tree = jax.tree.flatten(parameters)
    rng = np.random.default_rng(seed)
    return jax.tree.unflatten(tree, [a + np.float32(0.1 * rng.normal(size=a.shape)) for a in leaves])


def value_and_gradients(call):
    """The images that a call returns, and the gradients of the sum of their squares."""

    def loss(parameters, images):
        read = call(parameters, images)
        return (read**2).sum(), read

    def run(parameters, images):
        (_, read), gradients = jax.value_and_grad(loss, (0, 1), has_aux=True)(parameters, images)
        return read, gradients

    return run


def test_a_new_layer_only_resizes(library):

    @once
    def both(images):
        parameters, call = library.parts(library.with_network((5, 11), "similarity"))
        return call(parameters, images), jt.warp.resize(images, (5, 11), address_mode="border", antialias=False)

    assert_close("float32", *both(IMAGES), 9)


def test_a_new_layer_only_resizes_volumes(library):
    volumes = IMAGES.reshape(8, 3, 2, 9, 2)
    features = lambda volume: jnp.ones((*volume.shape[: volume.ndim - 4], NUM_FEATURES))
    parameters, call = library.parts(library.layer(features, NUM_FEATURES, (2, 3, 5), "attention"))
    resized = jt.warp.resize(volumes, (2, 3, 5), address_mode="border", antialias=False)
    assert_close("float32", once(call)(parameters, volumes), resized, 9)


HEAD = (
    np.random.default_rng(2).normal(size=(1, 6)).astype(np.float32),
    0.1 * np.random.default_rng(3).normal(size=6).astype(np.float32),
)
OPTIONS = {"filter_mode": "cubic", "border_color": (0.25, -1.0), "antialias": True}


def plain(parameters, images, **options):
    """What a layer does whose only feature is the brightness of an image."""
    kernel, bias = parameters
    added = images.mean((1, 2, 3))[:, None] * kernel + bias[None]
    theta = jnp.eye(2, 3)[None] + added.reshape(-1, 2, 3)
    return jt.warp.spatial_transform(images, theta, (4, 5), **options)


@pytest.fixture(scope="module")
def of_plain_function():
    """Its values and gradients, and its values with other options."""
    return once(lambda *args: (*value_and_gradients(plain)(*args), plain(*args, **OPTIONS)))(HEAD, IMAGES)


def test_a_layer_is_the_plain_function_of_its_features(library, of_plain_function):
    """Values and gradients, to the images and to the last layer."""
    layer = functools.partial(library.layer, library.brightness, 1, (4, 5))

    @once
    def run(head, images):
        made = [library.with_head(layer(**options), *head) for options in ({}, OPTIONS)]
        (parameters, call), (same, with_options) = map(library.parts, made)
        return *value_and_gradients(call)(parameters, images), with_options(same, images)

    expected, of_plain, expected_with_options = of_plain_function
    found, of_layer, with_options = run(HEAD, IMAGES)
    assert_close("float32", found, expected, 9)
    assert_close("float32", with_options, expected_with_options, 9)
    flat = lambda gradients: np.concatenate(sorted(map(np.ravel, jax.tree.leaves(gradients)), key=lambda a: a[0]))
    assert_close("peer gradient", flat(of_layer), flat(of_plain), np.abs(flat(of_plain)).max())


def test_a_layer_takes_images_of_foreign_byte_order(library):
    layer = library.layer(library.brightness, 1, (4, 5))
    images = IMAGES[0] if isinstance(library, Equinox) else IMAGES
    assert_exact(*once(lambda: (layer(images.astype(images.dtype.newbyteorder("S"))), layer(images)))())


def test_gradients_reach_the_network_once_the_last_layer_has_moved(library):
    parameters, call = library.made((6, 9))
    gradients = once(value_and_gradients(call))
    for start, reached in ((parameters, False), (moved(parameters), True)):
        _, (of_parameters, of_images) = gradients(start, IMAGES)
        largest = {a.size: np.abs(a).max() for a in jax.tree.leaves(of_parameters)}
        in_head = {6, 6 * NUM_FEATURES}
        assert len(largest) == 4
        for size, slope in largest.items():
            assert slope > 1e-3 if reached or size in in_head else slope == 0
        assert (np.abs(of_images).max(axis=(1, 2, 3)) > 0.1).all()


def test_short_images_go_through_parameters_of_32_bits(library):
    """The localization network sees them in float32, and the result is rounded once."""

    @once
    def both(images):
        parameters, call = library.parts(library.with_network((5, 11)))
        return [call(moved(parameters), a) for a in (images, images.astype(np.float32))]

    dtype = "bfloat16"
    read, expected = both(IMAGES.astype(dtype))
    assert read.dtype == dtype
    assert_close(dtype, read, expected, 1)


def test_a_network_of_16_bits_sees_16_bits(library):
    """Only parameters that are wider than the image ask for it to be widened."""
    seen = set()

    def localization(image):
        seen.add(str(image.dtype))
        return library.brightness(image)

    def run(images):
        parameters, call = library.parts(library.layer(localization, 1, (5, 11)))
        return call(parameters, images)

    assert jax.eval_shape(run, IMAGES.astype("bfloat16")).dtype == "bfloat16"
    assert seen == {"bfloat16"}


def test_nnx_transforms():
    nnx = pytest.importorskip("flax.nnx")
    library = Flax()

    @nnx.jit
    def make():
        layer = library.with_network((6, 9))
        nnx.update(layer, moved(nnx.state(layer)))
        return layer

    layer = make()
    whole = nnx.jit(lambda layer, images: layer(images))(layer, IMAGES)
    one_by_one = nnx.jit(nnx.vmap(lambda layer, image: layer(image), in_axes=(None, 0)))(layer, IMAGES)
    assert_close("float32", one_by_one, whole, 9)
    gradient = nnx.eval_shape(nnx.grad(lambda layer: (layer(IMAGES) ** 2).sum()), layer)
    chex.assert_trees_all_equal_shapes(gradient, nnx.state(layer, nnx.Param))
    assert nnx.eval_shape(lambda layer: layer.theta(IMAGES), layer).shape == (8, 2, 3)


def test_equinox_transforms():
    eqx = pytest.importorskip("equinox")
    library = Equinox()

    @eqx.filter_jit
    def make():
        layer = library.with_network((6, 9))
        arrays, static = eqx.partition(layer, eqx.is_array)
        return eqx.combine(moved(arrays), static), eqx.nn.Conv2d(2, 3, 3, key=jax.random.key(1))

    layer, conv = make()
    images = np.moveaxis(IMAGES, -1, 1)
    read = lambda network, images: jax.vmap(network)(images)
    assert eqx.filter_eval_shape(read, eqx.nn.Sequential([layer, conv]), images).shape == (8, 3, 4, 7)
    gradient = eqx.filter_eval_shape(eqx.filter_grad(lambda layer: (jax.vmap(layer)(images) ** 2).sum()), layer)
    chex.assert_trees_all_equal_shapes(gradient, eqx.filter(layer, eqx.is_inexact_array))
    assert eqx.filter_eval_shape(lambda layer: layer.theta(images[0]), layer).shape == (2, 3)


def test_equinox_hands_keys_on():
    eqx = pytest.importorskip("equinox")
    library = Equinox()

    def layer():
        localization = eqx.nn.Sequential([library.network(6 * 9 * 2), eqx.nn.Dropout(0.5)])
        made = library.layer(localization, NUM_FEATURES, (6, 9))
        return eqx.tree_at(lambda layer: layer.head.weight, made, jnp.ones((6, NUM_FEATURES)))

    image = np.moveaxis(IMAGES[0], -1, 0)
    thetas = once(lambda image: [layer().theta(image, key=jax.random.key(seed)) for seed in range(4)])(image)
    assert len(np.unique(np.stack(thetas)[:, 0, 2])) > 1
    with pytest.raises(RuntimeError, match="requires a key"):
        once(lambda image: layer()(image))(image)


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_a_sharded_batch_needs_no_collective():
    """Forward; backward, the gradients of parameters that all devices share are summed over them."""
    pytest.importorskip("flax")
    parameters, call = Flax().made((6, 9))
    parameters = moved(parameters)
    mesh = jax.make_mesh((8,), ("b",), axis_types=(AxisType.Auto,))
    images = jax.device_put(IMAGES, NamedSharding(mesh, P("b")))
    shared = jax.device_put(parameters, NamedSharding(mesh, P()))
    forward = once(call).lower(shared, images).compile()
    assert not COLLECTIVE.findall(forward.as_text())
    both = once(value_and_gradients(call))
    sharded = both.lower(shared, images).compile()
    assert set(COLLECTIVE.findall(sharded.as_text())) == {"all-reduce"}
    assert_trees_close("sum", sharded(shared, images), both(parameters, IMAGES))


@pytest.mark.parametrize(("module", "package"), [("nnx", "flax"), ("equinox", "equinox")])
def test_a_missing_library_is_a_sentence(module, package, monkeypatch):
    monkeypatch.delitem(sys.modules, f"jaxtex.layers.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"jaxtex.layers.{module} needs .*; run: pip install {package}"):
        importlib.import_module(f"jaxtex.layers.{module}")


def test_a_layer_refuses_a_family_without_a_form(library):
    with pytest.raises(ValueError, match=r"SpatialTransformer: transform='similarity' is for images, not for volumes"):
        library.layer(library.brightness, 1, (2, 3, 4), "similarity")


@pytest.fixture(scope="module")
def guide():
    """What the blocks of the guide leave, all of them in one program."""
    for library in (Flax, Equinox):
        pytest.importorskip(library.package)
    scope = {}

    def run():
        scope.update(run_python_blocks("docs/spatial-transformers.md"))
        return {name: value for name, value in scope.items() if isinstance(value, jax.Array)}

    scope.update(jax.jit(run)())
    return scope


def test_the_guide_goes_from_coarse_to_fine(guide):
    assert_close("descent", guide["shift"], [0.3, -0.2], 1)
    assert np.abs(guide["alone"]).max() < 0.02


@pytest.mark.slow
@pytest.mark.usefixtures("guide")
def test_the_guide_runs_as_it_stands():
    """Operation by operation, as a reader would run it."""
    run_python_blocks("docs/spatial-transformers.md")


THETA = np.float32([[0.8, 0.2, 0.1], [-0.3, 0.9, -0.2]])


@pytest.fixture(scope="module")
def reads(guide):
    """Reads of the images with a theta, and with it as one of aligned corners."""

    @once
    def run(images, theta):
        with default_promotion():
            aligned = guide["from_aligned_corners"](theta, (6, 9), (4, 5))
        return [jt.warp.spatial_transform(images, found, (4, 5)) for found in (theta, aligned)]

    return lambda theta: jax.device_get(run(IMAGES, np.broadcast_to(theta, (8, 2, 3))))


def test_the_guide_aligns_corners(reads):
    """At the identity the corners' centers go to the corners' centers."""
    corners = np.s_[:, :: (4 - 1), :: (5 - 1)]
    assert_close("float32", reads(np.eye(2, 3, dtype=np.float32))[1][corners], IMAGES[:, ::5, ::8], 9)


def test_the_guide_reads_as_torch_does(reads):
    theta = np.broadcast_to(THETA, (8, 2, 3)).copy()

    def program(torch, images, theta):
        planes, reads = torch.tensor(images).permute(0, 3, 1, 2), []
        for align_corners in (False, True):
            grid = torch.nn.functional.affine_grid(torch.tensor(theta), (8, 2, 4, 5), align_corners=align_corners)
            read = torch.nn.functional.grid_sample(planes, grid, align_corners=align_corners)
            reads.append(read.permute(0, 2, 3, 1))
        return reads

    for theirs in peers.results("torch", "spatial transformer", program, IMAGES, theta):
        for actual, expected in zip(reads(theta), theirs, strict=True):
            assert_close("peer", actual, expected, 9)
