"""Negates an array in place, read through a texture: CUDA's `negateArray`.

The CUDA program binds a texture to linear memory, reads it with `tex1Dfetch` and overwrites the same memory with the
result. In JAX the function is pure. Its argument is donated, so that XLA can store the result in the same memory.
Unlike on a texture unit, no read returns an overwritten value. out[i] = -i, and out[0] is -0.0.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt


@functools.partial(jax.jit, donate_argnums=0)
def negate(values: jax.Array) -> jax.Array:
    """Minus `values`, in the memory of `values`, which is invalid afterwards."""
    index = jnp.arange(values.size)
    return -jt.fetch(jt.texture1d(values[:, None]), (index,))[:, 0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Negate N floats in place.")
    parser.add_argument("--count", type=int, default=2560, metavar="N")
    args = parser.parse_args(argv)

    values = jnp.arange(args.count, dtype=jnp.float32)
    address = values.unsafe_buffer_pointer()
    negated = negate(values)
    print(f"argument given up: {values.is_deleted()}, same memory: {negated.unsafe_buffer_pointer() == address}")
    print(f"out[0] = {negated[0]}, out[{args.count - 1}] = {negated[-1]}")

    correct = np.array_equal(negated, -np.arange(args.count)) and bool(np.signbit(negated).all())
    print("Correct" if correct else "Wrong")
    return 0 if correct else 1


if __name__ == "__main__":
    raise SystemExit(main())
