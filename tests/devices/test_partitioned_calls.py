"""Primitives in programs that XLA partitions: each device runs a form for one device on its part.

Most textures have one axis: how many they have changes nothing in how samples are cut.
"""

import contextlib
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxtex as jt
from jaxtex._engine.cuda.build import launch
from jaxtex._engine.cuda.trace.statements import PrimitiveOfCaller
from jaxtex._engine.describe import storage
from jaxtex._engine.describe.plan import Layout, plan_of_grid
from jaxtex._engine.describe.spec import Read
from jaxtex._engine.forms import choice, gpu_kernels, partitioned
from jaxtex._engine.rules import primitives
from tests.support.arrays import normal
from tests.support.device_parts import COLLECTIVE, lowered_in_parts
from tests.support.tolerances import assert_trees_close

pytestmark = pytest.mark.skipif(jax.device_count() < 8 or jax.default_backend() != "cpu", reason="needs eight CPUs")

SAMPLER = jt.Sampler(address_mode="border")
CUBIC = jt.Sampler(address_mode="border", filter_mode="cubic")


@pytest.fixture(scope="module")
def all_parts():
    with lowered_in_parts() as found:
        jax.clear_caches()
        yield found
    jax.clear_caches()


@pytest.fixture
def parts(all_parts):
    all_parts.forget()
    return all_parts


def coords_of(*shape):
    return np.random.default_rng(sum(shape)).uniform(-0.5, 1.5, shape).astype(np.float32)


def read(texels, x):
    return jt.sample(jt.texture1d(texels), (x,), SAMPLER)


def with_derivatives(texels, x):
    found = jt.sample_with_derivatives(jt.texture1d(texels), (x,), CUBIC, order=2)
    return jnp.concatenate([found.value, *found.gradient, *found.hessian[0]], -1)


def loss(texels, *coords, read=read):
    return jnp.sin(read(texels, *coords)).sum()


@functools.cache
def gradient(read=read, wrt=(0, 1)):
    """One function for one `read`, so that its program for one device is compiled once."""
    return lambda *args: jax.grad(functools.partial(loss, read=read), wrt)(*args)


def forward(f, wrt):
    """The tangent of `f` along ones in its first `wrt` arguments."""

    def run(*args):
        some, rest = args[:wrt], args[wrt:]
        return jax.jvp(lambda *some: f(*some, *rest), some, tuple(map(jnp.ones_like, some)))[1]

    return run


def mesh_of(sizes, axis_type=AxisType.Auto):
    count = int(np.prod(sizes))
    return jax.make_mesh(sizes, tuple("abc")[: len(sizes)], (axis_type,) * len(sizes), devices=jax.devices()[:count])


def put(mesh, args, specs):
    return [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(args, specs, strict=True)]


