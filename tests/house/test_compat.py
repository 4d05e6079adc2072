"""Entries of `_jax.versions`: each is still needed, and nothing else leans on private names or versions of JAX."""

import ast
import importlib.util
import re
import resource
import tomllib
import types
from pathlib import Path

import jax
import jax.extend.core
import jax.numpy as jnp
import pytest

from jaxtex._jax import versions

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "jaxtex"
# Attributes of JAX's objects that its documentation does not promise.
PRIVATE = {"manual_axis_type", "vma", "mat", "module_context", "axis_context", "lowering_parameters", "for_export"}
PRIVATE |= {"manual_axes", "avals_in", "device_assignment", "jax_enable_x64"}
# Rules of primitives have these by their contract.
ALLOWED = {"_engine/forms/choice.py": {"avals_in"}}


def oldest_jax():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bound = next(line for line in project["dependencies"] if line.startswith("jax>="))
    return tuple(int(n) for n in re.match(r"jax>=([\d.]+)", bound)[1].split("."))


def first_unsupported_jax():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = {line.rpartition("<")[2] for line in project["dependencies"] if line.startswith("jax")}
    return tuple(int(n) for n in (*bounds.pop().split("."), 0))


def test_an_entry_goes_with_its_reason():
    late = [entry for entry, first in versions.EXPIRES.items() if oldest_jax() >= first]
    assert not late, f"the oldest supported version of JAX needs them no longer: remove {late}"
    assert oldest_jax() <= max(versions.SLOW_ATOMICS) < versions.EXPIRES["slow_atomics"]


def test_the_installed_jaxlib_is_known_to_launch_ptx():
    """Every supported one is; run the tests marked gpu with another one before its version is written down."""
    assert versions.has_ptx_call()
    assert (oldest_jax(), first_unsupported_jax()) == versions.PTX_CALL


def test_a_launcher_of_ptx_is_still_not_documented():
    assert not [name for name in dir(jax.ffi) if "ptx" in name.lower() or "kernel" in name.lower()]
    assert importlib.util.find_spec("jaxlib.gpu_triton"), "jaxlib's launcher is gone: remove triton_launcher"


def test_a_varying_type_still_has_no_documented_name():
    """`jax.typeof` documents shape, dtype, weak type and sharding, and no varying axes."""
    assert jax.typeof(jnp.zeros(3)).manual_axis_type.varying == versions.varying_axes(jnp.zeros(3)) == frozenset()
    assert not hasattr(jax, "varying_axes")
    mesh, split, seen = mesh_of(1), jax.P("b"), []
    program = lambda x: seen.append(versions.varying_axes(x)) or x
    jax.eval_shape(jax.shard_map(program, mesh=mesh, in_specs=split, out_specs=split), jnp.zeros(1))
    assert seen == [frozenset({"b"})]


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_a_stack_still_fails_where_some_arrays_have_examples():
    mesh = mesh_of(2, jax.sharding.AxisType.Explicit)
    split = jax.device_put(jnp.zeros(2), jax.NamedSharding(mesh, jax.P("b")))
    program = lambda stack: jax.make_jaxpr(jax.vmap(lambda x: stack([x, jnp.ones(())])))(split)
    with jax.set_mesh(mesh):
        assert program(versions.stack).out_avals[0].shape == (2, 2)
        with pytest.raises(Exception, match="should have the same sharding"):
            program(jnp.stack)


def mesh_of(count, kind=jax.sharding.AxisType.Auto):
    return jax.make_mesh((count,), ("b",), axis_types=(kind,), devices=jax.devices()[:count])


def primitive(name, lowering, function):
    """A primitive with a lowering rule, and the rule that lowers a function in its place."""
    from jax.interpreters import mlir

    p = jax.extend.core.Primitive(name)
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lowering)
    return p, mlir.lower_fun(function, multiple_results=False)


def test_lowering_tells_one_device_from_a_partition():
    """The fields of a module context exist, and say what they are asked."""
    answers = []

    def record(ctx, *args, **params):
        answers.append((versions.runs_on_one_device(ctx), versions.is_exported(ctx)))
        return rule(ctx, *args, **params)

    p, rule = primitive("one_device", record, lambda x: x + 1)
    jax.jit(p.bind).lower(jnp.zeros(8))
    jax.export.export(jax.jit(p.bind))(jnp.zeros(8))
    expected = [(True, False), (True, True)]
    if jax.device_count() > 1:
        split = jax.NamedSharding(mesh_of(jax.device_count()), jax.P("b"))
        jax.jit(p.bind, in_shardings=split).lower(jnp.zeros(jax.device_count()))
        jax.export.export(jax.jit(p.bind, in_shardings=split))(jnp.zeros(jax.device_count()))
        expected += [(False, False), (False, True)]
    assert answers == expected


