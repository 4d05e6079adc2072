"""What callers choose for the programs that are traced or lowered inside of a context.

JAX compares these values where it looks for a program that it has traced, lowered or compiled already. They are made
here, before jaxtex traces anything: JAX allows no new one while other threads use it.
"""

# pyright: strict, reportUnknownMemberType=false

from typing import Any

import jax

# The compute capability for which exported programs get kernels, where a caller has chosen so; see
# `jaxtex.kernels_in_exports`.
FOR_EXPORTS: Any = jax.make_user_context(None)
# That compute capability, while such a program is lowered.
FOR_THIS_EXPORT: Any = jax.make_user_context(None)
# How samples meet the texels of a sharded texture, as the caller has chosen; see `jaxtex.sharded.using`.
METHOD: Any = jax.make_user_context(None)
# An object that collects a line for each read of a sharded texture, for `jaxtex.sharded.explain`.
REPORT: Any = jax.make_user_context(None)
# Whether programs hold how many samples reach too far, for `jaxtex.sharded.count_beyond`.
COUNT: Any = jax.make_user_context(False)
