"""The calls whose programs are compared, by name: those of other tests, large arrays, and several devices."""

import collections

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from tests.compiled import contract, test_fused
from tests.house import public_calls
from tests.house.public_calls import EAGER, READERS
from tests.house.test_public_calls import cases_of, fields_of, is_array, result
from tests.lowered.programs import Call

# What makes no arrays, and what runs programs while it is called.
LEFT_OUT = ("Sampler", "deterministic", "kernels_in_exports", "sharded.", "nn.MultiresolutionGrid", "layers.", *EAGER)
FUNCTIONS = [name for name in public_calls.CALLS if not name.startswith(LEFT_OUT)]
BOTH = ("value", "reverse")


def call_of(name, keywords, **how):
    """A public function with keywords, whose arrays are its arguments."""
    leaves, structure = jax.tree.flatten(keywords)
    places = [k for k, leaf in enumerate(leaves) if is_array(leaf)]

    def run(*arrays):
        given = dict(zip(places, arrays))
        return result(name, jax.tree.unflatten(structure, [given.get(k, leaf) for k, leaf in enumerate(leaves)]))

    return of_arrays(run, *(leaves[k] for k in places), **how)


def of_arrays(function, *args, **how):
    """A call with derivatives in all that floats."""
    floating = [k for k, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.floating)]
    return Call(function, args, tuple(floating), **how)


def variants(cases):
    """The calls by what is changed, with a number where an option has several other values."""
    found, counts = {}, collections.Counter()
    for name, (spelling, _, keywords) in cases:
        key = f"{name} {spelling}"
        counts[key] += 1
        key += f" {counts[key]}" * (counts[key] > 1)
        found[key] = call_of(name, keywords, ways=("value",), refusable=True)
    return found


# Arrays that are so large that other forms are chosen.


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def sampled(texels, *coords, make=jt.texture2d, **options):
    read = lambda texels, *coords: jt.sample(make(texels), coords, jt.Sampler(**options))
    return of_arrays(read, texels, *coords, ways=BOTH)


SCREEN, ROWS = array(2160, 3840), array(2**20)
IMAGES, FLOWS = array(8, 512, 512, 3), array(8, 512, 512, 2)
LARGE = {
    **{f"{n} channels": sampled(array(4096, 4096, n), SCREEN, SCREEN) for n in (1, 4, 32)},
    "bytes": sampled(array(4096, 4096, 3, dtype=jnp.uint8), SCREEN, SCREEN, read_mode="normalized_float"),
    "hardware": sampled(array(4096, 4096, 4), SCREEN, SCREEN, arithmetic="hardware"),
    "reproducible": sampled(array(2048, 2048, 4), SCREEN, SCREEN, deterministic=True),
    "a crowd": sampled(array(32, 32, 3), SCREEN, SCREEN, address_mode="wrap"),
    "a volume": sampled(array(256, 256, 256, 1), *[ROWS] * 3, make=jt.texture3d, address_mode="border"),
    "more texels than int32 numbers": sampled(array(50_000, 60_000, 1, dtype=jnp.bfloat16), array(99), array(99)),
    "affine": of_arrays(jt.warp.warp_affine, array(2160, 3840, 3), array(2, 3), ways=BOTH),
    "flow": of_arrays(jt.warp.warp_flow, IMAGES, FLOWS, ways=BOTH),
    "forward": of_arrays(jt.warp.forward_warp, IMAGES, FLOWS, ways=BOTH),
    "smaller": of_arrays(lambda image: jt.warp.resize(image, (540, 960)), array(2160, 3840, 3), ways=BOTH),
}

# Arrays on eight devices: of an explicit mesh, and in programs that XLA partitions.


def sharded(function, *placed, **how):
    args, specs = zip(*placed)
    return of_arrays(function, *args, **{"specs": specs, "ways": ("value", "forward", "reverse")} | how)


def read(texels, *coords):
    return jt.sample(jt.texture2d(texels), coords)


def level(texels, x, y, lod):
    sampler = jt.Sampler(mipmap_filter_mode="linear", address_mode="wrap")
    return jt.sample(jt.build_mipmaps(jt.texture2d(texels)), (x, y), sampler, lod=lod)


def splat(values, x, y):
    return jt.splat(values, (x, y), (64, 48, 2), out_sharding=P("rows")).texels


IMAGE, FLOW, SAMPLE = (array(64, 48, 2), P("rows")), (array(64, 48, 2), P("rows")), (array(32, 5), P("rows"))
METHODS = {"halo": jt.sharded.Halo(4), "routing": jt.sharded.Routing(), "whole": jt.sharded.Whole()}
SHARDED = {
    f"{name}, {word}": sharded(function, *placed, method=method)
    for word, method in METHODS.items()
    for name, (function, *placed) in {
        "rows": (read, IMAGE, SAMPLE, SAMPLE),
        "chain": (level, IMAGE, SAMPLE, SAMPLE, SAMPLE),
        "splat": (splat, (array(32, 5, 2), P("rows")), SAMPLE, SAMPLE),
        "rotate": (lambda image: jt.warp.rotate(image, angle=0.0524), IMAGE),
        "flow": (jt.warp.warp_flow, IMAGE, FLOW),
    }.items()
}
PARTITIONED = {
    "samples": sharded(read, (array(6, 7, 2), P()), SAMPLE, SAMPLE, explicit=False),
    "images": sharded(jt.warp.warp_flow, *[(array(16, 6, 7, 2), P("rows"))] * 2, explicit=False),
}
# Functions of one sample.
FUSED = {
    name: Call(jt.fused_vmap(case.function, case.axes), case.args, case.wrt, ways=BOTH if case.wrt else ("value",))
    for name, case in test_fused.CASES.items()
}
GROUPS = {
    "reads": {name: Call(call.function, call.args, call.wrt) for name, call in contract.CALLS.items()},
    "public": {name: call_of(name, public_calls.CALLS[name]) for name in FUNCTIONS if not name.startswith("fused_")},
    "options": variants((name, case) for name in FUNCTIONS for case in cases_of(name)),
    "samplers": variants((name, case) for name in READERS for case in fields_of(name)),
    "large": LARGE,
    "fused": FUSED,
    "sharded": SHARDED,
    "partitioned": PARTITIONED,
}
CALLS = {f"{group}/{name}": call for group, calls in GROUPS.items() for name, call in calls.items()}
