"""Everything that depends on a version of JAX or on names that JAX does not promise: one entry each.

An entry says which versions it is for and when it can go. `EXPIRES` holds the first version of JAX without the reason,
where one is known: once the lower bound in `pyproject.toml` reaches it, a test asks to remove the entry.
"""

import importlib.metadata
import warnings
from collections.abc import Callable
from typing import Any

import jax

EXPIRES = {"slow_atomics": (0, 11, 1)}

# jaxlib 0.10.2 to 0.11.0 compile a float32 scatter-add to a loop of compare and swap on CUDA.
# Source: https://github.com/jax-ml/jax/issues/38806. Can go when 0.11.1 is the oldest supported version.
SLOW_ATOMICS = ((0, 10, 2), (0, 11, 0))
SLOW_ATOMICS_ADVICE = (
    "jaxtex: this jaxlib adds float32 numbers on a GPU in a slow loop, in programs that run on several devices or that "
    "jaxtex's kernels do not cover. Gradients with respect to texels are then several times slower; install jaxlib "
    "0.11.1 or newer, or put the read inside jax.shard_map."
)


def jaxlib_version() -> tuple[int, ...]:
    return tuple(int(n) for n in importlib.metadata.version("jaxlib").split(".")[:3] if n.isdigit())


def has_slow_atomics() -> bool:
    """Whether the installed jaxlib is one of `SLOW_ATOMICS`."""
    return jaxlib_version() in SLOW_ATOMICS


def warn_of_slow_atomics(lowering_context: Any) -> None:
    """Warns where a program for CUDA alone scatters with a slow jaxlib."""
    if tuple(lowering_context.module_context.platforms) == ("cuda",) and has_slow_atomics():
        warnings.warn(SLOW_ATOMICS_ADVICE, stacklevel=3)


def varying_axes(x: jax.Array) -> frozenset:
    """The mesh axes along which `x` varies inside `jax.shard_map`.

    JAX 0.10.2 to 0.12: the field `manual_axis_type` of an abstract value, which is not documented. Can go when JAX
    documents one.
    """
    return frozenset(jax.typeof(x).manual_axis_type.varying)  # pyright: ignore[reportAttributeAccessIssue]


def without_varying_axes(aval: Any) -> Any:
    """The abstract value without the mesh axes along which it varies."""
    return type(aval)(aval.shape, aval.dtype)


def runs_on_one_device(lowering_context: Any) -> bool:
    """Whether a program is neither partitioned by XLA nor exported.

    JAX 0.10.2 to 0.12: fields of the module context of a lowering rule, which are not documented. Can go when JAX tells
    a lowering rule whether its program is partitioned.
    """
    module = lowering_context.module_context
    context = module.axis_context
    if module.lowering_parameters.for_export:
        return False
    if hasattr(context, "manual_axes"):
        return set(context.manual_axes) == set(context.mesh.axis_names)
    return getattr(context, "num_devices", 0) == 1


def lower_on_one_device(rule: Callable[..., Any], lowering_context: Any, *args: Any, **params: Any) -> Any:
    """`rule` in a program of one device: inside `jax.shard_map` all operands vary alike, and it need not know."""
    avals = [without_varying_axes(aval) for aval in lowering_context.avals_in]
    return rule(lowering_context.replace(avals_in=avals), *args, **params)


def expansion(eqn: Any) -> Callable[..., Any] | None:
    """The function that an equation of a jaxpr stands for, where its primitive is defined by other ones.

    JAX 0.12: `jnp.frexp` traces to such a primitive, whose parameter is not documented. Can go when JAX documents how a
    jaxpr is expanded.
    """
    return getattr(eqn.params.get("_prim"), "expand", None)


def is_x64() -> bool:
    """Whether 64-bit types are enabled. JAX 0.10.2 to 0.12: an attribute that type checkers do not know."""
    return bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]
