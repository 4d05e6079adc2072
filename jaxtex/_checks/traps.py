"""Traps: errors under checkify that name the first place where an access is wrong."""

# pyright: strict, reportUnknownMemberType=false

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental import checkify

from .._engine.compute.texel_write import numbers
from .._jax.indexing import explicit_sharding

OUTSIDE = "is outside the surface"


def report(name: str, fine: jax.Array, fault: str, named: dict[str, jax.Array]) -> None:
    """An error under checkify, which names the first place that is not `fine`; else nothing.

    Under `jax.vmap` that is the first such place of the first example that has one.
    """
    if explicit_sharding(fine) is not None:  # there a check cannot be batched
        return
    fine, *indices = jnp.broadcast_arrays(fine, *named.values())
    is_fine, number, *first = first_fault(fine, numbers(fine.shape), *indices)
    at_first = dict(zip(named, first))
    listed = ", ".join(f"{key}={{{key}}}" for key in at_first)
    checkify.debug_check(is_fine, f"{name}: sample {{number}} {fault}: {listed}.", number=number, **at_first)


@custom_vmap
def first_fault(fine: jax.Array, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Whether all is `fine`, and the numbers of `arrays`, of the same shape, at the first place that is not."""
    place = numbers(fine.shape)
    first = jnp.min(jnp.where(fine, place.size, place), initial=place.size)
    return first == place.size, *(jnp.sum(jnp.where(place == first, a, 0), dtype=jnp.int32) for a in arrays)


@first_fault.def_vmap
def first_fault_of_batch(
    axis_size: int, in_batched: Sequence[bool], fine: jax.Array, *arrays: jax.Array
) -> tuple[Any, Any]:
    """The first fault of the first example: one for the whole batch. JAX's own rule for checks names the last one."""
    whole = (
        a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in zip((fine, *arrays), in_batched)
    )
    found = first_fault(*whole)
    return found, tuple(False for _ in found)
