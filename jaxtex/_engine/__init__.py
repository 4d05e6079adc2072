"""Reads as axes, taps and addresses, and their primitives, which support every transformation of JAX."""
