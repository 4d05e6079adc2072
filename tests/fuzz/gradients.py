"""Derivatives of accesses where many samples hit one texel, with ties, compared with `memory_oracle`.

Numbers are small and whole, so that sums are exact in any order.
"""

import jax
import numpy as np

import jaxtex as jt
from jaxtex import cuda
from tests.fuzz.cuda import MODES as CUDA_MODES
from tests.fuzz.cuda import STORE
from tests.fuzz.draws import assert_same, naming, pick
from tests.fuzz.integers import TYPES
from tests.fuzz.surfaces import MODES, REDUCTIONS, Place, draw_whole
from tests.oracles import memory as oracle

OPERATIONS = ("read", "write", "add", "min", "max", "min", "max", "fetch", "sample")
OPERATIONS += ("surf2Dread", "surf2Dwrite", "tex2D")
CUDA_FORMATS = {"float": 1, "float2": 2, "float4": 4}
FEW = 300  # samples whose ties the oracle follows one by one


def check(rng, samples):
    """A case, gradients or a tangent: how many accesses there were, and how many values were compared."""
    operation = pick(rng, OPERATIONS)
    if operation in ("surf2Dread", "surf2Dwrite", "tex2D"):
        return check_cuda(rng, operation, samples)
    if operation in ("min", "max"):
        samples = min(samples, FEW * 10)
    kinds = [k for k in KINDS if "cube" not in k] if operation in ("fetch", "sample") else KINDS
    place, mode, channels = Place(rng, TYPES["int32_numpy"], samples, kinds), pick(rng, MODES), pick(rng, (1, 2, 3, 4))
    if operation in ("fetch", "sample"):
        mode = "zero"
        place = inside_of(rng, place)
    dtype = pick(rng, ("float32", "float32", "float16", "bfloat16"))
    odd = 0.05 if operation in ("min", "max") and rng.random() < 0.3 else 0
    levels = [draw_whole(rng, dtype, (*shape, channels), 2, odd=odd) for shape in place.shapes]
    values = draw_whole(rng, dtype, (*place.shape, channels), 2, odd=odd)
    call = call_of(operation, place, mode)
    text = f"gradients of {operation} {mode} of {dtype} x {channels}, {place}"
    flat, inside = place.landing(mode)
    with naming(text):
        return place.count, compare(rng, operation, call, levels, values, place.level, flat, inside)


KINDS = ("texture1d", "texture2d", "texture3d", "texture1d_layered", "texture2d_layered", "cubemap", "cubemap_layered")


def inside_of(rng, place):
    """The same samples, all inside; of `sample` at level 0."""
    place.level, place.sizes = 0, place.shapes[0]
    place.shapes = place.shapes[:1]
    place.indices = [np.mod(index, n).astype(np.int32) for index, n in zip(place.indices, place.sizes)]
    place.passed = place.indices
    return place


def call_of(operation, place, mode):
    """The call as a function of the level's texels and of values."""
    coords, named = place.arguments(place.passed)

    def call(levels, values):
        texture = place.build(levels)
        if operation == "fetch":
            return jt.fetch(texture, coords, **named)
        if operation == "sample":
            sampler = jt.Sampler(filter_mode="point", normalized_coords=False, address_mode="clamp")
            return jt.sample(texture, tuple(np.float32(c) + np.float32(0.5) for c in coords), sampler, **named)
        options = {"level": place.level, "boundary_mode": mode, **named}
        if operation == "read":
            return jt.surface_read(texture, coords, **options)
        return REDUCTIONS.get(operation, jt.surface_write)(texture, values, coords, **options).levels

    return call


def whole(rng, like, most=2):
    return rng.integers(-most, most + 1, like.shape).astype(like.dtype)


def compare(rng, operation, call, levels, values, level, flat, inside):
    """Cotangents of the levels and the values; or the tangent of the result."""
    texels = levels[level].reshape(-1, levels[level].shape[-1])
    reads = operation in ("read", "fetch", "sample")
    if rng.random() < 0.25:
        return compare_tangents(rng, operation, call, levels, values, level, texels, flat, inside)
    pull = jax.jit(lambda levels, values, cotangent: jax.vjp(call, levels, values)[1](cotangent))
    cotangent = jax.tree.map(lambda a: whole(rng, a), jax.eval_shape(call, levels, values))
    of_levels, of_values = pull(levels, values, cotangent)
    if reads:
        expected = oracle.cotangent_of_read(len(texels), cotangent, flat, inside)
        return compare_levels(of_levels, [0 * a for a in levels], level, expected)
    of_texels, expected = pulled(operation, texels, values, cotangent[level].reshape(texels.shape), flat, inside)
    count = compare_levels(of_levels, cotangent, level, of_texels)
    return count + assert_same(np.asarray(of_values) + 0, expected + 0, "cotangent of values")


