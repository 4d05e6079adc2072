"""The primitives and their rules of differentiation, transposition and batching: the only place that defines them."""
