"""What a kernel asks of its backend: to load, store and add elements, and to run one program for each tile.

Every array is one row of elements. This is the only file that names the backend.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.ref

from .tiling import WARP, Mask, Tiling

# A thread loads so many numbers at once.
VECTOR = 4


class Launcher(NamedTuple):
    """How a kernel is launched.

    Attributes:
        interpret: whether the backend's interpreter runs the kernel, on any device.
    """

    interpret: bool = False

    def run(
        self,
        kernel: Callable[..., None],
        tiling: Tiling,
        args: list[jax.Array],
        results: list[jax.ShapeDtypeStruct],
        name: str,
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

        num_warps = max(1, tiling.num_threads * max(1, width // VECTOR) // WARP)
        filled = pallas.pallas_call(
            run,
            grid=(tiling.num_programs,),
            # By evaluation, because inside `jax.shard_map` a shape says as well along which axes it varies: none.
            out_shape=jax.eval_shape(lambda: [jnp.zeros(math.prod(r.shape), r.dtype) for r in results]),
            input_output_aliases={0: 0} if in_place else {},
            compiler_params=triton.CompilerParams(num_warps=num_warps),
            interpret=self.interpret,
            name=name,
        )(*(a.reshape(-1) for a in args))
        return [jnp.reshape(a, r.shape) for a, r in zip(filled, results)]

    def add(self, ref: Any, element: jax.Array, exists: Mask, value: jax.Array) -> None:
        """Adds to elements of `ref`, of which several may be one."""
        from jax.experimental.pallas import triton

        if self.interpret:  # its atomic additions keep only the last of those that meet
            absent = jnp.zeros(element.shape, bool) if exists is None else ~exists
            jax.ref.addupdate(ref, (jnp.where(absent, 0, element),), jnp.where(absent, 0, value))
        else:
            triton.atomic_add(ref, (element,), value, mask=exists)


COMPILED = Launcher()


def load(ref: Any, element: jax.Array, exists: Mask) -> jax.Array:
    from jax.experimental.pallas import triton

    nothing = None if exists is None else jnp.zeros(element.shape, ref.dtype)
    return triton.load(ref.at[element], mask=exists, other=nothing)


def store(ref: Any, element: jax.Array, value: jax.Array, exists: Mask) -> None:
    from jax.experimental.pallas import triton

    triton.store(ref.at[element], value, mask=exists)
