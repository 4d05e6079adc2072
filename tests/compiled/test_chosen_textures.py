"""Functions of one sample that choose among textures: each sample reads its own, by arrays and in kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex import cuda
from tests.compiled.test_fused import compare, kernels_of
from tests.support.tolerances import assert_close

pytestmark = pytest.mark.usefixtures("default_promotion")

RNG = np.random.default_rng(11)
SAMPLES = 40
# Of several sizes and formats; the second is small enough to be kept in a thread.
TEXELS = (
    RNG.uniform(0.5, 1, (12, 10, 4)).astype(np.float32),
    RNG.uniform(0.5, 1, (3, 5, 4)).astype(np.float32),
    RNG.integers(0, 256, (9, 17, 4)).astype(np.uint8),
    RNG.uniform(0.5, 1, (16, 24, 4)).astype(np.float16),
)
FORMATS = (*("float4",) * 2, "uchar4", None)
WHICH = RNG.permutation(np.arange(SAMPLES) % 6 - 1).astype(np.int32)  # -1 is the first, 4 the last
AT = RNG.uniform(-1, 12, (SAMPLES, 2)).astype(np.float32)
WEIGHTS = RNG.normal(size=(SAMPLES, 4)).astype(np.float32)


def texture_object(texels, name):
    height, width, _ = texels.shape
    format = cuda.createChannelDescHalf4() if name is None else cuda.createChannelDesc(name)
    array = cuda.memcpyToArray(cuda.mallocArray(format, width, height), texels)
    mode = cuda.ReadMode.NormalizedFloat if name == "uchar4" else cuda.ReadMode.ElementType
    desc = cuda.TextureDesc(
        addressMode=cuda.AddressMode.Clamp, filterMode=cuda.FilterMode.Linear, readMode=mode, normalizedCoords=0
    )
    return cuda.createTextureObject(cuda.ResourceDesc.Array(array), desc, arithmetic="float")


def lookup(k, table, which, at):
    """What a thread of CUDA does: ``tex2D<float4>(table[which[k]], at[k].x, at[k].y)``."""
    return jax.lax.switch(which[k], [lambda t=t: cuda.tex2D(t, at[k, 0], at[k, 1], T="float4") for t in table])


def values_and_gradients(floats, at):
    def values(floats, at):
        texels = (*floats[:2], jnp.asarray(TEXELS[2]), floats[2])
        table = tuple(map(texture_object, texels, FORMATS))
        return jt.fused_map(lookup, (SAMPLES,))(table, jnp.asarray(WHICH), at)

    loss = lambda *args: (values(*args) * WEIGHTS).sum()
    return values(floats, at), jax.grad(loss, (0, 1))(floats, at)


def by_numpy():
    """The same in float64: values, and gradients in texels and coordinates."""
    out, of_texels, of_at = np.zeros((SAMPLES, 4)), [np.zeros(t.shape) for t in TEXELS], np.zeros((SAMPLES, 2))
    for k, (which, at, weights) in enumerate(zip(np.clip(WHICH, 0, len(TEXELS) - 1), AT, WEIGHTS, strict=True)):
        texels = TEXELS[which] / (255.0 if TEXELS[which].dtype == np.uint8 else 1.0)
        height, width, _ = texels.shape
        low = np.floor(at.astype(float) - 0.5).astype(int)
        x, y = at - 0.5 - low
        for dx, wx, sx in ((0, 1 - x, -1), (1, x, 1)):
            for dy, wy, sy in ((0, 1 - y, -1), (1, y, 1)):
                place = np.clip(low[1] + dy, 0, height - 1), np.clip(low[0] + dx, 0, width - 1)
                out[k] += wx * wy * texels[place]
                of_texels[which][place] += wx * wy * weights
                of_at[k] += weights @ texels[place] * np.array([sx * wy, wx * sy])
    return out, of_texels, of_at


@pytest.mark.parametrize("by", ["arrays", "kernels"])
def test_a_texture_object_of_a_table_is_chosen_for_each_thread(by):
    floats = TEXELS[0], TEXELS[1], TEXELS[3]
    run = lambda: jax.jit(lambda *args: values_and_gradients(*args))(floats, AT)  # a program of its own
    names, (found, (of_texels, of_at)) = kernels_of(run) if by == "kernels" else ([], run())
    assert set(names) == ({"fused_samples", "fused_adjoint"} if by == "kernels" else set())
    values, expected, slopes = by_numpy()
    assert_close("float32", found, values, 1)
    assert_close("derivatives", of_at, slopes, np.abs(slopes).max())
    for texels, gradient, wanted in zip(floats, of_texels, (expected[0], expected[1], expected[3]), strict=True):
        row = "float16" if texels.dtype == np.float16 else "derivatives"
        assert_close(row, gradient, wanted, np.abs(wanted).max())


def nested(i, x, a, b, c):
    """Branches in branches. Those that a sample does not take have derivatives that are not finite."""
    read = lambda image, x, y: jt.sample(jt.texture2d(image[..., None]), (x, y))[0]
    root = lambda: jnp.sqrt(x) * read(a, x, x) / x  # not finite at 0

    def inner():
        infinite = 1 / (i - 1.0 + 0 * x)  # where i is 1
        row = (19 * x).astype(int)
        product = lambda: infinite * b[row, 2] + (b @ (infinite * jnp.ones(50)))[1]
        return jax.lax.cond(x > 0.5, product, lambda: read(b, infinite, x))

    both = lambda: read(c, read(a, x, x), 1 - x) * x
    return jax.lax.switch(i, [inner, both, root])


def test_no_cotangent_reaches_a_branch_that_a_sample_does_not_take():
    images = [RNG.uniform(0.5, 1, shape).astype(np.float32) for shape in ((40, 30), (20, 50), (33, 35))]
    which = jnp.arange(SAMPLES) % 3
    x = jnp.asarray(RNG.uniform(0.01, 1, SAMPLES), jnp.float32).at[3].set(0.0)
    axes = (0, 0, None, None, None)
    of = lambda mapped: (
        lambda *args: (
            mapped(nested, axes)(*args),
            jax.grad(lambda *a: (mapped(nested, axes)(*a) ** 2).sum(), (1, 2, 3, 4))(*args),
        )
    )
    with jax.default_device(jax.devices("cpu")[0]):  # a kernel refuses the product of a whole array
        values, slopes = jax.jit(of(jt.fused_vmap))(which, x, *images)
    expected, expected_slopes = jax.jit(of(jax.vmap))(which, x, *images)
    assert all(jnp.isfinite(a).all() for a in (*slopes, values))
    compare(values, expected)
    compare(slopes, expected_slopes, gradients=True)


@pytest.mark.parametrize("shared", [False, True], ids=["a choice of each sample", "one choice"])
def test_whole_arrays_are_not_copied_for_each_sample(shared):
    """4 textures of 1024 x 1024 and 128 x 128 samples: a copy for each were 65,000 MB of each texture."""
    texels = [jax.ShapeDtypeStruct((1024, 1024, 1), np.float32)] * 4

    def pick(y, x, which, *texels):
        place = (x + 0.5) / 128, (y + 0.5) / 128
        return jax.lax.switch(which, [lambda t=t: jt.sample(jt.texture2d(t), place)[0] for t in texels])

    def loss(texels, which):
        picked = jt.fused_map(pick, (128, 128), in_axes=(None if shared else 0, *[None] * 4))
        return (picked(which, *texels) ** 2).sum()

    which = jax.ShapeDtypeStruct(() if shared else (128, 128), np.int32)
    with jax.default_device(jax.devices("cpu")[0]):
        program = jax.jit(jax.grad(loss)).lower(texels, which).compile()
    assert program.memory_analysis().temp_size_in_bytes < 2**24
    assert ("conditional" in program.as_text()) == shared  # one choice for all samples computes that branch alone