def pulled(operation, texels, values, cotangent, flat, inside):
    shape = values.shape[:-1]
    if operation == "write":
        return oracle.cotangents_of_write(cotangent, shape, flat, inside)
    if operation == "add":
        return oracle.cotangents_of_add(cotangent, shape, flat, inside)
    return oracle.cotangents_of_extreme(texels, values, cotangent, flat, inside, operation)


def compare_levels(found, expected, level, of_level):
    """The cotangents of every level; -0 is 0."""
    count = 0
    for k, (new, old) in enumerate(zip(found, expected, strict=True)):
        old = of_level.reshape(old.shape) if k == level else old
        count += assert_same(np.asarray(new) + 0, old + 0, f"level {k}")
    return count


def compare_tangents(rng, operation, call, levels, values, level, texels, flat, inside):
    """Every access is linear where it is differentiable, so a tangent is an access of tangents."""
    tangents = [whole(rng, a) for a in levels], whole(rng, values)
    tangent = jax.jit(lambda *given: jax.jvp(call, *given)[1])((levels, values), tangents)
    stored = tangents[0][level].reshape(texels.shape)
    if operation in ("read", "fetch", "sample"):
        expected = oracle.read(stored, *np.broadcast_arrays(flat, inside))
        return assert_same(np.asarray(tangent) + 0, expected.reshape(tangent.shape) + 0, "tangent")
    if operation in ("write", "add"):
        expected = getattr(oracle, operation)(stored, tangents[1], flat, inside)
    else:  # who wins is told by the cotangents: each texel of the result has one source
        numbers = np.arange(1, stored.size + 1, dtype=np.float64).reshape(stored.shape)
        of_texels, of_values = oracle.cotangents_of_extreme(texels, values, numbers, flat, inside, operation)
        expected = np.where(of_texels > 0, stored, np.zeros((), stored.dtype)).ravel()
        won = np.nonzero(of_values.ravel())[0]
        expected[of_values.ravel()[won].astype(int) - 1] = tangents[1].ravel()[won]
    return compare_levels(tangent, tangents[0], level, expected)


def check_cuda(rng, operation, samples):
    """The same by CUDA's names, for a 2D array of floats."""
    name = pick(rng, list(CUDA_FORMATS))
    channels, (width, height) = CUDA_FORMATS[name], pick(rng, [(5, 4), (40, 30)])
    mode = pick(rng, list(CUDA_MODES)) if operation != "tex2D" else "clamp"
    x, y = (rng.integers(-1, n + 1, samples).astype(np.int32) for n in (width, height))
    array = cuda.mallocArray(cuda.createChannelDesc(name), width, height, STORE)
    texels = draw_whole(rng, "float32", array.texels.shape, 2, odd=0)
    values = draw_whole(rng, "float32", (samples, channels), 2, odd=0)
    row = np.int32(4 * channels) * x
    flat, inside = oracle.place([oracle.exact(y), oracle.exact(x)], [height, width], mode)

    def call(levels, values):
        stored = cuda.memcpyToArray(array, levels[0])
        if operation == "tex2D":
            t = cuda.createTextureObject(cuda.ResourceDesc.Array(stored), cuda.TextureDesc(cuda.AddressMode.Clamp))
            return cuda.tex2D(t, x, y, T=f"float{channels}")
        if operation == "surf2Dread":
            return cuda.surf2Dread(stored, row, y, CUDA_MODES[mode], T=f"float{channels}")
        return [cuda.surf2Dwrite(values, stored, row, y, CUDA_MODES[mode], T=f"float{channels}").texels]

    kind = "write" if operation == "surf2Dwrite" else "read"
    with naming(f"gradients of {operation} {mode} {name} {width} x {height}"):
        return samples, compare(rng, kind, call, [texels], values, 0, flat, inside)
