"""The kernel of a read."""