def test_frames_still_need_room():
    """Of 2,000 calls at one depth or another each maps memory, which then has a page fault; with room, none does."""

    def calls(depth):
        if depth:
            return calls(depth - 1)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        for _ in range(2000):
            (lambda: None)()
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

    most = lambda function: max(function(depth) for depth in range(200))
    assert most(calls) >= 2000 > 100 > most(versions.with_room(calls))


def test_a_lowering_rule_finds_its_program_and_an_attribute_is_late():
    """The rule of an equation in a loop finds the whole program; the value of the attribute is asked for last."""
    order = []

    def call(x):
        order.append("traced")
        late = versions.Late(lambda: order.append("lowered") or "its value")
        return jax.ffi.ffi_call("a_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, an_attribute=late)

    def record(ctx, x):
        order.append([eqn.primitive.name for eqn in versions.program_being_lowered().eqns])
        return rule(ctx, x)

    p, rule = primitive("finds_its_program", record, call)
    text = jax.jit(lambda x: jax.lax.map(p.bind, jnp.sin(x))).lower(jnp.zeros(8)).as_text()
    assert order == [["sin", "scan"], "traced", "lowered"]
    assert 'an_attribute = "its value"' in text
    assert versions.program_being_lowered() is None


@pytest.mark.skipif(jax.device_count() < 2, reason="needs two devices")
def test_custom_partitioning_still_needs_devices_in_a_lowering_rule():
    """Only those of a program that Shardy partitions over all of its axes."""
    from jax.experimental.custom_partitioning import custom_partitioning

    def double(x):
        function = custom_partitioning(lambda x: 2 * x)
        split = lambda args: args[0].sharding
        function.def_partition(
            lambda mesh, args, out: (mesh, lambda x: 2 * x, split(args), (split(args),)), sharding_rule="i -> i"
        )
        return function(x)

    answers = []

    def record(ctx, x):
        devices = versions.devices_of_partition(ctx)
        answers.append(len(devices))
        if not devices:
            return [x]
        assert ctx.module_context.axis_context.device_assignment is None
        with pytest.raises(AssertionError, match="file a bug"):
            rule(ctx, x)
        return versions.lower_with_devices(rule, ctx, devices, x)

    p, rule = primitive("double", record, double)
    mesh = mesh_of(2)
    split = jax.NamedSharding(mesh, jax.P("b"))
    text = jax.jit(p.bind).lower(jax.device_put(jnp.ones(8), split)).as_text()
    assert "CustomSPMDPartitioning" in text
    jax.jit(p.bind).lower(jnp.ones(8))
    mapped = jax.shard_map(p.bind, mesh=mesh, in_specs=split.spec, out_specs=split.spec, check_vma=False)
    jax.jit(mapped).lower(jnp.ones(8))
    assert answers == [2, 0, 0]


def test_x64_is_still_an_untyped_attribute():
    assert not hasattr(jax, "is_x64_enabled")
    with jax.enable_x64(True):
        assert versions.is_x64()
    assert not versions.is_x64()


def test_only_compat_leans_on_private_names():
    found = []
    for path in PACKAGE.rglob("*.py"):
        name, text = str(path.relative_to(PACKAGE)), path.read_text()
        suspect = re.search(rf"jaxlib|jax\._src|__version_info__|\.({'|'.join(PRIVATE)})\b", text)
        for node in ast.walk(ast.parse(text)) if suspect else ():
            if isinstance(node, ast.Attribute) and node.attr in PRIVATE - ALLOWED.get(name, set()):
                found.append(f"{name}: .{node.attr}")
            if isinstance(node, ast.Attribute) and node.attr == "__version_info__":
                found.append(f"{name}: .{node.attr}")
            if isinstance(node, ast.ImportFrom | ast.Import):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                found += [f"{name}: {m}" for m in modules if m.startswith(("jax._src", "jaxlib"))]
    assert not [line for line in found if not line.startswith("_jax/versions.py")]


def test_frexp_is_still_defined_by_other_primitives_since_0_12():
    def equations(jaxpr):
        for eqn in jaxpr.eqns:
            yield eqn
            yield from equations(eqn.params["jaxpr"].jaxpr if "jaxpr" in eqn.params else types.SimpleNamespace(eqns=()))

    found = [versions.expansion(eqn) for eqn in equations(jax.make_jaxpr(jnp.frexp)(1.0).jaxpr)]
    assert any(found) == (jax.__version_info__ >= (0, 12))