def cut(mesh, x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def run(parts, f, args, placed, expected=None, mesh=None):
    """The collectives of a partitioned program, under `mesh`, and its text; its results are those of one device."""
    expected = jax.jit(expected or f)(*args)
    parts.seen.clear()
    with jax.set_mesh(mesh) if mesh else contextlib.nullcontext():
        # A function that JAX has not seen: its parts are lowered here.
        compiled = jax.jit(lambda *args: f(*args)).lower(*placed).compile()
        found = compiled(*placed)
    host = functools.partial(jax.tree.map, np.asarray)
    assert_trees_close("reordered", host(found), host(expected))
    return sorted(COLLECTIVE.findall(compiled.as_text())), compiled.as_text()


# Derivatives that no form is tested for elsewhere.
WORKS = {
    "a tangent of texels": (forward(read, 1), {"read"}, 0),
    "tangents": (forward(read, 2), set(), 0),
    "reverse over reverse": (
        jax.grad(lambda *args: sum(jnp.sum(g**2) for g in gradient()(*args)), (0, 1)),
        {"read", "splat", "pullback"},
        None,
    ),
    "in a checkpoint": (gradient(jax.checkpoint(read)), {"read", "pullback"}, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_derivatives(name, parts):
    """Nothing is gathered, and the gradient of a shared texture is summed once."""
    f, forms, reductions = WORKS[name]
    mesh, args = mesh_of((8,)), (normal(7, 2), coords_of(16, 3))
    collectives, _ = run(parts, f, args, put(mesh, args, (P(), P("a"))), mesh=mesh)
    assert set(collectives) <= {"all-reduce"}
    assert reductions is None or len(collectives) == reductions
    assert parts.names() == forms


@pytest.mark.parametrize(("batched", "axis_type"), [(False, AxisType.Auto), (True, AxisType.Explicit)])
def test_several_derivatives(batched, axis_type, parts):
    """Each device reads all of them for its samples, of its own textures in a batch, and nothing is moved."""
    mesh = mesh_of((8,), axis_type)
    args = (normal(8, 7, 2), coords_of(8, 4, 3)) if batched else (normal(7, 2), coords_of(16, 3))
    f = jax.vmap(with_derivatives) if batched else with_derivatives
    assert run(parts, f, args, put(mesh, args, (P("a") if batched else P(), P("a"))), mesh=mesh)[0] == []
    assert parts.names() == {"read of derivatives"}
    expected = ((1, 7, 2), (1, 4, 3)) if batched else ((7, 2), (2, 3))
    assert parts.shapes("read of derivatives") == {expected}


def test_points_in_one_array(parts):
    """Each device gets the components of its part of a flow, and the flow's cotangent has the form of the flow."""
    mesh, args = mesh_of((8,), AxisType.Explicit), (normal(16, 6, 2), normal(16, 6, 2) * 2)
    f = gradient(jt.warp.warp_flow)
    collectives, _ = run(parts, f, args, put(mesh, args, (P(), P("a"))), mesh=mesh)
    assert collectives == ["all-reduce"]
    for shapes in parts.shapes("pullback"):
        assert shapes[-1] == (2, 6, 2)


def test_uneven_parts_of_indices_in_one_array(parts):
    """Components lie along the first axis of an array, which is not cut."""
    mesh, args = mesh_of((4,)), (normal(6, 7), 7 * coords_of(2, 13, 3))
    whole = lambda array, indices: jt.ndimage.map_coordinates(array, indices, order=1, mode="grid-wrap")
    uneven = lambda array, indices: whole(array, cut(mesh, indices, None, "a"))
    run(parts, gradient(uneven), args, put(mesh, args, (P(), P())), gradient(whole))
    assert {shapes[-1] for shapes in parts.shapes("pullback")} == {(2, 4, 3)}


def test_folds_of_rays(parts):
    """Rays are cut, and their samples are not; the gradient of the volume is summed once."""
    mesh = mesh_of((8,))
    args = 0.1 * normal(3, 4, 5, 2) ** 2, 6 * coords_of(16, 3), 6 * coords_of(16, 3)[::-1].copy()
    placed = put(mesh, args, (P(), P("a"), P("a")))
    f = lambda *args: jt.rays.composite(*args, num_samples=9)
    assert run(parts, f, args, placed, mesh=mesh)[0] == []
    assert parts.shapes("fold") == {((3, 4, 5, 2), (2, 1, 3), (2, 1, 3), (1, 9), (2, 1))}
    collectives, _ = run(parts, gradient(f, (0, 1, 2)), args, placed, mesh=mesh)
    assert collectives == ["all-reduce"]
    assert parts.names() == {"fold", "read", "pullback"}


MESHES = {
    "three": ((3,), P("a"), (4, 4)),
    "two axes on one dimension": ((2, 3), P(("b", "a")), (2, 4)),
    "one axis of two": ((3, 2), P(None, "b"), (12, 2)),
    "nothing": ((4,), P(), (12, 4)),
    "one device": ((1,), P("a"), (12, 4)),
}


@pytest.mark.parametrize("name", MESHES)
def test_meshes(name, parts):
    sizes, spec, part = MESHES[name]
    mesh, args = mesh_of(sizes), (normal(7, 2), coords_of(12, 4))
    collectives, _ = run(parts, gradient(), args, put(mesh, args, (P(), spec)))
    assert collectives == (["all-reduce"] if part != (12, 4) else [])
    assert parts.shapes("read") == {((7, 2), part)}


BATCHED = jax.vmap(read)


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_textures_are_cut_with_their_samples(axis_type, parts):
    """Along batch axes; their gradients are summed over the axes that cut the samples of one texture, and no others."""
    mesh, f = mesh_of((4, 2), axis_type), gradient(BATCHED)
    args = normal(8, 7, 2), coords_of(8, 4, 3)
    assert run(parts, f, args, put(mesh, args, (P("a"),) * 2), mesh=mesh)[0] == []
    assert parts.shapes("pullback") == {((2, 4, 3, 2), (2, 7, 2), (2, 4, 3))}
    collectives, text = run(parts, f, args, put(mesh, args, (P("a"), P("a", "b"))), mesh=mesh)
    assert collectives == ["all-reduce"]
    groups = r"(\{\{0,1\},\{2,3\}|\[4,2\]<=\[8\]|mesh\['axis0'=2,'axis1'=2,'axis2'=2\] \{'axis2'\})"
    assert re.search(rf"f32\[2,7,2\]\S* all-reduce\(.*replica_groups={groups}", text)
    assert parts.shapes("pullback") == {((2, 2, 3, 2), (2, 7, 2), (2, 2, 3))}


def test_textures_that_share_coordinates_and_the_other_way_round(parts):
    mesh = mesh_of((8,))
    args = normal(8, 7, 2), coords_of(16, 3)
    shared = jax.vmap(read, (0, None))
    assert run(parts, shared, args, put(mesh, args, (P("a"), P())))[0] == []
    assert parts.shapes("read") == {((1, 7, 2), (1, 16, 3))}
    assert run(parts, gradient(shared, 0), args, put(mesh, args, (P(), P("a"))))[0] == ["all-reduce"]
    assert parts.shapes("splat") == {((8, 2, 3, 2), (1, 2, 3))}
    args = normal(4, 7, 2), coords_of(16, 3)
    nested = jax.vmap(jax.vmap(read, (None, 0)), (0, None))
    assert run(parts, gradient(nested), args, put(mesh, args, (P(), P("a"))))[0].count("all-gather") == 0


def loss_of_warps(images, matrices):
    return jnp.sin(jt.warp.warp_affine(images, matrices, (5, 4))).sum()


gradient_of_warps = jax.grad(loss_of_warps, (0, 1))


def test_grids_are_made_where_they_are_read(parts):
    """Rows, columns and matrices are cut each in their own dimensions."""
    mesh = mesh_of((8,))
    matrices = (np.eye(2, 3)[None] + 0.1 * normal(8, 2, 3)).astype(np.float32)
    args = normal(8, 6, 7, 2), matrices
    assert run(parts, gradient_of_warps, args, put(mesh, args, (P("a"), P("a"))))[0] == []
    assert ((1, 6, 7, 2), (1, 1, 4), (1, 5, 1), *[(1, 1, 1)] * 6) in parts.shapes("read")


def test_one_warp_is_cut_by_its_result(parts):
    mesh = mesh_of((8,))
    whole = lambda image, degrees: jnp.sin(jt.warp.rotate(image, output_shape=(16, 4), angle=jnp.deg2rad(degrees)))
    rows = lambda image, degrees: cut(mesh, whole(image, degrees), "a")
    sums = lambda f: jax.grad(lambda *args: f(*args).sum(), (0, 1))
    args = normal(6, 7, 2), np.float32(20)
    assert set(run(parts, sums(rows), args, put(mesh, args, (P(), P())), sums(whole))[0]) == {"all-reduce"}
    assert parts.shapes("read") == {((6, 7, 2), (1, 4), (2, 1), *[(1, 1)] * 6)}


def scaled_logarithms(scale, x):
    return (jnp.log(x) / scale,)


def test_padding_has_no_part_in_the_cotangents_of_shared_operands(parts):
    """Nor where a coordinate has no slope there."""
    mesh, texels = mesh_of((4,)), jnp.asarray(normal(7, 2))
    args = texels, np.float32(0.9).reshape(1, 1), np.exp(coords_of(13, 3))
    spec = plan_of_grid(
        Layout.of(jt.texture1d(texels)), scaled_logarithms, args[1:], SAMPLER, np.dtype(np.float32)
    ).spec

    def whole(texels, scale, powers):
        return jnp.sin(primitives.read(texels, None, Read(spec, (scale, powers)))).sum()

    rows_cut = lambda texels, scale, powers: whole(texels, scale, cut(mesh, powers, "a"))
    some = lambda f: jax.grad(f, (0, 1, 2))
    collectives, _ = run(parts, some(rows_cut), args, put(mesh, args, (P(),) * 3), some(whole))
    assert "all-reduce" in collectives
    (shapes,) = parts.shapes("pullback")
    assert shapes[2] == (4, 1)


def read_at_logarithms(texels, x):
    """Padding, which starts as zeros, becomes coordinates that are no numbers, and no border hides them."""
    return jt.sample(jt.texture1d(texels), (jnp.log(x),), jt.Sampler(address_mode="wrap"))


@pytest.mark.parametrize(("devices", "rows", "wrt"), [(8, 29, (0, 1)), (4, 5, 0)])
def test_parts_may_be_uneven_or_empty(devices, rows, wrt, parts):
    """What XLA pads them with adds nothing to texels."""
    mesh = mesh_of((devices,))
    args = normal(7, 2), np.exp(coords_of(rows, 3))
    uneven = lambda texels, powers: read_at_logarithms(texels, cut(mesh, powers, "a"))
    run(parts, gradient(uneven, wrt), args, put(mesh, args, (P(), P())), gradient(read_at_logarithms, wrt))
    assert parts.shapes("read") == {((7, 2), (-(-rows // devices), 3))}


def test_sums_of_narrow_texels_are_wide(parts):
    """Terms of devices are added in float32, and rounded once; those of texels alone, too."""
    mesh = mesh_of((8,))
    args = normal(7, 2).astype(jnp.bfloat16), coords_of(16, 3)
    wide = lambda texels, x: jt.sample(jt.texture1d(texels), (x,), SAMPLER, dtype=np.float32)
    both = lambda *args: (gradient(wide, 0)(*args), gradient(wide)(*args)[0])
    placed, program = put(mesh, args, (P(), P("a"))), jax.jit(both)
    compiled = program.lower(*placed).compile()
    assert "".join(re.findall("= (.*) all-reduce", compiled.as_text())).count("f32[7,2]") == 2
    for found, expected in zip(compiled(*placed), program(*args)):
        assert found.dtype == expected.dtype == jnp.bfloat16
        narrow = np.asarray(expected, np.float32)
        assert (abs(np.asarray(found, np.float32) - narrow) <= abs(narrow) * jnp.finfo(jnp.bfloat16).eps).all()


@pytest.mark.slow
def test_shardings_that_no_mesh_of_the_arguments_names(parts):
    """Given to `jit` alone, divided by a reshape, of two meshes, with devices in another order, and conflicting."""
    mesh, other = mesh_of((8,)), mesh_of((4, 2))
    args = normal(7, 2), coords_of(16, 3)
    shardings = NamedSharding(mesh, P()), NamedSharding(mesh, P("a"))
    jax.jit(lambda *args: gradient()(*args), in_shardings=shardings).lower(*args).compile()
    assert parts.shapes("read") == {((7, 2), (2, 3))}
    folded = lambda texels, x: read(texels, x.reshape(2, 8, 3))
    run(parts, gradient(folded), args, put(mesh, args, (P(), P("a"))))
    assert parts.shapes("read") == {((7, 2), (1, 2, 3))}
    order = Mesh(np.array(jax.devices())[[3, 1, 2, 0, 7, 6, 5, 4]].reshape(2, 4), ("a", "b"))
    assert run(parts, gradient(), args, put(order, args, (P(), P("b"))))[0] == ["all-reduce"]
    # Two coordinates of a sample, which may be cut in two ways.
    args, f = (normal(6, 7, 2), *coords_of(2, 16, 3)), gradient(read_of_two_axes, (0, 1, 2))
    run(parts, f, args, put(mesh, args[:2], (P(), P("a"))) + put(other, args[2:], (P("b"),)))
    run(parts, f, args, put(mesh, args, (P(), P("a"), P())))
    assert parts.shapes("read") == {((6, 7, 2), (2, 3), (2, 3))}


def read_of_two_axes(texels, x, y):
    return jt.sample(jt.texture2d(texels), (x, y), jt.Sampler(address_mode=("wrap", "border")))


def test_cut_textures_and_channels_are_made_whole(parts):
    mesh, args = mesh_of((8,)), (normal(16, 8), coords_of(16, 3))
    for spec in (P("a"), P(None, "a")):
        run(parts, gradient(), args, put(mesh, args, (spec, P("a"))))
        assert parts.shapes("read") == {((16, 8), (2, 3))}


def test_numbers_of_64_bits_may_be_enabled(parts, x64):
    mesh, args = mesh_of((8,)), (normal(7, 2), coords_of(16, 3))
    assert run(parts, gradient(), args, put(mesh, args, (P(), P("a"))))[0] == ["all-reduce"]
    assert parts.names() == {"read", "pullback"}


def test_a_loop_of_steps(parts):
    mesh, args = mesh_of((8,)), (normal(7, 2), coords_of(16, 3))

    def steps(texels, x):
        step = lambda texels, _: (texels - 0.1 * gradient(wrt=0)(texels, x), None)
        return jax.lax.scan(step, texels, None, length=3)[0]

    assert run(parts, steps, args, put(mesh, args, (P(), P("a"))))[0] == ["all-reduce"]


def test_reproducible_sums_are_of_all_samples(parts):
    """Their units are those of all samples, so they have the same bits however the samples are cut."""
    args = normal(7, 2), coords_of(16, 3)
    sampler = jt.Sampler(deterministic=True)
    exact = lambda texels, x: jt.sample(jt.texture1d(texels), (x,), sampler)
    placed = [put(mesh_of((n,)), args, (P(), P("a"))) for n in (2, 8)]
    bits = {np.asarray(jax.jit(gradient(exact, 0))(*some)).tobytes() for some in placed}
    assert len(bits) == 1
    assert parts.names() == {"read"}


def test_a_part_that_no_kernel_supports_takes_arrays(parts):
    """As does one whose kernel cannot be written; and where no part can be supported, XLA partitions arrays."""
    mesh, args = mesh_of((8,)), (normal(7, 2), coords_of(16, 3))
    placed = put(mesh, args, (P(), P("a")))
    samples = lambda avals: max(a.shape[0] for a in avals[1:])
    asked = []

    def supports(*avals, **static):
        asked.append(samples(avals))
        return answer(samples(avals))

    parts.supports, answer = supports, lambda n: n == 2  # the part of each device
    run(parts, read, args, placed)
    assert parts.names() == {"read"}
    answer = lambda n: n == 16  # the whole
    run(parts, read, args, placed)
    assert ("read", (7, 2), (2, 3)) not in parts.seen
    answer = lambda n: False
    asked.clear()
    assert "CustomSPMDPartitioning" not in jax.jit(lambda *args: read(*args)).lower(*placed).as_text()
    assert asked == [16, 2]
    answer, parts.before = lambda n: True, refuse
    run(parts, read, args, placed, lambda *args: read(*args))


def refuse(name):
    raise PrimitiveOfCaller(name)


def test_equal_shapes_of_other_meaning_are_other_programs(parts):
    """XLA is told of a call by an address alone, which a cache of compiled programs could meet again."""
    mesh, args = mesh_of((8,)), (normal(7, 2), coords_of(16, 3))
    placed = put(mesh, args, (P(), P("a")))
    found = set()
    for mode in ("wrap", "clamp"):
        f = lambda t, x, mode=mode: jt.sample(jt.texture1d(t), (x,), jt.Sampler(address_mode=mode))
        found.add(re.sub('backend_config = "[0-9]+"', "", jax.jit(f).lower(*placed).as_text()))
    assert len(found) == 2


def test_the_form_for_a_part_on_a_gpu_is_a_kernel(monkeypatch):
    """As it is traced for the shapes that one device holds."""
    forms, mesh = {}, mesh_of((8,))

    def partitioned_read(layout, on_part, *args, **params):
        forms[layout] = on_part, params["spec"]
        return partitioned.partitioned_read(layout, on_part, *args, **params)

    monkeypatch.setattr(choice, "partitioned_read", partitioned_read)
    monkeypatch.setattr(launch, "compile_to_ptx", lambda source, capability: "PTX")
    args = normal(7, 2), coords_of(16, 3)
    for wrt in (0, (0, 1)):
        for_cuda(monkeypatch, gradient(wrt=wrt), *put(mesh, args, (P(), P("a"))))
    texels, coords, values = normal(7, 2), coords_of(2, 3), normal(2, 3, 2)
    operands = {
        storage.READ: (texels, coords),
        storage.SPLAT: (values, coords),
        storage.PULLBACK: (values, texels, coords),
    }
    assert forms.keys() == operands.keys()
    for layout, (on_part, spec) in forms.items():
        text = str(jax.make_jaxpr(functools.partial(on_part, spec=spec))(*operands[layout]))
        assert "ffi_call" in text or "pallas_call" in text


def for_cuda(monkeypatch, f, *args):
    monkeypatch.setattr(gpu_kernels, "can_compile_kernels", lambda: True)
    monkeypatch.setattr(launch, "local_capability", lambda: (9, 0))
    return jax.jit(lambda *args: f(*args)).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_a_program_for_several_gpus_runs_kernels_on_parts(monkeypatch):
    """Also one that is lowered for a mesh without devices; one inside `shard_map` over some axes keeps arrays."""
    args, specs = (normal(7, 2), coords_of(16, 3)), (P(), P("a"))
    for mesh in (mesh_of((8,)), AbstractMesh((8,), ("a",), axis_types=(AxisType.Auto,))):
        shaped = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, s)) for a, s in zip(args, specs)]
        text = for_cuda(monkeypatch, gradient(), *shaped)
        assert text.count("@CustomSPMDPartitioning") == 2
    mesh = mesh_of((4, 2))
    mapped = jax.shard_map(read, mesh=mesh, in_specs=specs, out_specs=P("a"), axis_names={"a"})
    assert "@CustomSPMDPartitioning" not in for_cuda(monkeypatch, mapped, *put(mesh, args, (P(), P())))
