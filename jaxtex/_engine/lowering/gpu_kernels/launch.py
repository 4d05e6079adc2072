"""Starts a kernel: one program a tile, every array as one row of elements."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .tiling import WARP, Deal

# A thread loads so many numbers at once.
VECTOR = 4


def launch(
    kernel: Callable[..., None],
    dealt: Deal,
    args: list[jax.Array],
    results: list[jax.ShapeDtypeStruct],
    name: str,
    interpret: bool,
    in_place: bool = False,
    width: int = 1,
) -> list[jax.Array]:
    """The arrays that ``kernel(program, *arguments, *results)`` fills.

    Args:
        in_place: whether the first result is the first argument, changed.
        width: how many channels a sample has at a time; more than four are shared among threads.
    """
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    def run(*refs: Any) -> None:
        kernel(pallas.program_id(0), *refs)

    filled = pallas.pallas_call(
        run,
        grid=(dealt.programs,),
        # By evaluation, because inside `jax.shard_map` a shape says as well along which axes it varies: none.
        out_shape=jax.eval_shape(lambda: [jnp.zeros(math.prod(r.shape), r.dtype) for r in results]),
        input_output_aliases={0: 0} if in_place else {},
        compiler_params=triton.CompilerParams(num_warps=max(1, dealt.threads * max(1, width // VECTOR) // WARP)),
        interpret=interpret,
        name=name,
    )(*(a.reshape(-1) for a in args))
    return [jnp.reshape(a, r.shape) for a, r in zip(filled, results)]
