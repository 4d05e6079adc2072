"""The read, its adjoint, writes and filters as array operations."""
