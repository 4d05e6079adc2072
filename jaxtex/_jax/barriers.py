"""Barriers that make XLA for CPUs compute an array once, and not anew for every use of an element.

XLA for CPUs fuses operations into one loop. The second of two reads would then compute the first one for each of its
taps, and the cost of a chain of reads would grow exponentially with its length. XLA fuses nothing across a call that it
does not inline, so the barrier is such a call of the identity. It copies no memory.

Every result gets a barrier, since a primitive does not know what follows. Fused with a read, elementwise operations
would save 2 to 8 % of the time of both; but a sum, a softmax or a difference of neighbors would take 3 to 7 times as
long (linear reads of 1024x1024 samples, JAX 0.10.2 and 0.12).

The result of the call aliases its argument. XLA overlooks that if a loop reads both and writes its own result over the
argument: it then reads elements that it has overwritten. Hence `with_materialized`: an array behind a barrier belongs
to one function, and stays in memory until the results of the function are computed.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from .shapes import is_symbolic
from .versions import not_inlined


def with_materialized(function: Callable[..., Any], numbers: Sequence[int]) -> Callable[..., Any]:
    """`function`, whose results XLA computes once, and with them the arguments at the positions `numbers`.

    No other function may read the arguments through a call: see above.
    """

    def run(*args: jax.Array) -> Any:
        before = list(args)
        for k in numbers:
            before[k] = materialized(args[k])
        results, tree = jax.tree.flatten(function(*before))
        # The arguments go along, so that no result is written over one that is still read.
        after = materialized_p.bind(*results, *(args[k] for k in numbers))
        return jax.tree.unflatten(tree, after[: len(results)])

    return run


def materialized(x: jax.Array) -> jax.Array:
    """`x`, which nothing else may use, computed before anything that uses it."""
    return materialized_p.bind(x)[0]


def in_call(*arrays: jax.Array) -> Sequence[jax.Array]:
    """The form for CPUs. With symbolic shapes, XLA wants programs without calls."""
    if is_symbolic(*(x.shape for x in arrays)):
        return arrays
    return not_inlined(jax.lax.optimization_barrier)(arrays)


materialized_p = Primitive("materialized")
materialized_p.multiple_results = True
materialized_p.def_impl(lambda *arrays: list(arrays))
materialized_p.def_abstract_eval(lambda *avals: list(avals))
batching.primitive_batchers[materialized_p] = lambda args, dims: (materialized_p.bind(*args), dims)
mlir.register_lowering(materialized_p, lambda ctx, *arrays: list(arrays))
mlir.register_lowering(materialized_p, mlir.lower_fun(in_call, multiple_results=True), platform="cpu")


# Masks of samples

# A mask of taps holds for all channels of a sample. In XLA's programs for CPUs, the loop over samples has an inner loop
# over channels. LLVM hoists a condition that all channels share out of the inner loop, as a branch, and then vectorizes
# neither loop. So every channel compares the mask with a number of its own, a zero behind a barrier that hides its
# value from LLVM, and the condition stays a mask.

# A function from a mask of samples, S, to a mask that broadcasts to S + (C,).
ForChannels = Callable[[jax.Array], jax.Array]
# Beyond these limits, a mask of its own for every channel does not pay off: with more channels, LLVM vectorizes the
# inner loop behind the branch; with more taps, it makes no branch.
MOST_CHANNELS, MOST_TAPS = 8, 8


def alike(condition: jax.Array) -> jax.Array:
    """A mask that all channels share, S + (1,)."""
    return condition[..., None]


def one_by_one(channels: int, taps: int = 1) -> ForChannels:
    """A function to a mask with a comparison for every channel, if channels and taps are few; otherwise `alike`."""
    if not 1 < channels <= MOST_CHANNELS or taps > MOST_TAPS:
        return alike
    zeros = materialized(jnp.zeros(channels, jnp.int32))
    return lambda condition: alike(condition).astype(jnp.int32) > zeros.reshape(*[1] * condition.ndim, -1)
