"""Reads as axes, taps and addresses, and the primitives by which they work under every transformation of JAX."""
