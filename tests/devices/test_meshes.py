"""Every public function of arrays under a mesh of devices: values and gradients are those without a mesh.

Each device has an example: in `jax.shard_map`, which knows what varies over devices, or along an axis of the mesh that
is explicit or automatic. A few functions are one program. If it fails, each is run alone, to name it. By default a
sample runs, and some are only traced, where JAX checks types.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._jax.indexing import as_varying
from tests.house.public_api import parameters_of
from tests.house.public_calls import CALLS, IMAGE, U, V, element, one_sample, public_functions
from tests.lowered.calls import FUNCTIONS as OF_ARRAYS
from tests.lowered.calls import LEFT_OUT, call_of, of_arrays
from tests.support.tolerances import assert_trees_close

FUNCTIONS = public_functions()
AXIS = P("examples")
KINDS = "shard_map", "explicit", "automatic"
MOST = 8
# How many functions are one program. The time to compile one grows faster than its size.
TOGETHER = 6
# The functions that take a batch by themselves, and the arguments that hold it.
OF_IMAGES = {
    name: [argument]
    for name, keywords in CALLS.items()
    for argument in ("image", "faces", "labels")
    if name in OF_ARRAYS and name.startswith("warp.") and argument in keywords
}
BESIDE_IMAGES = {
    "grid_sample": "grid",
    "forward_warp": "flow",
    "remap": "coords",
    "warp_affine": "matrix",
    "warp_flow": "flow",
}
for _name, _argument in BESIDE_IMAGES.items():
    OF_IMAGES[f"warp.{_name}"].append(_argument)
OF_BATCHES = {
    "nn.correlation_pyramid": ["first", "second"],
    "nn.correlation_lookup": ["pyramid", "coords"],
    "nn.deformable_attention": ["value", "sampling_locations", "attention_weights"],
    "nn.deformable_conv": ["x", "offsets"],
    "nn.k_planes": ["planes", "points"],
    "nn.triplane": ["planes", "points"],
}
OF_RAYS = {
    f"rays.{name}": ["start", "end"] for name in ("composite", "first_crossing", "line_integral", "maximum_intensity")
}
OF_SAMPLES = {"sample": ["coords"], "splat": ["values", "coords"]}
HELD = OF_IMAGES | OF_BATCHES | OF_RAYS | OF_SAMPLES
# Of those that smooth, one for each way to find what a pixel covers.
SOME_SMOOTH = ("warp.warp_affine antialias", "warp.remap antialias", "warp.resize antialias")
# What runs by default: a read, one of several textures, and a loop of reads. The others are traced.
SAMPLE = ("sample", "nn.multiresolution_grid", "rays.composite")
TRACED = (*SAMPLE, "build_mipmaps", "warp.thin_plate_spline", "warp.equirectangular_to_cubemap antialias")
# Calls of which one array may be sharded and another not, one of each kind.
ONE_OF_SEVERAL = (
    "splat",
    "warp.grid_sample",
    "warp.warp_flow",
    "nn.deformable_attention",
    "nn.triplane",
    "rays.first_crossing",
)

pytestmark = pytest.mark.skipif(jax.device_count() < MOST, reason="needs eight devices")


def takes_arrays(name):
    return name == "layers.theta_of" or not name.startswith(LEFT_OUT)


def calls():
    """The calls by name; those of functions that can smooth what they shrink also with ``antialias=True``."""
    found = {name: call_of(name, CALLS[name]) for name in CALLS if takes_arrays(name)}
    similar = {"parameters": np.float32([0.1, 0.2, 0.3, 0.4]), "transform": "similarity"}
    found["layers.theta_of"] = call_of("layers.theta_of", CALLS["layers.theta_of"] | similar)
    read = lambda u, v, texels: jt.fused_vmap(one_sample, (0, 0, None))(u, v, jt.texture2d(texels))
    found["fused_vmap"] = of_arrays(read, U, V, IMAGE)
    found["fused_map"] = of_arrays(jt.fused_map(element, (2, 3)), IMAGE)
    for name in [*found]:
        if "antialias" in parameters_of(FUNCTIONS[name]):
            found[f"{name} antialias"] = call_of(name, CALLS[name] | {"antialias": True})
    return found


ALL = calls()
SMOOTH = [name for name in ALL if name.endswith(" antialias")]
ROOMS = {"sample": [*SAMPLE], "smooth": ["warp.grid_sample antialias", TRACED[-1]]}
for _name in ALL:
    if _name not in (*SAMPLE, *SMOOTH):
        ROOMS.setdefault(_name.rpartition(".")[0] or "reads", []).append(_name)


# Examples


def examples(array, count):
    """As many arrays as there are devices, which differ where they are floating."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        return jax.random.split(array, count)
    factors = 1 - 0.03 * np.arange(count) if jnp.issubdtype(array.dtype, jnp.floating) else np.ones(count)
    return np.stack([(array * factor).astype(array.dtype) for factor in factors])


