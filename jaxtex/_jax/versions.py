"""Everything that depends on a version of JAX or on names that JAX does not promise: one entry each.

An entry says which versions it is for and when it can go. `EXPIRES` holds the first version of JAX without the reason,
where one is known: once the lower bound in `pyproject.toml` reaches it, a test asks to remove the entry.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import dataclasses
import importlib
import importlib.metadata
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var
from jax.sharding import AbstractMesh, NamedSharding

EXPIRES = {"slow_atomics": (0, 11, 1)}

# jaxlib 0.10.2 to 0.11.0 compile a float32 scatter-add to a loop of compare and swap on CUDA.
# Source: https://github.com/jax-ml/jax/issues/38806. Can go when 0.11.1 is the oldest supported version.
SLOW_ATOMICS = ((0, 10, 2), (0, 11, 0))
NATIVE_ATOMICS = "-nvptx-allow-ftz-atomics"
SLOW_ATOMICS_ADVICE = (
    "jaxtex: this jaxlib adds float32 numbers on a GPU in a slow loop, in programs that jaxtex's kernels do not cover. "
    "Gradients with respect to texels are then several times slower; install jaxlib 0.11.1 or newer, which needs "
    f"Python 3.12, or set XLA_FLAGS=--xla_backend_extra_options={NATIVE_ATOMICS} before Python starts."
)
# Versions of jaxlib, the first and the first that is not known, whose XLA launches PTX by the custom call
# "__gpu$xla.gpu.ptx" with these attributes: name, kernel_type, kernel_data, grid_x to block_z and shared_mem_bytes. XLA
# does not document it, and a program cannot ask for it: one that lacks it fails where it is compiled, or runs. So a
# newer jaxlib needs a run on a GPU, and a new bound here. Can go when XLA or JAX documents a launcher of PTX.
PTX_CALL = ((0, 10, 2), (0, 13, 0))
# The numbers of 8 bytes for which a frame asks, so that its piece of memory, the next power of two, has as many more.
ROOM = 34_000


def jaxlib_version(version: str | None = None) -> tuple[int, ...]:
    """The numbers of a version, by default of the installed jaxlib, without a suffix such as ``.dev1``."""
    version = importlib.metadata.version("jaxlib") if version is None else version
    return tuple(int(n) for n in version.split(".")[:3] if n.isdigit())


def has_slow_atomics(version: str | None = None) -> bool:
    """Whether a jaxlib, by default the installed one, is one of `SLOW_ATOMICS`, and XLA's flags do not help."""
    first, last = SLOW_ATOMICS
    return first <= jaxlib_version(version) <= last and NATIVE_ATOMICS not in os.environ.get("XLA_FLAGS", "")


def warn_of_slow_atomics(lowering_context: Any) -> None:
    """Warns where a program for CUDA alone scatters with a slow jaxlib."""
    if tuple(lowering_context.module_context.platforms) == ("cuda",) and has_slow_atomics():
        warnings.warn(SLOW_ATOMICS_ADVICE, stacklevel=5)


def has_ptx_call() -> bool:
    """Whether the XLA of the installed jaxlib is one of `PTX_CALL`."""
    first, unknown = PTX_CALL
    return first <= jaxlib_version() < unknown


def triton_launcher() -> Any:
    """The module of jaxlib that launches PTX for jax_triton; `None` without JAX's plugin for CUDA.

    jaxlib 0.10.2 to 0.12: a module that is not documented, which jax_triton uses as well. Can go with `PTX_CALL`.
    """
    try:
        module = importlib.import_module("jaxlib.gpu_triton")
    except ImportError:
        return None
    needed = ("TritonKernel", "TritonKernelCall", "create_array_parameter")
    return module if all(hasattr(module, name) for name in needed) else None


def varying_axes(x: jax.Array) -> frozenset[str]:
    """The mesh axes along which `x` varies inside `jax.shard_map`.

    JAX 0.10.2 to 0.12: the field `manual_axis_type` of an abstract value, which is not documented. Can go when JAX
    documents one.
    """
    return frozenset(jax.typeof(x).manual_axis_type.varying)  # pyright: ignore[reportAttributeAccessIssue]


