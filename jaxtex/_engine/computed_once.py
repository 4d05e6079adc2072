"""Arrays that XLA computes once on a CPU, where it would otherwise compute them anew wherever an element is used.

XLA for CPUs puts operations that read each other's results into one loop. A read that follows another one would then
compute the first one for each of its taps, and the cost of a chain of reads would grow exponentially with its length.
XLA fuses nothing across the call of a function that it does not inline. Such a call, of the identity, stands here: it
copies no memory.
"""

import jax
from jax.export import is_symbolic_dim
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .._compat import not_inlined


def computed_once(x: jax.Array) -> jax.Array:
    """`x`, computed before anything that uses it. It has gradients of any order."""
    return x if x.size == 1 else computed_once_p.bind(x)


def in_call(x: jax.Array) -> jax.Array:
    """The form for CPUs. Where shapes are symbolic, XLA wants programs without calls."""
    return x if any(map(is_symbolic_dim, x.shape)) else not_inlined(jax.lax.optimization_barrier)(x)


computed_once_p = Primitive("computed_once")
computed_once_p.def_impl(lambda x: x)
computed_once_p.def_abstract_eval(lambda x: x)
ad.deflinear2(computed_once_p, lambda cotangent, _: [computed_once_p.bind(cotangent)])
batching.primitive_batchers[computed_once_p] = lambda args, dims: (computed_once_p.bind(*args), *dims)
mlir.register_lowering(computed_once_p, lambda ctx, x: [x])
mlir.register_lowering(computed_once_p, mlir.lower_fun(in_call, multiple_results=False), platform="cpu")