def is_shared(call, which):
    """Which arrays all examples share: none, all but the first, or the first."""
    return [(which == "all but one" and k > 0) or (which == "one" and k == 0) for k in range(len(call.args))]


# Programs: values and gradients


def with_gradients(function, args, wrt):
    """The results, and the gradients of the sum of squares of those that are finite."""

    def run(*moving):
        given = dict(zip(wrt, moving))
        results = jax.tree.leaves(function(*(given.get(k, a) for k, a in enumerate(args))))
        results = [as_varying(a, *args) for a in results]  # each device adds its own square of what all have alike
        is_float = [jnp.issubdtype(a.dtype, jnp.floating) for a in results]
        return [a for a, f in zip(results, is_float) if f], [a for a, f in zip(results, is_float) if not f]

    values, pull, others = jax.vjp(run, *(args[k] for k in wrt), has_aux=True)
    return [*values, *others], pull([2 * jnp.where(jnp.isfinite(a), a, 0) for a in values])


def mapped(call, shared):
    """A function of all examples."""
    run = jax.vmap(lambda *args: jax.tree.leaves(call.function(*args)), [None if s else 0 for s in shared])
    return lambda *args: with_gradients(run, args, call.wrt)


def on_each_device(call, shared, mesh):
    """The same, each example on its device."""
    specs = [P() if s else AXIS for s in shared]
    alone = lambda tree: jax.tree.map(lambda a: a[None], tree)

    def each(*args):
        args = [a if s else a[0] for a, s in zip(args, shared)]
        results, gradients = with_gradients(call.function, args, call.wrt)
        return alone(results), tuple(g if shared[k] else alone(g) for k, g in zip(call.wrt, gradients))

    out_specs = AXIS, tuple(specs[k] for k in call.wrt)
    return jax.shard_map(each, mesh=mesh, in_specs=tuple(specs), out_specs=out_specs, check_vma=True)


def mesh_of(kind, count):
    axis_type = AxisType.Explicit if kind == "explicit" else AxisType.Auto
    return jax.make_mesh((count,), tuple(AXIS), axis_types=(axis_type,), devices=jax.devices()[:count])


def of_program(programs, args):
    """What the functions return.

    Raises:
        AssertionError: if some of them fail, which it names.
    """
    found = {}
    for first in range(0, len(programs), TOGETHER):
        names = [*programs][first : first + TOGETHER]
        together = jax.jit(lambda args: {name: programs[name](*args[name]) for name in args})
        try:
            found |= jax.block_until_ready(together({name: args[name] for name in names}))
        except Exception:
            faults = {name: fault_of(jax.jit(programs[name]), args[name]) for name in names}
            faults = {name: fault for name, fault in faults.items() if fault}
            raise AssertionError(faults or f"{names} fail together") from None
    return found


def fault_of(program, args):
    try:
        program(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:400]
    return None


def comparable(tree):
    """The numbers that are finite, and which are; keys as numbers."""

    def of_leaf(a):
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.key_data(a)
        is_finite = np.isfinite(np.asarray(a, np.float64)) if jnp.issubdtype(a.dtype, jnp.floating) else True
        return np.where(is_finite, a, np.zeros((), a.dtype)), is_finite

    return jax.tree.map(of_leaf, tree)


@functools.cache
def expected(names):
    """The results and gradients of most examples, by name, without a mesh."""
    programs = {name: mapped(ALL[name], is_shared(ALL[name], "none")) for name in names}
    return of_program(programs, arguments(names, "none", MOST))


def arguments(names, which, count, mesh=None):
    """The arrays of each call, and where there is a mesh, their examples on its devices."""

    def placed(array, shared):
        array = array if shared else examples(array, count)
        return array if mesh is None else jax.device_put(array, NamedSharding(mesh, P() if shared else AXIS))

    return {name: [*map(placed, ALL[name].args, is_shared(ALL[name], which))] for name in names}


def programs_on(mesh, kind, names, which="none"):
    """The programs of calls with an example on each device, by name, and their arguments."""
    of_call = functools.partial(on_each_device, mesh=mesh) if kind == "shard_map" else mapped
    names = [name for name in names if which == "none" or len(ALL[name].args) > 1]
    programs = {name: of_call(ALL[name], is_shared(ALL[name], which)) for name in names}
    return programs, arguments(names, which, mesh.size, mesh)


def check(kind, names, count=2):
    mesh = mesh_of(kind, count)
    with jax.set_mesh(mesh):
        found = of_program(*programs_on(mesh, kind, names))
    # Examples know nothing of one another.
    assert_close_by_name(found, jax.tree.map(lambda a: a[:count], expected(tuple(names))))


