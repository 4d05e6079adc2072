"""Each feature of a read in a function of one sample: as `jax.vmap` computes it, or refused in a sentence.

The features are the rows of the table of features, whose last row this file writes.
"""

import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from tests.compiled.test_fused import compare, kernels_of, read, value_and_gradients
from tests.support.host_kernels import kernels_on_cpu

pytestmark = pytest.mark.usefixtures("default_promotion")

RNG = np.random.default_rng(6)
SAMPLES = 16  # two for each device
X, Y = (RNG.uniform(0.05, 0.95, SAMPLES).astype(np.float32) for _ in range(2))
# Of more numbers than a thread keeps.
IMAGE = RNG.uniform(size=(16, 12, 2)).astype(np.float32)
GRID = jt.nn.MultiresolutionGrid(ndim=2, num_levels=2, base_resolution=4, log2_hashmap_size=5)
TABLES = RNG.uniform(size=(sum(GRID.table_sizes), 2)).astype(np.float32)
KEY = jax.random.key(4)
CUBIC = jt.Sampler(filter_mode="cubic")
BORDER = jt.Sampler(address_mode="border")
LEVELS = jt.Sampler(mipmap_filter_mode="linear")
ANISOTROPIC = jt.Sampler(mipmap_filter_mode="linear", max_anisotropy=2)


def one_of_two(x, y, image):
    """By a key that is closed over, and by one that is made of a seed."""
    keys = jax.random.fold_in(KEY, (1000 * x).astype(int)), jax.random.key((1000 * y).astype(int))
    return [jt.sample(jt.texture2d(image), (x, y), CUBIC, key=key) for key in keys]


def summed(x, y, image):
    texture, weights = jt.texture2d(image), jnp.stack([x, 1 - y])
    return jt.nn.sample_weighted(texture, (jnp.stack([x, y]), jnp.stack([y, x])), weights, axis=-1)


def chain_of(image):
    return jt.build_mipmaps(jt.texture2d(image))


def complex_read(x, y, image):
    value = read(x, y, jax.lax.complex(image, 1 - image))
    return value.real, value.imag


class Case(NamedTuple):
    """A read of one sample: a function of x, y and an image.

    Attributes:
        function: the read.
        by_arrays: what a warning says, if the read is computed as by `jax.vmap`.
    """

    function: object
    by_arrays: str | None = None


CASES = {
    "limit": Case(lambda x, y, image: read(x, y, image, jt.Sampler(filter_mode="cubic", limit="taps"))),
    "key": Case(one_of_two),
    "weights": Case(lambda x, y, image: jt.nn.sample_weighted(jt.texture2d(image), (x, y), x - y, axis=())),
    "sum": Case(summed),
    "derivatives": Case(lambda x, y, image: jt.sample_with_derivatives(jt.texture2d(image), (x, y))),
    "border": Case(
        lambda x, y, image: jt.sample(jt.texture2d(image, border_color=image[0, 0]), (2 * x - 0.5, y), BORDER)
    ),
    "hashed": Case(lambda x, y, image: jt.nn.multiresolution_grid(TABLES * image[0, 0], jnp.stack([x, y]), GRID)),
    "levels": Case(lambda x, y, image: jt.sample(chain_of(image), (x, y), LEVELS, lod=3 * x)),
    "footprint": Case(
        lambda x, y, image: jt.sample(chain_of(image), (x, y), ANISOTROPIC, ddx=(x / 3, 0.05), ddy=(0.02, y / 4))
    ),
    "deterministic": Case(lambda x, y, image: read(x, y, image, jt.Sampler(deterministic=True))),
    "hardware": Case(lambda x, y, image: read(x, y, image, jt.Sampler(arithmetic="hardware"))),
    "half": Case(lambda x, y, image: read(x, y, image.astype(jnp.float16))),
    "complex": Case(complex_read, "complex has no rule"),
}
# These have tests of their own.
OTHERS = {"batch", "sharding"}
REFUSED = {
    "sizes": (lambda x, y, image: jt.warp.SizedResize()(image, (4, 4)), "SizedResize: image is a traced array"),
    "window": (lambda x, y, image: jt.warp.resample_tiles(image, lambda *c: c), "resample_tiles: image is a traced"),
}
OF_VMAP = {"halo"}  # what samples share may not be sharded along the axis of the samples
QUICK = "sum", "border", "hashed"


def in_x_y_and_image(mapped, function):
    return value_and_gradients(mapped(function, (0, 0, None)), (0, 1, 2))


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_a_feature_in_a_function_of_one_sample(name):
    function, by_arrays = CASES[name]
    values, gradients = in_x_y_and_image(jax.vmap, function)(X, Y, IMAGE)
    run = lambda: in_x_y_and_image(jt.fused_vmap, function)(X, Y, IMAGE)
    if by_arrays is None:
        names, (found, slopes) = kernels_of(run)
        assert "fused_samples" in names
    else:
        with kernels_on_cpu(), pytest.warns(UserWarning, match=by_arrays):
            found, slopes = jax.block_until_ready(run())
    compare(found, values)
    compare(slopes, gradients, gradients=True)


def test_a_batch_of_functions_of_one_sample():
    function = lambda mapped: lambda images: jax.vmap(lambda i: mapped(read, (0, 0, None))(X, Y, i))(images)
    images = np.stack([IMAGE, 1 - IMAGE])
    names, found = kernels_of(lambda: jax.jit(function(jt.fused_vmap))(images))
    assert names == ["fused_samples"]
    compare(found, function(jax.vmap)(images))


@pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")
def test_samples_are_sharded_over_devices_and_texels_are_not():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    values, gradients = in_x_y_and_image(jax.vmap, read)(X, Y, IMAGE)
    with jax.set_mesh(mesh), jt.sharded.using(jt.sharded.Halo(16)):
        x, y, image = (jax.device_put(a, jax.sharding.NamedSharding(mesh, jax.P("d"))) for a in (X, Y, IMAGE))
        found, slopes = in_x_y_and_image(jt.fused_vmap, read)(x, y, IMAGE)
        with pytest.raises(ValueError, match="vmap"):
            jt.fused_vmap(read, (0, 0, None))(x, y, image)
    compare(found, values)
    compare(slopes, gradients, gradients=True)


@pytest.mark.parametrize("name", REFUSED)
def test_a_feature_that_is_refused_in_a_function_of_one_sample(name):
    function, sentence = REFUSED[name]
    with pytest.raises(TypeError, match=sentence):
        jt.fused_vmap(function, (0, 0, None))(X, Y, jnp.asarray(IMAGE))


def test_the_page_of_features_has_a_row_for_functions_of_one_sample():
    page = (Path(__file__).parents[2] / "docs" / "contributing" / "features.md").read_text()
    table = page.split("| feature | what it is")[1].split("\n\n")[0]
    *features, row = re.findall(r"^\| ([a-z ]+) \| .*$", table, re.MULTILINE)
    assert {*features} == {*CASES, *OTHERS, *REFUSED, *OF_VMAP}
    assert row == "one sample"
    assert table.endswith(
        f"| one sample | in a function of one sample: `jt.fused_map` | {', '.join((*REFUSED, *OF_VMAP))} |"
    )
