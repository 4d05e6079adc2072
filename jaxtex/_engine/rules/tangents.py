"""Tangents of reads that are more than one weighted sum, as programs of one sample.

The meaning of such a read in plain reads would be one pass over memory for each of them, and as many in reverse mode.
As a program of one sample, the tangent is one kernel on a GPU, and so is its transpose. Elsewhere it is `jax.vmap` of
the same meaning.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..._jax.primitives import as_tuple
from ..compute.programs import over_samples, stacks_of_one
from ..describe.spec import Combination, ReadSpec
from .programs import bind, samples_p


def has_program(spec: ReadSpec) -> bool:
    """Whether the tangent of a read is a program of one sample, which adds up in any order."""
    several = spec.several is not None or bool(spec.derivatives) or spec.has_color
    if not several and spec.combination is not Combination.LIMITED:
        return False
    ordered = spec.deterministic or spec.deterministic_on_gpus
    whole = not spec.given and all(axis.stored is None for axis in spec.axes)
    return whole and not ordered and not spec.summed_axes and spec.expected is None and spec.sums == np.float32


def adds_in_program(spec: ReadSpec, channels: int, *, alone: bool) -> bool:
    """Whether the transpose of the program also adds to texels, and not splats, which first sum samples of a tile.

    The reads of a mean, and those that limit one another, add to the same texels, which a program does at once.

    Args:
        alone: whether operands have no tangents.
    """
    limited = spec.combination is Combination.LIMITED
    return spec.several is not None or (limited and not (alone and channels == 1))


def tangent_by_samples(
    meaning: Callable[..., Any],
    primals: Sequence[jax.Array],
    tangents: dict[int, jax.Array],
    *,
    spec: ReadSpec,
    batch: int,
) -> list[jax.Array]:
    """The tangents of the results of ``meaning(texels, *args, spec=..., batch=...)`` along tangents, by argument."""
    moving, count, textures = sorted(tangents), len(primals), 1 + spec.has_color
    of_one = spec.replace(stacks=stacks_of_one(spec.stacks))

    def of_one_sample(*args: jax.Array) -> tuple[jax.Array, ...]:
        known, along = args[:count], args[count:]

        def of_moving(*some: jax.Array) -> Any:
            changed = dict(zip(moving, some))
            return as_tuple(meaning(*(changed.get(k, a) for k, a in enumerate(known)), spec=of_one, batch=0))

        return jax.jvp(of_moving, tuple(known[k] for k in moving), along)[1]

    of_argument = (*[None] * textures, *(spec.stacks or [None] * (count - textures)))
    which = *range(count), *moving
    shared, stacks = [n for n, k in enumerate(which) if k < textures], [of_argument[k] for k in which]
    arrays = (*primals, *(tangents[k] for k in moving))
    given, static = over_samples(of_one_sample, arrays, shared, stacks, batch)
    return bind(samples_p, *given, **static, wanted=((),) * len(static["program"].results))
