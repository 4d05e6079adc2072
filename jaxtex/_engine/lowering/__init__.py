"""How the primitives run: which form suits a program, and the forms that differ from plain array operations."""