def check_traces(programs, args):
    """JAX checks the types of programs as it traces them."""
    faults = {name: fault_of(jax.jit(program).trace, args[name]) for name, program in programs.items()}
    assert not {name: fault for name, fault in faults.items() if fault}


def assert_close_by_name(found, wanted):
    """Gradients may be sums of terms of both signs, much larger than these sums, and each side rounds them.

    In the center of the camera of `warp.undistort`, 48 terms with magnitudes of 4.7 in all give 0.1; of the largest
    gradient, the sums with a mesh and without are 4.4 and 3.6 times "sum" off those of float64.
    """
    for name in wanted:
        try:
            for row, of_found, of_wanted in zip(("sum", "long sum"), found[name], wanted[name], strict=True):
                assert_trees_close(row, comparable(list(of_found)), comparable(list(of_wanted)))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


# The net


def test_every_public_function_is_in_the_net():
    assert {name for name in FUNCTIONS if takes_arrays(name)} == {*ALL} - {*SMOOTH}


def in_turns(room, kind):
    """A room in a kind of mesh, of two devices or eight by turns; by default a sample runs in one kind."""
    count = (2, MOST)[([*ROOMS].index(room) + KINDS.index(kind)) % 2]
    marks = [] if room == "sample" and kind == "shard_map" else [pytest.mark.slow]
    return pytest.param(room, kind, count, id=f"{room}-{kind}-{count}", marks=marks)


@pytest.mark.parametrize(("room", "kind", "count"), [in_turns(room, kind) for room in ROOMS for kind in KINDS])
def test_an_example_on_each_device(room, kind, count):
    check(kind, ROOMS[room], count)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param("explicit", TRACED, id="explicit"),
        *(pytest.param(kind, SMOOTH, id=f"{kind}, smooth", marks=pytest.mark.slow) for kind in KINDS[:2]),
    ],
)
def test_examples_are_traced(kind, names):
    mesh = mesh_of(kind, 2)
    with jax.set_mesh(mesh):
        check_traces(*programs_on(mesh, kind, names))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["one", "all but one"])
def test_arrays_that_all_examples_share_are_traced(which):
    mesh = mesh_of("explicit", 2)
    with jax.set_mesh(mesh):
        check_traces(*programs_on(mesh, "explicit", [*TRACED, *OF_RAYS], which))


# Batches, and rays, which functions take by themselves


def batches(names, held_by=HELD):
    """The calls with two images, or batches of two of something, and for each array, whether it holds them."""
    for name in names:
        function = name.removesuffix(" antialias")
        changed = {key: jax.tree.map(two_of, CALLS[function][key]) for key in held_by[function]}
        smooth = {"antialias": True} if name in SMOOTH else {}
        call, held = call_of(function, CALLS[function] | changed | smooth), {*map(id, jax.tree.leaves(changed))}
        yield name, call, [id(a) in held for a in call.args]


def two_of(array):
    """Two arrays without a batch, such as images or faces of cubes, of one; otherwise a batch of two, of one or two."""
    if array.ndim <= 3 or array.shape[0] > 2:
        return examples(array, 2)
    return array if len(array) == 2 else np.concatenate([array, array * np.float32(0.97)])


def whole_program(call):
    return lambda *args: with_gradients(call.function, args, call.wrt)


def sharded(arrays, which, mesh):
    """Arrays on a mesh, those named by `which` along their first axis."""
    return [jax.device_put(a, NamedSharding(mesh, AXIS if cut else P())) for a, cut in zip(arrays, which)]


@pytest.mark.slow
def test_a_sharded_batch():
    calls = [*batches([*OF_IMAGES, *OF_BATCHES, *SOME_SMOOTH])]
    programs = {name: whole_program(call) for name, call, _ in calls}
    expected = of_program(programs, {name: call.args for name, call, _ in calls})
    for kind in ("explicit", "automatic"):
        mesh = mesh_of(kind, 2)
        placed = {name: sharded(call.args, in_batch, mesh) for name, call, in_batch in calls}
        with jax.set_mesh(mesh):
            assert_close_by_name(of_program(programs, placed), expected)


OTHERS = [name for name in HELD if name not in ONE_OF_SEVERAL]


@pytest.mark.parametrize(
    "names", [ONE_OF_SEVERAL, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["one of each kind", "others"]
)
def test_one_of_several_arrays_is_sharded(names):
    """On an explicit axis, of the arrays that hold a batch each one is sharded alone, and the others are not."""
    mesh, programs, args = mesh_of("explicit", 2), {}, {}
    for name, call, in_batch in batches(names):
        for k in np.flatnonzero(in_batch):
            key = f"{name}, array {k}"
            programs[key], args[key] = whole_program(call), sharded(call.args, np.arange(len(call.args)) == k, mesh)
    with jax.set_mesh(mesh):
        check_traces(programs, args)
