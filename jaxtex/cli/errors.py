"""Errors that the user of the command line can mend."""

# pyright: strict


class UserError(Exception):
    """A mistake that one sentence explains. `main` prints the sentence and returns 2, without a traceback."""


def one_line(error: BaseException) -> str:
    """The class and the message of an exception on one line, cut to a readable length."""
    message = " ".join(str(error).split()).rstrip(".")[:160]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
