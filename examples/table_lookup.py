"""A table lookup, TL(x) = tex((N - 1) / R x + 0.5): a piecewise linear function on [0, R], given by N values.

The scale and the half texel map x = 0 to the center of the first texel and x = R to the center of the last: TL(0) =
T[0] and TL(R) = T[N - 1], as in the CUDA C++ Programming Guide, "Table Lookup". Outside [0, R] the address mode clamp
returns the values at the ends.
"""

import jax
import jax.numpy as jnp

import jaxtex as jt

TEXELS = jt.Sampler(address_mode="clamp", filter_mode="linear", normalized_coords=False)


def table_lookup(table: jt.Texture, x: jax.Array, largest: float) -> jax.Array:
    """The function that takes the values of `table` (N, C) at N equal steps from 0 to `largest`."""
    count = table.shape[0]
    return jt.sample(table, ((count - 1) / largest * x + 0.5,), TEXELS)


def main(argv: list[str] | None = None) -> int:
    table, largest = jt.texture1d(jnp.array([[1.0], [3.0], [2.0], [5.0]])), 6.0
    for x in range(-1, 8):
        print(f"TL({x}) = {table_lookup(table, jnp.float32(x), largest)[0]:g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
