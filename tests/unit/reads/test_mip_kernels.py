"""The kernels of mip chains, run on the CPU: the bits of the array operations, and their transpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxtex as jt
from jaxtex._engine.compute.filters import chain_of
from jaxtex._engine.cuda.filters.mip_kernel import computed_levels, mip_chain
from tests.support.host_compiler import RUN_HERE
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact

# Shapes of finest levels, the axes that are halved, dtypes, and how many levels kernels make. Array operations go on
# where a size is odd.
CHAINS = {
    "square": ((64, 64, 4), 2, np.float32, 6),
    "wider than a warp": ((8, 96, 3), 2, np.float32, 3),
    "an axis of one texel": ((4, 64, 1), 2, np.float32, 6),
    "layers": ((3, 16, 8, 5), 2, np.float32, 4),
    "volume": ((8, 16, 4, 2), 3, np.float32, 4),
    "row": ((64, 1), 1, np.float32, 6),
    "bfloat16": ((16, 32, 1), 2, jnp.bfloat16, 5),
    "float16": ((32, 8, 7), 2, np.float16, 5),
    "channels of several lanes": ((16, 64, 12), 2, np.float32, 6),
    "channels of several blocks": ((8, 32, 36), 2, np.float32, 5),
    "several launches": ((128, 256, 1), 2, np.float32, 8),
    "several blocks of a volume": ((16, 16, 64, 1), 3, np.float32, 6),
    "a long row": ((2048, 1), 1, np.float32, 11),
    "a column": ((64, 1, 2), 2, np.float32, 6),
}
CASES = [*((name, ()) for name in CHAINS), *((name, (2,)) for name in CHAINS if name != "several launches")]


def draw(shape, dtype=np.float32):
    """Numbers, some of them subnormal or special."""
    rng = np.random.default_rng(sum(shape))
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e-39, -1e-45]), shape)
    return jnp.asarray(np.where(rng.uniform(size=shape) < 0.05, special, rng.normal(size=shape)), dtype)


def with_one_nan(numbers):
    """Numbers whose NaN have one sign; processors differ in which sign a sum gets."""
    return np.where(np.isnan(np.float32(numbers)), np.float32(np.nan), np.float32(numbers))


@pytest.mark.parametrize(("name", "batch"), CASES, ids=str)
def test_kernels_make_the_levels_that_arrays_make(name, batch):
    shape, ndim, dtype, count = CHAINS[name]
    num_levels = 4 if name == "wider than a warp" else max(shape[-1 - ndim : -1]).bit_length()
    chain = {"shape": shape, "ndim": ndim, "num_levels": num_levels}
    assert computed_levels(shape, ndim, num_levels, 1).count == count
    texels = draw((*batch, *shape), dtype)
    with RUN_HERE:
        found = mip_chain(texels, adjoint=False, **chain)
    expected = chain_of(texels, adjoint=False, **chain)
    assert found.dtype == dtype
    assert_exact(*map(with_one_nan, (found, expected)))
    cotangent = jnp.asarray(np.random.default_rng(0).normal(size=found.shape), dtype)
    with RUN_HERE:
        pulled = mip_chain(cotangent, adjoint=True, **chain)
    assert_exact(np.float32(pulled), np.float32(chain_of(cotangent, adjoint=True, **chain)))


@pytest.mark.parametrize("sizes", [(24, 40), (6, 10), (12, 1)], ids=str)
def test_array_operations_go_on_where_a_size_is_odd(sizes):
    shape, num_levels = (*sizes, 2), max(sizes).bit_length()
    chain = {"shape": shape, "ndim": 2, "num_levels": num_levels}
    assert computed_levels(shape, 2, num_levels, 1).count < num_levels - 1
    texels = jnp.asarray(np.random.default_rng(0).normal(size=shape), np.float32)
    expected = chain_of(texels, adjoint=False, **chain)
    cotangent = jnp.asarray(np.random.default_rng(1).normal(size=expected.shape), np.float32)
    with RUN_HERE:
        assert_close("float32", mip_chain(texels, adjoint=False, **chain), expected, 4)
        pulled = mip_chain(cotangent, adjoint=True, **chain)
    assert_close("sum", pulled, chain_of(cotangent, adjoint=True, **chain), 4)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32])
def test_kernels_take_means_of_the_largest_numbers(dtype):
    largest = float(jnp.finfo(dtype).max)
    texels = jnp.asarray(np.broadcast_to(np.float32([largest, -largest]), (4, 4, 64, 2)), dtype)
    with RUN_HERE:
        found = mip_chain(texels, adjoint=False, shape=texels.shape, ndim=3, num_levels=7)
    assert_exact(np.float32(found), np.broadcast_to(np.float32(texels[0, 0, :1]), found.shape))


def test_programs_for_a_gpu_hold_the_kernels():
    """Values, both derivatives and batches of a texture."""
    texels, tangent = draw_pair(2, 16, 32, 3)
    build = jax.vmap(lambda t: jt.build_mipmaps(jt.texture2d(t)).texels)
    cotangent = jnp.cos(build(texels))

    def derivatives(texels, tangent, cotangent):
        chain, pushed = jax.jvp(build, (texels,), (tangent,))
        (pulled,) = jax.vjp(build, texels)[1](cotangent)
        return chain, pushed, pulled, jax.jvp(lambda c: jax.vjp(build, texels)[1](c)[0], (cotangent,), (chain,))[1]

    expected = jax.jit(derivatives)(texels, tangent, cotangent)
    with kernels_on_cpu():
        lowered = jax.jit(lambda *args: derivatives(*args)).lower(texels, tangent, cotangent)
        found = lowered.compile()(texels, tangent, cotangent)
    assert "callback" in lowered.as_text()
    for a, b in zip(found, expected, strict=True):
        assert_exact(a, b)


def draw_pair(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=(2, *shape)), np.float32)
