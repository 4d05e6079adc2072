"""The kernels of mip chains, run on the CPU: the bits of the array operations, and their transpose."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt
from jaxtex._engine.compute.filters import chain_of
from jaxtex._engine.cuda.filters.mip_kernel import computed_levels, mip_chain
from tests.support.arrays import normal
from tests.support.host_kernels import kernels_on_cpu
from tests.support.tolerances import assert_close, assert_exact, named

# Shapes of finest levels, the axes that are halved, dtypes, and how many levels kernels make. Array operations go on
# where a size is odd.
CHAINS = {
    "wider than a warp": ((8, 96, 3), 2, np.float32, 3),
    "layers": ((3, 16, 8, 5), 2, np.float32, 4),
    "bfloat16": ((16, 32, 7), 2, jnp.bfloat16, 5),
    "channels of several blocks": ((8, 32, 36), 2, np.float32, 5),
    "several launches": ((128, 256, 1), 2, np.float32, 8),
    "several blocks of a volume": ((16, 16, 64, 1), 3, np.float32, 6),
    "a long row": ((2048, 1), 1, np.float32, 11),
}
SEVERAL = ("layers", "several blocks of a volume")
ODD = ((24, 40),)


def draw(shape, dtype=np.float32):
    """Numbers, some of them subnormal or special."""
    rng = np.random.default_rng(sum(shape))
    special = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e-39, -1e-45]), shape)
    return np.where(rng.uniform(size=shape) < 0.05, special, rng.normal(size=shape)).astype(dtype)


draw_normal = functools.partial(normal, seed=0)


def with_one_nan(numbers):
    """Numbers whose NaN have one sign; processors differ in which sign a sum gets."""
    return np.where(np.isnan(np.float32(numbers)), np.float32(np.nan), np.float32(numbers))


def test_kernels_make_the_levels_that_arrays_make():
    """Of one texture and of a batch, and where array operations go on; the transpose too."""
    chains, given = {}, {}
    rows = [(name, (*row, ())) for name, row in CHAINS.items()]
    rows += [(f"{name}, a batch", (*CHAINS[name], (2,))) for name in SEVERAL]
    rows += [(str(sizes), ((*sizes, 2), 2, np.float32, None, ())) for sizes in ODD]
    for name, (shape, ndim, dtype, count, batch) in rows:
        num_levels = 4 if name == "wider than a warp" else max(shape[-1 - ndim : -1]).bit_length()
        chains[name] = {"shape": shape, "ndim": ndim, "num_levels": num_levels}
        made = computed_levels(shape, ndim, num_levels, 1).count
        assert made == count if count else made < num_levels - 1
        texels = draw((*batch, *shape), dtype) if count else draw_normal(*shape)
        levels = jax.eval_shape(functools.partial(chain_of, adjoint=False, **chains[name]), texels)
        given[name] = texels, draw_normal(*levels.shape).astype(dtype)

    def run(function):
        make = lambda name, values, adjoint: function(values, adjoint=adjoint, **chains[name])
        each = lambda given: {n: (make(n, t, False), make(n, c, True)) for n, (t, c) in given.items()}
        return jax.jit(each)(given)

    expected = run(chain_of)
    with kernels_on_cpu():
        found = run(mip_chain)
    for name, (levels, pulled) in found.items():
        with named(name):
            if name in map(str, ODD):
                assert_close("float32", levels, expected[name][0], 4)
                assert_close("sum", pulled, expected[name][1], 4)
            else:
                assert levels.dtype == pulled.dtype == given[name][0].dtype
                assert_exact(*map(with_one_nan, (levels, expected[name][0])))
                assert_exact(np.float32(pulled), np.float32(expected[name][1]))


def test_kernels_take_means_of_the_largest_numbers():
    largest = {dtype: float(jnp.finfo(dtype).max) for dtype in ("float16", "bfloat16", "float32")}
    rows = {d: np.broadcast_to(np.float32([n, -n]), (4, 4, 64, 2)).astype(d) for d, n in largest.items()}
    chain = functools.partial(mip_chain, adjoint=False, shape=(4, 4, 64, 2), ndim=3, num_levels=7)
    with kernels_on_cpu():
        found = jax.jit(lambda rows: {dtype: chain(texels) for dtype, texels in rows.items()})(rows)
    for dtype, levels in found.items():
        assert_exact(np.float32(levels), np.broadcast_to(np.float32(rows[dtype][0, 0, :1]), levels.shape))


def test_programs_for_a_gpu_hold_the_kernels():
    """Values, both derivatives and batches of a texture."""
    texels, tangent = draw_normal(2, 2, 16, 32, 3)
    build = jax.vmap(lambda t: jt.build_mipmaps(jt.texture2d(t)).texels)

    def derivatives(texels, tangent):
        chain, pushed = jax.jvp(build, (texels,), (tangent,))
        cotangent = jnp.cos(pushed)
        (pulled,) = jax.vjp(build, texels)[1](cotangent)
        return chain, pushed, pulled, jax.jvp(lambda c: jax.vjp(build, texels)[1](c)[0], (cotangent,), (chain,))[1]

    expected = jax.jit(derivatives)(texels, tangent)
    with kernels_on_cpu():
        lowered = jax.jit(lambda *args: derivatives(*args)).lower(texels, tangent)
        found = lowered.compile()(texels, tangent)
    assert "callback" in lowered.as_text()
    for a, b in zip(found, expected, strict=True):
        assert_exact(a, b)
