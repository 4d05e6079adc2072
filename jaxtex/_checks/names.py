"""What `dir` shows of a module."""

# pyright: strict

from collections.abc import Callable, Iterable


def listing(names: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a module that lists its public names alone, not what it imports for them."""
    return lambda: sorted(names)
