"""Choices of callers for the programs that are traced or lowered inside of a context.

JAX's caches of traced, lowered and compiled programs compare these values. They are made here, before jaxtex traces
anything, because JAX allows no new one while other threads use it.
"""

import functools
import os
from pathlib import Path
from typing import Any

import jax

# The compute capability of kernels in exported programs, if a caller has chosen one; see `jaxtex.kernels_in_exports`.
FOR_EXPORTS: Any = jax.make_user_context(None)
# That compute capability, while such a program is lowered.
FOR_THIS_EXPORT: Any = jax.make_user_context(None)
# The method of reads of sharded textures that a caller has chosen; see `jaxtex.sharded.using`.
METHOD: Any = jax.make_user_context(None)
# An object that collects a line for each read of a sharded texture, for `jaxtex.sharded.explain`.
REPORT: Any = jax.make_user_context(None)
# Whether programs count the samples beyond a halo, for `jaxtex.sharded.count_beyond`.
COUNT: Any = jax.make_user_context(False)
# Whether sums on a GPU have the same bits in every run; `None` follows XLA's flags. See `jaxtex.deterministic`.
DETERMINISTIC: Any = jax.make_user_context(None)

# The flags of XLA that ask for the same bits in every run.
FLAGS = ("--xla_gpu_deterministic_ops", "--xla_gpu_exclude_nondeterministic_ops")


def is_deterministic() -> bool:
    """Whether sums on GPUs have the same bits in every run, for calls that do not say so themselves."""
    chosen = DETERMINISTIC.value
    return flags_ask(os.environ.get("XLA_FLAGS", "")) if chosen is None else chosen


@functools.cache
def flags_ask(value: str) -> bool:
    """Whether ``XLA_FLAGS`` sets one of `FLAGS`. As XLA reads it, it holds flags, or the name of a file that does."""
    if value.strip() and not value.lstrip().startswith("-"):
        file = Path(value)
        value = file.read_text() if file.is_file() else ""
    given = {name: setting for name, _, setting in (flag.partition("=") for flag in value.split())}
    return any(given.get(name, "false").lower() in ("", "1", "true") for name in FLAGS)
