"""Names that a caller may write: those of a module, and those of arguments."""

# pyright: strict

from collections.abc import Callable, Collection, Iterable


def listing(names: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a module that lists its public names alone, not what it imports for them."""
    return lambda: sorted(names)


def check_keywords(
    name: str, keywords: Collection[str], names: Collection[str], remedy: Callable[[str], str | None]
) -> None:
    """Checks that all keywords are among `names`.

    Args:
        name: of the function or the class that is called.
        remedy: of a keyword, what to pass in its place, or `None` if nothing is like it.

    Raises:
        TypeError: says what to pass, or names all arguments.
    """
    for keyword in keywords:
        if keyword not in names:
            mend = remedy(keyword) or f"the arguments are {', '.join(names)}"
            raise TypeError(f"{name}: there is no argument {keyword!r}; {mend}.")
