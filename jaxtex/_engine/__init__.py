"""A read as axes, taps and addresses, and the primitives that carry it through every transformation of JAX."""