def stack(arrays: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """`jnp.stack` of arrays of one shape.

    JAX 0.10.2 to 0.12: under `jax.vmap` of an explicit mesh axis, `jnp.stack` fails where only some of the arrays have
    examples. Can go when it does not.
    """
    return jnp.concatenate([jnp.expand_dims(a, axis) for a in arrays], axis)


def without_varying_axes(aval: Any) -> Any:
    """The abstract value without the mesh axes along which it varies."""
    return type(aval)(aval.shape, aval.dtype)


def context_of_now() -> Any:
    """The context of equations that are traced now, such as the mesh: the value of their field `ctx`.

    JAX 0.10.2 to 0.12: a field of equations, which is not documented. Can go together with `without_mesh`.
    """
    (eqn,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
    return eqn.ctx


# Equations that change the type of an array under a mesh, and no number.
OF_MESH = frozenset(("pvary", "pcast", "reshard", "mesh_cast"))
NO_MESH = AbstractMesh((), ())


def without_mesh(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose types know of no mesh.

    JAX 0.10.2 to 0.12: makes variables and equations of programs, which is not documented. Can go when JAX traces a
    function that closes over arrays on a mesh as if they were not.
    """
    made: dict[Any, Any] = {}

    def plain(aval: Any) -> Any:
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type) if type(aval) is ShapedArray else aval

    def atom(v: Any) -> Any:
        if isinstance(v, Literal):
            return v
        if v not in made:
            made[v] = Var(plain(v.aval))
        return made[v]

    def parameter(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return ClosedJaxpr(without_mesh(value.jaxpr), value.consts)
        if isinstance(value, Jaxpr):
            return without_mesh(value)
        if isinstance(value, tuple | list):
            return type(value)(map(parameter, value)) if type(value) in (tuple, list) else value
        return None if isinstance(value, NamedSharding) else value

    given, eqns = [*map(atom, jaxpr.constvars)], []
    arguments = [*map(atom, jaxpr.invars)]
    with jax.sharding.use_abstract_mesh(NO_MESH):
        now = context_of_now()
        for eqn in jaxpr.eqns:
            if eqn.primitive.name in OF_MESH:
                made.update(zip(eqn.outvars, map(atom, eqn.invars)))
                continue
            params = {name: parameter(value) for name, value in eqn.params.items()}
            invars, outvars = [*map(atom, eqn.invars)], [*map(atom, eqn.outvars)]
            eqns.append(eqn.replace(invars=invars, outvars=outvars, params=params, ctx=now))
        return jaxpr.replace(constvars=given, invars=arguments, outvars=[*map(atom, jaxpr.outvars)], eqns=eqns)


def on_mesh_of(avals: Any, shape: tuple[int, ...], dtype: Any, spec: Any) -> ShapedArray:
    """The type of an array that varies along mesh axes as others do, with a partition spec on an explicit mesh.

    JAX 0.10.2 to 0.12: `ShapedArray.update`, which keeps the fields for meshes and is not documented. Can go when JAX
    documents how a primitive tells the types of its results under a mesh.
    """
    if not avals:
        return ShapedArray(shape, dtype)
    like = avals[0]
    sharding = like.sharding.update(spec=spec) if not like.sharding.mesh.empty else like.sharding
    return like.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def runs_on_one_device(lowering_context: Any) -> bool:
    """Whether a program is not partitioned by XLA.

    JAX 0.10.2 to 0.12: fields of the module context of a lowering rule, which are not documented. Can go when JAX tells
    a lowering rule whether its program is partitioned.
    """
    module = lowering_context.module_context
    context = module.axis_context
    if hasattr(context, "manual_axes"):
        return set(context.manual_axes) == set(context.mesh.axis_names)
    return getattr(context, "num_devices", 0) == 1


def is_exported(lowering_context: Any) -> bool:
    """Whether `jax.export` makes the program.

    JAX 0.10.2 to 0.12: a field of the module context, which says nothing of the checks that the caller disables. Can go
    together with `runs_on_one_device`.
    """
    return bool(lowering_context.module_context.lowering_parameters.for_export)


def devices_of_partition(lowering_context: Any) -> tuple[Any, ...]:
    """The devices of a program that Shardy partitions over all of them; none for any other program.

    JAX 0.10.2 to 0.12: fields of the module context of a lowering rule, and the flag of a partitioner that is to be
    the only one. Can go together with `runs_on_one_device`.
    """
    module = lowering_context.module_context
    context = module.axis_context
    count = 0 if hasattr(context, "manual_axes") else getattr(context, "num_devices", 0)
    shardy = getattr(jax.config, "jax_use_shardy_partitioner", True)
    whole = shardy and not is_exported(lowering_context) and len(module.platforms) == 1
    return tuple(jax.devices()[:count]) if whole and 1 < count <= jax.device_count() else ()


def lower_with_devices(
    rule: Callable[..., Any], lowering_context: Any, devices: tuple[Any, ...], *args: Any, **params: Any
) -> Any:
    """`rule`, which may contain `custom_partitioning`, in a program that runs on as many devices.

    JAX 0.10.2 to 0.12: `custom_partitioning` asks the module context for the devices, which has them only where a
    private set names a primitive of the program, and then JAX refuses programs of abstract or several meshes. Which
    devices they are makes no difference. Can go when a lowering rule may contain `custom_partitioning` as it is.
    """
    module = lowering_context.module_context
    module = module.replace(axis_context=dataclasses.replace(module.axis_context, device_assignment=devices))
    avals = [without_varying_axes(aval) for aval in lowering_context.avals_in]
    return rule(lowering_context.replace(module_context=module, avals_in=avals), *args, **params)


def lower_on_one_device(rule: Callable[..., Any], lowering_context: Any, *args: Any, **params: Any) -> Any:
    """`rule` in a program of one device: inside `jax.shard_map` all operands vary alike, and it need not know."""
    avals = [without_varying_axes(aval) for aval in lowering_context.avals_in]
    return rule(lowering_context.replace(avals_in=avals), *args, **params)


def program_being_lowered() -> Jaxpr | None:
    """The program in which the lowering rule that calls this lowers an equation; `None` if it is not found.

    JAX 0.10.2 to 0.12: a variable of the function of JAX that lowers a program, further up among the callers. Without
    its effect kernels are compiled one after the other. Can go when JAX tells a lowering rule its program.
    """
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_name != "lower_jaxpr_to_module":
        frame = frame.f_back
    program = frame and frame.f_locals.get("jaxpr")
    return getattr(program, "jaxpr", program)


def line_of(eqn: Any) -> str | None:
    """The file and line of the caller's code that made an equation, outside of JAX and of this package.

    JAX 0.10.2 to 0.12: the traceback of an equation, which is not documented. Can go when JAX documents it.
    """
    own = tuple(f"{folder}{os.sep}" for folder in (Path(str(jax.__file__)).parent, Path(__file__).parents[1]))
    frames = getattr(getattr(eqn.source_info, "traceback", None), "frames", ())
    found = (frame for frame in frames if not frame.file_name.startswith((*own, "<")))
    return next((f"{frame.file_name}:{frame.line_num}" for frame in found), None)


class Late:
    """An attribute of `jax.ffi.ffi_call` whose value is computed when the call is lowered, and not when it is traced.

    JAX 0.10.2 to 0.12 calls `__jax_array__` of an attribute whose type it does not know, which is not documented. Can
    go when JAX documents a launcher of kernels.
    """

    def __init__(self, value: Callable[[], Any]):
        self.__jax_array__ = value


def not_inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as one that XLA calls and does not inline.

    JAX 0.10.2 to 0.12: attributes of operations, which JAX calls experimental, and one that XLA does not document.
    Without its effect programs are slower, and their results are the same. Can go when XLA for CPUs keeps an
    optimization barrier until it has fused operations.
    """
    compiled = jax.jit(function)

    def run(*args: Any) -> Any:
        with set_xla_metadata(inlineable="false"):
            return compiled(*args)

    return run


def with_room(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, all of whose callees have their frames in one piece of memory.

    CPython 3.11 to 3.14 keeps frames in pieces of 16 KiB. Where calls cross the end of a piece, each maps another one
    and unmaps it; at an unlucky depth, a lowering takes almost twice as long. A frame that asks for more room gets a
    larger piece, which its callees share. Can go when CPython keeps a piece for the next call.
    """

    def call(*args: Any, **params: Any) -> Any:
        return function(*args, **params)

    call.__code__ = call.__code__.replace(co_stacksize=ROOM)
    return call


def expansion(eqn: Any) -> Callable[..., Any] | None:
    """The function that an equation of a jaxpr stands for, if its primitive is defined by other primitives.

    JAX 0.12: `jnp.frexp` traces to such a primitive, whose parameter is not documented. Can go when JAX documents how a
    jaxpr is expanded.
    """
    return getattr(eqn.params.get("_prim"), "expand", None)


def sizes_of_scan(params: dict[str, Any]) -> tuple[int, int]:
    """How many constants a scan has, and how many values it carries; its further operands are the arrays it scans.

    JAX 0.10.2 to 0.12: parameters that are not documented, and others from 0.12 on.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    constants, carried, *_ = params["ft_in"].unpack()
    return len(constants), len(carried)


def generator_of_key(dtype: Any) -> Any:
    """The functions of the random numbers of keys of a dtype: `fold_in`, `split` and `random_bits`, of raw keys.

    JAX 0.10.2 to 0.12: an attribute of the dtype of keys, which is not documented. Can go when JAX documents how
    keys are computed with.
    """
    return getattr(dtype, "_impl", None)


def is_x64() -> bool:
    """Whether 64-bit types are enabled. JAX 0.10.2 to 0.12: an attribute that type checkers do not know."""
    return bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]


def keeps_programs() -> bool:
    """Whether compiled programs may be kept between processes."""
    config: Any = jax.config
    return bool(config.jax_enable_compilation_cache)


def folder_of_programs() -> str | None:
    """The folder or address where JAX keeps compiled programs between processes, if it does."""
    config: Any = jax.config
    return (config.jax_compilation_cache_dir or None) if keeps_programs() else None
