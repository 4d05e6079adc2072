"""The primitives of reads, and their rules of differentiation, transposition and batching."""
