"""Reverses an array of integers read through a texture: CUDA's `reverseArray_multiblockTexture`.

`tex1Dfetch` reads a texel by its integer index, without filter or address mode: it returns integers as they are stored.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt


@jax.jit
def reverse(values: jax.Array) -> jax.Array:
    """`values` (N,) from last to first."""
    index = jnp.arange(values.size)
    return jt.fetch(jt.texture1d(values[:, None]), (values.size - 1 - index,))[:, 0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Reverse N integers.")
    parser.add_argument("--count", type=int, default=256 * 1024, metavar="N")
    args = parser.parse_args(argv)

    values = np.arange(args.count, dtype=np.int32)
    reversed_values = np.asarray(reverse(values))
    print(f"out[0] = {reversed_values[0]}, out[{args.count - 1}] = {reversed_values[-1]}")

    correct = np.array_equal(reversed_values, values[::-1])
    print("Correct!" if correct else "Wrong!")
    return 0 if correct else 1


if __name__ == "__main__":
    raise SystemExit(main())
